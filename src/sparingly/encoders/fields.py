"""The kinds of fields that a row may have, and the numbers that each becomes.

Every field has a fixed width. One with `marks_gaps` ends in a column that is 1 where its value is missing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparingly.encoders.encoding_errors import EncodingError, briefly
from sparingly.encoders.pictures import SIDE, pixels, read_picture
from sparingly.encoders.text_encoders import TextEncoder, checked_text_of

Matrix = NDArray[np.float32]
ROOM = 32
"""Categories that get a column of their own if a field was learned from few rows."""
_EPOCH = datetime(2000, 1, 1)
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")


@dataclass(frozen=True)
class RowField:
    """What all fields have in common.

    Attributes
    ----------
    marks_gaps
        Whether a column says that the value is missing; without it, it only becomes the neutral value.
    """

    kind: ClassVar[str] = ""
    marks_gaps: bool = True

    @property
    def own_columns(self) -> tuple[str, ...]:
        """What each column stands for, without that which marks missing values."""
        raise NotImplementedError

    @property
    def width(self) -> int:
        return len(self.own_columns) + self.marks_gaps

    def encode(self, name: str, values: Sequence[Any], encoder: TextEncoder | None) -> Matrix:
        """The values as `[values, width]`."""
        absent = missing(values, blank=self.kind != TextField.kind)
        own = self._known(name, values, absent, encoder)
        return np.hstack([own, absent[:, None].astype(np.float32)]) if self.marks_gaps else own

    def _known(
        self, name: str, values: Sequence[Any], absent: NDArray[np.bool_], encoder: TextEncoder | None
    ) -> Matrix:
        raise NotImplementedError

    def grown(self, values: Sequence[Any]) -> RowField:
        """The field after it has seen these values; its width stays."""
        return self

    @property
    def described(self) -> str:
        return self.kind


@dataclass(frozen=True)
class NumberField(RowField):
    """A number, or a text that reads as one; a missing one becomes the neutral value."""

    kind: ClassVar[str] = "number"
    neutral: float = 0.0

    @property
    def own_columns(self) -> tuple[str, ...]:
        return ("",)

    def _known(self, name: str, values: Sequence[Any], absent: Any, encoder: TextEncoder | None) -> Matrix:
        if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
            numbers = values.astype(np.float64)
        else:
            numbers = np.array(
                [0.0 if is_absent else _number(name, v) for v, is_absent in zip(values, absent, strict=True)]
            )
        with np.errstate(over="ignore"):
            single: Matrix = np.where(absent, self.neutral, numbers).astype(np.float32)
        if not np.isfinite(single).all():
            row = int(np.isfinite(single).argmin())
            raise EncodingError(f"field {name!r} is {briefly(values[row])}: a number must be finite")
        return single[:, None]


@dataclass(frozen=True)
class BooleanField(RowField):
    """True or false, as 1 and 0; a missing value is 0."""

    kind: ClassVar[str] = "boolean"

    @property
    def own_columns(self) -> tuple[str, ...]:
        return ("",)

    def _known(self, name: str, values: Sequence[Any], absent: Any, encoder: TextEncoder | None) -> Matrix:
        said = [0.0 if is_absent else _truth(name, value) for value, is_absent in zip(values, absent, strict=True)]
        return np.array(said, dtype=np.float32).reshape(-1, 1)


@dataclass(frozen=True)
class DateField(RowField):
    """A date or a moment: days since 2000, and where it is in the year, the week and the day (sine and cosine)."""

    kind: ClassVar[str] = "date"
    neutral: float = 0.0

    @property
    def own_columns(self) -> tuple[str, ...]:
        turns = [f"{wave} of {turn}" for turn in ("year", "week", "day") for wave in ("sine", "cosine")]
        return ("days", *turns)

    def _known(self, name: str, values: Sequence[Any], absent: Any, encoder: TextEncoder | None) -> Matrix:
        days = np.array(
            [self.neutral if is_absent else days_of(name, v) for v, is_absent in zip(values, absent, strict=True)]
        )
        parts = [days]
        for turn in (365.2425, 7.0, 1.0):
            angle = 2 * np.pi * (days % turn) / turn
            parts += [np.where(absent, 0.0, np.sin(angle)), np.where(absent, 0.0, np.cos(angle))]
        return np.stack(parts, axis=1).astype(np.float32)


@dataclass(frozen=True)
class CategoryField(RowField):
    """A word out of some: each of the first `room` words gets a column of its own, any later one shares "other".

    Attributes
    ----------
    values
        The words that have a column by now, in the order of their columns.
    room
        How many can have one; the width is fixed by it.
    """

    kind: ClassVar[str] = "category"
    values: tuple[str, ...] = ()
    room: int = ROOM

    @property
    def own_columns(self) -> tuple[str, ...]:
        free = tuple(f"={place}" for place in range(len(self.values), self.room))
        return (*(f"={word}" for word in self.values), *free, "=other")

    def _known(self, name: str, values: Sequence[Any], absent: Any, encoder: TextEncoder | None) -> Matrix:
        places = {word: place for place, word in enumerate(self.values)}
        found = [
            0 if is_absent else places.get(word_of(name, v), self.room)
            for v, is_absent in zip(values, absent, strict=True)
        ]
        own = np.zeros((len(found), self.room + 1), dtype=np.float32)
        own[np.arange(len(found)), found] = ~absent
        return own

    def grown(self, values: Sequence[Any]) -> CategoryField:
        if len(self.values) >= self.room:
            return self
        known = dict.fromkeys(self.values)
        for value, is_absent in zip(values, missing(values), strict=True):
            if not is_absent and len(known) < self.room and isinstance(value, str | int | float | np.generic):
                known.setdefault(word_of("", value))
        return self if len(known) == len(self.values) else replace(self, values=tuple(known))

    @property
    def described(self) -> str:
        return f"category ({len(self.values)} of {self.room} known)"


@dataclass(frozen=True)
class AnyField(RowField):
    """A field that was missing when the schema was learned: takes a number, a date, a truth or a word, as they come."""

    kind: ClassVar[str] = "any"
    values: tuple[str, ...] = ()
    room: int = ROOM

    @property
    def words(self) -> CategoryField:
        """Where the words go."""
        return CategoryField(False, self.values, self.room)

    @property
    def own_columns(self) -> tuple[str, ...]:
        return ("", *self.words.own_columns)

    def _known(self, name: str, values: Sequence[Any], absent: Any, encoder: TextEncoder | None) -> Matrix:
        numbers = [None if is_absent else _number_in(value) for value, is_absent in zip(values, absent, strict=True)]
        words = [None if n is not None else value for n, value in zip(numbers, values, strict=True)]
        number = NumberField(False).encode(name, numbers, None)
        return np.hstack([number, self.words.encode(name, words, None)])

    def grown(self, values: Sequence[Any]) -> AnyField:
        words = self.words.grown([value for value in values if _number_in(value) is None])
        return replace(self, values=words.values)

    @property
    def described(self) -> str:
        return "any kind"


@dataclass(frozen=True)
class TextField(RowField):
    """A text, encoded by the schema's text encoder."""

    kind: ClassVar[str] = "text"
    size: int = 0

    @property
    def own_columns(self) -> tuple[str, ...]:
        return tuple(f"[{place}]" for place in range(self.size))

    def _known(self, name: str, values: Sequence[Any], absent: Any, encoder: TextEncoder | None) -> Matrix:
        assert encoder is not None
        own = np.zeros((len(values), self.size), dtype=np.float32)
        if absent.any() and not self.marks_gaps:
            raise EncodingError(f"field {name!r} is missing: there is no text to encode")
        where = f"field {name!r}"
        try:
            for row in np.flatnonzero(~absent).tolist():
                where = f"field {name!r}, value {row + 1} of {len(values)}" if len(values) > 1 else where
                checked_text_of(values[row])
            where = f"field {name!r}"
            if not absent.all():
                own[~absent] = encoder(
                    [value for value, is_absent in zip(values, absent, strict=True) if not is_absent]
                )
        except EncodingError as error:
            raise EncodingError(f"{where}: {error}") from error
        return own


