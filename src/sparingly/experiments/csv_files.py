"""CSV and Parquet files as they come: how they are written is found out, and what looks wrong is said."""

from __future__ import annotations

import hashlib
import io
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sparingly.encoders import EncodingError
from sparingly.encoders.csv_format import CsvFormat, decimal_mark, plain_number
from sparingly.encoders.fields import reads_as_number

PARQUET = (".parquet", ".pq")
_COMMON = {"utf-8": "UTF-8", "utf-8-sig": "UTF-8"}


class DataError(ValueError):
    """Data that cannot be used; the message names the value."""


@dataclass(frozen=True)
class FileTable:
    """A file as a pandas frame, every row with a label, and what its reader should know.

    Attributes
    ----------
    frame
        The rows that have a label; its index counts the rows of the file from 0.
    notes
        How the file was read where that is not obvious, and what looks wrong: sentences, a doubt begins with
        "warning: ".
    unlabelled
        The rows that have none, if they were to be kept.
    """

    frame: Any
    notes: tuple[str, ...] = field(default=())
    unlabelled: Any = None


def file_hash(path: str | Path) -> str:
    """The first half of the sha256 of a file."""
    with Path(path).open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()[:32]


def read_file(
    path: str | Path,
    target: str,
    *,
    csv: CsvFormat | None = None,
    missing: tuple[str, ...] = (),
    keep_unlabelled: bool = False,
) -> FileTable:
    """A CSV or Parquet file as it comes; rows without a label are counted, and left out or kept apart.

    Parameters
    ----------
    target
        The column of the class.
    csv
        How a CSV file is written, as far as that is known.
    missing
        What stands for a missing value besides an empty cell, NA, null and the like.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path} is not a file")
    try:
        frame, notes = _read_parquet(path) if path.suffix in PARQUET else _read_csv(path, csv or CsvFormat(), missing)
    except (DataError, EncodingError) as error:
        raise DataError(f"{path}: {error}") from error
    except Exception as error:
        reason = str(error).splitlines()[0].removeprefix("Error tokenizing data. C error: ")
        raise DataError(f"{path} cannot be read: {reason}") from error
    check_columns(frame, (target,))
    if not len(frame):
        raise DataError(f"{path} has a header and no rows")
    labelled, more = _labelled(frame, target, keep_unlabelled)
    without = frame.drop(index=labelled.index) if keep_unlabelled and len(labelled) < len(frame) else None
    return FileTable(labelled, (*notes, *more), without)


def check_columns(frame: Any, wanted: tuple[str, ...]) -> None:
    """Refuse a column that is not in a table."""
    for column in wanted:
        if column not in frame.columns:
            shown = [str(name) for name in frame.columns][:12]
            more = ", ..." if len(frame.columns) > len(shown) else ""
            raise DataError(f"column {column!r} is not in the table; its columns are {', '.join(shown)}{more}")


def named_columns(given: tuple[str, ...], frame: Any) -> tuple[str, ...]:
    """Columns as a user lists them: one by one, or several with commas between.

    >>> import pandas as pd
    >>> named_columns(("id,when", "a,b"), pd.DataFrame(columns=["id", "when", "a,b"]))
    ('id', 'when', 'a,b')
    """
    parts = [[text] if text in frame.columns else [part.strip() for part in text.split(",")] for text in given]
    named = tuple(dict.fromkeys(name for part in parts for name in part if name))
    check_columns(frame, named)
    return named


def key_notes(features: Any) -> list[str]:
    """Notes on columns that look like keys, whole numbers that only grow: they tell nothing about a row's class."""
    import pandas as pd

    keys = [
        str(name)
        for name in features.columns
        if pd.api.types.is_integer_dtype(features[name].dtype)
        and len(features) > 20
        and features[name].is_monotonic_increasing
        and features[name].is_unique
    ]
    if not keys:
        return []
    them = ("counts", "it") if len(keys) == 1 else ("count", "them")
    return [f"warning: {', '.join(keys)} {them[0]} the rows: leave {them[1]} out with --drop {','.join(keys)}"]


def _read_parquet(path: Path) -> tuple[Any, list[str]]:
    import pandas as pd

    return pd.read_parquet(path).reset_index(drop=True), []


