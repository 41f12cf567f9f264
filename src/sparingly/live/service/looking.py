"""Looks into an agent that its own methods do not give: one ticket, the newest first, sums by expert."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import and_, func, select

from sparingly.live import answering, leases
from sparingly.live.agent import Agent
from sparingly.live.errors import ConflictError
from sparingly.live.history import entries
from sparingly.live.records import ANSWERED, OPEN, Entry, Question
from sparingly.live.tables import tickets


def ticket_row(agent: Agent, ticket_id: str) -> Any:
    """The row of one ticket; an error that names it if there is none."""
    with agent._reading() as connection:
        return answering.find(connection, ticket_id)


def recent(agent: Agent, limit: int) -> list[Entry]:
    """The last tickets, newest first."""
    with agent._reading() as connection:
        before = connection.execute(select(tickets.c.id).order_by(tickets.c.seq.desc()).offset(limit).limit(1)).scalar()
        return list(entries(connection, agent.settings, after=before))[::-1]


def by_expert(agent: Agent) -> list[dict[str, Any]]:
    """How many answers each person has given that stand, and how often they were what the agent would have said."""
    agreed = func.count().filter(tickets.c.label == tickets.c.prediction)
    query = (
        select(tickets.c.expert, func.count().label("answers"), agreed.label("agreed"), func.max(tickets.c.closed))
        .where(tickets.c.status == ANSWERED)
        .group_by(tickets.c.expert)
        .order_by(func.count().desc())
    )
    with agent._reading() as connection:
        rows = connection.execute(query).all()
    return [{"expert": r[0], "answers": r[1], "agreed": r[2], "last": r[3]} for r in rows]


def answered_since(agent: Agent, expert: str, since: float) -> dict[str, float]:
    """How many questions a person has answered since a time, and what they cost."""
    mine = and_(tickets.c.status == ANSWERED, tickets.c.expert == expert, tickets.c.closed >= since)
    query = (
        select(tickets.c.action, tickets.c.asks, func.count()).where(mine).group_by(tickets.c.action, tickets.c.asks)
    )
    with agent._reading() as connection:
        rows = connection.execute(query).all()
    costs = agent.settings.costs
    return {
        "answers": sum(count for _, _, count in rows),
        "cost": float(sum(count * max(costs[action]) for action, asks, count in rows if asks)),
    }


def open_questions(agent: Agent, limit: int) -> list[dict[str, Any]]:
    """The oldest open questions, and who has them."""
    now = time.time()
    with agent._reading() as connection:
        rows = leases.offered(connection, None, limit, now)
    return [
        {"id": r.id, "at": r.at, "why": r.why, "expert": r.expert if r.until is not None and r.until >= now else None}
        for r in rows
    ]


def open_count(agent: Agent) -> int:
    with agent._reading() as connection:
        query = select(func.count()).select_from(tickets).where(tickets.c.status == OPEN)
        return int(connection.execute(query).scalar_one())


def head(agent: Agent) -> int:
    """The number of the last event: it grows with everything that happens."""
    with agent._reading() as connection:
        return int(agent._store.head(connection))


def take(agent: Agent, ticket_id: str, expert: str, seconds: float) -> Question:
    """Lend one particular question to an expert."""
    now = time.time()
    with agent._lock, agent._store.writing() as connection:
        row = answering.find(connection, ticket_id)
        if row.status != OPEN:
            raise ConflictError(f"ticket {ticket_id!r} is {row.status}: it is no open question")
        if row.expert not in (None, expert) and row.until is not None and row.until >= now:
            raise ConflictError(f"ticket {ticket_id!r} is leased to {row.expert}")
        leases.lend(connection, [row], expert, now, now + seconds)
        return leases.questions_of(connection, [row], agent.settings, expert, now + seconds)[0]
