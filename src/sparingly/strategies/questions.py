"""What a strategy remembers of its open questions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Question:
    """One question as it was asked: what the strategy believed then.

    Attributes
    ----------
    x
        The observation.
    clock
        The round, counted from 0.
    announced
        What it would have announced.
    risk
        What it expected that announcement to cost; nan before there was a model.
    value
        The disagreement of the ensemble, in cost; nan before there was a model.
    probability
        Of each class, `[class]`.
    labels
        How many labels it had.
    """

    x: Tensor
    clock: int
    announced: int
    risk: float
    value: float
    probability: Tensor
    labels: int


class Questions:
    """The open questions: asked, not yet answered, not yet too old to hope for.

    Parameters
    ----------
    patience
        After this many rounds an answer is no longer waited for; it is still learned from if it comes.
    """

    def __init__(self, patience: int = 1000) -> None:
        self.patience = patience
        self._open: list[Question] = []
        self._rows: Tensor | None = None

    def __len__(self) -> int:
        return len(self._open)

    def add(self, question: Question) -> None:
        self._open.append(question)
        self._rows = None

    def expire(self, clock: int) -> None:
        """Give up the questions that have waited too long."""
        if self._open and self._open[0].clock + self.patience < clock:
            self._open = [q for q in self._open if q.clock + self.patience >= clock]
            self._rows = None

    def take(self, x: Tensor) -> Question | None:
        """Close the oldest question about an observation, if there is one."""
        for place, question in enumerate(self._open):
            if torch.equal(question.x, x):
                self._rows = None
                return self._open.pop(place)
        return None

    def nearby(self, x: Tensor, reach: float) -> float:
        """How many open questions are about the same thing: each counts by its distance against a reach."""
        if not self._open:
            return 0.0
        if self._rows is None:
            self._rows = torch.stack([q.x for q in self._open]).flatten(1)
        squared = (self._rows - x.flatten()).square().sum(1).double()
        return float(torch.exp(-squared / max(reach, 1e-30)).sum())

    def state_dict(self) -> dict[str, Any]:
        return {
            "open": [
                [q.clock, q.announced, None if math.isnan(q.risk) else [q.risk, q.value], q.labels] for q in self._open
            ],
            "x": [q.x for q in self._open],
            "probability": [q.probability for q in self._open],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._open, self._rows = [], None
        for (clock, announced, known, labels), x, p in zip(
            state["open"], state["x"], state["probability"], strict=True
        ):
            risk, value = (math.nan, math.nan) if known is None else known
            self._open.append(Question(x, int(clock), int(announced), float(risk), float(value), p, int(labels)))
