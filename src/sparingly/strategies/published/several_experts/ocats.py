"""OCaTS: call the teacher where the student is uncertain, or knows nothing near."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.strategies.families.expert_strategy import Said
from sparingly.strategies.families.taught_strategy import TaughtStrategy
from sparingly.strategies.strategy import Shape, Why


class OCaTS(TaughtStrategy):
    """Asks where the student's entropy is high, or the observation is far from the centroid of its nearest answers.

    From the publication: both criteria, the k nearest stored neighbours and the centroid weighted by nearness, the
    teacher's answers as the student's labels, thresholds tuned beforehand. Our reading: the entropy is a share of its
    most, and the distance is over the mean distance of stored observations from their mean, so that one threshold fits
    several streams.

    Parameters
    ----------
    entropy, distance
        The thresholds; both must be met to announce.
    neighbours
        k.
    expert, learner
        Whom to ask, the cheapest by default; see `TaughtStrategy`.

    References
    ----------
    Stogiannidis, Vassos, Malakasiotis, Androutsopoulos (2023). Cache me if you can: an online cost-aware
    teacher-student framework to reduce the calls to large language models. Findings of EMNLP.

    Examples
    --------
    >>> from sparingly import label_efficient
    >>> strategy = OCaTS(label_efficient(2), 1)
    >>> str(strategy.decide(strategy.assess([[0.0]]), 0).why)
    'entropy 1.00 of at most 0.40, distance inf of at most 1.00'
    """

    name = "ocats"
    summary = "asks the teacher where the student's entropy is high or no stored answer is near"
    reference = "Stogiannidis, Vassos, Malakasiotis, Androutsopoulos 2023"
    stops_asking = True
    beats_random = False

    def __init__(
        self,
        game: Game,
        n_features: Shape,
        *,
        entropy: float = 0.4,
        distance: float = 1.0,
        neighbours: int = 5,
        expert: str | None = None,
        learner: str = "logistic",
        seed: int = 0,
    ) -> None:
        super().__init__(game, n_features, learner=learner, seed=seed)
        if neighbours < 1:
            raise ValueError(f"neighbours is {neighbours}: at least one is needed")
        self.entropy, self.distance, self.neighbours = entropy, distance, neighbours
        self.asks = self.experts.find(expert)

    def _whom(self, x: Tensor, probability: Tensor, said: Said, asked: Sequence[int]) -> tuple[int | None, Why]:
        entropy = float(torch.special.entr(probability).sum() / torch.tensor(float(len(probability))).log())
        distance = self._distance(x)
        numbers = {"entropy": entropy, "e": self.entropy, "distance": distance, "d": self.distance}
        why = Why("entropy {entropy:.2f} of at most {e:.2f}, distance {distance:.2f} of at most {d:.2f}", numbers)
        return (self.asks if entropy > self.entropy or distance > self.distance else None), why

    def _distance(self, x: Tensor) -> float:
        """From the centroid of the nearest stored answers, over the mean distance of these from their mean."""
        if len(self.memory) < self.neighbours:
            return float("inf")
        stored = self.memory["x"].flatten(1)
        far = (stored - x.flatten()).norm(dim=1)
        nearest = far.topk(self.neighbours, largest=False)
        weight = 1 / nearest.values.clamp(min=1e-6)
        centroid = (weight[:, None] * stored[nearest.indices]).sum(0) / weight.sum()
        typical = (stored - stored.mean(0)).norm(dim=1).mean().clamp(min=1e-6)
        return float((centroid - x.flatten()).norm() / typical)
