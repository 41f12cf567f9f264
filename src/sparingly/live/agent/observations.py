"""From observations to tickets: the caller's ids and the rows that are written."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from sparingly.encoders import TextEncoder
from sparingly.live.agent.agent_settings import AgentSettings, QuestionLimits
from sparingly.live.agent.errors import AgentError, ConflictError, checked_text, shortened
from sparingly.live.agent.features import Schema, Vector, digest, is_given_picture, shown
from sparingly.live.agent.pacing import QuestionAllowance, Spending
from sparingly.live.consultation import expert_calls
from sparingly.live.store import journal
from sparingly.live.store.erasure import NO_FEATURES
from sparingly.live.store.journal import bulk_insert, insert_rows
from sparingly.live.store.tables import journal as events_table
from sparingly.live.store.tables import observations, payloads, tickets
from sparingly.live.tickets.ticket_lifecycle import labelling_action
from sparingly.live.tickets.ticket_records import (
    ANNOUNCED,
    CONSULTING,
    HELD,
    OPEN,
    Label,
    Payload,
    Reason,
    Ticket,
    checked_payload,
    payload_row,
)
from sparingly.strategies.strategy import Decision

_OURS = re.compile(r"t\.\d+")
_LONGEST_ID = 200
UNLIMITED = QuestionLimits()


@dataclass(frozen=True, slots=True)
class Observation:
    """One observation on its way into the journal."""

    x: Vector
    id: str | None = None
    payload: Payload | None = None


@dataclass(frozen=True, slots=True)
class ObserveCall:
    """The observations of one call as they were given: all of them are taken or none."""

    X: Sequence[Any]
    ids: Sequence[Any] | None = None
    payloads: Sequence[Any] | None = None

    def __len__(self) -> int:
        return len(self.X)

    def check_lengths(self) -> None:
        """There is one id and one payload for each observation, or none at all."""
        for what, values in (("ids", self.ids), ("payloads", self.payloads)):
            if values is not None and len(values) != len(self.X):
                raise AgentError(f"there are {len(values)} {what} for {len(self.X)} observations")

    def read(self, schema: Schema, encoder: TextEncoder | None) -> list[Observation]:
        """The observations, checked; a raw row that comes without a payload is its own."""
        vectors = schema.read_all(self.X, encoder)
        plain = not schema.is_raw and all(type(x) in (list, np.ndarray) for x in self.X)
        if plain and not _any_given(self.ids) and not _any_given(self.payloads):
            return [Observation(x) for x in vectors]
        return [
            Observation(x, checked_id(self.ids[i]) if self.ids is not None else None, self._payload(i, schema.is_raw))
            for i, x in enumerate(vectors)
        ]

    def _payload(self, i: int, is_raw: bool) -> Payload | None:
        given = self.payloads[i] if self.payloads is not None else None
        shows = shown(self.X[i]) if given is None and (is_raw or is_given_picture(self.X[i])) else given
        return checked_payload(shows) if shows is not None else None


def _any_given(values: Sequence[Any] | None) -> bool:
    return values is not None and any(value is not None for value in values)


def checked_id(given: Any) -> str | None:
    """The caller's own id as text."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise AgentError(f"id {shortened(given)} must be a string or a whole number")
    if isinstance(given, int) and abs(given) >= 10 ** (_LONGEST_ID - 1):
        raise AgentError(f"id {shortened(given)} has too many digits: {_LONGEST_ID} characters are the most")
    text = checked_text("id", str(given))
    if not text.strip():
        raise AgentError(f"id {text[:40]!r} is blank")
    if len(text) > _LONGEST_ID:
        raise AgentError(f"id {text[:40]!r}... has {len(text)} characters: {_LONGEST_ID} are the most")
    if "\0" in text:
        raise AgentError(f"id {text[:40]!r} has the character NUL, which databases cannot keep")
    return text


Request = list[Observation] | Exception
"""The observations of one call, or the reason why they could not be read."""


def known(connection: Connection, requests: Sequence[Request]) -> dict[str, Any]:
    """The tickets that there are already with the ids of these requests, by id."""
    wanted = [o.id for request in requests if isinstance(request, list) for o in request if o.id is not None]
    found = {}
    for start in range(0, len(wanted), 500):
        rows = connection.execute(select(tickets).where(tickets.c.id.in_(wanted[start : start + 500])))
        found.update({row.id: row for row in rows})
    return found


def fresh(
    observed: Sequence[Observation], there: Mapping[str, Any], accepted: Mapping[str, Observation]
) -> list[Observation]:
    """The observations that are neither written nor accepted; an id that stands for other features is an error."""
    new: dict[str, Observation] = {}
    order: list[Observation] = []
    for observation in observed:
        name = observation.id
        if name is None:
            order.append(observation)
            continue
        same = new.get(name) or accepted.get(name)
        earlier = there[name].digest if name in there else digest(same.x) if same is not None else None
        if earlier is None:
            if _OURS.fullmatch(name):
                raise AgentError(f"id {name!r} is of the form that the agent gives itself: choose another")
            new[name] = observation
            order.append(observation)
        elif bytes(earlier) not in (NO_FEATURES, digest(observation.x)):
            raise ConflictError(f"id {name!r} stands for an observation with other features")
    return order


