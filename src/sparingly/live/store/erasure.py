"""Erasure: what a ticket shows of a person is removed for good; that there was a ticket, and what came of it, stays.

An erased observation and its label are unlearned like an answer that is taken back: the learner goes back to a snapshot
from before, and replays the journal without them. Before the oldest snapshot that is no longer possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, delete, select, update

from sparingly.live.store import journal
from sparingly.live.store.tables import calls, features_dropped_upto, observations, payloads, snapshots, tickets
from sparingly.live.tickets.ticket_records import CONSULTING, OPEN, WITHDRAWN

PAYLOAD, EVERYTHING = "payload", "everything"
"""What of a ticket was erased: what people saw, or that and the features."""

NO_FEATURES = b""
"""The features of an erased observation."""

_CHUNK = 500


def erase(connection: Connection, rows: Sequence[Any], head: int, now: float) -> int:
    """Erase payload and features of tickets; returns the number of the last event, which is `head` if all were."""
    dropped_upto = features_dropped_upto(connection)
    events: list[dict[str, Any]] = []
    for row in rows:
        if row.erased == EVERYTHING:
            continue
        voids = [seq for seq in (row.seq, row.learned) if seq is not None and seq > dropped_upto]
        for void in voids or [None]:
            event = {"seq": head + len(events) + 1, "at": now, "kind": journal.ERASED, "ticket": row.seq}
            events.append({**event, "voids": void})
        _erase_row(connection, row, now)
    journal.append(connection, events)
    voided = [event["voids"] for event in events if event["voids"] is not None]
    if voided:
        connection.execute(delete(snapshots).where(snapshots.c.seq >= min(voided)))
    return head + len(events)


def erase_payloads(connection: Connection, before: float) -> int:
    """Erase payloads of observations from before a time, at most a chunk of them; returns how many."""
    oldest = (
        select(payloads.c.ticket, tickets.c.at)
        .join(tickets, tickets.c.seq == payloads.c.ticket)
        .order_by(payloads.c.ticket)
        .limit(_CHUNK)
    )
    numbers = [int(row.ticket) for row in connection.execute(oldest) if row.at < before]
    if numbers:
        connection.execute(delete(payloads).where(payloads.c.ticket.in_(numbers)))
        connection.execute(update(tickets).where(tickets.c.seq.in_(numbers)).values(erased=PAYLOAD))
        connection.execute(update(calls).where(calls.c.ticket.in_(numbers)).values(detail=None))
    return len(numbers)


def _erase_row(connection: Connection, row: Any, now: float) -> None:
    connection.execute(delete(payloads).where(payloads.c.ticket == row.seq))
    connection.execute(update(observations).where(observations.c.ticket == row.seq).values(x=NO_FEATURES))
    columns: dict[str, Any] = {"erased": EVERYTHING, "digest": NO_FEATURES, "learned": None}
    columns |= {"probabilities": None, "numbers": None}
    connection.execute(update(calls).where(calls.c.ticket == row.seq).values(detail=None))
    if row.status in (OPEN, CONSULTING):
        columns |= {"status": WITHDRAWN, "expert": None, "until": None, "closed": now}
    connection.execute(update(tickets).where(tickets.c.seq == row.seq).values(**columns))
