"""The preset `released` begins and learns when the code behind the paper's tables does; each point is an option."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from benchmarks import faithful

import sparingly as sp
from sparingly.games import analyze
from sparingly.games.block_elimination import BlockElimination
from sparingly.strategies import registered
from sparingly.strategies.published.partial_monitoring.neural_cbp_presets import PRESETS

RELEASED = {
    "neural_cbp": {"preset": "released"},
    "neuronal": {"preset": "released"},
    "ineural": {"preset": "released"},
    "cesa": {"rule": "released"},
    "margin": {"rule": "released"},
}


def updates(name: str, rounds: int, **options: object) -> tuple[list[int], list[int]]:
    """The actions, and the rounds (counted from 1) that an update followed."""
    game = sp.label_efficient(2)
    strategy = registered()[name](game, 3, width=4, epochs=1, seed=0, **options)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rounds, 3)).astype(np.float32)
    actions, after, generation = [], [], 0
    for t, x in enumerate(X, 1):
        decision = strategy.decide(strategy.assess(x[None]), 0)
        if decision.asks:
            strategy.learn(x, decision.action, game.feedback[decision.action][int(x[0] > 0)])
        actions.append(decision.action)
        if strategy.generation > generation:
            generation = strategy.generation
            after.append(t)
    return actions, after


@pytest.mark.parametrize("name", RELEASED)
def test_released_asks_first_and_learns_first_after_two_rounds_more(name: str) -> None:
    actions, after = updates(name, 160, **RELEASED[name])
    assert actions[:3] == [2, 0, 1]
    assert after == [*range(5, 52), 101, 151]


@pytest.mark.parametrize("name", RELEASED)
def test_start_schedule_and_wait_are_options_of_their_own(name: str) -> None:
    options = {**RELEASED[name], "start": "each", "schedule": "paper", "wait": 0}
    actions, after = updates(name, 110, **options)
    assert actions[:3] == [0, 1, 2]
    assert after == [*range(3, 51), 100]


@pytest.mark.parametrize(("wait", "first"), [(0, 3), (2, 5), (5, 8), (20, 23)])
def test_wait_is_how_long_neural_cbp_waits(wait: int, first: int) -> None:
    assert updates("neural_cbp", 30, wait=wait)[1][0] == first


def test_the_papers_text_begins_as_before() -> None:
    actions, after = updates("neural_cbp", 110, preset="paper")
    assert actions[:3] == [0, 1, 2]
    assert after == [*range(3, 51), 100]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("neuronal", {"preset": "published"}),
        ("neuronal", {"preset": "authors"}),
        ("ineural", {"preset": "published"}),
        ("margin", {"rule": "published"}),
    ],
)
def test_other_presets_begin_as_before(name: str, options: dict[str, str]) -> None:
    actions, after = updates(name, 110, **options)
    assert actions[:3] == [0, 1, 2]
    assert after == [*range(5, 51), 100]


@pytest.mark.parametrize("name", ["cesa", "margin"])
def test_released_classifiers_learn_in_batches_of_64(name: str) -> None:
    assert registered()[name](sp.label_efficient(2), 3).training.batch == 64


@pytest.mark.parametrize("name", ["neural_cbp", "neuronal", "ineural", "margin", "neur_al"])
def test_a_strategy_may_learn_after_every_answer_and_only_then(name: str) -> None:
    game = sp.label_efficient(2)
    strategy = registered()[name](game, 3, width=4, epochs=1, seed=0, schedule="answers")
    rng, seen = np.random.default_rng(0), []
    for t, x in enumerate(rng.normal(size=(60, 3)), 1):
        before = strategy.generation
        decision = strategy.decide(strategy.assess(x[None]), 0)
        assert strategy.generation == before
        if decision.asks:
            strategy.learn(x, decision.action, game.feedback[decision.action][int(x[0] > 0)])
            seen.append((t, strategy.generation - before))
    assert {gained for t, gained in seen if t > 5} == {1}
    assert {gained for t, gained in seen if t < 5} <= {0}


@pytest.mark.parametrize("name", ["neuronal", "ineural"])
def test_without_a_stop_every_epoch_is_made(name: str) -> None:
    made = []
    for stop in (1e-3, None):
        strategy = registered()[name](sp.label_efficient(2), 3, width=4, epochs=7, seed=0, stop=stop)
        training, module = strategy.network.training, torch.nn.Linear(1, 1)
        made.append(training.fit(module, torch.zeros(4, 1), module(torch.zeros(4, 1)).detach(), strategy.rng))
    assert made == [1, 7]


@pytest.mark.parametrize("name", ["ineural", "neur_al"])
def test_an_answer_teaches_the_announced_class_alone_if_so_wished(name: str) -> None:
    kept = {}
    for learns in ("announced_and_true", "announced"):
        strategy = registered()[name](sp.label_efficient(3), 3, width=4, seed=0, learns=learns)
        for outcome in range(3):
            x = np.eye(3)[outcome]
            strategy.learn(x, 3, strategy.game.feedback[3][outcome])
        kept[learns] = len(strategy.memory if name == "neur_al" else strategy.network.memory)
    assert kept["announced"] == 3 < kept["announced_and_true"]


def test_a_negative_wait_is_refused() -> None:
    with pytest.raises(ValueError, match="wait is -1"):
        sp.NeuralCBP(sp.label_efficient(2), 3, wait=-1)


def test_every_difference_is_a_keyword_of_the_strategy() -> None:
    for name, value in vars(PRESETS["paper"]).items():
        chosen = sp.NeuralCBP(sp.label_efficient(2), 3, preset="released", **{name: value}).differences
        assert getattr(chosen, name) == value
        assert {**vars(PRESETS["released"]), name: value} == vars(chosen)


@pytest.mark.parametrize("name", RELEASED)
def test_every_difference_has_a_measured_effect(name: str) -> None:
    runs = pd.read_csv(faithful.RUNS)
    measured = set(runs[runs["strategy"] == name]["changed"])
    assert set(faithful.variants(name, "magic_telescope")) <= measured
    told = (faithful.PAGE.parent.parent / "neural-cbp.md").read_text()
    for words in measured - {faithful.NOTHING}:
        assert f"| {name} | `{words}` |" in told


@pytest.mark.parametrize("costs", [None, [[0, 1, 1], [2, 0, 2], [3, 3, 0]], [[0, 1, 2], [2, 0, 1], [1, 2, 0]]])
def test_a_gap_that_reaches_its_width_is_confident_if_so_wished(costs: list[list[float]] | None) -> None:
    geometry = analyze(sp.label_efficient(3, costs=costs, query_cost=5.0))
    pi = np.array([[0.5, 0.25, 0.25]])
    above, reaches = (BlockElimination(geometry, confident=one) for one in ("above", "reaches"))
    scale = np.abs(geometry.observers[0, 1][3]).max()
    gap = np.abs(geometry.observers[0, 1][3] @ pi[0]) / scale
    lost = [1 not in one.restrict(pi, np.array([[gap]])).candidates(0).survivors for one in (above, reaches)]
    assert lost == [False, True]
    between = np.array([[gap * 1.01]])
    assert above.restrict(pi, between).candidates(0) == reaches.restrict(pi, between).candidates(0)


def test_a_contradiction_keeps_the_pareto_actions_or_all() -> None:
    geometry = analyze(sp.label_efficient(costs=[[0, 1, 2], [2, 0, 1], [1, 2, 0]], query_cost=5.0))
    expert = 3
    assert expert not in geometry.pareto
    kept = {}
    for one in ("pareto", "all"):
        pairs = BlockElimination(geometry, contradiction=one)._by_pair
        kept[one] = pairs._restricted({(0, 1): 1, (1, 2): 1, (0, 2): -1})
    assert kept["pareto"].contradiction
    assert kept["pareto"].survivors == (0, 1, 2)
    assert kept["all"].survivors == (0, 1, 2, expert)
