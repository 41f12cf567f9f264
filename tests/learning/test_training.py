"""The training loop: its optimiser against torch's own, the early stop."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from sparingly.learning.networks import MLP, LeNet
from sparingly.learning.training import Adam, Training


@pytest.mark.parametrize(
    ("weight_decay", "decoupled"), [(0.0, False), (0.1, False), (0.1, True)], ids=["adam", "decay", "adamw"]
)
def test_adam_is_torchs_adam(weight_decay: float, decoupled: bool) -> None:
    target = torch.tensor([[1.0, -2.0], [0.5, 3.0]])
    ours, theirs = (torch.zeros(2, 2, requires_grad=True) for _ in range(2))
    adam = Adam([ours], learning_rate=0.05, weight_decay=weight_decay, decoupled=decoupled)
    kind = torch.optim.AdamW if decoupled else torch.optim.Adam
    reference = kind([theirs], lr=0.05, weight_decay=weight_decay)
    for _ in range(50):
        adam.step(torch.autograd.grad((ours - target).square().sum(), [ours]))
        reference.zero_grad()
        (theirs - target).square().sum().backward()
        reference.step()
    torch.testing.assert_close(ours, theirs)


def test_a_gradient_may_lie_in_memory_otherwise_than_its_parameter() -> None:
    target = torch.tensor([[1.0, -2.0, 0.5], [0.5, 3.0, -1.0]])
    plain, turned = (torch.zeros(2, 3, requires_grad=True) for _ in range(2))
    adams = [Adam([weights], learning_rate=0.05) for weights in (plain, turned)]
    for _ in range(50):
        adams[0].step([(plain - target).detach()])
        adams[1].step([(turned - target).detach().T.contiguous().T])
    assert torch.equal(plain, turned)


@pytest.mark.parametrize("make", [LeNet, partial(MLP, depth=3)], ids=["lenet", "deep mlp"])
def test_a_network_by_autograd_trains_as_with_torchs_adam(make: Callable[..., nn.Module]) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = make((1, 16, 16), 3)
    generator, theirs = torch.Generator().manual_seed(0), copy.deepcopy(network)
    x, y = torch.randn(40, 1, 16, 16, generator=generator), torch.randn(40, 3, generator=generator)
    Training(epochs=10, batch=40).fit(network, x, y, np.random.default_rng(0))
    reference = torch.optim.Adam(theirs.parameters())
    for _ in range(10):
        reference.zero_grad()
        ((theirs(x) - y).square().sum() / 2).backward()
        reference.step()
    torch.testing.assert_close(network(x), theirs(x), atol=0.02, rtol=0.02)  # rounding grows with every step


def test_a_module_and_its_mlp_twin_train_alike() -> None:
    mlp = MLP((5,), 2, width=7)
    twin = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 2))
    twin.load_state_dict(dict(zip(twin.state_dict(), mlp.state_dict().values(), strict=True)))
    x, y = torch.randn(100, 5, generator=torch.Generator().manual_seed(1)), torch.ones(100, 2)
    for module in (mlp, twin):
        Training(epochs=5).fit(module, x, y, np.random.default_rng(0))
    torch.testing.assert_close(mlp(x), twin(x), atol=1e-5, rtol=1e-4)


def test_stops_once_the_objective_is_low() -> None:
    x, y = torch.zeros(64, 3), torch.zeros(64, 2)
    rng = np.random.default_rng(0)
    assert Training(epochs=40, stop=1e-3, objective="mean_squared").fit(MLP((3,), 2), x, y, rng, divisor=1e9) == 1
    assert Training(epochs=40, objective="mean_squared").fit(MLP((3,), 2), x, y, rng) == 40
    assert Training().fit(MLP((3,), 2), x[:0], y[:0], rng) == 0


def test_unknown_objective_is_named() -> None:
    with pytest.raises(ValueError, match="objective 'hinge' is not known"):
        Training(objective="hinge")
