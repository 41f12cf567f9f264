"""What can still be read of a damaged SQLite file, row by row."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from sparingly.live.agent.agent_settings import AgentSettings
from sparingly.live.agent.errors import StoreError
from sparingly.live.agent.queries import entry_of
from sparingly.live.agent.ticket_records import ANSWERED
from sparingly.live.store import export

_CHUNK = 256
_SMALLEST_ROW = 16


@dataclass
class Salvage:
    """What could be read: the settings, the tickets' rows, and the features by ticket."""

    settings: AgentSettings | None = None
    tickets: list[SimpleNamespace] = field(default_factory=list)
    features: dict[int, bytes] = field(default_factory=dict)

    @property
    def labelled(self) -> list[SimpleNamespace]:
        return [row for row in self.tickets if row.status == ANSWERED and row.seq in self.features]

    def __str__(self) -> str:
        return f"{len(self.tickets)} tickets can be read, {len(self.labelled)} of them labelled observations to recover"


def salvage(path: str | os.PathLike[str]) -> Salvage:
    """Read whatever can be read; changes nothing."""
    found = Salvage()
    with closing(sqlite3.connect(f"file:{os.fspath(path)}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        for row in _readable(connection, "meta", "rowid"):
            if row["key"] == "settings":
                found.settings = AgentSettings.from_json(row["value"])
        found.tickets = [SimpleNamespace(**dict(row)) for row in _readable(connection, "tickets", "seq")]
        found.features = {row["ticket"]: row["x"] for row in _readable(connection, "observations", "ticket")}
    return found


def recover(path: str | os.PathLike[str], target: str | os.PathLike[str]) -> int:
    """Write the labelled observations that can still be read to a .csv or .parquet file; returns how many."""
    found = salvage(path)
    if found.settings is None:
        raise StoreError(f"{os.fspath(path)}: not even the settings can be read")
    settings = found.settings
    return export.write(target, export.columns(settings), _rows(found, settings))


def _rows(found: Salvage, settings: AgentSettings) -> Iterator[list[Any]]:
    game = settings.game
    for row in found.labelled:
        row.x = found.features[row.seq]
        yield export.row_of(row, entry_of(row, settings, game))


def _readable(connection: sqlite3.Connection, table: str, key: str) -> Iterator[sqlite3.Row]:
    """The rows that can be read, in order; those on damaged pages are left out."""
    start = 0
    last = _last(connection)
    while start <= last:
        yield from _between(connection, table, key, start, start + _CHUNK)
        start += _CHUNK


def _between(connection: sqlite3.Connection, table: str, key: str, start: int, end: int) -> list[sqlite3.Row]:
    """The readable rows of a range: all at once, or by halves where a page is damaged."""
    query = f"SELECT * FROM {table} NOT INDEXED WHERE {key} >= ? AND {key} < ?"
    try:
        return connection.execute(query, (start, end)).fetchall()
    except sqlite3.DatabaseError:
        if end - start == 1:
            return []
        middle = (start + end) // 2
        return _between(connection, table, key, start, middle) + _between(connection, table, key, middle, end)


def _last(connection: sqlite3.Connection) -> int:
    """A bound on all numbers: the highest that any table shows, where a damaged page may show anything."""
    shown = [16]
    for table, key in (("journal", "seq"), ("tickets", "seq"), ("observations", "ticket")):
        with suppress(sqlite3.DatabaseError, TypeError, ValueError):
            shown.append(int(connection.execute(f"SELECT max({key}) FROM {table}").fetchone()[0]))
    pages, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    return min(max(shown), int(pages) * int(size) // _SMALLEST_ROW)
