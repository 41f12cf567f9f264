"""The calls of experts in the database: which are due, which are under way, and what they brought and cost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, and_, bindparam, func, select, update

from sparingly.experts import ExpertReply, Inquiry
from sparingly.games import Game
from sparingly.live.store.journal import bulk_insert, vector
from sparingly.live.store.migrations import read_meta
from sparingly.live.store.tables import calls, observations, payloads, tickets
from sparingly.live.tickets.ticket_records import CONSULTING, ExpertCall, read_payload

if TYPE_CHECKING:
    from sparingly.live.agent.agent_settings import AgentSettings

DUE, CALLED, NOT_NEEDED = "due", "called", "not needed"
"""The states of a call that has not ended, and of one that was not made, since the ticket did not wait for it."""

_DAY = 86400.0

_CHANGED = update(calls).where(and_(calls.c.ticket == bindparam("of_ticket"), calls.c.place == bindparam("at_place")))
_PAID = (
    update(tickets)
    .where(tickets.c.seq == bindparam("of_ticket"))
    .values(paid=func.coalesce(tickets.c.paid, 0.0) + bindparam("more"))
)
_OF_TICKETS = (
    select(calls.c.ticket, calls.c.place, calls.c.number, calls.c.symbol, calls.c.event, calls.c.closed)
    .where(calls.c.ticket.in_(bindparam("numbers", expanding=True)))
    .order_by(calls.c.ticket, calls.c.place)
)
_TO_COME = (
    select(calls, tickets.c.status, tickets.c.id, tickets.c.action)
    .join(tickets, tickets.c.seq == calls.c.ticket)
    .where(and_(calls.c.closed.is_(None), calls.c.state == DUE, calls.c.expert == bindparam("named")))
    .order_by(calls.c.ticket, calls.c.place)
    .limit(bindparam("most"))
)


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that is under way."""

    ticket: int
    place: int
    number: int
    expert: str
    inquiry: Inquiry


def asked_names(game: Game, action: int, before: Sequence[str]) -> str:
    """Who has been asked once this action is played, as a column of the ticket's row."""
    expert = game.expert(action)
    return json.dumps([*before, *([expert.name] if expert is not None else [])])


def add(connection: Connection, rows: Sequence[Mapping[str, Any]], settings: AgentSettings) -> None:
    """The calls that tickets wait for, one after what was asked about them before."""
    due = [
        {
            "ticket": row["seq"],
            "place": row.get("place", 0),
            "number": row["action"] - len(settings.classes),
            "expert": settings.experts[row["action"] - len(settings.classes)][0],
            "state": DUE,
            "at": row["at"],
        }
        for row in rows
    ]
    bulk_insert(connection, calls, due)


def to_come(connection: Connection, expert: str, limit: int) -> list[Any]:
    """The next calls of an expert that are due, oldest first, with the status of their tickets."""
    return list(connection.execute(_TO_COME, {"named": expert, "most": limit}))


def cut_off(connection: Connection, before: float | None) -> list[Any]:
    """The calls of which nobody knows what came: whoever made them is gone, or has not been heard of in time."""
    found = select(calls, tickets.c.id).join(tickets, tickets.c.seq == calls.c.ticket)
    found = found.where(and_(calls.c.closed.is_(None), calls.c.state == CALLED))
    return list(connection.execute(found if before is None else found.where(calls.c.until < before)))


def is_waited_for(row: Any, settings: AgentSettings) -> bool:
    """Whether a ticket waits for this call."""
    return bool(row.status == CONSULTING and row.action == len(settings.classes) + row.number)


def mark(connection: Connection, rows: Sequence[Any], **columns: Any) -> None:
    """Change calls, all in the same way."""
    if rows:
        connection.execute(_CHANGED, [{**columns, "of_ticket": row.ticket, "at_place": row.place} for row in rows])


def renew(connection: Connection, under_way: Sequence[PendingCall], until: float) -> None:
    """The calls of this process are still under way."""
    mark(connection, under_way, until=until)


def end(connection: Connection, brought: Sequence[tuple[Any, ExpertReply, int | None, int | None]], now: float) -> None:
    """What calls brought and cost: (call, reply, symbol, event of the journal if the agent decided again)."""
    ended = [
        {
            "of_ticket": call.ticket,
            "at_place": call.place,
            "state": reply.state,
            "price": reply.price,
            "symbol": symbol,
            "detail": reply.detail or None,
            "event": event,
            "closed": now,
        }
        for call, reply, symbol, event in brought
    ]
    connection.execute(_CHANGED, ended)
    connection.execute(_PAID, [{"of_ticket": call.ticket, "more": reply.price} for call, reply, *_ in brought])


def of_tickets(connection: Connection, numbers: Sequence[int]) -> dict[int, list[Any]]:
    """What experts were asked about tickets, and said: their rows in order, by ticket."""
    found: dict[int, list[Any]] = {number: [] for number in numbers}
    for row in connection.execute(_OF_TICKETS, {"numbers": list(numbers)}):
        found[row.ticket].append(row)
    return found


def spent(connection: Connection, expert: str, now: float) -> float:
    """What an expert has cost in the last 24 hours."""
    recent = and_(calls.c.expert == expert, calls.c.closed > now - _DAY)
    return float(connection.execute(select(func.coalesce(func.sum(calls.c.price), 0.0)).where(recent)).scalar_one())


def bill(connection: Connection) -> dict[str, float]:
    """What experts that were called have cost, by name."""
    paid = select(calls.c.expert, func.sum(calls.c.price)).where(calls.c.closed.is_not(None)).group_by(calls.c.expert)
    return {expert: float(price or 0.0) for expert, price in connection.execute(paid)}


def of_ticket(connection: Connection, ticket: int, settings: AgentSettings) -> list[ExpertCall]:
    """What experts were asked about a ticket, in order."""
    found = connection.execute(select(calls).where(calls.c.ticket == ticket).order_by(calls.c.place))
    return [
        ExpertCall(
            expert=row.expert,
            state=row.state,
            label=None if row.symbol is None else settings.classes[row.symbol],
            price=row.price,
            detail=row.detail,
            at=row.at,
            closed=row.closed,
        )
        for row in found
    ]


def read(connection: Connection, rows: Sequence[Any], settings: AgentSettings) -> list[PendingCall]:
    """Calls with what the expert is shown: what a person would see, or else the features."""
    numbers = [row.ticket for row in rows]
    shown = {p.ticket: read_payload(p) for p in connection.execute(select(payloads).where(_of(payloads, numbers)))}
    bare = [number for number in numbers if number not in shown]
    seen = {o.ticket: o.x for o in connection.execute(select(observations).where(_of(observations, bare)))}
    made = read_meta(connection, "made")
    return [
        PendingCall(
            row.ticket,
            row.place,
            row.number,
            row.expert,
            Inquiry(
                row.id,
                shown[row.ticket].content if row.ticket in shown else _features(seen.get(row.ticket, b""), settings),
                settings.classes,
                shown[row.ticket].media if row.ticket in shown and shown[row.ticket].kind == "image" else None,
                hashlib.blake2b(f"{made} {row.ticket} {row.place}".encode(), digest_size=16).hexdigest(),
                settings.descriptions,
            ),
        )
        for row in rows
    ]


def _features(x: bytes, settings: AgentSettings) -> Any:
    numbers = [float(value) for value in vector(x, (-1,))]
    return numbers if settings.names is None else dict(zip(settings.names, numbers, strict=False))


def _of(table: Any, numbers: Sequence[int]) -> Any:
    return table.c.ticket.in_(numbers)
