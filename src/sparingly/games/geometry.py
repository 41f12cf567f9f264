"""The structure of a game: cells, neighbors, signal matrices, observer vectors, and so how hard the game is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import index
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sparingly.experts import Expert
from sparingly.games.cells import decompose, label_cells, normalised
from sparingly.games.elimination import (
    CellElimination,
    Signs,
    Survivors,
    restrict_by_expert,
    restrict_classes,
    restrict_classes_matrix,
)
from sparingly.games.game import Game
from sparingly.games.linear_programs import TOLERANCE, Matrix, maximise
from sparingly.games.pairs import Pair, PairMapping

Observability = Literal["trivial", "easy", "hard", "hopeless"]


def analyze(game: Game) -> Geometry:
    """Return the structure of a game, without the experts whose answers may be wrong: their symbols tell no outcome.

    Examples
    --------
    The label-efficient game of the paper's appendix, its actions and outcomes numbered from 0:

    >>> game = Game([[0, 1], [1, 0], [1, 1]], [["-", "-"], ["-", "-"], ["A", "B"]])
    >>> geometry = analyze(game)
    >>> [signal.astype(int).tolist() for signal in geometry.signal]
    [[[1, 1]], [[1, 1]], [[1, 0], [0, 1]]]
    >>> geometry.pareto, geometry.degenerate, geometry.dominated
    ((0, 1), (), (2,))
    >>> geometry.neighbors, geometry.neighborhood[(0, 1)], geometry.informative
    (((0, 1),), (0, 1), (2,))
    >>> {action: vector.tolist() for action, vector in geometry.observers[(0, 1)].items()}
    {2: [-1.0, 1.0]}
    >>> geometry.observability
    'hard'
    >>> geometry.restrict({(0, 1): +1})
    Survivors(actions=(1,), pairs=())
    """
    return Geometry(game.without_noisy_experts(), game.noisy_experts)


class Geometry:
    """What `analyze` finds. Mappings over pairs are filled as they are asked for; arrays are read-only."""

    def __init__(self, game: Game, noisy_experts: tuple[Expert, ...] = ()) -> None:
        self.game = game
        self.noisy_experts = noisy_experts
        """Who else may be asked, and be wrong: no part of the structure."""
        cells = label_cells(game) or decompose(game.costs)
        self.pareto, self.degenerate, self.dominated = cells.pareto, cells.degenerate, cells.dominated
        self.neighbors: Sequence[Pair] = cells.neighbors
        self.neighborhood: Mapping[Pair, tuple[int, ...]] = cells.neighborhood
        self.error_costs = cells.error_costs
        """a, [class], where classes survive by the order of a_i p_i (see `sparingly.games.cells`), else None."""
        self._expert = cells.expert
        self.informative = tuple(a for a, informs in enumerate(game.informative_mask) if informs)

    @cached_property
    def signal(self) -> tuple[Matrix, ...]:
        """S_a for every action, 0/1 [symbol, outcome], symbols in order of appearance."""
        return tuple(signal_matrix(self.game, action) for action in range(self.game.n_actions))

    @cached_property
    def observers(self) -> Mapping[Pair, dict[int, Matrix]]:
        """The observer vectors of every neighbor pair that is observable: {action: vector over its symbols}."""
        if self.observability != "hopeless":
            return PairMapping(self.neighbors, self.observe)
        return PairMapping(tuple(pair for pair in self.neighbors if self.is_observable(pair)), self.observe)

    @cached_property
    def observability(self) -> Observability:
        """The class of the game: "trivial", "easy", "hard" or "hopeless"."""
        if not self.neighbors:
            return "trivial"
        if all(self.is_locally_observable(pair) for pair in self.neighbors):
            return "easy"
        return "hard" if self._all_observable() else "hopeless"

    def is_locally_observable(self, pair: Pair) -> bool:
        """Whether the feedback of N+ alone tells which of two neighbors is better."""
        actions = self.neighborhood[pair]
        if not any(self.game.informative_mask[a] for a in actions):
            return False
        if any(a in self._full for a in actions):
            return True
        return is_observable(self._differences([pair]), row_basis([self.signal[a] for a in actions]))

    def is_observable(self, pair: Pair) -> bool:
        """Whether the feedback of all actions together tells which of two neighbors is better."""
        if self._full:
            return True
        return is_observable(self._differences([pair]), self._basis)

    @cached_property
    def _full(self) -> tuple[int, ...]:
        """The actions that show the outcome."""
        return tuple(a for a in self.informative if len(self.game.symbols(a)) == self.game.n_outcomes)

    @cached_property
    def _prices(self) -> dict[int, float]:
        """What an action costs where all outcomes are equally likely."""
        return dict(enumerate(self.game.costs.mean(axis=1).tolist()))

    @cached_property
    def _basis(self) -> Matrix:
        return row_basis(self.signal)

    def _all_observable(self) -> bool:
        if self._full:
            return True
        # In closed form every pair is a difference of two pairs with class 0.
        pairs = self.neighbors if self.error_costs is None else [(0, j) for j in self.pareto[1:]]
        return is_observable(self._differences(pairs), self._basis)

    def _differences(self, pairs: Sequence[Pair]) -> Matrix:
        first, second = np.array(pairs).T
        differences: Matrix = self.game.costs[first] - self.game.costs[second]
        return differences

    def observer_actions(self, pair: Pair) -> tuple[int, ...]:
        """Return the informative actions of N+ where the pair is locally observable, else all informative ones."""
        if self.is_locally_observable(pair):
            return tuple(a for a in self.neighborhood[pair] if self.game.informative_mask[a])
        return self.informative

    def observe(self, pair: Pair, widths: Mapping[int, float] | None = None) -> dict[int, Matrix]:
        """Return observer vectors of smallest total width for these widths of the actions' estimates, 1 by default."""
        signals = {a: self.signal[a] for a in self.observer_actions(pair)}
        if not self.is_observable(pair):
            raise ValueError(f"no feedback observes which of actions {pair[0]} and {pair[1]} is cheaper")
        return observer_vectors(signals, self._differences([pair])[0], widths, prices=self._prices)

    def centred(self, i: int, j: int) -> tuple[dict[int, Matrix], float]:
        """Return the observer vectors with their middles taken away, and the constant these add up to.

        Their largest entries are the half-spans, the smallest width there is; the estimates must then sum to 1.
        """
        middles = {a: (v.max() + v.min()) / 2 for a, v in self.observers[i, j].items()}
        return {a: v - middles[a] for a, v in self.observers[i, j].items()}, float(sum(middles.values()))

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """W_a, [action]: the largest entry of an action's observer vectors over all neighbor pairs."""
        weights = np.zeros(self.game.n_actions)
        pairs: Sequence[Pair] = self.neighbors
        if self.error_costs is not None and self._full:
            # Only a degenerate expert joins N+; on all other pairs the cheapest who shows both classes observes alone.
            pairs = [pair for pair in pairs if len(self.neighborhood[pair]) > 2] if self.degenerate else []
            if len(pairs) < len(self.neighbors):
                weights = self._weights_alone(self.error_costs)
        for pair in pairs:
            for action, vector in self.observers[pair].items():
                weights[action] = max(weights[action], np.abs(vector).max())
        return weights

    def _weights_alone(self, errors: Matrix) -> NDArray[np.float64]:
        """`weights` where every pair of classes is observed by the cheapest actions that show both of them."""
        weights, left = np.zeros(self.game.n_actions), ~np.eye(self.game.n_outcomes, dtype=bool)
        for price in sorted({self._prices[a] for a in self.informative}):
            equals = [a for a in self.informative if self._prices[a] == price]
            shown = np.array([self.signal[a][self.signal[a].sum(axis=1) == 1].any(axis=0) for a in equals])
            sharing = (shown[:, :, None] & shown[:, None, :]).sum(axis=0) * left
            for action, classes in zip(equals, shown, strict=True):
                share = np.where(classes & classes[:, None] & (sharing > 0), errors / np.maximum(sharing, 1), 0.0)
                weights[action] = share.max()
            left &= sharing == 0
        return weights

    def restrict(self, signs: Signs | NDArray[np.int8]) -> Survivors:
        """Return the actions and pairs that survive confident signs of (c_i - c_j) p.

        `signs` maps pairs (i, j) to +1 or -1; or it is a matrix of integers, [action, action], with 0 where there is
        no confidence, and may state a pair on either side of the diagonal or on both. Signs that no distribution has
        together leave `Survivors((), ())`, whose `contradiction` is true.
        """
        if not isinstance(signs, np.ndarray):
            return self._survivors(self._ordered(signs))
        if signs.shape != (self.game.n_actions,) * 2:
            raise ValueError(f"signs is {signs.shape}: it must have one row and one column per action")
        n_classes = self.game.n_outcomes
        if self.error_costs is not None and not (signs[n_classes:].any() or signs[:, n_classes:].any()):
            return restrict_classes_matrix(signs[:n_classes, :n_classes])
        return self._survivors([(i, j) for i, j in np.argwhere((signs > 0) | (signs.T < 0)).tolist()])

    def _survivors(self, better: list[Pair]) -> Survivors:
        n_classes = self.game.n_outcomes
        if self.error_costs is not None and max(chain.from_iterable(better), default=-1) < n_classes:
            return restrict_classes(n_classes, better)
        if self._expert is not None and all(self._expert in pair and min(pair) < n_classes for pair in better):
            return restrict_by_expert(n_classes, self._expert, better)
        return self._elimination.restrict(better)

    def _ordered(self, signs: Signs) -> list[Pair]:
        """Return the pairs turned so that the second action is the better one."""
        better = []
        for pair, sign in signs.items():
            i, j = pair
            if sign == 1:
                better.append((index(i), index(j)))
            elif sign == -1:
                better.append((index(j), index(i)))
            else:
                raise ValueError(f"the sign of {pair} is {sign!r}: it must be +1 or -1")
        last = self.game.n_actions - 1
        if better and (min(chain.from_iterable(better)) < 0 or max(chain.from_iterable(better)) > last):
            wrong = next(pair for pair in signs if min(pair) < 0 or max(pair) > last)
            raise ValueError(f"signs has the pair {wrong}, but the game's actions are 0 to {last}")
        return better

    @cached_property
    def _elimination(self) -> CellElimination:
        return CellElimination(normalised(self.game.costs), self.pareto, self.neighbors)

    def __repr__(self) -> str:
        kinds = f"{len(self.pareto)} Pareto-optimal, {len(self.degenerate)} degenerate, {len(self.dominated)} dominated"
        return f"Geometry({self.observability} game: {kinds}, {len(self.neighbors)} neighbor pairs)"


