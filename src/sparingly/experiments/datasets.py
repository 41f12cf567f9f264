"""Data sets by name, from a file, from a folder of pictures, or from arrays.

Those with a name are in `dataset_sources`; texts are encoded here, by a text encoder.
"""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sparingly.encoders import EncodingError, text_encoder
from sparingly.encoders.csv_format import CsvFormat
from sparingly.encoders.learned_schema import table_columns
from sparingly.experiments.array_cache import encoded_texts
from sparingly.experiments.csv_files import DataError, check_columns, key_notes, named_columns, read_file
from sparingly.experiments.dataset import PREPROCESSINGS, Preprocessing
from sparingly.experiments.dataset import Dataset as Dataset
from sparingly.experiments.dataset import from_arrays as from_arrays
from sparingly.experiments.dataset_sources import SOURCES, named_dataset
from sparingly.experiments.picture_files import existing_pictures, read_folder
from sparingly.experiments.table_encoding import encode_rows, encode_table

Choice = Literal["paper", "streaming", "encoded", "auto"]
"""What a run may be given: a preprocessing, or `auto` for the one that suits its strategy."""
Unlabelled = Literal["drop", "keep"]
"""What becomes of a file's rows without a label."""


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
        What turns texts into numbers: `minilm`, `static`, `hashing`, a Hugging Face model; the first that is installed.
    csv, missing
        For a CSV file: how it is written, where that should not be found out, and words that stand for a missing value.
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
    if str(name) in SOURCES:
        dataset = _encoded(named_dataset(str(name)), encoder)
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
    return dataset.flattened if flat else dataset


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


def names() -> tuple[str, ...]:
    """The data sets that `load` knows by name."""
    return tuple(SOURCES)


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
    described: dict[str, Any] = {"schema": rows.schema, "notes": notes, "unlabelled": rows.unlabelled}
    return Dataset(path.stem, rows.X, rows.y, rows.classes, **described)


def _encoded(dataset: Dataset, encoder: str | None) -> Dataset:
    """The data set with its texts as numbers."""
    if dataset.texts is None:
        return dataset
    try:
        return replace(dataset, raw=encoded_texts(dataset.texts, text_encoder(encoder)))
    except EncodingError as error:
        raise DataError(str(error)) from error
