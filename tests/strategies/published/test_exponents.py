"""The many runs of the figure of exponents make the moves of the strategies they stand for."""

import math

import numpy as np
import pytest
from benchmarks.exponents import ALPHA, GAMES, STRATEGIES, ManyRuns, curve

from sparingly.strategies import CBP, RandCBP


def moves(strategy, outcomes):
    played = []
    for outcome in outcomes:
        decision = strategy.decide(strategy.assess([[0.0]]), 0)
        if decision.asks:
            strategy.learn([0.0], decision.action, strategy.game.feedback[decision.action][int(outcome)])
        played.append(decision.action)
    return np.array(played)


@pytest.mark.parametrize("name", GAMES)
def test_cbp_in_many_runs_is_cbp(name):
    game = GAMES[name][0]
    p = np.array([0.2, 0.47, 0.5, 0.53, 0.9])
    outcomes = np.random.default_rng(0).random((400, len(p))) < p
    runs = ManyRuns(game, None, p, np.random.default_rng(1))
    together = []
    for t, now in enumerate(outcomes, start=1):
        together.append(runs.actions(t))
        runs.learn(together[-1], now)
    for run in range(len(p)):
        assert (np.array(together)[:, run] == moves(CBP(game, 1), outcomes[:, run])).all()


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("p", [0.3, 0.48, 0.6])
def test_rand_cbp_in_many_runs_is_rand_cbp(name, p):
    game, draws = GAMES[name][0], STRATEGIES["RandCBP"]
    outcomes = np.random.default_rng(0).random(400) < p
    rng = np.random.default_rng(5)
    for t in range(1, game.n_actions + 1):
        draws.shares(math.sqrt(ALPHA * math.log(t)), 1, rng)
    runs, together = ManyRuns(game, draws, np.array([p]), rng), []
    for t, now in enumerate(outcomes, start=1):
        together.append(runs.actions(t))
        runs.learn(together[-1], np.array([now]))
    assert (np.array(together)[:, 0] == moves(RandCBP(game, 1, seed=5), outcomes)).all()


def test_the_hard_game_is_harder_than_the_easy_one():
    easy, hard = (curve(name, "CBP", horizon=2000, n_runs=10) for name in GAMES)
    assert easy.exponent < hard.exponent
    assert (np.diff(hard.regret) > 0).all()
    assert hard.regret[-1] > 2 * easy.regret[-1]
