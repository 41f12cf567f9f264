"""Data sets by name, from a folder or a file or arrays, and what is done to their features.

The paper's data sets are read from the folder that `SPARINGLY_DATA` names. Each file is checked by its sha256
before it is read; the decoded arrays are kept memory-mapped in a cache, so that a short run starts at once. The
text data sets are read from the same folder and encoded by a text encoder.
"""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparingly.encoders import EncodingError, RowSchema, text_encoder
from sparingly.encoders.csv_format import CsvFormat
from sparingly.encoders.learned_schema import table_columns
from sparingly.experiments import openml
from sparingly.experiments.array_cache import cache_folder, cached, encoded_texts
from sparingly.experiments.csv_files import DataError, check_columns, key_notes, named_columns, read_file
from sparingly.experiments.picture_files import existing_pictures, read_folder
from sparingly.experiments.table_encoding import encode_rows, encode_table, encode_target, read_table

Preprocessing = Literal["paper", "streaming", "encoded"]
Choice = Literal["paper", "streaming", "encoded", "auto"]
Unlabelled = Literal["drop", "keep"]
"""What becomes of a file's rows without a label."""
"""What a run may be given: one of these, or what suits its strategy."""
PREPROCESSINGS: tuple[str, ...] = get_args(Preprocessing)

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


