"""Columns of any kind as numbers: a table becomes a matrix, its target becomes class numbers."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.encoders import EncodingError, RowSchema, learn_columns, text_encoder
from sparingly.encoders.encoding_errors import briefly
from sparingly.encoders.fields import CategoryField, RowField, missing, reads_as_number
from sparingly.encoders.learned_schema import MOST_CATEGORIES, is_crowded, table_columns
from sparingly.experiments.array_cache import cached
from sparingly.experiments.csv_files import DataError, check_columns, named_columns, read_file

ALMOST_ALL = 0.9
FEW = 10
"""A column of more distinct values, almost all of them numbers, is meant to be a number."""
_NAMED = 5
"""An error names so many classes at most."""


@dataclass(frozen=True)
class Encoded:
    """A table in numbers.

    Attributes
    ----------
    X
        `[rows, columns]`, the numbers first, then a 0/1 column for each category; a missing number is nan,
        a missing category has 0 in all of its columns.
    y
        `[rows]`, class numbers.
    classes
        The classes by number, sorted.
    columns
        The names of the columns of `X`.
    schema
        What the columns of the table are, if they were read as an agent reads its rows.
    unlabelled
        `[rows, columns]` of the rows that have no label, if there are such.
    """

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    classes: tuple[str, ...]
    columns: tuple[str, ...]
    schema: RowSchema | None = None
    unlabelled: NDArray[np.float32] | None = None


def read_table(path: str | Path, target: str, drop: tuple[str, ...] = ()) -> Encoded:
    """A CSV or Parquet file in numbers, one-hot coded as in the paper's experiments."""
    return encode_table(read_file(path, target).frame, target, drop)


def encode_rows(
    frame: Any,
    target: str,
    drop: tuple[str, ...] = (),
    *,
    text: tuple[str, ...] = (),
    encoder: str | None = None,
    unlabelled: Any = None,
) -> Encoded:
    """A pandas frame in numbers by the schema that fits it: words, missing values, dates and texts as in an agent.

    The encoding is that of `sparingly.encoders`; the rows of a table of plain numbers are these numbers. `unlabelled`
    is a frame of more rows, whose target is not looked at.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [30, None, 50, 41], "job": ["a", "b", None, "a"], "ok": list("nyny")})
    >>> encoded = encode_rows(frame, "ok")
    >>> encoded.schema
    RowSchema(age: number, job: category (2 of 32 known); 36 numbers a row)
    >>> encoded.X[1, :2].tolist()
    [41.0, 1.0]
    """
    import pandas as pd

    check_columns(frame, (target,))
    drop, text = named_columns(drop, frame), named_columns(text, frame)
    y, classes = encode_target(frame[target].to_numpy(), target)
    features = frame if unlabelled is None else pd.concat([frame, unlabelled])
    features = features.drop(columns=[target, *drop])
    if not len(features.columns):
        raise DataError(f"no column is left beside the target {target!r}")
    columns = table_columns(features)
    try:
        schema = learn_columns(columns, encoder=encoder, text=text)
        _check_fields(schema, columns, _row_numbers(features))
        if not schema.has_media:
            return _encoded(schema.encode_columns(columns), y, classes, schema)
        content = pd.util.hash_pandas_object(features.astype(str), index=False).to_numpy().tobytes()
        key = hashlib.blake2b(content + json.dumps(schema.to_dict()).encode(), digest_size=12).hexdigest()
        texts = text_encoder(encoder) if schema.has_texts else None
        X = cached(f"rows-{key}", lambda: {"X": schema.encode_columns(columns, texts)})["X"]
    except EncodingError as error:
        raise DataError(str(error).replace("field", "column", 1)) from error
    return _encoded(X, y, classes, schema)


def _encoded(X: NDArray[np.float32], y: NDArray[np.int64], classes: tuple[str, ...], schema: RowSchema) -> Encoded:
    """The rows with a label, and those after them that have none."""
    more = X[len(y) :] if len(X) > len(y) else None
    return Encoded(X[: len(y)], y, classes, schema.columns, schema, more)


def _row_numbers(frame: Any) -> NDArray[np.int64]:
    """The rows as a file counts them, from 1; rows that were left out are counted too."""
    index = frame.index.to_numpy()
    return index + 1 if index.dtype.kind == "i" else np.arange(1, len(frame) + 1)


def _check_fields(schema: RowSchema, columns: Mapping[str, Sequence[Any]], rows: Any) -> None:
    """Refuse all columns that cannot be used as they are, each with the cell that spoils it and what helps."""
    found: dict[str, str] = {}
    for name, field in schema.fields.items():
        problem = _spoiled(name, field, columns[name], rows)
        if problem is not None:
            found[name] = problem
    if len(found) == 1:
        raise DataError(next(iter(found.values())))
    if found:
        head = f"{len(found)} columns cannot be used as they are; --drop {','.join(found)} leaves them out"
        raise DataError("\n  ".join([head, *found.values()]))


