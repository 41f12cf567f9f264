"""When one can stop asking: what the next questions will save, and what it would cost to ask none until tomorrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sparingly.live.tickets.ticket_records import Outlook
from sparingly.strategies.forecast import Forecast

QUESTIONS = 100
LEAST_SECONDS = 600.0
"""A stream that has been seen for less says nothing of a day."""
DAY = 86400.0


def outlook(forecast: Forecast | None, recent: Sequence[tuple[float, bool]]) -> Outlook | None:
    """What is to be expected, from the last tickets' times and whether each was asked, oldest first.

    >>> forecast = Forecast(labels=200, slope=0.02, error=0.005, spread=0.001, risk=0.3, price=0.5, rounds=5000)
    >>> found = outlook(forecast, [(10.0 * i, i % 10 == 0) for i in range(1000)])
    >>> [round(one) for one in (found.saves, found.price, found.per_day, found.stopping_costs, found.stopping_saves)]
    [71, 50, 8640, 442, 432]
    """
    if forecast is None:
        return None
    saves, low, high = forecast.total(QUESTIONS)
    savings = Outlook(QUESTIONS, QUESTIONS * forecast.price, forecast.rounds, saves, low, high)
    span = recent[-1][0] - recent[0][0] if len(recent) > 1 else 0.0
    if span < LEAST_SECONDS:
        return savings
    per_day = (len(recent) - 1) / span * DAY
    questions = per_day * sum(asks for _, asks in recent) / len(recent)
    mean, low, high = forecast.while_asking(questions, per_day)
    until_then = replace(savings, per_day=per_day, stopping_costs=mean, stopping_low=low, stopping_high=high)
    return replace(until_then, stopping_saves=questions * forecast.price)
