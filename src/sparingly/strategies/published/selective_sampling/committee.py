"""A committee: networks that saw the same labels, each another bootstrap of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sparingly.learning.fast_gradients import StackedGradients
from sparingly.learning.row_independence import pad_block
from sparingly.learning.training import Training


class Committee:
    """Classifiers that are trained once.

    >>> committee = Committee([nn.Linear(2, 3), nn.Linear(2, 3)])
    >>> committee.probability(torch.zeros(5, 2)).shape
    (5, 2, 3)
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        self.models = list(models)
        self.trained = False

    def probability(self, X: Tensor) -> np.ndarray[Any, np.dtype[np.float64]]:
        """`[rows, model, class]`; a row does not depend on the rows beside it."""
        rows = pad_block(X)
        with torch.no_grad():
            each = [model(rows)[: len(X)].double().softmax(1).numpy() for model in self.models]
        return np.stack(each, 1)

    def train(self, x: Tensor, target: Tensor, training: Training, rng: np.random.Generator) -> None:
        """Fit each model to a bootstrap of the labels, by cross-entropy: all at once if they are small and alike."""
        n, together = len(x), StackedGradients.of(self.models, x, target)
        drawn = [torch.from_numpy(rng.integers(n, size=n)) for _ in self.models]
        if together is not None:
            orders = [torch.stack([rows[rng.permutation(n)] for _ in range(training.epochs)]) for rows in drawn]
            training.fit_stacked(together, torch.stack(orders))
        else:
            for model, rows in zip(self.models, drawn, strict=True):
                training.fit(model, x[rows], target[rows], rng, divisor=n)
        self.trained = True

    def state_dict(self) -> dict[str, Any]:
        return {"models": [model.state_dict() for model in self.models], "trained": self.trained}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for model, weights in zip(self.models, state["models"], strict=True):
            model.load_state_dict(weights)
        self.trained = bool(state["trained"])


def margins(probability: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """How far apart the two likeliest classes are, given probabilities with the classes along the last axis.

    >>> margins(np.array([[0.5, 0.25, 0.25]]))
    array([0.25])
    """
    two = np.sort(probability, -1)[..., -2:]
    return np.asarray(two[..., 1] - two[..., 0])
