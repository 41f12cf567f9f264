"""How an agent is doing, estimated honestly.

Labels come for the observations that the agent asked about, which are the hard ones: their share of right predictions
says little about the announcements. What is left to chance says more. A question that was asked with probability p < 1
stands for (1 - p) / p announcements of its kind (Horvitz and Thompson, 1952, "A generalization of sampling without
replacement from a finite universe"), and one that was certain to be asked for none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Double, and_, case, cast, func, literal, select
from sqlalchemy.sql.elements import ColumnElement

from sparingly.games import Game
from sparingly.live.records import ANSWERED, OPEN, SKIPPED, UNKNOWN, WITHDRAWN, Statistics
from sparingly.live.tables import tickets

ENOUGH = 30
"""So many questions left to chance, and the classes' shares are taken from them rather than from the predictions."""


def statistics(connection: Connection, game: Game) -> Statistics:
    """How the agent has done up to now."""
    return _summary(_groups(connection, literal(0)), game)


def over_time(connection: Connection, game: Game, points: int = 50) -> list[Statistics]:
    """The same after each of so many parts of its life: everything up to there, and the accuracy of that part."""
    head = connection.execute(select(func.max(tickets.c.seq))).scalar() or 0
    length = max(1, math.ceil(head / points))
    groups = _groups(connection, (tickets.c.seq - 1) // length)
    parts = sorted({row.part for row in groups})
    so_far: list[Any] = []
    told = []
    for one in parts:
        own = [row for row in groups if row.part == one]
        so_far += own
        told.append(_with_accuracy_of(_summary(so_far, game), _summary(own, game)))
    return told


def _groups(connection: Connection, part: ColumnElement[Any]) -> Sequence[Any]:
    """Counts and weights of all tickets, summed by what they have in common."""
    t = tickets.c
    chance = case((t.chance.is_not(None), t.chance), (t.audit, _audit_rate(connection)), (t.asks, 1.0), else_=None)
    labelled = and_(t.asks, t.status == ANSWERED, t.label.is_not(None), chance > 0)
    weight = cast(case((labelled, (1.0 - chance) / chance), else_=0.0), Double)
    stands_for = cast(case((labelled, 1.0 / chance), else_=0.0), Double)
    one = select(
        part.label("part"),
        *(t.status, t.asks, t.action, t.prediction, t.label, t.at),
        weight.label("weight"),
        stands_for.label("stands_for"),
    ).subquery()
    keys = [one.c.part, one.c.status, one.c.asks, one.c.action, one.c.prediction, one.c.label]
    sums = [
        func.count().label("count"),
        func.sum(one.c.weight).label("weight"),
        func.sum(one.c.weight * one.c.weight).label("squares"),
        func.sum(one.c.stands_for).label("stands_for"),
        func.max(one.c.at).label("at"),
    ]
    return connection.execute(select(*keys, *sums).group_by(*keys)).all()


def _audit_rate(connection: Connection) -> float:
    """The share of random questions where the strategy does not tell the chance of each."""
    t = tickets.c
    counts = select(func.count().filter(and_(t.audit, t.wanted)), func.count().filter(~t.wanted)).where(
        t.chance.is_(None)
    )
    drawn, announced = connection.execute(counts).one()
    return drawn / (drawn + announced) if drawn + announced else 1.0


@dataclass
class _Sample:
    """Sums over the questions that were left to chance."""

    weight: float = 0.0
    squares: float = 0.0
    right: float = 0.0
    cost: float = 0.0
    shares: Counter[int] = field(default_factory=Counter)
    """How many observations each class stands for."""

    @property
    def size(self) -> float:
        return self.weight**2 / self.squares if self.squares else 0.0


def _summary(groups: Iterable[Any], game: Game) -> Statistics:
    rows = list(groups)
    sample = _sample(rows, game)
    status: Counter[str] = Counter()
    for row in rows:
        status[row.status] += row.count
    observations = sum(row.count for row in rows)
    asked = [row for row in rows if row.asks and row.status != WITHDRAWN]
    announced = sum(row.count for row in rows if not row.asks)
    prices = game.costs.max(axis=1)
    questions_cost = float(sum(row.count * prices[row.action] for row in asked))
    errors_cost = sample.cost / sample.weight * announced if sample.weight else (None if announced else 0.0)
    right = sample.right / sample.weight if sample.weight else None
    low, high = _wilson(right, sample.size) if right is not None else (None, None)
    return Statistics(
        observations=observations,
        questions=sum(row.count for row in rows if row.asks),
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
        always_asking=observations * float(min(prices[a] for a in range(game.n_actions) if game.informative_mask[a])),
        never_asking=_never_asking(rows, sample, game, observations),
        at=max((row.at for row in rows), default=None),
    )


def _sample(rows: Iterable[Any], game: Game) -> _Sample:
    sample = _Sample()
    for row in rows:
        if row.label is None or not row.stands_for:
            continue
        sample.shares[row.label] += row.stands_for
        sample.weight += row.weight
        sample.squares += row.squares
        sample.right += row.weight * (row.prediction == row.label)
        sample.cost += row.weight * float(game.costs[row.prediction, row.label])
    return sample


def _never_asking(rows: Sequence[Any], sample: _Sample, game: Game, observations: int) -> float:
    """The cost of the cheapest constant announcement: by the honest sample, or by labels and predictions until then."""
    shares: NDArray[np.float64] = np.zeros(game.n_outcomes)
    if sample.size >= ENOUGH:
        for label, share in sample.shares.items():
            shares[label] = share
    else:
        for row in rows:
            shares[row.prediction if row.label is None else row.label] += row.count
    total = shares.sum()
    constant = game.costs[: game.n_outcomes] @ shares
    return float(constant.min() / total * observations) if total else 0.0


def _wilson(share: float, size: float, z: float = 1.96) -> tuple[float, float]:
    """Wilson's 95 % interval for a share seen in a sample.

    >>> low, high = _wilson(0.9, 100)
    >>> round(low, 3), round(high, 3)
    (0.826, 0.945)
    """
    middle = (share + z * z / (2 * size)) / (1 + z * z / size)
    half = z / (1 + z * z / size) * math.sqrt(share * (1 - share) / size + z * z / (4 * size * size))
    return max(0.0, middle - half), min(1.0, middle + half)


def _with_accuracy_of(so_far: Statistics, part: Statistics) -> Statistics:
    told = dict(so_far)
    for name in ("accuracy", "accuracy_low", "accuracy_high", "sample"):
        told[name] = part[name]
    return Statistics(**told)
