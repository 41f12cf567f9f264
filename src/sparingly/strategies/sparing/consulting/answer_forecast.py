"""What an expert would say, learned from all that it has said: that needs no truth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sparingly.strategies.sparing.beliefs import Beliefs, mix, share_of

FIRST_FOR_FORECAST = 100
"""Answers of an expert from which on there is a forecast of it."""
MOST_FOR_FORECAST = 1500
"""Answers, drawn at random, that it learns from at most: up to there a kernel stands beside the networks."""
GROWTH = 1.3
"""It is trained anew, when the other models are, once the rounds with answers have grown by this factor."""
LEAST_SHARE = 0.1
"""A forecast with a smaller share is left out."""


class AnswerOutlook(NamedTuple):
    """An observation before and after an expert's answer, where it is foreseen what experts would say.

    Attributes
    ----------
    before, risk
        What is believed without any answer, `[member, class]`: the mean of what would be believed after each answer of
        the expert with whom that is surest, weighed by how likely it is. And what announcing is expected to cost then.
    after
        What it is expected to cost once this expert has answered.
    likely
        How likely each of its answers is, `[class]`.
    """

    before: Tensor
    risk: float
    after: float
    likely: Tensor


class AnswerForecast:
    """p(answer | observation) of one expert.

    Learned from its answers by the same models as classes are, and mixed with what the own belief and the expert's
    reliability foresee anyway, by the share under which answers, unseen by either, are likely. Answers are many where
    truths are few, so this is known long before it is known how often the expert is right.

    >>> generator = torch.Generator().manual_seed(0)
    >>> X = torch.randn(240, 3, generator=generator)
    >>> said, nothing_known = (X[:, 0] > 0).long(), torch.full((240, 2), 0.5)
    >>> forecast = AnswerForecast(2, (3,))
    >>> forecast.fit(X, X, said, nothing_known, generator)
    >>> foreseen = forecast(torch.tensor([[2.0, 0.0, 0.0], [-2.0, 0.0, 0.0]]))
    >>> foreseen.argmax(1).tolist(), forecast.share > 0.9
    ([1, 0], True)
    """

    def __init__(self, n_classes: int, shape: tuple[int, ...]) -> None:
        self._beliefs = Beliefs(n_classes, shape)
        self.share = 0.0
        self.trained_at = 0
        """How many rounds with answers there had been when it was trained."""

    def fit(self, sample: Tensor, X: Tensor, said: Tensor, plain: Tensor, generator: torch.Generator) -> None:
        """Train anew on answers `[n]` to observations, scaled by a sample of the stream.

        `plain` is what was foreseen of these answers anyway, `[n, class]`.
        """
        folds = torch.arange(len(said)) % self._beliefs.members
        unseen = self._beliefs.fit(sample, X, said, folds, generator)
        share = share_of(plain, unseen, said)
        self.share = share if share >= LEAST_SHARE else 0.0

    def __call__(self, X: Tensor) -> Tensor:
        """How likely each answer is by the answers so far alone, `[block, class]`."""
        return self._beliefs(X).mean(0)

    def mixed(self, foreseen: Tensor, plain: Tensor) -> Tensor:
        """The same, mixed with what is foreseen anyway."""
        return mix(plain, foreseen, self.share)

    def state_dict(self) -> dict[str, Any]:
        beliefs = self._beliefs.state_dict() if self.share else None
        return {"share": self.share, "trained_at": self.trained_at, "beliefs": beliefs}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.share, self.trained_at = float(state["share"]), int(state["trained_at"])
        if state["beliefs"] is not None:
            self._beliefs.load_state_dict(state["beliefs"])


class AnswerForecasts:
    """Forecasts of all experts who may be wrong, by their places in the panel; of some there may be none yet.

    Parameters
    ----------
    n_classes, shape
        As in `Beliefs`.
    n_experts
        How many experts there are.
    """

    def __init__(self, n_classes: int, shape: tuple[int, ...], n_experts: int) -> None:
        self._n_classes, self._shape, self._n_experts = n_classes, shape, n_experts
        self._forecasts: dict[int, AnswerForecast] = {}

    @property
    def used(self) -> dict[int, AnswerForecast]:
        """Those with a share, by their experts."""
        return {e: one for e, one in self._forecasts.items() if one.share}

    def due(self, e: int, answers: int, seen: int) -> bool:
        """Whether to train, with so many answers at hand of an expert, after so many rounds with answers of anyone."""
        known = self._forecasts.get(e)
        return answers >= FIRST_FOR_FORECAST and (known is None or seen >= GROWTH * known.trained_at)

    def fit(
        self,
        e: int,
        sample: Tensor,
        answered: tuple[Tensor, Tensor, Tensor],
        seen: int,
        generator: torch.Generator,
    ) -> None:
        """Train that of an expert on `answered`: observations, answers and what was foreseen of them anyway."""
        one = self._forecasts.setdefault(e, AnswerForecast(self._n_classes, self._shape))
        chosen = torch.randperm(len(answered[0]), generator=generator)[:MOST_FOR_FORECAST]
        X, said, plain = (column[chosen] for column in answered)
        one.trained_at = seen
        one.fit(sample, X, said, plain, generator)

    def __call__(self, X: Tensor) -> Tensor:
        """How likely each answer of each expert is, `[block, expert, class]`; nan where there is no forecast."""
        found = torch.full((len(X), self._n_experts, self._n_classes), math.nan)
        for e, one in self.used.items():
            found[:, e] = one(X)
        return found

    def forget(self, e: int) -> None:
        """Of an expert who has changed, what it would say is learned anew."""
        self._forecasts.pop(e, None)

    def state_dict(self) -> dict[str, Any]:
        return {str(e): one.state_dict() for e, one in self._forecasts.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._forecasts = {int(e): AnswerForecast(self._n_classes, self._shape) for e in state}
        for e, one in self._forecasts.items():
            one.load_state_dict(state[str(e)])
