"""Signal matrices, and the observer vectors that write a cost difference in terms of feedback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sparingly.games.game import Game
from sparingly.games.linear_programs import TOLERANCE, Matrix, maximise

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
    signals: Mapping[int, Matrix], difference: Matrix, widths: Mapping[int, float] | None = None
) -> dict[int, Matrix]:
    """Write a cost difference as sum_a S_a^T v_a with the smallest width, sum_a w_a (max v_a - min v_a) / 2.

    A constant costs no width, since feedback probabilities sum to 1; so the half-span counts, and each vector may
    still be centred by taking its middle away. Ties go to the smallest 1-norm; vectors of zeros are left out.

    >>> {a: v.tolist() for a, v in observer_vectors({2: np.eye(2)}, np.array([-0.5, 1.0])).items()}
    {2: [-0.5, 1.0]}
    """
    scale = np.abs(difference).max()
    full = [a for a, signal in signals.items() if len(signal) == len(difference)]
    if full and widths is None:
        # One action that shows the outcome attains the optimum, the half-span of the difference itself.
        return {a: difference / len(full) for a in full}
    found = _smallest_width(signals, difference / scale, widths or {})
    return {a: scale * v for a, v in found.items() if np.abs(v).max() > TOLERANCE}


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
