"""A frozen module in front, one's own inside."""

import numpy as np
import pytest
import torch
from torch import nn

import sparingly as sp
from sparingly.adapters.torch import Extractor, FrozenFeatures, ModuleOf


def pretrained(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.5))


@pytest.fixture(autouse=True)
def _own_generator():
    with torch.random.fork_rng():
        yield


def test_the_extractor_is_frozen_and_rows_do_not_feel_each_other():
    module = pretrained()
    extractor = Extractor(module)
    X = np.random.default_rng(0).normal(size=(100, 6)).astype(np.float32)
    whole = extractor(X)
    assert whole.shape == (100, 12)
    assert module.training
    assert not any(p.requires_grad for p in extractor.module.parameters())
    for row in (0, 31, 32, 99):
        assert np.array_equal(extractor(X[row : row + 1])[0], whole[row])
    assert extractor(X[:0]).shape == (0, 12)


def test_a_strategy_behind_an_extractor_keeps_the_contract():
    def make(game, n_features, *, seed=0):
        sizes = n_features if isinstance(n_features, int) else int(np.prod(n_features))
        with torch.random.fork_rng():
            torch.manual_seed(1)
            front = nn.Linear(sizes, max(sizes, 2) * 2)
        return FrozenFeatures(game, n_features, extractor=front, seed=seed, options={"width": 20, "members": 2})

    sp.strategies.check(make, short=True)


def test_another_extractor_is_another_strategy():
    game = sp.label_efficient(2)
    one = FrozenFeatures(game, 6, extractor=pretrained(0))
    with pytest.raises(ValueError, match="the state is for extractor"):
        FrozenFeatures(game, 6, extractor=pretrained(1)).load_state_dict(one.state_dict())


def test_an_agent_behind_an_extractor_continues_after_a_crash(tmp_path):
    game = sp.label_efficient(2)
    make = lambda: FrozenFeatures(game, (1, 2, 3), extractor=nn.Sequential(nn.Flatten(), pretrained()), seed=0)  # noqa: E731
    agent = sp.Agent(["cat", "dog"], strategy=make(), path=tmp_path / "a.db")
    for x in np.random.default_rng(0).normal(size=(30, 1, 2, 3)):
        ticket = agent.observe(x)
        if ticket.asks:
            agent.answer(ticket.id, "dog" if x.sum() > 0 else "cat")
    agent.close()
    again = sp.Agent.open(tmp_path / "a.db", strategy=make())
    assert len(again.history()) == 30
    again.close()


def test_a_class_is_given_what_its_constructor_names():
    class Fixed(nn.Linear):
        def __init__(self, n_in, n_outputs):
            super().__init__(n_in, n_outputs)

    assert ModuleOf(Fixed, {"n_in": 4})((9,), 3).in_features == 4
    assert ModuleOf(lambda shape, n, wide=1: nn.Linear(shape[0], n * wide), {"wide": 2})((9,), 3).out_features == 6
    with pytest.raises(ValueError, match="it takes no 'n_in' any more"):
        ModuleOf(nn.Linear(2, 2), {"n_in": 4})((2,), 2)


def test_own_module_as_f1():
    class Net(nn.Sequential):
        def __init__(self, shape, n_outputs, hidden=8):
            super().__init__(nn.Linear(shape[0], hidden), nn.ReLU(), nn.Linear(hidden, n_outputs))

    game = sp.label_efficient(2)
    strategy = sp.NeuralCBP(game, 6, network=ModuleOf(Net, {"hidden": 5}), epochs=2, seed=0)
    X = np.random.default_rng(0).normal(size=(60, 6))
    list(sp.play(strategy, game, zip(X, (X[:, 0] > 0).astype(int), strict=True)))
    assert strategy.network.f1[0].out_features == 5
