"""Tickets that were held until there is a model: announced then, by what is known now."""

from __future__ import annotations

from typing import Any

import numpy as np
from sqlalchemy import Connection, select, update

from sparingly.learning.determinism import one_thread
from sparingly.live.agent.agent_settings import AgentSettings
from sparingly.live.agent.observations import reasons_columns, stored
from sparingly.live.store import journal
from sparingly.live.store.tables import observations, tickets
from sparingly.live.tickets.ticket_records import ANNOUNCED, HELD
from sparingly.strategies.strategy import Strategy

AT_ONCE = 256
"""Tickets that are announced in one transaction."""


def announce(connection: Connection, head: int, now: float, settings: AgentSettings, strategy: Strategy) -> int:
    """Announce the oldest held tickets by the first model; how many there were.

    The strategy is only read: the journal needs no replay of it.
    """
    found = select(tickets.c.seq, observations.c.x).outerjoin(observations, observations.c.ticket == tickets.c.seq)
    rows = connection.execute(found.where(tickets.c.status == HELD).order_by(tickets.c.seq).limit(AT_ONCE)).all()
    seen = [row for row in rows if row.x]
    columns = dict(
        zip([row.seq for row in seen], _announcements([row.x for row in seen], settings, strategy), strict=True)
    )
    for row in rows:
        # What was erased meanwhile is announced as it would have been: nobody knows what it was.
        changed = columns.get(row.seq, {"why": "guess: what was observed is erased"})
        connection.execute(update(tickets).where(tickets.c.seq == row.seq).values(status=ANNOUNCED, **changed))
    events = [
        {"seq": head + 1 + i, "at": now, "kind": journal.ANNOUNCED, "ticket": row.seq} for i, row in enumerate(rows)
    ]
    journal.append(connection, events)
    return len(rows)


def _announcements(seen: list[bytes], settings: AgentSettings, strategy: Strategy) -> list[dict[str, Any]]:
    """The columns of tickets: the class that is expected to cost least."""
    if not seen:
        return []
    with one_thread():
        assessment = strategy.assess(np.stack([journal.vector(x, strategy.shape) for x in seen]))
        held = strategy.probabilities(assessment)
    expected = held @ settings.game.costs[: len(settings.classes)].T
    return [
        {
            "prediction": int(cheapest),
            "action": int(cheapest),
            "why": "it was held until there was a model",
            **stored(reasons_columns({"risk": float(costs[cheapest])}, shares)),
        }
        for cheapest, costs, shares in zip(expected.argmin(1), expected, held, strict=True)
    ]
