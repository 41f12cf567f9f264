"""Synthetic experts: what someone would say who is right with a given chance, and wrong in a given way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.experts.expert import Expert

Answers = NDArray[np.int64]
"""Class numbers, -1 where there is no answer."""


@dataclass(frozen=True, slots=True)
class SyntheticExpert:
    """An expert who is right with a given chance, and names another class at random otherwise.

    Attributes
    ----------
    accuracy
        How often it is right.
    weak_class
        A class about which it is right with the chance `there` only.
    weak_region
        The share of the observations, on one side of a random plane, about which it is right with the chance `there`.
    there
        See above.
    silent
        The share of the observations about which it says nothing.
    after, then
        From this round on it is right with the chance `then`, everywhere.
    follows, together
        Another synthetic expert, whose answers it repeats in this share of the rounds.

    Examples
    --------
    >>> y = np.arange(1000) % 4
    >>> said = SyntheticExpert(accuracy=0.9, weak_class=2, there=0.1).answers(np.zeros((1000, 1)), y, 4, seed=0)
    >>> [round(float((said == y)[y == k].mean()), 1) for k in range(4)]
    [0.9, 0.9, 0.1, 0.9]
    """

    accuracy: float = 0.8
    weak_class: int | None = None
    weak_region: float | None = None
    there: float = 0.2
    silent: float = 0.0
    after: int | None = None
    then: float = 0.5
    follows: str | None = None
    together: float = 0.8

    def __post_init__(self) -> None:
        for name in ("accuracy", "weak_region", "there", "silent", "then", "together"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise ValueError(f"{name} is {value}: it must be from 0 to 1")

    def answers(
        self,
        X: NDArray[Any],
        y: NDArray[np.int64],
        n_classes: int,
        *,
        seed: int,
        others: Mapping[str, Answers] | None = None,
    ) -> Answers:
        """What it says of each observation `[n, ...]`, by its class `[n]`; others are those it may follow."""
        rng = np.random.default_rng(seed)
        right = np.full(len(y), self.accuracy)
        if self.weak_class is not None:
            if not 0 <= self.weak_class < n_classes:
                raise ValueError(f"weak_class is {self.weak_class}: the classes are 0 to {n_classes - 1}")
            right[y == self.weak_class] = self.there
        if self.weak_region is not None:
            flat = np.nan_to_num(np.asarray(X, dtype=np.float64).reshape(len(y), -1))
            side = (flat - flat.mean(axis=0)) @ rng.normal(size=flat.shape[1])
            right[side < np.quantile(side, self.weak_region)] = self.there
        if self.after is not None:
            right[self.after :] = self.then
        said = np.where(
            rng.random(len(y)) < right, y, (y + rng.integers(1, max(2, n_classes), size=len(y))) % n_classes
        )
        if self.follows is not None:
            if self.follows not in (others or {}):
                raise ValueError(f"follows is {self.follows!r}: there is no such synthetic expert before this one")
            said = np.where(rng.random(len(y)) < self.together, (others or {})[self.follows], said)
        return np.where(rng.random(len(y)) < self.silent, -1, said).astype(np.int64)


_KINDS = {field.name: str(field.type).partition(" ")[0] for field in fields(SyntheticExpert)}


def described_expert(text: str) -> tuple[Expert, SyntheticExpert | None]:
    """An expert in words: name:price, name:price:gold, or name:price: and what a synthetic one is like.

    >>> described_expert("human:1:gold")
    (Expert(name='human', price=1.0, gold=True, accuracy=None), None)
    >>> described_expert("gpt:0.01:accuracy=0.9,after=5000,then=0.5")[1].after
    5000
    >>> described_expert("gpt:cheap")
    Traceback (most recent call last):
    ...
    ValueError: the expert 'gpt:cheap' must be name:price, name:price:gold or name:price:accuracy=0.8
    """
    name, _, rest = text.partition(":")
    price, _, words = rest.partition(":")
    try:
        number = float(price)
    except ValueError:
        raise ValueError(
            f"the expert {text!r} must be name:price, name:price:gold or name:price:accuracy=0.8"
        ) from None
    if words in ("", "gold"):
        return Expert(name.strip(), number, gold=words == "gold"), None
    return Expert(name.strip(), number), _synthetic(text, words)


def _synthetic(text: str, words: str) -> SyntheticExpert:
    given: dict[str, Any] = {}
    for word in words.split(","):
        key, _, value = (part.strip() for part in word.partition("="))
        kind = {"float": float, "int": int, "str": str}.get(_KINDS.get(key, ""))
        if kind is None:
            raise ValueError(f"{key!r} in the expert {text!r} is none of gold, {', '.join(_KINDS)}")
        try:
            given[key] = kind(value)
        except ValueError:
            raise ValueError(f"{key} is {value!r} in the expert {text!r}: it must be a number") from None
    return SyntheticExpert(**given)
