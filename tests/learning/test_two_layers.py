"""The quick loops for two layers, and for blocks, make the steps of the general one."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from sparingly.learning import two_layers
from sparingly.learning.block_networks import BlockNet
from sparingly.learning.networks import MLP
from sparingly.learning.training import Training
from sparingly.learning.two_layers import TwoLayers


def data(kind: str) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    torch_rng = torch.Generator().manual_seed(0)
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
    monkeypatch.setattr(two_layers, "WIDEST_BLOCKS", widest)
    quick, x, y = data(kind)
    y = y.softmax(1) if objective == "cross_entropy" else y
    slow = copy.deepcopy(quick)
    training = Training(epochs=12, batch=64, learning_rate=1e-2, stop=stop, objective=objective)
    made = training.fit(quick, x, y, np.random.default_rng(1), divisor=10.0)
    monkeypatch.setattr(Training, "_quick", lambda *given: None)
    assert training.fit(slow, x, y, np.random.default_rng(1), divisor=10.0) == made
    for ours, theirs in zip(quick.parameters(), slow.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-3)


def test_inputs_are_prepared_once_and_alike(monkeypatch):
    quick, x, y = data("mlp")
    slow = copy.deepcopy(quick)
    training = Training(epochs=3, objective="mean_squared")
    training.fit(quick, x[:, :1], y, np.random.default_rng(1), prepare=lambda rows: rows.repeat(1, 7))
    monkeypatch.setattr(Training, "_quick", lambda *given: None)
    training.fit(slow, x[:, :1], y, np.random.default_rng(1), prepare=lambda rows: rows.repeat(1, 7))
    torch.testing.assert_close(quick(x), slow(x), atol=1e-5, rtol=1e-4)


def test_what_is_frozen_or_unknown_or_deep_goes_the_general_way():
    net, x, y = data("mlp")
    assert TwoLayers.of(net) is not None
    assert TwoLayers.of(MLP((7,), 3, depth=3)) is None
    assert TwoLayers.of(BlockNet(10, 784, 5)) is None, "BlockLayers takes it"
    net.layers[0].requires_grad_(False)
    frozen = net.layers[0].weight.clone()
    assert TwoLayers.of(net) is None
    unknown = y.clone()
    unknown[::2, 0] = float("nan")
    assert Training(epochs=2).fit(net, x, unknown, np.random.default_rng(0)) == 2
    assert torch.equal(net.layers[0].weight, frozen)
    assert all(torch.isfinite(p).all() for p in net.parameters())
