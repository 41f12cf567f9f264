"""`sparingly strategies` lists every strategy."""

import pytest

from sparingly import strategies
from sparingly.commands.main import main
from sparingly.commands.strategies_command import WHICH


def listed(capsys, *args):
    with pytest.raises(SystemExit) as left:
        main(["strategies", *args])
    assert left.value.code == 0
    return capsys.readouterr().out


def test_every_strategy_with_its_line_reference_and_games(capsys):
    words = " ".join(listed(capsys).split())
    for name, strategy in strategies().items():
        assert f"{name} " in words
        for part in (strategy.summary, strategy.reference, strategy.playable):
            assert part.split()[0] in words


def test_names_for_scripts(capsys):
    assert listed(capsys, "--names").split() == list(strategies())


def test_it_says_which_to_take_when(capsys):
    with pytest.raises(SystemExit):
        main(["strategies"])
    said = capsys.readouterr().out
    assert "To use one, on your own data, with your own costs: sparing" in said
    named = " ".join(WHICH.values())
    assert sum(name in named for name in strategies.registered()) >= 8
