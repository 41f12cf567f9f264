"""Explore then trust: check an expert's first answers, and then believe it as far as these say."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.strategies.families.expert_strategy import Said
from sparingly.strategies.families.taught_strategy import TaughtStrategy
from sparingly.strategies.strategy import Shape, Why

PRIOR = 8.0
"""Answers of a class that the expert's overall accuracy is worth, when that of the class is estimated."""
GUESS = 0.8
"""How often the expert is taken to be right before anything is known; worth as much."""


class ExploreThenTrust(TaughtStrategy):
    """Buys the truth beside an expert's first n answers; then asks that expert alone, and no more truths.

    What it trusts: the share of right answers, for each class named, of those checked, drawn towards the share of all.
    An answer is announced unless its probability and the own classifier's make another class cheaper.

    Parameters
    ----------
    n
        How many answers are checked.
    learner
        See `TaughtStrategy`; learned from the n truths alone.

    >>> from sparingly import Expert, label_efficient, play
    >>> game = label_efficient(2, experts=[Expert("gpt", 0.01), Expert("human", 1.0, gold=True)])
    >>> stream = [([float(t % 2)], t % 2, {"gpt": t % 2}) for t in range(30)]
    >>> rounds = list(play(ExploreThenTrust(game, 1, n=20), game, stream))
    >>> rounds[0].asked, rounds[-1].asked
    (('gpt', 'human'), ('gpt',))
    """

    name = "explore_then_trust"
    summary = "checks an expert's first answers, then believes it as far as these say"
    reference = "baseline"
    stops_asking = True
    beats_random = False

    def __init__(self, game: Game, n_features: Shape, *, n: int = 60, learner: str = "logistic", seed: int = 0) -> None:
        super().__init__(game, n_features, learner=learner, seed=seed)
        if n < 1:
            raise ValueError(f"n is {n}: at least one answer must be checked")
        self.n = n

    def _whom(self, x: Tensor, probability: Tensor, said: Said, asked: Sequence[int]) -> tuple[int | None, Why]:
        known = int(self._lessons().sum())
        explores = self.experts.gold is not None and known < self.n
        why = Why("{known} of {n} truths are known", {"known": known, "n": self.n})
        if self.experts.noisy and self.experts.cheapest not in asked:
            return self.experts.cheapest, why
        return (self.experts.gold if explores else None), why

    def _lessons(self) -> Tensor:
        return self.memory["truth"] if len(self.memory) else torch.zeros(0, dtype=torch.bool)

    def _belief(self, probability: Tensor, said: Said) -> Tensor:
        if not said:
            return probability
        answer = next(iter(said.values()))
        checked = self._lessons() & (self.memory["said"] >= 0)
        named, y = self.memory["said"][checked], self.memory["y"][checked]
        overall = (float((named == y).sum()) + GUESS * PRIOR) / (len(named) + PRIOR)
        same = named == answer
        trust = (float((same & (y == answer)).sum()) + PRIOR * overall) / (float(same.sum()) + PRIOR)
        others = probability.index_fill(0, torch.tensor(answer), 0.0)
        belief = (1 - trust) * others / others.sum().clamp(min=1e-6)
        return belief.index_fill(0, torch.tensor(answer), trust)
