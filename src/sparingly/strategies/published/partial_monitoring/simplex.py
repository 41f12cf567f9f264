"""Draws from a Gaussian that is restricted to the probability simplex."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp

Floats = NDArray[np.float64]


class SimplexGaussian:
    """Density proportional to exp(-p'Bp / 2 + b'p) on distributions p.

    The last coordinate is what the others leave, B = [[Q, r], [r', f]]: the others have precision
    Q - r1' - 1r' + f11' and linear term f1 - r + b_head - b_last 1.

    >>> gaussian = SimplexGaussian(100 * np.eye(3), 100 * np.array([0.5, 0.3, 0.2]))
    >>> gaussian.propose(2000, np.random.default_rng(0)).mean(0).round(2).tolist()
    [0.5, 0.3, 0.2]
    """

    sweeps = 10

    def __init__(self, B: Floats, b: Floats) -> None:
        Q, r, f = B[:-1, :-1], B[:-1, -1], B[-1, -1]
        self.precision = Q - r[:, None] - r[None, :] + f
        self.linear = f - r + b[:-1] - b[-1]
        self._root = np.linalg.cholesky(self.precision).T
        self.mean = np.linalg.solve(self.precision, self.linear)

    def propose(self, n: int, rng: np.random.Generator) -> Floats:
        """Those of n draws of the unrestricted Gaussian that are distributions, `[at most n, outcome]`."""
        z = rng.standard_normal((n, len(self.mean)))
        head = self.mean + np.linalg.solve(self._root, z.T).T
        p = np.c_[head, 1 - head.sum(1)]
        return np.asarray(p[(p >= 0).all(1)])

    def walk(self, rng: np.random.Generator, log_weight: Callable[[Floats], float]) -> Floats:
        """One distribution from this density times a weight, where almost no unrestricted draw would be one.

        Sweeps over the coordinates from the middle of the simplex: each is drawn anew given the others, and the draw
        is taken with probability weight / old weight, at most 1 (Metropolis within Gibbs).
        """
        p = np.full(len(self.mean) + 1, 1 / (len(self.mean) + 1))
        weight = log_weight(p)
        for i in np.tile(np.arange(len(self.mean)), self.sweeps):
            room, moved = p[i] + p[-1], p.copy()
            sd = self.precision[i, i] ** -0.5
            mean = p[i] + (self.linear[i] - self.precision[i] @ p[:-1]) * sd**2
            moved[i] = min(max(_truncated_normal(mean, sd, room, rng.random()), 0.0), room)
            moved[-1] = room - moved[i]
            new_weight = log_weight(moved)
            if rng.random() < np.exp(min(0.0, new_weight - weight)):
                p, weight = moved, new_weight
        return p


def _truncated_normal(mean: float, sd: float, room: float, u: float) -> float:
    """The u-quantile of a normal restricted to [0, room], by logarithms so that tails do not vanish."""
    low, high = -mean / sd, (room - mean) / sd
    flip = low > 0
    if flip:
        low, high = -high, -low
    below, above = log_ndtr(low), log_ndtr(high)
    z = float(ndtri_exp(np.logaddexp(np.log1p(-u) + below, np.log(max(u, 1e-300)) + above)))
    return mean + sd * (-z if flip else z)
