"""Estimates of how an agent is doing, without the bias of the questions it chose.

Labels come for the observations that the agent asked about, which are the hard ones: their share of right predictions
says little about the announcements. What is left to chance says more. A question that was asked with probability p < 1
stands for (1 - p) / p announcements of its kind (Horvitz and Thompson, 1952, "A generalization of sampling without
replacement from a finite universe"), and one that was certain to be asked for none.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sparingly.games import Game
from sparingly.live.statistics.ticket_counts import ANNOUNCED, DRAWN, TicketCounts, TicketGroup, merged
from sparingly.live.tickets.ticket_records import (
    ANSWERED,
    CONSULTING,
    HELD,
    OPEN,
    SKIPPED,
    UNKNOWN,
    WITHDRAWN,
    Statistics,
)

ENOUGH = 30
"""So many questions left to chance, and the classes' shares are taken from them rather than from the predictions."""


def statistics(ticket_counts: TicketCounts, game: Game, called: Mapping[str, float] | None = None) -> Statistics:
    """How the agent has done up to now; `called` is what experts that were called have cost, by name."""
    groups = ticket_counts.total()
    summary = _summary(groups, _drawn_share(groups), game)
    return replace(summary, taught=ticket_counts.taught, bill=_bill(groups, game, called or {}))


def _bill(groups: Iterable[TicketGroup], game: Game, called: Mapping[str, float]) -> dict[str, float]:
    """What each expert with a name has cost: those who were called, and people by the questions they were asked."""
    bill = {expert.name: called.get(expert.name, 0.0) for expert in game.experts}
    for group in groups:
        expert = game.expert(group.action)
        if expert is not None and group.asks and group.status != WITHDRAWN:
            bill[expert.name] += group.number * expert.price
    return bill


def over_time(ticket_counts: TicketCounts, game: Game, points: int = 50) -> list[Statistics]:
    """Statistics after each of so many parts of an agent's life: of all up to there, the accuracy of that part."""
    parts = ticket_counts.parts(points)
    rate = _drawn_share(group for part in parts for group in part)
    so_far: list[TicketGroup] = []
    summaries = []
    for part in parts:
        so_far = merged([*so_far, *part])
        summaries.append(_with_accuracy_of(_summary(so_far, rate, game), _summary(part, rate, game)))
    return summaries


def _drawn_share(groups: Iterable[TicketGroup]) -> float:
    """The share of random questions where the strategy does not tell the chance of each."""
    counts: Counter[str] = Counter()
    for group in groups:
        counts[group.chance] += group.number
    drawn, announced = counts[DRAWN], counts[ANNOUNCED]
    return drawn / (drawn + announced) if drawn + announced else 1.0


@dataclass
class _Sample:
    """Sums over the questions that were left to chance."""

    weight: float = 0.0
    squares: float = 0.0
    right: float = 0.0
    cost: float = 0.0
    shares: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    """How many observations each class stands for."""

    @property
    def size(self) -> float:
        return self.weight**2 / self.squares if self.squares else 0.0


def _summary(rows: Sequence[TicketGroup], rate: float, game: Game) -> Statistics:
    sample = _sample(rows, rate, game)
    status: Counter[str] = Counter()
    for row in rows:
        status[row.status] += row.number
    observations = sum(row.number for row in rows)
    asked = [row for row in rows if row.asks and row.status != WITHDRAWN]
    announced = sum(row.number for row in rows if not row.asks and row.status not in (CONSULTING, HELD))
    prices = game.costs.max(axis=1)
    questions_cost = float(sum(row.number * prices[row.action] for row in asked) + sum(row.paid for row in rows))
    errors_cost = sample.cost / sample.weight * announced if sample.weight else (None if announced else 0.0)
    right = sample.right / sample.weight if sample.weight else None
    low, high = wilson(right, sample.size) if right is not None else (None, None)
    return Statistics(
        observations=observations,
        questions=sum(row.number for row in rows if row.asks),
        answered=status[ANSWERED],
        open=status[OPEN],
        skipped=status[SKIPPED],
        unknown=status[UNKNOWN],
        withdrawn=status[WITHDRAWN],
        cost=None if errors_cost is None else questions_cost + errors_cost,
        questions_cost=questions_cost,
        errors_cost=errors_cost,
        accuracy=right,
        accuracy_low=low,
        accuracy_high=high,
        sample=sample.size,
        always_asking=observations * _price_of_asking(game),
        never_asking=_never_asking(rows, sample, game, observations),
        at=max((row.at for row in rows), default=None),
        held=status[HELD],
        consulting=status[CONSULTING],
    )


def _price_of_asking(game: Game) -> float:
    """Of whoever knows the truth, where some of those who can be asked may be wrong."""
    if game.noisy_experts and game.labelling_action is not None:
        return float(game.costs[game.labelling_action].max())
    return float(min(game.costs[a].max() for a in range(game.n_actions) if game.informative_mask[a]))


def _sample(rows: Iterable[TicketGroup], rate: float, game: Game) -> _Sample:
    sample = _Sample()
    for row in rows:
        weight, squares, stands_for = row.weight, row.squares, row.stands_for
        if row.chance == DRAWN and row.asks and row.status == ANSWERED:
            each = (1 - rate) / rate
            weight, squares, stands_for = row.number * each, row.number * each * each, row.number / rate
        if row.label is None or not stands_for:
            continue
        sample.shares[row.label] += stands_for
        sample.weight += weight
        sample.squares += squares
        sample.right += weight * (row.prediction == row.label)
        sample.cost += weight * float(game.costs[row.prediction, row.label])
    return sample


def _never_asking(rows: Sequence[TicketGroup], sample: _Sample, game: Game, observations: int) -> float | None:
    """The cost of the cheapest constant announcement.

    By the questions left to chance; by all labels and predictions while there are too few of them; None while there is
    no label at all.
    """
    if observations and all(row.label is None for row in rows):
        return None
    shares: NDArray[np.float64] = np.zeros(game.n_outcomes)
    if sample.size >= ENOUGH:
        for label, share in sample.shares.items():
            shares[label] = share
    else:
        for row in rows:
            shares[row.prediction if row.label is None else row.label] += row.number
    total = shares.sum()
    constant = game.costs[: game.n_outcomes] @ shares
    return float(constant.min() / total * observations) if total else 0.0


def wilson(share: float, size: float, z: float = 1.96) -> tuple[float, float]:
    """Wilson's 95 % interval for a share seen in a sample.

    >>> low, high = wilson(0.9, 100)
    >>> round(low, 3), round(high, 3)
    (0.826, 0.945)
    """
    middle = (share + z * z / (2 * size)) / (1 + z * z / size)
    half = z / (1 + z * z / size) * math.sqrt(share * (1 - share) / size + z * z / (4 * size * size))
    return max(0.0, middle - half), min(1.0, middle + half)


def _with_accuracy_of(so_far: Statistics, part: Statistics) -> Statistics:
    values = dict(so_far)
    for name in ("accuracy", "accuracy_low", "accuracy_high", "sample"):
        values[name] = part[name]
    return Statistics(**values)