def _spoiled(name: str, field: RowField, values: Sequence[Any], rows: Any) -> str | None:
    """What keeps a column from being used: a word among numbers, words that are almost all different, an infinity."""
    if isinstance(field, CategoryField):
        known = [value for value, is_absent in zip(values, missing(values), strict=True) if not is_absent]
        numbers = [reads_as_number(value) for value in known]
        if len(known) > sum(numbers) >= ALMOST_ALL * len(known) and len(set(known)) > FEW:
            odd = known[numbers.index(False)]
            row = rows[[isinstance(value, str) and value == odd for value in values].index(True)]
            return (
                f"column {name!r} is {briefly(odd)} in row {row} and a number in {sum(numbers)} others: "
                f"read this as a missing value (--missing {shlex.quote(str(odd))}), "
                f"or leave the column out (--drop {name})"
            )
        if is_crowded(len(set(known)), len(values)):
            return (
                f"column {name!r} has {len(set(known))} distinct values in {len(values)} rows, such as "
                f"{str(known[0])[:30]!r}: leave it out (--drop {name}), or read it as text (--text {name})"
            )
    if isinstance(values, np.ndarray) and values.dtype.kind == "f" and np.isinf(values).any():
        row = rows[int(np.isinf(values).argmax())]
        return f"column {name!r} is infinite in row {row}: leave it out (--drop {name})"
    return None


def encode_table(frame: Any, target: str, drop: tuple[str, ...] = ()) -> Encoded:
    """A pandas frame in numbers, one-hot coded.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [30, None, 50, 41], "job": ["a", "b", None, "a"], "ok": list("nyny")})
    >>> encoded = encode_table(frame, "ok")
    >>> encoded.columns, encoded.classes
    (('age', 'job=a', 'job=b'), ('n', 'y'))
    >>> encoded.X.tolist()
    [[30.0, 1.0, 0.0], [nan, 0.0, 1.0], [50.0, 0.0, 0.0], [41.0, 1.0, 0.0]]
    >>> encoded.y.tolist()
    [0, 1, 0, 1]
    """
    check_columns(frame, (target,))
    drop = named_columns(drop, frame)
    y, classes = encode_target(frame[target].to_numpy(), target)
    features = frame.drop(columns=[target, *drop])
    numbers, words = _kinds(features)
    if not numbers and not words:
        raise DataError(f"no column is left beside the target {target!r}")
    parts = [_numbers(features[column], column) for column in numbers]
    names = list(map(str, numbers))
    for column in words:
        values = features[column].astype("category")
        codes = values.cat.codes.to_numpy()
        parts.extend((codes == code).astype(np.float32) for code in range(len(values.cat.categories)))
        names.extend(f"{column}={category}" for category in values.cat.categories)
    return Encoded(np.stack(parts, axis=1), y, classes, tuple(names))


def encode_target(values: Any, name: str = "target") -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Class numbers, and the classes they stand for, sorted.

    >>> encode_target(["dog", "cat", "dog", "cat"])
    (array([1, 0, 1, 0]), ('cat', 'dog'))
    """
    import pandas as pd

    values = pd.Series(np.asarray(values))
    missing = values.isna()
    if missing.any():
        raise DataError(f"{name} is missing in row {int(missing.to_numpy().argmax())}: every row needs its class")
    kinds, y, counts = np.unique(values.to_numpy(), return_inverse=True, return_counts=True)
    if len(kinds) < 2:
        raise DataError(f"{name} is {str(kinds[0])!r} in every row: there is nothing to tell apart")
    if len(kinds) > MOST_CATEGORIES and len(kinds) > len(y) / 10:
        raise DataError(f"{name} has {len(kinds)} distinct values in {len(y)} rows: a target must be a class")
    once = [repr(str(kind)) for kind in kinds[counts < 2]]
    if once:
        which = f"class {once[0]} of {name} is" if len(once) == 1 else f"classes {_some(once)} of {name} are"
        raise DataError(
            f"{which} seen once, and every class needs two rows: leave such rows out, or join them to another class"
        )
    return y.astype(np.int64), tuple(map(str, kinds))


def _kinds(features: Any) -> tuple[list[Any], list[Any]]:
    """Which columns hold numbers, which hold words."""
    import pandas as pd

    numbers, words = [], []
    for column in features.columns:
        kind = features[column].dtype
        if pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind):
            numbers.append(column)
        else:
            _check_words(features[column], column)
            words.append(column)
    return numbers, words


def _check_words(values: Any, column: Any) -> None:
    distinct = values.nunique()
    if is_crowded(distinct, len(values)):
        raise DataError(
            f"column {column!r} is text ({distinct} distinct values in {len(values)} rows, such as "
            f"{str(values.dropna().iloc[0])[:30]!r}): drop it or turn it into numbers"
        )


def _numbers(values: Any, column: Any) -> NDArray[np.float32]:
    numbers: NDArray[np.float32] = values.to_numpy(dtype=np.float32, na_value=np.nan)
    if np.isinf(numbers).any():
        raise DataError(f"column {column!r} is infinite in row {int(np.isinf(numbers).argmax())}")
    return numbers


def _some(names: list[str]) -> str:
    """The first names of a list, and how many more there are."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
