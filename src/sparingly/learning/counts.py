"""Pseudo-counts: how often an action was played at observations like this one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sparingly.learning.memory import Memory

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
    `settle` folds many into the base with one matrix product. While the base stands, a block's products with it
    (`against_base`) stay good, and `solve` corrects one row for what was played since.
    Rounding is undone every `refresh` updates by inverting G itself in double precision.

    >>> counts = Counts(2)
    >>> east = torch.tensor([1.0, 0.0])
    >>> for _ in range(3):
    ...     counts.add(east)
    >>> [round(1 / float(phi @ counts.solve(phi)), 4) for phi in (east, torch.tensor([0.0, 1.0]))]
    [4.0, 1.0]
    """

    worth_settling = 32
    most_recent = 512

    def __init__(self, size: int, *, penalty: float = 1.0, refresh: int | None = None, device: str = "cpu") -> None:
        self.base = torch.eye(size, device=device) / penalty
        self.gram = torch.eye(size, device=device) * penalty
        """G up to the last refresh."""
        self.version = 0
        """Grows when the base changes, so that products with an older base are recognised."""
        self.refresh = refresh or max(1000, size)
        self._directions = Memory(device)
        self._since_refresh = Memory(device)

    def against_base(self, Phi: Tensor) -> Tensor:
        """base phi for each row phi of a block `[block, size]`."""
        return (padded(Phi) @ self.base)[: len(Phi)]

    def solve(self, phi: Tensor, against_base: Tensor | None = None) -> Tensor:
        """G^-1 phi, `[size]`; `against_base` is its row of `against_base`, if it was computed for this version.

        A row of a block is copied first: sums over it round differently with where it lies in memory.
        """
        first = self.against_base(phi[None])[0] if against_base is None else against_base
        if not len(self._directions):
            return first.clone()
        recent = self._directions["direction"]
        return first - (recent @ phi.clone()) @ recent

    def add(self, phi: Tensor, solved: Tensor | None = None) -> None:
        """Count one more play at phi; `solved` is G^-1 phi if it is known."""
        solved, phi = self.solve(phi) if solved is None else solved, phi.clone()
        self._directions.append(direction=solved / torch.sqrt(1 + phi @ solved))
        self._since_refresh.append(phi=phi)
        if len(self._directions) >= self.most_recent:
            self.settle()

    def settle(self) -> None:
        """Fold the recent directions into the base, if they are many enough to be worth a matrix product."""
        if len(self._directions) < self.worth_settling:
            return
        recent = self._directions["direction"]
        self.base.addmm_(recent.T, recent, alpha=-1)
        self._directions.clear()
        if len(self._since_refresh) >= self.refresh:
            phi = self._since_refresh["phi"]
            self.gram.addmm_(phi.T, phi)
            self._since_refresh.clear()
            self.base = torch.cholesky_inverse(torch.linalg.cholesky(self.gram.double())).float()
        self.version += 1

    def state_dict(self) -> dict[str, Any]:
        return {
            "base": self.base,
            "gram": self.gram,
            "version": self.version,
            "directions": self._directions.state_dict(),
            "since_refresh": self._since_refresh.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if state["base"].shape != self.base.shape:
            raise ValueError(f"counts have {len(state['base'])} coordinates, not {len(self.base)}")
        self.base, self.gram = state["base"].to(self.base.device), state["gram"].to(self.base.device)
        self.version = int(state["version"])
        self._directions.load_state_dict(state["directions"])
        self._since_refresh.load_state_dict(state["since_refresh"])
