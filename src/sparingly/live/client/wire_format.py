"""The requests that a client sends to the service, and how it reads the replies.

Every call is idempotent, and may be retried: observations carry an id, and a repeated answer changes nothing.
"""

from __future__ import annotations

import base64
import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import numpy as np

from sparingly.encoders.fields import missing
from sparingly.encoders.pictures import is_picture, picture_bytes
from sparingly.games.costs import read_costs
from sparingly.live.agent.errors import AgentError, ConflictError, StoreError, UnknownTicketError
from sparingly.live.quality.quality_records import PersonQuality
from sparingly.live.tickets.ticket_records import (
    CONSULTING,
    HELD,
    OPEN,
    Entry,
    Outlook,
    Payload,
    Question,
    Reason,
    Statistics,
    Ticket,
    checked_payload,
)

T = TypeVar("T")

UNAVAILABLE = (429, 502, 503, 504)
"""Statuses of replies after which the same call may be served later."""


class RefusedError(AgentError):
    """The token is unknown, revoked, or its role may not do this."""


class UnavailableError(StoreError):
    """The service is busy or away, and may serve the same call later."""


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request, and what its reply means."""

    method: str
    path: str
    read: Callable[[Any], T]
    body: Any = None
    is_raw: bool = False

    @property
    def content(self) -> bytes | None:
        return None if self.body is None else json.dumps(self.body).encode()


class PollingSchedule:
    """When to look at a ticket again: soon at first, then ever more seldom, until nobody is asked or time is over."""

    def __init__(self, timeout: float | None) -> None:
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._pause = 0.02

    def goes_on(self, entry: Entry) -> bool:
        is_late = self._deadline is not None and time.monotonic() >= self._deadline
        return entry.status in (OPEN, CONSULTING, HELD) and not is_late

    def pause(self) -> float:
        """Seconds until the next look."""
        self._pause = min(2.0, 1.5 * self._pause)
        left = self._pause if self._deadline is None else self._deadline - time.monotonic()
        return max(0.0, min(self._pause, left))


def observe(
    agent: str, X: Sequence[Any], ids: Sequence[Any] | None, payloads: Sequence[Any] | None
) -> Call[list[Ticket]]:
    """Observations; each without an id gets one here, so that a retried call has the same."""
    block = _block(X, ids, payloads)
    if len(block) == 1:
        return Call("POST", f"{_at(agent)}/observations", lambda reply: [_ticket(reply)], block[0])
    read = lambda reply: [_ticket(ticket) for ticket in reply["tickets"]]  # noqa: E731
    return Call("POST", f"{_at(agent)}/observations/batch", read, {"observations": block})


def _block(X: Sequence[Any], ids: Sequence[Any] | None, payloads: Sequence[Any] | None) -> list[dict[str, Any]]:
    for what, given in (("ids", ids), ("payloads", payloads)):
        if given is not None and len(given) != len(X):
            raise AgentError(f"there are {len(given)} {what} for {len(X)} observations")
    block = []
    for i, x in enumerate(X):
        one = _observation(x, ids[i] if ids is not None else None)
        payload = checked_payload(payloads[i]) if payloads is not None else None
        block.append(one if payload is None else {**one, "payload": _payload_in(payload)})
    return block


def teach(agent: str, X: Sequence[Any], labels: Sequence[Any], ids: Sequence[Any] | None) -> Call[int]:
    """Labels that are there already; they have ids before the first attempt, too."""
    for what, given in (("labels", labels), ("ids", ids)):
        if given is not None and len(given) != len(X):
            raise AgentError(f"there are {len(given)} {what} for {len(X)} observations")
    named = [_observation(x, ids[i] if ids is not None else None) for i, x in enumerate(X)]
    block = [{**one, "label": _number(label)} for one, label in zip(named, labels, strict=True)]
    return Call("POST", f"{_at(agent)}/teach", lambda reply: int(reply["taught"]), {"observations": block})


def _observation(x: Any, own_id: Any) -> dict[str, Any]:
    for name, value in x.items() if isinstance(x, Mapping) else ():
        if isinstance(value, Path):
            raise AgentError(f"field {name!r} is a picture: a service takes pictures alone, without other fields")
    observation = {"text": x} if isinstance(x, str) else _image(x) if is_picture(x) else {"features": plain(x)}
    return {**observation, "id": uuid.uuid4().hex if own_id is None else own_id}


def _image(x: Any) -> dict[str, Any]:
    return {"image": base64.b64encode(picture_bytes(x)).decode()}


def ticket(agent: str, ticket_id: str) -> Call[Entry]:
    read = lambda reply: Entry(**_with_reason(reply))  # noqa: E731
    return Call("GET", f"{_at(agent)}/ticket?ticket={quote(str(ticket_id), safe='')}", read)


def changes(agent: str, since: int, limit: int) -> Call[tuple[list[Entry], int]]:
    """The tickets to which something happened after an event, and the event to go on from."""
    read = lambda reply: ([Entry(**_with_reason(entry)) for entry in reply["tickets"]], int(reply["next"]))  # noqa: E731
    return Call("GET", f"{_at(agent)}/tickets?since={since}&limit={limit}", read)


def classes(agent: str) -> Call[tuple[Any, ...]]:
    return Call("GET", _at(agent), lambda reply: tuple(reply["classes"]))


def questions(agent: str, limit: int, lease_seconds: float | None) -> Call[list[Question]]:
    lease = "" if lease_seconds is None else f"&lease_seconds={lease_seconds}"
    read = lambda reply: [_question(one) for one in reply["questions"]]  # noqa: E731
    return Call("POST", f"{_at(agent)}/questions?limit={limit}{lease}", read)


def add_class(agent: str, label: Any, cost: float | None) -> Call[list[Any]]:
    body = {"label": label} if cost is None else {"label": label, "cost": cost}
    return Call("POST", f"{_at(agent)}/classes", lambda reply: list(reply["classes"]), body)


def ticket_action(agent: str, what: str, ticket: str, label: Any = None, *, new_class: bool = False) -> Call[None]:
    """What a person does to a question: answer, correct, skip, ..."""
    body = {"ticket": ticket} if label is None else {"ticket": ticket, "label": label}
    body |= {"new_class": True} if new_class else {}
    return Call("POST", f"{_at(agent)}/{what}", lambda reply: None, body)


def plant(
    agent: str, X: Sequence[Any], labels: Sequence[Any], ids: Sequence[Any] | None, payloads: Sequence[Any] | None
) -> Call[list[str]]:
    """Items whose classes are known; they have ids before the first attempt, too."""
    if len(labels) != len(X):
        raise AgentError(f"there are {len(labels)} labels for {len(X)} observations")
    named = _block(X, ids, payloads)
    block = [{**one, "label": _number(label)} for one, label in zip(named, labels, strict=True)]
    return Call("POST", f"{_at(agent)}/plant", lambda reply: list(reply["tickets"]), {"observations": block})


def people(agent: str) -> Call[list[PersonQuality]]:
    return Call("GET", f"{_at(agent)}/people", lambda reply: [PersonQuality(**one) for one in reply["people"]])


def renew(agent: str, ticket: str, lease_seconds: float | None) -> Call[float]:
    lease = "" if lease_seconds is None else f"?lease_seconds={lease_seconds}"
    return Call("POST", f"{_at(agent)}/renew{lease}", lambda reply: float(reply["until"]), {"ticket": ticket})


def undo(agent: str, ticket: str) -> Call[Question]:
    return Call("POST", f"{_at(agent)}/undo", lambda reply: _question(reply["question"]), {"ticket": ticket})


def statistics(agent: str) -> Call[Statistics]:
    return Call("GET", f"{_at(agent)}/statistics", _statistics)


def _statistics(reply: Mapping[str, Any]) -> Statistics:
    outlook = reply.get("outlook")
    return Statistics(**{**reply, "outlook": None if outlook is None else Outlook(**outlook)})


def history(agent: str, after: str | None) -> Call[tuple[list[Entry], str | None]]:
    start = "" if after is None else f"&after={quote(after, safe='')}"
    read = lambda reply: ([Entry(**_with_reason(entry)) for entry in reply["tickets"]], reply["next"])  # noqa: E731
    return Call("GET", f"{_at(agent)}/history?limit=5000{start}", read)


def export(agent: str, format: str) -> Call[bytes]:
    return Call("GET", f"{_at(agent)}/export?format={quote(format, safe='')}", bytes, is_raw=True)


def set_costs(agent: str, costs: Any, query_cost: float | None, classes: Sequence[Any]) -> Call[None]:
    """The costs in any form that an agent takes, as the records that differ from 1, and from 0 for what is right."""
    try:
        matrix = read_costs(costs, classes)
    except ValueError as error:
        raise AgentError(str(error)) from None
    body: dict[str, Any] = {} if query_cost is None else {"query_cost": query_cost}
    if matrix is not None:
        body["costs"] = [
            {"announced": classes[i], "true": classes[j], "cost": float(cost)}
            for (i, j), cost in np.ndenumerate(matrix)
            if cost != (i != j)
        ]
    return Call("PUT", f"{_at(agent)}/costs", lambda reply: None, body)


def webhooks(agent: str) -> Call[list[dict[str, Any]]]:
    return Call("GET", f"{_at(agent)}/webhooks", lambda reply: list(reply["webhooks"]))


def add_webhook(agent: str, url: str, events: Sequence[str] | None) -> Call[dict[str, Any]]:
    """A repeated attempt may register the address twice: each has an id and a secret of its own."""
    body = {"url": url} if events is None else {"url": url, "events": list(events)}
    return Call("POST", f"{_at(agent)}/webhooks", dict, body)


def remove_webhook(agent: str, webhook: str) -> Call[None]:
    return Call("DELETE", f"{_at(agent)}/webhooks/{quote(webhook, safe='')}", lambda reply: None)


def dead_letters(agent: str, webhook: str) -> Call[list[dict[str, Any]]]:
    path = f"{_at(agent)}/webhooks/{quote(webhook, safe='')}/dead"
    return Call("GET", path, lambda reply: list(reply["messages"]))


def resend(agent: str, webhook: str, messages: Sequence[str] | None) -> Call[int]:
    body = {} if messages is None else {"messages": list(messages)}
    return Call(
        "POST", f"{_at(agent)}/webhooks/{quote(webhook, safe='')}/resend", lambda reply: int(reply["resent"]), body
    )


def refusal(status: int, text: str) -> Exception:
    """The error that the agent itself would have raised."""
    try:
        message = str(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError):
        message = f"the service said {status}"
    kinds: dict[int, type[AgentError]] = {
        401: RefusedError,
        403: RefusedError,
        404: UnknownTicketError,
        409: ConflictError,
    }
    if status in UNAVAILABLE:
        return UnavailableError(message)
    if status >= 500:
        return StoreError(message)
    return kinds.get(status, AgentError)(message)


def plain(x: Any) -> Any:
    """Features as JSON has them: numbers in order, or a row by name.

    >>> import datetime
    >>> plain({"age": float("nan"), "job": "clerk", "since": datetime.date(2024, 5, 31)})
    {'age': None, 'job': 'clerk', 'since': '2024-05-31'}
    """
    if isinstance(x, Mapping):
        return {str(name): _value(value) for name, value in x.items()}
    if hasattr(x, "index") and hasattr(x, "to_dict"):
        named = x.to_dict()
        is_named = any(isinstance(name, str) for name in named)
        return plain(named) if is_named else [_number(value) for value in named.values()]
    if hasattr(x, "detach"):
        x = x.detach().cpu()
    return x.tolist() if hasattr(x, "tolist") else [plain(v) if isinstance(v, list | tuple) else _number(v) for v in x]


def _number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _value(value: Any) -> Any:
    """A field of a row: a missing value is null, a date is text."""
    if missing([value], blank=False)[0]:
        return None
    return value.isoformat() if hasattr(value, "isoformat") else _number(value)


def _at(agent: str) -> str:
    return f"/api/agents/{quote(agent, safe='')}"


def _payload_in(payload: Payload) -> dict[str, Any]:
    content = base64.b64encode(payload.content).decode() if payload.kind == "image" else payload.content
    return {payload.kind: content}


def _ticket(reply: Mapping[str, Any]) -> Ticket:
    return Ticket(**_with_reason(reply))


def _with_reason(reply: Mapping[str, Any]) -> dict[str, Any]:
    """A ticket's fields: the reason with its numbers, and the probabilities by class, whose names JSON makes texts."""
    kind = type(reply["prediction"])
    read: Callable[[str], Any] = (lambda name: name == "true") if kind is bool else kind
    held = {read(name): p for name, p in reply.get("probabilities", {}).items()}
    why = Reason(reply["why"])
    why.numbers = reply.get("numbers", {})
    return {**reply, "why": why, "probabilities": held, "asked": tuple(reply.get("asked", ()))}


def _question(reply: Mapping[str, Any]) -> Question:
    seen = reply["payload"]
    payload = None
    if seen is not None:
        content = base64.b64decode(seen["image"]) if seen["kind"] == "image" else seen[seen["kind"]]
        payload = Payload(seen["kind"], content, seen["media"])
    return Question(
        id=reply["id"],
        prediction=reply["prediction"],
        action=-1,
        why=reply["why"],
        at=reply["at"],
        choices=tuple(reply["choices"]),
        features=tuple(reply["features"]),
        payload=payload,
        expert=reply["expert"],
        until=reply["until"],
    )
