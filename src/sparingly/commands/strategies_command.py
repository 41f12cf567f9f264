"""The command `sparingly strategies`: what there is to choose from."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.table import Table

WHICH = {
    "To use one, on your own data, with your own costs": "sparing",
    "A game that is not label-efficient (bandit, pricing, apple tasting)": "neural_cbp, or cbp_side where it is linear",
    "A fixed number of labels, whatever they are worth": "label_budget (of=sparing,number=100)",
    "No features, only how common the outcomes are": "cbp or tspm",
    "To compare with": "always_ask, never_ask, explore_then_commit, and what you use today",
}
"""Which to take when, as the page on strategies has it at length."""


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
    console = Console(soft_wrap=False, width=None if Console().is_terminal else 160, highlight=False)
    console.print(table)
    console.print()
    for when, which in WHICH.items():
        console.print(f"{when}: [bold]{which}[/]")
