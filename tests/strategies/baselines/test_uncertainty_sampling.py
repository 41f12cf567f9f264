"""Uncertainty sampling keeps its budget, whatever the threshold, and moves the threshold as published."""

import numpy as np
import pytest

from sparingly import label_efficient
from sparingly.strategies import Entropy, LeastConfidence, SmallestMargin

ALL = (LeastConfidence, Entropy, SmallestMargin)


@pytest.mark.parametrize("threshold", ["fixed", "variable", "randomised", "split"])
@pytest.mark.parametrize("budget", [0.05, 0.3])
def test_the_budget_is_kept(threshold, budget):
    strategy = LeastConfidence(label_efficient(2), 1, threshold=threshold, budget=budget, seed=0)
    rng, asked, window = np.random.default_rng(0), 0, 100
    for t in range(1, 3001):
        p = rng.uniform(0.5, 1)
        asked += strategy._rule(np.array([p, 1 - p]))[0]
        assert asked <= (budget + 1 / window) * t + window * budget + 1


@pytest.mark.parametrize("strategy", ALL)
def test_certainty_goes_from_one_over_k_to_one(strategy):
    made = strategy(label_efficient(4), 1)
    assert made.certainty(np.full(4, 0.25)) == pytest.approx(0.25)
    assert made.certainty(np.array([0.0, 1.0, 0.0, 0.0])) == pytest.approx(1)
    middle = made.certainty(np.array([0.1, 0.6, 0.2, 0.1]))
    assert 0.25 < middle < 1


def test_the_variable_threshold_shrinks_at_questions_and_grows_at_announcements():
    strategy = LeastConfidence(label_efficient(2), 1, threshold="variable", budget=1.0)
    assert strategy._rule(np.array([0.9, 0.1]))[0]
    assert strategy.theta == pytest.approx(0.99)
    assert not strategy._rule(np.array([0.995, 0.005]))[0]
    assert strategy.theta == pytest.approx(0.99 * 1.01)


def test_the_threshold_rests_while_the_budget_is_spent():
    strategy = LeastConfidence(label_efficient(2), 1, threshold="variable", budget=0.01)
    strategy.spent = 50.0
    assert not strategy._rule(np.array([0.5, 0.5]))[0]
    assert strategy.theta == 1.0


def test_the_fixed_threshold():
    strategy = LeastConfidence(label_efficient(4), 1, threshold="fixed", budget=0.2)
    assert strategy._rule(np.array([0.4, 0.2, 0.2, 0.2]))[0]
    assert not strategy._rule(np.array([0.41, 0.2, 0.2, 0.19]))[0]


def test_a_negative_draw_never_asks():
    strategy = LeastConfidence(label_efficient(2), 1, threshold="randomised", budget=1.0, seed=0)
    draws = np.random.default_rng(0).normal(1, 1, size=400)
    theta = 1.0
    for draw in draws:
        asks = strategy._rule(np.array([0.7, 0.3]))[0]
        assert asks == (theta * draw > 0.7)
        theta *= 0.99 if asks else 1.01
    assert (draws < 0).any()


def test_a_budget_that_is_no_share_is_refused():
    with pytest.raises(ValueError, match=r"budget is 1\.5"):
        Entropy(label_efficient(2), 1, budget=1.5)
