"""A schema from what there is: the first rows, a table, or what the user states."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sparingly.encoders.encoding_errors import EncodingError, briefly
from sparingly.encoders.fields import (
    KINDS,
    ROOM,
    AnyField,
    BooleanField,
    CategoryField,
    DateField,
    NumberField,
    PictureField,
    RowField,
    TextField,
    days_of,
    missing,
    reads_as_date,
    reads_as_number,
    word_of,
)
from sparingly.encoders.pictures import is_picture, read_picture, shape_of
from sparingly.encoders.row_schema import TEXT, RowSchema
from sparingly.encoders.text_encoders import TextEncoder, TextFunction, text_encoder

EncoderChoice = str | TextFunction | TextEncoder | None
MANY_ROWS = 20
"""From so many rows on, the values of a field tell words from texts; before, one value and the field's name must."""
LETTERS = 0.3
"""The least share of letters in texts: telephone and account numbers in groups are none."""
MOST_CATEGORIES = 100
LARGEST_ROOM = 10_000
SPARE = 4
"""Columns for words that appear later, if the schema was learned from many rows."""
_TEXT_NAMES = ("text", "message", "body", "comment", "review", "description", "content", "subject", "title", "mail")


def learn_schema(
    rows: Sequence[Any], *, encoder: EncoderChoice = None, text: Sequence[str] = (), category: Sequence[str] = ()
) -> RowSchema:
    """The schema that fits these rows.

    Parameters
    ----------
    rows
        Mappings with the same keys, or texts.
    encoder
        For texts: a name, or a function of a list of strings.
    text, category
        Fields that are texts or words, whatever they look like.

    Examples
    --------
    >>> learn_schema([{"paid": True, "on": "2024-05-31"}, {"paid": False, "on": "2024-06-01"}])
    RowSchema(paid: boolean, on: date; 10 numbers a row)
    >>> learn_schema(["where is my card?"], encoder="hashing")
    RowSchema(text: text; texts by hashing (1, 512 numbers a text); 512 numbers a row)
    """
    if not len(rows):
        raise EncodingError("a schema cannot be learned from no rows")
    if all(isinstance(row, str | bytes | bytearray) for row in rows):
        return _made({TEXT: TextField(marks_gaps=False)}, encoder)
    first = rows[0]
    if not isinstance(first, Mapping):
        raise EncodingError(f"an observation is {briefly(first)}: give fields by name, or a text")
    for row in rows:
        if not isinstance(row, Mapping) or set(row) != set(first):
            raise EncodingError(f"the row {briefly(row)} does not have the fields of the first: {', '.join(first)}")
    columns = {str(name): [row[name] for row in rows] for name in first}
    return learn_columns(columns, encoder=encoder, text=text, category=category)


def learn_columns(
    columns: Mapping[str, Sequence[Any]],
    *,
    encoder: EncoderChoice = None,
    text: Sequence[str] = (),
    category: Sequence[str] = (),
) -> RowSchema:
    """The schema of a table that is given column by column; the arguments are those of `learn_schema`."""
    if not columns:
        raise EncodingError("a row must have at least one field")
    for name in (*text, *category):
        if name not in columns:
            raise EncodingError(f"field {name!r} is not there: the fields are {', '.join(columns)}")
    fields = {
        name: TextField() if name in text else _words(values) if name in category else field_of(name, values)
        for name, values in columns.items()
    }
    whole = not any(missing(values).any() for values in columns.values())
    alone = len(fields) == 1 and isinstance(next(iter(fields.values())), TextField)
    if whole and alone:
        fields = {name: TextField(marks_gaps=False) for name in fields}
    elif whole and not text and not category and all(map(_are_plain_numbers, columns.values())):
        fields = {name: NumberField(False, _median(_floats(name, values))) for name, values in columns.items()}
    return _made(fields, encoder)


