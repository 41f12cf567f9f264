"""Elimination for a block of observations at once: which actions estimates and their widths leave at each of them.

A block has for each observation the feedback distributions pi of the informative actions, side by side, and a width w
for each informative action. A neighbor pair has the estimated gap delta = sum_a v_a pi_a and the width
z = sum_a |v_a| w_a; the pairs with |delta| > z (or >= z) are confident, and their signs leave P(t) and N(t).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sparingly.games.geometry import Geometry
from sparingly.games.linear_programs import Matrix

_MOST_REMEMBERED = 10_000
"""Candidates that are remembered by their signs; drawn widths can give new signs in every round."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """What is left to play at one observation.

    Attributes
    ----------
    survivors
        P(t), sorted.
    allowed
        P(t) and N+(t), sorted.
    observers
        V(t), sorted: allowed too where they are underplayed.
    contradiction
        Whether the confident signs excluded every distribution, so that everything was kept.
    """

    survivors: tuple[int, ...]
    allowed: tuple[int, ...]
    observers: tuple[int, ...]
    contradiction: bool = False


@dataclass(frozen=True, slots=True)
class BlockSurvivors:
    """A block of observations after elimination; every array has one entry an observation.

    Attributes
    ----------
    undecided
        Whether more than one action is left.
    cheapest
        The announcement of least estimated cost.
    gap, width
        Of the pair that is hardest to tell apart.
    candidates
        What is left to play at a row.
    """

    undecided: NDArray[np.bool_]
    cheapest: NDArray[np.int64]
    gap: Matrix
    width: Matrix
    candidates: Callable[[int], Candidates]


class BlockElimination:
    """Elimination for one game, in closed form where the game has one, else by its neighbor pairs.

    Parameters
    ----------
    geometry
        Of a game that is not hopeless.
    norm
        The norm of the observer vectors in the widths and in W: infinity or 2.
    confident
        Of a pair whose gap is "above" its width, or "reaches" it.
    contradiction
        What is kept where the signs exclude every distribution: the "pareto" actions, or "all" actions.
    """

    def __init__(
        self, geometry: Geometry, *, norm: float = math.inf, confident: str = "above", contradiction: str = "pareto"
    ) -> None:
        self.geometry, self.norm = geometry, norm
        self.confident, self.contradiction = confident, contradiction
        sizes = [len(geometry.game.symbols(a)) for a in geometry.informative]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
        self.n_symbols = sum(sizes)
        self.slices = {a: slice(starts[k], starts[k + 1]) for k, a in enumerate(geometry.informative)}
        self.starts = starts[:-1]
        """Where each informative action's symbols begin in the flattened distributions."""
        errors = _errors_with_one_expert(geometry) if self.n_symbols == geometry.game.n_outcomes else None
        self._by_class = None if errors is None else _ClassElimination(errors, norm, confident == "reaches")
        self.weights = self._by_pair.weights if self._by_class is None else self._by_class.weights
        """W_a, `[action]`: the largest norm of an action's observer vectors."""
        self._lift = _outcomes_from_symbols(geometry, self.weights)

    def outcomes(self, pi: Matrix) -> Matrix:
        """`[block, outcome]`: the outcome distributions that fit the flattened feedback distributions best."""
        return pi if self._lift is None else pi @ self._lift

    def restrict(self, pi: Matrix, w: Matrix, factor: Matrix | None = None) -> BlockSurvivors:
        """What is left for distributions `[block, symbols]` and widths `[block, informative]`.

        `factor`, `[block, pair]`, multiplies the width of each pair.
        """
        if self._by_class is not None and factor is None:
            return self._by_class.restrict(pi, w[:, 0])
        announcements = self._announcements
        cost = self.outcomes(pi) @ self.geometry.game.costs[announcements].T
        return self._by_pair.restrict(pi, w, factor, announcements[cost.argmin(1)])

    @cached_property
    def _by_pair(self) -> _PairElimination:
        kept = self.geometry.pareto if self.contradiction == "pareto" else range(self.geometry.game.n_actions)
        parts = self.geometry, self.norm, self.slices, self.n_symbols
        return _PairElimination(*parts, reaching=self.confident == "reaches", kept=tuple(kept))

    @cached_property
    def _announcements(self) -> NDArray[np.int64]:
        game = self.geometry.game
        return np.arange(game.n_outcomes) if game.is_label_efficient else np.array(self.geometry.pareto)


