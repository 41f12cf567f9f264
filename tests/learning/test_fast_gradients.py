"""Gradients by hand make the steps of autograd; networks that are trained as one get what each would get alone."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from sparingly.learning import fast_gradients, training
from sparingly.learning.block_networks import BlockNet
from sparingly.learning.fast_gradients import StackedGradients, TwoLayers
from sparingly.learning.networks import MLP, build
from sparingly.learning.training import Training


def by_autograd(monkeypatch):
    monkeypatch.setattr(training, "fast_gradients", lambda *given: None)


def data(kind: str) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    torch_rng = torch.Generator().manual_seed(0)
    torch.manual_seed(0)  # for the first weights: from some, 12 epochs make more of a last bit than is allowed below
    x = torch.randn(150, 7, generator=torch_rng)
    if kind.startswith("blocks"):
        classes = torch.randint(3, (150, 1), generator=torch_rng).float()
        n_dense = 4 if kind == "blocks and dense" else 0
        return BlockNet(3, 7 - n_dense, 20, n_dense), torch.cat([x, classes], 1), x[:, :1] * (classes - 1)
    return MLP((7,), 3, width=20), x, torch.stack([x[:, 0], x[:, 1].abs(), x[:, 2] * x[:, 3]], 1)


@pytest.mark.parametrize("kind", ["mlp", "blocks", "blocks and dense"])
@pytest.mark.parametrize("objective", ["mean_squared", "half_squared", "cross_entropy"])
@pytest.mark.parametrize("stop", [None, 0.05])
@pytest.mark.parametrize("widest", [800, 0])
def test_the_steps_are_those_of_the_general_loop(kind, objective, stop, widest, monkeypatch):
    monkeypatch.setattr(fast_gradients, "WIDEST_BLOCKS", widest)
    quick, x, y = data(kind)
    y = y.softmax(1) if objective == "cross_entropy" else y
    slow = copy.deepcopy(quick)
    how = Training(epochs=12, batch=64, learning_rate=1e-2, stop=stop, objective=objective)
    made = how.fit(quick, x, y, np.random.default_rng(1), divisor=10.0)
    by_autograd(monkeypatch)
    assert how.fit(slow, x, y, np.random.default_rng(1), divisor=10.0) == made
    for ours, theirs in zip(quick.parameters(), slow.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-3)


def test_inputs_are_prepared_once_and_alike(monkeypatch):
    quick, x, y = data("mlp")
    slow = copy.deepcopy(quick)
    how = Training(epochs=3, objective="mean_squared")
    how.fit(quick, x[:, :1], y, np.random.default_rng(1), prepare=lambda rows: rows.repeat(1, 7))
    by_autograd(monkeypatch)
    how.fit(slow, x[:, :1], y, np.random.default_rng(1), prepare=lambda rows: rows.repeat(1, 7))
    torch.testing.assert_close(quick(x), slow(x), atol=1e-5, rtol=1e-4)


def test_what_is_frozen_or_unknown_or_deep_goes_the_general_way():
    net, x, y = data("mlp")
    assert TwoLayers.of(net) is not None
    assert TwoLayers.of(MLP((7,), 3, depth=3)) is None
    assert TwoLayers.of(BlockNet(10, 784, 5)) is None, "BlockGradients takes it"
    net.layers[0].requires_grad_(False)
    frozen = net.layers[0].weight.clone()
    assert TwoLayers.of(net) is None
    unknown = y.clone()
    unknown[::2, 0] = float("nan")
    assert Training(epochs=2).fit(net, x, unknown, np.random.default_rng(0)) == 2
    assert torch.equal(net.layers[0].weight, frozen)
    assert all(torch.isfinite(p).all() for p in net.parameters())


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
    how = Training(epochs=30, batch=16, learning_rate=0.01, stop=stop, objective="cross_entropy")
    stacked = StackedGradients.of(together, X, targets)
    assert stacked is not None
    how.fit_stacked(stacked, orders)
    made = [how.fit(model, X, targets, _Given(order), divisor=50) for model, order in zip(alone, orders, strict=True)]
    assert (len(set(made)) > 1) == (stop is not None), "some stop earlier than others"
    for one, other in zip(together, alone, strict=True):
        for ours, theirs in zip(one.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-3)


def test_other_kinds_and_shapes_do_not_stack() -> None:
    X, y = torch.zeros(2, 4), torch.zeros(2, 3)
    assert StackedGradients.of([MLP((4,), 3, width=16), MLP((4,), 3, width=8)], X, y) is None
    assert StackedGradients.of([nn.Linear(4, 3), nn.Linear(4, 3)], X, y) is None
