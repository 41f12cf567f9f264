"""The data sets that have a name, and where each comes from.

The paper's data sets and the text data sets are read from the folder that `SPARINGLY_DATA` names. Each file is checked
by its sha256 before it is read; the decoded arrays are kept memory-mapped in a cache, so that a short run starts at
once. The others come with scikit-learn and river.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.experiments import openml
from sparingly.experiments.array_cache import cache_folder, cached
from sparingly.experiments.csv_files import DataError
from sparingly.experiments.dataset import Dataset, from_arrays
from sparingly.experiments.table_encoding import encode_table, encode_target, read_table

SHA256 = {
    "banking77.parquet": "126fd5f000a2fc7d4b2027ae858c75f3025631fe99ec09f41859cd05ab690a06",
    "clinc150.parquet": "36bab737c089a80c9cf37d2a9123e95649049e228ae1f5ca80421a049d0894f5",
    "isear.parquet": "5af68d1f87e8f55a1f01e564bc1311f8bc356ec650e847e4435dde1413bd602a",
    "adult.parquet": "63fa1caa5a9f0f05465ec30e440ffa694d84847a855c4ff94ea0a6102ec6dde9",
    "cifar10.npz": "0aab6f3b72771f8436c292032210a0ce7ea04bd9fc714d81ab8be8577e8bca30",
    "covertype.parquet": "678487c4a548b43d3d4784adc546dca681c49fb3575b34144fa4c05d87f65a1d",
    "fashion_mnist.npz": "ff999f1b92f4c3a94385c82c89e87093ebef1ce74d2f27f8487f83ac810ddbe9",
    "magic_telescope.parquet": "aaa2ee1390d9f20d60850925320e48de20fd87689c335369d887119cb0f08a34",
    "mnist.npz": "e39f9b875422a8d99edbb48287f95e995431f13e9048ce84072eaca7113d162c",
    "shuttle.parquet": "4cef698e9d5a748549333a5278e46e9602390b6a4f7057d036faa990a21735bc",
}

RECORDED = {"banking77": ("deepseek_v41_flash",), "isear": ("gpt35", "llama2_70b")}
"""The language models whose answers are recorded with a data set of texts."""
ORIGINS = {
    "banking77": "the repository PolyAI-LDN/task-specific-datasets and the Python package taskdistill",
    "clinc150": "the repository clinc/oos-eval",
    "isear": "the repositories sinmaniphel/py_isear_dataset and Flitternie/online_cascade_learning",
}
"""Where the text data sets come from."""


def file_of(name: str) -> str | None:
    """The file that a data set is read from, or None if it comes with a dependency."""
    stem = name.removesuffix("_binary").removesuffix("_in_scope")
    return next((file for file in SHA256 if Path(file).stem == stem), None)


def find(file: str) -> Path:
    """Where a data file is, checked by its hash."""
    folder = os.environ.get("SPARINGLY_DATA")
    if folder and not Path(folder).is_dir():
        raise DataError(f"SPARINGLY_DATA is {folder!r}, which is not a folder: {_how(file)}")
    for place in (Path(folder) if folder else None, cache_folder() / "data"):
        if place and (place / file).is_file():
            _check_hash(place / file)
            return place / file
    raise DataError(f"{file} is not in {folder or 'SPARINGLY_DATA (not set)'}: {_how(file)}")


def _how(file: str) -> str:
    name = Path(file).stem
    fetched = f"or run `sparingly datasets --fetch {name}`" if name not in ORIGINS else f"made from {ORIGINS[name]}"
    return f"point SPARINGLY_DATA at a folder that holds {file}, {fetched}"


@lru_cache
def _check_hash(path: Path) -> None:
    with path.open("rb") as handle:
        found = hashlib.file_digest(handle, "sha256").hexdigest()
    if found not in (SHA256[path.name], openml.recorded_hash(path)):
        raise DataError(
            f"{path} has sha256 {found[:16]}..., not {SHA256[path.name][:16]}...: it is damaged, get it again"
        )


@lru_cache
def named_dataset(name: str) -> Dataset:
    """A data set by its name; texts are not encoded yet."""
    return SOURCES[name](name)


def _table_source(name: str) -> Dataset:
    path = find(f"{name}.parquet")
    arrays = cached(_key(path), lambda: _decode_table(path))
    return Dataset(name, arrays["X"], np.asarray(arrays["y"]), tuple(map(str, arrays["classes"])))


def _decode_table(path: Path) -> dict[str, NDArray[Any]]:
    table = read_table(path, "target")
    return {"X": table.X, "y": table.y, "classes": np.array(table.classes)}


def _image_source(name: str) -> Dataset:
    path = find(f"{name}.npz")
    arrays = cached(_key(path), lambda: _decode_images(path))
    y, y_test = (np.asarray(arrays[part]).astype(np.int64) for part in ("y_train", "y_test"))
    classes = tuple(map(str, range(int(y.max()) + 1)))
    return Dataset(name, arrays["x_train"], y, classes, image=True, raw_test=arrays["x_test"], y_test=y_test)


def _decode_images(path: Path) -> dict[str, NDArray[Any]]:
    with np.load(path) as archive:
        arrays = {part: archive[part] for part in ("x_train", "y_train", "x_test", "y_test")}
    for part in ("x_train", "x_test"):
        pixels = arrays[part]
        channels_first = pixels[:, None] if pixels.ndim == 3 else pixels.transpose(0, 3, 1, 2)
        arrays[part] = np.ascontiguousarray(channels_first)
    return arrays


def _even_or_odd(name: str) -> Dataset:
    digits = named_dataset("mnist")
    assert digits.y_test is not None
    return replace(digits, name=name, y=digits.y % 2, y_test=digits.y_test % 2, classes=("even", "odd"))


def _digits_source(name: str) -> Dataset:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return from_arrays(bunch.data, bunch.target, name=name)


def _river_source(name: str) -> Dataset:
    import pandas as pd
    from river import datasets as river

    kinds: dict[str, Any] = {
        "phishing": river.Phishing,
        "image_segments": river.ImageSegments,
        "river_shuttle": river.Shuttle,
    }
    pairs = list(kinds[name]())
    table = encode_table(pd.DataFrame([x for x, _ in pairs]).assign(target=[y for _, y in pairs]), "target")
    return Dataset(name, table.X, table.y, table.classes)


def _text_source(name: str) -> Dataset:
    import pandas as pd

    frame = pd.read_parquet(find(f"{name}.parquet"))
    y, classes = encode_target(frame["label"].to_numpy(), "label")
    places = {label: number for number, label in enumerate(classes)}
    answers = {
        expert: np.array([places.get(said, -1) for said in frame[expert]], dtype=np.int64)
        for expert in RECORDED.get(name, ())
    }
    unread = np.empty((len(y), 0), dtype=np.float32)
    return Dataset(name, unread, y, classes, texts=tuple(frame["text"]), answers=answers)


def _without_out_of_scope(name: str) -> Dataset:
    whole = named_dataset("clinc150")
    assert whole.texts is not None
    kept = np.flatnonzero(whole.y != whole.classes.index("oos"))
    y, places = encode_target(np.array(whole.classes)[whole.y[kept]])
    return replace(
        whole, name=name, raw=whole.raw[kept], y=y, classes=places, texts=tuple(whole.texts[i] for i in kept)
    )


def _key(path: Path) -> str:
    return f"{path.stem}-{SHA256[path.name][:12]}-1"


SOURCES: dict[str, Callable[[str], Dataset]] = {
    "adult": _table_source,
    "magic_telescope": _table_source,
    "mnist": _image_source,
    "mnist_binary": _even_or_odd,
    "fashion_mnist": _image_source,
    "covertype": _table_source,
    "shuttle": _table_source,
    "cifar10": _image_source,
    "digits": _digits_source,
    "river_shuttle": _river_source,
    "image_segments": _river_source,
    "phishing": _river_source,
    "banking77": _text_source,
    "clinc150": _text_source,
    "clinc150_in_scope": _without_out_of_scope,
    "isear": _text_source,
}
