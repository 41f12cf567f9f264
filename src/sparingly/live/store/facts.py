"""The few facts that an agent's database keeps by name: its format, its settings, where its features begin."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select, update

from sparingly.live.store.schema import meta


def get(connection: Connection, key: str) -> str:
    return str(connection.execute(select(meta.c.value).where(meta.c.key == key)).scalar_one())


def put(connection: Connection, key: str, value: Any) -> None:
    connection.execute(update(meta).where(meta.c.key == key).values(value=str(value)))


def floor(connection: Connection) -> int:
    """The event up to which the features of unlabelled observations have been dropped."""
    return int(get(connection, "floor"))
