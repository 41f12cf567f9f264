"""Pictures on disk: a folder with one subfolder a class, and the columns of a table that hold paths of pictures."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.encoders import EncodingError
from sparingly.encoders.pictures import SIDE, SUFFIXES, names_picture, pixels, read_picture, shape_of
from sparingly.experiments.array_cache import cached
from sparingly.experiments.csv_files import DataError, file_hash
from sparingly.experiments.table_encoding import encode_target

SHOWN = 10
"""Broken files that are named one by one; of more, their number."""


def content_hash(path: str | Path) -> str:
    """Tells a file, or a folder of pictures, from another, or from itself after a change."""
    return folder_hash(path) if Path(path).is_dir() else file_hash(path)


def folder_hash(folder: str | Path) -> str:
    """A hash of the names, sizes and times of a folder's pictures."""
    digest = hashlib.sha256()
    for path in _files(Path(folder)):
        found = path.stat()
        digest.update(f"{path.relative_to(folder)}\0{found.st_size}\0{found.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:32]


def read_folder(folder: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64], tuple[str, ...], tuple[str, ...]]:
    """The pictures `[n, channel, height, width]` as bytes, their classes by number, the classes, and what to say.

    A file that is no whole picture is named and left out.
    """
    files = _files(folder)
    if not files:
        loose = any(path.suffix.lower() in SUFFIXES for path in folder.iterdir())
        found = "has pictures beside its subfolders only" if loose else "has no pictures"
        kinds = ", ".join(SUFFIXES)
        raise DataError(f"{folder} {found}: give a folder with one subfolder a class, with files {kinds}")
    arrays = cached(f"pictures-{folder_hash(folder)}", lambda: _decoded(folder, files))
    kept = np.asarray(arrays["kept"])
    y, classes = encode_target(np.array([path.parent.name for path in files])[kept], "the subfolder")
    return arrays["X"], y, classes, _notes([str(one) for one in arrays["broken"]])


def existing_pictures(frame: Any, root: Path, target: str) -> tuple[Any, tuple[str, ...]]:
    """A table whose columns of paths hold `Path`s, from its own folder on; rows with a broken picture are left out."""
    broken: list[str] = []
    for name in frame.columns:
        values = frame[name]
        known = values.dropna()
        if name == target or not len(known) or not all(map(names_picture, known)):
            continue
        paths = [path if isinstance(path, float) else root / str(path).strip() for path in values]
        problems = [_problem(path) if isinstance(path, Path) else None for path in paths]
        whole = [problem is None for problem in problems]
        broken += [problem for problem in problems if problem is not None]
        if not any(whole):
            raise DataError(f"column {name!r} has no picture that can be read: {broken[0]}")
        frame = frame.assign(**{name: np.array(paths, dtype=object)})[whole]
    return frame, _notes(broken)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*/*") if path.suffix.lower() in SUFFIXES and path.is_file())


def _decoded(folder: Path, files: Sequence[Path]) -> dict[str, NDArray[Any]]:
    kept, small, broken, grey = [], [], [], True
    for place, path in enumerate(files):
        try:
            picture = read_picture(path)
        except EncodingError as error:
            broken.append(str(error))
            continue
        grey = grey and shape_of(picture)[0] == 1
        small.append((255 * pixels(picture, (3, SIDE, SIDE))).round().astype(np.uint8))
        kept.append(place)
    if not kept:
        raise DataError(f"{folder} has no picture that can be read: {broken[0]}")
    X = np.stack(small)
    return {"X": X[:, :1] if grey else X, "kept": np.array(kept), "broken": np.array(broken, dtype=np.str_)}


def _problem(path: Path) -> str | None:
    try:
        read_picture(path)
    except EncodingError as error:
        return str(error)
    return None


def _notes(broken: Sequence[str]) -> tuple[str, ...]:
    warnings = [f"warning: {problem}; it is left out" for problem in broken[:SHOWN]]
    more = len(broken) - SHOWN
    return (*warnings, *([f"warning: {more} more pictures are left out"] if more > 0 else []))