@dataclass(frozen=True)
class Dataset:
    """Observations and their classes.

    Attributes
    ----------
    name
        The name, or the file's name.
    raw
        The features before any scaling, `[n, *shape]`; images are bytes.
    y
        The classes by number, `[n]`.
    classes
        The classes, sorted.
    preprocessing
        What `rows` does to the features. `streaming` is done by the stream, which knows the order.
    image
        Whether the observations are images.
    raw_test, y_test
        The data set's own test set, if it has one.
    schema
        What the columns of a file are, and so how an agent would read its rows: `Agent(schema=data.schema)`.
    texts
        The texts that `raw` encodes, if the observations are texts.
    answers
        What experts other than the truth have said: by name, `[n]` of class numbers, -1 where one gave no answer.
    notes
        How a file was read where that is not obvious, and what looks wrong in it.
    unlabelled
        The features of a file's rows without a label, if they are kept: they only serve to scale the features.
    """

    name: str
    raw: NDArray[Any]
    y: NDArray[np.int64]
    classes: tuple[str, ...]
    preprocessing: Preprocessing = "paper"
    image: bool = False
    raw_test: NDArray[Any] | None = None
    y_test: NDArray[np.int64] | None = None
    schema: RowSchema | None = None
    texts: tuple[str, ...] | None = None
    answers: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unlabelled: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.y)

    def rows(self, index: NDArray[np.int64] | slice, *, test: bool = False) -> NDArray[np.float32]:
        """The features of some observations, preprocessed, `[rows, *shape]`."""
        source = self.raw_test if test else self.raw
        if source is None:
            raise DataError(f"{self.name} has no test set of its own")
        rows = np.asarray(source[index])
        return _paper(self.name, rows, self.image) if self.preprocessing == "paper" else rows.astype(np.float32)

    @cached_property
    def X(self) -> NDArray[np.float32]:
        """All features, preprocessed, `[n, *shape]`."""
        return self.rows(slice(None))

    @cached_property
    def X_test(self) -> NDArray[np.float32] | None:
        """The data set's own test set, preprocessed."""
        return None if self.raw_test is None else self.rows(slice(None), test=True)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one observation, after preprocessing."""
        return self.rows(slice(0, 1)).shape[1:]

    @property
    def n_features(self) -> int:
        return int(np.prod(self.shape))

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    def renumbered(self, numbers: NDArray[np.int64]) -> Dataset:
        """The same with other numbers for its classes: class i becomes class `numbers[i]`.

        >>> digits = load("digits")
        >>> turned = digits.renumbered(np.arange(10)[::-1])
        >>> digits.classes[digits.y[3]], turned.classes[turned.y[3]], turned.y[3] == 9 - digits.y[3]
        ('3', '3', np.True_)
        """
        classes = tuple(self.classes[i] for i in np.argsort(numbers))
        answers = {name: np.where(said < 0, said, numbers[said]) for name, said in self.answers.items()}
        y_test = None if self.y_test is None else numbers[self.y_test]
        return replace(self, y=numbers[self.y], y_test=y_test, classes=classes, answers=answers)


def load(
    name: str | Path,
    preprocessing: Preprocessing = "paper",
    *,
    flat: bool = True,
    target: str | None = None,
    drop: tuple[str, ...] = (),
    text: tuple[str, ...] = (),
    encoder: str | None = None,
    csv: CsvFormat | None = None,
    missing: tuple[str, ...] = (),
    unlabelled: Unlabelled = "drop",
) -> Dataset:
    """A data set by name, or from a CSV or Parquet file.

    Parameters
    ----------
    name
        One of `names()`, or a path: of a CSV or Parquet file, or of a folder of pictures with one subfolder a class.
    preprocessing
        `paper`: as in the paper's experiments: rows of length 1, a missing number is -1; images shifted and scaled by
        fixed numbers. `streaming`: running standardisation that never looks ahead, done by the stream.
        `encoded`: categories one-hot, nothing scaled, for a strategy that scales by itself. But for `paper`, the rows
        of a file are read by a schema, as an agent reads them (`Dataset.schema`).
    flat
        Images as vectors; otherwise as channels, height, width.
    target, drop
        For a file: the column of the class, and columns to leave out.
    text
        For a file: columns that are texts, whatever they look like.
    encoder
        What turns texts into numbers: `static`, `hashing`, a Hugging Face model; `static` if it is installed.
    csv, missing
        For a CSV file: how it is written, where that should not be found out, and words that stand for a gap.
    unlabelled
        Of a file's rows without a label: `drop` leaves them out, `keep` scales the features by them, too.

    Examples
    --------
    >>> digits = load("digits")
    >>> digits.X.shape, digits.n_classes
    ((1797, 64), 10)
    >>> load("digit")
    Traceback (most recent call last):
        ...
    sparingly.experiments.csv_files.DataError: there is no data set 'digit'; did you mean digits?
    """
    if preprocessing not in PREPROCESSINGS:
        raise DataError(f"there is no preprocessing {preprocessing!r}: it is one of {', '.join(PREPROCESSINGS)}")
    if str(name) in _SOURCES:
        dataset = _encoded(_source(str(name)), encoder)
    elif Path(name).suffix in (".csv", ".parquet", ".pq") or Path(name).is_file():
        if target is None:
            raise DataError(f"{name} needs a target: the name of the column that holds the class")
        if unlabelled == "keep" and preprocessing == "paper":
            raise DataError("rows without a label scale nothing with the preprocessing paper: leave unlabelled out")
        dataset = _file_source(Path(name), preprocessing, target, drop, text, encoder, csv, missing, unlabelled)
    elif Path(name).is_dir():
        pictures, y, classes, notes = read_folder(Path(name))
        dataset = Dataset(Path(name).resolve().name, pictures, y, classes, image=True, notes=notes)
    else:
        near = difflib.get_close_matches(str(name), names(), n=3, cutoff=0.6)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names())}"
        raise DataError(f"there is no data set {str(name)!r}; {hint}")
    dataset = replace(dataset, preprocessing=preprocessing)
    return _flattened(dataset) if flat else dataset


def known_rows(
    dataset: Dataset,
    path: str | Path,
    target: str,
    *,
    encoder: str | None = None,
    csv: CsvFormat | None = None,
    missing: tuple[str, ...] = (),
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Rows of another file with the columns and classes of this data set, and their class numbers."""
    if dataset.schema is None:
        raise DataError(f"{path} cannot be known before {dataset.name}, which is not a file")
    frame = read_file(path, target, csv=csv, missing=missing).frame
    columns = table_columns(frame)
    labels = frame[target].astype(str).tolist()
    places = {name: number for number, name in enumerate(dataset.classes)}
    for label in labels:
        if label not in places:
            raise DataError(f"{path}: there is no class {label!r} in {dataset.name}")
    try:
        check_columns(frame, tuple(dataset.schema.fields))
        texts = text_encoder(encoder) if dataset.schema.has_texts else None
        X = dataset.schema.encode_columns(columns, texts)
    except (DataError, EncodingError) as error:
        raise DataError(f"{path}: {str(error).replace('field', 'column', 1)}") from error
    return X, np.array([places[label] for label in labels], dtype=np.int64)


def suited(strategy: Any) -> Preprocessing:
    """What suits a strategy: features as they are if it scales by itself, else standardised on the way."""
    return "encoded" if getattr(strategy, "scales", False) else "streaming"