@dataclass(frozen=True)
class PictureField(RowField):
    """A picture, brought to one size by the rule of `pictures`; where it stands alone, an observation has its shape."""

    kind: ClassVar[str] = "picture"
    shape: tuple[int, ...] = (3, SIDE, SIDE)

    @property
    def own_columns(self) -> tuple[str, ...]:
        return tuple(f"[{place}]" for place in range(math.prod(self.shape)))

    @property
    def width(self) -> int:
        return math.prod(self.shape) + self.marks_gaps

    def _known(self, name: str, values: Sequence[Any], absent: Any, encoder: TextEncoder | None) -> Matrix:
        own = np.zeros((len(values), math.prod(self.shape)), dtype=np.float32)
        if absent.any() and not self.marks_gaps:
            raise EncodingError(f"field {name!r} is missing: there is no picture")
        for row, (value, is_absent) in enumerate(zip(values, absent, strict=True)):
            if isinstance(value, str):
                raise EncodingError(f"field {name!r} is {briefly(value)}: give a picture, or its path as a `Path`")
            if not is_absent:
                own[row] = pixels(read_picture(value), self.shape).ravel()
        return own

    @property
    def described(self) -> str:
        channels, height, width = self.shape
        return f"picture ({height} x {width}, {'grey' if channels == 1 else 'colour'})"


