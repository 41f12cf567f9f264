"""Open questions and their leases: a question is leased to one expert at a time, until the lease runs out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import BindParameter, Connection, Select, and_, bindparam, exists, func, or_, select, update

from sparingly.live.agent.agent_settings import AgentSettings
from sparingly.live.agent.errors import AgentError, ConflictError
from sparingly.live.agent.observations import reasons_of
from sparingly.live.quality import opinions, team_quality
from sparingly.live.store.audit_outbox import AuditLine
from sparingly.live.store.journal import vector
from sparingly.live.store.tables import calls, observations, passes, payloads, tickets
from sparingly.live.store.tables import opinions as opinion_table
from sparingly.live.tickets.ticket_lifecycle import check_not_leased_to_another, find, reopened
from sparingly.live.tickets.ticket_records import OPEN, Question, read_payload

if TYPE_CHECKING:
    from sparingly.live.agent.runtime import AgentRuntime


def offered(
    connection: Connection, expert: str | None, limit: int | None, now: float, settings: AgentSettings | None = None
) -> list[Any]:
    """The rows of open questions that an expert may have, oldest first, those already leased to the expert first.

    Never one of which the expert has said something before, and no question to another person alone.
    """
    if expert is None:
        query = select(tickets).where(tickets.c.status == OPEN).order_by(tickets.c.seq)
        return list(connection.execute(query.limit(limit)))
    to_others = [] if settings is None else settings.questions_to_others(expert)
    given = {"person": expert, "now": now, "to_others": to_others} | ({} if limit is None else {"most": limit})
    return list(connection.execute(_open_to(limit is not None), given))


@cache
def _open_to(limited: bool) -> Select[Any]:
    """The open questions that the `person` may have; made once, for every question that anyone asks for."""
    person: BindParameter[str] = bindparam("person")
    now: BindParameter[float] = bindparam("now")
    passed = exists().where(and_(passes.c.ticket == tickets.c.seq, passes.c.expert == person))
    free = or_(tickets.c.until.is_(None), tickets.c.until < now, tickets.c.expert == person)
    own = and_(tickets.c.expert == person, tickets.c.until >= now)
    heard = exists().where(and_(calls.c.ticket == tickets.c.seq, calls.c.detail == person))
    said = exists().where(
        and_(
            opinion_table.c.ticket == tickets.c.seq,
            opinion_table.c.expert == person,
            opinion_table.c.label.is_not(None),
            opinion_table.c.place > 0,
        )
    )
    to_others: BindParameter[Any] = bindparam("to_others", expanding=True)
    may = and_(tickets.c.status == OPEN, free, ~passed, ~heard, ~said, tickets.c.action.not_in(to_others))
    query = select(tickets).where(may).order_by(own.desc().nulls_last(), tickets.c.seq)
    most: BindParameter[int] = bindparam("most")
    return query.limit(most) if limited else query


def lend(
    connection: Connection, rows: Sequence[Any], settings: AgentSettings, expert: str, now: float, until: float
) -> list[Question]:
    """Lease questions to an expert until a time."""
    given = [row for row in rows if hasattr(row, "opinion")]
    opinions.lease(connection, given, expert, now, until)
    numbers = [row.seq for row in rows if not hasattr(row, "opinion")]
    connection.execute(
        update(tickets)
        .where(tickets.c.seq.in_(numbers))
        .values(expert=expert, until=until, shown=func.coalesce(tickets.c.shown, now))
    )
    return questions_of(connection, rows, settings, expert, until)


def check_count(connection: Connection, row: Any, expert: str, most: int | None, now: float) -> None:
    """One more question may be leased to an expert who holds fewer than `most` others."""
    others = and_(
        tickets.c.expert == expert, tickets.c.until >= now, tickets.c.status == OPEN, tickets.c.seq != row.seq
    )
    held = connection.execute(select(func.count()).select_from(tickets).where(others)).scalar_one()
    if most is not None and held >= most:
        raise ConflictError(f"{expert} holds {held} questions, and {most} are the most: answer or release one first")


def check_own(row: Any, expert: str, now: float) -> None:
    """A lease can be renewed by its expert, and once it has run out by anyone; a released question has none."""
    check_free(row, expert, now)
    if row.until is None:
        raise ConflictError(f"ticket {row.id!r} is not leased to {expert}: ask for questions again")


def check_free(row: Any, expert: str, now: float) -> None:
    """A question can be leased if it is open and not leased to another."""
    if row.status != OPEN:
        raise ConflictError(f"ticket {row.id!r} is {row.status}: it is no open question")
    check_not_leased_to_another(row, expert, now)


def give_back(connection: Connection, row: Any, expert: str) -> None:
    """End the lease of this expert; anyone else's is left alone."""
    own = and_(tickets.c.seq == row.seq, tickets.c.expert == expert, tickets.c.status == OPEN)
    connection.execute(update(tickets).where(own).values(expert=None, until=None))


