"""Gappletron: a linear classifier that errs on purpose just as often as its surrogate has to spare."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.strategies.families.linear_strategy import LinearStrategy
from sparingly.strategies.families.network_options import check_choice
from sparingly.strategies.strategy import Assessment, Shape, Why


@dataclass(frozen=True)
class Surrogate:
    """A surrogate of the errors: its value for a class, and how often to announce at random, given the scores `[K]`."""

    value: Callable[[Tensor, int], Tensor]
    gap_map: Callable[[Tensor], float]


def margin(scores: Tensor, y: int) -> Tensor:
    """How far the score of a class is above the best of the others."""
    others = torch.cat([scores[:y], scores[y + 1 :]])
    return scores[y] - others.max()


def _lead(scores: Tensor) -> float:
    return float(margin(scores, int(scores.argmax())))


def _logistic(scores: Tensor, y: int) -> Tensor:
    return -scores.log_softmax(0)[y] / math.log(2)


def _hinge(scores: Tensor, y: int) -> Tensor:
    m = margin(scores, y)
    return (1 - m).clamp_min(0.0) * bool(m <= 0.5)


def _smooth_hinge(scores: Tensor, y: int) -> Tensor:
    m = margin(scores, y)
    return 1 - 2 * m if m <= 0 else (1 - m).clamp_min(0.0).square()


def _half(scores: Tensor) -> float:
    largest = float(scores.softmax(0).max())
    return 1 - largest if largest >= 0.5 else 1.0


SURROGATES = {
    "logistic": Surrogate(_logistic, _half),
    "hinge": Surrogate(_hinge, lambda scores: 1 - max(float(_lead(scores) > 0.5), min(1.0, _lead(scores)))),
    "smooth_hinge": Surrogate(_smooth_hinge, lambda scores: (1 - min(1.0, _lead(scores))) ** 2),
}
"""Base-2 logistic loss, hinge loss that is 0 above a margin of 1/2, and smooth hinge loss, with their gap maps."""


class Gappletron(LinearStrategy):
    """Asks with probability gamma_t, else announces the best class but for a share of random announcements.

    From the publication: scores W x; the announcement is drawn from (1 - a) on the best class and a / K on each, where
    the gap map a keeps the expected errors below the surrogate; a question with
    probability gamma_t = min(1/2, rate / sqrt(t)), the dominating set of the game being the expert alone; steps
    norm / sqrt(2 sum |gradient|^2) against the gradient over the probability of asking. Our reading: `rate` and
    the norm 10 are from a later paper's set-up; observations have a 1 appended and are scaled to length 1; with a late
    answer that probability is the one of the round in which it comes.

    Parameters
    ----------
    surrogate
        "logistic", "hinge" or "smooth_hinge".
    rate, norm
        Of the questions, and of the steps.

    >>> from sparingly import label_efficient
    >>> strategy = Gappletron(label_efficient(3), 2)
    >>> strategy.advance(99)
    >>> strategy.chance()
    0.1

    References
    ----------
    van der Hoeven, Fusco, Cesa-Bianchi (2021). Beyond bandit feedback in online multiclass classification. NeurIPS.
    """

    name = "gappletron"
    summary = "a linear classifier that asks with probability 1 / sqrt(t)"
    reference = "van der Hoeven, Fusco, Cesa-Bianchi 2021"
    beats_random = False
    unit_length = True
    rule_state = ("squares",)

    def __init__(
        self,
        game: Game,
        n_features: Shape,
        *,
        surrogate: str = "smooth_hinge",
        rate: float = 1.0,
        norm: float = 10.0,
        seed: int = 0,
    ) -> None:
        super().__init__(game, n_features, seed=seed)
        self.rate, self.norm = float(rate), float(norm)
        check_choice(tuple(SURROGATES), surrogate=surrogate)
        self.surrogate = surrogate
        self.squares = 0.0

    def chance(self) -> float:
        """gamma_t: of asking at this round."""
        return min(0.5, self.rate / math.sqrt(self.clock + 1))

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        return {"scores": self._scores(X)}

    def _choose(self, assessment: Assessment, row: int) -> tuple[int, int, Why]:
        scores = assessment.values["scores"][row]
        best, numbers = int(scores.argmax()), {"chance": self.chance()}
        if self.rng.random() < numbers["chance"]:
            return self.expert, best, Why("drawn to ask, with probability {chance:.3g}", numbers)
        numbers["share"] = SURROGATES[self.surrogate].gap_map(scores)
        if self.rng.random() < numbers["share"]:
            return (
                int(self.rng.integers(len(scores))),
                best,
                Why("announced at random, a share of {share:.3g}", numbers),
            )
        return best, best, Why("the best class, but for a share of {share:.3g}", numbers)

    def gradient(self, row: Tensor, target: Tensor) -> Tensor:
        """Of the surrogate with respect to the weights, averaged over the classes that are possible."""
        scores = (self.weight @ row).requires_grad_()
        with torch.enable_grad():
            value = sum(
                target[y] * SURROGATES[self.surrogate].value(scores, y) for y in range(len(target)) if target[y]
            )
            (slope,) = torch.autograd.grad(torch.as_tensor(value), scores, allow_unused=True, materialize_grads=True)
        return slope[:, None] * row

    def _step(self, row: Tensor, target: Tensor) -> None:
        asked_with = min(0.5, self.rate / math.sqrt(max(1, self.clock)))
        step = self.gradient(row, target) / asked_with
        self.squares += float(step.square().sum())
        self.weight = self.weight - self.norm / math.sqrt(2 * (1e-8 + self.squares)) * step

    def _identity(self) -> dict[str, Any]:
        return {"surrogate": self.surrogate}
