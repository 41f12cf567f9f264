"""The audit trail: who answered what, who made and revoked which token; written before it is acknowledged."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from sqlalchemy import Connection, insert, select

from sparingly.live.service.service_database import ServiceDatabase, audit


class Actor(Protocol):
    """Whoever does something, by a token."""

    @property
    def name(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def token(self) -> str: ...


def add_line(connection: Connection, who: Actor, did: str, *, agent: str | None = None, detail: Any = None) -> None:
    """Write a line in the transaction of what it tells of."""
    row = {"at": time.time(), "who": who.name, "role": who.role, "token": who.token, "did": did, "agent": agent}
    connection.execute(insert(audit), {**row, "detail": None if detail is None else str(detail)})


class Audit:
    """What people did, in order; nothing is ever changed or removed."""

    def __init__(self, database: ServiceDatabase, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def note(
        self, who: Any, did: str, *, agent: str | None = None, ticket: str | None = None, detail: Any = None
    ) -> None:
        """Write one line; `who` has a name, a role and a token's id."""
        row = {"at": self._clock(), "who": who.name, "role": who.role, "token": who.token, "did": did}
        said = None if detail is None else str(detail)
        with self._database.writing() as connection:
            connection.execute(insert(audit), {**row, "agent": agent, "ticket": ticket, "detail": said})

    def lines(self, *, before: int | None = None, limit: int = 100) -> list[dict[str, Any]]:
        """The newest lines first; `before` a line's number for older ones."""
        query = select(audit).order_by(audit.c.seq.desc()).limit(limit)
        if before is not None:
            query = query.where(audit.c.seq < before)
        with self._database.reading() as connection:
            return [dict(row._mapping) for row in connection.execute(query)]
