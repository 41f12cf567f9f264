"""A confidence dial: the own classifier decides where it is sure enough, an expert everything else."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from sparingly.games import Game
from sparingly.strategies.families.expert_strategy import Said
from sparingly.strategies.families.taught_strategy import TaughtStrategy
from sparingly.strategies.strategy import Shape, Why


class ConfidenceDial(TaughtStrategy):
    """Asks an expert where the own classifier's largest probability is below a threshold, and believes the answer.

    The classifier learns from these answers. The threshold is to be turned by hand: what is best for one stream and one
    price is not for another.

    Parameters
    ----------
    threshold
        On the largest probability.
    expert
        Whom to ask; the cheapest by default.
    learner
        See `TaughtStrategy`.

    >>> from sparingly import label_efficient
    >>> dial = ConfidenceDial(label_efficient(2), 1, threshold=0.8)
    >>> dial.decide(dial.assess([[0.0]]), 0).asks, str(dial.decide(dial.assess([[0.0]]), 0).why)
    (True, 'confidence 0.50, the dial is at 0.80')
    """

    name = "confidence_dial"
    summary = "asks an expert where the own classifier's confidence is below a threshold"
    reference = "baseline"
    stops_asking = True

    def __init__(
        self,
        game: Game,
        n_features: Shape,
        *,
        threshold: float = 0.8,
        expert: str | None = None,
        learner: str = "logistic",
        seed: int = 0,
    ) -> None:
        super().__init__(game, n_features, learner=learner, seed=seed)
        if not 0 <= threshold <= 1:
            raise ValueError(f"threshold is {threshold}: it is a probability, from 0 to 1")
        self.threshold, self.asks = threshold, self.experts.find(expert)

    def _whom(self, x: Tensor, probability: Tensor, said: Said, asked: Sequence[int]) -> tuple[int | None, Why]:
        confidence = float(probability.max())
        numbers = {"confidence": confidence, "threshold": self.threshold}
        asks = confidence < self.threshold or not self.trained_on
        return (self.asks if asks else None), Why(
            "confidence {confidence:.2f}, the dial is at {threshold:.2f}", numbers
        )
