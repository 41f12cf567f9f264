"""NeurAL's gradients are never written out: held against automatic differentiation."""

import math

import pytest
import torch

from sparingly import label_efficient
from sparingly.learning.block_networks import BlockNet
from sparingly.strategies import NeurAL
from sparingly.strategies.published.selective_sampling.neur_al import Tangent

K, D, WIDTH = 3, 4, 6


def gradient(net, x, k):
    row = torch.cat([x, torch.tensor([float(k)])])[None]
    parts = torch.autograd.grad(net(row).sum(), [net.bias, *net.blocks, *net.head.parameters()], materialize_grads=True)
    return torch.cat([part.flatten() for part in parts]) / math.sqrt(WIDTH)


@pytest.fixture
def net():
    torch.manual_seed(0)
    return BlockNet(K, D, WIDTH)


def test_norm_and_estimate_are_those_of_ridge_regression_on_the_gradients(net):
    tangent = Tangent(net)
    X, classes = torch.randn(8, D), torch.tensor([0, 1, 1, 2, 0, 1, 2, 2])
    targets = torch.randint(0, 2, (8,)).float()
    with torch.no_grad():
        tangent.add(X, classes, targets)
    told = torch.stack([gradient(net, x, int(k)) for x, k in zip(X, classes, strict=True)])
    Z = 1 + told.square().sum(0)
    theta = (told * targets[:, None]).sum(0) / Z
    x = torch.randn(D)
    with torch.no_grad():
        values = tangent(x[None])
    for k in range(K):
        g = gradient(net, x, k)
        assert float(values["norm"][0, k]) == pytest.approx(float((g.square() / Z).sum().sqrt()), rel=1e-4)
        assert float(values["linear"][0, k]) == pytest.approx(float(theta @ g), rel=1e-3, abs=1e-5)
    assert tangent.log_determinant() == pytest.approx(float(Z.log().sum()), rel=1e-4)


def test_frozen_widths_never_grow():
    strategy = NeurAL(label_efficient(2), D, form="frozen", schedule="every 5")
    watched = torch.randn(6, D, generator=torch.Generator().manual_seed(1))
    widths = strategy.assess(watched).values["width"]
    for t in range(40):
        x = torch.randn(D, generator=torch.Generator().manual_seed(t))
        decision = strategy.decide(strategy.assess(x[None]), 0)
        if decision.asks:
            strategy.learn(x, decision.action, strategy.game.feedback[decision.action][t % 2])
        now = strategy.assess(watched).values["width"]
        assert (now <= widths + 1e-7).all()
        widths = now
    assert strategy.n_labels > 0


def test_only_the_trained_form_trains():
    before = {}
    for form in ("frozen", "trained"):
        strategy = NeurAL(label_efficient(2), D, form=form)
        before[form] = strategy.network.head.weight.clone()
        strategy.learn(torch.ones(D), 2, strategy.game.feedback[2][0])
        strategy._train()
        assert torch.equal(strategy.network.head.weight, before[form]) is (form == "frozen")
        assert strategy.learned >= 1


def test_the_published_width_has_the_determinant():
    strategy = NeurAL(label_efficient(2), D, preset="published", delta=0.05, norm=2.0)
    assert strategy.factor() == pytest.approx(math.sqrt(2 * math.log(20)) + 2)
    strategy.learn(torch.ones(D), 2, strategy.game.feedback[2][0])
    strategy._train()
    assert strategy.factor() > math.sqrt(2 * math.log(20)) + 2
