"""Survivors of any game by linear programs that are solved once and then remembered by what they prove."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from sparingly.games.elimination import CONTRADICTION, Survivors
from sparingly.games.linear_programs import TOLERANCE, Matrix, Slack, largest_slack
from sparingly.games.pairs import Pair


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
