"""A class that turns up later: the strategy grows by one output, and nothing that was learned is lost."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import sparingly as sp
from sparingly.learning.networks import build
from sparingly.strategies.sparing.models.ensemble import ModuleEnsemble
from tests.strategies.conformance.toy import Grows

CENTRES = np.eye(4)


def blobs(classes, rounds, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=rounds)
    return (CENTRES[y] + 0.25 * rng.normal(size=(rounds, 4))).astype(np.float32), y


def play(strategy, X, y):
    return list(sp.play(strategy, strategy.game, zip(X, y.tolist(), strict=True)))


def right(strategy, classes):
    X, y = blobs(classes, 400, seed=9)
    return float((strategy.scores(X).argmax(1) == y).mean())


@pytest.mark.parametrize("name", ["sparing", "neural_cbp"])
def test_the_new_class_is_learned_and_the_old_ones_are_kept(name: str) -> None:
    strategy = sp.strategies()[name](sp.label_efficient(classes=["a", "b", "c"]), n_features=4, seed=0)
    play(strategy, *blobs(3, 300))
    labels, before = strategy.n_labels, right(strategy, 3)
    strategy.add_class("d")
    assert strategy.n_labels == labels
    assert before > 0.9
    assert right(strategy, 3) >= before - 0.02  # at once, without any training on the new class
    played = play(strategy, *blobs(4, 600, seed=1))
    assert right(strategy, 4) > 0.9
    assert sum(one.action == strategy.game.n_outcomes for one in played) < 400


def test_the_outputs_of_neural_cbp_are_those_it_had_and_one_more() -> None:
    strategy = sp.NeuralCBP(sp.label_efficient(3), n_features=4, seed=0)
    X, y = blobs(3, 200)
    play(strategy, X, y)
    before = strategy.network.estimate(torch.from_numpy(X)).clone()
    strategy.add_class("3")
    after = strategy.network.estimate(torch.from_numpy(X))
    assert torch.allclose(after[:, :3], before, atol=1e-6)
    assert not after[:, 3].any()


def test_any_network_that_ends_in_a_linear_layer_grows() -> None:
    module = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    strategy = sp.Sparing(sp.label_efficient(2), n_features=4, network=module, members=2, seed=0)
    X, y = blobs(2, 22)
    play(strategy, X, y)
    held = strategy.scores(X)
    strategy.add_class("2")
    assert np.allclose(strategy.scores(X)[:, :2], held, atol=1e-6)
    assert module[-1].out_features == 2  # the user's own is left alone
    images = torch.randn(5, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    lenets = ModuleEnsemble(build("lenet", (1, 16, 16), 2, seed=0, width=0, depth=2), 2)
    held = lenets.logits(images)
    lenets.add_class()
    assert torch.equal(lenets.logits(images)[:, :, :2], held)


def test_what_is_known_of_experts_who_may_be_wrong_is_kept() -> None:
    experts = [sp.Expert("gpt", 0.05), sp.Expert("human", 1.0, gold=True)]
    strategy = sp.Sparing(sp.label_efficient(3, experts=experts), n_features=4, seed=0)
    X, y = blobs(3, 200)
    said = [{"gpt": int(one) if i % 5 else (int(one) + 1) % 3} for i, one in enumerate(y)]
    list(sp.play(strategy, strategy.game, zip(X, y.tolist(), said, strict=True)))
    known = strategy.panel.reliability[0].accuracy
    strategy.add_class("3")
    assert strategy.panel.reliability[0].accuracy == pytest.approx(known, abs=0.01)
    X, y = blobs(4, 100, seed=1)
    rounds = sp.play(strategy, strategy.game, zip(X, y.tolist(), [{"gpt": int(one)} for one in y], strict=True))
    assert {3} <= {one.prediction for one in rounds}


def test_what_cannot_grow_says_so_and_stays_as_it_was() -> None:
    strategy = sp.strategies()["margin"](sp.label_efficient(2), n_features=4)
    with pytest.raises(ValueError, match="strategy margin cannot take on class 'x'"):
        strategy.add_class("x")
    coarse = sp.label_efficient(3, questions=[[(0, 1), (2,)]], question_costs=0.2)
    strategy = sp.NeuralCBP(coarse, n_features=4)
    with pytest.raises(ValueError, match="each of its questions must tell every class"):
        strategy.add_class("x")
    convolution = nn.Sequential(nn.Unflatten(1, (1, 4)), nn.Conv1d(1, 2, 4), nn.Flatten())
    strategy = sp.Sparing(sp.label_efficient(2), n_features=4, network=convolution)
    with pytest.raises(ValueError, match="Sequential cannot take on a class"):
        strategy.add_class("x")
    assert strategy.game.n_outcomes == 2


def test_a_small_strategy_of_ones_own_may_grow() -> None:
    assert sp.strategies.check(Grows, short=True, only=["a_class_is_added_or_refused"])


def test_a_mistake_about_the_new_class_costs_what_it_is_said_to() -> None:
    game = sp.label_efficient(costs=[[0, 3.0], [1.0, 0]], query_cost=0.5)
    assert game.with_class("2").costs[:, 2].tolist() == [3.0, 3.0, 0.0, 0.5]
    assert game.with_class("2", cost=2.0).costs[2].tolist() == [2.0, 2.0, 0.0]
    assert game.with_class("2").of_first_classes(2) == game
