"""When to train anew: as the labels grow, or the rounds, both by a factor."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from sparingly.strategies.strategy import NEVER

FIRST = 20
"""Labels before there is a model."""
GROWTH = 1.5
"""An update is due once the labels have grown by this factor ..."""
PACE = 1.6
"""... or the rounds by this one, if there is any new label."""


@dataclass(frozen=True, slots=True)
class RefitSchedule:
    """Updates far apart enough that all of them cost little more than the last.

    Attributes
    ----------
    labels, clock
        What there was at the last update; no label if some were forgotten since.

    Examples
    --------
    >>> schedule = RefitSchedule()
    >>> [schedule.after_label(n, clock=n, fitted=False) for n in (19, 20)]
    [False, True]
    >>> schedule = RefitSchedule(labels=20, clock=20)
    >>> [schedule.after_label(n, clock=30, fitted=True) for n in (29, 30)], schedule.rounds(21, clock=30)
    ([False, True], 2)
    """

    labels: int = 0
    clock: int = 0

    def after_label(self, labels: int, clock: int, fitted: bool) -> bool:
        """Whether the label that was just added brings an update: at once if the model knows forgotten ones."""
        if fitted and self.labels == 0:
            return True
        grown = labels >= max(self.labels + 1, GROWTH * self.labels)
        return labels >= FIRST and (grown or clock >= PACE * self.clock)

    def rounds(self, labels: int, clock: int) -> int:
        """After how many rounds an update is due."""
        if labels < FIRST or labels == self.labels:
            return NEVER
        return max(1, math.ceil(PACE * self.clock) - clock)

    def state_dict(self) -> dict[str, int]:
        return asdict(self)
