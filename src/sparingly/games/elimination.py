"""Which actions and pairs survive once some cost differences have a confident sign.

In closed form where the game has one; else by linear programs that are solved once and remembered by what they prove.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparingly.games.linear_programs import TOLERANCE, Matrix, Slack, largest_slack
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


CONTRADICTION = Survivors((), ())


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
        return CONTRADICTION
    actions = tuple(i for i in range(n_classes) if not above[i])
    return Survivors(actions, every_pair(actions))


def restrict_by_expert(n_classes: int, expert: int, better: Iterable[Pair]) -> Survivors:
    """Return the survivors for pairs (worse, better) of a class and the expert, its only neighbor, in closed form.

    With u and s as in `sparingly.games.cells`, no two classes can both be cheaper than asking, since then
    s_i + s_j >= 1. A class that is leaves nothing else; without one, only the classes dearer than asking are out.

    >>> restrict_by_expert(3, 3, [(1, 3)])
    Survivors(actions=(0, 2, 3), pairs=((0, 3), (2, 3)))
    """
    pairs = list(better)
    cheaper = {j for i, j in pairs if i == expert}
    dearer = {i for i, j in pairs if j == expert}
    if len(cheaper) > 1 or cheaper & dearer:
        return CONTRADICTION
    if cheaper:
        return Survivors(tuple(cheaper), ())
    classes = tuple(i for i in range(n_classes) if i not in dearer)
    return Survivors((*classes, expert), tuple((i, expert) for i in classes))


def restrict_classes_matrix(signs: NDArray[np.int8]) -> Survivors:
    """Return the same for a matrix of signs, [class, class]: +1 at (i, j) says j is higher, -1 that i is.

    A pair may be stated on either side of the diagonal or on both.

    >>> restrict_classes_matrix(np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]], dtype=np.int8))
    Survivors(actions=(1, 2), pairs=((1, 2),))
    """
    up, down = signs > 0, signs < 0
    above = up.sum(axis=1, dtype=np.int32) + down.sum(axis=0, dtype=np.int32)
    # A transitive order has fewer above along every edge, which proves at once that there is no cycle.
    fewer = above[:, None] > above[None, :]
    if (up > fewer).any() or (down & (above[:, None] >= above[None, :])).any():
        from scipy.sparse.csgraph import connected_components  # needed seldom, and slow to import

        components, _ = connected_components(up | down.T, directed=True, connection="strong")
        if components < len(signs) or signs.diagonal().any():
            return CONTRADICTION
    actions = tuple(np.flatnonzero(above == 0).tolist())
    return Survivors(actions, every_pair(actions))


class CellElimination:
    """Which cells and common cells meet D(t), the part of the simplex where given actions are worse than others.

    D(t) is convex and open in the simplex. So the cells that meet it hang together by common cells that meet it,
    and a search from one cell over its neighbors finds them all.

    A set of signs is a set of bits, one for each ordered pair (worse, better). A linear program that succeeds leaves
    a distribution, a *witness*: it answers for every set of signs that holds there. One that fails leaves the signs
    that bind, a *refutation*: it answers for every set of signs that contains them. So most questions of a stream
    need no linear program.
    """

    _KEPT = 50_000

    def __init__(self, rows: Matrix, pareto: Sequence[int], neighbors: Iterable[Pair]) -> None:
        self._rows = rows
        self._pareto = tuple(pareto)
        self._neighbors: dict[int, list[int]] = {i: [] for i in self._pareto}
        self._common: dict[Pair, _Evidence] = {}
        for i, j in neighbors:
            self._neighbors[i].append(j)
            self._neighbors[j].append(i)
            self._common[i, j] = _Evidence()
        self._simplex = _Evidence()
        self._found: dict[int, Survivors] = {}
        gaps = np.abs(rows[:, None, :] - rows[None, :, :]).max(axis=2)
        self._scale = np.where(gaps > TOLERANCE, gaps, np.inf)

    def restrict(self, better: Iterable[Pair]) -> Survivors:
        """Return the survivors for pairs (worse, better) of actions: (c_worse - c_better) p > 0."""
        pairs = sorted(set(better))
        key = sum(self._bit(pair) for pair in pairs)
        if key not in self._found:
            if len(self._found) >= self._KEPT:
                self._found.clear()
            self._found[key] = self._search(pairs, key)
        return self._found[key]

    def _search(self, better: list[Pair], key: int) -> Survivors:
        if any(np.isinf(self._scale[pair]) for pair in better):
            return CONTRADICTION
        point = self._witness(self._simplex, better, key, None)
        if point is None:
            return CONTRADICTION
        expected = self._rows @ point
        best = expected[list(self._pareto)].min()
        worse = {i for i, _ in better}
        alive = {i for i in self._pareto if expected[i] <= best + TOLERANCE and i not in worse}
        return self._spread(alive, worse, better, key)

    def _spread(self, alive: set[int], worse: set[int], better: list[Pair], key: int) -> Survivors:
        meets: dict[Pair, bool] = {}
        waiting = list(alive)
        while waiting:
            i = waiting.pop()
            for j in self._neighbors[i]:
                pair = (i, j) if i < j else (j, i)
                if j in worse or pair in meets:
                    continue
                meets[pair] = self._witness(self._common[pair], better, key, pair) is not None
                if meets[pair] and j not in alive:
                    alive.add(j)
                    waiting.append(j)
        return Survivors(tuple(sorted(alive)), tuple(sorted(pair for pair, met in meets.items() if met)))

    def _witness(self, evidence: _Evidence, better: list[Pair], key: int, pair: Pair | None) -> Matrix | None:
        """Return a distribution with all the signs (and in the pair's common cell), None if there is none."""
        point = evidence.witness(key)
        if point is not None or evidence.refutes(key):
            return point
        slack = self._largest_slack(better, pair)
        if slack.value <= TOLERANCE:
            evidence.add_refutation(sum(self._bit(better[k]) for k in slack.binding))
            return None
        evidence.add_witness(self._holding(slack.point) | key, slack.point)
        return slack.point

    def _largest_slack(self, better: list[Pair], pair: Pair | None) -> Slack:
        rows = self._rows
        nothing = np.empty((0, rows.shape[1]))
        strict = np.array([rows[i] - rows[j] for i, j in better]) if better else nothing
        if pair is None:
            return largest_slack(strict, nothing, nothing, interior=True)
        i, j = pair
        return largest_slack(strict, rows - rows[i], (rows[i] - rows[j])[None])

    def _holding(self, point: Matrix) -> int:
        """Return the bits of all pairs whose sign is strict at a distribution."""
        expected = self._rows @ point
        holds = (expected[:, None] - expected[None, :]) / self._scale > TOLERANCE
        return int.from_bytes(np.packbits(holds.ravel(), bitorder="little").tobytes(), "little")

    def _bit(self, pair: Pair) -> int:
        return 1 << (pair[0] * len(self._rows) + pair[1])


class _Evidence:
    """Witnesses and refutations of one part of the simplex, the latest found first."""

    _KEPT = 100

    def __init__(self) -> None:
        self._witnesses: list[tuple[int, Matrix]] = []
        self._refutations: list[int] = []

    def witness(self, key: int) -> Matrix | None:
        return next((point for holding, point in self._witnesses if key & holding == key), None)

    def refutes(self, key: int) -> bool:
        return any(key & binding == binding for binding in self._refutations)

    def add_witness(self, holding: int, point: Matrix) -> None:
        self._witnesses = [(holding, point), *self._witnesses[: self._KEPT - 1]]

    def add_refutation(self, binding: int) -> None:
        self._refutations = [binding, *self._refutations[: self._KEPT - 1]]
