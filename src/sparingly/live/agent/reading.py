"""What can be read of an agent: its questions, its history, how it is doing, and who has answered."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, and_, func, select

from sparingly.live.agent import answers, leases, observations
from sparingly.live.agent.agent_settings import Settings
from sparingly.live.agent.errors import StoreError
from sparingly.live.agent.ticket_records import ANSWERED, OPEN, Answered, Entry, Label, Statistics, Ticket, Waiting
from sparingly.live.statistics.performance import over_time, statistics
from sparingly.live.statistics.ticket_counts import TicketCounts
from sparingly.live.store import export
from sparingly.live.store.history import entries, entry_of
from sparingly.live.store.schema import tickets
from sparingly.live.store.store import Store


class Reading:
    """An open store, and what it tells; nothing here changes anything."""

    _store: Store
    _clock: Callable[[], float]
    _closed: str | None
    _ticket_counts: TicketCounts

    @property
    def classes(self) -> tuple[Label, ...]:
        return self._store.settings.classes

    @property
    def settings(self) -> Settings:
        return self._store.settings

    def pending(self, limit: int | None = None) -> list[Ticket]:
        """The open questions, oldest first."""
        with self._reading() as connection:
            found = leases.offered(connection, None, limit, self._clock())
        return [observations.ticket_of(row, self.classes) for row in found]

    def waiting(self, limit: int | None = None) -> list[Waiting]:
        """The same, with who has them now."""
        now = self._clock()
        with self._reading() as connection:
            found = leases.offered(connection, None, limit, now)
        return [
            Waiting(row.id, row.at, row.why, row.expert if row.until is not None and row.until >= now else None)
            for row in found
        ]

    def ticket(self, ticket_id: str) -> Entry:
        """One ticket as it stands."""
        with self._reading() as connection:
            return entry_of(answers.find(connection, ticket_id), self.settings, self.settings.game)

    def history(self, *, after: str | None = None, limit: int | None = None) -> list[Entry]:
        """Every ticket in order, as it stands now; `after` and `limit` to read it in pieces."""
        with self._reading() as connection:
            return list(entries(connection, self.settings, after=after, limit=limit))

    def recent(self, limit: int) -> list[Entry]:
        """The last tickets, newest first."""
        newest = select(tickets).order_by(tickets.c.seq.desc()).limit(limit)
        with self._reading() as connection:
            return [entry_of(row, self.settings, self.settings.game) for row in connection.execute(newest)]

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write the labelled observations to a .csv or .parquet file; returns how many there are."""
        with self._reading() as connection:
            return export.write(path, export.columns(self.settings), export.labelled(connection, self.settings))

    def stats(self) -> Statistics:
        """How it is doing: counts, costs, and how often its announcements are right."""
        with self._reading() as connection:
            self._ticket_counts.update(connection)
        return statistics(self._ticket_counts, self.settings.game)

    def over_time(self, points: int = 50) -> list[Statistics]:
        """The statistics up to each of so many points of its life."""
        with self._reading() as connection:
            self._ticket_counts.update(connection)
        return over_time(self._ticket_counts, self.settings.game, points)

    def experts(self) -> list[Answered]:
        """What each person has answered, whoever has answered most first."""
        agreed = func.count().filter(tickets.c.label == tickets.c.prediction)
        found = select(tickets.c.expert, func.count(), agreed, func.max(tickets.c.closed))
        query = found.where(tickets.c.status == ANSWERED).group_by(tickets.c.expert).order_by(func.count().desc())
        with self._reading() as connection:
            return [Answered(*row) for row in connection.execute(query)]

    def answered_since(self, expert: str, since: float) -> tuple[int, float]:
        """How many questions a person has answered since a time, and what they cost."""
        mine = and_(tickets.c.status == ANSWERED, tickets.c.expert == expert, tickets.c.closed >= since)
        found = select(tickets.c.action, tickets.c.asks, func.count()).where(mine)
        with self._reading() as connection:
            rows = connection.execute(found.group_by(tickets.c.action, tickets.c.asks)).all()
        prices = self.settings.costs
        cost = sum(count * max(prices[action]) for action, asks, count in rows if asks)
        return sum(count for _, _, count in rows), float(cost)

    def count_open(self) -> int:
        """How many questions are open."""
        with self._reading() as connection:
            query = select(func.count()).select_from(tickets).where(tickets.c.status == OPEN)
            return int(connection.execute(query).scalar_one())

    def count_events(self) -> int:
        """How much has happened: it grows with every observation, answer and change of decider."""
        with self._reading() as connection:
            return self._store.head(connection)

    def _check_open(self) -> None:
        if self._closed is not None:
            raise StoreError(f"the agent on {self._store.backend.name} is closed: {self._closed}")

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        self._check_open()
        with self._store.reading() as connection:
            yield connection
