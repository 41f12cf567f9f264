"""The check of a class that turns up later: taken on without losing anything, or refused with the reason."""

from __future__ import annotations

import copy

import numpy as np

from sparingly.learning import state_files
from sparingly.strategies.conformance.case import (
    Case,
    CaseStream,
    easy_stream,
    expect,
    expect_same,
    expect_scores,
    play,
)
from sparingly.strategies.strategy import Strategy

NEW = "a new class"


def a_class_is_added_or_refused(case: Case) -> None:
    """Labels and clock stay, later decisions can be repeated, and go on after saving and loading."""
    strategy, again = copy.deepcopy(case.played), copy.deepcopy(case.played)
    before = strategy.clock, strategy.n_labels
    refusal = _refusal(strategy)
    if refusal is not None:
        expect(bool(refusal), "a class is refused without a reason")
        same = state_files.dump(strategy.state_dict()) == state_files.dump(case.played.state_dict())
        expect(same, "refusing a class has changed the strategy")
        return
    n_classes = case.game.n_outcomes + 1
    expect(strategy.game.n_outcomes == n_classes, f"the game has {strategy.game.n_outcomes} outcomes, not {n_classes}")
    expect((strategy.clock, strategy.n_labels) == before, "a class has changed the rounds or the labels")
    expect_scores(strategy, case.stream.X, "after a class was added")
    loaded = case.make(seed=case.seed + 1)
    for one in (again, loaded):
        one.add_class(NEW)
    loaded.load_state_dict(state_files.load(state_files.dump(strategy.state_dict())))
    rest = _with_new_class(easy_stream(case.game, case.n_features, case.rounds, seed=5), n_classes - 1)
    moves = play(strategy, rest)
    expect_same(moves, play(again, rest), "the second time after a class was added")
    expect_same(moves, play(loaded, rest), "saved and loaded after a class was added")
    expect_scores(strategy, rest.X, "with labels of a class that was added")


def _with_new_class(stream: CaseStream, new: int) -> CaseStream:
    """A third of the observations, far from all others, are of the new class."""
    outcomes, X = stream.outcomes.copy(), stream.X.copy()
    outcomes[::3] = new
    X[::3] -= np.float32(5)
    return CaseStream(X, outcomes)


def _refusal(strategy: Strategy) -> str | None:
    try:
        strategy.add_class(NEW)
    except ValueError as error:
        return str(error)
    return None
