"""Figures that a benchmark keeps in docs/results, for the tables of pages to be held against."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "docs" / "results"
Row = Mapping[str, object]


def keep(name: str, rows: Sequence[Row], *, whole: bool = True) -> None:
    """Print rows of the same columns as a table that a page can take, and write them to a CSV file in docs/results.

    What is not the whole of what pages show is only printed.
    """
    print(markdown(rows), flush=True)
    if not whole:
        return
    path = RESULTS / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    print(f"written to {path}\n", flush=True)


def markdown(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table.

    >>> print(markdown([{"data": "adult", "cost": 2.5}, {"data": "wine", "cost": 1}]))
    | data | cost |
    |---|---|
    | adult | 2.5 |
    | wine | 1 |
    """
    names = list(rows[0]) if rows else []
    lines = [names, *([str(row[name]) for name in names] for row in rows)]
    head, *rest = ("| " + " | ".join(line) + " |" for line in lines)
    return "\n".join([head, "|" + "---|" * len(names), *rest])
