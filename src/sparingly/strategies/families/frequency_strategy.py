"""What CBP and RandCBP share: symbol frequencies as estimates, and widths that know nothing of the observation."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from sparingly.games import Game
from sparingly.strategies.families.confidence_bound_strategy import ConfidenceBoundStrategy
from sparingly.strategies.families.confidence_bounds import Comparison, Floats
from sparingly.strategies.families.featureless_strategy import Featureless
from sparingly.strategies.strategy import Assessment


class FrequencyStrategy(Featureless, ConfidenceBoundStrategy):
    """Confidence bounds without side information; a subclass says by what the widths are multiplied.

    pi_a is the frequency of each symbol among those told, its width is U / sqrt(n_a) with U = sqrt(alpha log t) and n_a
    the symbols told. An action is underplayed by the rounds in which it was played, told or not.
    """

    def __init__(
        self,
        game: Game,
        n_features: int | tuple[int, ...],
        *,
        alpha: float = 1.01,
        ties: str = "cheapest",
        seed: int = 0,
    ) -> None:
        super().__init__(game, n_features, alpha=alpha, ties=ties, seed=seed)
        self._begin_tallies()

    @abc.abstractmethod
    def _factor(self, largest: float) -> Floats | None:
        """The factor of each neighbor pair's width, `[pair]`, as a share of U = `largest`; None for 1."""

    def _compare(self, assessment: Assessment, row: int) -> tuple[Comparison, int]:
        largest = math.sqrt(self.bounds.alpha * math.log(self.clock + 1))
        width = largest / np.sqrt(np.maximum(self.tallies.told(), 1e-12))
        factor = self._factor(largest)
        drawn = None if factor is None else factor[None]
        return self.bounds.compare(self.tallies.frequencies()[None], width[None], drawn), 0

    def _plays(self, assessment: Assessment, row: int, action: int) -> float:
        return float(self.tallies.plays[self._place(action)])

    def _count(self, assessment: Assessment, row: int, action: int) -> None:
        self.tallies.plays[self._place(action)] += 1

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        self.tallies.tell(self._place(action), symbol)

    def _learned(self) -> dict[str, Any]:
        return self.tallies.state_dict()

    def _relearn(self, learned: Mapping[str, Any]) -> None:
        self.tallies.load_state_dict(learned)
