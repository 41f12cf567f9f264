"""Every game file that the documentation shows is one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sparingly.games import Game, analyze

PAGE = Path(__file__).parents[2] / "docs" / "games.md"
BLOCKS = re.findall(r"^```(toml|json)\n(.*?)^```", PAGE.read_text(), flags=re.M | re.S)


def test_the_page_shows_both_kinds():
    assert {kind for kind, _ in BLOCKS} == {"toml", "json"}


@pytest.mark.parametrize(("kind", "content"), BLOCKS)
def test_a_shown_file_is_a_game(tmp_path, kind, content):
    file = tmp_path / f"game.{kind}"
    file.write_text(content)
    assert analyze(Game.read(file)).pareto
