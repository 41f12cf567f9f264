"""Games survive a file; a file that holds none is refused in one line."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparingly as sp
from sparingly.games import Game, label_efficient
from sparingly.games.ready_games import READY, ready_game


@pytest.mark.parametrize("ending", ["toml", "json"])
@pytest.mark.parametrize("name", READY)
def test_every_ready_game_survives_a_file(tmp_path, ending, name):
    game = ready_game(name)
    game.write(tmp_path / f"game.{ending}")
    assert Game.read(tmp_path / f"game.{ending}") == game


@pytest.mark.parametrize("ending", ["toml", "json"])
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2),
    st.lists(st.text() | st.integers(-(2**60), 2**60) | st.booleans(), min_size=2, max_size=2),
    st.lists(st.text(), min_size=2, max_size=2, unique=True),
)
def test_any_costs_symbols_and_names_survive_a_file(tmp_path_factory, ending, costs, symbols, names):
    path = tmp_path_factory.mktemp("games") / f"game.{ending}"
    game = Game([costs], [symbols], outcomes=names)
    game.write(path)
    assert Game.read(path) == game


def test_a_file_may_name_a_ready_game_and_its_options(tmp_path):
    file = tmp_path / "triage.toml"
    file.write_text(
        'game = "label_efficient"\nclasses = ["well", "ill"]\n'
        "costs = [[0, 5], [1, 0]]\nexperts = {nurse = 0.3, doctor = 1}\n"
    )
    expected = label_efficient(classes=["well", "ill"], costs=[[0, 5], [1, 0]], experts={"nurse": 0.3, "doctor": 1})
    assert Game.read(file) == expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.toml", "costs = [[0, 1", "is neither TOML nor JSON"),
        ("a.json", '{"costs": [[0, 1]', "is neither TOML nor JSON \\(JSON:"),
        ("a.json", "[1, 2]", "is neither TOML nor JSON"),
        ("a.txt", "costs 1 2 3", "is neither TOML nor JSON"),
        ("a.toml", b"\xff\xfe\x00", "is not text"),
        ("a.toml", "costs = [[0, 1], [1, 0]]", "feedback is missing"),
        ("a.toml", 'costs = [[0, 1], [1]]\nfeedback = [["a", "b"], ["a", "b"]]', r"costs\[1, 1\] is missing"),
        ("a.json", '{"costs": [[0, null]], "feedback": [["a", "b"]]}', r"costs\[0, 1\] is missing"),
        ("a.json", '{"costs": [[0, NaN]], "feedback": [["a", "b"]]}', r"costs\[0, 1\] is nan"),
        ("a.toml", 'costs = [[0, 1]]\nfeedback = [["a"]]', "feedback is 1 x 1 but costs is 1 x 2"),
        ("a.toml", 'costs = [[0, 1]]\nfeedback = [["a", "b"]]\nprice = 1', "price is not part of a game"),
        ("a.toml", 'game = "bandits"', "game is 'bandits': it must be one of"),
        ("a.toml", 'game = "bandit"\nsize = 3', "size is not an option of bandit"),
        ("a.toml", 'game = "bandit"\nn_actions = "3"', "n_actions is '3'"),
    ],
)
def test_a_bad_file_is_one_line_that_names_it(tmp_path, name, content, message):
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=message) as caught:
        Game.read(file)
    assert str(file) in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"nowhere\.toml cannot be read: No such file"):
        Game.read(tmp_path / "nowhere.toml")


def test_what_a_file_cannot_hold_is_named_and_nothing_is_written(tmp_path):
    game = Game([[0, 1]], [["a", ("b", "c")]])
    with pytest.raises(ValueError, match=r"feedback\[0, 1\] is \('b', 'c'\): TOML cannot hold it"):
        game.write(tmp_path / "game.toml")
    with pytest.raises(ValueError, match=r"neither \.toml nor \.json"):
        game.write(tmp_path / "game.yaml")
    assert list(tmp_path.iterdir()) == []


def test_a_label_efficient_game_takes_costs_with_names(tmp_path):
    file = tmp_path / "spam.toml"
    start = 'game = "label_efficient"\nclasses = ["ham", "spam"]\n'
    file.write_text(start + 'costs = [{announced = "spam", true = "ham", cost = 5}]\n')
    assert Game.read(file).costs.tolist() == [[0, 1], [5, 0], [1, 1]]
    file.write_text(start + 'costs = ["announced=spam,true=hamm:5"]\n')
    with pytest.raises(ValueError, match=r"spam.toml: there is no class 'hamm'; did you mean ham\?"):
        Game.read(file)


@pytest.mark.parametrize("ending", ["toml", "json"])
def test_experts_survive_a_file(tmp_path, ending):
    experts = [sp.Expert("gpt", 0.01, accuracy=0.9), sp.Expert("human", 1.0, gold=True)]
    game = sp.label_efficient(3, experts=experts)
    game.write(tmp_path / f"game.{ending}")
    read = sp.Game.read(tmp_path / f"game.{ending}")
    assert read == game
    assert (
        read.fingerprint == game.fingerprint != sp.label_efficient(3, experts={"gpt": 0.01, "human": 1.0}).fingerprint
    )
    assert pickle.loads(pickle.dumps(game)) == game