KINDS: Mapping[str, type[RowField]] = {
    kind.kind: kind for kind in (NumberField, BooleanField, DateField, CategoryField, AnyField, TextField, PictureField)
}


def missing(values: Sequence[Any], *, blank: bool = True) -> NDArray[np.bool_]:
    """Which values are missing: None, nan, pandas' NA and NaT, and (with `blank`) a string with nothing in it."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
    return np.array([_is_gap(value, blank) for value in values], dtype=bool)


def _is_gap(value: Any, blank: bool = True) -> bool:
    if isinstance(value, str):
        return blank and not value.strip()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, float | np.floating):
        return bool(value != value)
    return isinstance(value, np.datetime64) and bool(np.isnat(value))


def reads_as_number(value: Any) -> bool:
    """Whether a value is a number, or a text that reads as one; a code such as 007 does not.

    >>> [reads_as_number(value) for value in (1, "2.5", "-3e4", True, "007", "x", "nan")]
    [True, True, True, True, False, False, False]
    """
    if isinstance(value, str):
        text = value.strip().lstrip("+-")
        return not re.match(r"0\d", text) and re.fullmatch(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text.lower()) is not None
    return isinstance(value, bool | int | float | np.number | np.bool_) or hasattr(value, "as_integer_ratio")


def reads_as_date(value: Any) -> bool:
    """Whether a value is a date, or a text that begins as ISO 8601 writes one."""
    if isinstance(value, str):
        try:
            return _ISO.fullmatch(value.strip()) is not None and datetime.fromisoformat(value.strip()) is not None
        except ValueError:
            return False
    return isinstance(value, date | np.datetime64)


def days_of(name: str, value: Any) -> float:
    """Days since 2000, with fractions; a moment with a time zone is read in UTC.

    >>> days_of("since", "2000-01-02T12:00"), days_of("since", date(2001, 1, 1))
    (1.5, 366.0)
    """
    if not reads_as_date(value):
        raise EncodingError(f"field {name!r} is {briefly(value)}: it must be a date such as 2024-05-31")
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip())
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return float((value - _EPOCH) / timedelta(days=1))


def word_of(name: str, value: Any) -> str:
    """A category's word; a whole number is written without a point, however it came."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, str | int | float):
        raise EncodingError(f"field {name!r} is {briefly(value)}: a category must be a word or a number")
    return str(value).strip()


def _number(name: str, value: Any) -> float:
    if not reads_as_number(value):
        raise EncodingError(f"field {name!r} is {briefly(value)}: it must be a number")
    try:
        return float(value)
    except (OverflowError, ValueError, TypeError):
        raise EncodingError(f"field {name!r} is {briefly(value)}: a number must be finite") from None


def _truth(name: str, value: Any) -> float:
    said = value.strip().lower() if isinstance(value, str) else value
    if said in ("true", "false", "yes", "no", 0, 1):
        return float(said in ("true", "yes", 1))
    raise EncodingError(f"field {name!r} is {briefly(value)}: it must be true or false")


def _number_in(value: Any) -> float | None:
    """The number in a value of any kind, or None if it has to be read as a word."""
    if _is_gap(value):
        return None
    if reads_as_date(value):
        return days_of("", value)
    try:
        return float(value) if reads_as_number(value) else None
    except OverflowError:
        return float("inf")
