"""`sparingly demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    picture: Annotated[Path, typer.Option(help="Where to draw the cumulative costs.")] = Path("demo.png"),
    seed: Annotated[int, typer.Option(help="The order of the streams, and the strategies' own.")] = 0,
    horizon: Annotated[int, typer.Option(help="Play at most this many observations of each stream; 0: as it is.")] = 0,
) -> None:
    """Play two real streams with and without asking, and show what asking is worth."""
    from sparingly.experiments import demo as scenes

    scenes.demo(picture, seed=seed, horizon=horizon or None)
    typer.echo("")
    typer.echo("To see it ask people: `sparingly serve --classes cat,dog`, and with the token that it shows")
    typer.echo("`sparingly simulate --token TOKEN`, which says where to watch simulated people answer.")
