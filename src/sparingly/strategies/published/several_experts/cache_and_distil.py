"""Cache and distil: a student asks within a budget of calls, by its margin or by a committee's disagreement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.strategies.families.expert_strategy import Said
from sparingly.strategies.families.network_options import check_choice
from sparingly.strategies.families.taught_strategy import LogisticRegression, TaughtStrategy
from sparingly.strategies.strategy import Shape, Why


class HalvesCommittee:
    """Logistic regressions, each on another half of the answers."""

    def __init__(self, size: int, n_features: int, n_classes: int) -> None:
        self.members = [LogisticRegression(n_features, n_classes) for _ in range(size)]

    def fit(self, X: Tensor, y: Tensor, rng: np.random.Generator) -> None:
        for member in self.members:
            half = torch.from_numpy(rng.permutation(len(X))[: (len(X) + 1) // 2])
            member.fit(X[half], y[half])

    def agrees(self, x: Tensor) -> bool:
        """Whether all members hold the same class of an observation to be the likeliest."""
        return len({int(member(x[None]).argmax()) for member in self.members}) == 1

    def state_dict(self) -> list[dict[str, Any]]:
        return [member.state_dict() for member in self.members]

    def load_state_dict(self, state: Sequence[Mapping[str, Any]]) -> None:
        for member, saved in zip(self.members, state, strict=True):
            member.load_state_dict(saved)


class CacheAndDistil(TaughtStrategy):
    """Asks where the margin is small, or a committee disagrees, as long as the budget of calls allows.

    From the publication: the two criteria, the student's training on the expert's answers, a budget of calls. Our
    reading: the budget is a share of the rounds so far, rather than a number for a stream of known length; a committee
    is logistic regressions on halves of the answers, and disagrees where their votes are not all the same.

    Parameters
    ----------
    criterion
        "margin", the lead of the likeliest class, below `threshold`; or "committee".
    budget
        The largest share of the rounds so far that may be calls.
    threshold
        On the margin.
    committee
        How many members it has.
    expert, learner
        Whom to ask, the cheapest by default; see `TaughtStrategy`.

    References
    ----------
    Ramirez, Lindemann, Birch, Titov (2024). Cache & distil: optimising API calls to large language models.

    Examples
    --------
    >>> from sparingly import label_efficient
    >>> strategy = CacheAndDistil(label_efficient(2), 1, budget=0.5)
    >>> [strategy.decide(strategy.assess([[0.0]]), 0).asks for _ in range(4)]
    [True, False, True, False]
    """

    name = "cache_and_distil"
    summary = "asks within a budget of calls, by the margin or a committee's disagreement"
    reference = "Ramirez, Lindemann, Birch, Titov 2024"
    stops_asking = True
    beats_random = False
    rule_state = ("calls", "committee")

    def __init__(
        self,
        game: Game,
        n_features: Shape,
        *,
        criterion: str = "margin",
        budget: float = 0.3,
        threshold: float = 0.5,
        committee: int = 4,
        expert: str | None = None,
        learner: str = "logistic",
        seed: int = 0,
    ) -> None:
        super().__init__(game, n_features, learner=learner, seed=seed)
        check_choice(("margin", "committee"), criterion=criterion)
        if not 0 < budget <= 1:
            raise ValueError(f"budget is {budget}: it is a share of the rounds, above 0 and at most 1")
        self.criterion, self.budget, self.threshold, self.asks = criterion, budget, threshold, self.experts.find(expert)
        size = committee if criterion == "committee" else 0
        self.committee = HalvesCommittee(size, self.n_features, game.n_outcomes)
        self.calls = 0

    def _whom(self, x: Tensor, probability: Tensor, said: Said, asked: Sequence[int]) -> tuple[int | None, Why]:
        if asked:
            return None, Why("the expert was asked")
        margin, left = self._margin(x, probability), self.calls < self.budget * (self.clock + 1)
        asks = left and (margin < self.threshold or not self.trained_on)
        self.calls += asks
        why = Why("margin {margin:.2f}, {calls} calls", {"margin": margin, "calls": self.calls})
        return (self.asks if asks else None), why

    def _margin(self, x: Tensor, probability: Tensor) -> float:
        """The lead of the likeliest class; 1 or 0 for a committee, by whether it agrees."""
        if self.committee.members and self.trained_on:
            return float(self.committee.agrees(x))
        two = probability.topk(2).values
        return float(two[0] - two[1])

    def _trained(self) -> None:
        self.committee.fit(self.memory["x"], self.memory["y"], self.rng)
