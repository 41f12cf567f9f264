"""Snapshots of the learner: its state after a place in the journal, so that opening need not replay all of it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, and_, delete, exists, insert, select

from sparingly.learning import state_files
from sparingly.live.store.journal import rewrites
from sparingly.live.store.migrations import write_meta
from sparingly.live.store.tables import features_dropped_upto, journal, observations, snapshots, tickets


def write(connection: Connection, position: int, state: bytes, head: int) -> bool:
    """Keep the state after `position`, unless it is there or an answer before it has been taken back since."""
    there = connection.execute(select(snapshots.c.seq).where(snapshots.c.seq == position)).first()
    if there is not None or rewrites(connection, position, head):
        return False
    row = {"seq": position, "at": time.time(), "digest": _digest(state), "state": state}
    connection.execute(insert(snapshots), row)
    return True


def valid(connection: Connection) -> Iterator[tuple[int, dict[str, Any]]]:
    """The states that can be continued from, latest first; damaged ones are left out."""
    for position in places(connection):
        found = select(snapshots.c.digest, snapshots.c.state).where(snapshots.c.seq == position)
        row = connection.execute(found).first()
        if row is not None and is_whole(row):
            yield position, state_files.load(row.state)


def is_whole(row: Any) -> bool:
    """Whether a snapshot is what was written."""
    return _digest(row.state) == bytes(row.digest)


def places(connection: Connection) -> list[int]:
    """Where there are snapshots that no later event has made stale, latest first."""
    later = journal.alias()
    stale = exists().where(and_(later.c.voids <= snapshots.c.seq, later.c.seq > snapshots.c.seq))
    rows = connection.execute(select(snapshots.c.seq).where(~stale).order_by(snapshots.c.seq.desc()))
    return [int(row.seq) for row in rows]


def thin(connection: Connection, head: int, keep: int) -> None:
    """Keep few snapshots, at doubling distances, and only the features that a replay or an export may need.

    The two latest stay, in case one is damaged; of the rest the oldest for each doubling of the distance to the head,
    back to the first that is more than `keep` events old. Features of unlabelled observations before that are dropped.
    """
    found = places(connection)
    kept, ages = set(found[:2]), set()
    for place in reversed(found):
        age = (head - place).bit_length()
        if head - place <= keep and age not in ages:
            kept.add(place)
            ages.add(age)
    too_old = [place for place in found if place not in kept and head - place > keep]
    if too_old:
        kept.add(max(too_old))
    connection.execute(delete(snapshots).where(snapshots.c.seq.not_in(kept)))
    oldest = min(kept, default=0)
    if too_old and oldest > features_dropped_upto(connection):
        _drop_features(connection, oldest)


def _drop_features(connection: Connection, upto: int) -> None:
    """Drop those of tickets that are closed without a label, but for what an event after `upto` still needs.

    An answer that came late, and may be wrong, is such an event: a replay from `upto` on meets it, and its observation
    lies before. They are dropped once all events of the ticket lie before.
    """
    kept = select(tickets.c.seq).where(
        and_(
            tickets.c.seq == observations.c.ticket,
            tickets.c.status.in_(["open", "consulting", "answered", "skipped", "unknown", "planted"]),
        )
    )
    passed = and_(journal.c.seq > features_dropped_upto(connection), journal.c.seq <= upto)
    of_these = observations.c.ticket.in_(select(journal.c.ticket).where(passed))
    needed = observations.c.ticket.in_(
        select(journal.c.ticket).where(and_(journal.c.seq > upto, journal.c.ticket.is_not(None)))
    )
    connection.execute(delete(observations).where(and_(of_these, ~needed, ~exists(kept))))
    write_meta(connection, "floor", upto)


def _digest(state: bytes) -> bytes:
    return hashlib.blake2b(state, digest_size=16).digest()