def accept(
    requests: Iterable[Request], there: Mapping[str, Any]
) -> tuple[list[Observation], list[BaseException | None]]:
    """The new observations of all requests that make sense, and for each request the reason why it does not."""
    accepted: list[Observation] = []
    by_id: dict[str, Observation] = {}
    errors: list[BaseException | None] = []
    for request in requests:
        if isinstance(request, Exception):
            errors.append(request)
            continue
        try:
            new = fresh(request, there, by_id)
        except AgentError as error:
            errors.append(error)
            continue
        errors.append(None)
        accepted += new
        by_id.update({o.id: o for o in new if o.id is not None})
    return accepted, errors


def tickets_of(
    requests: Sequence[Request],
    errors: Sequence[BaseException | None],
    accepted: Sequence[Observation],
    written: Sequence[Ticket],
    there: Mapping[str, Any],
    classes: Sequence[Label],
) -> list[list[Ticket] | BaseException]:
    """For each request its tickets, those that were there or are written now, or its error."""
    by_id = {id: ticket_of(row, classes) for id, row in there.items()}
    by_id |= {ticket.id: ticket for ticket, o in zip(written, accepted, strict=True) if o.id is not None}
    nameless = iter([ticket for ticket, o in zip(written, accepted, strict=True) if o.id is None])
    results: list[list[Ticket] | BaseException] = []
    for request, error in zip(requests, errors, strict=True):
        if error is not None:
            results.append(error)
            continue
        assert isinstance(request, list)
        results.append([by_id[o.id] if o.id is not None else next(nameless) for o in request])
    return results


def ticket_of(row: Any, classes: Sequence[Label]) -> Ticket:
    """The ticket that a row of the table holds."""
    details = {**reasons_of(row, classes), "status": row.status, "asked": asked_of(row)}
    prediction = None if row.status == HELD else classes[row.prediction]
    return Ticket(row.id, prediction, bool(row.asks), row.action, **details)


def new_ticket(row: Mapping[str, Any], classes: Sequence[Label], shares: Sequence[float]) -> Ticket:
    """The ticket of a new row and its probabilities, without reading back what was written."""
    why, asked = Reason(row["why"]), tuple(json.loads(row["asked"])) if row["asked"] else ()
    why.numbers = row["numbers"]
    details = {"why": why, "probabilities": dict(zip(classes, shares, strict=False)), "numbers": row["numbers"]}
    prediction = None if row["status"] == HELD else classes[row["prediction"]]
    return Ticket(row["id"], prediction, bool(row["asks"]), row["action"], **details, status=row["status"], asked=asked)