def stated_schema(given: Any, *, encoder: EncoderChoice = None) -> RowSchema:
    """A schema as a user states it: kinds by name, a DataFrame, its dtypes, a TOML file, or a schema.

    >>> stated_schema({"age": "number", "job": ["clerk", "smith"], "since": "date"})
    RowSchema(age: number, job: category (2 of 6 known), since: date; 18 numbers a row)
    >>> stated_schema({"age": "numeric"})
    Traceback (most recent call last):
    ...
    sparingly.encoders.encoding_errors.EncodingError: field 'age' is 'numeric': it must be one of number, boolean, ...
    """
    if isinstance(given, RowSchema):
        return given
    if isinstance(given, str | os.PathLike):
        return _from_toml(Path(given), encoder)
    if hasattr(given, "columns") and hasattr(given, "dtypes"):
        return learn_columns(table_columns(given), encoder=encoder) if len(given) else _stated(given.dtypes, encoder)
    return _stated(given, encoder)


def table_columns(frame: Any) -> dict[str, Any]:
    """The columns of a pandas DataFrame as arrays: numbers as they are, everything else as objects."""
    found = {}
    for name in frame.columns:
        values = frame[name].to_numpy()
        plain = isinstance(values, np.ndarray) and values.dtype.kind in "biuf"
        found[str(name)] = values if plain else frame[name].astype(object).to_numpy()
    return found


