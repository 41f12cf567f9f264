"""Label-efficient games whose error cost depends on the true class alone: their cells need no linear program."""

from __future__ import annotations

import numpy as np

from sparingly.games.game import Game
from sparingly.games.linear import TOLERANCE, Matrix


def error_costs(game: Game) -> Matrix | None:
    """Return a, [class], if every pair of classes is a neighbor pair in closed form, else None.

    That is so if announcing i costs a_y more than announcing the true class y, for every i != y, with all a_y > 0,
    and if asking is never the cheapest action. Then (c_i - c_j) p = a_j p_j - a_i p_i: the cell of class i is where
    a_i p_i is largest.

    >>> from sparingly.games.library import label_efficient
    >>> error_costs(label_efficient(costs=[[0, 1], [0.5, 0]])).tolist()
    [0.5, 1.0]
    >>> error_costs(label_efficient(2, query_cost=0.4)) is None
    True
    """
    if not game.is_label_efficient:
        return None
    costs, n_classes = game.costs, game.n_outcomes
    excess = costs - costs[np.arange(n_classes), np.arange(n_classes)]
    announce, ask = excess[:n_classes], excess[n_classes:]
    errors = announce.T[~np.eye(n_classes, dtype=bool)].reshape(n_classes, n_classes - 1)
    scale = np.abs(excess).max()
    by_class: Matrix = errors.mean(axis=1)
    if np.ptp(errors, axis=1).max() > TOLERANCE * scale or by_class.min() <= TOLERANCE * scale:
        return None
    # Asking is best where max a_i p_i <= sum_i (1 - q_i / a_i) a_i p_i, which has a solution if and only if the
    # positive factors sum to 1 or more (put all of a_i p_i equal there, and zero elsewhere).
    gain = np.maximum(0.0, 1.0 - ask / by_class).sum(axis=1)
    return by_class if (gain < 1.0 - TOLERANCE).all() else None
