"""The directions in which a stream varies most: what is alike is told by these, not by every input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sparingly.learning.pseudo_counts import product

MOST = 100
"""Directions that are kept."""
LEAST = 1e-6
"""Share of the variance below which a direction is one that does not vary."""
ROUNDS = 2
"""Of subspace iteration; the leading directions are exact to a few digits after two."""


class Components:
    """Principal components of a sample; an observation becomes a unit vector of them.

    No label is needed for that, so a sample of the stream says which differences are common and which are noise.
    Components may be weighted by a power of their share of the variance: with 0 they count as they are, the larger
    the power the more the leading ones count.

    Examples
    --------
    >>> sample = torch.randn(200, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([5.0, 1.0, 0.0])
    >>> components = Components().fit(sample)
    >>> [round(share, 2) for share in components.share.tolist()]
    [0.96, 0.04]
    >>> components(torch.tensor([[1.0, 1.0, 9.0]])).abs().mul(10).round().tolist()
    [[7.0, 7.0]]
    """

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self.mean = torch.zeros(0)
        self.directions = torch.zeros(0)
        """`[input, component]`, from the most to the least of the variance."""
        self.share = torch.zeros(0)
        """Of the variance kept, for each component."""

    def fit(self, sample: Tensor) -> Components:
        """Take the components of a sample `[rows, input]`."""
        self.mean = sample.mean(0)
        sample = sample - self.mean
        basis = sample[: self.most].T
        for _ in range(ROUNDS):
            basis = torch.linalg.qr(sample.T @ (sample @ basis)).Q
        projected = sample @ basis
        variance, turn = torch.linalg.eigh(projected.T @ projected)
        share = variance.flip(0) / variance.sum().clamp(min=1e-30)
        kept = share > LEAST
        self.directions, self.share = (basis @ turn).flip(1)[:, kept], share[kept]
        return self

    def __call__(self, X: Tensor, power: float = 0.0) -> Tensor:
        """Unit vectors `[block, component]`."""
        return torch.nn.functional.normalize(product(X - self.mean, self.directions) * self.share**power, eps=1e-6)

    def state_dict(self) -> dict[str, Any]:
        return {"mean": self.mean, "directions": self.directions, "share": self.share}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.mean, self.directions, self.share = state["mean"], state["directions"], state["share"]