def from_arrays(
    X: ArrayLike, y: ArrayLike, *, name: str = "arrays", preprocessing: Preprocessing = "encoded"
) -> Dataset:
    """A data set from arrays: `X [n, *shape]` of numbers (nan: missing), `y [n]` of classes.

    >>> from_arrays([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]], ["a", "b", "a", "b"]).classes
    ('a', 'b')
    """
    features = np.asarray(X, dtype=np.float32)
    labels, classes = encode_target(y, "y")
    if features.ndim < 2 or len(features) != len(labels):
        raise DataError(f"X has shape {features.shape} and y has {len(labels)} rows: they must go together")
    if np.isinf(features).any():
        raise DataError(f"X is infinite in row {int(np.argwhere(np.isinf(features))[0][0])}")
    return Dataset(name, features, labels, classes, preprocessing)


def names() -> tuple[str, ...]:
    """The data sets that `load` knows by name."""
    return tuple(_SOURCES)


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


def _paper(name: str, rows: NDArray[Any], image: bool) -> NDArray[np.float32]:
    if image:
        mean, deviation = (0.1307, 0.3081) if name.startswith("mnist") else (0.5, 0.5)
        return ((rows.astype(np.float32) / np.float32(255) - np.float32(mean)) / np.float32(deviation)).astype(
            np.float32
        )
    if name == "covertype":
        rows = _covertype_of_openml(rows)
    rows = np.where(np.isnan(rows), np.float32(-1), rows).astype(np.float64)
    length = np.sqrt((rows**2).sum(axis=tuple(range(1, rows.ndim)), keepdims=True))
    return (rows / np.where(length > 0, length, 1)).astype(np.float32)


def _covertype_of_openml(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Version 3 on OpenML: ten numbers scaled to [0, 1], 44 nominal columns that one-hot coding doubles to 88."""
    low, high = np.array(openml.COVERTYPE_RANGES, dtype=np.float64).T
    scaled = ((rows[:, :10].astype(np.float64) - low) / (high - low)).round(6)
    nominal = rows[:, 10:].astype(np.float64)
    return np.concatenate([scaled, np.stack([1 - nominal, nominal], axis=2).reshape(len(rows), -1)], axis=1)


def _flattened(dataset: Dataset) -> Dataset:
    if dataset.raw.ndim == 2:
        return dataset
    test = None if dataset.raw_test is None else dataset.raw_test.reshape(len(dataset.raw_test), -1)
    return replace(dataset, raw=dataset.raw.reshape(len(dataset.raw), -1), raw_test=test)


# where each data set comes from


def _file_source(
    path: Path,
    preprocessing: Preprocessing,
    target: str,
    drop: tuple[str, ...],
    text: tuple[str, ...],
    encoder: str | None,
    csv: CsvFormat | None,
    missing: tuple[str, ...],
    unlabelled: Unlabelled,
) -> Dataset:
    table = read_file(path, target, csv=csv, missing=missing, keep_unlabelled=unlabelled == "keep")
    frame, left_out = existing_pictures(table.frame, path.parent, target)
    table = replace(table, frame=frame, notes=(*table.notes, *left_out))
    without = None if table.unlabelled is None else existing_pictures(table.unlabelled, path.parent, target)[0]
    rows = encode_rows(table.frame, target, drop, text=text, encoder=encoder, unlabelled=without)
    assert rows.schema is not None
    if preprocessing == "paper" and not rows.schema.has_media:
        rows = encode_table(table.frame, target, drop)
    left = table.frame.drop(columns=[target, *named_columns(drop, table.frame)])
    notes = (*table.notes, *key_notes(left))
    told: dict[str, Any] = {"schema": rows.schema, "notes": notes, "unlabelled": rows.unlabelled}
    return Dataset(path.stem, rows.X, rows.y, rows.classes, **told)


@lru_cache
def _source(name: str) -> Dataset:
    return _SOURCES[name](name)


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
    digits = _source("mnist")
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
    whole = _source("clinc150")
    assert whole.texts is not None
    kept = np.flatnonzero(whole.y != whole.classes.index("oos"))
    y, places = encode_target(np.array(whole.classes)[whole.y[kept]])
    return replace(
        whole, name=name, raw=whole.raw[kept], y=y, classes=places, texts=tuple(whole.texts[i] for i in kept)
    )


def _encoded(dataset: Dataset, encoder: str | None) -> Dataset:
    """The data set with its texts as numbers."""
    if dataset.texts is None:
        return dataset
    try:
        return replace(dataset, raw=encoded_texts(dataset.texts, text_encoder(encoder)))
    except EncodingError as error:
        raise DataError(str(error)) from error


def _key(path: Path) -> str:
    return f"{path.stem}-{SHA256[path.name][:12]}-1"


_SOURCES: dict[str, Callable[[str], Dataset]] = {
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
