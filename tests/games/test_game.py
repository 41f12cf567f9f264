"""What a game accepts, what it refuses by naming the cell, and that it stays itself."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from rich.console import Console

from sparingly.games import Game, label_efficient

COSTS = [[0, 1], [1, 0], [1, 1]]
FEEDBACK = [["-", "-"], ["-", "-"], ["A", "B"]]


def test_costs_are_floats_that_nobody_can_change():
    source = np.array(COSTS, dtype=float)
    game = Game(source, FEEDBACK)
    source[0, 0] = 7
    assert game.costs[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        game.costs[0, 0] = 7


def test_any_finite_costs_and_hashable_symbols_will_do():
    game = Game([[Fraction(1, 3), -5], [np.float32(2), 10**6]], [[None, (1, 2)], [frozenset(), True]])
    assert game.costs.tolist() == [[1 / 3, -5.0], [2.0, 1e6]]
    assert game.symbols(0) == (None, (1, 2))


def test_numpy_symbols_are_plain_ones():
    game = Game(COSTS, np.array([[0, 0], [0, 0], [1, 2]]))
    assert game.symbols(2) == (1, 2)
    assert type(game.feedback[2][0]) is int
    assert game.symbol_index(2, np.int64(2)) == 1


@pytest.mark.parametrize(
    ("costs", "feedback", "message"),
    [
        ([[0, float("inf")]], [["a", "b"]], r"costs\[0, 1\] is inf: every cost must be finite"),
        ([[0, None]], [["a", "b"]], r"costs\[0, 1\] is missing"),
        ([[0, 1], [1]], FEEDBACK, r"costs\[1, 1\] is missing: row 1 has 1 entry"),
        ([[0, "1"]], [["a", "b"]], r"costs\[0, 1\] is '1'"),
        ([[0, 1 + 2j]], [["a", "b"]], r"costs\[0, 1\] is \(1\+2j\)"),
        ([[0, 10**400]], [["a", "b"]], r"costs\[0, 1\] is too large"),
        ([], [], "costs is empty"),
        ([[]], [[]], "costs is empty"),
        ([0, 1], [["a", "b"]], r"costs\[0\] is 0: it must be a row"),
        (3, [["a"]], "costs is 3: it must be a matrix"),
        (np.zeros((2, 2, 2)), [["a", "b"], ["a", "b"]], r"costs\[0, 0\] is \[0.0, 0.0\]"),
        (COSTS, [["a", "b"]], "feedback is 1 x 2 but costs is 3 x 2"),
        (COSTS, [["a", "b", "c"], ["a", "b", "c"]], "looks transposed"),
        (COSTS, [["a", "b"], ["a"], ["a", "b"]], r"feedback\[1, 1\] is missing"),
        ([[0, 1]], [["a", ["b"]]], r"feedback\[0, 1\] is \['b'\]: every symbol must be hashable"),
        ([[0, 1]], [["a", float("nan")]], r"feedback\[0, 1\] is nan"),
        ([[0, 1]], ["ab"], r"feedback\[0\] is 'ab': it must be a row"),
    ],
)
def test_what_is_wrong_is_named(costs, feedback, message):
    with pytest.raises(ValueError, match=message) as caught:
        Game(costs, feedback)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"actions": ["a", "b", "a"]}, r"actions\[2\] is 'a', the name of action 0"),
        ({"outcomes": ["x", "x"]}, r"outcomes\[1\] is 'x'"),
        ({"actions": ["a", "b"]}, "2 actions are named but the matrix has 3.*transposed"),
        ({"outcomes": "xy"}, "outcomes is 'xy': it must be a list"),
    ],
)
def test_names_are_checked(names, message):
    with pytest.raises(ValueError, match=message):
        Game(COSTS, FEEDBACK, **names)


def test_an_unknown_action_or_symbol_is_named():
    game = Game(COSTS, FEEDBACK, actions=["0", "1", "expert"])
    with pytest.raises(IndexError, match="no action 3"):
        game.symbols(3)
    with pytest.raises(IndexError, match="no action -1"):
        game.symbol_index(-1, "-")
    for wrong in (True, "ask", 1.0, None):
        with pytest.raises(TypeError, match="not a whole number"):
            game.symbols(wrong)
    for symbol in ("C", ["A"]):
        with pytest.raises(ValueError, match="action 2 \\(expert\\) has no symbol"):
            game.symbol_index(2, symbol)


def test_copies_are_equal_and_hash_alike():
    game = label_efficient(3, query_cost=0.4)
    for twin in (
        copy.copy(game),
        copy.deepcopy(game),
        pickle.loads(pickle.dumps(game)),
        label_efficient(3, query_cost=0.4),
    ):
        assert twin == game
        assert hash(twin) == hash(game)
        assert twin.fingerprint == game.fingerprint
        assert not twin.costs.flags.writeable
    assert game != label_efficient(3, query_cost=0.5)
    assert game != label_efficient(classes=["a", "b", "c"], query_cost=0.4)
    assert game != "game"


def test_the_fingerprint_sees_costs_partition_and_names_and_nothing_else():
    game = Game(COSTS, FEEDBACK)
    assert game.fingerprint == Game(COSTS, [[1, 1], [2, 2], [3, 4]]).fingerprint
    assert game.fingerprint == Game([[-0.0, 1], [1, 0], [1, 1]], FEEDBACK).fingerprint
    others = [
        Game([[0, 1], [1, 0], [1, 1.5]], FEEDBACK),
        Game(COSTS, [[1, 1], [2, 3], [3, 4]]),
        Game(COSTS, FEEDBACK, actions=["a", "b", "c"]),
        Game(COSTS, FEEDBACK, outcomes=["a", "b"]),
    ]
    assert len({game.fingerprint, *(other.fingerprint for other in others)}) == 5


def test_the_fingerprint_is_the_same_in_another_process():
    code = "from sparingly.games import label_efficient; print(label_efficient(3).fingerprint)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == label_efficient(3).fingerprint


def test_label_efficient_games_know_that_they_are():
    assert label_efficient(3).is_label_efficient
    assert label_efficient(3, experts=2, questions=[[(0, 1), (2,)]]).is_label_efficient
    assert not Game([[0, 1], [1, 0]], [["-", "-"], ["A", "B"]]).is_label_efficient
    assert not Game([[0, 1], [1, 0]], [["-", "-"], ["-", "-"]]).is_label_efficient
    assert not Game(COSTS, [["-", "-"], ["A", "B"], ["A", "B"]]).is_label_efficient


def test_a_table_shows_every_cell():
    console = Console(width=100, file=None, record=True, quiet=True)
    console.quiet = False
    with console.capture() as capture:
        console.print(Game([[0, 0.25]], [["low", "high"]], actions=["wait"]))
    for word in ("wait", "0.25", "low", "high", "outcome 1"):
        assert word in capture.get()
