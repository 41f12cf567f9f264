"""The journal: everything that happened, in order, and how it is read back to a learner."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np
from sqlalchemy import Connection, Dialect, Table, and_, bindparam, func, or_, select

from sparingly.live.agent.features import Vector
from sparingly.live.store.migrations import meta
from sparingly.live.store.sqlite import is_sqlite, run
from sparingly.live.store.tables import calls, journal, observations, taught

OBSERVED, CORRECTED, REOPENED, ERASED, TAUGHT = "observed", "corrected", "reopened", "erased", "taught"
NOT_ASKED = "not asked"
CLASS_ADDED = "class added"
HEARD, PAID = "heard", "paid"
ANNOUNCED, COSTS_SET = "announced", "costs set"
"""The kinds of event; the others are the statuses that they lead to. "heard": an expert who may be wrong has answered,
or has not, and the strategy has decided again; "paid": a call came too late for that, and was paid; "announced": a
ticket that was held until there was a model is announced."""

PLANTED, KNOWN_ANSWER = "planted", "known answer"
SECOND_OPINION, OPINION_BACK = "second opinion", "opinion taken back"
ADJUDICATED = "adjudicated"
QUALITY = (KNOWN_ANSWER, SECOND_OPINION, OPINION_BACK, ADJUDICATED)
"""What people say beside the answer that stands; it teaches nothing, and changes no ticket's status."""

ADDED_CLASSES = "added_classes"
"""The key of the classes that were added in the table `meta`."""

CHANGED_COSTS = "changed_costs"
"""The key of the costs that were set."""

CHUNK = 512


@dataclass(frozen=True, slots=True)
class Event:
    """What a learner needs to know of one event; `x` is None if the features are no longer kept, empty if erased."""

    seq: int
    kind: str
    ticket: int
    action: int | None
    symbol: int | None
    voids: int | None
    x: bytes | None
    taught: tuple[tuple[bytes, int], ...] = ()
    """Of labels that nobody was asked for: the features and the class of each."""
    new_class: tuple[str, float] | None = None
    """The class that was added, and what a mistake about it costs."""
    new_costs: tuple[tuple[float, ...], ...] | None = None
    """The costs that count from here on, [action, outcome]."""
    heard: tuple[tuple[int, int | None], ...] = ()
    """Of an answer that may be wrong: (number of the expert, symbol or None) of this and of those before it."""

    @property
    def teaches(self) -> bool:
        return self.symbol is not None and self.kind != HEARD


_EVENTS = select(
    journal.c.seq,
    journal.c.kind,
    journal.c.ticket,
    journal.c.action,
    journal.c.symbol,
    journal.c.voids,
    observations.c.x,
).outerjoin(observations, observations.c.ticket == journal.c.ticket)


_HEARD = (
    select(calls.c.ticket, calls.c.number, calls.c.symbol, calls.c.event)
    .where(and_(calls.c.ticket.in_(bindparam("numbers", expanding=True)), calls.c.event.is_not(None)))
    .order_by(calls.c.ticket, calls.c.place)
)


def append(connection: Connection, events: Sequence[Mapping[str, Any]]) -> None:
    """Write events, whose numbers the caller has chosen from the head on."""
    columns = {"action": None, "symbol": None, "label": None, "voids": None, "expert": None}
    bulk_insert(connection, journal, [{**columns, **event} for event in events])


def events(connection: Connection, after: int, upto: int) -> list[Event]:
    """The next events for a learner, in order, at most a chunk of them."""
    found = _EVENTS.where(and_(journal.c.seq > after, journal.c.seq <= upto)).order_by(journal.c.seq).limit(CHUNK)
    return _completed_all(connection, connection.execute(found).all())


def taught_labels(connection: Connection, after: int, upto: int) -> list[Event]:
    """The events that teach labels nobody was asked for."""
    within = and_(journal.c.seq > after, journal.c.seq <= upto, journal.c.kind == TAUGHT)
    found = connection.execute(_EVENTS.where(within).order_by(journal.c.seq)).all()
    return [_completed(connection, Event(*row)) for row in found]


def count_taught(connection: Connection) -> int:
    """How many labels are known that nobody was asked for."""
    return int(connection.execute(select(func.count()).select_from(taught)).scalar_one())


def teaching(connection: Connection, after: int, upto: int) -> list[Event]:
    """The answers and corrections among the events, labels nobody was asked for, and classes that were added.

    Answers that may be wrong come alone, without what was heard before them.
    """
    tells = or_(journal.c.symbol.is_not(None), journal.c.kind.in_([TAUGHT, CLASS_ADDED, COSTS_SET, NOT_ASKED]))
    within = and_(journal.c.seq > after, journal.c.seq <= upto, tells)
    found = connection.execute(_EVENTS.where(within).order_by(journal.c.seq)).all()
    return [_completed(connection, Event(*row)) for row in found]


