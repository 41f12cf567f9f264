"""Older formats of the tables, brought up to date when an agent is opened: in one transaction, or not at all."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, text

from sparingly.live.facts import get, put
from sparingly.live.tables import FORMAT


def _when_shown(connection: Connection) -> None:
    """Format 2 knows when a question was first lent to a person."""
    connection.execute(text("ALTER TABLE tickets ADD COLUMN shown DOUBLE PRECISION"))


STEPS: dict[int, Callable[[Connection], None]] = {1: _when_shown}
"""By the format they start from, what leads to the next."""


def migrate(connection: Connection) -> None:
    """Bring the tables to the format of this release."""
    for version in range(int(get(connection, "format")), FORMAT):
        STEPS[version](connection)
        put(connection, "format", version + 1)
