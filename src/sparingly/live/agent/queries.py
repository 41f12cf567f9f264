"""What can be read of an agent: its open questions, its history, how it is doing, and who has answered."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Text, and_, case, cast, exists, func, or_, select

from sparingly.games import Game
from sparingly.live.agent import observations
from sparingly.live.agent.agent_settings import AgentSettings
from sparingly.live.agent.errors import AgentError
from sparingly.live.consultation import expert_calls
from sparingly.live.statistics.opinion_counts import opinion_counts
from sparingly.live.statistics.outlook import outlook
from sparingly.live.statistics.performance import over_time, statistics
from sparingly.live.statistics.ticket_counts import TicketCounts
from sparingly.live.store.journal import vector
from sparingly.live.store.store import Store
from sparingly.live.store.tables import journal, payloads, tickets
from sparingly.live.store.tables import observations as kept
from sparingly.live.tickets import leases, ticket_lifecycle
from sparingly.live.tickets.ticket_records import (
    ANSWERED,
    HELD,
    OPEN,
    PLANTED,
    Answered,
    Entry,
    ExpertCall,
    Label,
    Outlook,
    Statistics,
    Ticket,
    TicketDetails,
    TicketEvent,
    Waiting,
    read_payload,
)
from sparingly.strategies.forecast import Forecast


class AgentQueries:
    """The queries of an agent; they change nothing.

    Parameters
    ----------
    reading
        Opens a transaction that reads.
    clock
        The time in seconds.
    """

    def __init__(
        self, store: Store, reading: Callable[[], AbstractContextManager[Connection]], clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._reading = reading
        self._clock = clock
        self._ticket_counts = TicketCounts()
        self._times: dict[int, float] = {}
        """When rounds were at which something was noticed."""

    @property
    def _settings(self) -> AgentSettings:
        return self._store.settings

    def pending(self, limit: int | None) -> list[Ticket]:
        with self._reading() as connection:
            found = leases.offered(connection, None, limit, self._clock())
        return [observations.ticket_of(row, self._settings.classes) for row in found]

    def waiting(self, limit: int | None) -> list[Waiting]:
        now = self._clock()
        with self._reading() as connection:
            found = leases.offered(connection, None, limit, now)
        return [
            Waiting(row.id, row.at, row.why, row.expert if row.until is not None and row.until >= now else None)
            for row in found
        ]

    def ticket(self, ticket_id: str) -> Entry:
        with self._reading() as connection:
            return entry_of(ticket_lifecycle.find(connection, ticket_id), self._settings, self._settings.game)

    def calls(self, ticket_id: str) -> list[ExpertCall]:
        with self._reading() as connection:
            return expert_calls.of_ticket(connection, ticket_lifecycle.find(connection, ticket_id).seq, self._settings)

    def wait(self, ticket_id: str, timeout: float | None, while_: Sequence[str]) -> Entry:
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = 0.005
        while True:
            entry = self.ticket(ticket_id)
            if entry.status not in while_ or (deadline is not None and time.monotonic() >= deadline):
                return entry
            time.sleep(pause)
            pause = min(0.2, 1.5 * pause)

    def history(self, after: str | None, limit: int | None) -> list[Entry]:
        query = select(tickets).where(tickets.c.status != PLANTED).order_by(tickets.c.seq).limit(limit)
        with self._reading() as connection:
            if after is not None:
                query = query.where(tickets.c.seq > ticket_lifecycle.find(connection, after).seq)
            return list(self._entries(connection.execution_options(yield_per=1000), query))

    def changes(self, since: int, limit: int) -> tuple[list[Entry], int]:
        last = func.max(journal.c.seq).label("last")
        moved = select(journal.c.ticket, last).where(journal.c.seq > since).group_by(journal.c.ticket)
        moved = moved.order_by(last).limit(limit)
        with self._reading() as connection:
            when = {int(row.ticket): int(row.last) for row in connection.execute(moved)}
            shown = and_(tickets.c.seq.in_(when), tickets.c.status != PLANTED)
            entries = {row.seq: row for row in connection.execute(select(tickets).where(shown))}
        settings = self._settings
        found = [entry_of(entries[seq], settings, settings.game) for seq in when if seq in entries]
        return found, max(when.values(), default=since)

    def events_since(self, since: int, limit: int) -> list[tuple[int, TicketEvent, Entry | None]]:
        """What happened after an event, in order: its number, what it was, and the ticket as it stands now."""
        settings, game = self._settings, self._settings.game
        planted = exists().where(and_(tickets.c.seq == journal.c.ticket, tickets.c.status == PLANTED))
        happened = select(journal).where(and_(journal.c.seq > since, ~planted)).order_by(journal.c.seq).limit(limit)
        with self._reading() as connection:
            events = connection.execute(happened).all()
            wanted = tickets.c.seq.in_({event.ticket for event in events})
            rows = {row.seq: entry_of(row, settings, game) for row in connection.execute(select(tickets).where(wanted))}
        described = (_event_of(event, settings.classes) for event in events)
        return [(int(event.seq), one, rows.get(event.ticket)) for event, one in zip(events, described, strict=True)]

    def recent(self, limit: int) -> list[Entry]:
        with self._reading() as connection:
            found = select(tickets).where(tickets.c.status != PLANTED).order_by(tickets.c.seq.desc()).limit(limit)
            return list(self._entries(connection, found))

    def search(
        self,
        *,
        text: str | None = None,
        status: str | None = None,
        expert: str | None = None,
        label: Label | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[Entry]:
        """Tickets, newest first, of a status, an expert, a class; `text` is in the id or in what a person sees.

        The class is what was answered, or the prediction where nothing was; `before` a ticket's id gives older ones.
        """
        query = select(tickets).order_by(tickets.c.seq.desc()).limit(limit)
        query = query.where(tickets.c.status == status if status is not None else tickets.c.status != PLANTED)
        if expert is not None:
            query = query.where(tickets.c.expert == expert)
        if label is not None:
            query = query.where(func.coalesce(tickets.c.label, tickets.c.prediction) == self._number_of(label))
        with self._reading() as connection:
            if text:
                query = query.where(contains(text, connection.dialect.name))
            if before is not None:
                query = query.where(tickets.c.seq < ticket_lifecycle.find(connection, before).seq)
            return list(self._entries(connection, query))

    def details(self, ticket_id: str) -> TicketDetails:
        """A ticket with what a person sees of it, as far as it was not erased, and everything that happened to it."""
        classes, now = self._settings.classes, self._clock()
        with self._reading() as connection:
            row = ticket_lifecycle.find(connection, ticket_id)
            seen = connection.execute(select(payloads).where(payloads.c.ticket == row.seq)).first()
            x = connection.execute(select(kept.c.x).where(kept.c.ticket == row.seq)).scalar()
            happened = select(journal).where(journal.c.ticket == row.seq).order_by(journal.c.seq)
            events = [_event_of(event, classes) for event in connection.execute(happened)]
        return TicketDetails(
            entry=entry_of(row, self._settings, self._settings.game),
            payload=None if seen is None else read_payload(seen),
            features=tuple(vector(x, (-1,)).tolist()) if x else None,
            holder=row.expert if row.status == OPEN and row.until is not None and row.until >= now else None,
            events=tuple(events),
        )

    def _number_of(self, label: Label) -> int:
        """The number of a class; a command line or a page knows only its text."""
        names = [str(name) for name in self._settings.classes]
        if str(label) not in names:
            raise AgentError(f"there is no class {str(label)[:60]!r}")
        return names.index(str(label))

    def stats(self) -> Statistics:
        with self._reading() as connection:
            self._ticket_counts.update(connection)
            called = expert_calls.bill(connection) if self._settings.experts else {}
            beside = opinion_counts(connection, self._settings.game)
        for name, price in beside.bill.items():
            called[name] = called.get(name, 0.0) + price
        return replace(statistics(self._ticket_counts, self._settings.game, called), **beside.numbers)

    def outlook(self, forecast: Forecast | None) -> Outlook | None:
        """What asking on would save, by a strategy's forecast and the pace of the last tickets."""
        if forecast is None:
            return None
        observed = select(tickets.c.at, tickets.c.asks).where(tickets.c.status != PLANTED)
        last = observed.order_by(tickets.c.seq.desc()).limit(1000)
        with self._reading() as connection:
            return outlook(forecast, [(row.at, bool(row.asks)) for row in connection.execute(last)][::-1])

    def times_of(self, changes: Sequence[tuple[int, str | None]]) -> list[tuple[float, str | None]]:
        """When changes were noticed that a strategy has by their rounds; each is looked up once."""
        for clock, _ in changes:
            if clock not in self._times:
                observed = select(tickets.c.at).where(tickets.c.status != PLANTED).order_by(tickets.c.seq)
                found = observed.offset(max(0, clock - 1)).limit(1)
                with self._reading() as connection:
                    at = connection.execute(found).scalar()
                if at is None:
                    continue
                self._times[clock] = float(at)
        return [(self._times[clock], expert) for clock, expert in changes if clock in self._times]

    def over_time(self, points: int) -> list[Statistics]:
        with self._reading() as connection:
            self._ticket_counts.update(connection)
        return over_time(self._ticket_counts, self._settings.game, points)

    def experts(self) -> list[Answered]:
        agreed = func.count().filter(tickets.c.label == tickets.c.prediction)
        found = select(tickets.c.expert, func.count(), agreed, func.max(tickets.c.closed))
        query = found.where(tickets.c.status == ANSWERED).group_by(tickets.c.expert).order_by(func.count().desc())
        with self._reading() as connection:
            return [Answered(*row) for row in connection.execute(query)]

    def answered_since(self, expert: str, since: float) -> tuple[int, float]:
        own = and_(tickets.c.status == ANSWERED, tickets.c.expert == expert, tickets.c.closed >= since)
        found = select(tickets.c.action, tickets.c.asks, func.count()).where(own)
        with self._reading() as connection:
            rows = connection.execute(found.group_by(tickets.c.action, tickets.c.asks)).all()
        prices = self._settings.costs
        cost = sum(count * max(prices[action]) for action, asks, count in rows if asks)
        return sum(count for _, _, count in rows), float(cost)

    def count_open(self) -> int:
        with self._reading() as connection:
            query = select(func.count()).select_from(tickets).where(tickets.c.status == OPEN)
            return int(connection.execute(query).scalar_one())

    def count_events(self) -> int:
        with self._reading() as connection:
            return self._store.head(connection)

    def _entries(self, connection: Connection, query: Any) -> Iterator[Entry]:
        game = self._settings.game
        return (entry_of(row, self._settings, game) for row in connection.execute(query))


