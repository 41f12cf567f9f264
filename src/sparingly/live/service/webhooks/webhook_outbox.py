"""The webhooks of a service and the outbox of their messages, in its database."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, delete, func, insert, or_, select, update

from sparingly.live.agent.errors import AgentError, shortened
from sparingly.live.client.webhook_signatures import new_secret
from sparingly.live.service.agent_registry import DELETED, UnknownAgentError
from sparingly.live.service.audit import Actor, add_line
from sparingly.live.service.service_database import ServiceDatabase, agents, webhook_messages, webhooks

DECIDED, ANSWERED, CORRECTED, CLOSED, ALERT = EVENTS = ("decided", "answered", "corrected", "closed", "alert")
"""The events of which messages can be sent; one of the event "test" is sent on demand."""
DUE, DEAD = "due", "dead"
NOT_YET = -1
"""The position of a webhook that has not been looked at yet."""
MOST_WEBHOOKS = 20
"""That one agent may have."""


class UnknownWebhookError(AgentError):
    """No webhook has that id."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook without its secret, and the state of its messages.

    Attributes
    ----------
    id, url, events, created
        What was registered, and when.
    waiting, dead
        How many messages are to be sent, and how many were given up.
    failures, error, retry_at
        How often in a row sending has failed, why, and when it is tried again.
    arrived
        When a message last arrived.
    """

    id: str
    url: str
    events: tuple[str, ...]
    created: float
    waiting: int
    dead: int
    failures: int
    error: str | None
    retry_at: float
    arrived: float | None


@dataclass(frozen=True, slots=True)
class WebhookMessage:
    """One message on its way: `key` makes its id, the same however often it is made."""

    key: str
    event: str
    at: float
    content: Mapping[str, Any]


class WebhookOutbox:
    """Webhooks by agent; registering and removing one is in the audit trail, in the same transaction.

    Parameters
    ----------
    clock
        The time in seconds; another one for tests.
    """

    def __init__(self, database: ServiceDatabase, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self.clock = clock

    def register(
        self, agent: str, url: str, events: Sequence[str] | None, *, position: int | None, by: Actor
    ) -> tuple[Webhook, str]:
        """A new webhook and its secret, which is shown only once.

        It hears what happens after the event `position`; after the next look of the service that runs if None.
        """
        wanted = checked_events(events)
        made, secret = f"wh_{secrets.token_hex(8)}", new_secret()
        with self._database.locked() as connection:
            file = _file_of(connection, agent)
            mine = select(func.count()).select_from(webhooks).where(webhooks.c.agent == file)
            if connection.execute(mine).scalar_one() >= MOST_WEBHOOKS:
                raise AgentError(f"agent {agent!r} has {MOST_WEBHOOKS} webhooks, the most that it can have")
            row: dict[str, Any] = {
                "id": made,
                "agent": file,
                "url": url,
                "secret": secret,
                "events": json.dumps(wanted),
            }
            row |= {
                "created": self.clock(),
                "position": NOT_YET if position is None else position,
                "alerts": "[]",
                "failures": 0,
            }
            connection.execute(insert(webhooks), {**row, "retry_at": 0.0, "until": 0.0})
            add_line(connection, by, "registered a webhook", agent=agent, detail=f"{made} to {url}")
        return self.find(agent, made), secret

    def of_agent(self, agent: str) -> list[Webhook]:
        """An agent's webhooks, oldest first."""
        with self._database.reading() as connection:
            mine = webhooks.c.agent == _file_of(connection, agent)
            rows = connection.execute(select(webhooks).where(mine).order_by(webhooks.c.created, webhooks.c.id)).all()
            return [_webhook(row, _counts(connection, row.id)) for row in rows]

    def find(self, agent: str, webhook: str) -> Webhook:
        found = next((one for one in self.of_agent(agent) if one.id == webhook), None)
        if found is None:
            raise UnknownWebhookError(f"agent {agent!r} has no webhook {shortened(webhook)}")
        return found

    def remove(self, agent: str, webhook: str, by: Actor) -> None:
        """Send nothing more; messages that have not arrived are forgotten."""
        self.find(agent, webhook)
        with self._database.locked() as connection:
            connection.execute(delete(webhooks).where(webhooks.c.id == webhook))
            connection.execute(delete(webhook_messages).where(webhook_messages.c.webhook == webhook))
            add_line(connection, by, "removed a webhook", agent=agent, detail=webhook)

    def dead_letters(self, agent: str, webhook: str, limit: int = 100) -> list[dict[str, Any]]:
        """The messages that were given up, oldest first."""
        self.find(agent, webhook)
        shown = [webhook_messages.c[name] for name in ("id", "event", "at", "attempts", "error", "body")]
        with self._database.reading() as connection:
            found = connection.execute(
                select(*shown).where(_of(webhook, DEAD)).order_by(webhook_messages.c.seq).limit(limit)
            )
            return [{**row._mapping, "body": json.loads(row.body)} for row in found]

    def resend(self, agent: str, webhook: str, messages: Sequence[str] | None, by: Actor) -> int:
        """Send messages again that were given up, all of them if none is named; how many there are."""
        self.find(agent, webhook)
        which = _of(webhook, DEAD)
        if messages is not None:
            which = and_(which, webhook_messages.c.id.in_(messages))
        with self._database.locked() as connection:
            again = {"state": DUE, "attempts": 0, "next_at": 0.0, "at": self.clock()}
            count = connection.execute(update(webhook_messages).where(which).values(**again)).rowcount
            connection.execute(update(webhooks).where(webhooks.c.id == webhook).values(retry_at=0.0))
            add_line(connection, by, "sent webhook messages again", agent=agent, detail=f"{webhook}: {count}")
        return count

    def send_test(self, agent: str, webhook: str) -> str:
        """Put a message of the event "test" into the outbox; its id."""
        self.find(agent, webhook)
        message = WebhookMessage(f"test {secrets.token_hex(8)}", "test", self.clock(), {"agent": agent})
        with self._database.locked() as connection:
            add_messages(connection, webhook, [message])
            connection.execute(update(webhooks).where(webhooks.c.id == webhook).values(retry_at=0.0))
        return message_id(webhook, message.key)

    # for whoever sends

    def all(self) -> list[Any]:
        """The rows of all webhooks, with the name of each one's agent as `name`."""
        found = select(webhooks, agents.c.name).join(agents, agents.c.file == webhooks.c.agent)
        with self._database.reading() as connection:
            return list(connection.execute(found.where(agents.c.state != DELETED)))

    def claim(self, webhook: str, holder: str, seconds: float) -> bool:
        """Be the one process that sends a webhook's messages for a while; False if another one is."""
        now = self.clock()
        free = or_(webhooks.c.until < now, webhooks.c.holder == holder)
        with self._database.writing() as connection:
            mine = update(webhooks).where(and_(webhooks.c.id == webhook, free))
            return connection.execute(mine.values(holder=holder, until=now + seconds)).rowcount == 1

    def release(self, holder: str) -> None:
        """Let other processes send what this one sent up to now."""
        with self._database.writing() as connection:
            connection.execute(update(webhooks).where(webhooks.c.holder == holder).values(until=0.0))

    def add(
        self, webhook: str, messages: Sequence[WebhookMessage], position: int, alerts: Collection[str] | None
    ) -> None:
        """Keep new messages, up to which event they tell, and which alerts, if these were looked at; all or nothing."""
        changed: dict[str, Any] = {"position": position}
        if alerts is not None:
            changed["alerts"] = json.dumps(sorted(alerts))
        with self._database.locked() as connection:
            add_messages(connection, webhook, messages)
            connection.execute(update(webhooks).where(webhooks.c.id == webhook).values(**changed))

    def due(self, webhook: str, limit: int) -> list[Any]:
        """The messages that are to be sent now, oldest first."""
        ready = and_(_of(webhook, DUE), webhook_messages.c.next_at <= self.clock())
        with self._database.reading() as connection:
            return list(
                connection.execute(select(webhook_messages).where(ready).order_by(webhook_messages.c.seq).limit(limit))
            )

    def count_due(self, webhook: str) -> int:
        with self._database.reading() as connection:
            return _counts(connection, webhook)[DUE]

    def note(
        self, webhook: str, done: Sequence[int], failed: Mapping[int, Mapping[str, Any]], columns: Mapping[str, Any]
    ) -> None:
        """What became of messages, by their numbers: those that arrived are forgotten, the others have new columns."""
        with self._database.locked() as connection:
            connection.execute(delete(webhook_messages).where(webhook_messages.c.seq.in_(done)))
            for seq, now in failed.items():
                connection.execute(update(webhook_messages).where(webhook_messages.c.seq == seq).values(**now))
            if columns:
                connection.execute(update(webhooks).where(webhooks.c.id == webhook).values(**columns))


