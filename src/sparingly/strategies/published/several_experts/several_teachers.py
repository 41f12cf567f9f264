"""Selective sampling from several teachers, each of whom may be good somewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from sparingly.games import Game
from sparingly.learning.label_memory import Memory
from sparingly.strategies.families.expert_strategy import ExpertStrategy, Said, keep_answer
from sparingly.strategies.strategy import Shape, Why


class SeveralTeachers(ExpertStrategy):
    """Learns a linear model of each teacher; asks the confident ones where what they say together is not clear.

    From the publication: regularised least squares for each teacher; the widths theta, sqrt(x A^-1 x) times a factor
    that grows with log t; the teachers whose margin is within tau and the widths of the largest count as the experts of
    an observation; their mean decides, and they are asked where its margin is within their mean width. Our reading:
    classes are coded as 1 and -1 against the rest, and the margin is the lead of the largest score; whoever is asked is
    believed by majority; a teacher who tells the truth is one of the teachers.

    Parameters
    ----------
    tau
        How far from the most confident teacher another may be.
    alpha
        A factor of the widths.

    References
    ----------
    Dekel, Gentile, Sridharan (2012). Selective sampling and active learning from single and multiple teachers. JMLR.

    Examples
    --------
    >>> from sparingly import Expert, label_efficient
    >>> game = label_efficient(2, experts=[Expert("one", 0.1), Expert("two", 0.1)])
    >>> strategy = SeveralTeachers(game, 1)
    >>> seen = strategy.assess([[0.0]])
    >>> strategy.decide(seen, 0).action, strategy.decide(seen, 0, ((2, game.feedback[2][0]),)).action
    (2, 3)
    """

    name = "several_teachers"
    summary = "linear models of several teachers; asks those who are confident where their mean is not clear"
    reference = "Dekel, Gentile, Sridharan 2012"
    beats_random = False
    stops_asking = True

    def __init__(self, game: Game, n_features: Shape, *, tau: float = 0.1, alpha: float = 0.2, seed: int = 0) -> None:
        super().__init__(game, n_features, seed=seed)
        self.tau, self.alpha = tau, alpha
        self.teachers = [*self.experts.noisy, *([self.experts.gold] if self.experts.gold is not None else [])]
        self.memory = Memory()
        width = self.n_features + 1
        self.inverse = torch.eye(width, dtype=torch.float64).repeat(len(self.teachers), 1, 1)
        """A^-1 of each teacher."""
        self.sums = torch.zeros(len(self.teachers), width, game.n_outcomes, dtype=torch.float64)

    def _whom(self, x: Tensor, probability: Tensor, said: Said, asked: Sequence[int]) -> tuple[int | None, Why]:
        mean, near, width = (one[0] for one in self._weigh(x[None]))
        two = mean.topk(2).values
        lead, allowed = float(two[0] - two[1]), float((width * near).sum() / near.sum())
        why = Why("the lead is {lead:.2f}, within {width:.2f} it asks", {"lead": lead, "width": allowed})
        left = [a for a, counts in zip(self.teachers, near.tolist(), strict=True) if counts and a not in asked]
        return (left[0] if left and (lead <= allowed or asked) else None), why

    def _weigh(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The mean score of those who count `[block, class]`, who these are and all widths, `[block, teacher]`."""
        flat = X.flatten(1).double()
        rows = torch.cat([flat / flat.norm(dim=1, keepdim=True).clamp(min=1e-12), flat.new_ones(len(X), 1)], 1)
        turned = (rows[:, None, None, :] @ self.inverse)[:, :, 0]
        score = (turned[:, :, None, :] @ self.sums)[:, :, 0]
        spread = (turned * rows[:, None]).sum(2).clamp(min=0).sqrt()
        width = self.alpha * math.log(len(self.memory) + 2) ** 0.5 * spread
        two = score.topk(2, dim=2).values
        margin = two[..., 0] - two[..., 1]
        best = margin.argmax(1, keepdim=True)
        near = margin >= margin.gather(1, best) - self.tau - width - width.gather(1, best)
        return (score * near[..., None]).sum(1) / near.sum(1, keepdim=True), near, width

    def _scores(self, X: Tensor) -> Tensor:
        return torch.cat([self._weigh(x[None])[0] for x in X]).softmax(1).float()

    def _belief(self, probability: Tensor, said: Said) -> Tensor:
        if not said:
            return probability
        votes = nn.functional.one_hot(torch.tensor(list(said.values())), len(probability)).float().sum(0)
        return votes + 0.5 * probability

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        k = self.teachers.index(action)
        y = self.experts.class_at(action, symbol)
        flat = x.flatten().double()
        row = torch.cat([flat / flat.norm().clamp(min=1e-12), flat.new_ones(1)])
        turned = self.inverse[k] @ row
        self.inverse[k] -= torch.outer(turned, turned) / (1 + row @ turned)
        self.sums[k] += torch.outer(row, 2.0 * nn.functional.one_hot(torch.tensor(y), self.game.n_outcomes) - 1)
        keep_answer(self.memory, x, y, is_truth=action not in self.experts.noisy)

    def _due_after_label(self) -> bool:
        return True

    def _due_in(self) -> int:
        """Never due by the clock; but each label ends an assessment, so long blocks would be assessed in vain."""
        return 16

    def _train(self) -> None:
        """Nothing to do: each answer has changed its teacher's model already."""

    def _state(self) -> dict[str, Any]:
        return {"memory": self.memory.state_dict(), "inverse": self.inverse, "sums": self.sums}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.memory.load_state_dict(state["memory"])
        self.inverse, self.sums = state["inverse"].clone(), state["sums"].clone()
