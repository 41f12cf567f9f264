"""Checks of reproducibility: by the seed, in other blocks, from a state, from a copy, beside anything else."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from sparingly.learning import state_files
from sparingly.strategies.conformance.case import (
    Case,
    CaseStream,
    Move,
    answer,
    expect,
    expect_same,
    expect_scores,
    move,
    play,
)
from sparingly.strategies.strategy import Strategy


def same_seed_same_decisions(case: Case) -> None:
    """The same arguments and the same stream give the same decisions, to the last bit of their reasons."""
    expect_same(case.moves, play(case.make(), case.stream), "on the second run with the same seed")


def blocks_of_one_equal_blocks_of_many(case: Case) -> None:
    """Assessing many observations at once, or too many, changes no decision."""
    expect_same(case.moves, play(case.make(), case.stream, block=7), "in blocks of 7")
    expect_same(case.moves, play(case.make(), case.stream, block=500), "in blocks of 500")
    expect_same(case.moves, _play_stale(case), "when decided on assessments made before an update")
    expect_same(case.moves, _play_ahead(case), "when decided a block at a time")


def _play_stale(case: Case) -> list[Move]:
    strategy, stream, moves = case.make(), case.stream, []
    for start in range(0, len(stream), 29):
        assessment = strategy.assess(stream.X[start : start + 29])
        for row in range(len(assessment)):
            decision = strategy.decide(assessment, row)
            if decision.asks:
                answer(strategy, stream, start + row, decision.action)
            moves.append(move(decision))
    return moves


def _play_ahead(case: Case) -> list[Move]:
    strategy, stream, moves = case.make(), case.stream, list[Move]()
    while len(moves) < len(stream):
        start = len(moves)
        assessment = strategy.assess(stream.X[start : start + 200])
        while len(moves) < start + len(assessment):
            decisions = strategy.decide_block(assessment, len(moves) - start, len(moves) - start + 150)
            expect(0 < len(decisions) <= 150, f"a block of at most 150 rows brought {len(decisions)} decisions")
            expect(not any(one.asks for one in decisions[:-1]), "a block goes on after a question")
            moves += [move(decision) for decision in decisions]
            if decisions[-1].asks:
                answer(strategy, stream, len(moves) - 1, decisions[-1].action)
    return moves


def looking_changes_nothing(case: Case) -> None:
    """`assess` and `scores` leave the strategy as it was, and `scores` is a finite number for every outcome."""
    strategy, stream = case.played, case.stream
    before = state_files.dump(strategy.state_dict())
    strategy.assess(stream.X)
    expect_scores(strategy, stream.X[:9], "at the end of a run")
    expect(state_files.dump(strategy.state_dict()) == before, "assess or scores changed the state")


def saving_changes_nothing(case: Case) -> None:
    """A state, written to bytes within a run and loaded into a new strategy, continues the same run.

    The new strategy has another seed: everything that matters is in the state. A state is taken before the first round,
    in the middle, and while a symbol is still to come.
    """

    def reload(strategy: Strategy) -> Strategy:
        written = state_files.dump(strategy.state_dict())
        fresh = case.make(seed=case.seed + 1).load_state_dict(state_files.load(written))
        expect(
            state_files.dump(fresh.state_dict()) == written, "the state that was loaded is not the state that was saved"
        )
        return fresh

    middle = len(case.stream) // 2
    how = f"after saving and loading before round 1 and before round {middle + 1}"
    expect_same(case.moves, _interrupted(case, (0, middle), reload), how)
    asked = next((t for t, one in enumerate(case.moves) if one[2] and t > 10), None)
    if asked is not None:
        how = f"after saving and loading while the symbol of round {asked + 1} was to come"
        expect_same(case.moves, _interrupted(case, (asked,), reload, before_symbol=True), how)


def copies_go_their_own_way(case: Case) -> None:
    """Deep copies and pickles continue the same run, and the original does not feel what its copy does."""

    def pickled(strategy: Strategy) -> Strategy:
        twin: Strategy = pickle.loads(pickle.dumps(strategy))
        return twin

    middle = len(case.stream) // 2
    original = case.make()
    first = play(original, CaseStream(case.stream.X[:middle], case.stream.outcomes[:middle]))
    rest = CaseStream(case.stream.X[middle:], case.stream.outcomes[middle:])
    before = state_files.dump(original.state_dict())
    for how, duplicate in (("deep copy", copy.deepcopy), ("pickle", pickled)):
        expect_same(case.moves, first + play(duplicate(original), rest), f"in a {how}")
        expect(state_files.dump(original.state_dict()) == before, f"playing on in a {how} changed the original")


def _interrupted(
    case: Case, when: Collection[int], change: Callable[[Strategy], Strategy], *, before_symbol: bool = False
) -> list[Move]:
    """A run whose strategy is replaced before some rounds, counted from 0, or before those rounds' symbols."""
    strategy, stream, moves = case.make(), case.stream, []
    for t in range(len(stream)):
        if t in when and not before_symbol:
            strategy = change(strategy)
        decision = strategy.decide(strategy.assess(stream.X[t : t + 1]), 0)
        if t in when and before_symbol:
            strategy = change(strategy)
        if decision.asks:
            answer(strategy, stream, t, decision.action)
        moves.append(move(decision))
    return moves


def global_random_state_is_left_alone(case: Case) -> None:
    """Neither the strategy's numbers come from the global generators, nor does it draw from them or seed them."""
    with _seeded(1):
        before = _global_state()
        first = play(case.make(), case.stream)
        for name, was, now in zip(("random", "numpy.random", "torch"), before, _global_state(), strict=True):
            expect(was == now, f"the global generator of {name} was drawn from or seeded")
    expect_same(case.moves, first, "under another global seed")


def _global_state() -> tuple[Any, Any, Any]:
    kind, keys, *rest = np.random.get_state()
    return random.getstate(), (kind, bytes(np.asarray(keys).data), *rest), bytes(torch.get_rng_state().numpy().data)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    ours, numpys, torchs = random.getstate(), np.random.get_state(), torch.get_rng_state()
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(ours)
        np.random.set_state(numpys)
        torch.set_rng_state(torchs)


def outcomes_are_never_seen(case: Case) -> None:
    """Another outcome behind the same symbol changes no decision: there is no way but the symbol."""
    stream, game = case.stream, case.game
    hidden = stream.outcomes.copy()
    changed = 0
    for t, (action, *_) in enumerate(case.moves):
        others = [y for y, symbol in enumerate(game.feedback[action]) if symbol == game.feedback[action][hidden[t]]]
        changed += len(others) > 1
        hidden[t] = others[(others.index(int(hidden[t])) + 1) % len(others)]
    moves = play(case.make(), CaseStream(stream.X, hidden))
    expect_same(case.moves, moves, f"with {changed} other outcomes behind the same symbols")