def questions_of(
    connection: Connection, rows: Sequence[Any], settings: AgentSettings, expert: str | None, until: float | None
) -> list[Question]:
    """Questions with what their expert needs to see."""
    numbers = [row.seq for row in rows]
    seen = {p.ticket: p for p in connection.execute(select(payloads).where(payloads.c.ticket.in_(numbers)))}
    found = {o.ticket: o.x for o in connection.execute(select(observations).where(observations.c.ticket.in_(numbers)))}
    game = settings.game
    return [
        Question(
            id=row.id,
            prediction=settings.classes[row.prediction],
            action=row.action,
            at=row.at,
            choices=settings.classes
            if len(game.symbols(row.action)) == game.n_outcomes
            else tuple(str(symbol) for symbol in game.symbols(row.action)),
            features=tuple(vector(found[row.seq], (-1,)).tolist()),
            payload=read_payload(seen[row.seq]) if row.seq in seen else None,
            expert=expert if expert is not None else row.expert,
            until=until if until is not None else row.until,
            **reasons_of(row, settings.classes),
        )
        for row in rows
    ]


class Lending:
    """The calls of an agent by which experts get hold of questions; the parameters are those of `Agent`'s methods."""

    def __init__(self, runtime: AgentRuntime) -> None:
        self._runtime = runtime

    def questions(self, expert: str | None, limit: int | None, lease_seconds: float) -> list[Question]:
        _check_lease_seconds(lease_seconds)
        now, settings = self._runtime.clock(), self._runtime.store.settings
        if expert is None:
            with self._runtime.reading() as connection:
                found = offered(connection, None, limit, now)
                return questions_of(connection, found, settings, None, None)
        with self._runtime.writing() as connection:
            if opinions.is_stopped(connection, expert):
                return []
            found = offered(connection, expert, limit, now, settings)
            found = opinions.queue(connection, settings, expert, found, limit, now)
            return lend(connection, found, settings, expert, now, now + lease_seconds)

    def lend(self, ticket_id: str, expert: str, lease_seconds: float, most: int | None) -> Question:
        _check_lease_seconds(lease_seconds)
        with self._runtime.writing() as connection:
            return self._lend(connection, ticket_id, expert, lease_seconds, most, self._runtime.clock())

    def renew(self, ticket_id: str, expert: str, lease_seconds: float) -> Question:
        _check_lease_seconds(lease_seconds)
        now = self._runtime.clock()
        with self._runtime.writing() as connection:
            row = find(connection, ticket_id)
            opinion = opinions.own_opinion(connection, row, expert)
            if opinion is not None and opinion.closed is None and opinion.until is not None:
                row = opinions.as_ticket(connection, opinion)
            else:
                check_own(row, expert, now)
            return lend(connection, [row], self._runtime.store.settings, expert, now, now + lease_seconds)[0]

    def release(self, ticket_id: str, expert: str, audit: AuditLine | None) -> None:
        def rule(connection: Connection, row: Any, now: float) -> None:
            opinion = opinions.own_opinion(connection, row, expert)
            if opinion is not None:
                opinions.give_back(connection, opinion)
            give_back(connection, row, expert)

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

        if expert is not None:
            until = self._runtime.clock() + (lease_seconds or 600.0)
            if team_quality.take_back(self._runtime, ticket_id, expert, until, audit):
                return self.renew(ticket_id, expert, lease_seconds or 600.0)
        return self._runtime.change(ticket_id, lambda c, row, now: reopened(c, row, expert, now), audit, lease)

    def _lend(
        self, connection: Connection, ticket_id: str, expert: str, seconds: float, most: int | None, now: float
    ) -> Question:
        row = find(connection, ticket_id)
        check_free(row, expert, now)
        check_count(connection, row, expert, most, now)
        return lend(connection, [row], self._runtime.store.settings, expert, now, now + seconds)[0]


def _check_lease_seconds(seconds: float) -> None:
    if not 0 < seconds < float("inf"):
        raise AgentError(f"lease_seconds is {seconds}: it must be positive and finite")
