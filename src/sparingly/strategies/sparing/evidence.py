"""The evidence that announcements have gone wrong: the guard against confident ignorance and against change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SURPRISE = 3.0
"""Wealth against an announcement above which it is checked."""


class Evidence:
    """A bet, for each announcement, that it has become worthless; its wealth is the evidence of a change.

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

    def against(self, announced: int) -> bool:
        """Whether an announcement is under suspicion."""
        return self.wealth[announced] > SURPRISE

    def reset(self, classes: list[int]) -> None:
        """Begin anew with some announcements."""
        for announced in classes:
            self.wealth[announced] = 1.0

    def state_dict(self) -> dict[str, Any]:
        return {"wealth": list(self.wealth), "since": list(self.since), "instead": [list(one) for one in self.instead]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.wealth = [float(w) for w in state["wealth"]]
        self.since = [int(t) for t in state["since"]]
        self.instead = [[int(y) for y in one] for one in state["instead"]]
