"""What the classes mean, in words: for people who choose among them, and for language models that are asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LONGEST = 1000
"""Characters in one description."""


def checked_descriptions(descriptions: Any, classes: Sequence[Any]) -> dict[str, str]:
    """Descriptions by the names of classes, each a short text; classes without one are left out.

    >>> checked_descriptions({"lost": "The card is gone. "}, ["lost", "stolen"])
    {'lost': 'The card is gone.'}
    >>> checked_descriptions({"found": "It is back."}, ["lost", "stolen"])
    Traceback (most recent call last):
    ...
    ValueError: descriptions name 'found', which is none of the classes
    """
    if descriptions is None:
        return {}
    if not isinstance(descriptions, Mapping):
        raise ValueError(f"descriptions is {type(descriptions).__name__}: it must be texts by the names of classes")
    names = {str(one) for one in classes}
    checked = {}
    for name, text in descriptions.items():
        if str(name) not in names:
            raise ValueError(f"descriptions name {str(name)[:60]!r}, which is none of the classes")
        if not isinstance(text, str) or len(text) > LONGEST:
            what = f"{len(text)} characters long" if isinstance(text, str) else type(text).__name__
            raise ValueError(f"the description of {name!r} is {what}: it must be a text of at most {LONGEST}")
        if not all(c.isprintable() or c in "\n\t" for c in text):
            raise ValueError(f"the description of {name!r} has characters that cannot be printed")
        if text.strip():
            checked[str(name)] = text.strip()
    return checked
