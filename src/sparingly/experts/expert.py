"""An expert: a name, a price, and whether the answer is the truth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

Answers = Mapping[str, Any]
"""By the expert's name: the class it names (a number), None for no answer, or a pair (class or None, price paid)."""


@dataclass(frozen=True, slots=True)
class Expert:
    """Someone or something that names a class for a price.

    Attributes
    ----------
    name
        What it is called in answers, records and reasons.
    price
        Of one call, not below 0. Where calls differ, what one is expected to cost: a stream may give the price paid.
    gold
        Whether its answer is the truth. The answer of any other expert may be wrong, and how often is learned.
    accuracy
        A guess of how often it is right, to start from.

    Examples
    --------
    >>> Expert("human", price=1.0, gold=True)
    Expert(name='human', price=1.0, gold=True, accuracy=None)
    >>> Expert("gpt", price=-1)
    Traceback (most recent call last):
    ...
    ValueError: the price of gpt is -1: it must be a finite number, not below 0
    """

    name: str
    price: float
    gold: bool = False
    accuracy: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ValueError(f"the name of an expert is {self.name!r}: it must be a word")
        object.__setattr__(self, "price", checked_price(self.price, self.name))
        if not isinstance(self.gold, bool):
            raise ValueError(f"gold is {self.gold!r} for {self.name}: it must be True or False")
        if self.accuracy is None:
            return
        if self.gold:
            raise ValueError(f"accuracy is {self.accuracy!r} for {self.name}, who is gold: its answer is the truth")
        if isinstance(self.accuracy, bool) or not isinstance(self.accuracy, Real) or not 0 < self.accuracy < 1:
            raise ValueError(f"accuracy is {self.accuracy!r} for {self.name}: it must be between 0 and 1")


@dataclass(frozen=True, slots=True)
class Person:
    """An expert who is one person: questions go to whoever signs in under this name, and to nobody else.

    >>> Person("Ada", price=0.2).expert
    Expert(name='Ada', price=0.2, gold=False, accuracy=None)
    """

    name: str
    price: float
    gold: bool = False
    accuracy: float | None = None

    def __post_init__(self) -> None:
        _ = self.expert

    @property
    def expert(self) -> Expert:
        return Expert(self.name, self.price, self.gold, self.accuracy)


class Reply(NamedTuple):
    """What one call brought: a class, or None for no answer, and what was paid."""

    label: int | None
    price: float


def check_experts(experts: Sequence[Expert]) -> tuple[Expert, ...]:
    """Experts with different names, as a tuple."""
    seen: set[str] = set()
    for expert in experts:
        if expert.name in seen:
            raise ValueError(f"two experts are called {expert.name!r}: names must differ")
        seen.add(expert.name)
    return tuple(experts)


def named_experts(experts: Any) -> tuple[Expert, ...]:
    """Experts given as such, or as tables of a file; none if these are no experts but prices or a number.

    >>> named_experts([{"name": "gpt", "price": 0.01}]), named_experts([1.0, 0.3])
    ((Expert(name='gpt', price=0.01, gold=False, accuracy=None),), ())
    """
    if isinstance(experts, str | Mapping) or not isinstance(experts, Sequence):
        return ()
    named = [isinstance(one, Expert | Mapping) for one in experts]
    if not any(named):
        return ()
    if not all(named):
        raise ValueError(f"experts has {experts[named.index(False)]!r} beside experts with names: name all of them")
    return check_experts([one if isinstance(one, Expert) else _from_table(one) for one in experts])


def _from_table(table: Mapping[str, Any]) -> Expert:
    try:
        return Expert(**table)
    except TypeError:
        raise ValueError(
            f"expert {dict(table)!r} must have a name and a price, and may have gold and accuracy"
        ) from None


def check_answers(answers: Answers | None, experts: Sequence[Expert]) -> Answers:
    """Return the answers if every name is an expert's.

    >>> check_answers({"claude": 1}, [Expert("gpt", 0.01)])
    Traceback (most recent call last):
    ...
    ValueError: there is an answer of 'claude', but the experts are gpt
    """
    if answers is None:
        return {}
    if not isinstance(answers, Mapping):
        raise ValueError(f"answers are {answers!r}: they must be a mapping from experts' names to classes")
    names = [expert.name for expert in experts]
    for name in answers:
        if name not in names:
            known = f"the experts are {', '.join(names)}" if names else "the game names no experts"
            raise ValueError(f"there is an answer of {name!r}, but {known}")
    return answers


def reply(expert: Expert, answers: Answers, outcome: int, n_classes: int) -> Reply:
    """What an expert says when asked: the truth if it is gold, unless the answers say that it does not answer.

    >>> gpt, human = Expert("gpt", 0.01), Expert("human", 1.0, gold=True)
    >>> reply(gpt, {"gpt": 2}, 0, 3), reply(gpt, {"gpt": (2, 0.03)}, 0, 3).price, reply(human, {}, 0, 3)
    (Reply(label=2, price=0.01), 0.03, Reply(label=0, price=1.0))
    >>> reply(gpt, {}, 0, 3), reply(human, {"human": None}, 0, 3).label
    (Reply(label=None, price=0.01), None)
    """
    given: Any = answers.get(expert.name, outcome if expert.gold else None)
    price = expert.price
    if isinstance(given, tuple):
        if len(given) != 2:
            raise ValueError(f"the answer of {expert.name} is {given!r}: it must be a class or (class, price)")
        given, price = given[0], checked_price(given[1], expert.name)
    if given is None or given != given:
        return Reply(None, price)
    try:
        label = int(given)
    except (TypeError, ValueError, OverflowError):
        label = -1
    if label != given or not 0 <= label < n_classes:
        raise ValueError(f"the answer of {expert.name} is {given!r}: it must be None or one of 0 to {n_classes - 1}")
    if expert.gold and label != outcome:
        raise ValueError(f"the answer of {expert.name} is {label}, but it is gold and the truth is {outcome}")
    return Reply(label, price)


def checked_price(price: Any, name: str) -> float:
    if isinstance(price, bool) or not isinstance(price, Real) or not math.isfinite(float(price)) or price < 0:
        raise ValueError(f"the price of {name} is {price!r}: it must be a finite number, not below 0")
    return float(price)
