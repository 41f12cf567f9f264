"""Exports the labelled data, to train something else with them."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from sparingly.live.agent.agent_settings import AgentSettings
from sparingly.live.agent.errors import AgentError
from sparingly.live.agent.queries import entry_of
from sparingly.live.store.journal import vector
from sparingly.live.store.tables import observations, tickets
from sparingly.live.tickets.ticket_records import ANSWERED

LABELLED = (
    select(tickets, observations.c.x)
    .join(observations, observations.c.ticket == tickets.c.seq)
    .where(tickets.c.status == ANSWERED)
    .order_by(tickets.c.seq)
)
_CHUNK = 5000
OTHERS = ("id", "label", "prediction", "asked", "at", "expert", "erased", "probability", "why")
"""The columns that are no features; the first of them is the first of all."""


def columns(settings: AgentSettings) -> list[str]:
    """The columns of an export: id, the features, the label, and where it came from."""
    table = settings.schema.table
    if settings.schema.is_raw and table is not None:
        names = list(table.columns)
    elif settings.names is not None:
        names = list(settings.names)
    else:
        names = [f"x{i}" for i in range(_size(settings))]
    return ["id", *names, *OTHERS[1:]]


def labelled(connection: Connection, settings: AgentSettings) -> Iterator[list[Any]]:
    """The labelled observations in order, one row each."""
    game = settings.game
    for row in connection.execution_options(yield_per=1000).execute(LABELLED):
        yield row_of(row, entry_of(row, settings, game), _size(settings))


def row_of(row: Any, entry: Any, width: int) -> list[Any]:
    """One row; of an erased observation the features are missing."""
    features = vector(row.x, (-1,)).tolist() if row.x else [None] * width
    values = [entry.label, entry.prediction, entry.asks, entry.at, entry.expert, getattr(row, "erased", None)]
    held = entry.probabilities.get(entry.prediction) if isinstance(entry.probabilities, dict) else None
    return [entry.id, *features, *values, held, str(entry.why)]


def write(path: str | os.PathLike[str], header: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
    """Write rows to a .csv or .parquet file, which appears whole or not at all; returns how many."""
    target = Path(path)
    writers: dict[str, Callable[[Path, Sequence[str], Iterable[Sequence[Any]]], int]] = {
        ".csv": _write_csv,
        ".parquet": _write_parquet,
    }
    if target.suffix not in writers:
        raise AgentError(f"{target.name} must end in .csv or .parquet")
    partial = target.with_name(target.name + ".partial")
    try:
        count = writers[target.suffix](partial, header, rows)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    return count


def _write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
    count = 0
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([_cell(name) for name in header])
        for row in rows:
            writer.writerow([_cell(value) for value in row])
            count += 1
    return count


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would run as a formula, with an apostrophe before it; all else as it is.

    >>> _cell("=1+1"), _cell("@sum"), _cell("\\t=1"), _cell("-5"), _cell(-5.0), _cell("ham")
    ("'=1+1", "'@sum", "'\\t=1", '-5', -5.0, 'ham')
    """
    if not isinstance(value, str) or not value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def _write_parquet(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise AgentError("a .parquet file needs pyarrow: pip install 'sparingly[experiments]'") from None
    kinds = {
        "id": pa.string(),
        "label": pa.string(),
        "prediction": pa.string(),
        "expert": pa.string(),
        "erased": pa.string(),
        "why": pa.string(),
    }
    kinds |= {"asked": pa.bool_(), "at": pa.float64(), "probability": pa.float64()}
    schema = pa.schema([(name, kinds.get(name, pa.float32())) for name in header])
    texts = {i for i, name in enumerate(header) if kinds.get(name) == pa.string()}
    count = 0
    with pq.ParquetWriter(path, schema) as writer:
        for chunk in _chunks(rows, _CHUNK):
            cells = [[str(v) if i in texts and v is not None else v for i, v in enumerate(row)] for row in chunk]
            writer.write_table(pa.table([list(column) for column in zip(*cells, strict=True)], schema=schema))
            count += len(cells)
    return count


def _chunks(rows: Iterable[Sequence[Any]], size: int) -> Iterator[list[Sequence[Any]]]:
    chunk: list[Sequence[Any]] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _size(settings: AgentSettings) -> int:
    return math.prod(settings.shape) if settings.shape is not None else 0
