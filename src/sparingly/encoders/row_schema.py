"""The schema of raw rows: what each field holds, and so how a row becomes a vector of a fixed width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from sparingly.encoders.encoding_errors import EncodingError, briefly
from sparingly.encoders.fields import KINDS, Matrix, NumberField, PictureField, RowField, TextField
from sparingly.encoders.text_encoders import TextEncoder, described

TEXT = "text"
"""What the only field of observations that are plain texts is called."""


@dataclass(frozen=True)
class RowSchema:
    """The fields of a row in their order, and the text encoder if one of them holds texts.

    The width is fixed once the schema is made. A word that appears later gets one of the columns that its field has
    to spare (`grown`), or shares the column of other words when none is left.

    Parameters
    ----------
    fields
        By name.
    encoder
        The identity of the text encoder, None if there is no text.

    Examples
    --------
    >>> from sparingly.encoders import learn_schema
    >>> schema = learn_schema([{"age": 39, "job": "clerk", "since": None}])
    >>> schema
    RowSchema(age: number, job: category (1 of 32 known), since: any kind; 71 numbers a row)
    >>> schema.encode([{"age": 41, "job": "clerk", "since": None}])[0, :3].tolist()
    [41.0, 0.0, 1.0]
    >>> schema.encode([{"age": "old", "job": "clerk", "since": 3}])
    Traceback (most recent call last):
    ...
    sparingly.encoders.encoding_errors.EncodingError: field 'age' is 'old': it must be a number
    """

    fields: Mapping[str, RowField]
    encoder: Mapping[str, Any] | None = None

    @property
    def width(self) -> int:
        return sum(field.width for field in self.fields.values())

    @property
    def columns(self) -> tuple[str, ...]:
        """What each number of an encoded row stands for."""
        names: list[str] = []
        for name, field in self.fields.items():
            names += [f"{name}{own if own[:1] in ('', '=', '[') else ': ' + own}" for own in field.own_columns]
            names += [f"{name} is missing"] if field.marks_gaps else []
        return tuple(names)

    @property
    def is_plain(self) -> bool:
        """Whether every field is a number that becomes just itself."""
        return all(isinstance(field, NumberField) and not field.marks_gaps for field in self.fields.values())

    @property
    def is_text(self) -> bool:
        """Whether an observation is one text."""
        return len(self.fields) == 1 and isinstance(next(iter(self.fields.values())), TextField)

    @property
    def has_texts(self) -> bool:
        return any(isinstance(field, TextField) for field in self.fields.values())

    @property
    def has_media(self) -> bool:
        """Whether a field holds texts or pictures, which take time to encode."""
        return any(isinstance(field, TextField | PictureField) for field in self.fields.values())

    def encode(self, rows: Sequence[Any], encoder: TextEncoder | None = None) -> Matrix:
        """Rows as `[rows, width]`; each a mapping, values in the fields' order, or a text if that is all."""
        return self.encode_columns(self.transposed(rows), encoder)

    def encode_columns(self, columns: Mapping[str, Sequence[Any]], encoder: TextEncoder | None = None) -> Matrix:
        """Rows as `[rows, width]`, of a table that is given column by column."""
        if self.encoder is not None:
            if encoder is None:
                raise EncodingError(f"the texts are encoded by {described(self.encoder)}: give this encoder")
            encoder.check_identity(self.encoder)
        return np.hstack([field.encode(name, columns[name], encoder) for name, field in self.fields.items()])

    def grown(self, rows: Sequence[Any]) -> RowSchema:
        """The schema after it has seen these rows: new words have their columns, and the width is the same."""
        columns = self.transposed(rows)
        fields = {name: field.grown(columns[name]) for name, field in self.fields.items()}
        return self if fields == self.fields else replace(self, fields=fields)

    def transposed(self, rows: Sequence[Any]) -> dict[str, list[Any]]:
        """The rows' values by field; a field that is not there, or that nobody knows, is refused."""
        named_rows = [self._by_name(row) for row in rows]
        return {name: [row[name] for row in named_rows] for name in self.fields}

    def _by_name(self, row: Any) -> Mapping[str, Any]:
        if isinstance(row, str | bytes | bytearray):
            if not self.is_text:
                raise EncodingError(f"an observation is the text {briefly(row)}: it must have {self._names()}")
            return {next(iter(self.fields)): row}
        if not isinstance(row, Mapping):
            values = list(row) if np.iterable(row) else [row]
            if len(values) != len(self.fields):
                raise EncodingError(f"a row has {len(values)} values, not {len(self.fields)}: {self._names()}")
            return dict(zip(self.fields, values, strict=True))
        named = row if all(isinstance(name, str) for name in row) else {str(name): v for name, v in row.items()}
        for name in self.fields:
            if name not in named:
                raise EncodingError(f"field {name!r} is missing: a row must have {self._names()}")
        for name, value in named.items():
            if name not in self.fields:
                raise EncodingError(f"field {name!r} is unknown ({briefly(value)}): a row must have {self._names()}")
        return named

    def _names(self) -> str:
        return f"the fields {', '.join(self.fields)}" if len(self.fields) <= 20 else f"{len(self.fields)} fields"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, to be kept as JSON."""
        fields = {name: {"kind": field.kind, **asdict(field)} for name, field in self.fields.items()}
        return {"fields": fields, "encoder": None if self.encoder is None else dict(self.encoder)}

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> RowSchema:
        """The schema whose values `to_dict` returned."""
        fields = {}
        for name, field in kept["fields"].items():
            options: dict[str, Any] = {key: value for key, value in field.items() if key != "kind"}
            options |= {key: tuple(value) for key, value in options.items() if isinstance(value, list)}
            fields[name] = KINDS[field["kind"]](**options)
        encoder = kept.get("encoder")
        return cls(fields, None if encoder is None else {**encoder, "probe": list(encoder["probe"])})

    def __repr__(self) -> str:
        return f"RowSchema({self.described})"

    @property
    def described(self) -> str:
        """The schema in words."""
        fields = ", ".join(f"{name}: {field.described}" for name, field in self.fields.items())
        encoder = f"; texts by {described(self.encoder)}" if self.encoder is not None else ""
        return f"{fields}{encoder}; {self.width} numbers a row"
