"""Rows and texts that other libraries hand over, as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.encoders import RowSchema, TextEncoder, learn_schema, text_encoder
from sparingly.encoders.learned_schema import EncoderChoice


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
    if isinstance(X, str | bytes) or not (isinstance(X, Sequence) or getattr(X, "ndim", 0) == 1):
        return None
    rows = list(X)
    if rows and (all(isinstance(row, str) for row in rows) or all(isinstance(row, Mapping) for row in rows)):
        return rows
    return None


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

    def _encode(self, schema: RowSchema, rows: list[Any]) -> NDArray[np.float32]:
        texts: TextEncoder | None = text_encoder(self.encoder) if schema.has_texts else None
        return schema.encode(rows, texts)
