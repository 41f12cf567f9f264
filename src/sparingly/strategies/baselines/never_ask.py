"""Never ask: label a few at the start, then announce the class that was most common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.strategies.families.classifier_strategy import full_expert
from sparingly.strategies.strategy import NEVER, Assessment, Strategy, Why


class NeverAsk(Strategy):
    """Asks about the first observations only, then always announces the class of least average cost among them.

    Parameters
    ----------
    start
        How many to ask about first; with 0 no question is asked at all, and every class is held equally likely.

    >>> from sparingly import label_efficient
    >>> strategy = NeverAsk(label_efficient(2), 1, start=3)
    >>> for outcome in (1, 0, 1):
    ...     decision = strategy.decide(strategy.assess([[0.0]]), 0)
    ...     strategy.learn([0.0], decision.action, strategy.game.feedback[decision.action][outcome])
    >>> strategy.decide(strategy.assess([[0.0]]), 0).action
    1
    """

    name = "never_ask"
    summary = "announces the commonest class of a short start"
    reference = "baseline"
    playable = "label-efficient games"
    stops_asking = True

    def __init__(self, game: Game, n_features: int | tuple[int, ...], *, start: int = 20, seed: int = 0) -> None:
        super().__init__(game, n_features, seed=seed)
        self.expert = full_expert(game, self.name)
        self.start = start
        self.seen = np.zeros(game.n_outcomes)

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        return {}

    def _choose(self, assessment: Assessment, row: int) -> tuple[int, int, Why]:
        likely = self.seen if self.seen.any() else np.ones_like(self.seen)
        cheapest = int((self.game.costs[: self.game.n_outcomes] @ likely).argmin())
        if self.clock < self.start:
            return self.expert, cheapest, Why("it asks about the first {start}", {"start": self.start})
        if not self.start:
            return cheapest, cheapest, Why("the cheapest announcement, and it never asks")
        return cheapest, cheapest, Why("the cheapest announcement for the first {start}", {"start": self.start})

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        self.seen[self.game.feedback[action].index(self.game.symbols(action)[symbol])] += 1

    def _train(self) -> None:
        pass

    def _due_in(self) -> int:
        return NEVER

    def _scores(self, X: Tensor) -> Tensor:
        return torch.from_numpy(np.tile((self.seen + 1) / (self.seen.sum() + len(self.seen)), (len(X), 1)))

    def _state(self) -> dict[str, Any]:
        return {"seen": self.seen.tolist()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.seen = np.array(state["seen"])
