"""The selective perceptron: the published algorithm behind Cesa, in full."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from sparingly.games import Game
from sparingly.strategies.families.linear_strategy import LinearStrategy
from sparingly.strategies.strategy import Assessment, Shape, Why


class SelectivePerceptron(LinearStrategy):
    """A perceptron that asks with probability b / (b + m), and learns from the questions it had wrong.

    From the publication: m is the margin, b = beta X'^2 sqrt(K + 1), X' is the longest observation among this one and
    those learned from, K the mistakes among the answers; a right answer changes nothing. Our reading: with more than
    two classes m is the lead of the best class, and a mistake moves the weights of the two classes in question; an
    observation has a 1 appended, so that a class can have a bias.

    Parameters
    ----------
    beta
        Scales b: the larger, the more questions.

    >>> from sparingly import label_efficient
    >>> strategy = SelectivePerceptron(label_efficient(2), 1)
    >>> decision = strategy.decide(strategy.assess([[2.0]]), 0)
    >>> str(decision.why)
    'drawn to ask, with probability 1'
    >>> strategy.learn([2.0], decision.action, strategy.game.feedback[decision.action][1])
    >>> strategy.weight.tolist(), strategy.mistakes
    ([[-2.0, -1.0], [2.0, 1.0]], 1)

    References
    ----------
    Cesa-Bianchi, Gentile, Zaniboni (2006). Worst-case analysis of selective sampling for linear classification. JMLR.
    """

    name = "selective_perceptron"
    summary = "a linear classifier that asks at random, the less the larger its margin"
    reference = "Cesa-Bianchi, Gentile, Zaniboni 2006"
    beats_random = False
    rule_state = ("mistakes", "longest")

    def __init__(self, game: Game, n_features: Shape, *, beta: float = 1.0, seed: int = 0) -> None:
        super().__init__(game, n_features, seed=seed)
        self.beta = beta
        self.mistakes, self.longest = 0, 0.0

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        scores = self._scores(X)
        cost = scores.double().numpy() @ self.game.costs[: self.game.n_outcomes].T
        two = scores.topk(2, 1).values
        squares = self.rows(X).square().sum(1)
        return {
            "lead": (two[:, 0] - two[:, 1]).tolist(),
            "cheapest": cost.argmin(1).tolist(),
            "square": squares.tolist(),
        }

    def _choose(self, assessment: Assessment, row: int) -> tuple[int, int, Why]:
        lead, cheapest = assessment.values["lead"][row], assessment.values["cheapest"][row]
        square = max(self.longest**2, assessment.values["square"][row])
        b = self.beta * square * math.sqrt(self.mistakes + 1)
        chance = b / (b + lead)
        if self.rng.random() < chance:
            return self.expert, cheapest, Why("drawn to ask, with probability {chance:.3g}", {"chance": chance})
        return cheapest, cheapest, Why("not drawn, with probability {chance:.3g}", {"chance": chance})

    def _step(self, row: Tensor, target: Tensor) -> None:
        best = int((self.weight @ row).argmax())
        if target[best] > 0:
            return
        self.weight = self.weight + target[:, None] * row
        self.weight[best] -= row
        self.mistakes += 1
        self.longest = max(self.longest, float(row.norm()))
