"""The cell decomposition of any finite game: whose cell is full, flat or empty, and which cells share a facet.

The cells of label-efficient games whose error cost depends on the true class alone need no linear program
(`label_cells`). Let announcing any class but the true one y cost a_y more than announcing y, and let u_y = a_y p_y.
Then announcing i is no worse than announcing j where u_i >= u_j. If asking costs q_y more than announcing y, and
s_y = 1 - q_y / a_y, then asking is no worse than announcing i where s . u >= u_i. Everything in the closed form is
about these inequalities over u >= 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparingly.games.game import Game
from sparingly.games.linear_programs import TOLERANCE, Matrix, largest_slack
from sparingly.games.pairs import Pair, PairMapping, every_pair

# Differences of costs below this, relative to the largest cost, are what is left of rounding.
_ROUNDING = 1e-13


class Cells(NamedTuple):
    """Actions by the dimension of their cells, neighbor pairs with N+, and which closed form survivors have, if any."""

    pareto: tuple[int, ...]
    degenerate: tuple[int, ...]
    dominated: tuple[int, ...]
    neighbors: Sequence[Pair]
    neighborhood: Mapping[Pair, tuple[int, ...]]
    error_costs: Matrix | None = None
    """a, [class], if all Pareto-optimal actions announce, and classes survive by the order of a_i p_i."""
    expert: int | None = None
    """The one action that every class has for its only neighbor, so that classes survive by its signs."""


def normalised(costs: Matrix) -> Matrix:
    """Return costs with every outcome shifted and stretched to run from 0 to 1, or to 0 where no action matters.

    Stretching an outcome moves the cells by a projective map of the simplex onto itself: it changes no dimension and
    no containment, and makes one tolerance fit outcomes of different scales. Actions that another beats under every
    outcome do not count: a forbidding price must not make all else look alike.

    >>> normalised(np.array([[1e9, 5.0, 3.0], [3e9, 5.0, 2.0], [2e9, 5.0, 3.0]])).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.5, 0.0, 1.0]]
    """
    contenders = costs[~_beaten(costs)]
    # Halving is exact, and keeps the differences of very large costs finite.
    halvings = -np.frexp(np.abs(contenders).max())[1]
    lowest = np.ldexp(contenders.min(axis=0), halvings)
    unit = np.ldexp(costs, halvings) - lowest
    spread = np.ldexp(contenders.max(axis=0), halvings) - lowest
    spread = np.where(spread > _ROUNDING, spread, unit.max(axis=0))
    matters = spread > _ROUNDING
    result: Matrix = np.where(matters, unit / np.where(matters, spread, 1.0), 0.0)
    return result


def _beaten(costs: Matrix) -> NDArray[np.bool_]:
    """Return which actions cost more than some other one, whatever the outcome."""
    size = np.abs(costs)
    return np.array([((row - costs) > _ROUNDING * np.maximum(size, np.abs(row))).all(axis=1).any() for row in costs])


def decompose(costs: Matrix) -> Cells:
    """Return the cell decomposition of a game with these costs, [action, outcome].

    >>> cells = decompose(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]))
    >>> cells.pareto, cells.dominated, cells.neighborhood
    ((0, 1), (2,), {(0, 1): (0, 1)})
    """
    rows = normalised(costs)
    twins = _duplicates(rows)
    kinds = {first: _kind(rows, first) for first in set(twins)}
    by_kind = {kind: tuple(i for i, first in enumerate(twins) if kinds[first] == kind) for kind in _KINDS}
    neighborhood = {}
    for i, j in combinations(sorted(k for k in kinds if kinds[k] == "pareto"), 2):
        between = on_line(rows, i, j)
        if _share_facet(rows, i, j, between):
            for pair in _twin_pairs(twins, i, j):
                neighborhood[pair] = between
    ordered = {pair: neighborhood[pair] for pair in sorted(neighborhood)}
    return Cells(by_kind["pareto"], by_kind["degenerate"], by_kind["dominated"], tuple(ordered), ordered)


_KINDS = ("pareto", "degenerate", "dominated")


def _duplicates(rows: Matrix) -> list[int]:
    """Return for each action the first one with the same costs."""
    firsts: list[int] = []
    twins = []
    for i, row in enumerate(rows):
        same = [first for first in firsts if np.abs(rows[first] - row).max() <= TOLERANCE]
        if not same:
            firsts.append(i)
        twins.append(same[0] if same else i)
    return twins


def _kind(rows: Matrix, i: int) -> str:
    others = differing(rows, i)
    nothing = np.empty((0, rows.shape[1]))
    if largest_slack(others, nothing, nothing, interior=True).value > TOLERANCE:
        return "pareto"
    nonempty = largest_slack(others, nothing, nothing).value >= -TOLERANCE
    return "degenerate" if nonempty else "dominated"


def differing(rows: Matrix, i: int) -> Matrix:
    """Return c_k - c_i for every action k that is not a duplicate of i: its cell is where none is negative."""
    gaps = rows - rows[i]
    result: Matrix = gaps[np.abs(gaps).max(axis=1) > TOLERANCE]
    return result


def on_line(rows: Matrix, i: int, j: int) -> tuple[int, ...]:
    """Return the actions whose costs lie on the line through c_i and c_j: N+ if i and j are neighbors.

    The common cell of neighbors spans the hyperplane (c_i - c_j) p = 0, so another action is optimal on all of it
    if and only if c_k - c_i vanishes there, that is, if it is a multiple of c_i - c_j.
    """
    direction = rows[j] - rows[i]
    offset = rows - rows[i]
    along = offset @ direction / (direction @ direction)
    off = np.abs(offset - along[:, None] * direction).max(axis=1)
    return tuple(int(k) for k in np.flatnonzero(off <= TOLERANCE))


def _share_facet(rows: Matrix, i: int, j: int, between: tuple[int, ...]) -> bool:
    """Whether a point of the simplex's interior has i and j equally good and all actions off their line worse."""
    others = np.delete(rows, list(between), axis=0) - rows[i]
    nothing = np.empty((0, rows.shape[1]))
    return largest_slack(others, nothing, (rows[i] - rows[j])[None], interior=True).value > TOLERANCE


def _twin_pairs(twins: list[int], i: int, j: int) -> Iterator[Pair]:
    for a, first in enumerate(twins):
        for b, other in enumerate(twins):
            if first == i and other == j:
                yield min(a, b), max(a, b)


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
