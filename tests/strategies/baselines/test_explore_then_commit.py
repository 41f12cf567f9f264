"""Explore then commit: n questions, one training, then announcements."""

import numpy as np
import pytest

from sparingly import label_efficient, play
from sparingly.learning import state_files as files
from sparingly.strategies import ExploreThenCommit

GAME = label_efficient(3)


def stream(n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = rng.normal(size=(n, 4)) + 4 * np.eye(4)[y]
    return [(100 + 50 * x, int(k)) for x, k in zip(X, y, strict=True)]


@pytest.mark.parametrize("learner", ["network", "forest", "boosting", "mlp"])
def test_it_asks_n_times_and_then_announces_well(learner):
    strategy = ExploreThenCommit(GAME, 4, n=90, learner=learner, seed=0)
    rounds = list(play(strategy, GAME, stream()))
    assert [r.action == 3 for r in rounds] == [True] * 90 + [False] * 210
    assert sum(r.action != r.outcome for r in rounds[90:]) <= 25
    assert strategy.generation == 1, "it trains once"


def test_it_comes_back_from_a_file_with_a_forest():
    strategy = ExploreThenCommit(GAME, 4, n=60, learner="forest", seed=0)
    list(play(strategy, GAME, stream(100)))
    again = ExploreThenCommit(GAME, 4, n=60, learner="forest", seed=0)
    again.load_state_dict(files.load(files.dump(strategy.state_dict())))
    X = np.stack([x for x, _ in stream(50, seed=1)])
    assert np.array_equal(again.scores(X), strategy.scores(X))


def test_late_answers_are_waited_for():
    strategy = ExploreThenCommit(GAME, 4, n=60, seed=0)
    list(play(strategy, GAME, stream(), delay=30))
    assert strategy.trained_on == 60
    assert strategy.generation == 2, "once with what was there after 60 rounds, once with the rest"


def test_costs_decide_what_is_announced():
    careful = label_efficient(costs=[[0.0, 20.0], [1.0, 0.0]], query_cost=1.0)
    rng = np.random.default_rng(0)
    noisy = [(rng.normal(size=2), int(rng.random() < 0.2)) for _ in range(400)]
    said = [r.action for r in play(ExploreThenCommit(careful, 2, n=100, epochs=3), careful, noisy)][100:]
    assert np.mean(np.array(said) == 1) > 0.9


def test_an_unknown_learner_is_named():
    with pytest.raises(ValueError, match="learner is 'tree'"):
        ExploreThenCommit(GAME, 4, learner="tree")
