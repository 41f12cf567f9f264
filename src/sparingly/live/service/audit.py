"""The audit trail: who answered what, who made and revoked which token.

What is done to an agent is kept in the agent's own outbox, in the transaction that does it, and copied from there; what
is done to the service itself is written here.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from sqlalchemy import Connection, insert, select
from sqlalchemy.dialects import postgresql, sqlite

from sparingly.live.agent.agent import Agent
from sparingly.live.agent.errors import AgentError
from sparingly.live.service.service_database import ServiceDatabase, audit
from sparingly.live.store.audit_outbox import AuditLine

log = logging.getLogger(__name__)

_SHOWN = [column for column in audit.c if column.name != "source"]


class Actor(Protocol):
    """Whoever does something, by a token."""

    @property
    def name(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def token(self) -> str: ...


def line_of(who: Actor, did: str, detail: Any = None) -> AuditLine:
    """What an agent is to keep of someone who does something to it."""
    return AuditLine(who.name, who.role, who.token, did, None if detail is None else str(detail))


def add_line(connection: Connection, who: Actor, did: str, *, agent: str | None = None, detail: Any = None) -> None:
    """Write a line in the transaction of what it tells of."""
    row = {"at": time.time(), "who": who.name, "role": who.role, "token": who.token, "did": did, "agent": agent}
    connection.execute(insert(audit), {**row, "detail": None if detail is None else str(detail)})


class Audit:
    """What people did, in order; nothing is ever changed or removed.

    Parameters
    ----------
    opened
        The agents whose lines are copied, by name.
    """

    def __init__(self, database: ServiceDatabase, opened: Mapping[str, Agent]) -> None:
        self._database = database
        self._opened = opened

    def note(self, who: Actor, did: str, *, agent: str | None = None, detail: Any = None) -> None:
        """Write one line, in a transaction of its own."""
        with self._database.writing() as connection:
            add_line(connection, who, did, agent=agent, detail=detail)

    def collect(self, name: str, agent: Agent) -> None:
        """Copy the lines that an agent has kept."""
        agent.copy_audit_lines(functools.partial(self._copy, name))

    def collect_all(self, wanted: Callable[[Agent], bool] = lambda agent: True) -> None:
        """Copy the lines of all agents that are open; one that cannot be read keeps its lines for later."""
        for name, agent in list(self._opened.items()):
            if wanted(agent):
                try:
                    self.collect(name, agent)
                except AgentError as error:
                    log.warning("the audit lines of agent %s could not be copied yet: %s", name, error)

    def lines(self, *, before: int | None = None, limit: int = 100) -> list[dict[str, Any]]:
        """The newest lines first; `before` a line's number for older ones."""
        self.collect_all()
        query = select(*_SHOWN).order_by(audit.c.seq.desc()).limit(limit)
        if before is not None:
            query = query.where(audit.c.seq < before)
        with self._database.reading() as connection:
            return [dict(row._mapping) for row in connection.execute(query)]

    def _copy(self, name: str, lines: list[dict[str, Any]]) -> None:
        dialect: Any = postgresql if self._database.is_postgres else sqlite
        rows = []
        for line in lines:
            copied = {key: value for key, value in line.items() if key not in ("seq", "id")}
            rows.append({**copied, "agent": name, "source": line["id"]})
        with self._database.writing() as connection:
            connection.execute(dialect.insert(audit).on_conflict_do_nothing(index_elements=["source"]), rows)
