"""Ask at random: with the same probability about every observation."""

from __future__ import annotations

from typing import Any

from sparingly.games import Game
from sparingly.strategies.families.classifier_strategy import ClassifierStrategy, Floats
from sparingly.strategies.strategy import Shape, Why


class RandomAsks(ClassifierStrategy):
    """Asks with probability p, whatever the observation: what every clever strategy must beat.

    >>> from sparingly import label_efficient
    >>> strategy = RandomAsks(label_efficient(2), 1, p=0.25, seed=0)
    >>> sum(strategy.decide(strategy.assess([[0.0]]), 0).asks for _ in range(400))
    93
    """

    name = "random"
    summary = "asks with the same probability about every observation"
    reference = "baseline"
    beats_random = False

    def __init__(self, game: Game, n_features: Shape, *, p: float = 0.1, **options: Any) -> None:
        super().__init__(game, n_features, **options)
        if not 0 <= p <= 1:
            raise ValueError(f"p is {p}: a probability is between 0 and 1")
        self.p = p

    def _rule(self, probability: Floats) -> tuple[bool, Why]:
        asks = bool(self.rng.random() < self.p)
        return asks, Why("asked at random" if asks else "not drawn", {"probability": self.p, "audit": asks})
