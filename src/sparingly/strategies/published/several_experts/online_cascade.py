"""Online cascade learning: a small model in front of an expert, with a learned deferral score."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.strategies.families.expert_strategy import Said
from sparingly.strategies.families.taught_strategy import TaughtStrategy
from sparingly.strategies.strategy import Shape, Why


class OnlineCascade(TaughtStrategy):
    """The own classifier decides where a deferral score d(x) allows it and a coin has come up; else the expert does.

    From the publication: d is trained by gradient descent, at every answer, towards 1 where the classifier's prediction
    differs from the expert's, plus an offset that weighs the cost of a call; the level acts if d <= 0.5 and a coin of
    probability 1 - beta^updates says so; all is learned from the expert's answers alone. Our reading: one small model,
    where the publication has logistic regression and a transformer; d is a logistic regression on the largest
    probability, the margin and the entropy; an update of the coin is an answer.

    Parameters
    ----------
    beta
        How fast the coin lets the classifier act.
    offset
        Subtracted from d, so that the larger it is, the fewer calls are made.
    rate
        The learning rate of d.
    expert, learner
        Whom to ask, the cheapest by default; see `TaughtStrategy`.

    References
    ----------
    Nie, Ding, Hu, Jermaine, Chaudhuri (2024). Online cascade learning for efficient inference over streams. ICML.

    Examples
    --------
    >>> from sparingly import label_efficient
    >>> cascade = OnlineCascade(label_efficient(2), 1)
    >>> cascade.decide(cascade.assess([[0.0]]), 0).asks
    True
    """

    name = "online_cascade"
    summary = "a small model in front of an expert, with a deferral score learned from its answers"
    reference = "Nie, Ding, Hu, Jermaine, Chaudhuri 2024"
    stops_asking = True
    beats_random = False
    rule_state = ("answers", "deferral")

    def __init__(
        self,
        game: Game,
        n_features: Shape,
        *,
        beta: float = 0.99,
        offset: float = 0.0,
        rate: float = 0.1,
        expert: str | None = None,
        learner: str = "logistic",
        seed: int = 0,
    ) -> None:
        super().__init__(game, n_features, learner=learner, seed=seed)
        if not 0 <= beta < 1:
            raise ValueError(f"beta is {beta}: it must be from 0 up to, but not, 1")
        self.beta, self.offset, self.rate, self.asks = beta, offset, rate, self.experts.find(expert)
        self.answers = 0
        self.deferral = torch.tensor([0.0, 0.0, 0.0, 1.0])

    def _whom(self, x: Tensor, probability: Tensor, said: Said, asked: Sequence[int]) -> tuple[int | None, Why]:
        if asked:
            return None, Why("the expert was asked")
        score = float(torch.sigmoid(_signs(probability) @ self.deferral)) - self.offset
        free = self.rng.random() < 1 - self.beta**self.answers
        why = Why("the deferral score is {score:.2f} after {n} answers", {"score": score, "n": self.answers})
        return (None if free and score <= 0.5 and self.trained_on else self.asks), why

    def _answered(self, x: Tensor, y: int) -> None:
        probability = self._scores(x[None])[0]
        differs, signs = float(int(probability.argmax()) != y), _signs(probability)
        self.deferral = self.deferral + self.rate * (differs - torch.sigmoid(signs @ self.deferral)) * signs
        self.answers += 1


def _signs(probability: Tensor) -> Tensor:
    """The largest probability, the margin, the entropy over its most, and 1."""
    two = probability.topk(2).values
    entropy = torch.special.entr(probability).sum() / torch.tensor(float(len(probability))).log()
    return torch.stack([two[0], two[0] - two[1], entropy, torch.ones(())])
