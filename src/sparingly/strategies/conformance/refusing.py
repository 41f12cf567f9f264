"""Checks that what makes no sense is refused, with the value named and the strategy unchanged."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from sparingly.learning import state_files
from sparingly.strategies.conformance.case import Case, ConformanceError, expect
from sparingly.strategies.strategy import Strategy

REFUSALS = (ValueError, TypeError, IndexError)


def bad_observations_are_refused(case: Case) -> None:
    """A feature that is not finite, or the wrong number of features, in `assess`, `scores` and `learn`."""
    strategy, good = case.played, case.stream.X[:3]
    asks, symbol = _question(case)
    for value in (np.nan, np.inf, -np.inf):
        bad = good.copy()
        bad[1, 2] = value
        _refused(strategy, f"assess with {value}", str(value), strategy.assess, bad)
        _refused(strategy, f"scores with {value}", str(value), strategy.scores, bad)
        _refused(strategy, f"learn with {value}", str(value), strategy.learn, bad[1], asks, symbol)
    wide = np.zeros((2, case.n_features + 1))
    size = str(case.n_features + 1)
    _refused(strategy, f"assess with {size} features", size, strategy.assess, wide)
    _refused(strategy, f"learn with {size} features", size, strategy.learn, wide[0], asks, symbol)
    _refused(strategy, "assess with words", "a", strategy.assess, [["a"] * case.n_features])
    for row in (3, -1):
        _refused(strategy, f"row {row} of 3", str(row), strategy.decide, strategy.assess(good), row)


def unknown_actions_and_symbols_are_refused(case: Case) -> None:
    """What the game does not have cannot be learned from."""
    strategy, x = case.played, case.stream.X[0]
    asks, symbol = _question(case)
    for action in (-1, case.game.n_actions, "ask", 0.5):
        _refused(strategy, f"action {action!r}", str(action), strategy.learn, x, action, symbol)
    for wrong in ("no such symbol", None, (1, 2, 3), ["a", "list"]):
        _refused(strategy, f"symbol {wrong!r}", repr(wrong), strategy.learn, x, asks, wrong)


def foreign_states_are_refused(case: Case) -> None:
    """The state of another game, another network, another version, another strategy, or half a state."""
    strategy = case.played
    ours = strategy.state_dict()
    other_strategy = ours | {"made_for": ours["made_for"] | {"strategy": "somebody else"}}
    states = {
        "a state of another number of features": case.make(n_features=case.n_features + 1).state_dict(),
        "a state of version 999": ours | {"version": 999},
        "another strategy's state": other_strategy,
        "an empty state": {},
    }
    if case.accepts(case.other_game):
        states["a state of another game"] = case.make(case.other_game).state_dict()
    for name in ("clock", "rng", "own"):
        states[f"a state without {name}"] = _without(ours, name)
    for name in ours["own"]:
        states[f"a state without its {name}"] = ours | {"own": _without(ours["own"], name)}
    for what, foreign in states.items():
        _refused(strategy, what, "", strategy.load_state_dict, foreign)
    written = state_files.dump(ours)
    for size in (0, 7, len(written) // 2, len(written) - 1):
        _refused(strategy, f"a state cut to {size} bytes", "", _load_bytes, strategy, written[:size])


def _question(case: Case) -> tuple[int, Hashable]:
    """An informative action, and one of its symbols."""
    asks = case.game.informative_mask.index(True)
    return asks, case.game.feedback[asks][0]


def _without(state: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in state.items() if key != name}


def _load_bytes(strategy: Strategy, written: bytes) -> None:
    strategy.load_state_dict(state_files.load(written))


def _refused(strategy: Strategy, what: str, names: str, call: Callable[..., object], *arguments: Any) -> None:
    """The call is a ValueError, TypeError or IndexError of one line that names the value, and changes nothing."""
    before = state_files.dump(strategy.state_dict())
    try:
        call(*arguments)
    except REFUSALS as error:
        message = str(error)
    except Exception as error:
        raise ConformanceError(f"{what} is a {type(error).__name__}: give a ValueError that names the value") from error
    else:
        raise ConformanceError(f"{what} is accepted")
    expect("\n" not in message.strip(), f"{what}: the message has more than one line")
    expect(names in message, f"{what}: the message {message!r} does not name {names!r}")
    expect(state_files.dump(strategy.state_dict()) == before, f"{what} is refused, but the strategy has changed")