# Small enough to decide only between solutions of the same width.
_TIE = 1e-6


def signal_matrix(game: Game, action: int) -> Matrix:
    """Return S_a, 0/1 [symbol, outcome], symbols in order of appearance.

    >>> signal_matrix(Game([[0, 1, 2]], [["b", "a", "b"]]), 0).tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    place = {symbol: k for k, symbol in enumerate(game.symbols(action))}
    matrix = np.zeros((len(place), game.n_outcomes))
    matrix[[place[symbol] for symbol in game.feedback[action]], np.arange(game.n_outcomes)] = 1.0
    matrix.setflags(write=False)
    return matrix


def row_basis(signals: Sequence[Matrix]) -> Matrix:
    """Return an orthonormal basis, as columns, of what these actions together let one observe."""
    stacked = np.vstack(signals)
    _, sizes, directions = np.linalg.svd(stacked, full_matrices=False)
    basis: Matrix = directions[sizes > TOLERANCE * sizes[0]].T
    return basis


def is_observable(differences: Matrix, basis: Matrix) -> bool:
    """Whether every row of cost differences lies in the span of the basis."""
    unseen = differences - differences @ basis @ basis.T
    return bool((np.abs(unseen).max(axis=1) <= TOLERANCE * np.abs(differences).max(axis=1)).all())


def observer_vectors(
    signals: Mapping[int, Matrix],
    difference: Matrix,
    widths: Mapping[int, float] | None = None,
    *,
    prices: Mapping[int, float] | None = None,
) -> dict[int, Matrix]:
    """Write a cost difference as sum_a S_a^T v_a with the smallest width, sum_a w_a (max v_a - min v_a) / 2.

    A constant costs no width, since feedback probabilities sum to 1; so the half-span counts, and each vector may
    still be centred by taking its middle away. Whoever tells the difference alone has the smallest width; the cheapest
    of these observes, equally cheap ones in equal shares. Other ties go to the smallest 1-norm; zeros are left out.

    >>> {a: v.tolist() for a, v in observer_vectors({2: np.eye(2)}, np.array([-0.5, 1.0])).items()}
    {2: [-0.5, 1.0]}
    >>> {a: v.tolist() for a, v in observer_vectors({2: np.eye(2), 3: np.eye(2)}, np.ones(2), prices={3: 0.7}).items()}
    {3: [1.0, 1.0]}
    """
    if widths is None:
        alone = {a: v for a, signal in signals.items() if (v := _observe_alone(signal, difference)) is not None}
        price = {a: (prices or {}).get(a, math.inf) for a in alone}
        cheapest = [a for a in alone if price[a] == min(price.values())]
        if cheapest:
            return {a: alone[a] / len(cheapest) for a in cheapest}
    scale = np.abs(difference).max()
    found = _smallest_width(signals, difference / scale, widths or {})
    return {a: scale * v for a, v in found.items() if np.abs(v).max() > TOLERANCE}


def _observe_alone(signal: Matrix, difference: Matrix) -> Matrix | None:
    """The vector of one action that tells a difference by itself: all outcomes of a symbol differ by the same."""
    vector: Matrix = (signal @ difference) / signal.sum(axis=1)
    return vector if np.abs(signal.T @ vector - difference).max() <= TOLERANCE * np.abs(difference).max() else None


def _smallest_width(signals: Mapping[int, Matrix], target: Matrix, widths: Mapping[int, float]) -> dict[int, Matrix]:
    sizes = [len(signal) for signal in signals.values()]
    identity = np.vstack(list(signals.values())).T
    owner = np.repeat(np.eye(len(sizes)), sizes, axis=0)
    n = sum(sizes)
    # Variables: v = positive - negative, the middle of each action's vector, its half-span.
    below = np.hstack([np.eye(n), -np.eye(n), -owner, owner])
    above = np.hstack([np.eye(n), -np.eye(n), -owner, -owner])
    sums = np.hstack([identity, -identity, np.zeros((len(target), 2 * len(sizes)))])
    free = np.r_[np.zeros(2 * n), np.full(len(sizes), -np.inf), np.zeros(len(sizes))]
    solution = maximise(
        -np.r_[np.full(2 * n, _TIE), np.zeros(len(sizes)), [widths.get(a, 1.0) for a in signals]],
        np.vstack([below, above, sums]),
        (np.r_[np.zeros(n), np.full(n, -np.inf), target], np.r_[np.full(n, np.inf), np.zeros(n), target]),
        (free, np.full(len(free), np.inf)),
    )
    if solution is None:
        raise ValueError("these actions do not observe the difference of costs")
    values = solution[0][:n] - solution[0][n : 2 * n]
    values[np.abs(values) <= TOLERANCE] = 0.0
    used = values != 0
    values[used] += np.linalg.lstsq(identity[:, used], target - identity @ values, rcond=None)[0]
    return dict(zip(signals, np.split(values, np.cumsum(sizes)[:-1]), strict=True))
