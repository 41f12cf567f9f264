"""The command line end to end: what it says, what it writes, and one line with exit code 2 for what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from sparingly.commands.main import main
from sparingly.games.ready_games import READY


def run(capsys, *args):
    with pytest.raises(SystemExit) as left:
        main(args)
    out, err = capsys.readouterr()
    return left.value.code, out, err


@pytest.mark.parametrize("name", READY)
def test_every_ready_game_is_explained(capsys, name):
    code, out, err = run(capsys, "game", name)
    assert (code, err) == (0, "")
    assert "cheapest" in out


def test_asking_is_explained(capsys):
    _, out, _ = run(capsys, "game", "label_efficient:3")
    assert '"ask the expert" is never the cheapest action, but it is the only one that tells you anything.' in out
    assert "less than 0.6667" in out


def test_a_hopeless_game_says_which_classes_nobody_can_tell_apart(capsys, tmp_path):
    file = tmp_path / "blind.toml"
    file.write_text(
        'game = "label_efficient"\nn_classes = 6\nexperts = 0\nquestions = [[[0], [1], [2, 5], [3], [4]]]\n'
    )
    _, out, _ = run(capsys, "game", str(file))
    assert 'No action can tell classes "2" and "5" apart: regret will grow linearly, whatever you do.' in out


def test_json_holds_the_whole_structure(capsys):
    code, out, _ = run(capsys, "game", "apple-tasting", "--json")
    content = json.loads(out)
    assert code == 0
    assert (content["observability"], content["pareto"], content["informative"]) == ("easy", [0, 1], [1])
    assert content["neighbors"] == [
        {
            "pair": [0, 1],
            "neighborhood": [0, 1],
            "locally_observable": True,
            "globally_observable": True,
            "observers": {"1": [-1.0, 1.0]},
        }
    ]


def test_a_thousand_classes_are_explained_without_their_pairs(capsys):
    _, out, _ = run(capsys, "game", "label_efficient:200", "--json")
    content = json.loads(out)
    assert (content["n_neighbors"], content["neighbors"]) == (19900, None)


@pytest.mark.parametrize(
    ("game", "ending"), [("apple_tasting", "png"), ("label_efficient:3", "svg"), ("bandit:1", "svg")]
)
def test_a_picture_is_written(capsys, tmp_path, game, ending):
    file = tmp_path / f"cells.{ending}"
    code, _, err = run(capsys, "game", game, "--picture", str(file))
    assert (code, err) == (0, "")
    start = file.read_bytes()[:5]
    assert start == (b"\x89PNG\r" if ending == "png" else b"<?xml")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["game", "aple_tasting"], "did you mean apple_tasting?"),
        (["game", "zzz"], "ready games are label_efficient, "),
        (["game", "bandit:x"], "must be a whole number"),
        (["game", "apple_tasting:2"], "that comes in sizes"),
        (["game", "label_efficient:1"], "two or more classes, not 1"),
        (["game", "nowhere.toml"], "nowhere.toml cannot be read"),
        (["game", "bandit", "--picture", "cells.gif"], "neither .png nor .svg"),
        (["game", "bandit:3", "--picture", "cells.png"], "this game has 8"),
        (["game", "apple_tasting", "--picture", "no/such/folder/cells.png"], "No such file"),
        (["game"], "Missing argument"),
        (["game", "bandit", "--colour"], "--colour"),
        (["gam", "bandit"], "gam"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(capsys, args, message):
    code, out, err = run(capsys, *args)
    assert (code, out) == (2, "")
    assert err.startswith("sparingly: ")
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("costs = [[0, 1", "is neither TOML nor JSON"),
        ('costs = [[0, 1], [1]]\nfeedback = [["a", "b"], ["a", "b"]]', "costs[1, 1] is missing"),
        ('costs = [[0, 1]]\nfeedback = [["a"]]', "feedback is 1 x 1 but costs is 1 x 2"),
    ],
)
def test_a_bad_file_leaves_no_traceback(tmp_path, content, message):
    file = tmp_path / "game.toml"
    file.write_text(content)
    command = [sys.executable, "-c", "from sparingly.commands.main import main; main()", "game", str(file)]
    left = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (left.returncode, left.stdout) == (2, "")
    assert left.stderr.count("\n") == 1
    assert message in left.stderr


def test_version_and_help(capsys):
    assert run(capsys, "--version")[1].startswith("sparingly ")
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert "game" in out


def test_python_dash_m_is_the_command():
    told = subprocess.run([sys.executable, "-m", "sparingly", "game", "bluff"], capture_output=True, text=True)
    assert told.returncode == 2
    assert told.stderr.startswith("sparingly: ")
