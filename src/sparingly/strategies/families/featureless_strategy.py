"""What strategies share that look at no feature: they count symbols, and have nothing to assess or to train."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparingly.strategies.families.confidence_bounds import Bounds, Floats
from sparingly.strategies.families.symbol_counts import Tallies
from sparingly.strategies.strategy import Strategy


class Featureless(Strategy):
    """Estimates the same outcome distribution for every observation; `n_features` is only checked."""

    bounds: Bounds
    tallies: Tallies

    def _begin_tallies(self) -> None:
        self.tallies = Tallies([len(self.game.symbols(a)) for a in self.bounds.informative])

    @property
    def signals(self) -> Floats:
        """`[symbol, outcome]`: the signal matrices of the informative actions, one below the other."""
        nothing = np.zeros((0, self.game.n_outcomes))
        return np.vstack([nothing, *(self.bounds.geometry.signal[a] for a in self.bounds.informative)])

    def _place(self, action: int) -> int:
        return self.bounds.informative.index(action)

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        return {}

    def _train(self) -> None:
        pass

    def _due_in(self) -> int:
        return 1_000_000

    def _scores(self, X: Tensor) -> Tensor:
        return torch.from_numpy(self.bounds.outcomes(self.tallies.frequencies()[None])).expand(len(X), -1)
