"""Questions on their way to people: shown, leased to one of them, renewed, given back, opened again."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from sparingly.live.agent import leases
from sparingly.live.agent.errors import AgentError
from sparingly.live.agent.runtime import AgentRuntime
from sparingly.live.agent.ticket_lifecycle import find, reopened
from sparingly.live.agent.ticket_records import Question
from sparingly.live.store.audit_outbox import AuditLine


class Lending:
    """The calls of an agent by which experts get hold of questions; the parameters are those of `Agent`'s methods."""

    def __init__(self, runtime: AgentRuntime) -> None:
        self._runtime = runtime

    def questions(self, expert: str | None, limit: int | None, lease_seconds: float) -> list[Question]:
        _check_lease_seconds(lease_seconds)
        now, settings = self._runtime.clock(), self._runtime.store.settings
        if expert is None:
            with self._runtime.reading() as connection:
                found = leases.offered(connection, None, limit, now)
                return leases.questions_of(connection, found, settings, None, None)
        with self._runtime.writing() as connection:
            found = leases.offered(connection, expert, limit, now)
            return leases.lend(connection, found, settings, expert, now, now + lease_seconds)

    def lend(self, ticket_id: str, expert: str, lease_seconds: float, most: int | None) -> Question:
        _check_lease_seconds(lease_seconds)
        with self._runtime.writing() as connection:
            return self._lend(connection, ticket_id, expert, lease_seconds, most, self._runtime.clock())

    def renew(self, ticket_id: str, expert: str, lease_seconds: float) -> Question:
        _check_lease_seconds(lease_seconds)
        now = self._runtime.clock()
        with self._runtime.writing() as connection:
            row = find(connection, ticket_id)
            leases.check_own(row, expert, now)
            return leases.lend(connection, [row], self._runtime.store.settings, expert, now, now + lease_seconds)[0]

    def release(self, ticket_id: str, expert: str, audit: AuditLine | None) -> None:
        def rule(connection: Connection, row: Any, now: float) -> None:
            leases.give_back(connection, row, expert)

        self._runtime.change(ticket_id, rule, audit)

    def reopen(
        self,
        ticket_id: str,
        expert: str | None,
        lease_seconds: float | None,
        most: int | None,
        audit: AuditLine | None,
    ) -> Question | None:
        def lease(connection: Connection, now: float) -> Question | None:
            if expert is None or lease_seconds is None:
                return None
            return self._lend(connection, ticket_id, expert, lease_seconds, most, now)

        return self._runtime.change(ticket_id, lambda c, row, now: reopened(c, row, expert, now), audit, lease)

    def _lend(
        self, connection: Connection, ticket_id: str, expert: str, seconds: float, most: int | None, now: float
    ) -> Question:
        row = find(connection, ticket_id)
        leases.check_free(row, expert, now)
        leases.check_count(connection, row, expert, most, now)
        return leases.lend(connection, [row], self._runtime.store.settings, expert, now, now + seconds)[0]


def _check_lease_seconds(seconds: float) -> None:
    if not 0 < seconds < float("inf"):
        raise AgentError(f"lease_seconds is {seconds}: it must be positive and finite")
