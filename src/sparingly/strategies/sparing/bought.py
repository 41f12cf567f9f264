"""The labels bought so far, with what was believed of each when it was bought."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sparingly.learning.label_memory import Memory
from sparingly.strategies.sparing.open_questions import Question


class Bought:
    """Observations `x`, classes `y` and folds, when each was `asked` about and how many `labels` there were then.

    Also `value`, the disagreement, and `soft`, the expected cost of what was believed: both as of then, nan before
    there was a model.

    >>> bought = Bought(folds=2)
    >>> for k in range(4):
    ...     bought.add(torch.zeros(1), k % 2, None, clock=k, costs=torch.eye(2))
    >>> bought.forget([1], since=2)
    >>> bought["y"].tolist(), bought["asked"].tolist(), bought["fold"].tolist()
    ([0, 0, 1], [0, 2, 3], [0, 1, 0])
    """

    def __init__(self, folds: int) -> None:
        self.folds = folds
        self._memory = Memory()

    def __len__(self) -> int:
        return len(self._memory)

    def __getitem__(self, name: str) -> Tensor:
        return self._memory[name]

    def add(self, x: Tensor, y: int, question: Question | None, *, clock: int, costs: Tensor) -> None:
        """Keep one answer; without its question, only what was answered is known."""
        asked, labels, value, soft = clock, len(self), math.nan, math.nan
        if question is not None:
            asked, labels, value = question.clock, question.labels, question.value
            soft = float(question.probability @ costs[:, y]) if not math.isnan(value) else math.nan
        row = {"y": y, "fold": len(self) % self.folds, "asked": asked, "labels": labels, "soft": soft, "value": value}
        self._memory.append(x=x, **{name: torch.tensor(one) for name, one in row.items()})

    def forget(self, classes: list[int], since: int) -> None:
        """Keep no label of some classes that was asked for before a round."""
        state = self._memory.state_dict()
        keep = (state["asked"] >= since) | ~torch.isin(state["y"], torch.tensor(classes))
        kept = {name: column[keep] for name, column in state.items()}
        kept["fold"] = torch.arange(int(keep.sum())) % self.folds
        self._memory = Memory()
        self._memory.load_state_dict(kept)

    def shares(self, n_classes: int) -> Tensor:
        """How common each class is, one label spread over all of them added."""
        counts = torch.full((n_classes,), 1 / n_classes)
        if len(self):
            counts = counts + torch.bincount(self["y"], minlength=n_classes)
        return counts / counts.sum()

    def state_dict(self) -> dict[str, Any]:
        return self._memory.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._memory.load_state_dict(state)
