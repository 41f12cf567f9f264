"""Rounds in which several experts are asked: their order, their prices, late answers and none."""

from __future__ import annotations

import numpy as np
import pytest

import sparingly as sp
from sparingly.strategies.strategy import Why
from tests.strategies.conformance.hearing_toys import AsksInOrder

GPT, LLAMA, HUMAN = sp.Expert("gpt", 0.01), sp.Expert("llama", 0.02), sp.Expert("human", 1.0, gold=True)


def _play(stream, experts=(GPT, LLAMA, HUMAN), **options):
    game = sp.label_efficient(3, experts=list(experts))
    strategy = AsksInOrder(game, 1)
    items = [([float(t)], *item) for t, item in enumerate(stream)]
    return list(sp.play(strategy, game, items, **options)), strategy


def test_a_round_asks_hears_and_ends_with_an_announcement_or_the_truth():
    rounds, strategy = _play([(2, {"gpt": 1, "llama": 1}), (2, {"gpt": 1, "llama": 0}), (2, {"gpt": None, "llama": 2})])
    assert [one.asked for one in rounds] == [("gpt", "llama"), ("gpt", "llama", "human"), ("gpt", "llama", "human")]
    assert [one.prediction for one in rounds] == [1, 2, 2]
    assert [one.cost for one in rounds] == pytest.approx([1.03, 1.03, 1.03])
    assert [one.paid for one in rounds] == pytest.approx([0.03, 1.03, 1.03])
    assert [one.action for one in rounds] == [1, 5, 5]
    assert strategy.clock == 3
    assert strategy.learned[:2] == [(0.0, 3, 1), (0.0, 4, 1)]
    assert (2.0, 3, 0) not in strategy.learned


def test_a_call_may_have_a_price_of_its_own():
    rounds, _ = _play([(1, {"gpt": (1, 0.5), "llama": (None, 0.25)}), (1, {"gpt": (1, 0.125), "llama": 1})])
    assert [one.cost for one in rounds] == pytest.approx([1.75, 0.145])


def test_a_gold_expert_may_stay_silent_too():
    rounds, _ = _play([(1, {"human": None})])
    assert rounds[0].asked == ("gpt", "llama", "human")
    assert rounds[0].prediction == 0
    assert rounds[0].cost == pytest.approx(2.03)


def test_one_expert_is_late_and_another_instant():
    stream = [(2, {"gpt": 1, "llama": 1}), (2, {"gpt": 1, "llama": 0}), (0, {"gpt": 0, "llama": 0})]
    rounds, strategy = _play(stream, delay={"llama": 1})
    assert [one.t for one in rounds] == [1, 2, 3]
    assert [one.cost for one in rounds] == pytest.approx([1.03, 1.03, 0.03])
    order = [(x, action) for x, action, _ in strategy.learned]
    assert order.index((0.0, 4)) > order.index((0.0, 3))
    assert order[-1] == (2.0, 4)
    with pytest.raises(ValueError, match="a delay of 'claude'"):
        _play(stream, delay={"claude": 1})


def test_experts_who_know_cost_what_the_classic_game_costs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    classic, named = sp.label_efficient(2), sp.label_efficient(2, experts=[HUMAN])
    runs = [list(sp.play(sp.Sparing(game, 4, seed=1), game, zip(X, y, strict=True))) for game in (classic, named)]
    assert [(one.action, one.cost, str(one.why)) for one in runs[0]] == [
        (one.action, one.cost, str(one.why)) for one in runs[1]
    ]
    asked = [one for one in runs[1] if one.asked]
    assert all(one.asked == ("human",) and one.prediction == one.outcome for one in asked)
    assert len(asked) > 20
    assert [one.asked for one in runs[0] if one.asked] == [("the expert",)] * len(asked)


def test_strategies_that_know_only_the_truth_say_why_they_refuse():
    game = sp.label_efficient(3, experts=[GPT, HUMAN])
    for name in ("neural_cbp", "cbp_side", "cesa", "margin"):
        with pytest.raises(ValueError, match="gpt may be wrong"):
            sp.strategies()[name](game, n_features=4)


def test_nobody_is_asked_twice_in_a_round():
    class Stubborn(AsksInOrder):
        name = "stubborn"

        def _choose_again(self, assessment, row, heard):
            return self.game.n_outcomes, 0, Why("again")

    game = sp.label_efficient(2, experts=[GPT])
    with pytest.raises(ValueError, match="stubborn asks gpt twice in round 1"):
        list(sp.play(Stubborn(game, 1), game, [([0.0], 1, {"gpt": 1})]))
