"""Counts of all tickets by what they have in common, kept up to date: only where something happened is counted again.

Tickets are counted in blocks, by their places in the journal. The journal tells which tickets have changed since the
last look, and only their blocks are read again. There are never more than `MOST` blocks: as the journal grows, each
takes in its neighbour.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sqlalchemy import Connection, Double, and_, case, cast, func, select

from sparingly.live.store.journal import CLASS_ADDED, count_taught
from sparingly.live.store.tables import journal, tickets
from sparingly.live.tickets.ticket_records import ANSWERED, PLANTED

MOST = 1024

KNOWN, DRAWN, ANNOUNCED, CERTAIN = "known", "drawn", "announced", "certain"
"""What is known of the probability that a ticket is a question: the strategy gave it; it was drawn at random with a
probability that the counts estimate; it was announced where it might have been drawn; it was certain to be asked."""


class TicketGroup(NamedTuple):
    """Tickets that have the first six in common, and sums over those of them that are labelled questions."""

    status: str
    asks: bool
    action: int
    prediction: int
    label: int | None
    chance: str
    number: int
    weight: float
    """The sum of (1 - p) / p, where p is the chance to be asked: the announcements that they stand for."""
    squares: float
    """The sum of the squares of (1 - p) / p."""
    stands_for: float
    """The sum of 1 / p: the observations that they stand for."""
    paid: float
    """The sum of what experts that were called have cost."""
    at: float
    """When the last of them came."""


KEYS = 6


class TicketCounts:
    """The groups of an agent's tickets."""

    def __init__(self) -> None:
        self.taught = 0
        """Labels that nobody was asked for."""
        self._size = 1
        self._seen = 0
        self._blocks: dict[int, list[TicketGroup]] = {}
        self._lock = threading.Lock()

    def update(self, connection: Connection) -> None:
        """Count what has happened since the last time."""
        head = int(connection.execute(select(func.max(journal.c.seq))).scalar() or 0)
        with self._lock:
            if head <= self._seen:
                return
            if self._seen and _classes_added(connection, self._seen, head):
                self._blocks, self._seen = {}, 0  # the questions have other numbers now
            while head > MOST * self._size:
                self._grow()
            found: dict[int, list[TicketGroup]] = {}
            for first, last in runs(self._touched(connection, head)):
                found.update({block: [] for block in range(first, last + 1)})
                for block, group in _counted(connection, self._size, first, last):
                    found[block].append(group)
            self._blocks.update(found)
            self.taught = count_taught(connection)
            self._seen = head

    def total(self) -> list[TicketGroup]:
        """All tickets."""
        with self._lock:
            return merged(group for groups in self._blocks.values() for group in groups)

    def parts(self, count: int) -> list[list[TicketGroup]]:
        """All tickets in at most so many parts of about the same length, in the order in which they came."""
        with self._lock:
            blocks = {block: groups for block, groups in self._blocks.items() if groups}
        length = math.ceil((max(blocks, default=0) + 1) / count)
        parts: dict[int, list[TicketGroup]] = {}
        for block in sorted(blocks):
            parts.setdefault(block // length, []).extend(blocks[block])
        return [merged(groups) for groups in parts.values()]

    def _touched(self, connection: Connection, head: int) -> list[int]:
        if not self._seen:
            return list(range((head - 1) // self._size + 1))
        since = and_(journal.c.seq > self._seen, journal.c.seq <= head)
        found = select(((journal.c.ticket - 1) // self._size).label("block")).where(since).distinct()
        return sorted(int(row.block) for row in connection.execute(found))

    def _grow(self) -> None:
        """Each block takes in its neighbour."""
        pairs: dict[int, list[TicketGroup]] = {}
        for block, groups in self._blocks.items():
            pairs.setdefault(block // 2, []).extend(groups)
        self._blocks = {block: merged(groups) for block, groups in pairs.items()}
        self._size *= 2


def _classes_added(connection: Connection, after: int, upto: int) -> bool:
    added = and_(journal.c.seq > after, journal.c.seq <= upto, journal.c.kind == CLASS_ADDED)
    return connection.execute(select(journal.c.seq).where(added).limit(1)).first() is not None


def merged(groups: Iterable[TicketGroup]) -> list[TicketGroup]:
    """Groups of the same kind put together."""
    sums: dict[tuple[object, ...], TicketGroup] = {}
    for group in groups:
        key = group[:KEYS]
        other = sums.get(key)
        if other is not None:
            group = other._replace(
                number=other.number + group.number,
                weight=other.weight + group.weight,
                squares=other.squares + group.squares,
                stands_for=other.stands_for + group.stands_for,
                paid=other.paid + group.paid,
                at=max(other.at, group.at),
            )
        sums[key] = group
    return list(sums.values())


def runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Rising numbers as runs without gaps.

    >>> list(runs([1, 2, 3, 7, 9, 10]))
    [(1, 3), (7, 7), (9, 10)]
    """
    first = last = None
    for number in numbers:
        if first is None or last is None or number != last + 1:
            if first is not None and last is not None:
                yield first, last
            first = number
        last = number
    if first is not None and last is not None:
        yield first, last


def _counted(connection: Connection, size: int, first: int, last: int) -> Iterator[tuple[int, TicketGroup]]:
    """The groups of tickets, each with the number of its block, for the blocks `first` to `last`."""
    t = tickets.c
    known = case((t.chance.is_not(None), KNOWN), (t.audit, DRAWN), (~t.wanted, ANNOUNCED), else_=CERTAIN)
    chance = case((t.chance.is_not(None), t.chance), (t.audit, None), (t.asks, 1.0), else_=None)
    labelled = and_(t.asks, t.status == ANSWERED, t.label.is_not(None), chance > 0)
    one = (
        select(
            ((t.seq - 1) // size).label("block"),
            *(t.status, t.asks, t.action, t.prediction, t.label, known.label("chance"), t.at),
            cast(case((labelled, (1.0 - chance) / chance), else_=0.0), Double).label("weight"),
            cast(case((labelled, 1.0 / chance), else_=0.0), Double).label("stands_for"),
            func.coalesce(t.paid, 0.0).label("paid"),
        )
        .where(and_(t.seq > first * size, t.seq <= (last + 1) * size, t.status != PLANTED))
        .subquery()
        .c
    )
    keys = [one.block, one.status, one.asks, one.action, one.prediction, one.label, one.chance]
    squares = func.sum(one.weight * one.weight)
    sums = [func.count(), func.sum(one.weight), squares, func.sum(one.stands_for), func.sum(one.paid), func.max(one.at)]
    for block, *group in connection.execute(select(*keys, *sums).group_by(*keys)):
        yield int(block), TicketGroup(*group)
