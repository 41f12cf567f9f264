"""The environment passes Gymnasium's own check, and shows an agent nothing but the feedback."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import sparingly as sp
from sparingly.adapters.gymnasium import TASKS, PartialMonitoringEnv


def rows(n=50, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 3)).astype(np.float32)
    return list(zip(X, (X[:, 0] > 0).astype(int).tolist(), strict=True))


ENVIRONMENTS = {
    "a list": lambda: PartialMonitoringEnv(sp.label_efficient(2), rows()),
    "a function of the seed": lambda: PartialMonitoringEnv(sp.apple_tasting(), lambda seed: rows(seed=seed)),
    "images": lambda: PartialMonitoringEnv(sp.label_efficient(2), [(np.zeros((1, 4, 4)), 0)] * 20),
    "another game": lambda: PartialMonitoringEnv(sp.dynamic_pricing(3), rows()),
    "a task": lambda: gymnasium.make("sparingly/Digits-v0", horizon=60),
}


@pytest.mark.parametrize("make", ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_gymnasium_check(make):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that observations have no bounds
        check_env(make().unwrapped, skip_render_check=True)


@pytest.mark.parametrize("name", TASKS)
def test_every_task_of_the_paper_is_registered(name):
    assert gymnasium.spec(name).kwargs == TASKS[name]


@pytest.mark.data
def test_a_task_of_the_paper():
    env = gymnasium.make("sparingly/MagicTelescopeFPSensitive-v0", horizon=40)
    assert env.unwrapped.game.costs.tolist() == [[0, 1], [0.5, 0], [1, 1]]
    observation, _ = env.reset(seed=3)
    assert observation.shape == (10,)


def test_an_episode_is_what_play_does():
    game, stream = sp.label_efficient(2), rows(200)
    env = PartialMonitoringEnv(game, stream)
    strategy = sp.Sparing(game, 3, width=20, members=2, seed=0)
    observation, info = env.reset(seed=0)
    rewards, over = [], False
    while not over:
        decision = strategy.decide(strategy.assess(observation[None]), 0)
        coming, reward, terminated, over, info = env.step(decision.action)
        assert set(info) == {"feedback"}
        assert not terminated
        if decision.asks:
            strategy.learn(observation, decision.action, info["feedback"])
        rewards.append(reward)
        observation = coming
    again = sp.Sparing(game, 3, width=20, members=2, seed=0)
    assert rewards == [-r.cost for r in sp.play(again, game, stream)]
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)


def test_an_action_that_tells_nothing_tells_nothing():
    game = sp.label_efficient(2)
    env = PartialMonitoringEnv(game, rows())
    env.reset(seed=0)
    assert len({env.step(0)[4]["feedback"] for _ in range(40)}) == 1


def test_the_seed_makes_the_stream():
    env = PartialMonitoringEnv(sp.label_efficient(2), lambda seed: rows(seed=seed))
    first = env.reset(seed=5)[0]
    assert not np.array_equal(env.reset()[0], first)
    assert np.array_equal(env.reset(seed=5)[0], first)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="which ends once"):
        PartialMonitoringEnv(sp.label_efficient(2), iter(rows()))
    with pytest.raises(ValueError, match="no observations"):
        PartialMonitoringEnv(sp.label_efficient(2), [])
    env = PartialMonitoringEnv(sp.label_efficient(2), rows())
    env.reset()
    with pytest.raises(ValueError, match="action 3 is not one of 0 to 2"):
        env.step(3)
