"""The calls of an agent about the quality of its people, each one transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from sparingly.live.agent.errors import ConflictError
from sparingly.live.quality import disagreements, opinions
from sparingly.live.quality.checked_answers import look_at, mark
from sparingly.live.store import audit_outbox, erasure
from sparingly.live.store.audit_outbox import AuditLine
from sparingly.live.tickets import ticket_lifecycle
from sparingly.live.tickets.ticket_records import ANSWERED, PLANTED

if TYPE_CHECKING:
    from sparingly.live.agent.runtime import AgentRuntime

LOOK_EVERY = 5
"""A person is checked at every so many answers, and at each whose truth becomes known."""

Write = Callable[[Connection, Any, int, float], int]
"""Writes something about a ticket's row after an event, at a time; returns the last event."""


def write(runtime: AgentRuntime, ticket_id: str, act: Write, audit: AuditLine | None) -> None:
    """Change the opinions on a ticket in one transaction, check whether its people are careless, and learn from it."""
    with runtime.lock:
        now = runtime.clock()
        with runtime.writing() as connection:
            row = ticket_lifecycle.find(connection, ticket_id)
            if row.erased == erasure.EVERYTHING:
                raise ConflictError(f"ticket {row.id!r} was erased: nothing can be done with it")
            before = runtime.store.head(connection)
            head = act(connection, row, before, now)
            if head != before:
                look_at_people(connection, runtime, row.seq, now)
            audit_outbox.add(connection, audit, row.id, now)
        runtime.audit_written(audit)
        if head != before:
            runtime.learn_upto(head)


def take_opinion(
    runtime: AgentRuntime, ticket_id: str, label: Any, expert: str | None, audit: AuditLine | None
) -> bool:
    """Take what a person says of a question that was answered already, or planted; False if they were not asked."""

    def act(connection: Connection, row: Any, head: int, now: float) -> int:
        opinion = opinions.own_opinion(connection, row, expert)
        assert opinion is not None
        return opinions.take(connection, row, opinion, label, runtime.store.settings, head, now)

    if not _is_asked(runtime, ticket_id, expert):
        return False
    write(runtime, ticket_id, act, audit)
    return True


def set_aside(runtime: AgentRuntime, ticket_id: str, expert: str | None, audit: AuditLine | None) -> bool:
    """Leave an opinion to others; False if the person was not asked for one."""

    def act(connection: Connection, row: Any, head: int, now: float) -> int:
        opinions.set_aside(connection, row, opinions.own_opinion(connection, row, expert), now)
        return head

    if not _is_asked(runtime, ticket_id, expert):
        return False
    write(runtime, ticket_id, act, audit)
    return True


def take_back(runtime: AgentRuntime, ticket_id: str, expert: str, until: float, audit: AuditLine | None) -> bool:
    """Undo a person's opinion or skip of one, and lease it to them again; False if there is none."""

    def act(connection: Connection, row: Any, head: int, now: float) -> int:
        opinion = opinions.own_opinion(connection, row, expert)
        if opinion is None:
            opinion = opinions.passed_opinion(connection, row, expert)
        else:
            head = opinions.take_back(connection, row, opinion, runtime.store.settings, head, now)
        opinions.lease(connection, [opinions.as_ticket(connection, opinion)], expert, now, until)
        return head

    with runtime.reading() as connection:
        row = ticket_lifecycle.find(connection, ticket_id)
        own = opinions.own_opinion(connection, row, expert) or opinions.has_passed(connection, row, expert)
    if not own:
        if row.status == PLANTED:
            raise ConflictError(f"ticket {row.id!r} was answered by someone else, not by {expert}")
        return False
    write(runtime, ticket_id, act, audit)
    return True


def adjudicate(runtime: AgentRuntime, ticket_id: str, label: Any, by: str | None, audit: AuditLine | None) -> None:
    """Settle a disagreement: the class stands, and is learned if it is another one than before."""

    def act(connection: Connection, row: Any, head: int, now: float) -> int:
        settings = runtime.store.settings
        number = disagreements.class_number(settings, label)
        dispute = disagreements.find(connection, row.seq)
        if dispute is None or row.status != ANSWERED:
            raise ConflictError(f"there is no disagreement on ticket {row.id!r}")
        if dispute.state == disagreements.SETTLED:
            if dispute.label == number:
                return head
            raise ConflictError(f"the disagreement on ticket {row.id!r} is settled: correct the answer instead")
        disagreements.check_adjudicator(connection, row, by)
        return disagreements.settle(connection, row, number, by, by, settings, head, now)

    write(runtime, ticket_id, act, audit)


def follow(connection: Connection, runtime: AgentRuntime, row: Any, change: Any, head: int, now: float) -> int:
    """What a change of a ticket means for opinions on it, in the same transaction; the last event."""
    last = opinions.follow(connection, row, change.event, runtime.store.settings, head, now)
    if change.event.get("expert") is not None and change.event["kind"] == ANSWERED:
        look_at_people(connection, runtime, row.seq, now, answered_by=change.event["expert"])
    return last


def look_at_people(
    connection: Connection, runtime: AgentRuntime, ticket: int, now: float, answered_by: str | None = None
) -> None:
    """Check whether someone is careless: whoever has given an opinion on this ticket, or has just answered it."""
    settings = runtime.store.settings
    said = [one.expert for one in disagreements.of_ticket(connection, ticket) if one.closed is not None]
    names = {name for name in said if name is not None}
    if answered_by is not None and settings.quality.second_opinions:
        count = opinions.answers_given(connection, answered_by)
        if count % LOOK_EVERY == 0:
            names.add(answered_by)
    for name in sorted(names):
        look_at(connection, settings, name, opinions.answers_given(connection, name), now)


def set_checks(runtime: AgentRuntime, given: dict[str, Any], audit: AuditLine | None) -> None:
    """Change how people's answers are checked; None leaves a choice as it is."""
    runtime.change_settings({"quality": runtime.store.settings.quality.changed(given)}, audit)


def stop(runtime: AgentRuntime, expert: str, audit: AuditLine | None) -> None:
    """Let a person get no questions any more."""
    _mark(runtime, expert, audit, lambda now: {"stopped": now})


def allow(runtime: AgentRuntime, expert: str, audit: AuditLine | None) -> None:
    """Let a person get questions again; what was held against them until now counts no more."""
    _mark(runtime, expert, audit, lambda now: {"stopped": None, "found": None, "why": None, "since": now})


def _mark(
    runtime: AgentRuntime, expert: str, audit: AuditLine | None, columns: Callable[[float], dict[str, Any]]
) -> None:
    with runtime.writing() as connection:
        now = runtime.clock()
        mark(connection, expert, **columns(now))
        audit_outbox.add(connection, audit, None, now)
    runtime.audit_written(audit)


def _is_asked(runtime: AgentRuntime, ticket_id: str, expert: str | None) -> bool:
    with runtime.reading() as connection:
        row = ticket_lifecycle.find(connection, ticket_id)
        asked = opinions.own_opinion(connection, row, expert) is not None
    if row.status == PLANTED and not asked:
        raise ConflictError(f"the lease of ticket {row.id!r} has run out: ask for questions again")
    return asked
