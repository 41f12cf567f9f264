"""The watch over announcements: change detection by e-processes, from what they were expected to cost and did cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from sparingly.strategies.sparing.open_questions import OpenQuestion
from sparingly.strategies.sparing.purchase import START, Check, PurchaseRule

SURPRISE = 3.0
"""Wealth against an announcement above which it is checked."""


class Evidence:
    """An e-process for each class: a bet that announcing it has become worthless; its wealth is evidence of a change.

    If an announcement is expected to cost e and met cost c, both as shares of the largest cost, the wealth is
    multiplied by c (1 + e) / 2e + (1 - c) / 2: halved when the announcement was right, raised when it was wrong, the
    more the surer it was. While announcements cost what they are said to, that is 1 on average, and the chance that
    wealth reaches a level shrinks with the level. Below 1 it is put back to 1, so that a late change counts.

    >>> evidence = Evidence(2)
    >>> for clock in range(3):
    ...     grown = evidence.bet(announced=1, y=0, expected=0.0, met=1.0, clock=clock)
    >>> round(grown), evidence.wealth[0], evidence.since[1], evidence.instead[1]
    (1158, 1.0, 0, [0, 0, 0])

    References
    ----------
    Shin, Ramdas, Rinaldo (2024). E-detectors: a nonparametric framework for sequential change detection.
    """

    SLACK = 0.05
    """Added to every expected cost: calibration is not perfect, least of all near 0."""

    def __init__(self, n_classes: int) -> None:
        self.wealth = [1.0] * n_classes
        self.since = [0] * n_classes
        """When each wealth last rose from 1."""
        self.instead: list[list[int]] = [[] for _ in range(n_classes)]
        """The classes met in its place since then."""

    def bet(self, announced: int, y: int, expected: float, met: float, clock: int) -> float:
        """Settle one bet, the class being y; both costs are shares of the largest. The wealth after it."""
        if self.wealth[announced] <= 1:
            self.since[announced], self.instead[announced] = clock, []
        if y != announced:
            self.instead[announced].append(y)
        expected = min(1.0, expected + self.SLACK)
        factor = met * (1 + expected) / (2 * expected) + (1 - met) / 2
        self.wealth[announced] = max(1.0, self.wealth[announced] * factor)
        return self.wealth[announced]

    def is_suspect(self, announced: int) -> bool:
        """Whether an announcement is under suspicion."""
        return self.wealth[announced] > SURPRISE

    def add_class(self) -> None:
        """Take on one more announcement."""
        self.wealth.append(1.0)
        self.since.append(0)
        self.instead.append([])

    def reset(self, classes: list[int]) -> None:
        """Begin anew with some announcements."""
        for announced in classes:
            self.wealth[announced] = 1.0

    def state_dict(self) -> dict[str, Any]:
        instead = [list(one) for one in self.instead]
        return {"wealth": list(self.wealth), "since": list(self.since), "instead": instead}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.wealth = [float(w) for w in state["wealth"]]
        self.since = [int(t) for t in state["since"]]
        self.instead = [[int(y) for y in one] for one in state["instead"]]


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
    >>> believed = torch.tensor([0.01, 0.99])
    >>> sure = [OpenQuestion(torch.zeros(1), t, 1, 0.01, 0.0, believed, labels=80) for t in (500, 501)]
    >>> [watch.detect_change(question, y=0, clock=510) for question in sure], watch.changes
    ([None, ([1, 0, 0], 500)], [510])
    """

    def __init__(self, costs: Tensor, alarm: float, starts: Sequence[float] | None = None) -> None:
        self.alarm = alarm
        self._made, self._left = [0] * len(costs), list(starts or [1.0] * len(costs))
        self.evidence = Evidence(len(costs))
        self.changes: list[int] = []
        """The rounds at which a change was noticed."""
        self.set_costs(costs)

    def set_costs(self, costs: Tensor) -> None:
        """Of announcing each class where each is true, from now on."""
        least, most = float(costs.min()), float(costs.max())
        self._share = ((costs - least) / (most - least or 1.0)).tolist()
        self._least, self._unit = least, most - least or 1.0

    def add_class(self, costs: Tensor, start: float) -> None:
        """Take on one more announcement, with the costs that there are now."""
        self.evidence.add_class()
        self._made.append(0)
        self._left.append(start)
        self.set_costs(costs)

    def check(self, announced: int) -> Check:
        """How far an announcement has been checked."""
        return Check(self._made[announced], self._left[announced], self.evidence.is_suspect(announced))

    def count_announcement(self, announced: int, probability: float) -> None:
        """An announcement has been made, or asked about, with a probability of the latter.

        Checks are evenly spaced along the probabilities, from a random start: each has the chance it is said to have,
        and no announcement goes long without one.
        """
        self._made[announced] += 1
        left = self._left[announced] - probability
        self._left[announced] = left if left > 0 else left + 1

    def announce(self, rule: PurchaseRule, first_rates: Sequence[float], said: Sequence[int]) -> list[float]:
        """Make the first rows' announcements up to one that is to be checked: the rates of checks of those made.

        `first_rates` are what these would be had nothing been announced before; there may be more of them.
        """
        made, all_left, wealth, check_rate = self._made, self._left, self.evidence.wealth, rule.check_rate
        rates: list[float] = []
        for one, first in zip(said, first_rates, strict=False):
            rate = check_rate(first, made[one], wealth[one] > SURPRISE)
            left = all_left[one] - rate
            if left <= 0:
                break
            all_left[one] = left
            made[one] += 1
            rates.append(rate)
        return rates

    def detect_change(self, question: OpenQuestion, y: int, clock: int) -> tuple[list[int], int] | None:
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
