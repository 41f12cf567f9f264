"""The center-based classifier: a few labels for each class, then the nearest center."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.learning.determinism import pad_block
from sparingly.strategies.families.expert_strategy import ExpertStrategy, Said
from sparingly.strategies.strategy import NEVER, Shape, Why


class CenterClassifier(ExpertStrategy):
    """Asks about the first c M log M observations, then announces the class with the nearest center for ever (CC).

    From the publication: the centers are the means of the labels of each class; regret of the order of M log M, M the
    number of classes, if the classes are well separated and the stream is not too long. Our reading: the number of
    questions, and a factor c for it; distances are Euclidean; costs of mistakes are not looked at.

    Parameters
    ----------
    c
        The factor of M log M.

    References
    ----------
    Reveillard, Saketos, Proutiere, Combes (2025). Minimizing human intervention in online classification.

    Examples
    --------
    >>> from sparingly import label_efficient
    >>> strategy = CenterClassifier(label_efficient(2), 1)
    >>> for x in (-1.0, 1.0, -2.0, 2.0, -1.5, 1.5):
    ...     decision = strategy.decide(strategy.assess([[x]]), 0)
    ...     strategy.learn([x], decision.action, strategy.game.feedback[decision.action][int(x > 0)])
    >>> strategy.decide(strategy.assess([[0.4]]), 0).action, strategy.to_ask
    (1, 6)
    """

    name = "center_classifier"
    summary = "asks about the first few observations, then announces the class with the nearest center"
    reference = "Reveillard, Saketos, Proutiere, Combes 2025"
    playable = "label-efficient games"
    noisy_experts = False
    stops_asking = True
    beats_random = False

    def __init__(self, game: Game, n_features: Shape, *, c: float = 4.0, seed: int = 0) -> None:
        super().__init__(game, n_features, seed=seed)
        if not c > 0:
            raise ValueError(f"c is {c}: it must be positive")
        self.to_ask = math.ceil(c * game.n_outcomes * math.log(max(2, game.n_outcomes)))
        self.sums, self.counts = torch.zeros(game.n_outcomes, self.n_features), torch.zeros(game.n_outcomes)

    def _whom(self, x: Tensor, probability: Tensor, said: Said, asked: Sequence[int]) -> tuple[int | None, Why]:
        known = int(self.counts.sum())
        why = Why("{known} of {n} labels are known", {"known": known, "n": self.to_ask})
        return (self.experts.gold if self.clock + self.n_taught < self.to_ask else None), why

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        y = self.experts.class_at(action, symbol)
        self.sums[y] += x.flatten()
        self.counts[y] += 1

    def _scores(self, X: Tensor) -> Tensor:
        """Nearness to the centers, as a distribution; a class without labels has no center."""
        known = self.counts > 0
        if not bool(known.any()):
            return torch.full((len(X), self.game.n_outcomes), 1 / self.game.n_outcomes)
        centers = self.sums[known] / self.counts[known, None]
        near = centers.new_full((len(X), self.game.n_outcomes), -math.inf)
        squared = centers.square().sum(1) - 2 * (pad_block(X.flatten(1)) @ centers.T)[: len(X)]
        near[:, known] = -squared / centers.square().sum(1).mean().clamp(min=1e-6)
        return near.softmax(1)

    def _due_after_label(self) -> bool:
        return True

    def _due_in(self) -> int:
        return NEVER

    def _train(self) -> None:
        """Nothing to do: each label has moved its center already."""

    def _state(self) -> dict[str, Any]:
        return {"sums": self.sums, "counts": self.counts}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.sums, self.counts = state["sums"].clone(), state["counts"].clone()