def _event_of(event: Any, classes: Sequence[Label]) -> TicketEvent:
    return TicketEvent(event.at, event.kind, event.expert, None if event.label is None else classes[event.label])


def contains(text: str, dialect: str) -> ColumnElement[bool]:
    """Whether a ticket's id, or the text or fields that a person sees, have this in them, in capitals or not."""
    if dialect == "postgresql":
        words: ColumnElement[str] = func.convert_from(payloads.c.content, "UTF8")
    else:
        words = cast(payloads.c.content, Text)
    seen = func.lower(case((payloads.c.kind != "image", words), else_=""))
    # Fields are kept as JSON, which spells some letters in its own way.
    spellings = {text.lower(), json.dumps(text.lower())[1:-1]}
    within = or_(*(seen.contains(one, autoescape=True) for one in spellings))
    found = exists().where(and_(payloads.c.ticket == tickets.c.seq, within))
    return or_(func.lower(tickets.c.id).contains(text.lower(), autoescape=True), found)


def entry_of(row: Any, settings: AgentSettings, game: Game) -> Entry:
    """A ticket's row as it is shown."""
    label: Label | None = None
    if row.label is not None:
        label = settings.classes[row.label]
    elif row.symbol is not None:
        asked = row.action if game.informative_mask[row.action] else ticket_lifecycle.labelling_action(game)
        label = str(game.symbols(asked)[row.symbol])
    return Entry(
        id=row.id,
        prediction=None if row.status == HELD else settings.classes[row.prediction],
        asks=bool(row.asks),
        action=row.action,
        label=label,
        status=row.status,
        **observations.reasons_of(row, settings.classes),
        at=row.at,
        expert=row.expert if row.closed is not None else None,
        closed=row.closed,
        erased=getattr(row, "erased", None),
        asked=observations.asked_of(row),
        paid=getattr(row, "paid", None) or 0.0,
    )
