"""Pseudo-counts: how often an action was played at observations like this one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sparingly.learning.determinism import pad_block
from sparingly.learning.label_memory import Memory


class PseudoCounts:
    """The inverse of G = penalty I + sum phi phi' for one action, kept by rank-one updates.

    Each play takes one direction off the inverse: G^-1 = I / penalty - sum u u'. The directions are `recent` first;
    `consolidate` moves many of them into the base, which keeps them as they are while they are few and becomes a matrix
    once that is cheaper. While the base stands, a block's products with it (`against_base`) stay good, and `solve`
    corrects one row for the recent directions.
    Rounding is undone every `refresh` updates by inverting G itself in double precision. All the rest has the precision
    of the observations that are counted.

    >>> counts = PseudoCounts(2)
    >>> east = torch.tensor([1.0, 0.0])
    >>> for _ in range(3):
    ...     counts.add(east)
    >>> [round(1 / float(phi @ counts.solve(phi)), 4) for phi in (east, torch.tensor([0.0, 1.0]))]
    [4.0, 1.0]
    """

    worth_consolidating = 32
    most_recent = 512

    def __init__(self, size: int, *, penalty: float = 1.0, refresh: int | None = None, device: str = "cpu") -> None:
        self.size, self.penalty, self.device = size, penalty, device
        self.version = 0
        """Grows when the base changes, so that products with an older base are recognised."""
        self.refresh = refresh or max(1000, size)
        self._recent = Memory(device)
        self._consolidated = Memory(device)
        self._base: Tensor | None = None
        self._since_refresh = Memory(device)
        self._gram: Tensor | None = None

    def against_base(self, Phi: Tensor) -> Tensor:
        """base phi for each row phi of a block `[block, size]`."""
        rows = pad_block(Phi)
        if self._base is not None:
            return (rows @ self._base)[: len(Phi)]
        products = rows / self.penalty
        if len(self._consolidated):
            consolidated = self._consolidated["direction"]
            products -= (rows @ consolidated.T) @ consolidated
        return products[: len(Phi)]

    def solve(self, phi: Tensor, against_base: Tensor | None = None) -> Tensor:
        """G^-1 phi, `[size]`; `against_base` is its row of `against_base`, if it was computed for this version.

        A row of a block is copied first: sums over it round differently with where it lies in memory.
        """
        first = self.against_base(phi[None])[0] if against_base is None else against_base
        if not len(self._recent):
            return first.clone()
        recent = self._recent["direction"]
        return first - (recent @ phi.clone()) @ recent

    def add(self, phi: Tensor, solved: Tensor | None = None) -> None:
        """Count one more play at phi; `solved` is G^-1 phi if it is known."""
        solved, phi = self.solve(phi) if solved is None else solved, phi.clone()
        self._recent.append(direction=solved / torch.sqrt(1 + phi @ solved))
        self._since_refresh.append(phi=phi)
        if len(self._recent) >= self.most_recent:
            self.consolidate()

    def add_many(self, Phi: Tensor) -> None:
        """Count plays at the rows of a block `[block, size]`, at once."""
        if len(Phi):
            self._since_refresh.extend(phi=Phi)
            self._recent.clear()
            self._consolidated.clear()
            self._invert()
            self.version += 1

    def consolidate(self) -> None:
        """Move the recent directions into the base, if they are many enough to be worth it."""
        if len(self._recent) < self.worth_consolidating:
            return
        recent = self._recent["direction"]
        if self._base is None and len(self._consolidated) + len(recent) > self.size // 2:
            self._base = torch.eye(self.size, device=self.device, dtype=recent.dtype) / self.penalty
            if len(self._consolidated):
                self._base.addmm_(self._consolidated["direction"].T, self._consolidated["direction"], alpha=-1)
            self._consolidated.clear()
        if self._base is None:
            self._consolidated.extend(direction=recent)
        else:
            self._base.addmm_(recent.T, recent, alpha=-1)
        self._recent.clear()
        if len(self._since_refresh) >= self.refresh:
            self._invert()
        self.version += 1

    def _invert(self) -> None:
        phi = self._since_refresh["phi"]
        if self._gram is None:
            self._gram = torch.eye(self.size, device=self.device, dtype=phi.dtype) * self.penalty
        self._gram.addmm_(phi.T, phi)
        self._since_refresh.clear()
        self._base = torch.cholesky_inverse(torch.linalg.cholesky(self._gram.double())).to(phi.dtype)

    def state_dict(self) -> dict[str, Any]:
        memories = {"recent": self._recent, "settled": self._consolidated, "since_refresh": self._since_refresh}
        return {name: memory.state_dict() for name, memory in memories.items()} | {
            "base": self._base,
            "gram": self._gram,
            "version": self.version,
            "size": self.size,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if state["size"] != self.size:
            raise ValueError(f"counts have {state['size']} coordinates, not {self.size}")
        self._recent.load_state_dict(state["recent"])
        self._consolidated.load_state_dict(state["settled"])
        self._since_refresh.load_state_dict(state["since_refresh"])
        self._base, self._gram = (
            None if matrix is None else matrix.to(self.device) for matrix in (state["base"], state["gram"])
        )
        self.version = int(state["version"])
