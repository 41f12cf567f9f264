"""Whether an agent's database is whole, and if not, what can be recovered."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import DBAPIError

from sparingly.learning import state_files
from sparingly.live.agent.errors import StoreError
from sparingly.live.store import snapshots as states
from sparingly.live.store.journal import (
    CLASS_ADDED,
    CORRECTED,
    COSTS_SET,
    ERASED,
    HEARD,
    NOT_ASKED,
    OBSERVED,
    PAID,
    QUALITY,
    REOPENED,
    TAUGHT,
    count_taught,
    taught_labels,
)
from sparingly.live.store.salvage import salvage
from sparingly.live.store.store import Store
from sparingly.live.store.tables import features_dropped_upto, journal, observations, snapshots, tickets
from sparingly.live.tickets.ticket_records import ANSWERED, SKIPPED


@dataclass
class IntegrityReport:
    """What was found; `problems` is empty if all is well."""

    problems: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems


def check(path: str | os.PathLike[str]) -> IntegrityReport:
    """Look at everything in an agent's database; changes nothing."""
    report = IntegrityReport()
    if "://" not in os.fspath(path):
        _check_pages(Path(path), report)
    try:
        store = Store.open(path, claim=False)
        try:
            with store.reading() as connection:
                for finding in (_journal, _features, _snapshots):
                    finding(connection, report)
        finally:
            store.close()
    except (StoreError, DBAPIError) as error:
        report.problems.append(str(error).splitlines()[0])
    except Exception as error:  # a damaged page may show anything
        report.problems.append(f"{os.fspath(path)} makes no sense: {type(error).__name__}: {error}".splitlines()[0])
    if not report.ok and "://" not in os.fspath(path):
        try:
            report.facts.append(str(salvage(path)))
        except StoreError as error:
            report.facts.append(str(error))
    return report


def _check_pages(path: Path, report: IntegrityReport) -> None:
    if not path.is_file():
        raise StoreError(f"{path} {'is not a file' if path.exists() else 'does not exist'}")
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
            for (line,) in connection.execute("PRAGMA integrity_check(5)"):
                if line != "ok":
                    report.problems += [f"{path}: {one}" for one in line.splitlines()]
    except sqlite3.DatabaseError as error:
        report.problems.append(f"{path}: {error}")


def _journal(connection: Connection, report: IntegrityReport) -> None:
    """The journal is numbered without gaps, and the tickets stand as it says."""
    first, last, count = connection.execute(
        select(func.min(journal.c.seq), func.max(journal.c.seq), func.count()).select_from(journal)
    ).one()
    labels = connection.execute(
        select(func.count()).select_from(tickets).where(tickets.c.status == ANSWERED)
    ).scalar_one()
    observed = connection.execute(select(func.count()).select_from(tickets)).scalar_one()
    report.facts.append(f"{count} events, {observed} tickets, {labels} of them labelled")
    if count and (first, last) != (1, count):
        report.problems.append(f"the journal has {count} events between {first} and {last}: {last - count} are missing")
    stands = {row.seq: row for row in connection.execute(select(tickets.c.seq, tickets.c.status, tickets.c.label))}
    states_in_journal = _states_in_journal(connection)
    for seq, (status, label) in states_in_journal.items():
        row = stands.pop(seq, None)
        if row is None:
            report.problems.append(f"the ticket observed at event {seq} is missing")
        elif status is not None and (row.status, row.label) != (status, label):
            report.problems.append(
                f"ticket {seq} is {row.status} ({row.label}) but the journal says {status} ({label})"
            )
    report.problems += [f"ticket {seq} is not in the journal" for seq in stands]


def _states_in_journal(connection: Connection) -> dict[int, tuple[str | None, int | None]]:
    """Each ticket's status and label by the journal; None where nothing has followed its observation."""
    found: dict[int, tuple[str | None, int | None]] = {}
    rows = connection.execute(
        select(journal.c.kind, journal.c.ticket, journal.c.label, journal.c.expert).order_by(journal.c.seq)
    )
    for kind, ticket, label, expert in rows:
        if kind in (CLASS_ADDED, COSTS_SET):
            continue
        if kind in (OBSERVED, REOPENED):
            found[ticket] = (None, None)
        elif kind == CORRECTED:
            found[ticket] = (ANSWERED, label)
        elif kind not in (ERASED, NOT_ASKED, TAUGHT, HEARD, PAID, *QUALITY) and (kind != SKIPPED or expert is None):
            found[ticket] = (kind, label)
    return found


def _features(connection: Connection, report: IntegrityReport) -> None:
    """Every observation after those whose features were dropped has its features."""
    missing = connection.execute(
        select(func.count())
        .select_from(tickets.outerjoin(observations, observations.c.ticket == tickets.c.seq))
        .where(tickets.c.seq > features_dropped_upto(connection), observations.c.ticket.is_(None))
    ).scalar_one()
    if missing:
        report.problems.append(f"the features of {missing} observations are missing")
    for event in taught_labels(connection, 0, 2**62):
        if not event.taught:
            report.problems.append(f"the labels taught at event {event.seq} are missing")
    if known := count_taught(connection):
        report.facts.append(f"{known} labels were taught")


def _snapshots(connection: Connection, report: IntegrityReport) -> None:
    whole = [position for position, _ in _whole(connection)]
    places = states.places(connection)
    for position in places:
        if position not in whole:
            report.problems.append(f"the snapshot at event {position} is damaged")
    if places and not whole and features_dropped_upto(connection):
        report.problems.append("no snapshot is whole: the learner cannot be continued")
    report.facts.append(f"{len(whole)} whole snapshots" + (f", the last at event {max(whole)}" if whole else ""))


def _whole(connection: Connection) -> Iterator[tuple[int, Any]]:
    for row in connection.execute(select(snapshots)):
        try:
            if states.is_whole(row):
                yield row.seq, state_files.load(row.state)
        except ValueError:
            continue
