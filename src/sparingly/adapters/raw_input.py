"""Rows and texts that other libraries hand over, as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.encoders import EncodingError, RowSchema, TextEncoder, learn_schema, text_encoder
from sparingly.encoders.encoding_errors import briefly
from sparingly.encoders.learned_schema import EncoderChoice
from sparingly.encoders.text_encoders import checked_text_of
from sparingly.strategies.sparing.class_names import spoken


def raw_rows(X: Any) -> list[Any] | None:
    """The rows of a table with words, or texts; None if it is numbers, or nothing that can be read.

    >>> raw_rows(["a text", "another"])
    ['a text', 'another']
    >>> raw_rows([[1.0, 2.0]]) is None
    True
    """
    if hasattr(X, "columns") and hasattr(X, "dtypes") and hasattr(X, "to_dict"):
        plain = all(getattr(kind, "kind", "O") in "iufb" for kind in X.dtypes)
        return None if plain else list(X.to_dict("records"))
    if isinstance(X, str | bytes):
        raise EncodingError(f"X is the text {briefly(X)}: give a list of texts")
    if not (isinstance(X, Sequence) or getattr(X, "ndim", 0) == 1):
        return None
    rows = list(X)
    texts = any(isinstance(row, str | bytes) for row in rows)
    if texts:
        rows = [_text_at(place, row) for place, row in enumerate(rows)]
    return rows if texts or (rows and all(isinstance(row, Mapping) for row in rows)) else None


def _text_at(place: int, row: Any) -> str:
    """A row beside texts, which must be one; an error says which row it is."""
    try:
        return checked_text_of(row)
    except EncodingError as error:
        raise EncodingError(f"X[{place}]: {error}") from None


class RawInput:
    """Turns raw rows into numbers by a schema that is learned from the first of them; numbers stay as they are.

    >>> reading = RawInput(None)
    >>> reading.learned([{"age": 3, "job": "clerk"}]).shape
    (1, 36)
    >>> reading.read([{"age": 3, "job": "smith"}])[0, :2].tolist()
    [3.0, 0.0]
    >>> reading.read([[1.0, 2.0]])
    [[1.0, 2.0]]
    """

    def __init__(self, encoder: EncoderChoice) -> None:
        self.encoder = encoder
        self.schema: RowSchema | None = None

    def read(self, X: Any) -> Any:
        """The rows as numbers, and nothing is learned of them."""
        rows = raw_rows(X)
        if rows is None and self.schema is not None and self.schema.is_text and np.ndim(X) == 1:
            rows = [_text_at(place, row) for place, row in enumerate(X)]
        return X if rows is None else self._encode(self.schema or learn_schema(rows, encoder=self.encoder), rows)

    def learned(self, X: Any) -> Any:
        """The rows as numbers, with the words that are new in them."""
        rows = raw_rows(X)
        if rows is None:
            return X
        known = learn_schema(rows, encoder=self.encoder) if self.schema is None else self.schema.grown(rows)
        encoded = self._encode(known, rows)
        self.schema = known
        return encoded

    def class_vectors(self, X: Any, names: Sequence[Any]) -> NDArray[np.float32] | None:
        """What classes are called, encoded as the texts of `X`; None if `X` is something else, or a name is no word.

        A function of one's own may know nothing but the texts it was made for: it is not asked for names.
        """
        rows = raw_rows(X)
        texts = rows is not None and isinstance(rows[0], str) and all(isinstance(name, str) for name in names)
        by_name = self.encoder is None or isinstance(self.encoder, str)
        return text_encoder(self.encoder)([spoken(name) for name in names]) if texts and by_name else None

    def _encode(self, schema: RowSchema, rows: list[Any]) -> NDArray[np.float32]:
        texts: TextEncoder | None = text_encoder(self.encoder) if schema.has_texts else None
        return schema.encode(rows, texts)