def stored(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of `ticket_row` as it is in the table."""
    return {**row, "numbers": json.dumps(row["numbers"])}


def write(connection: Connection, new: Sequence[Observation], rows: Sequence[Mapping[str, Any]]) -> None:
    """Put new tickets into the database, as the next events."""
    bulk_insert(connection, tickets, [stored(row) for row in rows])
    features = [(row["seq"], o.x.astype("<f4", copy=False).tobytes()) for row, o in zip(rows, new, strict=True)]
    insert_rows(connection, observations, ("ticket", "x"), features)
    events = [(row["seq"], row["at"], journal.OBSERVED, row["seq"]) for row in rows]
    insert_rows(connection, events_table, ("seq", "at", "kind", "ticket"), events)
    shown = [payload_row(row["seq"], o.payload) for row, o in zip(rows, new, strict=True) if o.payload is not None]
    bulk_insert(connection, payloads, shown)


def decide(
    connection: Connection,
    head: int,
    now: float,
    settings: AgentSettings,
    new: Sequence[Observation],
    spending: Spending,
    decisions_on: Callable[[Sequence[Vector]], list[Decision]],
    holds: bool = False,
) -> list[Ticket]:
    """Decide on new observations and write their tickets; `holds` if nothing is to be announced."""
    if not new:
        return []
    decisions = decisions_on([o.x for o in new])
    limited = settings.limits != UNLIMITED
    allowance = QuestionAllowance.at(connection, settings, spending, now) if limited else None
    question = labelling_action(settings.game) if settings.audit_rate else 0
    made = [
        ticket_row(head + 1 + i, now, o, decision, settings, allowance, question, holds=holds)
        for i, (o, decision) in enumerate(zip(new, decisions, strict=True))
    ]
    write(connection, new, made)
    if settings.machine_actions:
        expert_calls.add(connection, [row for row in made if row["status"] == CONSULTING], settings)
    refused = [row for row in made if row["wanted"] and row["status"] in (ANNOUNCED, HELD)]
    next_seq = head + 1 + len(made)
    journal.append(
        connection,
        [
            {"seq": next_seq + i, "at": now, "kind": journal.NOT_ASKED, "ticket": r["seq"]}
            for i, r in enumerate(refused)
        ],
    )
    shares = _shares([row["probabilities"] for row in made])
    return [new_ticket(row, settings.classes, held) for row, held in zip(made, shares, strict=True)]


def ticket_row(
    seq: int,
    now: float,
    observation: Observation,
    decision: Decision,
    settings: AgentSettings,
    allowance: QuestionAllowance | None,
    question: int,
    asked: Sequence[str] = (),
    holds: bool = False,
) -> dict[str, Any]:
    """The row of a ticket: what the strategy decided, within the limits, and the chance it had to be asked.

    `asked` are the experts who were asked before, where a ticket is decided on again.
    """
    audit = not decision.asks and _drawn(settings, seq)
    numbers = decision.why.values
    consults = decision.action in settings.machine_actions
    asks, action = (decision.asks or audit) and not consults, decision.action
    why = decision.why.sentence.format(**numbers)
    if audit:
        action, why = (
            question,
            f"asked at random, one in {1 / settings.audit_rate:.0f}, to know how often the agent is right",
        )
    priority, refusal = None, None
    if allowance is not None:
        priority, refusal = allowance.judge(decision, settings, action) if asks else allowance.pass_over()
    if refusal is not None:
        asks, action, why = False, decision.prediction, f"{why}; not asked, for {refusal}"
    is_held = holds and not asks and not consults
    if is_held:
        why = f"held: nothing learned yet{'' if refusal is None else f'; not asked, for {refusal}'}"
    return {
        "seq": seq,
        "id": observation.id if observation.id is not None else f"t.{seq}",
        "at": now,
        "digest": digest(observation.x),
        "action": action,
        "prediction": decision.prediction,
        "asks": asks,
        "wanted": decision.asks or audit,
        "chance": None if holds else _chance(decision, settings),
        "audit": not holds and (audit or numbers.get("audit") is True),
        "why": why,
        **reasons_columns(numbers, None if is_held else decision.probabilities),
        "priority": priority,
        "status": CONSULTING if consults else OPEN if asks else HELD if is_held else ANNOUNCED,
        "asked": expert_calls.asked_names(settings.game, action, asked) if settings.experts else None,
    }


def _chance(decision: Decision, settings: AgentSettings) -> float | None:
    numbers = decision.why.values
    chance = numbers.get("probability", numbers.get("chance"))
    if chance is not None:
        return float(chance) + (1 - float(chance)) * settings.audit_rate
    return (1.0 if decision.asks else settings.audit_rate) if settings.audit_rate else None


def _drawn(settings: AgentSettings, seq: int) -> bool:
    """Whether the agent asks at random: a function of the seed and the place, so that a replay draws the same."""
    if not settings.audit_rate:
        return False
    drawn = hashlib.blake2b(f"{settings.seed} {seq}".encode(), digest_size=8).digest()
    return int.from_bytes(drawn) < settings.audit_rate * 2**64


def reasons_columns(values: Mapping[str, Any], probabilities: NDArray[np.float64] | None) -> dict[str, Any]:
    """The numbers of a reason, by name, and the classes' probabilities as columns of a ticket's row; see `stored`."""
    held = None if probabilities is None else probabilities.astype("<f4").tobytes()
    plain = {
        name: number
        for name, value in values.items()
        if (number := value if type(value) is float and -math.inf < value < math.inf else _plain_number(value))
        is not None
    }
    return {"probabilities": held, "numbers": plain}


def asked_of(row: Any) -> tuple[str, ...]:
    """Who was asked, by a ticket's row; one from before experts had names has none."""
    names = getattr(row, "asked", None)
    return tuple(json.loads(names)) if names else ()


def reasons_of(row: Any, classes: Sequence[Label]) -> dict[str, Any]:
    """What a ticket's row says of why: the reason with its numbers, and the classes' probabilities."""
    stored_numbers, held = getattr(row, "numbers", None), getattr(row, "probabilities", None)
    numbers = json.loads(stored_numbers) if stored_numbers else {}
    why = Reason(row.why)
    why.numbers = numbers
    return {"why": why, "probabilities": _probabilities(held, classes), "numbers": numbers}


def _probabilities(held: bytes | None, classes: Sequence[Label]) -> dict[Label, float]:
    return dict(zip(classes, _shares([held])[0], strict=False))


def _shares(held: Sequence[bytes | None]) -> list[list[float]]:
    """Probabilities of the classes, as they are stored for each ticket, as numbers; none where none are stored."""
    lengths = {len(one or b"") for one in held}
    if len(lengths) > 1:
        return [_shares([one])[0] for one in held]
    if not any(lengths):
        return [[] for _ in held]
    numbers = np.frombuffer(b"".join(one or b"" for one in held), dtype="<f4").astype(np.float64).round(6)
    found: list[list[float]] = numbers.reshape(len(held), -1).tolist()
    return found


def _plain_number(value: Any) -> Any:
    if type(value) is float:
        return value if math.isfinite(value) else None
    if type(value) in (bool, int, str):
        return value
    value = value.item() if hasattr(value, "item") and getattr(value, "size", 1) == 1 else value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float) else None
