"""Networks that are trained as one get what each would get alone."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from sparingly.learning.networks import MLP, build
from sparingly.learning.stacked import Stacked
from sparingly.learning.training import Training


class _Given:
    """A generator whose permutations are given."""

    def __init__(self, orders: torch.Tensor) -> None:
        self._orders = iter(orders.numpy())

    def permutation(self, n: int) -> np.ndarray:
        return next(self._orders)


@pytest.mark.parametrize("stop", [None, 0.02])
def test_each_network_gets_what_it_would_get_alone(stop: float | None) -> None:
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(50, 4, generator=generator)
    targets = nn.functional.one_hot((X[:, 0] > 0).long() + (X[:, 1] > 0).long(), 3).float()
    orders = torch.stack([torch.stack([torch.randperm(50, generator=generator) for _ in range(30)]) for _ in range(4)])
    together = [build("mlp", (4,), 3, seed=seed, width=16, depth=2) for seed in range(4)]
    alone = copy.deepcopy(together)
    training = Training(epochs=30, batch=16, learning_rate=0.01, stop=stop, objective="cross_entropy")
    stacked = Stacked.of(together)
    assert stacked is not None
    stacked.fit(X, targets, orders, training)
    made = [
        training.fit(model, X, targets, _Given(order), divisor=50) for model, order in zip(alone, orders, strict=True)
    ]
    assert (len(set(made)) > 1) == (stop is not None), "some stop earlier than others"
    for one, other in zip(together, alone, strict=True):
        for ours, theirs in zip(one.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-3)


def test_other_kinds_and_shapes_do_not_stack() -> None:
    assert Stacked.of([MLP((4,), 3, width=16), MLP((4,), 3, width=8)]) is None
    assert Stacked.of([nn.Linear(4, 3), nn.Linear(4, 3)]) is None
