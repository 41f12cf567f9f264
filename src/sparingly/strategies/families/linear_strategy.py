"""Strategies with one linear classifier that learn from each label at once."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.learning.determinism import pad_block
from sparingly.strategies.families.classifier_strategy import full_expert, outcome_distribution
from sparingly.strategies.strategy import Shape, Strategy


class LinearStrategy(Strategy):
    """Scores W x, changed by each label as it comes; a subclass says how (`_step`), and when to ask."""

    playable = "label-efficient games"
    unit_length = False
    """Whether observations are scaled to length 1."""
    rule_state: ClassVar[tuple[str, ...]] = ()
    """The attributes, besides the weights, that belong to its state."""

    def __init__(self, game: Game, n_features: Shape, *, seed: int = 0) -> None:
        super().__init__(game, n_features, seed=seed)
        self.expert = full_expert(game, self.name)
        self.weight = torch.zeros(game.n_outcomes, self.n_features + 1)

    @abc.abstractmethod
    def _step(self, row: Tensor, target: Tensor) -> None:
        """Learn that an observation, as `rows` gives it, has a class of the distribution `target`."""

    def rows(self, X: Tensor) -> Tensor:
        """Flat observations with a 1 appended, so that a class can have a bias, `[block, features + 1]`."""
        rows = torch.cat([X.flatten(1), X.new_ones(len(X), 1)], 1)
        return rows / rows.norm(dim=1, keepdim=True) if self.unit_length else rows

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        self._step(self.rows(x[None])[0], outcome_distribution(self.game, action, symbol))

    def _due_after_label(self) -> bool:
        return True

    def _train(self) -> None:
        pass

    def _due_in(self) -> int:
        """Never due by the clock; but each label ends an assessment, so long blocks would be assessed in vain."""
        return 16

    def _scores(self, X: Tensor) -> Tensor:
        return (pad_block(self.rows(X)) @ self.weight.T)[: len(X)]

    def _state(self) -> dict[str, Any]:
        return {"weight": self.weight} | {name: getattr(self, name) for name in self.rule_state}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.weight = state["weight"].reshape(self.weight.shape)
        for name in self.rule_state:
            setattr(self, name, type(getattr(self, name))(state[name]))
