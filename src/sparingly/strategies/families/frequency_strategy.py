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
from sparingly.strategies.families.confidence_bounds import Floats, PairComparison
from sparingly.strategies.families.featureless_strategy import SymbolCounts
from sparingly.strategies.strategy import NEVER, Assessment


class FrequencyStrategy(ConfidenceBoundStrategy):
    """Confidence bounds without side information; a subclass says by what the widths are multiplied.

    pi_a is the frequency of each symbol among the answers, its width is U / sqrt(n_a) with U = sqrt(alpha log t) and
    n_a the number of answers. An action is underplayed by the rounds in which it was played, answered or not.
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
        self.counts = SymbolCounts(self.bounds)

    @abc.abstractmethod
    def _factor(self, largest: float) -> Floats | None:
        """The factor of each neighbor pair's width, `[pair]`, as a share of U = `largest`; None for 1."""

    def _compare(self, assessment: Assessment, row: int) -> tuple[PairComparison, int]:
        largest = math.sqrt(self.bounds.alpha * math.log(self.clock + 1))
        width = largest / np.sqrt(np.maximum(self.counts.answers(), 1e-12))
        factor = self._factor(largest)
        drawn = None if factor is None else factor[None]
        return self.bounds.compare(self.counts.frequencies()[None], width[None], drawn), 0

    def _times_played(self, assessment: Assessment, row: int, action: int) -> float:
        return self.counts.times_played(action)

    def _count(self, assessment: Assessment, row: int, action: int) -> None:
        self.counts.add_play(action)

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        return {}

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        self.counts.add(action, symbol)

    def _train(self) -> None:
        pass

    def _due_in(self) -> int:
        return NEVER

    def _scores(self, X: Tensor) -> Tensor:
        return self.counts.scores(len(X))

    def _learned(self) -> dict[str, Any]:
        return self.counts.state_dict()

    def _relearn(self, learned: Mapping[str, Any]) -> None:
        self.counts.load_state_dict(learned)
