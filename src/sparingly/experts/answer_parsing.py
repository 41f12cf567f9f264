"""From what an expert said to one of the classes, or to the reason why it is none."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

Label = str | int | float | bool

LONGEST = 20_000
"""Characters of an answer that are looked at; a class is named within them or not at all."""
_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_TAGS = re.compile(r"</?[a-zA-Z][^<>]{0,100}>")
_NOT = re.compile(r"(?:\bnot|n['’]t|\bneither|\bnor|\bno|\bnever|\brather than|\binstead of)(?: an?| the)?$")
_JSON_KEYS = ("label", "class", "answer", "category")


@dataclass(frozen=True)
class NamedClass:
    """The class that an answer names, if it is one; otherwise those that it names."""

    label: Label | None
    mentioned: tuple[Label, ...] = field(default=())


def named_class(said: str, classes: Sequence[Label]) -> NamedClass:
    """The one class that an answer names: alone, in markup or JSON, or in a sentence that names no other.

    >>> classes = ["joy", "fear", "card lost", "card"]
    >>> [named_class(said, classes).label for said in ("joy", " **Joy**. ", '```json\\n{"label": "fear"}\\n```')]
    ['joy', 'joy', 'fear']
    >>> [named_class(said, classes).label for said in ("<p>It is a card_lost.</p>", "Freude", "it is not joy")]
    ['card lost', None, None]
    >>> named_class("I think it is joy or fear", classes)
    NamedClass(label=None, mentioned=('joy', 'fear'))
    """
    text = _THOUGHTS.sub(" ", said[:LONGEST]).strip()
    for label in classes:
        if str(label) == text:
            return NamedClass(label, (label,))
    names, pattern = _names(tuple(classes))
    text = _from_json(text)
    alone = names.get(_plain(text))
    if alone is not None:
        return NamedClass(alone[0] if len(alone) == 1 else None, alone)
    plain = _plain(_TAGS.sub(" ", text))
    found: list[Label] = []
    for match in pattern.finditer(plain):
        if not _NOT.search(plain[max(0, match.start() - 30) : match.start()].rstrip()):
            found += [label for label in names[match.group()] if label not in found]
    return NamedClass(found[0] if len(found) == 1 else None, tuple(found))


@lru_cache(maxsize=64)
def _names(classes: tuple[Label, ...]) -> tuple[dict[str, tuple[Label, ...]], re.Pattern[str]]:
    """The classes by their plain names, and what finds those in a plain text, the longest first."""
    names: dict[str, list[Label]] = defaultdict(list)
    for label in classes:
        names[_plain(str(label))].append(label)
    names.pop("", None)
    longest_first = sorted(names, key=len, reverse=True)
    pattern = "|".join(re.escape(name) for name in longest_first) or r"(?!)"
    return {name: tuple(labels) for name, labels in names.items()}, re.compile(rf"(?<!\w)(?:{pattern})(?!\w)")


def _from_json(text: str) -> str:
    """The value of an answer that is a JSON object, in a code block or not; any other text as it is."""
    inner = text.removeprefix("```json").strip("`").strip()
    if not inner.startswith("{"):
        return text
    try:
        value = json.loads(inner)
    except (ValueError, RecursionError):
        return text
    values = [value[key] for key in _JSON_KEYS if key in value] or list(value.values())
    return str(values[0]) if len(values) == 1 and isinstance(values[0], str | int | float) else text


def _plain(text: str) -> str:
    """Small letters, underscores, dashes and markup as spaces, no full stop or quotes around it."""
    text = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.sub(r"[_\-*`#\"“”„]+", " ", text).split()).strip(" .,:;!'()[]")
