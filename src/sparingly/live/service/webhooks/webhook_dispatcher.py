"""Makes messages of what happened, and sends them until they have arrived, on threads of its own."""

from __future__ import annotations

import contextlib
import json
import logging
import random
import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sparingly.live.agent.agent import Agent
from sparingly.live.agent.errors import AgentError
from sparingly.live.service.alerts import Alert
from sparingly.live.service.page.plain_reasons import plain_reason
from sparingly.live.service.webhooks.webhook_outbox import (
    ALERT,
    ANSWERED,
    CLOSED,
    CORRECTED,
    DEAD,
    DECIDED,
    NOT_YET,
    WebhookMessage,
    WebhookOutbox,
)
from sparingly.live.service.webhooks.webhook_sender import WebhookSender
from sparingly.live.store import journal
from sparingly.live.tickets.ticket_records import ANSWERED as TICKET_ANSWERED
from sparingly.live.tickets.ticket_records import SKIPPED, UNKNOWN, WITHDRAWN, Entry, TicketEvent

log = logging.getLogger(__name__)

EVERY = 1.0
"""Seconds between two looks for what has happened, and for what is to be sent."""
AT_ONCE = 100
"""Messages that are made, and sent, in one turn."""
MOST_WAITING = 1000
"""Messages in the outbox beyond which no more are made: what happened stays in the journal until they are."""
CLAIM_SECONDS = 60.0
LONGEST_PAUSE = 60.0
GIVE_UP_SECONDS = 3 * 86400.0
"""A message that has not arrived after so long is given up."""
REFUSALS = 5
"""So often a message may be refused before it is given up; the others are sent meanwhile."""
AT_WORK = 8
"""Webhooks that are sent to at the same time: one that is slow holds up no other."""

_EVENT_NAMES = {
    journal.OBSERVED: DECIDED,
    journal.HEARD: DECIDED,
    journal.ANNOUNCED: DECIDED,
    TICKET_ANSWERED: ANSWERED,
    journal.CORRECTED: CORRECTED,
    journal.REOPENED: CORRECTED,
    SKIPPED: CLOSED,
    UNKNOWN: CLOSED,
    WITHDRAWN: CLOSED,
}
"""The kinds of event of the journal of which messages are sent, and the event that a message names."""


