"""Cache and distil: a student asks within a budget of calls, by its margin or by a committee's disagreement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.strategies.families.network_options import check_choice
from sparingly.strategies.families.taught_strategy import LogisticRegression, Said, TaughtStrategy
from sparingly.strategies.strategy import Assessment, Shape, Why


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
    rule_state = ("calls",)

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
        self.criterion, self.budget, self.threshold, self.asks = criterion, budget, threshold, self.named(expert)
        size = committee if criterion == "committee" else 0
        self.committee = [LogisticRegression(self.n_features, game.n_outcomes) for _ in range(size)]
        self.calls = 0

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        two = self._scores(X).topk(2, dim=1).values
        margin = (two[:, 0] - two[:, 1]).tolist()
        if self.committee and self.trained_on:
            votes = torch.stack([one(X).argmax(1) for one in self.committee])
            margin = (votes == votes[0]).all(0).float().tolist()
        return {**super()._assess(X), "margin": margin}

    def _choose(self, assessment: Assessment, row: int) -> tuple[int, int, Why]:
        _, prediction, _ = super()._choose(assessment, row)
        margin, left = assessment.values["margin"][row], self.calls < self.budget * (self.clock + 1)
        asks = left and (margin < self.threshold or not self.trained_on)
        self.calls += asks
        why = Why("margin {margin:.2f}, {calls} calls", {"margin": margin, "calls": self.calls})
        return (self.asks if asks else prediction), prediction, why

    def _whom(self, x: Tensor, probability: Tensor, said: Said, asked: Sequence[int]) -> tuple[int | None, Why]:
        return None, Why("the expert was asked")

    def _train(self) -> None:
        super()._train()
        for one in self.committee:
            half = torch.from_numpy(self.rng.permutation(len(self.memory))[: (len(self.memory) + 1) // 2])
            one.fit(self.memory["x"][half], self.memory["y"][half])

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "committee": [one.state_dict() for one in self.committee]}

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        for one, saved in zip(self.committee, state["committee"], strict=True):
            one.load_state_dict(saved)
