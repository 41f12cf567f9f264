"""Fetch the paper's data sets from OpenML into the layout of the data folder.

A fetched file cannot have the sha256 of ours, since it is written anew here. What must be the same is its content:
a sha256 over the values, in order for images and as a sorted set of rows for tables (OpenML's order of rows is its
own). Content that differs is refused; content that agrees is written, and the new file's sha256 is
recorded beside it, so that damage done later is seen as well.
"""

from __future__ import annotations

import difflib
import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.experiments.csv_files import DataError

ON_OPENML = {
    "adult": ("adult", 2),
    "magic_telescope": ("MagicTelescope", 1),
    "covertype": ("covertype", 3),
    "shuttle": ("shuttle", 1),
    "mnist": ("mnist_784", 1),
    "fashion_mnist": ("Fashion-MNIST", 1),
    "cifar10": ("CIFAR_10", 1),
}
CONTENT = {
    "adult": "2107092538dca9a5228698a618432cdb0bef2f68b1e861cb1ae053201706fc4f",
    "magic_telescope": "219074c27a7e2fa58e2466648fd4e68991ba55753d6192ba7337d6e952ab0f6b",
    "covertype": "88928843b43117b9fe86a7940e9768214c156becc7ba874c17b4db9aea610c1c",
    "shuttle": "6bcf794c823a1bc80fbc9b7f3998113ac30069f1c5c0880c614acbbddb489325",
    "mnist": "06b0d1f124c4e5fa796686ade41a9b778edacc8622f2195a352ef479ad44fc16",
    "fashion_mnist": "ca3ab2a37f845e1b8ae23cab1b51749a3011ba3bf1d9016176d75cbaabac376f",
    "cifar10": "106d1f01549b2f3735458264b793744cc8c2ab01df3126c15cbdd82e39e7452e",
}
"""The content hash of each data set, taken from the files whose sha256 `datasets` lists."""
COVERTYPE_RANGES = (
    (1859, 3858),
    (0, 360),
    (0, 66),
    (0, 1397),
    (-173, 601),
    (0, 7117),
    (0, 254),
    (0, 254),
    (0, 254),
    (0, 7173),
)
"""Smallest and largest value of covertype's ten numbers; OpenML's version 3 is scaled by them."""
SPLITS = {
    "mnist": (60_000, 60_000, 10_000),
    "fashion_mnist": (60_000, 60_000, 10_000),
    "cifar10": (50_000, 20_000, 5_000),
}
"""Where the test images begin, and how many training and test images are kept."""


def fetch(name: str, folder: Path) -> Path:
    """Fetch a data set into a folder; needs internet."""
    from sklearn.datasets import fetch_openml

    name = "mnist" if name == "mnist_binary" else name
    if name not in ON_OPENML:
        near = difflib.get_close_matches(name, ON_OPENML, n=3, cutoff=0.6)
        hint = f"did you mean {' or '.join(near)}?" if near else f"those that are: {', '.join(ON_OPENML)}"
        raise DataError(f"{name!r} is not among the data sets that are fetched; {hint}")
    their_name, version = ON_OPENML[name]
    try:
        bunch = fetch_openml(
            their_name, version=version, as_frame=True, parser="auto", data_home=str(folder / "openml")
        )
    except OSError as error:
        raise DataError(f"OpenML cannot be reached for {their_name}: {str(error).splitlines()[0]}") from error
    return keep(name, bunch.data, bunch.target, folder)


def keep(name: str, features: Any, target: Any, folder: Path) -> Path:
    """Check what OpenML sent and write it as the data folder's file."""
    if name in SPLITS:
        return _keep_images(name, features.to_numpy(), np.asarray(target).astype(np.int64), folder)
    frame = _as_ours(name, features, target)
    _check(name, content_hash_of_table(frame))
    path = folder / f"{name}.parquet"
    return _write(path, lambda part: frame.to_parquet(part, index=False))


def content_hash_of_table(frame: Any) -> str:
    """A sha256 of a table's values that does not depend on the order of its rows.

    >>> import pandas as pd
    >>> one = pd.DataFrame({"a": [1, 2], "target": ["x", "y"]})
    >>> content_hash_of_table(one) == content_hash_of_table(one[::-1])
    True
    """
    import pandas as pd

    rows = np.zeros(len(frame), dtype=np.uint64)
    for place, column in enumerate(frame.columns):
        values = frame[column]
        plain = values.astype("float64") if pd.api.types.is_numeric_dtype(values.dtype) else values.astype("object")
        hashed = pd.util.hash_array(plain.to_numpy(), categorize=True)
        rows = rows * np.uint64(1_099_511_628_211) + hashed + np.uint64(place)
    return hashlib.sha256(np.sort(rows).tobytes()).hexdigest()


def content_hash_of_images(arrays: dict[str, NDArray[Any]]) -> str:
    """A sha256 of images and labels, in their order."""
    digest = hashlib.sha256()
    for part in ("x_train", "y_train", "x_test", "y_test"):
        digest.update(np.ascontiguousarray(arrays[part], dtype=np.uint8).tobytes())
    return digest.hexdigest()


def recorded_hash(path: Path) -> str | None:
    """The sha256 that was written beside a fetched file."""
    record = path.with_suffix(path.suffix + ".sha256")
    return record.read_text().strip() if record.is_file() else None


def _as_ours(name: str, features: Any, target: Any) -> Any:
    frame = features.reset_index(drop=True).assign(target=np.asarray(target))
    if name == "covertype":
        low, high = np.array(COVERTYPE_RANGES, dtype=np.float64).T
        numbers = (frame.iloc[:, :10].to_numpy(dtype=np.float64) * (high - low) + low).round()
        indicators = frame.iloc[:, 10:-1].to_numpy().astype(np.float64)
        columns = dict(zip(frame.columns[:-1], np.concatenate([numbers, indicators], axis=1).T, strict=True))
        frame = type(frame)(columns).assign(target=np.asarray(target))
    if name in ("covertype", "shuttle"):
        frame["target"] = frame["target"].astype(int)
    return frame


def _keep_images(name: str, pixels: NDArray[Any], y: NDArray[np.int64], folder: Path) -> Path:
    test, n_train, n_test = SPLITS[name]
    images = pixels.astype(np.uint8)
    images = images.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1) if name == "cifar10" else images.reshape(-1, 28, 28)
    arrays = {
        "x_train": images[:n_train],
        "y_train": y[:n_train].astype(np.uint8),
        "x_test": images[test : test + n_test],
        "y_test": y[test : test + n_test].astype(np.uint8),
    }
    _check(name, content_hash_of_images(arrays))
    return _write(folder / f"{name}.npz", lambda part: np.savez_compressed(part, allow_pickle=False, **arrays))


def _check(name: str, found: str) -> None:
    if found != CONTENT[name]:
        raise DataError(
            f"OpenML's {ON_OPENML[name][0]} has content {found[:16]}..., not {CONTENT[name][:16]}...: not kept"
        )


def _write(path: Path, write: Any) -> Path:
    """Write a file whole or not at all, and its hash beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.stem}.part{path.suffix}")
    write(part)
    path.with_suffix(path.suffix + ".sha256").write_text(hashlib.sha256(part.read_bytes()).hexdigest())
    os.replace(part, path)
    return path
