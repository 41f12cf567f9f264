"""Which actions and pairs survive once some cost differences have a confident sign."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components

from sparingly.games.linear import TOLERANCE, Matrix, largest_slack
from sparingly.games.pairs import Pair, every_pair

Signs = Mapping[Pair, int]


class Survivors(NamedTuple):
    """P(t) and N(t): the actions whose cells, and the pairs whose common cells, meet D(t).

    Both are empty if and only if the signs contradict each other, so that no distribution has them all.
    """

    actions: tuple[int, ...]
    pairs: Sequence[Pair]

    @property
    def contradiction(self) -> bool:
        """Whether no distribution over the outcomes has all the signs."""
        return not self.actions


NOTHING = Survivors((), ())


def survivors_by_score(scores: ArrayLike, width: ArrayLike) -> NDArray[np.bool_]:
    """Return the surviving classes, [block, class], for scores a_i p_i, [block, class], and widths, [block].

    One pass for label-efficient games in closed form when every pair has the same width: a class survives if no
    other exceeds it by more than the width.

    >>> survivors_by_score([[0.5, 0.3, 0.2], [0.9, 0.1, 0.0]], [0.2, 0.2]).tolist()
    [[True, True, False], [True, False, False]]
    """
    values = np.asarray(scores, dtype=np.float64)
    gap = values.max(axis=1, keepdims=True) - values
    return np.asarray(gap <= np.asarray(width, dtype=np.float64)[:, None])


def restrict_classes(n_classes: int, higher: Iterable[Pair]) -> Survivors:
    """Return the survivors among classes for edges (lower, higher), in closed form.

    An edge from i to j says a_j p_j > a_i p_i. A cycle is a contradiction; otherwise the classes with no edge upward
    survive, and all of their pairs: put them on top of a linear extension.

    >>> restrict_classes(3, [(0, 1)])
    Survivors(actions=(1, 2), pairs=((1, 2),))
    >>> restrict_classes(3, [(0, 1), (1, 2), (2, 0)]).contradiction
    True
    """
    above: list[list[int]] = [[] for _ in range(n_classes)]
    below = [0] * n_classes
    for low, high in higher:
        above[low].append(high)
        below[high] += 1
    ready = [i for i in range(n_classes) if not below[i]]
    sorted_out = 0
    while ready:
        sorted_out += 1
        for high in above[ready.pop()]:
            below[high] -= 1
            if not below[high]:
                ready.append(high)
    if sorted_out < n_classes:
        return NOTHING
    actions = tuple(i for i in range(n_classes) if not above[i])
    return Survivors(actions, every_pair(actions))


def restrict_classes_matrix(signs: NDArray[np.int8]) -> Survivors:
    """Return the same for an antisymmetric matrix of signs, [class, class], where +1 at (i, j) says j is higher."""
    upward = signs > 0
    degree = np.count_nonzero(upward, axis=1)
    # A transitive order loses degree along every edge, which proves at once that there is no cycle.
    if (upward & (degree[:, None] <= degree[None, :])).any():
        components, _ = connected_components(upward, directed=True, connection="strong")
        if components < len(signs):
            return NOTHING
    actions = tuple(np.flatnonzero(degree == 0).tolist())
    return Survivors(actions, every_pair(actions))


class CellElimination:
    """Survivors of any game by linear programs, remembered by the signs.

    The part of the simplex the signs leave, D(t), is convex and open in it. So the cells that meet it hang together
    by common cells that meet it, and a search from one cell over its neighbors finds them all.
    """

    def __init__(self, rows: Matrix, pareto: Sequence[int], neighbors: Iterable[Pair]) -> None:
        self._rows = rows
        self._pareto = tuple(pareto)
        self._neighbors: dict[int, list[int]] = {i: [] for i in self._pareto}
        for i, j in neighbors:
            self._neighbors[i].append(j)
            self._neighbors[j].append(i)
        self._found: dict[frozenset[Pair], Survivors] = {}

    def restrict(self, better: Iterable[Pair]) -> Survivors:
        """Return the survivors for pairs (worse, better) of actions: (c_worse - c_better) p > 0."""
        key = frozenset(better)
        if key not in self._found:
            self._found[key] = self._search(key)
        return self._found[key]

    def _search(self, better: frozenset[Pair]) -> Survivors:
        worse = {i for i, _ in better}
        strict = np.array([self._rows[i] - self._rows[j] for i, j in sorted(better)]).reshape(-1, self._rows.shape[1])
        if len(strict) and np.abs(strict).max(axis=1).min() <= TOLERANCE:
            return NOTHING
        nothing = np.empty((0, self._rows.shape[1]))
        slack = largest_slack(strict, nothing, nothing, interior=True)
        if slack.value <= TOLERANCE:
            return NOTHING
        expected = self._rows @ slack.point
        best = expected[list(self._pareto)].min()
        alive = {i for i in self._pareto if expected[i] <= best + TOLERANCE and i not in worse}
        return self._spread(alive, worse, strict)

    def _spread(self, alive: set[int], worse: set[int], strict: Matrix) -> Survivors:
        tested: dict[Pair, bool] = {}
        waiting = deque(sorted(alive))
        while waiting:
            i = waiting.popleft()
            for j in self._neighbors[i]:
                pair = (min(i, j), max(i, j))
                if j in worse or pair in tested:
                    continue
                tested[pair] = self._meets(pair, strict)
                if tested[pair] and j not in alive:
                    alive.add(j)
                    waiting.append(j)
        return Survivors(tuple(sorted(alive)), tuple(sorted(pair for pair, met in tested.items() if met)))

    def _meets(self, pair: Pair, strict: Matrix) -> bool:
        i, j = pair
        weak = self._rows - self._rows[i]
        return largest_slack(strict, weak, (self._rows[i] - self._rows[j])[None]).value > TOLERANCE
