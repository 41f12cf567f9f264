"""What asking on would save, as far as a strategy can tell: when one may stop."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Forecast:
    """How the cost of announcements falls with more labels.

    If it falls with the logarithm of their number, at the rate `slope`, then q more of n labels save
    slope log(1 + q / n) a round from then on. Each question also saves what announcing its observation would have cost.

    Attributes
    ----------
    labels
        How many there are now.
    slope, error
        What an e-fold of labels saves a round, and its standard error.
    spread
        The standard deviation of what a round costs with one trained model rather than with another.
    risk, price
        What announcing an observation that would be asked about is expected to cost, and what asking does.
    rounds
        How many rounds are expected to come.

    Examples
    --------
    >>> forecast = Forecast(labels=200, slope=0.02, error=0.005, spread=0.001, risk=0.3, price=0.5, rounds=5000)
    >>> [round(one, 4) for one in forecast.saving(100)]
    [0.0081, 0.0033, 0.013]
    >>> [round(one, 1) for one in forecast.total(100)]
    [70.5, 46.3, 94.8]
    """

    labels: int
    slope: float
    error: float
    spread: float
    risk: float
    price: float
    rounds: int

    def saving(self, questions: float) -> tuple[float, float, float]:
        """What a round costs less once so many more are answered, and a 95 % interval."""
        grown = math.log1p(questions / max(self.labels, 1))
        half = 1.96 * math.hypot(self.error * grown, self.spread * math.sqrt(2) * min(1.0, questions / 50))
        return self.slope * grown, self.slope * grown - half, self.slope * grown + half

    def total(self, questions: float, rounds: float | None = None) -> tuple[float, float, float]:
        """What so many questions, asked now, save in the rounds to come, and a 95 % interval; their price is extra."""
        to_come = self.rounds if rounds is None else rounds
        low, mean, high = (to_come * one + questions * self.risk for one in sorted(self.saving(questions)))
        return mean, low, high

    def while_asking(self, questions: float, rounds: float) -> tuple[float, float, float]:
        """What questions that are spread over so many rounds save in these rounds alone, and a 95 % interval."""
        steps = [self.saving(questions * (step + 0.5) / 20) for step in range(20)]
        mean, low, high = (sum(one) / 20 * rounds + questions * self.risk for one in zip(*steps, strict=True))
        return mean, low, high
