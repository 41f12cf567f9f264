"""The step that all confidence-bound strategies share: estimates and widths in, an action out (Algorithm 1).

A strategy gives for each observation the feedback distributions pi of the informative actions and their widths w. Each
neighbor pair has an estimated gap delta = sum_a v_a pi_a and a width z = sum_a |v_a| w_a; the pairs with |delta| > z
are confident, and their signs leave the surviving actions P(t) and pairs N(t). What may be played is P(t), N+(t) and
the underplayed actions of V(t); what is played has the largest W_a w_a.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.games import Game, analyze
from sparingly.strategies.strategy import Why

Floats = NDArray[np.float64]

_MOST_FIELDS = 10_000
"""Fields that are remembered by their signs; drawn widths can give new signs in every round."""


@dataclass(frozen=True, slots=True)
class Field:
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
class Comparison:
    """A block of observations after elimination; every array has one entry an observation."""

    undecided: NDArray[np.bool_]
    cheapest: NDArray[np.int64]
    gap: Floats
    width: Floats
    weighted: Floats
    """`[block, action]`: W_a w_a; 0 for an action that tells nothing."""
    field: Callable[[int], Field]


class Bounds:
    """Elimination and the choice of an action for one game.

    Parameters
    ----------
    game
        Any game that is not hopeless.
    norm
        The norm of the observer vectors in z and W: infinity (Eq. 5 of the paper) or 2.
    alpha
        The exploration rate is f(t) = alpha^(1/3) t^(2/3) log(t)^(1/3).
    ties
        Among candidates with equal W_a w_a play the "cheapest" by the estimates, or the "lowest" action.
    """

    def __init__(self, game: Game, *, norm: float = math.inf, alpha: float = 1.01, ties: str = "cheapest") -> None:
        self.game = game
        self.geometry = analyze(game)
        if self.geometry.observability == "hopeless":
            raise ValueError(f"{_hopeless(game)}: no strategy can keep its regret from growing linearly")
        if ties not in ("cheapest", "lowest"):
            raise ValueError(f"ties is {ties!r}: give 'cheapest' or 'lowest'")
        self.norm, self.alpha, self.ties = norm, alpha, ties
        self.informative = tuple(self.geometry.informative)
        sizes = [len(game.symbols(a)) for a in self.informative]
        self.n_symbols = sum(sizes)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
        self.slices = {a: slice(starts[k], starts[k + 1]) for k, a in enumerate(self.informative)}
        self.starts = starts[:-1]
        """Where each informative action's symbols begin in the flattened distributions."""
        self._announcements = np.arange(game.n_outcomes) if game.is_label_efficient else np.array(self.geometry.pareto)
        self._by_class = _error_by_true_class(game, self.geometry) if self.n_symbols == game.n_outcomes else None
        self._fields: dict[bytes, Field] = {}
        if self._by_class is not None:
            self._closed_form(self._by_class)
        else:
            self._general_form()
        self.rate_weight = self.W ** (2 / 3)
        """eta_a."""
        self._lift = self._outcomes_from_symbols()

    def rate(self, t: int) -> float:
        """f(t) for t counted from 1.

        >>> from sparingly.games import label_efficient
        >>> [round(Bounds(label_efficient(2)).rate(t), 2) for t in (100, 1000, 10_000)]
        [35.96, 191.08, 976.19]
        """
        return float(self.alpha ** (1 / 3) * t ** (2 / 3) * math.log(max(t, 1)) ** (1 / 3))

    def outcomes(self, pi: Floats) -> Floats:
        """`[block, outcome]`: the outcome distributions that fit the flattened feedback distributions best."""
        return pi if self._lift is None else pi @ self._lift

    def compare(
        self, pi: Floats, w: Floats, factor: Floats | None = None, *, action_factor: Floats | None = None
    ) -> Comparison:
        """Eliminate, for flattened feedback distributions `[block, symbols]` and widths `[block, informative]`.

        For randomised confidence bounds `factor`, `[block, pair]`, multiplies the width of each pair, `action_factor`,
        `[block, informative]`, that of each action; neither changes the choice among what survives.
        """
        weighted = np.zeros((len(pi), self.game.n_actions))
        weighted[:, self.informative] = self.W[list(self.informative)] * w
        w = w if action_factor is None else w * action_factor
        if self._by_class is not None and factor is None:
            return self._compare_classes(pi, w[:, 0], weighted)
        return self._compare_pairs(pi, w, weighted, factor)

    def choose(self, comparison: Comparison, row: int, underplayed: Callable[[int], bool]) -> tuple[int, Field]:
        """The action to play at one row, and the field it was chosen from."""
        field = comparison.field(row)
        if len(field.allowed) == 1 and not field.observers:
            return field.allowed[0], field
        value = comparison.weighted[row]
        candidates = [*field.allowed, *(a for a in field.observers if a not in field.allowed and underplayed(a))]
        largest = max(value[a] for a in candidates)
        best = [a for a in candidates if value[a] == largest]
        cheapest = int(comparison.cheapest[row])
        return (cheapest if self.ties == "cheapest" and cheapest in best else min(best)), field

    # the closed form: one expert who is never the cheapest action, an error's cost given by the true class

    def _closed_form(self, by_class: Floats) -> None:
        n = self.game.n_outcomes
        self._uniform = bool(np.ptp(by_class) == 0)
        self._order = np.argsort(by_class, kind="stable")
        two = np.sort(by_class)[-2:]
        largest = float(two[-1]) if self.norm == math.inf else float(np.linalg.norm(two, self.norm))
        self.W = np.zeros(self.game.n_actions)
        self.W[n] = largest
        self._everything = Field(tuple(range(n)), tuple(range(n)), (n,))

    def _compare_classes(self, pi: Floats, w: Floats, weighted: Floats) -> Comparison:
        assert self._by_class is not None
        score = pi * self._by_class
        cheapest = score.argmax(1)
        top = score[np.arange(len(pi)), cheapest]
        rest = score.copy()
        rest[np.arange(len(pi)), cheapest] = -np.inf
        second = rest.argmax(1)
        gap = top - rest[np.arange(len(pi)), second]
        width = w * self._pair_norm(self._by_class[cheapest], self._by_class[second])
        alive = self._alive(score, np.maximum(w, 0.0), top)
        undecided = alive.sum(1) > 1

        def field(row: int) -> Field:
            if not undecided[row]:
                only = (int(cheapest[row]),)
                return Field(only, only, ())
            left = tuple(int(i) for i in alive[row].nonzero()[0])
            return Field(left, left, self._everything.observers)

        return Comparison(undecided, cheapest, gap, width, weighted, field)

    def _pair_norm(self, one: Floats, other: Floats) -> Floats:
        return np.maximum(one, other) if self.norm == math.inf else np.hypot(one, other)

    def _alive(self, score: Floats, w: Floats, top: Floats) -> NDArray[np.bool_]:
        """Classes that no other class confidently beats, `[block, class]`, without comparing all pairs."""
        assert self._by_class is not None
        if self._uniform:
            scale = float(self._pair_norm(self._by_class[:1], self._by_class[:1])[0])
            alive: NDArray[np.bool_] = top[:, None] - score <= scale * w[:, None]
            return alive
        if self.norm != math.inf:
            norms = np.hypot(self._by_class[:, None], self._by_class[None, :])
            lead = score[:, None, :] - score[:, :, None]
            return np.logical_not((lead > norms * w[:, None, None]).any(2))
        cost, ranked = self._by_class[self._order], score[:, self._order]
        cheaper = np.maximum.accumulate(ranked, 1) - cost * w[:, None]
        dearer = np.maximum.accumulate((ranked - cost * w[:, None])[:, ::-1], 1)[:, ::-1]
        alive = np.empty(score.shape, dtype=bool)
        alive[:, self._order] = np.maximum(cheaper, dearer) <= ranked
        return alive

    # the general form: every neighbor pair, and the engine's linear programs

    def _general_form(self) -> None:
        self._pairs = tuple(self.geometry.neighbors)
        self._vectors = np.zeros((len(self._pairs), self.n_symbols))
        self._constants = np.zeros(len(self._pairs))
        self._norms = np.zeros((len(self._pairs), len(self.informative)))
        for p, pair in enumerate(self._pairs):
            for a, v in self.geometry.observers[pair].items():
                if a in self.slices:
                    self._vectors[p, self.slices[a]] = v
                    self._norms[p, self.informative.index(a)] = np.linalg.norm(v, self.norm)
                else:
                    self._constants[p] += float(np.sum(v))
        self.W = np.zeros(self.game.n_actions)
        self.W[list(self.informative)] = self._norms.max(0, initial=0.0)

    def _compare_pairs(self, pi: Floats, w: Floats, weighted: Floats, factor: Floats | None) -> Comparison:
        if self._by_class is not None and not hasattr(self, "_pairs"):
            self._general_form()
        delta = pi @ self._vectors.T + self._constants
        z = w @ self._norms.T if factor is None else (w @ self._norms.T) * factor
        signs = np.where(np.abs(delta) > z, np.sign(delta), 0).astype(np.int8)
        cost = self.outcomes(pi) @ self.game.costs[self._announcements].T
        cheapest = self._announcements[cost.argmin(1)]
        fields = [self._field(row) for row in signs]
        closest = np.abs(delta).argmin(1) if len(self._pairs) else np.zeros(len(pi), dtype=int)
        rows = np.arange(len(pi))
        gap = np.abs(delta[rows, closest]) if len(self._pairs) else np.zeros(len(pi))
        width = z[rows, closest] if len(self._pairs) else np.zeros(len(pi))
        undecided = np.array([len(field.allowed) > 1 or bool(field.observers) for field in fields], dtype=bool)
        return Comparison(undecided, cheapest, gap, width, weighted, fields.__getitem__)

    def _field(self, signs: NDArray[np.int8]) -> Field:
        key = signs.tobytes()
        if key not in self._fields:
            if len(self._fields) >= _MOST_FIELDS:
                self._fields.clear()
            confident = {self._pairs[p]: int(signs[p]) for p in signs.nonzero()[0]}
            left = self.geometry.restrict(confident)
            survivors, pairs = tuple(left.actions), tuple(left.pairs)
            if not survivors:
                survivors, pairs = tuple(self.geometry.pareto), self._pairs
            near = {a for pair in pairs for a in self.geometry.neighborhood[pair]}
            seen = {a for pair in pairs for a in self.geometry.observers[pair]} & set(self.informative)
            self._fields[key] = Field(
                tuple(sorted(survivors)), tuple(sorted({*survivors, *near})), tuple(sorted(seen)), not left.actions
            )
        return self._fields[key]

    def _outcomes_from_symbols(self) -> Floats | None:
        stacked = (
            np.vstack([self.geometry.signal[a] for a in self.informative]) if self.informative else np.zeros((0, 1))
        )
        if stacked.shape == (self.game.n_outcomes,) * 2 and np.array_equal(stacked, np.eye(self.game.n_outcomes)):
            return None
        return np.linalg.pinv(stacked.astype(float)).T if self.informative else np.zeros((0, self.game.n_outcomes))


