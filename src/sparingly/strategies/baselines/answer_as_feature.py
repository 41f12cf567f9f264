"""The answers of experts who may be wrong as features of Sparing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from sparingly.games import Game
from sparingly.strategies.families.expert_strategy import ExpertActions, Said
from sparingly.strategies.sparing.sparing import Sparing
from sparingly.strategies.strategy import NEVER, Assessment, Heard, Shape, Strategy, Why


class AnswerAsFeature(Strategy):
    """Asks every expert who may be wrong first; Sparing decides on the observation with their answers beside it.

    Each answer is one more feature for each class, 1 where it was named. Sparing then announces, or buys the truth.

    >>> from sparingly import Expert, label_efficient
    >>> game = label_efficient(2, experts=[Expert("gpt", 0.01), Expert("human", 1.0, gold=True)])
    >>> strategy = AnswerAsFeature(game, 3)
    >>> strategy.inner.n_features, strategy.decide(strategy.assess([[0.0, 0.0, 0.0]]), 0).action
    (5, 2)
    """

    name = "answer_as_feature"
    summary = "asks every expert who may be wrong; their answers are features of Sparing"
    reference = "baseline"
    playable = "label-efficient games, also with experts who may be wrong"
    noisy_experts = True
    scales = True

    def __init__(self, game: Game, n_features: Shape, *, seed: int = 0) -> None:
        super().__init__(game, n_features, seed=seed)
        self.experts = ExpertActions(game, self.name)
        if self.experts.gold is None:
            raise ValueError(
                f"{self.name} needs an expert who tells the truth, and {game.noisy_experts[0].name} may be wrong"
            )
        self.gold = self.experts.gold
        truth = game.without_noisy_experts()
        self.inner = Sparing(truth, self.n_features + len(self.experts.noisy) * game.n_outcomes, seed=seed)
        self._open: list[Tensor] = []
        """Rows that the truth was asked about."""

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        """Nothing yet: Sparing assesses a row once the answers are beside it."""
        return {}

    def _choose(self, assessment: Assessment, row: int) -> tuple[int, int, Why]:
        return self._choose_again(assessment, row, ())

    def _choose_again(self, assessment: Assessment, row: int, heard: Heard) -> tuple[int, int, Why]:
        asked = [action for action, _ in heard]
        whole = self._row(assessment.X[row], self.experts.said(heard))
        left = [a for a in self.experts.noisy if a not in asked]
        if left or self.gold in asked:
            likeliest = self.experts.announcement(torch.from_numpy(self.inner.scores(whole[None]))[0])
            return (left[0] if left else likeliest), likeliest, Why("everyone who may be wrong is asked first")
        decision = self.inner.decide(self.inner.assess(whole[None]), 0)
        if decision.asks:
            self._open = [*self._open[-999:], whole]
        return (self.gold if decision.asks else decision.action), decision.prediction, decision.why

    def _row(self, x: Tensor, said: Said) -> Tensor:
        features = [x.flatten()]
        for action in self.experts.noisy:
            named = torch.tensor(said.get(action, -1))
            features.append(nn.functional.one_hot(named.clamp(min=0), self.game.n_outcomes) * (named >= 0).float())
        return torch.cat(features)

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        if action in self.experts.noisy:
            return
        rows = [row for row in self._open if torch.equal(row[: self.n_features], x.flatten())]
        row = rows[0] if rows else self._row(x, {})
        self._open = [one for one in self._open if one is not row]
        gold = [a for a in range(self.game.n_outcomes, self.game.n_actions) if a not in self.experts.noisy]
        truth = self.game.n_outcomes + gold.index(action)
        self.inner.learn(row, truth, self.game.symbols(action)[symbol])

    def _scores(self, X: Tensor) -> Tensor:
        return torch.from_numpy(self.inner.scores(torch.stack([self._row(x, {}) for x in X])))

    def _due_in(self) -> int:
        return NEVER

    def _train(self) -> None:
        """Nothing to do: Sparing trains when it learns."""

    def _state(self) -> dict[str, Any]:
        return {"inner": self.inner.state_dict(), "open": list(self._open)}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.inner.load_state_dict(state["inner"])
        self._open = list(state["open"])
