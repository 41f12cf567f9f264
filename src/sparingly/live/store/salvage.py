"""What can still be read of a damaged SQLite file, row by row."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

from sparingly.live.agent.agent_settings import AgentSettings
from sparingly.live.agent.errors import StoreError
from sparingly.live.agent.queries import entry_of
from sparingly.live.store import export
from sparingly.live.tickets.ticket_records import ANSWERED

_CHUNK = 256
_SMALLEST_ROW = 16
_MAGIC = b"SQLite format 3\0"
_PAGE = 4096
"""The size of a page in the files that SQLite makes for us."""


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
    if not Path(path).is_file():
        raise StoreError(f"{os.fspath(path)} is not a file that could be recovered from")
    try:
        with Path(path).open("rb") as file:
            has_header = file.read(len(_MAGIC)) == _MAGIC
        if has_header:
            return _salvage(Path(path))
        with tempfile.TemporaryDirectory(prefix="sparingly-recover-") as folder:
            return _salvage(_with_new_header(Path(path), Path(folder)))
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"{os.fspath(path)}: nothing can be recovered: {error}") from None


def recover(path: str | os.PathLike[str], target: str | os.PathLike[str]) -> int:
    """Write the labelled observations that can still be read to a .csv or .parquet file; returns how many.

    Without the settings, which name classes and features, labels and predictions are the classes' numbers.
    """
    found = salvage(path)
    if found.settings is None and not found.labelled:
        raise StoreError(f"{os.fspath(path)}: nothing can be recovered: neither settings nor labelled observations")
    widths = Counter(len(found.features[row.seq]) for row in found.labelled)
    width = widths.most_common(1)[0][0] if widths else 0
    names = [f"x{i}" for i in range(width // 4)]
    header = ["id", *names, *export.OTHERS[1:]]
    if found.settings is not None:
        header = export.columns(found.settings)
    return export.write(target, header, _rows(found, len(header)))


def _salvage(path: Path) -> Salvage:
    found = Salvage()
    with closing(sqlite3.connect(f"file:{quote(os.fspath(path))}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA writable_schema=ON")  # or SQLite refuses a file whose end is missing
        for row in _readable(connection, "meta", "rowid"):
            if row["key"] == "settings":
                with suppress(ValueError, KeyError, TypeError, AttributeError):
                    found.settings = AgentSettings.from_json(row["value"])
        found.tickets = [SimpleNamespace(**dict(row)) for row in _readable(connection, "tickets", "seq")]
        found.features = {row["ticket"]: row["x"] for row in _readable(connection, "observations", "ticket")}
    return found


def _with_new_header(path: Path, folder: Path) -> Path:
    """A copy with the header that SQLite gives to a file of this size; the rest of the first page is left as it is."""
    copy = folder / path.name
    shutil.copyfile(path, copy)
    log = path.with_name(path.name + "-wal")
    if log.exists():
        shutil.copyfile(log, folder / log.name)
    pages = path.stat().st_size // _PAGE
    header = struct.pack(
        ">16sHBBBBBBIIIIIIIIIIII", _MAGIC, _PAGE, 2, 2, 0, 64, 32, 32, 1, pages, *[0, 0, 1, 4, 0, 0, 1, 0, 0, 0]
    )
    with copy.open("r+b") as file:
        file.write(header.ljust(92, b"\0") + struct.pack(">II", 1, 3040001))
    return copy


def _rows(found: Salvage, width: int) -> Iterator[list[Any]]:
    """The rows of an export; what makes no sense, as a damaged page may show anything, is left out."""
    game = found.settings.game if found.settings is not None else None
    for row in found.labelled:
        with suppress(IndexError, TypeError, ValueError, KeyError, AttributeError):
            row.x = found.features[row.seq]
            entry = row if found.settings is None or game is None else entry_of(row, found.settings, game)
            cells = export.row_of(row, entry, width - len(export.OTHERS))
            if len(cells) == width:
                yield cells


def _readable(connection: sqlite3.Connection, table: str, key: str) -> Iterator[sqlite3.Row]:
    """The rows that can be read, in order; those on damaged pages are left out."""
    try:
        connection.execute(f"SELECT * FROM {table} LIMIT 0")
    except sqlite3.DatabaseError:
        return
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