def explain(action: int, game: Game, comparison: Comparison, row: int, field: Field, **values: Any) -> Why:
    """The reason for an action, from the numbers that led to it."""
    numbers = {"gap": float(comparison.gap[row]), "width": float(comparison.width[row]), "survivors": field.survivors}
    names = [game.actions[a] for a in field.survivors[:3]]
    numbers |= {"left": " and ".join(names) if len(field.survivors) < 4 else f"{len(field.survivors)} actions"}
    numbers |= {"action": game.actions[action], **values}
    if len(field.survivors) == 1:
        return Why(
            "{action}: nothing else is left, since it leads by {gap:.3g}, more than the width {width:.3g}", numbers
        )
    if values.get("pseudo_count") is None:
        return Why("{action}: {left} are within the width {width:.3g} (gap {gap:.3g})", numbers)
    if game.informative_mask[action]:
        return Why(
            "{action}: {left} are {gap:.3g} apart, within the width {width:.3g}, and too little was learned near here "
            "(pseudo-count {pseudo_count:.3g}, below the rate {rate:.3g})",
            numbers,
        )
    return Why(
        "{action}: {left} are {gap:.3g} apart, within the width {width:.3g}, but enough was learned near here "
        "(pseudo-count {pseudo_count:.3g}, rate {rate:.3g})",
        numbers,
    )


def _error_by_true_class(game: Game, geometry: Any) -> Floats | None:
    """The cost of an error by true class, if it depends on nothing else and the one expert is never the cheapest."""
    n = game.n_outcomes
    if not game.is_label_efficient or game.n_actions != n + 1 or n < 2 or n not in geometry.dominated:
        return None
    excess = game.costs[:n] - np.diag(game.costs[:n])
    by_class = (excess.sum(0)) / (n - 1)
    expected = np.where(np.eye(n, dtype=bool), 0.0, by_class)
    same = np.allclose(excess, expected, rtol=1e-12, atol=1e-12 * float(np.abs(game.costs).max()))
    return by_class if same and bool((by_class > 0).all()) else None


def _hopeless(game: Game) -> str:
    return f"the game with actions {', '.join(game.actions[:4])}{'...' if game.n_actions > 4 else ''} is hopeless"