def _read_csv(path: Path, stated: CsvFormat, missing: tuple[str, ...]) -> tuple[Any, list[str]]:
    import pandas as pd

    found, text = stated.read(path.read_bytes())
    if not text.strip():
        raise DataError("the file is empty")
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            frame = pd.read_csv(
                io.StringIO(text),
                sep=found.separator,
                quotechar=found.quote or '"',
                index_col=False,
                skipinitialspace=True,
                low_memory=False,
                na_values=list(missing),
            )
        except pd.errors.ParserWarning:
            raise DataError(
                "a line has more cells than the header: check the separator (--separator) and the quotes (--quote)"
            ) from None
    frame.columns = [str(name).strip() for name in frame.columns]
    nameless = [name for name in frame.columns if name.startswith("Unnamed: ") and frame[name].isna().all()]
    frame = frame.drop(columns=nameless)
    notes = [*_format_notes(stated, found), *_header_notes(frame)]
    return frame, notes + _read_decimals(frame, found)


def _format_notes(stated: CsvFormat, found: CsvFormat) -> list[str]:
    parts = []
    if stated.encoding is None and found.encoding not in _COMMON:
        parts.append(f"its characters are read as {found.encoding} (--encoding)")
    if stated.separator is None and found.separator != ",":
        parts.append(f"its cells are separated by {found.separator!r} (--separator)")
    if stated.quote is None and found.quote != '"':
        parts.append(f"its quotes are {found.quote} (--quote)")
    return [", ".join(parts)] if parts else []


def _header_notes(frame: Any) -> list[str]:
    """A first line of numbers, or of words that are in the rows too, is not a header."""
    names = list(frame.columns)
    odd = [name for name in names if reads_as_number(name) or (len(frame) and name in frame[name].to_numpy()[:1000])]
    if names and len(odd) >= max(1, len(names) / 2):
        return [f"warning: the first line looks like data, not like names of columns ({', '.join(names[:4])} ...)"]
    return []


def _read_decimals(frame: Any, found: CsvFormat) -> list[str]:
    """Turn columns of numbers with a comma into numbers, in place; say which."""
    import pandas as pd

    by_mark: dict[str, list[str]] = {}
    for name in frame.columns:
        if pd.api.types.is_numeric_dtype(frame[name]) or pd.api.types.is_bool_dtype(frame[name]):
            continue
        known = frame[name].dropna()
        cells = known.astype(str)
        mark = decimal_mark(cells, found.separator or ",")
        if mark is None or (found.decimal == "." and mark == ","):
            continue
        mark = found.decimal or mark
        frame[name] = pd.to_numeric(cells.map(lambda cell, mark=mark: plain_number(cell, mark))).reindex(frame.index)
        by_mark.setdefault(mark, []).append(name)
    said = {",": "decimal comma", ".": "comma between thousands"}
    return [f"numbers with a {said[mark]} in {', '.join(names)} (--decimal)" for mark, names in by_mark.items()]


def _labelled(frame: Any, target: str, keep_unlabelled: bool) -> tuple[Any, list[str]]:
    """The rows that have a label, spaces around labels removed."""
    import pandas as pd

    labels, notes = frame[target], []
    if pd.api.types.is_object_dtype(labels.dtype) or pd.api.types.is_string_dtype(labels.dtype):
        said = labels.map(lambda label: label.strip() if isinstance(label, str) else label)
        labels, notes = said.where(said != "", None), _label_notes(labels, said)
    without = labels.isna()
    if without.all():
        raise DataError(f"{target} is missing in every row")
    if without.any():
        became = (
            "only serve to scale the features" if keep_unlabelled else "are left out (--unlabelled keep scales by them)"
        )
        notes.append(f"{without.sum()} rows of {len(frame)} have no {target} and {became}")
        labels = labels[~without]
        if pd.api.types.is_float_dtype(labels.dtype) and (labels == labels.round()).all():
            labels = labels.astype(np.int64)
        frame = frame[~without]
    return frame.assign(**{target: labels}), notes


def _label_notes(labels: Any, said: Any) -> list[str]:
    """Classes that differ in spaces alone are taken for one; in capitals alone, for two."""
    counts = Counter(label for label in labels if isinstance(label, str))
    notes = []
    for label, n in counts.items():
        if label != label.strip() and label.strip():
            same = counts.get(label.strip(), 0)
            notes.append(
                f"warning: the class {label!r}, {n} times, is taken for {label.strip()!r}, {same} times: "
                "they differ in spaces alone"
            )
    words: dict[str, set[str]] = {}
    for label in {label for label in said if isinstance(label, str) and label}:
        words.setdefault(label.lower(), set()).add(label)
    for alike in words.values():
        if len(alike) > 1:
            notes.append(f"warning: the classes {' and '.join(map(repr, sorted(alike)))} differ in capitals alone")
    return notes
