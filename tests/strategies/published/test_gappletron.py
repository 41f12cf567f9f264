"""Gappletron's promises, checked on random scores: errors below the surrogate, gradients below its surplus."""

import math

import numpy as np
import pytest
import torch

from sparingly import label_efficient
from sparingly.strategies import Gappletron
from sparingly.strategies.published.selective_sampling.gappletron import SURROGATES


def random_scores(n=300):
    rng = np.random.default_rng(0)
    for _ in range(n):
        k = int(rng.integers(2, 8))
        yield torch.from_numpy(rng.normal(size=k) * rng.choice([0.05, 0.3, 1.0, 5.0])), int(rng.integers(k))


def expected_errors(share, scores, y):
    wrong = float(scores.argmax() != y)
    return (1 - share) * wrong + share * (1 - 1 / len(scores))


@pytest.mark.parametrize("name", SURROGATES)
def test_expected_errors_are_at_most_the_surrogate(name):
    surrogate = SURROGATES[name]
    for scores, y in random_scores():
        share = surrogate.gap_map(scores)
        assert 0 <= share <= 1
        assert expected_errors(share, scores, y) <= float(surrogate.value(scores, y)) + 1e-9


@pytest.mark.parametrize(("name", "factor"), [("hinge", 4), ("smooth_hinge", 8)])
def test_the_squared_gradient_is_at_most_a_multiple_of_the_surplus(name, factor):
    surrogate = SURROGATES[name]
    for scores, y in random_scores():
        scores = scores.requires_grad_()
        value = surrogate.value(scores, y)
        (slope,) = torch.autograd.grad(value, scores, allow_unused=True, materialize_grads=True)
        surplus = value.item() - expected_errors(surrogate.gap_map(scores.detach()), scores, y)
        assert float(slope.square().sum()) <= factor * len(scores) * surplus + 1e-9


def test_the_same_does_not_hold_with_a_larger_base():
    """Why the logarithm has base 2 for any number of classes."""
    value, share = SURROGATES["logistic"].value, SURROGATES["logistic"].gap_map
    broken = [
        expected_errors(share(scores), scores, y) > float(value(scores, y)) * math.log(2) / math.log(len(scores)) + 1e-9
        for scores, y in random_scores()
        if len(scores) > 2
    ]
    assert any(broken)


def test_the_weighted_gradient_is_right_on_average():
    strategy = Gappletron(label_efficient(3), 2, seed=0)
    rounds = 4000
    strategy.advance(99)
    asked = 0.0
    for _ in range(rounds):
        chance = strategy.chance()
        asked += (strategy.rng.random() < chance) / chance
    assert asked / rounds == pytest.approx(1, abs=0.15)


def test_it_asks_as_often_as_it_says():
    strategy = Gappletron(label_efficient(2), 2, seed=0)
    asked = sum(strategy.decide(strategy.assess([[0.0, 1.0]]), 0).asks for _ in range(2500))
    expected = sum(min(0.5, 1 / math.sqrt(t)) for t in range(1, 2501))
    assert asked == pytest.approx(expected, abs=4 * math.sqrt(expected))


@pytest.mark.parametrize("name", SURROGATES)
def test_a_label_lowers_its_surrogate(name):
    strategy = Gappletron(label_efficient(3), 2, surrogate=name, seed=0)
    x = torch.tensor([1.0, -1.0])
    row = strategy.rows(x[None])[0]
    before = float(SURROGATES[name].value(strategy.weight @ row, 2))
    strategy.decide(strategy.assess(x[None]), 0)
    strategy.learn(x, 3, strategy.game.feedback[3][2])
    assert float(SURROGATES[name].value(strategy.weight @ row, 2)) < before