class WebhookDispatcher:
    """One look a second for webhooks; each is served in order, by one process, and beside the others.

    The journal itself is what cannot be lost: a webhook keeps the number of the last event of which a message was made.

    Parameters
    ----------
    agent_of
        The open agent of a name.
    alerts_of
        What needs an admin of an agent now.
    """

    def __init__(
        self,
        outbox: WebhookOutbox,
        sender: WebhookSender,
        agent_of: Callable[[str], Agent],
        alerts_of: Callable[[str], Sequence[Alert]],
        every: float = EVERY,
    ) -> None:
        self._outbox, self._sender = outbox, sender
        self._agent_of, self._alerts_of, self._every = agent_of, alerts_of, every
        self._holder = secrets.token_hex(8)
        self._stopped = threading.Event()
        self._busy: set[str] = set()
        self._workers: ThreadPoolExecutor | None = None
        self._thread = threading.Thread(target=self._run, name="sparingly-webhooks", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Finish the messages at hand; the others stay in the outbox."""
        self._stopped.set()
        self._thread.join(timeout=30)
        if self._workers is not None:
            self._workers.shutdown(wait=True, cancel_futures=True)
            with contextlib.suppress(AgentError):
                self._outbox.release(self._holder)
        self._sender.close()

    def _run(self) -> None:
        while not self._stopped.wait(self._every):
            try:
                rows = self._outbox.all()
            except AgentError as error:
                log.warning("webhooks wait: %s", error)
                continue
            for row in rows:
                if row.id not in self._busy:
                    self._busy.add(row.id)
                    self._workers = self._workers or ThreadPoolExecutor(AT_WORK, thread_name_prefix="webhook")
                    self._workers.submit(self._try_turn, row)

    def _try_turn(self, row: Any) -> None:
        try:
            self._turn(row)
        except AgentError as error:
            log.warning("webhook %s waits: %s", row.id, error)
        except Exception:
            log.exception("webhook %s waits", row.id)
        finally:
            self._busy.discard(row.id)

    def _turn(self, row: Any) -> None:
        """Make and send messages until there are no more, or sending fails."""
        is_paused = row.retry_at > self._outbox.clock()
        position, has_more = row.position, True
        while has_more and not self._stopped.is_set() and self._outbox.claim(row.id, self._holder, CLAIM_SECONDS):
            seen = position
            position = self._collect(row, position)
            goes_on = not is_paused and self._send(row)
            has_more = (position > seen and not is_paused) or goes_on

    def _collect(self, row: Any, since: int) -> int:
        """Put what has happened since an event into the outbox, as long as there is room; the last event of it."""
        if self._outbox.count_due(row.id) >= MOST_WAITING:
            return since
        wanted, reported = json.loads(row.events), set(json.loads(row.alerts))
        agent = self._agent_of(row.name)
        if since == NOT_YET:
            self._outbox.add(row.id, [], agent.count_events(), None)
            return since
        messages, position, raised = [], since, reported
        for position, event, entry in agent.queries.events_since(since, AT_ONCE):
            if entry is not None and _EVENT_NAMES.get(event.what) in wanted:
                messages.append(_ticket_message(row.name, position, event, entry))
        if ALERT in wanted and since == row.position:
            alerts, raised = _alert_messages(row.name, reported, self._alerts_of(row.name), self._outbox.clock())
            messages += alerts
        if position != since or raised != reported:
            self._outbox.add(row.id, messages, position, raised if since == row.position else None)
        return position

    def _send(self, row: Any) -> bool:
        """Send what is due; whether there may be more to send at once."""
        now = self._outbox.clock()
        arrived: list[int] = []
        failed: dict[int, dict[str, Any]] = {}
        columns: dict[str, Any] = {}
        due = self._outbox.due(row.id, AT_ONCE)
        for message in due:
            if self._stopped.is_set():
                break
            outcome = self._sender.send(row.url, row.secret, message.id, message.body)
            if outcome.arrived:
                arrived.append(message.seq)
                columns = {"failures": 0, "retry_at": 0.0, "error": None, "arrived": now}
                continue
            failed[message.seq] = _after_failure(message, outcome.error, outcome.is_refused, now)
            columns["error"] = outcome.error
            if not outcome.is_refused:
                failures = row.failures + 1 if not arrived else 1
                columns |= {"failures": failures, "retry_at": now + pause(failures)}
                break
        if arrived or failed:
            self._outbox.note(row.id, arrived, failed, columns)
        if failed:
            log.info("webhook %s: %s", row.id, columns["error"])
        return len(due) == AT_ONCE and columns.get("retry_at") == 0.0


def pause(failures: int) -> float:
    """Seconds until a webhook that has failed so often in a row is tried again: twice as many each time, to a minute.

    >>> all(0.5 <= pause(1) <= 1 and 2 <= pause(3) <= 4 and 30 <= pause(20) <= 60 for _ in range(100))
    True
    """
    return min(LONGEST_PAUSE, 2.0 ** (min(failures, 20) - 1)) * random.uniform(0.5, 1.0)


def _after_failure(message: Any, error: str, is_refused: bool, now: float) -> dict[str, Any]:
    attempts = message.attempts + 1
    is_over = now - message.at >= GIVE_UP_SECONDS or (is_refused and attempts >= REFUSALS)
    changed = {"attempts": attempts, "error": error, "next_at": now + pause(attempts) if is_refused else 0.0}
    return {**changed, "state": DEAD} if is_over else changed


def _ticket_message(agent: str, position: int, event: TicketEvent, entry: Entry) -> WebhookMessage:
    """A ticket as it stands, without what was observed: whoever wants that asks the service, with a token."""
    shown = {name: value for name, value in dict(entry).items() if name not in ("numbers", "probabilities")}
    shown["why"] = str(entry.why)
    shown["reason"] = plain_reason(entry.why, entry.asks, entry.probabilities, entry.numbers)
    shown["probabilities"] = {str(name): p for name, p in entry.probabilities.items()}
    content = {"agent": agent, "sequence": position, "what": event.what, "who": event.who, "label": event.label}
    return WebhookMessage(f"event {position}", _EVENT_NAMES[event.what], event.at, {**content, "ticket": shown})


def _alert_messages(
    agent: str, reported: set[str], alerts: Iterable[Alert], now: float
) -> tuple[list[WebhookMessage], set[str]]:
    """Messages of alerts that are new, and of those that are over; an alert is known by its kind."""
    standing = {alert.kind: alert for alert in alerts}
    messages = []
    for kind in sorted(set(standing) ^ reported):
        is_raised = kind in standing
        text = standing[kind].text if is_raised else ""
        body = {"agent": agent, "alert": {"kind": kind, "text": text, "raised": is_raised}}
        messages.append(WebhookMessage(f"alert {kind} {now}", ALERT, now, body))
    return messages, set(standing)
