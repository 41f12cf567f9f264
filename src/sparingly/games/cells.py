"""The cell decomposition of any finite game: whose cell is full, flat or empty, and which cells share a facet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparingly.games.linear_programs import TOLERANCE, Matrix, largest_slack
from sparingly.games.pairs import Pair

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
