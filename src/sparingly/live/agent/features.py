"""Features in any of the forms people have them, read into one float32 vector or image."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sparingly.encoders import EncodingError, RowSchema, TextEncoder, learn_schema, text_encoder
from sparingly.encoders.fields import missing
from sparingly.encoders.learned_schema import EncoderChoice
from sparingly.encoders.pictures import is_picture, picture_bytes, pixels, read_picture, shape_of
from sparingly.encoders.text_encoders import has_name
from sparingly.live.agent.errors import AgentError, checked_text, shortened

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class Schema:
    """What an observation is, fixed by the first ones if not before: a shape and perhaps names, or raw rows.

    `table` tells what each field of a raw row holds. Where every field is a number and none was missing, a row is a
    vector as ever; the table then only says what stands for a number that is missing later.

    >>> schema = Schema().complete([{"width": 2.0, "height": 3}])
    >>> schema.names, schema.shape
    (('width', 'height'), (2,))
    >>> schema.read({"height": 1, "width": 4}).tolist()
    [4.0, 1.0]
    >>> schema.read({"width": 4})
    Traceback (most recent call last):
    ...
    sparingly.live.agent.errors.AgentError: feature 'height' is missing
    >>> Schema(shape=(2,)).read([1.0, float("nan")])
    Traceback (most recent call last):
    ...
    sparingly.live.agent.errors.AgentError: feature 1 is nan: every feature must be a finite number
    """

    shape: tuple[int, ...] | None = None
    names: tuple[str, ...] | None = None
    table: RowSchema | None = None

    @property
    def is_raw(self) -> bool:
        """Whether an observation is a row or a text that has to be encoded."""
        return self.table is not None and not self.table.is_plain

    @property
    def only_encoder(self) -> str | None:
        """The name of the text encoder if an observation is one text, and the encoder comes with its name."""
        if self.table is None or not self.table.is_text or self.table.encoder is None:
            return None
        name = str(self.table.encoder["name"])
        return name if has_name(name) else None

    @property
    def described(self) -> str:
        """What an observation is, in words."""
        if self.is_raw:
            assert self.table is not None
            return self.table.described
        if self.shape is None:
            return "what the first observations tell"
        return f"{_extent(self.shape)} numbers"

    def complete(self, block: Sequence[Any], encoder: TextEncoder | str | None = None) -> Schema:
        """This schema, with whatever it does not yet know taken from the first observations.

        Of raw rows, the words that it has not seen before are taken on by any later call too.
        """
        bytes_of_picture = len(self.shape or ()) == 3 and isinstance(block[0], bytes | bytearray)
        if self.names is None and (is_given_picture(block[0]) or bytes_of_picture):
            shape = self.shape or _refused(lambda pictures: shape_of(read_picture(pictures[0])), [block[0]])
            return replace(self, shape=shape)
        if len(self.shape or ()) == 3 and isinstance(block[0], str):
            raise AgentError(
                f"{self._no_picture(f'the text {shortened(block[0])}')}: give a pathlib.Path, bytes or a PIL image"
            )
        if self.table is not None:
            grown = _refused(self.table.grown, _plain_rows(block)) if self.is_raw else self.table
            return self if grown is self.table else replace(self, table=grown)
        if self.names is None and (_named(block[0]) is not None or isinstance(block[0], str | bytes | bytearray)):
            table = _refused(lambda rows: learn_schema(rows, encoder=encoder), _plain_rows(block))
            if not table.is_plain:
                return self.of_rows(table)
            return replace(self._completed(block[0]), table=table)
        return self._completed(block[0])

    def of_rows(self, table: RowSchema) -> Schema:
        """The schema of raw rows with these fields."""
        for name in table.fields:
            checked_text("field", name)
        if self.shape not in (None, (table.width,)):
            assert self.shape is not None
            if len(self.shape) == 3:
                raise AgentError(self._no_picture(table.described))
            raise AgentError(f"the row becomes {table.width} numbers, not {_extent(self.shape)}: leave n_features out")
        return replace(self, shape=(table.width,), table=table)

    def _no_picture(self, what: str) -> str:
        assert self.shape is not None
        return f"an observation is a picture of {_extent(self.shape)} numbers, not {what}"

    def _completed(self, features: Any) -> Schema:
        named = _named(features)
        if named is not None and self.names is None:
            names = tuple(checked_text("feature", str(name)) for name in named)
            if self.shape is not None and math.prod(self.shape) != len(names):
                raise AgentError(f"an observation has {len(names)} features, not {math.prod(self.shape)}")
            return replace(self, names=names, shape=self.shape or (len(names),))
        if self.shape is not None:
            return self
        if self.names is not None:
            return replace(self, shape=(len(self.names),))
        shape = _numbers(features).shape
        if not shape or 0 in shape:
            raise AgentError(f"an observation of shape {shape} has no features")
        return replace(self, shape=(1, *shape) if len(shape) == 2 else shape)

    def read(self, features: Any) -> Vector:
        """One observation of numbers as float32 of this shape, or an error that names the feature."""
        assert self.shape is not None
        if is_given_picture(features) or (len(self.shape) == 3 and isinstance(features, bytes | bytearray)):
            shape = self.shape
            return _refused(lambda pictures: pixels(read_picture(pictures[0]), shape), [features])
        named = _named(features)
        values = _numbers(features if named is None else self._in_order(named), self.names)
        if values.shape != self.shape:
            if values.size != math.prod(self.shape) or (values.ndim != 1 and (1, *values.shape) != self.shape):
                raise AgentError(f"an observation has {_extent(values.shape)} features, not {_extent(self.shape)}")
            values = values.reshape(self.shape)
        finite = np.isfinite(values)
        if not finite.all():
            where = np.argwhere(~finite)[0]
            raise AgentError(
                f"feature {self._called(where)} is {values[tuple(where)]}: every feature must be a finite number"
            )
        return np.ascontiguousarray(values)

    def read_all(self, block: Sequence[Any], encoder: TextEncoder | None = None) -> Sequence[Vector]:
        """Observations as float32 of this shape, at once if they are rows, or plain numbers.

        >>> [x.tolist() for x in Schema(shape=(2,)).read_all([[1, 2], [3.5, True]])]
        [[1.0, 2.0], [3.5, 1.0]]
        """
        if self.is_raw:
            assert self.table is not None
            table = self.table
            return list(_refused(lambda rows: table.encode(rows, encoder), _plain_rows(block)))
        if len(block) > 1 and all(type(x) in (list, np.ndarray) for x in block):
            try:
                values = np.asarray(block)
            except (ValueError, RecursionError):
                values = np.empty(0)
            if values.dtype.kind in "biuf" and values.shape[1:] == self.shape:
                numbers = _single(values)
                if np.isfinite(numbers).all():
                    return list(numbers)
        return [self.read(x) for x in block]

    def _in_order(self, named: Mapping[str, Any]) -> list[Any]:
        if self.names is None:
            raise AgentError(f"feature {next(iter(named), '')!r} is named, but the first observation had no names")
        absent = [name for name in self.names if name not in named]
        unknown = [name for name in named if name not in set(self.names)]
        if absent:
            raise AgentError(f"feature {absent[0]!r} is missing")
        if unknown:
            raise AgentError(f"feature {unknown[0]!r} is unknown: the features are {', '.join(self.names)}")
        values = [named[name] for name in self.names]
        if self.table is not None and missing(values, blank=False).any():
            return list(_refused(self.table.encode, [named])[0])
        return values

    def _called(self, where: NDArray[np.intp]) -> str:
        if self.names is not None and len(where) == 1:
            return repr(self.names[where[0]])
        return str(int(where[0])) if len(where) == 1 else str(tuple(int(i) for i in where))


def rows(block: Any) -> Sequence[Any]:
    """The single observations of a block: an array, a DataFrame, or a list of anything that is one observation."""
    if hasattr(block, "to_dict") and hasattr(block, "columns"):
        return block.to_dict("records")  # type: ignore[no-any-return]
    if hasattr(block, "detach"):
        block = block.detach().cpu().numpy()
    if isinstance(block, str | bytes):
        raise AgentError(f"a block of observations is {shortened(block)}: give a list of texts")
    if isinstance(block, np.ndarray) and block.ndim < 2 and block.dtype.kind not in "OUT":
        raise AgentError(f"a block of observations has two or more axes, not {block.ndim}")
    return list(block)


def given_encoder(choice: EncoderChoice) -> TextEncoder | None:
    """The text encoder that the user names or gives, if any."""
    try:
        return None if choice is None else text_encoder(choice)
    except EncodingError as error:
        raise AgentError(str(error)) from error


def shown(row: Any) -> Any:
    """A raw row as a person is shown it: a text, or fields with plain values."""
    if is_given_picture(row):
        return picture_bytes(row)
    named = _named(row)
    if named is None:
        return bytes(row).decode() if isinstance(row, bytes | bytearray) else row if isinstance(row, str) else None
    if len(named) == 1 and isinstance(next(iter(named.values())), str):
        return next(iter(named.values()))
    absent = missing(list(named.values()), blank=False)
    return {
        name: None if is_absent else _shown(value)
        for (name, value), is_absent in zip(named.items(), absent, strict=True)
    }


def _shown(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, str | int | float) else str(value)


def _plain_rows(block: Sequence[Any]) -> list[Any]:
    named = [_named(row) for row in block]
    return [row if names is None else names for row, names in zip(block, named, strict=True)]


T = TypeVar("T")


def is_given_picture(given: Any) -> bool:
    """Whether an observation is a picture; a string is none here, for it may come from somebody else."""
    if type(given) in (list, np.ndarray):
        return False
    return not isinstance(given, str | list | Mapping | np.ndarray) and is_picture(given)


def _refused(read: Callable[[list[Any]], T], rows: list[Any]) -> T:
    """What an encoder makes of rows; what it refuses, the agent refuses."""
    try:
        return read(rows)
    except EncodingError as error:
        raise AgentError(str(error)) from error


def digest(x: Vector) -> bytes:
    """A short hash by which a repeated observation is recognised after its features are gone."""
    return hashlib.blake2b(x.tobytes(), digest_size=12).digest()


def _named(features: Any) -> Mapping[str, Any] | None:
    """The features by name, if they have names: a mapping, a pandas row, a named tuple."""
    if type(features) in (list, np.ndarray):
        return None
    if isinstance(features, Mapping):
        return {str(name): value for name, value in features.items()}
    if hasattr(features, "index") and hasattr(features, "to_dict"):
        named = features.to_dict()
        return {str(k): v for k, v in named.items()} if any(isinstance(k, str) for k in named) else None
    if hasattr(features, "_asdict"):
        return {str(name): value for name, value in features._asdict().items() if name != "Index"}
    return None


def _numbers(features: Any, names: Sequence[str] | None = None) -> Vector:
    if hasattr(features, "detach"):
        features = features.detach().cpu().numpy()
    try:
        values = np.asarray(features)
        if values.dtype.kind in "biuf":
            return _single(values)
    except (ValueError, RecursionError):
        values = np.empty(0, dtype=object)
    for i, value in enumerate(features if np.iterable(features) and not isinstance(features, str) else [features]):
        if not _is_number(value):
            called = repr(names[i]) if names is not None and i < len(names) else i
            raise AgentError(f"feature {called} is {shortened(value)}: every feature must be a finite number")
    try:
        return values.astype(np.float32)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise AgentError(f"the features {shortened(features)} cannot be read: each must be a finite number") from None


def _single(values: NDArray[Any]) -> Vector:
    """Numbers as float32, by way of float64: so that whole numbers are rounded as they are beside others."""
    if values.dtype == np.float32:
        return values.copy()
    with np.errstate(over="ignore"):
        return values.astype(np.float64).astype(np.float32)


def _is_number(value: Any) -> bool:
    if isinstance(value, str | bytes) or value is None:
        return False
    try:
        float(value)
    except OverflowError:
        return False
    except (TypeError, ValueError):
        try:
            return np.ndim(value) > 0 and np.asarray(value).dtype.kind in "biuf"
        except (ValueError, RecursionError):
            return False
    return True


def _extent(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) if shape else "1"
