"""The command `sparingly strategies`: what there is to choose from."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.table import Table


def strategies(
    names_only: bool = typer.Option(False, "--names", help="Only the names, one a line, for scripts."),
) -> None:
    """List every strategy: its name, what it does, where it is from, and the games it can play."""
    from sparingly.strategies import registered

    if names_only:
        typer.echo("\n".join(registered()))
        return
    table = Table("name", "what it does", "reference", "plays", box=None, pad_edge=False, header_style="bold")
    for name, strategy in registered().items():
        table.add_row(name, strategy.summary, strategy.reference, strategy.playable)
    Console(soft_wrap=False, width=None if Console().is_terminal else 160).print(table)
