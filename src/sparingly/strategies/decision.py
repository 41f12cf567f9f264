"""What a strategy decides on one observation, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Why:
    """The reason for a decision: numbers, and a sentence made from them when someone reads it.

    >>> why = Why("the two likeliest classes are {gap:.2f} apart, within {width:.2f}", {"gap": 0.12, "width": 0.3})
    >>> str(why)
    'the two likeliest classes are 0.12 apart, within 0.30'
    >>> why["gap"], why.get("rate")
    (0.12, None)
    """

    sentence: str
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> str:
        return self.sentence.format(**self.values)

    def __str__(self) -> str:
        return self.words

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self.values.get(name, default)


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with one observation.

    Attributes
    ----------
    action
        The action of the game to play.
    prediction
        The announcement held cheapest, whether or not it is the action: what the agent would say if it might not ask.
    asks
        Whether the action is informative, so that a symbol is to come.
    why
        The reason, in numbers and in words.
    probabilities
        `[outcome]`: how likely each is held to be, where somebody wants to know (`Strategy.probabilities`).
    """

    action: int
    prediction: int
    asks: bool
    why: Why
    probabilities: NDArray[np.float64] | None = field(default=None, compare=False, repr=False)
