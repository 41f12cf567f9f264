"""The majority of all experts who may be wrong."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sparingly.strategies.families.expert_strategy import Said
from sparingly.strategies.families.taught_strategy import TaughtStrategy
from sparingly.strategies.strategy import Why


class Majority(TaughtStrategy):
    """Asks everyone who may be wrong and announces what most say, the cheapest expert's word where it is a tie.

    Without such experts it asks the one who tells the truth; where nobody answers, the own classifier decides.

    >>> from sparingly import Expert, label_efficient, play
    >>> game = label_efficient(3, experts=[Expert(name, 0.01) for name in ("one", "two", "three")])
    >>> [round_] = play(Majority(game, 1), game, [([0.0], 0, {"one": 2, "two": 1, "three": 1})])
    >>> round_.asked, round_.prediction
    (('one', 'two', 'three'), 1)
    """

    name = "majority"
    summary = "asks every expert who may be wrong and announces what most say"
    reference = "baseline"
    beats_random = False

    def _whom(self, x: Tensor, probability: Tensor, said: Said, asked: Sequence[int]) -> tuple[int | None, Why]:
        left = [a for a in self.experts.noisy or [self.experts.cheapest] if a not in asked]
        return (left[0] if left else None), Why("{answers} experts have answered", {"answers": len(said)})

    def _belief(self, probability: Tensor, said: Said) -> Tensor:
        if not said:
            return probability
        votes = torch.bincount(torch.tensor(list(said.values())), minlength=len(probability)).float()
        votes[next(iter(said.values()))] += 0.5
        return votes / votes.sum()
