"""`sparingly game`: what a game is like, in plain language."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from sparingly.games.game import Game


def game(
    name: Annotated[str, typer.Argument(metavar="NAME|FILE", help="A ready game (bandit, bandit:3) or a game file.")],
    json: Annotated[bool, typer.Option("--json", help="Write the analysis as JSON.")] = False,
    picture: Annotated[Path | None, typer.Option(help="Draw the cells of 2 or 3 outcomes: out.png or out.svg.")] = None,
) -> None:
    """Say what a game is like: what is ever worth doing, what tells you anything, and how hard it is."""
    from sparingly.games.explanation import as_json, explain
    from sparingly.games.geometry import analyze

    geometry = analyze(find_game(name))
    if picture is not None:
        from sparingly.games.picture import save_picture

        save_picture(geometry, picture)
    if json:
        typer.echo(as_json(geometry))
        return
    if geometry.game.costs.size <= 200:
        from rich.console import Console

        Console().print(geometry.game)
    for sentence in explain(geometry):
        typer.echo(f"- {sentence}")


def find_game(name: str) -> Game:
    """Return the game in a file, or a ready game by name: `apple_tasting`, `label_efficient:10`.

    >>> find_game("dynamic-pricing:2")
    Game(2 actions, 2 outcomes)
    >>> find_game("aple_tasting")
    Traceback (most recent call last):
    ...
    ValueError: there is no game or file 'aple_tasting': did you mean apple_tasting?
    """
    from sparingly.games.game_files import read_game
    from sparingly.games.ready_games import ready_game

    path = Path(name)
    if path.suffix in (".toml", ".json") or path.is_file():
        return read_game(path)
    return ready_game(name)
