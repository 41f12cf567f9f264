"""Labels that are there already: checked, and written as one event, which is learned with one training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, select

from sparingly.live.agent.agent_settings import AgentSettings
from sparingly.live.agent.errors import AgentError, ConflictError, shortened
from sparingly.live.agent.features import Vector
from sparingly.live.agent.observations import checked_id
from sparingly.live.store import journal
from sparingly.live.store.journal import bulk_insert
from sparingly.live.store.tables import taught
from sparingly.live.tickets.ticket_records import Label
from sparingly.live.training.strategy_maker import maker
from sparingly.strategies.strategy import Strategy


@dataclass(frozen=True, slots=True)
class KnownLabel:
    """An observation whose class is known, under the caller's own id if there is one."""

    x: Vector
    label: int
    id: str | None


def class_numbers(classes: Sequence[Label], labels: Any, rows: int) -> list[int]:
    """The number of each label's class, one a row.

    >>> class_numbers(["cat", "dog"], ["dog", "cow"], 2)
    Traceback (most recent call last):
    ...
    sparingly.live.agent.errors.AgentError: labels[1] is 'cow': the classes are cat, dog
    """
    if isinstance(labels, str | bytes) or not hasattr(labels, "__len__"):
        raise AgentError(f"labels is {shortened(labels)}: give a list, one for each observation")
    if len(labels) != rows:
        raise AgentError(f"there are {len(labels)} labels for {rows} observations")
    numbers = {(type(name), name): number for number, name in enumerate(classes)}
    found = []
    for i, given in enumerate(labels):
        label = given.item() if isinstance(given, np.generic) else given
        number = numbers.get((type(label), label)) if isinstance(label, str | int | float) else None
        if number is None:
            raise AgentError(f"labels[{i}] is {shortened(label)}: the classes are {', '.join(map(str, classes))}")
        found.append(number)
    return found


def known_labels(X: Sequence[Vector], labels: Sequence[int], ids: Sequence[Any] | None) -> list[KnownLabel]:
    """Observations with their classes and ids; the same id twice stands for the same, and is taken once."""
    if ids is not None and len(ids) != len(X):
        raise AgentError(f"there are {len(ids)} ids for {len(X)} observations")
    rows: list[KnownLabel] = []
    by_id: dict[str, KnownLabel] = {}
    for i, (x, label) in enumerate(zip(X, labels, strict=True)):
        one = KnownLabel(x, label, checked_id(ids[i]) if ids is not None else None)
        same = by_id.get(one.id) if one.id is not None else None
        if same is not None:
            _check_same(one, same.x.astype("<f4").tobytes(), same.label)
            continue
        rows.append(one)
        if one.id is not None:
            by_id[one.id] = one
    return rows


def not_taught_yet(connection: Connection, rows: Sequence[KnownLabel]) -> list[KnownLabel]:
    """Those whose ids are new; an id that stands for another observation or another class is an error."""
    wanted = [row.id for row in rows if row.id is not None]
    there: dict[str, Any] = {}
    for start in range(0, len(wanted), 500):
        found = connection.execute(select(taught).where(taught.c.id.in_(wanted[start : start + 500])))
        there.update({row.id: row for row in found})
    for row in rows:
        if row.id in there:
            _check_same(row, bytes(there[row.id].x), there[row.id].label)
    return [row for row in rows if row.id not in there]


def write(connection: Connection, seq: int, now: float, rows: Sequence[KnownLabel]) -> None:
    """Append the event, and what it teaches."""
    journal.append(connection, [{"seq": seq, "at": now, "kind": journal.TAUGHT, "ticket": seq}])
    taught_rows = [
        {"event": seq, "place": i, "id": row.id, "label": row.label, "x": row.x.astype("<f4").tobytes()}
        for i, row in enumerate(rows)
    ]
    bulk_insert(connection, taught, taught_rows)


def check_teachable(settings: AgentSettings, instance: Strategy | None, row: KnownLabel) -> None:
    """Let a strategy of its own learn one label: what it refuses is refused before anything is written."""
    try:
        maker(settings, instance)().teach(row.x[None], [row.label])
    except ValueError as error:
        raise AgentError(str(error)) from None


def _check_same(row: KnownLabel, x: bytes, label: int) -> None:
    if x != row.x.astype("<f4").tobytes():
        raise ConflictError(f"id {row.id!r} was taught with other features")
    if label != row.label:
        raise ConflictError(f"id {row.id!r} was taught as another class")
