"""Small networks use one thread, and the user's number of threads is as it was after every call."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
import torch

import sparingly as sp
from sparingly.experiments.runs.experiment_settings import Player, Run, Task
from sparingly.experiments.runs.single_run import execute


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def watched(strategy, found):
    """The threads that each inner call of a strategy has."""
    for name in ("_assess", "_train", "_scores"):
        inner = getattr(strategy, name)

        def call(*given, inner=inner, name=name):
            found[name].add(torch.get_num_threads())
            return inner(*given)

        setattr(strategy, name, call)
    return strategy


SHORT = {"epochs": 1, "schedule": "every 4"}
"""Several threads on a busy machine mostly wait for each other."""


@pytest.mark.parametrize(
    ("shape", "options", "threads"),
    [
        (3, {}, {1}),
        ((1, 28, 28), {"network": "lenet", **SHORT}, {2}),
        (3, {"network": torch.nn.Linear(3, 2), **SHORT}, {2}),
    ],
)
def test_one_thread_for_our_small_networks_only_and_for_a_call_only(two_threads, shape, options, threads):
    game = sp.label_efficient(2)
    found: dict[str, set[int]] = defaultdict(set)
    kind = sp.NeuralCBP if options else sp.Sparing
    strategy = watched(kind(game, shape, seed=0, **options), found)
    n = 8 if options else 30
    X = np.random.default_rng(0).normal(size=(n, *(shape if isinstance(shape, tuple) else (shape,))))
    for _ in sp.play(strategy, game, zip(X, [0, 1] * (n // 2), strict=True)):
        assert torch.get_num_threads() == 2
    strategy.scores(X[:2])
    assert found["_assess"] == found["_train"] == found["_scores"] == threads


def test_an_error_leaves_the_threads_as_they_were(two_threads):
    strategy = sp.Sparing(sp.label_efficient(2), 3, seed=0)

    def broken(X):
        raise RuntimeError("no")

    strategy._assess = broken  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="no"):
        strategy.assess(np.zeros((1, 3)))
    assert torch.get_num_threads() == 2


def test_a_run_leaves_the_threads_as_they_were(two_threads):
    execute(Run(task=Task(dataset="digits", horizon=30), player=Player(strategy="never_ask")))
    assert torch.get_num_threads() == 2
