"""Experts' answers as features: learns where, by region and by class, each of them is right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from sparingly.strategies.sparing.beliefs import Beliefs, mix, share_of

FIRST_FOR_ANSWERS = 60
"""Labels from which on there is such a model."""
MOST_COLUMNS = 60
"""That answers may have: with many classes and experts the models would be mostly these."""
LOUDNESS = 0.5
"""The length of an answer beside that of an embedding, which is 1."""
LEAST_SHARE = 0.1
"""A model with a smaller share is left out."""


class AnswerModel:
    """p(class | observation, answers), from labels alone, beside what is pooled of the own model and the answers.

    What is pooled takes an expert to be as reliable everywhere; this does not, but needs labels to learn it. Its share
    is the one under which labels, unseen by either, are likely.

    Parameters
    ----------
    n_classes, n_features, n_experts
        How many there are.
    """

    def __init__(self, n_classes: int, n_features: int, n_experts: int) -> None:
        self.n_classes, self.n_experts = n_classes, n_experts
        self.beliefs = Beliefs(n_classes, (n_features + n_experts * n_classes,))
        self.share = 0.0

    @staticmethod
    def suits(n_classes: int, n_experts: int) -> bool:
        """Whether there are few enough columns."""
        return n_classes * n_experts <= MOST_COLUMNS

    def rows(self, X: Tensor, answers: Tensor) -> Tensor:
        """Observations with answers `[block, expert]` beside them; where there is none, all classes alike.

        >>> rows = AnswerModel(2, 1, 2).rows(torch.tensor([[3.0]]), torch.tensor([[1, -1]]))
        >>> [round(one, 2) for one in rows[0].tolist()]
        [3.0, 0.0, 0.5, 0.35, 0.35]
        """
        named = nn.functional.one_hot(answers.clamp(min=0), self.n_classes).float()
        said = torch.where(answers[:, :, None] >= 0, named, self.n_classes**-0.5)
        length = X.flatten(1).square().sum(1, keepdim=True)
        rows = torch.cat([X.flatten(1), LOUDNESS * said.flatten(1)], 1)
        # Embeddings of length 1 stay such: their scaling depends on it.
        embedded = bool(((length - 1).abs() < 1e-3).all())
        return rows / (1 + self.n_experts * LOUDNESS**2) ** 0.5 if embedded else rows

    def fit(
        self,
        sample: tuple[Tensor, Tensor],
        labels: Mapping[str, Tensor],
        pooled: Tensor,
        generator: torch.Generator,
    ) -> Tensor:
        """Train anew, and mix with what was `pooled` of each label unseen, `[n, class]`; what is held of it then.

        `sample` are observations of the stream and their answers; labels have `x`, `y`, `fold` and `answers`.
        """
        y, answers = labels["y"], labels["answers"]
        self.share, heard = 0.0, (answers >= 0).any(1)
        if len(y) < FIRST_FOR_ANSWERS or int(heard.sum()) < FIRST_FOR_ANSWERS:
            return pooled
        unseen = self.beliefs.fit(self.rows(*sample), self.rows(labels["x"], answers), y, labels["fold"], generator)
        share = share_of(pooled[heard], unseen[heard], y[heard])
        self.share = share if share >= LEAST_SHARE else 0.0
        return torch.where(heard[:, None], mix(pooled, unseen, self.share), pooled)

    def __call__(self, pooled: Tensor, X: Tensor, answers: Tensor) -> Tensor:
        """What was pooled, `[member, block, class]`, and its own probabilities, mixed where there was an answer."""
        heard = (answers >= 0).any(1)
        if not self.share or not bool(heard.any()):
            return pooled
        own = self.beliefs(self.rows(X, answers))
        return torch.where(heard[None, :, None], mix(pooled, own, self.share), pooled)

    def state_dict(self) -> dict[str, Any]:
        return {"share": self.share, "beliefs": self.beliefs.state_dict() if self.share else None}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.share = float(state["share"])
        if state["beliefs"] is not None:
            self.beliefs.load_state_dict(state["beliefs"])
