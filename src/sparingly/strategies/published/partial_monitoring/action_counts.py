"""How often each observer action was played at observations like this one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparingly.learning.embedding import Embedding
from sparingly.learning.pseudo_counts import PseudoCounts


class ActionCounts:
    """Pseudo-counts of the observer actions in the embedding's coordinates.

    Parameters
    ----------
    actions
        Those that are counted.
    penalty
        G starts at penalty I.
    kind
        "inverse": 1 / phi' G^-1 phi. "squared": 1 / phi' G^-2 phi.
    """

    def __init__(self, actions: Iterable[int], embedding: Embedding, *, penalty: float, kind: str) -> None:
        self.embedding = embedding
        self.kind, self.penalty = kind, penalty
        size, device = len(embedding.repeats), str(embedding.repeats.device)
        self.counts = {a: PseudoCounts(size, penalty=penalty, device=device) for a in actions}

    def prepare(self, compact: Tensor, rows: NDArray[np.int64]) -> dict[str, Any]:
        """What can be computed at once for a block of compact embeddings, at the rows whose counts may be asked for."""
        if not len(rows):
            return {"compact": compact, "place": {}}
        phi = self.embedding.isometric(compact[torch.from_numpy(rows).to(compact.device)])
        return {
            "compact": compact,
            "place": {int(row): k for k, row in enumerate(rows)},
            "phi": phi,
            "against_base": {a: (counts.version, counts.against_base(phi)) for a, counts in self.counts.items()},
        }

    def pseudo_count(self, prepared: Mapping[str, Any], row: int, action: int) -> float:
        """How often the action was played at observations like this row."""
        phi, solved = self._solve(prepared, row, action)
        with_itself = solved if self.kind == "squared" else phi
        return 1 / max(float(with_itself @ solved), 1e-30)

    def count(self, prepared: Mapping[str, Any], row: int, action: int) -> None:
        """Count one more play of an action, if it is one of those that are counted."""
        if action in self.counts:
            self.counts[action].add(*self._solve(prepared, row, action))

    def renewed(self, actions: Iterable[int], embedding: Embedding) -> ActionCounts:
        """Counts of other actions, or in other coordinates, with nothing counted yet."""
        return ActionCounts(actions, embedding, penalty=self.penalty, kind=self.kind)

    def count_all(self, action: int, compact: Tensor) -> None:
        """Count a play of an action at each row of a block of compact embeddings."""
        self.counts[action].add_many(self.embedding.isometric(compact))

    def settle(self) -> None:
        for counts in self.counts.values():
            counts.consolidate()

    def _solve(self, prepared: Mapping[str, Any], row: int, action: int) -> tuple[Tensor, Tensor]:
        """phi and G^-1 phi, from what was prepared as far as it still holds."""
        counts, place = self.counts[action], prepared["place"].get(row)
        if place is None:
            phi = self.embedding.isometric(prepared["compact"][row : row + 1])[0].clone()
            return phi, counts.solve(phi)
        version, products = prepared["against_base"][action]
        phi = prepared["phi"][place].clone()
        return phi, counts.solve(phi, products[place] if version == counts.version else None)

    def state_dict(self) -> dict[str, Any]:
        return {str(a): counts.state_dict() for a, counts in self.counts.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for action, counts in self.counts.items():
            counts.load_state_dict(state[str(action)])
