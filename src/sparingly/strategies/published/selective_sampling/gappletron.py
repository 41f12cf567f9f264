"""Gappletron: a linear classifier that errs on purpose just as often as its surrogate has to spare."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.strategies.families.linear_strategy import LinearStrategy
from sparingly.strategies.families.network_options import one_of
from sparingly.strategies.published.selective_sampling.surrogates import SURROGATES
from sparingly.strategies.strategy import Assessment, Shape, Why


class Gappletron(LinearStrategy):
    """Asks with probability gamma_t, else announces the best class but for a share of random announcements.

    From the publication: scores W x; the announcement is drawn from (1 - a) on the best class and a / K on each, where
    the gap map a keeps the expected errors below the surrogate; a question with
    probability gamma_t = min(1/2, rate / sqrt(t)), the dominating set of the game being the expert alone; steps
    norm / sqrt(2 sum |gradient|^2) against the gradient over the probability of being told. Our reading: `rate` and
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

    def __init__(self, game: Game, n_features: Shape, *, surrogate: str = "smooth_hinge", **options: Any) -> None:
        self.rate, self.norm = float(options.pop("rate", 1.0)), float(options.pop("norm", 10.0))
        super().__init__(game, n_features, **options)
        one_of(tuple(SURROGATES), surrogate=surrogate)
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

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"squares": self.squares}

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        self.squares = float(state["squares"])
