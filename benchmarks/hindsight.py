"""The line that `sparing` is held against: label the first n, train scikit-learn once, and stop; n by hindsight.

The learner (a forest, boosted trees, a network of 100) and n are the best of that very stream, chosen afterwards.
No label at all, announcing the class that turned out to be the commonest, is one of the choices, and so are all labels.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import sparingly as sp
from sparingly.experiments.streams import Stream
from sparingly.strategies import registered

SIZES = (50, 100, 200, 400, 800, 1600, 3200, 10_000, 30_000)
LEARNERS = ("forest", "boosting", "mlp")
WIDEST_FOR_BOOSTING = 256
"""Features beyond which boosted trees, which lose there, would take most of the time."""
NETWORK = (200, 3200)
"""The fewest labels a network is tried with, and the most."""
SCORED = 100_000
"""At most so many rounds, evenly spaced, are looked at to see how often a learner errs in those after its labels."""


def most_labels(horizon: int, price: float) -> int:
    """The largest n that is tried.

    >>> most_labels(1000, 1.0), most_labels(10_000, 1.0), most_labels(10_000, 0.1), most_labels(581_012, 1.0)
    (500, 800, 3200, 30000)
    """
    if horizon > 10_000:
        return max(size for size in SIZES if size <= horizon // 10)
    return min(800 if price >= 1 else 3200, horizon // 2)


def least_labels(horizon: int) -> int:
    """The smallest n that is tried: fewer labels than one in a thousand rounds have never been the best."""
    return horizon // 1000


def line(
    rounds: Stream, n_classes: int, *, seed: int, price: float = 1.0, learners: tuple[str, ...] = LEARNERS
) -> dict[str, Any]:
    """What the best n and learner cost where a mistake costs 1, and what each of those tried costs."""
    horizon = len(rounds.y)
    tried = {"commonest 0": float(horizon - np.bincount(rounds.y).max()), f"everything {horizon}": horizon * price}
    for n, learner in itertools.product(SIZES, learners):
        if least_labels(horizon) <= n <= most_labels(horizon, price) and _is_tried(n, learner, rounds.X.shape[1]):
            tried[f"{learner} {n}"] = round(n * price + _mistakes(rounds, n_classes, n, learner, seed), 3)
    best = min(tried, key=lambda one: tried[one])
    return {"cost": tried[best], "asked": int(best.split()[1]), "learner": best.split()[0], "tried": tried}


def _is_tried(n: int, learner: str, width: int) -> bool:
    if learner == "boosting":
        return width <= WIDEST_FOR_BOOSTING
    return learner != "mlp" or NETWORK[0] <= n <= NETWORK[1]


def _mistakes(rounds: Stream, n_classes: int, n: int, learner: str, seed: int) -> float:
    game = sp.label_efficient(n_classes)
    strategy = registered()["explore_then_commit"](game, rounds.X.shape[1], n=n, learner=learner, seed=seed)
    for _ in sp.play(strategy, game, zip(rounds.X[:n], rounds.answers[:n].tolist(), strict=True)):
        pass
    left = len(rounds.y) - n
    scored = n + np.linspace(0, left - 1, min(left, SCORED)).round().astype(np.int64)
    return left * float((strategy.scores(rounds.X[scored]).argmax(1) != rounds.y[scored]).mean())
