"""What the next 100 questions save: the forecast of Sparing beside what asking on really saved on held-out rounds.

Orders with which nothing was chosen, and of `noisy` and `many` no other either. A forecast is made when there are so
many labels; the strategy goes on until it has bought 100 more, and both models are tried on observations that neither
has seen.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_classification

import sparingly as sp
from sparingly.strategies.strategy import Strategy

QUESTIONS, LABELS, ORDERS = 100, (100, 200, 400), (2001, 2002, 2003, 2004)


class Found(NamedTuple):
    """One forecast and what came: costs a round, saved by 100 questions."""

    data: str
    labels: int
    told: float
    low: float
    high: float
    came: float


def main(names: list[str] | None = None) -> None:
    """Print every forecast, and how often the interval held."""
    found = []
    for name in names or ["digits", "easy", "noisy", "many"]:
        for order in ORDERS:
            for one in forecasts(name, order):
                found.append(one)
                told = f"told {one.told:+.4f} ({one.low:+.4f} to {one.high:+.4f}), came {one.came:+.4f}"
                print(f"  {one.data:<8} {one.labels:>4} labels: {told}", flush=True)
    if found:
        within = np.mean([one.low <= one.came <= one.high for one in found])
        told, came = sum(one.told for one in found), sum(one.came for one in found)
        print(f"  {len(found)} forecasts: the interval held {within:.0%} of the time; told {told:.3f}, came {came:.3f}")


def forecasts(name: str, order: int) -> Iterator[Found]:
    """The forecasts on one stream, each with what came."""
    X, y = _data(name, order)
    held_out = len(X) // 3
    game = sp.label_efficient(int(y.max()) + 1, query_cost=0.3)
    strategy = sp.Sparing(game, X.shape[1], seed=order)
    waiting: list[tuple[int, Strategy]] = []
    marks = list(LABELS)
    for _ in sp.play(strategy, game, zip(X[held_out:], y[held_out:], strict=True)):
        if marks and strategy.n_labels >= marks[0]:
            waiting.append((marks.pop(0), _trained(strategy)))
        while waiting and strategy.n_labels >= waiting[0][0] + QUESTIONS:
            labels, before = waiting.pop(0)
            forecast = before.forecast()
            assert forecast is not None
            saved = _cost(before, X[:held_out], y[:held_out]) - _cost(_trained(strategy), X[:held_out], y[:held_out])
            yield Found(name, labels, *forecast.saving(QUESTIONS), saved)
        if not marks and not waiting:
            return


def _trained(strategy: Strategy) -> Strategy:
    """A copy that has learned from all its labels."""
    one = copy.deepcopy(strategy)
    one._update()
    return one


def _cost(strategy: Strategy, X: np.ndarray, y: np.ndarray) -> float:
    """What announcements cost a round."""
    held = strategy.probabilities(strategy.assess(X))
    announced = (held @ strategy.game.costs[: strategy.game.n_outcomes].T).argmin(1)
    return float(strategy.game.costs[announced, y].mean())


def _data(name: str, order: int) -> tuple[np.ndarray, np.ndarray]:
    made = {"n_samples": 9000, "n_features": 20, "n_informative": 10, "shuffle": False, "random_state": order}
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    elif name == "cancer":
        X, y = load_breast_cancer(return_X_y=True)
    elif name == "easy":
        X, y = make_classification(**made, n_classes=3, class_sep=1.5)
    elif name == "noisy":
        X, y = make_classification(**made, n_classes=2, flip_y=0.3)
    else:
        X, y = make_classification(**made, n_classes=10, n_clusters_per_class=1)
    shuffled = np.random.default_rng(order).permutation(len(X))
    return X[shuffled].astype(np.float32), y[shuffled]


if __name__ == "__main__":
    main(sys.argv[1:])
