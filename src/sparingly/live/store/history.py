"""The history: every ticket in order, as it stands now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, select

from sparingly.games import Game
from sparingly.live.agent.agent_settings import Settings
from sparingly.live.agent.answers import find, labelling_action
from sparingly.live.agent.ticket_records import Entry, Label
from sparingly.live.store.schema import tickets


def entries(
    connection: Connection, settings: Settings, *, after: str | None = None, limit: int | None = None
) -> Iterator[Entry]:
    """The tickets from the beginning, or after one of them."""
    game = settings.game
    query = select(tickets).order_by(tickets.c.seq).limit(limit)
    if after is not None:
        query = query.where(tickets.c.seq > find(connection, after).seq)
    for row in connection.execution_options(yield_per=1000).execute(query):
        yield entry_of(row, settings, game)


def entry_of(row: Any, settings: Settings, game: Game) -> Entry:
    """A ticket's row as it is shown."""
    label: Label | None = None
    if row.label is not None:
        label = settings.classes[row.label]
    elif row.symbol is not None:
        asked = row.action if game.informative_mask[row.action] else labelling_action(game)
        label = str(game.symbols(asked)[row.symbol])
    return Entry(
        id=row.id,
        prediction=settings.classes[row.prediction],
        asks=bool(row.asks),
        action=row.action,
        label=label,
        status=row.status,
        why=row.why,
        at=row.at,
        expert=row.expert if row.closed is not None else None,
        closed=row.closed,
    )
