"""Pseudo-counts: how often an action was played at observations like this one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

ROWS = 8
"""Blocks are padded to a multiple of this, so that a row's result does not depend on the rows beside it."""


def padded(X: Tensor, rows: int = ROWS) -> Tensor:
    """The block with zero rows added up to a multiple of `rows`: a product's rows are then the same in any company.

    >>> padded(torch.ones(3, 2)).shape
    torch.Size([8, 2])
    """
    missing = -len(X) % rows
    return X if not missing else torch.cat([X, X.new_zeros(missing, *X.shape[1:])])


class Counts:
    """The inverse of G = penalty I + sum phi phi' for one action, kept by rank-one updates.

    The inverse is a base matrix less the outer products of `recent` directions: an update appends a direction, and
    `settle` folds them all into the base with one matrix product. Between two calls of `settle` a block's products with
    the base (`against_base`) stay good, and `solve` corrects one row for what was played since.
    Rounding is undone every `refresh` updates by inverting G itself in double precision.

    >>> counts = Counts(2)
    >>> east = torch.tensor([1.0, 0.0])
    >>> for _ in range(3):
    ...     counts.add(east)
    >>> [round(1 / float(phi @ counts.solve(phi)), 4) for phi in (east, torch.tensor([0.0, 1.0]))]
    [4.0, 1.0]
    """

    most_recent = 512

    def __init__(self, size: int, *, penalty: float = 1.0, refresh: int | None = None, device: str = "cpu") -> None:
        self.base = torch.eye(size, device=device) / penalty
        self.gram = torch.eye(size, device=device) * penalty
        self.recent = torch.empty(0, size, device=device)
        self.recent_phi = torch.empty(0, size, device=device)
        self.version = 0
        """Grows when the base changes, so that products with an older base are recognised."""
        self.refresh = refresh or max(1000, size)
        self.since_refresh = 0

    def against_base(self, Phi: Tensor) -> Tensor:
        """base phi for each row phi of a block `[block, size]`."""
        return (padded(Phi) @ self.base)[: len(Phi)]

    def solve(self, phi: Tensor, against_base: Tensor | None = None) -> Tensor:
        """G^-1 phi, `[size]`; `against_base` is its row of `against_base`, if it was computed for this version."""
        first = self.against_base(phi[None])[0] if against_base is None else against_base
        return first - (self.recent @ phi) @ self.recent if len(self.recent) else first

    def add(self, phi: Tensor, solved: Tensor | None = None) -> None:
        """Count one more play at phi; `solved` is G^-1 phi if it is known."""
        solved = self.solve(phi) if solved is None else solved
        direction = solved / torch.sqrt(1 + phi @ solved)
        self.recent = torch.cat([self.recent, direction[None]])
        self.recent_phi = torch.cat([self.recent_phi, phi[None]])
        if len(self.recent) >= self.most_recent:
            self.settle()

    def settle(self) -> None:
        """Fold the recent directions into the base."""
        if not len(self.recent):
            return
        self.base.addmm_(self.recent.T, self.recent, alpha=-1)
        self.gram.addmm_(self.recent_phi.T, self.recent_phi)
        self.since_refresh += len(self.recent)
        self.recent, self.recent_phi = self.recent[:0], self.recent_phi[:0]
        if self.since_refresh >= self.refresh:
            self.base = torch.cholesky_inverse(torch.linalg.cholesky(self.gram.double())).float()
            self.since_refresh = 0
        self.version += 1

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("base", "gram", "recent", "recent_phi")} | {
            "version": self.version,
            "since_refresh": self.since_refresh,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name in ("base", "gram", "recent", "recent_phi"):
            tensor = state[name]
            if tensor.shape[1:] != getattr(self, name).shape[1:]:
                raise ValueError(f"counts have {tensor.shape[1]} coordinates, not {self.base.shape[0]}")
            setattr(self, name, tensor.to(self.base.device))
        self.version, self.since_refresh = int(state["version"]), int(state["since_refresh"])
