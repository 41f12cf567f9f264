"""The options by which every command takes costs and what may be spent on questions."""

from __future__ import annotations

from typing import Annotated, Any

import typer

Cost = Annotated[
    list[str] | None,
    typer.Option(
        help="A mistake that does not cost 1: announced=ham,true=spam:5; may be repeated. Or all: what --costs takes."
    ),
]
Costs = Annotated[
    str | None,
    typer.Option(
        metavar="MATRIX|FILE",
        help="All of them by row (announced) and column (true): '0 1; 0.5 0', JSON, or a .csv, .toml or .json file.",
    ),
]
QueryCost = Annotated[float, typer.Option(help="What a question costs.")]
MaxOpen = Annotated[int | None, typer.Option(help="Questions that may be open at a time.")]
MaxPerHour = Annotated[int | None, typer.Option(help="Questions that may be asked in an hour.")]
MaxPerDay = Annotated[int | None, typer.Option(help="Questions that may be asked in a day.")]
MaxTotal = Annotated[int | None, typer.Option(help="Questions in all, asked where they are worth most.")]
MaxCost = Annotated[float | None, typer.Option(help="Money for questions in all, spent where they are worth most.")]
Horizon = Annotated[int | None, typer.Option(help="How many observations are expected in all.")]


def stated_costs(costs: Any, cost: str | list[str] | None) -> Any:
    """What was given of the two options, or of a settings file's two keys; not both.

    >>> stated_costs(None, ["announced=ham,true=spam:5"])
    ['announced=ham,true=spam:5']
    """
    if costs and cost:
        raise ValueError(f"costs ({costs}) and cost ({cost}) are both given: choose one of them")
    return costs or cost or None
