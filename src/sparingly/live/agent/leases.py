"""Open questions and their leases: a question is leased to one expert at a time, until the lease runs out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, and_, exists, func, or_, select, update

from sparingly.live.agent.agent_settings import AgentSettings
from sparingly.live.agent.errors import ConflictError
from sparingly.live.agent.ticket_lifecycle import check_not_leased_to_another
from sparingly.live.agent.ticket_records import OPEN, Question, read_payload
from sparingly.live.store.journal import vector
from sparingly.live.store.tables import observations, passes, payloads, tickets


def offered(connection: Connection, expert: str | None, limit: int | None, now: float) -> list[Any]:
    """The rows of open questions that an expert may have, oldest first, those already leased to the expert first."""
    query = select(tickets).where(tickets.c.status == OPEN).order_by(tickets.c.seq)
    if expert is not None:
        passed = exists().where(and_(passes.c.ticket == tickets.c.seq, passes.c.expert == expert))
        free = or_(tickets.c.until.is_(None), tickets.c.until < now, tickets.c.expert == expert)
        own = and_(tickets.c.expert == expert, tickets.c.until >= now)
        query = query.where(and_(free, ~passed)).order_by(None).order_by(own.desc().nulls_last(), tickets.c.seq)
    return list(connection.execute(query.limit(limit)))


def lend(
    connection: Connection, rows: Sequence[Any], settings: AgentSettings, expert: str, now: float, until: float
) -> list[Question]:
    """Lease questions to an expert until a time."""
    numbers = [row.seq for row in rows]
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
            why=row.why,
            at=row.at,
            choices=settings.classes
            if len(game.symbols(row.action)) == game.n_outcomes
            else tuple(str(symbol) for symbol in game.symbols(row.action)),
            features=tuple(vector(found[row.seq], (-1,)).tolist()),
            payload=read_payload(seen[row.seq]) if row.seq in seen else None,
            expert=expert if expert is not None else row.expert,
            until=until if until is not None else row.until,
        )
        for row in rows
    ]
