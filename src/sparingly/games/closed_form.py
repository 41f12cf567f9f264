"""Label-efficient games whose error cost depends on the true class alone: their cells need no linear program.

Let announcing any class but the true one y cost a_y more than announcing y, and let u_y = a_y p_y. Then announcing i is
no worse than announcing j where u_i >= u_j. If asking costs q_y more than announcing y, and s_y = 1 - q_y / a_y, then
asking is no worse than announcing i where s . u >= u_i. All of what follows is about these inequalities over u >= 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from sparingly.games.cells import Cells
from sparingly.games.game import Game
from sparingly.games.linear_programs import TOLERANCE, Matrix
from sparingly.games.pairs import Pair, PairMapping, every_pair


def label_cells(game: Game) -> Cells | None:
    """Return the cells in closed form, None for games that have none here.

    >>> from sparingly.games.ready_games import label_efficient
    >>> label_cells(label_efficient(costs=[[0, 1], [0.5, 0]])).error_costs.tolist()
    [0.5, 1.0]
    >>> label_cells(label_efficient(3, query_cost=0.4)).neighbors
    ((0, 3), (1, 3), (2, 3))
    """
    errors = _errors_by_class(game)
    if errors is None:
        return None
    n_classes = game.n_outcomes
    shares = 1.0 - (game.costs[n_classes:] - np.diag(game.costs[:n_classes])) / errors
    gains = np.maximum(0.0, shares).sum(axis=1)
    best = int(np.argmax(shares.sum(axis=1)))
    twin = (np.abs(shares - shares[best]) <= TOLERANCE).all(axis=1)
    # Asking is somewhere no worse than any announcement if and only if its gain is 1 or more: put the u_y equal
    # where s_y is positive, and 0 elsewhere.
    useless = (gains < 1.0 - TOLERANCE) | (shares < shares[best] - TOLERANCE).all(axis=1)
    if not (useless | twin).all():
        return None
    experts = tuple((n_classes + np.flatnonzero(twin)).tolist())
    others = tuple((n_classes + np.flatnonzero(~twin)).tolist())
    if shares[best].min() >= 1.0 - TOLERANCE:
        return _always_asking(shares[best], experts, others)
    if shares[best].max() >= 1.0 - TOLERANCE:
        return None
    if gains[best] <= 1.0 + TOLERANCE:
        return _announcing(errors, shares[best], experts, others)
    return _asking(shares[best], experts, others)


def _errors_by_class(game: Game) -> Matrix | None:
    """Return a, [class], if errors cost by true class alone, and always more than no error."""
    if not game.is_label_efficient:
        return None
    n_classes = game.n_outcomes
    excess = game.costs - np.diag(game.costs[:n_classes])
    errors = excess[:n_classes].T[~np.eye(n_classes, dtype=bool)].reshape(n_classes, n_classes - 1)
    scale = TOLERANCE * np.abs(excess[:n_classes]).max()
    by_class: Matrix = errors.mean(axis=1)
    return by_class if np.ptp(errors, axis=1).max() <= scale < by_class.min() else None


def _announcing(errors: Matrix, share: Matrix, experts: tuple[int, ...], others: tuple[int, ...]) -> Cells:
    """Every pair of classes is a pair of neighbors: asking is never cheaper than the best announcement.

    It is as cheap, and so degenerate, if its gain is 1; and so for all of a common cell, if s mixes two classes.
    """
    classes = tuple(range(len(errors)))
    is_degenerate = np.maximum(0.0, share).sum() >= 1.0 - TOLERANCE
    mixed = tuple(np.flatnonzero(np.abs(share) > TOLERANCE).tolist())
    joined = {mixed: mixed + experts} if is_degenerate and len(mixed) == 2 and share.min() >= -TOLERANCE else {}
    neighbors = every_pair(classes)
    return Cells(
        pareto=classes,
        degenerate=experts if is_degenerate else (),
        dominated=others if is_degenerate else tuple(sorted(experts + others)),
        neighbors=neighbors,
        neighborhood=PairMapping(neighbors, partial(_class_neighborhood, joined)),
        error_costs=errors,
    )


def _always_asking(share: Matrix, experts: tuple[int, ...], others: tuple[int, ...]) -> Cells:
    """Asking costs no more than even the right announcement; a class that costs as little ties where it is certain."""
    ties = share <= 1.0 + TOLERANCE
    dominated = tuple(np.flatnonzero(~ties).tolist()) + others
    return Cells(experts, tuple(np.flatnonzero(ties).tolist()), dominated, (), {})


def _asking(share: Matrix, experts: tuple[int, ...], others: tuple[int, ...]) -> Cells:
    """Asking is the cheapest action somewhere, and so is each announcement.

    Classes i and j are neighbors if u_i = u_j = 1 leaves s . u < 1 for some u below 1 elsewhere, and a class and the
    expert are if u_i = 1 leaves s . u = 1; both only need the positive and negative parts of s.
    """
    classes = tuple(range(len(share)))
    gain, room = np.maximum(0.0, share), 1.0 - np.minimum(0.0, share).sum() - TOLERANCE
    asked = np.flatnonzero(gain.sum() + np.minimum(0.0, share) > 1.0 + TOLERANCE).tolist()
    ordered = np.sort(gain)
    every, some = ordered[-2:].sum() < room, ordered[:2].sum() < room
    neighbors: Sequence[Pair]
    if every and len(asked) == len(classes) and len(experts) == 1:
        neighbors = every_pair(classes + experts)
    else:
        close = np.argwhere(np.triu(gain[:, None] + gain < room, k=1)).tolist() if some else []
        neighbors = tuple(sorted([(i, j) for i, j in close] + [(i, e) for i in asked for e in experts]))
    alone = len(experts) == 1 and not some and len(asked) == len(classes) and share.min() >= 0.0
    return Cells(
        pareto=classes + experts,
        degenerate=(),
        dominated=others,
        neighbors=neighbors,
        neighborhood=PairMapping(neighbors, partial(_expert_neighborhood, experts)),
        expert=experts[0] if alone else None,
    )


def _class_neighborhood(joined: Mapping[Pair, tuple[int, ...]], pair: Pair) -> tuple[int, ...]:
    return joined.get(pair, pair)


def _expert_neighborhood(experts: tuple[int, ...], pair: Pair) -> tuple[int, ...]:
    return (pair[0], *experts) if pair[1] in experts else pair
