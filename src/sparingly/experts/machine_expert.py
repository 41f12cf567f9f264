"""Experts that a program can call: what they are asked, what came of a call, and how often they may be called."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import Any

from sparingly.experts.answer_parsing import Label
from sparingly.experts.expert import Expert

ANSWERED, NO_CLASS, AMBIGUOUS, TOO_LONG = "answered", "no class", "several classes", "too long"
TIMED_OUT, REFUSED, UNAVAILABLE, FAILED = "timed out", "refused", "unavailable", "failed"
INTERRUPTED, OVER_BUDGET = "interrupted", "over budget"
"""What came of a call. Only "answered" has a class; "interrupted" is for a call that a crash cut off, "over budget" for
one that was never made."""

LONGEST_DETAIL = 200
"""Characters of what an expert said that are kept."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What an expert is asked about one item.

    Attributes
    ----------
    id
        The ticket.
    content
        What there is to see: a text, an image's bytes, a table of fields, or numbers.
    classes
        The answers there are.
    media
        Of an image, such as "image/png".
    key
        The same whenever this very call is made again, and never otherwise: whoever honours an idempotency key charges
        it once.
    descriptions
        By class: what it means, where somebody has said so.
    """

    id: str
    content: Any
    classes: Sequence[Label]
    media: str | None = None
    key: str = ""
    descriptions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExpertReply:
    """What came of a call: a class or None, what it cost, how it went and, in words, why there is no class."""

    label: Label | None
    price: float
    state: str = ANSWERED
    detail: str = ""


@dataclass(frozen=True)
class CallLimits:
    """How often, and for how much, an expert may be called.

    Attributes
    ----------
    concurrent
        Calls at a time.
    per_minute
        Calls a minute; those beyond wait.
    cost_per_day
        The most that is spent in 24 hours. What a call would cost beyond it is not asked: no answer comes.

    >>> CallLimits(per_minute=0)
    Traceback (most recent call last):
    ...
    ValueError: the limit per_minute is 0: it must be a positive number
    """

    concurrent: int = 4
    per_minute: float | None = None
    cost_per_day: float | None = None

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if value is None and limit.name != "concurrent":
                continue
            if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or value <= 0:
                raise ValueError(f"the limit {limit.name} is {value!r}: it must be a positive number")
        if not isinstance(self.concurrent, int):
            raise ValueError(f"the limit concurrent is {self.concurrent!r}: it must be a whole number")


class MachineExpert(abc.ABC):
    """An expert that is called; a person is a plain `Expert`.

    Parameters
    ----------
    name, price, gold, accuracy
        Those of `Expert`; the price is what a call is expected to cost.
    limits
        How often it may be called.
    repeatable
        Whether a call of which nobody knows what came, after a crash or a time-out, may be made again: it is free, or
        charges an idempotency key once. Otherwise it is taken to be paid, and its answer for lost.
    """

    def __init__(
        self,
        name: str,
        price: float | None,
        *,
        gold: bool = False,
        accuracy: float | None = None,
        limits: CallLimits | None = None,
        repeatable: bool = False,
    ) -> None:
        if price is None:
            raise ValueError(f"the price of {name} is missing: say what a call is expected to cost, 0 if it is free")
        self.expert = Expert(name, price, gold=gold, accuracy=accuracy)
        self.limits = limits or CallLimits()
        self.repeatable = repeatable

    @property
    def name(self) -> str:
        return self.expert.name

    @abc.abstractmethod
    def _call(self, inquiry: Inquiry) -> ExpertReply:
        """Call once, with whatever retries are safe; may take long, and may raise."""

    def ask(self, inquiry: Inquiry) -> ExpertReply:
        """What the expert says; whatever goes wrong is a reply without a class that tells it."""
        try:
            return self._call(inquiry)
        except Exception as error:
            return self.silent(FAILED, f"{type(error).__name__}: {error}")

    def close(self) -> None:  # noqa: B027
        """Let connections go, if there are any."""

    def silent(self, state: str, detail: str, price: float | None = None) -> ExpertReply:
        """A reply without a class; its price is the expected one unless it is known."""
        words = " ".join(detail.split())
        short = words if len(words) <= LONGEST_DETAIL else words[:LONGEST_DETAIL] + "..."
        return ExpertReply(None, self.expert.price if price is None else price, state, short)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, price={self.expert.price:g})"


def shown_text(content: Any) -> str:
    """An item as a text: fields and numbers as lines.

    >>> shown_text({"age": 39, "job": "clerk"}), shown_text([0.5, 1.0]), shown_text("hello")
    ('age: 39\\njob: clerk', '0.5, 1', 'hello')
    """
    if isinstance(content, Mapping):
        return "\n".join(f"{name}: {value}" for name, value in content.items())
    if isinstance(content, Sequence) and not isinstance(content, str | bytes):
        return ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in content)
    return str(content)