def count_observed(connection: Connection, after: int, upto: int) -> int:
    """How many observations came."""
    within = and_(journal.c.seq > after, journal.c.seq <= upto, journal.c.kind == OBSERVED)
    return int(connection.execute(select(func.count()).where(within)).scalar_one())


def voided(connection: Connection, after: int, upto: int) -> frozenset[int]:
    """The numbers, above `after`, of the answers that an event up to `upto` has taken back."""
    rows = connection.execute(select(journal.c.voids).where(and_(journal.c.voids > after, journal.c.seq <= upto)))
    return frozenset(int(row.voids) for row in rows)


def rewrites(connection: Connection, position: int, upto: int) -> bool:
    """Whether an event after `position` takes back something at or before it."""
    found = select(journal.c.seq).where(
        and_(journal.c.voids <= position, journal.c.seq > position, journal.c.seq <= upto)
    )
    return connection.execute(found.limit(1)).first() is not None


def added_classes(connection: Connection) -> dict[int, tuple[str, float]]:
    """The classes that were added, by the event, in order: the name, and what a mistake about it costs."""
    value = connection.execute(select(meta.c.value).where(meta.c.key == ADDED_CLASSES)).scalar()
    return {} if value is None else {int(seq): (str(name), float(cost)) for seq, name, cost in json.loads(value)}


def changed_costs(connection: Connection) -> dict[int, tuple[tuple[float, ...], ...]]:
    """The costs that were set after the agent was made, by the event, in order."""
    value = connection.execute(select(meta.c.value).where(meta.c.key == CHANGED_COSTS)).scalar()
    return {} if value is None else {int(seq): tuple(map(tuple, costs)) for seq, costs in json.loads(value)}


def _heard(connection: Connection, found: Sequence[Event]) -> dict[int, tuple[tuple[int, int | None], ...]]:
    """What was heard of a ticket up to each event that is an answer, by event."""
    events = [event for event in found if event.kind == HEARD]
    if not events:
        return {}
    rows = connection.execute(_HEARD, {"numbers": [event.ticket for event in events]}).all()
    by_ticket: dict[int, list[Any]] = {}
    for row in rows:
        by_ticket.setdefault(row.ticket, []).append(row)
    return {
        event.seq: tuple((int(r.number), r.symbol) for r in by_ticket[event.ticket] if r.event <= event.seq)
        for event in events
    }


def _completed_all(connection: Connection, rows: Sequence[Any]) -> list[Event]:
    events = [Event(*row) for row in rows]
    heard = _heard(connection, events)
    return [
        replace(event, heard=heard[event.seq]) if event.kind == HEARD else _completed(connection, event)
        for event in events
    ]


def _completed(connection: Connection, event: Event) -> Event:
    if event.kind == CLASS_ADDED:
        return replace(event, new_class=added_classes(connection)[event.seq])
    if event.kind == COSTS_SET:
        return replace(event, new_costs=changed_costs(connection)[event.seq])
    if event.kind != TAUGHT:
        return event
    query = select(taught.c.x, taught.c.label).where(taught.c.event == event.seq).order_by(taught.c.place)
    return replace(event, taught=tuple((bytes(x), int(label)) for x, label in connection.execute(query)))


def vector(data: bytes, shape: tuple[int, ...]) -> Vector:
    """Features as they were stored."""
    return np.frombuffer(data, dtype="<f4").reshape(shape).astype(np.float32)


def bulk_insert(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows that all name the same columns, two or more; their values go to the driver as they are."""
    if not rows:
        return
    names = tuple(rows[0])
    values = itemgetter(*names)
    insert_rows(connection, table, names, [values(row) for row in rows])


def insert_rows(connection: Connection, table: Table, names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    """Insert rows of values of these columns."""
    statement = _insert_statement(table, names, connection.dialect)
    if is_sqlite(connection):
        run(connection, statement, rows)
    elif rows:
        connection.exec_driver_sql(statement, rows)


@lru_cache(maxsize=64)
def _insert_statement(table: Table, names: tuple[str, ...], dialect: Dialect) -> str:
    quoted = [dialect.identifier_preparer.quote(name) for name in (table.name, *names)]
    mark = "?" if dialect.paramstyle == "qmark" else "%s"
    return f"INSERT INTO {quoted[0]} ({', '.join(quoted[1:])}) VALUES ({', '.join([mark] * len(names))})"
