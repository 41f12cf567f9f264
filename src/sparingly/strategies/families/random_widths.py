"""Randomised confidence bounds: a width's factor is drawn from a few points instead of taken at its largest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparingly.strategies.families.confidence_bounds import Floats


@dataclass(frozen=True)
class Draws:
    """A factor from K points rho_k = U (k - 1) / (K - 1), the largest with probability eps.

    The others have P(rho_k) proportional to exp(-rho_k^2 / (2 sigma^2)).

    >>> Draws(sigma=1.0, points=5, eps=1e-6).probabilities(2.64).round(2).tolist()
    [0.42, 0.34, 0.18, 0.06, 0.0]
    """

    sigma: float
    points: int
    eps: float

    def __post_init__(self) -> None:
        if not self.sigma > 0:
            raise ValueError(f"sigma is {self.sigma}: it must be positive")
        if self.points < 2:
            raise ValueError(f"points is {self.points}: two or more are needed")
        if not 0 < self.eps <= 1:
            raise ValueError(f"eps is {self.eps}: a probability above 0 is needed, or no bound would ever hold")

    def probabilities(self, largest: float) -> Floats:
        """P(rho_k), `[K]`, for U = `largest`."""
        rho = np.linspace(0.0, largest, self.points)[:-1]
        weight = np.exp(-(rho**2) / (2 * self.sigma**2))
        return np.append((1 - self.eps) * weight / weight.sum(), self.eps)

    def shares(self, largest: float, size: int, rng: np.random.Generator) -> Floats:
        """Independent draws of rho / U, `[size]`."""
        return rng.choice(np.linspace(0.0, 1.0, self.points), size=size, p=self.probabilities(largest))
