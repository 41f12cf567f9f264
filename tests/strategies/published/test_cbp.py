"""CBP and RandCBP: the published rates, a literal second implementation, and the games they learn."""

import math

import numpy as np
import pytest

import sparingly as sp
from sparingly.strategies import CBP, RandCBP
from sparingly.strategies.families.random_widths import Draws

GAMES = {
    "label-efficient": sp.label_efficient(2),
    "false positives cost more": sp.label_efficient(costs=[[0, 1], [0.5, 0]]),
    "three classes": sp.label_efficient(3),
    "cheap question": sp.label_efficient(3, query_cost=0.3),
    "apple tasting": sp.apple_tasting(),
    "bandit": sp.bandit(2),
    "dynamic pricing": sp.dynamic_pricing(3),
    "two experts": sp.label_efficient(2, experts=[1.0, 0.8]),
}


def actions(strategy, outcomes):
    """Play a sequence of outcomes, every symbol told at once."""
    game, played = strategy.game, []
    for outcome in outcomes:
        decision = strategy.decide(strategy.assess(np.zeros((1, 1))), 0)
        if decision.asks:
            strategy.learn(np.zeros(1), decision.action, game.feedback[decision.action][outcome])
        played.append(decision.action)
    return np.array(played)


def test_the_exploration_rate_is_the_published_one():
    rate = CBP(sp.label_efficient(2), 1).bounds.rate
    assert [round(rate(t), 2) for t in (100, 1000, 10_000)] == [35.96, 191.08, 976.19]


def test_alternating_answers_ask_192_times_in_1000_rounds():
    strategy = CBP(sp.label_efficient(2), 1)
    for _ in range(1000):
        decision = strategy.decide(strategy.assess([[0.0]]), 0)
        if decision.asks:
            strategy.learn([0.0], decision.action, strategy.game.feedback[2][strategy.n_labels % 2])
    assert strategy.n_labels == 192


def literal_cbp(costs, seen, outcomes, alpha=1.01):
    """CBP for two classes and one informative action `seen`, by the letter: c_0 - c_1 = v'pi, D(t) is a half-line."""
    v = costs[0] - costs[1]
    weight, played = np.abs(v).max(), []
    told, symbols = 0, np.zeros(2)
    for t, outcome in enumerate(outcomes, start=1):
        if t <= len(costs):
            action = t - 1
        else:
            pi = symbols / told
            gap, width = v @ pi, weight * math.sqrt(alpha * math.log(t) / told)
            rate = weight ** (2 / 3) * alpha ** (1 / 3) * t ** (2 / 3) * math.log(t) ** (1 / 3)
            cheapest = int((costs[:2] @ pi).argmin())
            if gap > width:
                action = 1
            elif gap < -width:
                action = 0
            elif seen < 2 or told < rate:
                action = seen
            else:
                action = cheapest
        if action == seen:
            symbols[outcome] += 1
            told += 1
        played.append(action)
    return np.array(played)


@pytest.mark.parametrize("p", [0.1, 0.45, 0.5, 0.8])
@pytest.mark.parametrize(
    ("game", "seen"),
    [
        (sp.label_efficient(2), 2),
        (sp.label_efficient(costs=[[0, 1], [0.5, 0]]), 2),
        (sp.apple_tasting(), 1),
    ],
)
def test_every_move_is_that_of_a_literal_implementation(game, seen, p):
    outcomes = (np.random.default_rng(0).random(500) < p).astype(int)
    assert (actions(CBP(game, 1), outcomes) == literal_cbp(game.costs, seen, outcomes)).all()


@pytest.mark.parametrize("game", GAMES.values(), ids=GAMES)
def test_eps_1_is_cbp_move_for_move(game):
    outcomes = np.random.default_rng(1).integers(game.n_outcomes, size=200)
    outcomes[::3] = 0
    assert (actions(RandCBP(game, 1, eps=1.0, seed=5), outcomes) == actions(CBP(game, 1), outcomes)).all()


@pytest.mark.parametrize("strategy", [CBP, RandCBP])
@pytest.mark.parametrize("name", ["label-efficient", "cheap question", "apple tasting", "bandit", "dynamic pricing"])
def test_the_best_action_prevails(name, strategy):
    game = GAMES[name]
    p = np.full(game.n_outcomes, 0.15 / (game.n_outcomes - 1))
    p[-2] = 0.85
    outcomes = np.random.default_rng(2).choice(game.n_outcomes, size=1500, p=p)
    played = actions(strategy(game, 1, seed=0), outcomes)
    best = (game.costs @ p).argmin()
    assert (played[1000:] == best).mean() > 0.8


def test_drawn_widths_explore_less():
    outcomes = (np.random.default_rng(3).random(1200) < 0.3).astype(int)
    wide, drawn = CBP(sp.label_efficient(2), 1), RandCBP(sp.label_efficient(2), 1, seed=0)
    actions(wide, outcomes)
    actions(drawn, outcomes)
    assert drawn.n_labels < 0.5 * wide.n_labels


def test_probabilities_of_the_draws_sum_to_one_and_fall():
    for sigma, points, eps, largest in [(1.0, 5, 1e-6, 2.6), (5.0, 10, 1e-6, 7.0), (0.5, 20, 0.1, 1.0)]:
        p = Draws(sigma, points, eps).probabilities(largest)
        assert math.isclose(p.sum(), 1)
        assert (np.diff(p[:-1]) < 0).all()
        assert p[-1] == eps
    p = Draws(1.0, 5, 1e-6).probabilities(math.sqrt(1.01 * math.log(1000)))
    assert round(p[0], 2) == 0.42
    assert round(p @ np.linspace(0, 1, 5), 2) == 0.22
    drawn = Draws(1.0, 5, 0.2).shares(2.0, 20_000, np.random.default_rng(0))
    assert abs((drawn == 1).mean() - 0.2) < 0.01


def test_symbols_that_never_come_leave_the_widths_wide():
    strategy = CBP(sp.label_efficient(2), 1)
    for _ in range(500):
        strategy.decide(strategy.assess([[0.0]]), 0)
    assert strategy.counts.play_counts[0] == pytest.approx(strategy.bounds.rate(500), abs=1)
    assert strategy.n_labels == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "alpha is 0.0"),
        ({"eps": 0.0}, "eps is 0.0"),
        ({"sigma": -1.0}, "sigma is -1.0"),
        ({"points": 1}, "points is 1"),
        ({"ties": "none"}, "ties is 'none'"),
    ],
)
def test_options_that_make_no_sense_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        RandCBP(sp.label_efficient(2), 1, **options)