class _ClassElimination:
    """The closed form: one expert who is never the cheapest action, an error's cost given by the true class."""

    def __init__(self, errors: Matrix, norm: float, reaching: bool) -> None:
        self._errors, self._norm = errors, norm
        self._within = np.less if reaching else np.less_equal
        """A class survives while the others' leads are within the width."""
        self._uniform = bool(np.ptp(errors) == 0)
        self._order = np.argsort(errors, kind="stable")
        two = np.sort(errors)[-2:]
        self.weights = np.zeros(len(errors) + 1)
        self.weights[-1] = float(two[-1]) if norm == math.inf else float(np.linalg.norm(two, norm))

    def restrict(self, pi: Matrix, w: Matrix) -> BlockSurvivors:
        score, rows = pi * self._errors, np.arange(len(pi))
        cheapest = score.argmax(1)
        top = score[rows, cheapest]
        rest = score.copy()
        rest[rows, cheapest] = -np.inf
        second = rest.argmax(1)
        gap = top - rest[rows, second]
        width = w * self._pair_norm(self._errors[cheapest], self._errors[second])
        alive = self._alive(score, np.maximum(w, 0.0), top)
        if self._within is np.less:
            alive |= score == top[:, None]
        undecided = alive.sum(1) > 1
        observers = (len(self._errors),)

        def candidates(row: int) -> Candidates:
            if not undecided[row]:
                only = (int(cheapest[row]),)
                return Candidates(only, only, ())
            left = tuple(int(i) for i in alive[row].nonzero()[0])
            return Candidates(left, left, observers)

        return BlockSurvivors(undecided, cheapest, gap, width, candidates)

    def _pair_norm(self, one: Matrix, other: Matrix) -> Matrix:
        return np.maximum(one, other) if self._norm == math.inf else np.hypot(one, other)

    def _alive(self, score: Matrix, w: Matrix, top: Matrix) -> NDArray[np.bool_]:
        """Classes that no other class confidently beats, `[block, class]`, without comparing all pairs."""
        if self._uniform:
            scale = float(self._pair_norm(self._errors[:1], self._errors[:1])[0])
            alive: NDArray[np.bool_] = self._within(top[:, None] - score, scale * w[:, None])
            return alive
        if self._norm != math.inf:
            norms = np.hypot(self._errors[:, None], self._errors[None, :])
            lead = score[:, None, :] - score[:, :, None]
            return np.asarray(self._within(lead, norms * w[:, None, None]).all(2))
        cost, ranked = self._errors[self._order], score[:, self._order]
        cheaper = np.maximum.accumulate(ranked, 1) - cost * w[:, None]
        dearer = np.maximum.accumulate((ranked - cost * w[:, None])[:, ::-1], 1)[:, ::-1]
        alive = np.empty(score.shape, dtype=bool)
        alive[:, self._order] = self._within(np.maximum(cheaper, dearer), ranked)
        return alive


