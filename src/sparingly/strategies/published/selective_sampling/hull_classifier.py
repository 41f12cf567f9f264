"""The hull-based classifier: announce what lies in, or near enough to, the convex hull of a class's labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.learning.label_memory import Memory
from sparingly.strategies.families.expert_strategy import ExpertStrategy, Said, keep_answer
from sparingly.strategies.strategy import Shape, Why

STEPS = 40
"""Of the projection onto a hull, by the method of Frank and Wolfe."""
INSIDE = 1e-4
"""A distance, as a share of the mean one to a label, that counts as none: the projection is not exact."""
NEAREST = 3
"""Hulls that are looked at: those of the classes with the nearest labels."""


class HullClassifier(ExpertStrategy):
    """Announces the class whose labels' convex hull is much nearer than any other, else asks (GHC).

    From the publication: a hull for each class; with a threshold of 0 an observation must lie inside of one and no
    other (the conservative form, CHC), larger ones guess more. Our reading: the threshold is on the distance to the
    nearest hull over that to the second; only the hulls of the classes with the nearest labels are looked at.

    Parameters
    ----------
    threshold
        From 0, which announces only inside of a hull, to 1, which announces as soon as two classes are known.

    References
    ----------
    Reveillard, Saketos, Proutiere, Combes (2025). Minimizing human intervention in online classification.

    Examples
    --------
    >>> from sparingly import label_efficient
    >>> strategy = HullClassifier(label_efficient(2), 1, threshold=0.5)
    >>> for x in (-1.0, 1.0, -2.0, 2.0):
    ...     strategy.learn([x], 2, strategy.game.feedback[2][int(x > 0)])
    >>> [strategy.decide(strategy.assess([[x]]), 0).action for x in (1.5, 0.6, 0.1)]
    [1, 1, 2]
    """

    name = "hull_classifier"
    summary = "asks unless an observation is in or near the convex hull of one class's labels"
    reference = "Reveillard, Saketos, Proutiere, Combes 2025"
    playable = "label-efficient games"
    noisy_experts = False
    stops_asking = True
    beats_random = False

    def __init__(self, game: Game, n_features: Shape, *, threshold: float = 0.7, seed: int = 0) -> None:
        super().__init__(game, n_features, seed=seed)
        if not 0 <= threshold <= 1:
            raise ValueError(f"threshold is {threshold}: it must be from 0 to 1")
        self.threshold = threshold
        self.memory = Memory()

    def _whom(self, x: Tensor, probability: Tensor, said: Said, asked: Sequence[int]) -> tuple[int | None, Why]:
        near, second = probability.topk(2).values.log().neg().tolist() if len(self.memory) else (1.0, 1.0)
        ratio = 1.0 if math.isinf(second) or second <= INSIDE else near / second
        ratio = 0.0 if near <= INSIDE < second else ratio
        why = Why("the nearest hull is {ratio:.2f} as far as the second", {"ratio": ratio})
        return (None if ratio <= self.threshold else self.experts.gold), why

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        keep_answer(self.memory, x, self.experts.class_at(action, symbol), is_truth=True)

    def _scores(self, X: Tensor) -> Tensor:
        """exp(-d / n), not made to sum to 1: d is the distance to a class's hull and n the mean one to a label."""
        far = X.new_full((len(X), self.game.n_outcomes), torch.inf)
        if not len(self.memory):
            return torch.full_like(far, 1 / self.game.n_outcomes)
        stored, y = self.memory["x"].flatten(1), self.memory["y"]
        for k, x in enumerate(X.flatten(1)):
            away = (stored - x).norm(dim=1)
            nearest = X.new_full((self.game.n_outcomes,), torch.inf).scatter_reduce(0, y, away, "amin")
            for c in nearest.topk(min(NEAREST, len(nearest)), largest=False).indices.tolist():
                if bool(nearest[c] < torch.inf):
                    far[k, c] = _distance(x, stored[y == c]) / away.mean().clamp(min=1e-12)
        return (-far).exp()

    def _due_after_label(self) -> bool:
        return True

    def _due_in(self) -> int:
        """Never due by the clock; but each label ends an assessment, so long blocks would be assessed in vain."""
        return 8

    def _train(self) -> None:
        """Nothing to do: the hulls are those of the labels."""

    def _state(self) -> dict[str, Any]:
        return {"memory": self.memory.state_dict()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.memory.load_state_dict(state["memory"])


def _distance(x: Tensor, points: Tensor) -> float:
    """The distance of an observation from the convex hull of points `[n, feature]`.

    >>> corners = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> [round(_distance(torch.tensor(x), corners), 2) for x in ([0.2, 0.2], [1.0, 1.0])]
    [0.0, 0.71]
    """
    offsets = points - x
    inside = offsets[offsets.square().sum(1).argmin()]
    for _ in range(STEPS):
        corner = offsets[(offsets @ inside).argmin()]
        way = inside - corner
        gap = float(inside @ way)
        if gap <= 1e-9 * float(offsets.square().sum(1).max()) + 1e-30:
            break
        inside = inside - min(1.0, gap / float(way @ way)) * way
    return float(inside.norm())