def checked_events(events: Sequence[str] | None) -> list[str]:
    """The events that are wanted, all of them if none is named.

    >>> checked_events(["answered", "decided"])
    ['decided', 'answered']
    """
    if events is None:
        return [*EVENTS]
    unknown = next((one for one in events if one not in EVENTS), None)
    if unknown is not None or not events:
        raise AgentError(f"event {shortened(unknown)} is unknown: there are {', '.join(EVENTS)}")
    return [one for one in EVENTS if one in events]


def add_messages(connection: Connection, webhook: str, messages: Sequence[WebhookMessage]) -> None:
    """Write messages; the id of each is in its body and in its header, for receivers that get it twice."""
    rows = []
    for one in messages:
        made = message_id(webhook, one.key)
        body = json.dumps({"id": made, "event": one.event, "at": one.at, **one.content}, allow_nan=False)
        rows.append({"id": made, "webhook": webhook, "event": one.event, "at": one.at, "body": body})
    if rows:
        connection.execute(
            insert(webhook_messages), [{**row, "state": DUE, "attempts": 0, "next_at": 0.0} for row in rows]
        )


def message_id(webhook: str, key: str) -> str:
    return f"msg_{hashlib.blake2b(f'{webhook} {key}'.encode(), digest_size=12).hexdigest()}"


def _file_of(connection: Connection, agent: str) -> str:
    known = and_(agents.c.name == agent, agents.c.state != DELETED)
    row = connection.execute(select(agents.c.file, agents.c.name).where(known)).first()
    if row is None:
        raise UnknownAgentError(f"there is no agent {agent!r}")
    return str(row.file or row.name)


def _counts(connection: Connection, webhook: str) -> dict[str, int]:
    counted = select(webhook_messages.c.state, func.count()).where(webhook_messages.c.webhook == webhook)
    found = {state: int(count) for state, count in connection.execute(counted.group_by(webhook_messages.c.state))}
    return {DUE: found.get(DUE, 0), DEAD: found.get(DEAD, 0)}


def _of(webhook: str, state: str) -> Any:
    return and_(webhook_messages.c.webhook == webhook, webhook_messages.c.state == state)


def _webhook(row: Any, counts: Mapping[str, int]) -> Webhook:
    events = tuple(json.loads(row.events))
    fares = (counts[DUE], counts[DEAD], row.failures, row.error, row.retry_at, row.arrived)
    return Webhook(row.id, row.url, events, row.created, *fares)
