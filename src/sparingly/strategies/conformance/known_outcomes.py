"""The check of outcomes that are known already: learned in one go without a question, or refused with the reason."""

from __future__ import annotations

from typing import Any

from sparingly.learning import state_files
from sparingly.strategies.conformance.case import Case, expect, expect_same, expect_scores, play
from sparingly.strategies.strategy import Strategy

KNOWN = 25
"""Outcomes that are taught."""


def known_outcomes_are_learned_or_refused(case: Case) -> None:
    """One update at most, no question counted, the clock stands still; the same again, and after saving and loading."""
    strategy, stream = case.make(), case.stream
    X, y = stream.X[:KNOWN], stream.outcomes[:KNOWN]
    before = strategy.state_dict()
    for bad in (y[1:], [*y[1:], case.game.n_outcomes], [*y[1:], -1], [*y[1:], 0.5], [*y[1:], "a"]):
        expect(_refusal(strategy, X, bad) is not None, f"outcomes {bad[-1:]!r} of {len(bad)} were taught")
    refusal = _refusal(strategy, X, y)
    if refusal is not None:
        expect(bool(refusal), "known outcomes are refused without a reason")
        same = state_files.dump(strategy.state_dict()) == state_files.dump(before)
        expect(same, "refusing known outcomes has changed the strategy")
        return
    counted = strategy.n_taught, strategy.n_labels, strategy.clock
    expect(counted == (KNOWN, 0, 0), f"taught, learned and rounds are {counted} after {KNOWN} known outcomes")
    expect(strategy.generation <= 1, f"{strategy.generation} updates for one teaching")
    expect_scores(strategy, X, "after known outcomes")
    again, loaded = case.make(), case.make(seed=case.seed + 1)
    again.teach(X, y)
    loaded.load_state_dict(state_files.load(state_files.dump(strategy.state_dict())))
    expect(loaded.n_taught == KNOWN, f"{loaded.n_taught} of {KNOWN} known outcomes are counted after loading")
    moves = play(strategy, stream)
    expect_same(moves, play(again, stream), "the second time with known outcomes")
    expect_same(moves, play(loaded, stream), "saved and loaded after known outcomes")


def _refusal(strategy: Strategy, X: Any, y: Any) -> str | None:
    """Why outcomes cannot be taught, or None once they are."""
    try:
        strategy.teach(X, y)
    except ValueError as error:
        return str(error)
    return None
