"""Arrays that take time to make, kept on disk and memory-mapped."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.encoders import TextEncoder


def cache_folder() -> Path:
    """Where decoded and fetched data are kept: `SPARINGLY_CACHE`, or `sparingly` in the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("SPARINGLY_CACHE") or Path(home) / "sparingly")


def cached(key: str, make: Callable[[], dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Arrays, memory-mapped from the cache, made whole or not at all; in memory if it cannot be written."""
    folder = cache_folder() / "arrays" / key
    if not folder.is_dir():
        arrays = make()
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            unfinished = Path(tempfile.mkdtemp(dir=folder.parent))
            for part, array in arrays.items():
                np.save(unfinished / f"{part}.npy", array)
            try:
                unfinished.rename(folder)
            except OSError:
                shutil.rmtree(unfinished, ignore_errors=True)
        except OSError:
            return arrays
    return {file.stem: np.load(file, mmap_mode="r") for file in folder.glob("*.npy")} or make()


def encoded_texts(texts: Sequence[str], encoder: TextEncoder) -> NDArray[np.float32]:
    """The vectors of texts, `[texts, width]`; the same texts are encoded once, by whichever run comes first."""
    digest = hashlib.blake2b(json.dumps(encoder.identity, sort_keys=True).encode(), digest_size=12)
    for text in texts:
        digest.update(hashlib.blake2b(str(text).encode(errors="surrogatepass"), digest_size=16).digest())
    return cached(f"texts-{digest.hexdigest()}", lambda: {"X": encoder(texts)})["X"]
