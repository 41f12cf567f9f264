"""Known-answer items, elsewhere called gold questions: planted to see how often people are right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sparingly.live.agent import observations, teaching
from sparingly.live.agent.errors import ConflictError
from sparingly.live.agent.features import digest
from sparingly.live.agent.observations import Observation, ObserveCall
from sparingly.live.store import audit_outbox, journal
from sparingly.live.store.audit_outbox import AuditLine
from sparingly.live.store.tables import observations as kept
from sparingly.live.store.tables import payloads, tickets
from sparingly.live.tickets.ticket_lifecycle import labelling_action
from sparingly.live.tickets.ticket_records import PLANTED, payload_row

if TYPE_CHECKING:
    from sparingly.live.agent.runtime import AgentRuntime


def plant(
    runtime: AgentRuntime,
    block: Sequence[Any],
    labels: Any,
    ids: Sequence[Any] | None,
    shown: Sequence[Any] | None,
    audit: AuditLine | None,
) -> list[str]:
    """Write items whose classes are known; returns their tickets. One planted before under its id stays as it is."""
    call = ObserveCall(block, ids, shown)
    with runtime.lock:
        numbers = teaching.class_numbers(runtime.store.settings.classes, labels, len(block))
        items = runtime.read_block(call)
        held = runtime.held_likely([item.x for item in items]) if items else []
        with runtime.writing() as connection:
            now, head = runtime.clock(), runtime.store.head(connection)
            there = observations.known(connection, [items])
            rows: list[str] = []
            new: list[tuple[Observation, dict[str, Any]]] = []
            for item, label, likely in zip(items, numbers, held, strict=True):
                if item.id is not None and item.id in there:
                    _check_same(item, label, there[item.id])
                    rows.append(there[item.id].id)
                    continue
                row = _row(head + len(new) + 1, now, item, label, likely, labelling_action(runtime.store.settings.game))
                new.append((item, row))
                rows.append(row["id"])
            _write(connection, new)
            if new:
                audit_outbox.add(connection, audit, None, now)
        runtime.audit_written(audit)
    return rows


def _check_same(item: Observation, label: int, row: Any) -> None:
    if row.status != PLANTED:
        raise ConflictError(f"id {item.id!r} stands for an observation: it cannot be planted")
    if bytes(row.digest) != digest(item.x) or row.label != label:
        raise ConflictError(f"id {item.id!r} was planted with other features or as another class")


def _row(seq: int, now: float, item: Observation, label: int, likely: Any, action: int) -> dict[str, Any]:
    return {
        "seq": seq,
        "id": item.id if item.id is not None else f"t.{seq}",
        "at": now,
        "digest": digest(item.x),
        "action": action,
        "prediction": 0 if likely is None else int(np.argmax(likely)),
        "asks": False,
        "wanted": False,
        "audit": False,
        "why": "its class is known: it was planted to see how often people are right",
        "status": PLANTED,
        "label": label,
        "probabilities": None if likely is None else likely.astype("<f4").tobytes(),
        "numbers": "{}",
    }


def _write(connection: Any, new: Sequence[tuple[Observation, dict[str, Any]]]) -> None:
    journal.bulk_insert(connection, tickets, [row for _, row in new])
    features = [{"ticket": row["seq"], "x": item.x.astype("<f4", copy=False).tobytes()} for item, row in new]
    journal.bulk_insert(connection, kept, features)
    events = [
        {"seq": row["seq"], "at": row["at"], "kind": PLANTED, "ticket": row["seq"], "label": row["label"]}
        for _, row in new
    ]
    journal.append(connection, events)
    shown = [payload_row(row["seq"], item.payload) for item, row in new if item.payload is not None]
    journal.bulk_insert(connection, payloads, shown)
