"""The watch over announcements: what they were expected to cost against what they would have cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from sparingly.strategies.sparing.evidence import Evidence
from sparingly.strategies.sparing.open_questions import Question
from sparingly.strategies.sparing.purchase import START, Check


class Watch:
    """Checks every announcement now and then; every answer settles a bet, and enough evidence is a change.

    Parameters
    ----------
    costs
        Of announcing each class where each is true, `[class, class]`.
    alarm
        The evidence (see `Evidence`) at which a change is noticed.
    starts
        How far off the first random question about each announcement is, uniform between 0 and 1.

    Examples
    --------
    >>> import torch
    >>> watch = Watch(1 - torch.eye(2), alarm=50.0)
    >>> sure = [Question(torch.zeros(1), t, 1, 0.01, 0.0, torch.tensor([0.01, 0.99]), labels=80) for t in (500, 501)]
    >>> [watch.stale(question, y=0, clock=510) for question in sure], watch.changes
    ([None, ([1, 0, 0], 500)], [510])
    """

    def __init__(self, costs: Tensor, alarm: float, starts: Sequence[float] | None = None) -> None:
        self.alarm = alarm
        self._made, self._left = [0] * len(costs), list(starts or [1.0] * len(costs))
        self.evidence = Evidence(len(costs))
        self.changes: list[int] = []
        """The rounds at which a change was noticed."""
        least, most = float(costs.min()), float(costs.max())
        self._share = ((costs - least) / (most - least or 1.0)).tolist()
        self._least, self._unit = least, most - least or 1.0

    def check(self, announced: int) -> Check:
        """How far an announcement has been checked."""
        return Check(self._made[announced], self._left[announced], self.evidence.against(announced))

    def passed(self, announced: int, probability: float) -> None:
        """An announcement has been made, or asked about, with a probability of the latter.

        Checks are evenly spaced along the probabilities, from a random start: each has the chance it is said to have,
        and no announcement goes long without one.
        """
        self._made[announced] += 1
        left = self._left[announced] - probability
        self._left[announced] = left if left > 0 else left + 1

    def stale(self, question: Question, y: int, clock: int) -> tuple[list[int], int] | None:
        """Settle the bet; if that is a change, whose labels are to be forgotten, and those from before which round.

        These are the labels of the class and of those met in its place: where two classes have swapped their names,
        labels of either are wrong. Questions of the start and from before a change tell nothing.
        """
        early = question.labels < START or math.isnan(question.risk)
        if early or question.clock <= max(self.changes, default=-1):
            return None
        announced, expected = question.announced, (question.risk - self._least) / self._unit
        wealth = self.evidence.bet(announced, y, expected, self._share[announced][y], question.clock)
        if wealth < self.alarm:
            return None
        gone = [announced, *self.evidence.instead[announced]]
        self.evidence.reset(gone)
        self.changes.append(clock)
        for one in gone:
            self._made[one] = 0
        return gone, self.evidence.since[announced]

    def state_dict(self) -> dict[str, Any]:
        checks = {"made": list(self._made), "left": list(self._left)}
        return {"evidence": self.evidence.state_dict(), "changes": list(self.changes), **checks}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.evidence.load_state_dict(state["evidence"])
        self.changes = [int(t) for t in state["changes"]]
        self._made = [int(count) for count in state["made"]]
        self._left = [float(left) for left in state["left"]]
