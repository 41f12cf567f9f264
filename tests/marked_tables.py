"""Tables in the pages that say where their figures come from: `<!-- figures: COMMAND -> FILE -->` before a table.

COMMAND writes FILE, a CSV or a Markdown page with tables. A marked table holds columns and rows of a table in FILE, by
the names of its columns: no other figures, and none changed. A number may be rounded where FILE is a CSV.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIGURE = re.compile(r"\d[\d ,]*(\.\d+)?( ?(ms|s|MB|%))?( (±|\+-) [\d.]+)?( \([\d.]+\))?")
"""A number, with its unit, its error and another number in brackets."""
MARKER = re.compile(r"^<!-- figures: (?P<command>.+?) -> (?P<file>\S+) -->$")


@dataclass(frozen=True)
class MarkedTable:
    """A table of a page with what makes its figures."""

    place: str
    command: str
    file: Path
    lines: tuple[str, ...]

    def differences(self) -> list[str]:
        """What stands in the table and not in the file, in words; empty if all is as it should be."""
        if not self.file.is_file():
            return [f"{self.place}: there is no {self.file.name}; {self.command} should write it"]
        names, rows = parsed(self.lines)
        known = [(header, found) for header, found in tables_of(self.file) if set(names) <= set(header)]
        if not known:
            return [f"{self.place}: no table of {self.file.name} has the columns {', '.join(names)}"]
        rounded = self.file.suffix == ".csv"
        return [
            f"{self.place}: {self.file.name} has no row {' | '.join(row)}"
            for row in rows
            if not any(is_row(dict(zip(names, row, strict=True)), header, found, rounded) for header, found in known)
        ]


def is_row(row: dict[str, str], header: list[str], found: list[list[str]], rounded: bool) -> bool:
    """Whether one of the rows found has these cells under these names."""
    places = {name: header.index(name) for name in row}
    return any(all(same(row[name], one[at], rounded) for name, at in places.items()) for one in found)


def same(shown: str, known: str, rounded: bool) -> bool:
    """Whether a cell says what the file says; rounded as it is shown, if it may be."""
    if shown == known or not rounded:
        return shown == known
    try:
        digits = len(shown.partition(".")[2])
        return float(shown.replace(",", "").replace(" ", "")) == round(float(known), digits)
    except ValueError:
        return False


def marked_tables(page: Path) -> Iterator[MarkedTable]:
    """The tables of a page that have a marker."""
    lines = page.read_text().splitlines()
    for number, line in enumerate(lines):
        found = MARKER.match(line)
        if found:
            table = list(table_from(lines, number + 1))
            place = f"{page.name}, line {number + 1}"
            yield MarkedTable(place, found["command"], ROOT / found["file"], tuple(table))


def unmarked_tables(page: Path) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The tables of a page that have no marker, each with the number of its first line."""
    lines, marked = page.read_text().splitlines(), False
    for number, line in enumerate(lines):
        if line.startswith("|") and not lines[number - 1].startswith("|") and not marked:
            yield number + 1, tuple(table_from(lines, number))
        marked = bool(MARKER.match(line)) or (marked and not line.strip())


def has_figures(table: tuple[str, ...]) -> bool:
    """Whether a column holds a number in every one of at least two rows."""
    rows = parsed(table)[1]
    return len(rows) > 1 and any(all(FIGURE.fullmatch(cell) for cell in column) for column in zip(*rows, strict=True))


def table_from(lines: list[str], start: int) -> Iterator[str]:
    """The lines of the table that begins at a line, or after an empty one."""
    while start < len(lines) and not lines[start].strip():
        start += 1
    while start < len(lines) and lines[start].startswith("|"):
        yield lines[start]
        start += 1


def tables_of(file: Path) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Column names and rows of every table in a file."""
    if file.suffix == ".csv":
        with file.open(newline="") as text:
            header, *rows = csv.reader(text)
        yield header, rows
        return
    lines = file.read_text().splitlines()
    for number, line in enumerate(lines):
        if line.startswith("|") and (number == 0 or not lines[number - 1].startswith("|")):
            yield parsed(tuple(table_from(lines, number)))


def parsed(lines: tuple[str, ...]) -> tuple[list[str], list[list[str]]]:
    """Column names and rows of a Markdown table, without emphasis and marks of code."""
    bare = [re.sub(r"\*\*|`", "", line).strip().strip("|") for line in lines]
    cells = [[cell.strip() for cell in line.split("|")] for line in bare]
    return (cells[0], cells[2:]) if len(cells) > 2 else ([], [])
