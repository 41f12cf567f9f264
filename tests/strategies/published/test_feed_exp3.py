"""FeedExp3: its estimates are unbiased on every game, its rates are published, and it follows the best action."""

import math

import numpy as np
import pytest

import sparingly as sp
from sparingly.games import Game
from sparingly.strategies import FeedExp3

GAMES = {
    "label-efficient": sp.label_efficient(3),
    "unequal costs": sp.label_efficient(costs=[[0, 1], [0.5, 0]]),
    "coarse questions": sp.label_efficient(3, experts=0, questions=[[(0,), (1, 2)], [(0, 1), (2,)]]),
    "apple tasting": sp.apple_tasting(),
    "bandit": sp.bandit(2),
    "dynamic pricing": sp.dynamic_pricing(4),
    "full information": sp.full_information(3),
}


@pytest.mark.parametrize("game", GAMES.values(), ids=GAMES)
def test_the_estimates_are_unbiased(game):
    strategy = FeedExp3(game, 1)
    strategy.estimated = np.random.default_rng(0).normal(size=game.n_actions) * 3
    p = strategy.action_probabilities(50)
    for outcome in range(game.n_outcomes):
        mean = np.zeros(game.n_actions)
        for a in strategy.bounds.informative:
            symbol = game.symbol_index(a, game.feedback[a][outcome])
            mean += p[a] * strategy.k[:, strategy.bounds.slices[a].start + symbol] / p[a]
        expected = game.costs[:, outcome] - strategy.reference_costs[outcome]
        assert mean == pytest.approx(expected, abs=1e-9)


def test_what_learn_adds_is_that_estimate():
    game = sp.bandit(2)
    strategy = FeedExp3(game, 1, seed=3)
    decision = strategy.decide(strategy.assess([[0.5]]), 0)
    before, p = strategy.estimated.copy(), decision.why["probability"]
    strategy.learn([0.5], decision.action, "fails")
    place = strategy.bounds.slices[decision.action].start + game.symbol_index(decision.action, "fails")
    assert strategy.estimated - before == pytest.approx(strategy.k[:, place] / p)


def test_label_efficient_games_learn_from_questions_by_the_costs_themselves():
    strategy = FeedExp3(sp.label_efficient(costs=[[0, 1], [0.5, 0]]), 1)
    assert strategy.k == pytest.approx(strategy.game.costs)
    assert not strategy.reference_costs.any()


def test_a_dominated_action_whose_costs_cannot_be_seen_counts_as_its_worst():
    game = Game(
        costs=[[0, 0, 1, 1], [1, 1, 0, 0], [3, 5, 3, 4]],
        feedback=[["a", "a", "b", "b"], ["c", "c", "c", "c"], ["d", "d", "d", "d"]],
    )
    strategy = FeedExp3(game, 1)
    for outcome in range(4):
        pi = np.eye(2)[game.symbol_index(0, game.feedback[0][outcome])]
        estimated = strategy.k @ pi + strategy.reference_costs[outcome]
        assert estimated[:2] == pytest.approx(game.costs[:2, outcome])
        assert estimated[2] >= game.costs[2, outcome] - 1e-9


def test_a_late_symbol_counts_by_the_probability_it_was_drawn_with():
    game = sp.label_efficient(2)
    one, other = (FeedExp3(game, 1, seed=0) for _ in range(2))
    for strategy, late in ((one, 0), (other, 200)):
        asked = []
        for t in range(400):
            x = np.array([float(t)])
            decision = strategy.decide(strategy.assess(x[None]), 0)
            if decision.asks:
                asked.append((t, x, decision.action, decision.why["probability"]))
        before = strategy.estimated.copy()
        for _, x, action, _ in asked[::-1] if late else asked:
            strategy.learn(x, action, "0")
        weight = sum(1 / p for *_, p in asked)
        assert strategy.estimated - before == pytest.approx(weight * game.costs[:, 0])
    assert one.estimated == pytest.approx(other.estimated)


def test_the_rates_are_the_published_ones():
    strategy = FeedExp3(sp.label_efficient(2), 1)
    A = math.sqrt(math.e - 2) ** (2 / 3)
    eta, gamma = strategy.rates(1000)
    assert eta == pytest.approx((math.log(3) / 3) ** (2 / 3) / 100 / A)
    assert gamma == pytest.approx(A * (9 * math.log(3)) ** (1 / 3) / 10)
    eta, gamma = FeedExp3(sp.label_efficient(2), 1, horizon=10_000).rates(7)
    assert eta == pytest.approx(math.sqrt(math.log(3) / 10_000))
    assert gamma == pytest.approx(math.sqrt(3) * math.log(3) ** 0.25 / 10)
    assert strategy.action_probabilities(10).sum() == pytest.approx(1)


def test_huge_estimates_overflow_nothing():
    strategy = FeedExp3(sp.label_efficient(2), 1)
    strategy.estimated = np.array([1e8, -1e8, 0.0])
    p = strategy.action_probabilities(10_000)
    assert np.isfinite(p).all()
    assert p.argmax() == 1


@pytest.mark.parametrize("name", ["label-efficient", "apple tasting", "bandit", "full information"])
def test_it_follows_the_best_action(name):
    game = GAMES[name]
    rng = np.random.default_rng(1)
    p = np.full(game.n_outcomes, 0.1 / (game.n_outcomes - 1))
    p[1] = 0.9
    outcomes = rng.choice(game.n_outcomes, size=4000, p=p)
    stream = zip(rng.normal(size=(4000, 1)), outcomes, strict=True)
    played = np.array([r.action for r in sp.play(FeedExp3(game, 1, seed=0), game, stream)])
    best = (game.costs @ p).argmin()
    assert (played[3000:] == best).mean() > 0.6
    assert (played[3000:] == best).mean() > (played[:500] == best).mean() + 0.1


def test_a_horizon_below_1_is_named():
    with pytest.raises(ValueError, match="horizon is 0"):
        FeedExp3(sp.label_efficient(2), 1, horizon=0)
