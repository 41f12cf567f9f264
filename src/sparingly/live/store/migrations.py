"""Versioned migrations, one scheme for an agent's database and the service's.

The steps are at the end of `live/store/tables.py` and in `live/service/service_database.py`. The version is a row of
the table `meta`. Alembic would add a folder of scripts, a table and a configuration of its own to what is a list of
functions here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Column, Connection, MetaData, Table, Text, delete, insert, select

from sparingly.live.agent.errors import StoreError

VERSION = "format"
"""The key of the version in the table `meta`."""

WRITE_CHECK = "write_check"
"""The key of what is written only to see whether it can be: a value that stays the same would not reach the disk."""

meta = Table(
    "meta",
    MetaData(),
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
"""Few values by name; a database has it by `meta.to_metadata(...)`."""

Migration = Callable[[Connection], None]


def read_meta(connection: Connection, key: str) -> str:
    """The value of a key that must be there."""
    return str(connection.execute(select(meta.c.value).where(meta.c.key == key)).scalar_one())


def write_meta(connection: Connection, key: str, value: Any) -> None:
    """Set the value of a key."""
    connection.execute(delete(meta).where(meta.c.key == key))
    connection.execute(insert(meta), {"key": key, "value": str(value)})


class Migrations:
    """What leads from each version of a database's tables to the next.

    Parameters
    ----------
    steps
        The first leads from version 1 to 2, and so on.
    """

    def __init__(self, *steps: Migration) -> None:
        self._steps = steps

    @property
    def latest(self) -> int:
        """The version of this release."""
        return len(self._steps) + 1

    def version(self, connection: Connection, name: str) -> int:
        """The version of a database; one that is newer than this release is refused, under its name."""
        version = int(read_meta(connection, VERSION))
        if version > self.latest:
            raise StoreError(f"{name} has format {version}, newer than {self.latest}: it needs a newer sparingly")
        return version

    def upgrade(self, connection: Connection, name: str) -> None:
        """Bring the tables to this release's version, in the caller's transaction: all steps or none."""
        for version in range(self.version(connection, name), self.latest):
            self._steps[version - 1](connection)
            write_meta(connection, VERSION, version + 1)