def field_of(name: str, values: Sequence[Any]) -> RowField:
    """The field that these values of a column suggest."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        return NumberField(neutral=_median(values[~missing(values)]))
    known = [value for value, is_absent in zip(values, missing(values), strict=True) if not is_absent]
    if not known:
        return AnyField()
    if all(isinstance(value, bool | np.bool_) for value in known):
        return BooleanField()
    if all(map(reads_as_number, known)):
        return NumberField(neutral=_median(_floats(name, known)))
    if all(map(reads_as_date, known)):
        return DateField(neutral=float(np.median([days_of(name, value) for value in known])))
    if all(map(_is_picture, known)):
        return PictureField(shape=shape_of(read_picture(known[0])))
    if not all(isinstance(value, str) for value in known):
        return AnyField().grown(known)
    return TextField() if _looks_like_text(name, known, len(values)) else _words(values)


def _is_picture(value: Any) -> bool:
    """A path as such; a string is a word or a text, for it may come from somebody else."""
    return not isinstance(value, str) and is_picture(value)


def is_crowded(distinct: int, rows: int) -> bool:
    """Whether a column has too many different words for each to be a category."""
    return distinct > MOST_CATEGORIES or (distinct > 10 and distinct > rows / 2)


def _are_plain_numbers(values: Sequence[Any]) -> bool:
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values.dtype.kind in "biuf"
    return all(reads_as_number(value) and not isinstance(value, str) for value in values)


def _looks_like_text(name: str, known: Sequence[str], rows: int) -> bool:
    words = float(np.mean([len(value.split()) for value in known]))
    characters = float(np.mean([len(value) for value in known]))
    if rows < MANY_ROWS and any(word in name.lower() for word in _TEXT_NAMES):
        return True
    some = "".join(value[:200] for value in known[:1000])
    if sum(map(str.isalpha, some)) < LETTERS * len(some):
        return False
    if rows < MANY_ROWS:
        return words >= 4 or characters >= 40
    return is_crowded(len(set(known)), rows) and (words >= 3 or characters >= 30)


def _words(values: Sequence[Any]) -> CategoryField:
    found = {word_of("", value) for value, is_absent in zip(values, missing(values), strict=True) if not is_absent}
    room = len(found) + SPARE if len(values) >= MANY_ROWS else max(ROOM, 2 * len(found))
    kept = sorted(found)[:MOST_CATEGORIES] if len(found) > MOST_CATEGORIES else sorted(found)
    return CategoryField(values=tuple(kept), room=max(len(kept), min(room, MOST_CATEGORIES + SPARE)))


def _median(numbers: Any) -> float:
    finite = np.asarray(numbers, dtype=np.float64)
    finite = finite[np.isfinite(finite)]
    return float(np.median(finite)) if len(finite) else 0.0


def _floats(name: str, known: Sequence[Any]) -> list[float]:
    try:
        return [float(value) for value in known]
    except OverflowError:
        raise EncodingError(f"field {name!r} has a number that is too large") from None


def _made(fields: Mapping[str, RowField], encoder: EncoderChoice) -> RowSchema:
    if not any(isinstance(field, TextField) for field in fields.values()):
        return RowSchema(dict(fields))
    chosen = text_encoder(encoder)
    sized = {n: replace(f, size=chosen.width) if isinstance(f, TextField) else f for n, f in fields.items()}
    return RowSchema(sized, chosen.identity)


def _from_toml(path: Path, encoder: EncoderChoice) -> RowSchema:
    try:
        stated = tomllib.loads(path.read_text())
    except OSError as error:
        raise EncodingError(f"the schema {path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise EncodingError(f"the schema {path} is not TOML: {error}") from None
    fields = stated.get("fields", {name: kind for name, kind in stated.items() if name != "encoder"})
    return _stated(fields, encoder if encoder is not None else stated.get("encoder"))


def _stated(given: Any, encoder: EncoderChoice) -> RowSchema:
    items = given.items() if hasattr(given, "items") else None
    if items is None:
        raise EncodingError(f"schema is {briefly(given)}: give kinds by name, a DataFrame, its dtypes or a TOML file")
    fields = {str(name): _stated_field(str(name), kind) for name, kind in items}
    if not fields:
        raise EncodingError("a schema must have at least one field")
    if len(fields) == 1 and isinstance(next(iter(fields.values())), TextField):
        fields = {name: TextField(marks_gaps=False) for name in fields}
    return _made(fields, encoder)


def _with_options(name: str, field: RowField, given: Mapping[str, Any]) -> RowField:
    """A field with the options that a user states, each checked."""
    fits: dict[str, Callable[[Any], bool]] = {
        "marks_gaps": lambda value: isinstance(value, bool),
        "neutral": lambda value: isinstance(value, int | float) and bool(np.isfinite(value)),
        "values": lambda value: isinstance(value, list | tuple) and all(isinstance(word, str) for word in value),
        "room": lambda value: isinstance(value, int) and 1 <= value <= LARGEST_ROOM,
    }
    options = {key: value for key, value in given.items() if key != "kind"}
    for key, value in options.items():
        if key not in fits or not hasattr(field, key):
            raise EncodingError(f"field {name!r} has the option {key!r}, which a {field.kind} does not have")
        if not fits[key](value):
            raise EncodingError(f"field {name!r} has {key} {briefly(value)}: that is not possible")
    if "values" in options:
        options["values"] = tuple(dict.fromkeys(options["values"]))
        options.setdefault("room", len(options["values"]) + SPARE)
    made = replace(field, **options)
    if isinstance(made, CategoryField | AnyField) and len(made.values) > made.room:
        raise EncodingError(f"field {name!r} has {len(made.values)} words and room for {made.room}")
    return made


def _stated_field(name: str, kind: Any) -> RowField:
    if isinstance(kind, str) and kind in KINDS:
        return KINDS[kind]()
    if isinstance(kind, Mapping):
        return _with_options(name, _stated_field(name, kind.get("kind")), kind)
    if isinstance(kind, list | tuple):
        words = tuple(dict.fromkeys(word_of(name, word) for word in kind))
        return CategoryField(values=words, room=len(words) + SPARE)
    if hasattr(kind, "categories") and kind.categories is not None:
        return _stated_field(name, list(kind.categories))
    made_of: dict[str, Callable[[], RowField]] = {
        "i": NumberField, "u": NumberField, "f": NumberField, "b": BooleanField, "M": DateField, "O": CategoryField,
    }  # fmt: skip
    if getattr(kind, "kind", None) in made_of:
        return made_of[kind.kind]()
    raise EncodingError(f"field {name!r} is {briefly(kind)}: it must be one of {', '.join(KINDS)}, or a list of words")
