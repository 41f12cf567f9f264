"""INeural on block-one-hot inputs that are never built: held against the wide network it stands for."""

import numpy as np
import pytest
import torch

from sparingly import label_efficient
from sparingly.learning.block_networks import BlockNet
from sparingly.learning.training import Training
from sparingly.strategies import INeural
from sparingly.strategies.published.selective_sampling.ineural import BlockEENet

K, D, WIDTH = 3, 4, 7


def wide_first_layer(net):
    return torch.cat(list(net.blocks), 1)


def in_block(x, k):
    wide = torch.zeros(K * len(x))
    wide[k * len(x) : (k + 1) * len(x)] = x
    return wide


def naive(network, x, k):
    """f1, f2 and f2's input from the wide input, by automatic differentiation."""
    wide = in_block(x, k).requires_grad_()
    f1 = network.f1.head((wide_first_layer(network.f1) @ wide + network.f1.bias).relu())
    (gradient,) = torch.autograd.grad(f1, wide)
    if network.own:
        gradient = gradient * (in_block(torch.ones(len(x)), k) > 0)
        halves = [torch.cat([block[:, : len(x)] for block in network.f2.blocks], 1)]
    else:
        halves = [network.f2.dense]
    both = torch.cat([gradient, wide.detach()])
    both = both / both.norm()
    halves += [torch.cat([block[:, -len(x) :] for block in network.f2.blocks], 1)]
    f2 = network.f2.head((torch.cat(halves, 1) @ both + network.f2.bias).relu())
    return f1.item(), f2.item(), both


@pytest.fixture(params=[False, True], ids=["whole", "own"])
def network(request):
    return BlockEENet(K, D, WIDTH, training=Training(), own=request.param, seed=3)


def test_estimates_are_those_of_the_wide_network(network):
    X = torch.randn(5, D, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        f1, f2, _ = network.estimates(X)
    for row in range(5):
        for k in range(K):
            expected = naive(network, X[row], k)
            assert f1[row, k].item() == pytest.approx(expected[0], abs=1e-5)
            assert f2[row, k].item() == pytest.approx(expected[1], abs=1e-5)


def test_what_is_kept_is_the_wide_input_without_its_zeros(network):
    x = torch.randn(D, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        active = network.estimates(x[None])[2][0, 1]
        network.remember(x, 1, 1.0, 0.5, active)
    both = naive(network, x, 1)[2]
    kept = network.memory["both"][0]
    gradient = both[D : 2 * D] if network.own else both[: K * D]
    torch.testing.assert_close(kept[:-1], torch.cat([gradient, both[K * D + D : K * D + 2 * D]]))
    assert kept[-1] == 1


def test_training_is_that_of_the_wide_network():
    """The same Adam steps as on the wide input, whose other blocks have gradients of zero."""
    torch.manual_seed(0)
    net = BlockNet(K, D, WIDTH)
    wide = torch.nn.Sequential(torch.nn.Linear(K * D, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 1))
    wide[0].weight.data.copy_(wide_first_layer(net).detach())
    wide[0].bias.data.copy_(net.bias.detach())
    wide[2].load_state_dict(net.head.state_dict())
    x, k = torch.randn(80, D), torch.randint(0, 2, (80,))
    y = torch.randn(80, 1)
    inputs = torch.stack([in_block(x[i], int(k[i])) for i in range(80)])
    fit = Training(epochs=5, batch=16, objective="mean_squared")
    fit.fit(net, torch.cat([x, k[:, None].float()], 1), y, np.random.default_rng(0))
    fit.fit(wide, inputs, y, np.random.default_rng(0))
    torch.testing.assert_close(wide_first_layer(net).detach(), wide[0].weight.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("right", "rows"), [(True, 1), (False, 2)])
def test_a_right_answer_adds_one_row_and_a_wrong_one_two(right, rows):
    strategy = INeural(label_efficient(3), 4)
    x = torch.ones(4)
    decision = strategy.decide(strategy.assess(x[None]), 0)
    label = decision.prediction if right else (decision.prediction + 1) % 3
    strategy.learn(x, 3, strategy.game.feedback[3][label])
    memory = strategy.network.memory
    assert len(memory) == rows
    told = {int(k): float(y) for k, y in zip(memory["x"][:, -1], memory["target"][:, 0], strict=True)}
    assert told[label] == 1
    assert right or told[decision.prediction] == 0


def test_the_forms_differ_in_the_weight_and_in_what_f2_learns():
    published, released = (INeural(label_efficient(2), 4, preset=preset) for preset in ("published", "released"))
    published.advance(9)
    released.advance(9)
    assert (published._weight(), released._weight()) == (0.1, 1.0)
    x = torch.ones(4)
    f1, f2, _ = (part[0].detach() for part in released.network.estimates(x[None]))
    for strategy, known in ((published, f1 + f2), (released, f1)):
        strategy.learn(x, 2, strategy.game.feedback[2][1])
        k = strategy.network.memory["x"][:, -1].long()
        expected = torch.eye(2)[1][k] - known[k]
        torch.testing.assert_close(strategy.network.memory["residual"][:, 0], expected)


def test_networks_it_cannot_have_are_refused():
    with pytest.raises(ValueError, match="'lenet'"):
        INeural(label_efficient(2), (1, 28, 28), network="lenet")
