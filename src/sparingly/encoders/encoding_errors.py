"""What the encoders refuse: one line that names the field and the value."""

from __future__ import annotations

import reprlib
from typing import Any


class EncodingError(ValueError):
    """A row, a text, a schema or an encoder that cannot be used."""


class MissingEncoderError(EncodingError):
    """A text encoder that is not here: its package is not installed, or it is a function that was not given."""


def briefly(value: Any) -> str:
    """A value as an error names it, in one line of bounded length.

    >>> briefly("short"), len(briefly("long" * 1000)) < 80
    ("'short'", True)
    """
    try:
        return reprlib.repr(value)
    except (ValueError, RecursionError):
        return f"{type(value).__name__} that cannot be shown"
