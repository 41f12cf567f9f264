"""From observations to tickets: the caller's ids and the rows that are written."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from sqlalchemy import Connection, select

from sparingly.live.agent.agent_settings import Settings
from sparingly.live.agent.answers import labelling_action
from sparingly.live.agent.errors import AgentError, ConflictError
from sparingly.live.agent.features import Schema, Vector, digest
from sparingly.live.agent.payloads import checked_payload, payload_row
from sparingly.live.agent.question_limits import Asking
from sparingly.live.agent.ticket_records import ANNOUNCED, OPEN, Label, Payload, Ticket
from sparingly.live.store import journal
from sparingly.live.store.bulk_insert import add
from sparingly.live.store.schema import observations, payloads, tickets
from sparingly.strategies.strategy import Decision

_OURS = re.compile(r"t\.\d+")
_LONGEST_ID = 200


@dataclass(frozen=True, slots=True)
class Observation:
    """One observation on its way into the journal."""

    x: Vector
    id: str | None = None
    payload: Payload | None = None


def checked_id(given: Any) -> str | None:
    """The caller's own id as text."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, str | int) or not str(given).strip():
        raise AgentError(f"id {given!r} must be a string or a whole number")
    if len(str(given)) > _LONGEST_ID or "\0" in str(given):
        raise AgentError(f"id {str(given)[:40]!r}... is longer than {_LONGEST_ID} characters or has a zero in it")
    return str(given)


def check_lengths(X: Sequence[Any], **given: Sequence[Any] | None) -> None:
    """There is one id and one payload for each observation, or none at all."""
    for what, values in given.items():
        if values is not None and len(values) != len(X):
            raise AgentError(f"there are {len(values)} {what} for {len(X)} observations")


def read(
    schema: Schema, X: Sequence[Any], ids: Sequence[Any] | None, payloads: Sequence[Any] | None
) -> list[Observation]:
    """Observations as they were given, checked."""
    return [
        Observation(
            x,
            checked_id(ids[i]) if ids is not None else None,
            checked_payload(payloads[i]) if payloads is not None else None,
        )
        for i, x in enumerate(schema.read_all(X))
    ]


def known(connection: Connection, ids: Iterable[str]) -> dict[str, Any]:
    """The tickets that there are already, by id."""
    wanted, found = list(ids), {}
    for start in range(0, len(wanted), 500):
        rows = connection.execute(select(tickets).where(tickets.c.id.in_(wanted[start : start + 500])))
        found.update({row.id: row for row in rows})
    return found


def fresh(observed: Sequence[Observation], there: Mapping[str, Any]) -> list[Observation]:
    """The observations that are new; an id that stands for other features is an error that names it."""
    new: dict[str, Observation] = {}
    nameless: list[Observation] = []
    order: list[Observation] = []
    for observation in observed:
        name = observation.id
        if name is None:
            nameless.append(observation)
            order.append(observation)
            continue
        earlier = there[name].digest if name in there else digest(new[name].x) if name in new else None
        if earlier is None:
            if _OURS.fullmatch(name):
                raise AgentError(f"id {name!r} is of the form that the agent gives itself: choose another")
            new[name] = observation
            order.append(observation)
        elif bytes(earlier) != digest(observation.x):
            raise ConflictError(f"id {name!r} stands for an observation with other features")
    return order


def accept(
    requests: Iterable[list[Observation]], there: Mapping[str, Any]
) -> tuple[list[Observation], list[BaseException | None]]:
    """The new observations of all calls that make sense, and for each call the reason why it does not."""
    accepted: list[Observation] = []
    errors: list[BaseException | None] = []
    for call in requests:
        try:
            accepted = fresh([*accepted, *call], there)
            errors.append(None)
        except AgentError as error:
            errors.append(error)
    return accepted, errors


def ticket_of(row: Any, classes: Sequence[Label]) -> Ticket:
    """The ticket that a row of the table holds."""
    return Ticket(row.id, classes[row.prediction], bool(row.asks), row.action, row.why)


def write(connection: Connection, new: Sequence[Observation], rows: Sequence[Mapping[str, Any]]) -> None:
    """Put new tickets into the database, as the next events."""
    add(connection, tickets, rows)
    features = [{"ticket": row["seq"], "x": o.x.astype("<f4").tobytes()} for row, o in zip(rows, new, strict=True)]
    add(connection, observations, features)
    events = [{"seq": row["seq"], "at": row["at"], "kind": journal.OBSERVED, "ticket": row["seq"]} for row in rows]
    journal.append(connection, events)
    shown = [payload_row(row["seq"], o.payload) for row, o in zip(rows, new, strict=True) if o.payload is not None]
    add(connection, payloads, shown)


def decide(
    connection: Connection,
    head: int,
    now: float,
    settings: Settings,
    new: Sequence[Observation],
    decisions_on: Callable[[Sequence[Vector]], list[Decision]],
) -> list[Any]:
    """Decide on new observations and write their tickets; returns the rows."""
    if not new:
        return []
    decisions = decisions_on([o.x for o in new])
    asking = Asking(connection, settings.limits, now)
    question = labelling_action(settings.game) if settings.audit_rate else 0
    made = [
        ticket_row(head + 1 + i, now, o, decision, settings, asking, question)
        for i, (o, decision) in enumerate(zip(new, decisions, strict=True))
    ]
    write(connection, new, made)
    return [SimpleNamespace(**row) for row in made]


def ticket_row(
    seq: int,
    now: float,
    observation: Observation,
    decision: Decision,
    settings: Settings,
    asking: Asking,
    question: int,
) -> dict[str, Any]:
    """The row of a new ticket: what the strategy decided, within the limits, and the chance it had to be asked."""
    audit = not decision.asks and _drawn(settings, seq)
    asks, action, why = decision.asks or audit, decision.action, decision.why.words
    if audit:
        action, why = (
            question,
            f"asked at random, one in {1 / settings.audit_rate:.0f}, to know how often the agent is right",
        )
    refusal = asking.refusal() if asks else None
    if refusal is not None:
        asks, action, why = False, decision.prediction, f"{why}; not asked, for no more than {refusal}"
    return {
        "seq": seq,
        "id": observation.id if observation.id is not None else f"t.{seq}",
        "at": now,
        "digest": digest(observation.x),
        "action": action,
        "prediction": decision.prediction,
        "asks": asks,
        "wanted": decision.asks or audit,
        "chance": _chance(decision, settings),
        "audit": audit or decision.why.get("audit") is True,
        "why": why,
        "status": OPEN if asks else ANNOUNCED,
    }


def _chance(decision: Decision, settings: Settings) -> float | None:
    told = decision.why.get("probability", decision.why.get("chance"))
    if told is not None:
        return float(told) + (1 - float(told)) * settings.audit_rate
    return (1.0 if decision.asks else settings.audit_rate) if settings.audit_rate else None


def _drawn(settings: Settings, seq: int) -> bool:
    """Whether the agent asks at random: a function of the seed and the place, so that a replay draws the same."""
    if not settings.audit_rate:
        return False
    drawn = hashlib.blake2b(f"{settings.seed} {seq}".encode(), digest_size=8).digest()
    return int.from_bytes(drawn) < settings.audit_rate * 2**64
