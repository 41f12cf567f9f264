"""Cesa's two rules, Margin's two rules, and the perceptron they come from."""

import math

import numpy as np
import pytest
import torch

from sparingly import label_efficient, play
from sparingly.strategies import Cesa, Margin, SelectivePerceptron

GAME = label_efficient(2)


def test_the_published_rule_falls_with_the_margin_and_rises_with_mistakes():
    strategy = Cesa(GAME, 3, rule="published")
    assert strategy.probability_to_ask(np.array([0.5, 0.5])) == 1
    near, far = (strategy.probability_to_ask(np.array([1 - p, p])) for p in (0.6, 0.99))
    assert near > far
    strategy.counted = 8
    margin = math.log(0.99 / 0.01)
    assert strategy.probability_to_ask(np.array([0.01, 0.99])) == pytest.approx(3 / (3 + margin))


def test_the_released_rule_asks_the_more_the_surer_it_is_of_the_second_class():
    strategy = Cesa(GAME, 3, rule="released")
    low, high = (strategy.probability_to_ask(np.array([1 - q, q])) for q in (0.1, 0.9))
    assert low == pytest.approx(1 - 1 / 1.1)
    assert high == pytest.approx(1 - 1 / 1.9)


@pytest.mark.parametrize(("rule", "right"), [("published", 0), ("released", 1)])
def test_published_counts_mistakes_and_released_counts_successes(rule, right):
    strategy = Cesa(GAME, 3, rule=rule)
    x = torch.ones(3)
    said = int(strategy.scores(x[None]).argmax())
    strategy.learn(x, 2, GAME.feedback[2][said])
    assert strategy.counted == right
    strategy.learn(x, 2, GAME.feedback[2][1 - said])
    assert strategy.counted == 1


@pytest.mark.parametrize("strategy", [Cesa, Margin])
def test_the_released_network_has_one_logit_and_small_normal_weights(strategy):
    released, published = (strategy(GAME, 400, network=network).classifier for network in (None, "mlp"))
    assert released(torch.zeros(1, 400)).tolist() == [[0.0, 0.0]]
    assert float(next(released.parameters()).detach().std()) == pytest.approx(0.1, rel=0.05)
    assert 0.0 not in published(torch.zeros(1, 400)).tolist()[0]
    assert float(next(published.parameters()).detach().abs().max()) < 1 / math.sqrt(400)


def test_margins_rules_are_a_probability_gap_and_a_logit_gap():
    p = np.array([0.46, 0.54])
    released, published = (Margin(GAME, 3, rule=rule) for rule in ("released", "published"))
    assert released.margin(p) == pytest.approx(0.08)
    assert published.margin(p) == pytest.approx(math.log(0.54 / 0.46))
    assert released._rule(p)[0]
    assert not released._rule(np.array([0.44, 0.56]))[0]
    assert published._rule(np.array([0.28, 0.72]))[0]
    assert not published._rule(np.array([0.26, 0.74]))[0]


def test_the_perceptron_learns_from_mistakes_only():
    strategy = SelectivePerceptron(label_efficient(3), 2, seed=0)
    x, expert = torch.tensor([3.0, 4.0]), 3
    strategy.learn(x, expert, strategy.game.feedback[expert][1])
    assert strategy.weight.tolist() == [[-3.0, -4.0, -1.0], [3.0, 4.0, 1.0], [0.0, 0.0, 0.0]]
    before = strategy.weight.clone()
    strategy.learn(x, expert, strategy.game.feedback[expert][1])
    assert torch.equal(strategy.weight, before)
    assert strategy.mistakes == 1
    assert strategy.longest == pytest.approx(math.sqrt(26))


def test_the_perceptron_asks_with_the_published_probability():
    strategy = SelectivePerceptron(GAME, 2, beta=0.5, seed=0)
    x = torch.tensor([3.0, 4.0])
    strategy.learn(x, 2, GAME.feedback[2][1])
    chance = strategy.decide(strategy.assess(x[None]), 0).why["chance"]
    b = 0.5 * 26 * math.sqrt(2)
    assert chance == pytest.approx(b / (b + 52))


def test_the_perceptron_separates_what_is_separable():
    X = np.random.default_rng(0).normal(size=(600, 3))
    X += 0.5 * np.sign(X[:, :1]) * np.array([1, 0, 0])
    strategy = SelectivePerceptron(GAME, 3, beta=0.1, seed=0)
    rounds = list(play(strategy, GAME, zip(X, (X[:, 0] > 0).astype(int), strict=True)))
    assert sum(r.prediction != r.outcome for r in rounds[300:]) <= 6
    assert sum(r.action == 2 for r in rounds[300:]) < sum(r.action == 2 for r in rounds[:300])


@pytest.mark.parametrize("strategy", [Cesa, Margin])
def test_a_rule_that_does_not_exist_is_named(strategy):
    with pytest.raises(ValueError, match="rule is 'original': give 'published' or 'released'"):
        strategy(GAME, 3, rule="original")
