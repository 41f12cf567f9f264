"""Kernel ridge regression on the classes, in copies that are each blind to one fold of the labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from sparingly.learning.pseudo_counts import product
from sparingly.strategies.sparing.components import Components

POWERS = (0.0, 0.25)
"""Of the components' shares of the variance, that they may be weighted by."""
REACHES = (0.3, 1.0, 3.0)
"""Rates at which the kernel falls with the squared distance over its median."""
RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
TRIED_ON = 200
"""The reach and the ridge are chosen on at most this many labels, the newest ones."""


class KernelMembers:
    """Kernel ridge regressions on one-hot classes: member k never sees fold k, as in `Ensemble`.

    The kernel is exp(-reach |x - z|^2 / median) on the stream's `Components`, as unit vectors. Their weighting, the
    reach and the ridge are those with the least squared error on the labels, each left out in turn, in closed form.

    >>> generator = torch.Generator().manual_seed(0)
    >>> X = torch.randn(120, 3, generator=generator)
    >>> y, folds = (X[:, 0] > 0).long(), torch.arange(120) % 3
    >>> kernel = KernelMembers(2, members=3)
    >>> kernel.fit(X, X, y, folds)
    >>> bool((kernel.held_out(X, folds).argmax(1) == y).float().mean() > 0.9)
    True
    """

    def __init__(self, n_classes: int, *, members: int) -> None:
        self.n_classes = n_classes
        self.members = members
        self._components = Components()
        self._power = 0.0
        self._rows = torch.zeros(0)
        self._weights = torch.zeros(0)
        self._mean = torch.zeros(0)
        self._rate = 1.0

    def fit(self, sample: Tensor, X: Tensor, y: Tensor, folds: Tensor) -> None:
        """Train on inputs `[n, feature]` and classes `[n]`; the sample of the stream has no labels."""
        self._components.fit(sample)
        targets = nn.functional.one_hot(y, self.n_classes).double()
        self._mean = targets.mean(0).float()
        targets -= targets.mean(0)
        tried = [_tried(power, self._components(X, power), targets) for power in POWERS]
        best = min(tried, key=lambda one: one.error)
        self._power, self._rows, self._rate = best.power, best.rows, best.rate
        near = torch.exp(-best.rate * best.squared) + best.ridge * torch.eye(len(X), dtype=torch.float64)
        weights = torch.zeros(len(X), self.members, self.n_classes)
        for k in range(self.members):
            seen = (folds != k).nonzero().flatten()
            weights[seen, k] = torch.linalg.solve(near[seen][:, seen], targets[seen]).float()
        self._weights = weights.flatten(1)

    def scores(self, X: Tensor) -> Tensor:
        """`[member, block, class]`: near 1 for the class, near 0 for the others."""
        near = torch.exp(-self._rate * squared_distances(self._components(X, self._power), self._rows))
        return product(near, self._weights).reshape(len(X), self.members, -1).transpose(0, 1) + self._mean

    def held_out(self, X: Tensor, folds: Tensor) -> Tensor:
        """For each row the scores of the member that did not train on its fold, `[n, class]`."""
        return self.scores(X)[folds, torch.arange(len(X))]

    def state_dict(self) -> dict[str, Any]:
        parts = {"rows": self._rows, "weights": self._weights, "mean": self._mean, "rate": self._rate}
        return {"components": self._components.state_dict(), "power": self._power, **parts}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._rows, self._weights, self._mean = state["rows"], state["weights"], state["mean"]
        self._rate, self._power = float(state["rate"]), float(state["power"])
        self._components.load_state_dict(state["components"])


def squared_distances(X: Tensor, Z: Tensor) -> Tensor:
    """Squared distances `[X, Z]`, by a product, so that a row's are the same in any company."""
    return torch.addmm(Z.square().sum(1), X, Z.T, alpha=-2).add_(X.square().sum(1)[:, None]).clamp_(min=0)


class _Tried(NamedTuple):
    """A kernel that has been tried: what it is, and its error on labels left out one by one."""

    error: float
    power: float
    rows: Tensor
    squared: Tensor
    rate: float
    ridge: float


def _tried(power: float, rows: Tensor, targets: Tensor) -> _Tried:
    """The best reach and ridge with one power."""
    squared = squared_distances(rows, rows).double()
    median = max(float(squared.median()), 1e-12)
    error, reach, ridge = _best(squared[-TRIED_ON:, -TRIED_ON:] / median, targets[-TRIED_ON:])
    return _Tried(error, power, rows, squared, reach / median, ridge)


def _best(squared: Tensor, targets: Tensor) -> tuple[float, float, float]:
    """The least error on labels left out one by one, and the reach and the ridge that have it."""
    errors = {}
    for reach in REACHES:
        values, vectors = torch.linalg.eigh(torch.exp(-reach * squared))
        turned = vectors.T @ targets
        for ridge in RIDGES:
            inverse = 1 / (values.clamp(min=0) + ridge)
            left_out = (vectors @ (inverse[:, None] * turned)) / (vectors.square() @ inverse)[:, None]
            errors[reach, ridge] = float(left_out.square().mean())
    return min((error, *pair) for pair, error in errors.items())
