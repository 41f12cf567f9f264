"""Many rows into a table at once, with as little work for each as the driver allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Dialect, Table


def add(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows that all name the same columns, two or more; their values go to the driver as they are."""
    if not rows:
        return
    names = tuple(rows[0])
    values = itemgetter(*names)
    connection.exec_driver_sql(_statement(table, names, connection.dialect), [values(row) for row in rows])


@lru_cache(maxsize=64)
def _statement(table: Table, names: tuple[str, ...], dialect: Dialect) -> str:
    quoted = [dialect.identifier_preparer.quote(name) for name in (table.name, *names)]
    mark = "?" if dialect.paramstyle == "qmark" else "%s"
    return f"INSERT INTO {quoted[0]} ({', '.join(quoted[1:])}) VALUES ({', '.join([mark] * len(names))})"
