"""Older formats of the tables, brought up to date when an agent is opened: in one transaction, or not at all."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, text

from sparingly.live.store.facts import get, put
from sparingly.live.store.schema import FORMAT, answers, taken_back


def _when_shown(connection: Connection) -> None:
    """Format 2 knows when a question was first lent to a person."""
    connection.execute(text("ALTER TABLE tickets ADD COLUMN shown DOUBLE PRECISION"))


def _indexes(connection: Connection) -> None:
    """Format 3 finds a person's answers, and indexes of the journal only what takes something back."""
    connection.execute(text("DROP INDEX IF EXISTS ix_journal_voids"))
    for index in (taken_back, answers):
        index.create(connection)


STEPS: dict[int, Callable[[Connection], None]] = {1: _when_shown, 2: _indexes}
"""By the format they start from, what leads to the next."""


def migrate(connection: Connection) -> None:
    """Bring the tables to the format of this release."""
    for version in range(int(get(connection, "format")), FORMAT):
        STEPS[version](connection)
        put(connection, "format", version + 1)
