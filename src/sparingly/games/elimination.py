"""Which actions and pairs survive once some cost differences have a confident sign."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components

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

    With u and s as in `sparingly.games.closed_form`, no two classes can both be cheaper than asking, since then
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
        components, _ = connected_components(up | down.T, directed=True, connection="strong")
        if components < len(signs) or signs.diagonal().any():
            return CONTRADICTION
    actions = tuple(np.flatnonzero(above == 0).tolist())
    return Survivors(actions, every_pair(actions))