class _PairElimination:
    """The general form: every neighbor pair, and `Geometry.restrict` for the signs that are new."""

    def __init__(
        self,
        geometry: Geometry,
        norm: float,
        slices: dict[int, slice],
        n_symbols: int,
        *,
        reaching: bool,
        kept: tuple[int, ...],
    ) -> None:
        self._geometry, self._reaching, self._kept = geometry, reaching, kept
        self._pairs = tuple(geometry.neighbors)
        self._vectors = np.zeros((len(self._pairs), n_symbols))
        self._constants = np.zeros(len(self._pairs))
        self._norms = np.zeros((len(self._pairs), len(geometry.informative)))
        for p, pair in enumerate(self._pairs):
            for a, v in geometry.observers[pair].items():
                if a in slices:
                    self._vectors[p, slices[a]] = v
                    self._norms[p, geometry.informative.index(a)] = np.linalg.norm(v, norm)
                else:
                    self._constants[p] += float(np.sum(v))
        self.weights = np.zeros(geometry.game.n_actions)
        self.weights[list(geometry.informative)] = self._norms.max(0, initial=0.0)
        self._found: dict[bytes, Candidates] = {}

    def restrict(self, pi: Matrix, w: Matrix, factor: Matrix | None, cheapest: NDArray[np.int64]) -> BlockSurvivors:
        delta = pi @ self._vectors.T + self._constants
        z = w @ self._norms.T if factor is None else (w @ self._norms.T) * factor
        confident = np.abs(delta) >= z if self._reaching else np.abs(delta) > z
        signs = np.where(confident, np.sign(delta), 0).astype(np.int8)
        found = [self._candidates(row) for row in signs]
        gap, width = np.zeros(len(pi)), np.zeros(len(pi))
        if len(self._pairs):
            closest, rows = np.abs(delta).argmin(1), np.arange(len(pi))
            gap, width = np.abs(delta[rows, closest]), z[rows, closest]
        undecided = np.array([len(left.allowed) > 1 or bool(left.observers) for left in found], dtype=bool)
        return BlockSurvivors(undecided, cheapest, gap, width, found.__getitem__)

    def _candidates(self, signs: NDArray[np.int8]) -> Candidates:
        key = signs.tobytes()
        if key not in self._found:
            if len(self._found) >= _MOST_REMEMBERED:
                self._found.clear()
            self._found[key] = self._restricted({self._pairs[p]: int(signs[p]) for p in signs.nonzero()[0]})
        return self._found[key]

    def _restricted(self, confident: dict[tuple[int, int], int]) -> Candidates:
        geometry = self._geometry
        left = geometry.restrict(confident)
        survivors, pairs = tuple(left.actions), tuple(left.pairs)
        if left.contradiction:
            survivors, pairs = self._kept, self._pairs
        near = {a for pair in pairs for a in geometry.neighborhood[pair]}
        observers = {a for pair in pairs for a in geometry.observers[pair]} & set(geometry.informative)
        allowed = tuple(sorted({*survivors, *near}))
        return Candidates(tuple(sorted(survivors)), allowed, tuple(sorted(observers)), left.contradiction)


def _errors_with_one_expert(geometry: Geometry) -> Matrix | None:
    """The cost of an error by true class, if it depends on nothing else and the one expert is never the cheapest."""
    n = geometry.game.n_outcomes
    alone = geometry.game.n_actions == n + 1 and n >= 2 and n in geometry.dominated
    return geometry.error_costs if alone else None


def _outcomes_from_symbols(geometry: Geometry, weights: Matrix) -> Matrix | None:
    """The matrix that takes symbols to outcomes, None if they are the same.

    Actions that observe nothing are seldom played, and their estimates are poor: they count only for what the
    observers do not show.
    """
    n = geometry.game.n_outcomes
    if not geometry.informative:
        return np.zeros((0, n))
    stacked = np.vstack([geometry.signal[a] for a in geometry.informative]).astype(float)
    if stacked.shape == (n, n) and np.array_equal(stacked, np.eye(n)):
        return None
    observes = np.concatenate([np.full(len(geometry.signal[a]), weights[a] > 0) for a in geometry.informative])
    if np.linalg.matrix_rank(stacked[observes]) == np.linalg.matrix_rank(stacked):
        stacked[~observes] = 0.0
    return np.linalg.pinv(stacked).T
