"""What changes an agent besides its observations: answers, labels that are taught, classes, costs, erasure.

Each change is one transaction, with the line of the audit trail that tells of it, and is learned after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from sparingly.live.agent import teaching
from sparingly.live.agent.agent_settings import AgentSettings
from sparingly.live.agent.runtime import AgentRuntime
from sparingly.live.consultation.heard_answers import hear_person
from sparingly.live.quality import team_quality
from sparingly.live.store import audit_outbox, erasure
from sparingly.live.store.audit_outbox import AuditLine
from sparingly.live.tickets import ticket_lifecycle
from sparingly.live.tickets.ticket_records import Label
from sparingly.live.training import added_classes, changed_costs


class AgentChanges:
    """Writes changes of an open agent, and lets it learn from them."""

    def __init__(self, runtime: AgentRuntime) -> None:
        self._runtime = runtime

    def teach(
        self, block: Sequence[Any], labels: Any, ids: Sequence[Any] | None = None, audit: AuditLine | None = None
    ) -> int:
        """Learn labels that are known already, with one training; returns how many were new."""
        runtime = self._runtime
        with runtime.lock:
            runtime.check_open()
            numbers = teaching.class_numbers(runtime.store.settings.classes, labels, len(block))
            if not numbers:
                return 0
            runtime.complete_schema(block)
            settings = runtime.store.settings
            known = teaching.known_labels(settings.schema.read_all(block, runtime.text_encoder()), numbers, ids)
            teaching.check_teachable(settings, runtime.instance, known[0])
            with runtime.store.writing() as connection:
                new = teaching.not_taught_yet(connection, known)
                head = runtime.store.head(connection) + 1
                if new:
                    teaching.write(connection, head, runtime.clock(), new)
                    audit_outbox.add(connection, audit, None, runtime.clock())
            runtime.audit_written(audit)
            if new:
                runtime.learn_upto(head)
            return len(new)

    def answer(
        self,
        ticket_id: str,
        label: Any,
        expert: str | None,
        overrule: bool,
        new_class: bool,
        audit: AuditLine | None,
    ) -> None:
        """Write an answer, with the class that it names if that may be new, in one transaction, and learn from it."""
        runtime = self._runtime
        if not overrule and team_quality.take_opinion(runtime, ticket_id, label, expert, audit):
            return
        is_new = new_class and added_classes.unknown(runtime.store.settings, label)
        may_be_wrong = runtime.store.settings.game.noisy_experts and not (is_new or overrule)
        if may_be_wrong and hear_person(runtime, ticket_id, label, expert, audit):
            return
        grown: list[AgentSettings] = []

        def rule(connection: Connection, row: Any, now: float) -> ticket_lifecycle.Change | None:
            settings = runtime.store.settings
            if new_class and added_classes.unknown(settings, label):
                settings = added_classes.write(connection, runtime.store, label, None, expert, now)
                grown.append(settings)
                row = ticket_lifecycle.find(connection, ticket_id)
            said = ticket_lifecycle.meaning(settings.game, settings.classes, row.action, label)
            return ticket_lifecycle.answered(connection, row, said, expert, now, overrule)

        with runtime.lock:
            if new_class and added_classes.unknown(runtime.store.settings, label):
                added_classes.check_grows(runtime.store.settings, runtime.instance, label)
            runtime.change(ticket_id, rule, audit)
            for settings in grown:
                runtime.store.settings = settings

    def add_class(self, label: Label, cost: float | None, expert: str | None, audit: AuditLine | None) -> None:
        """Take on a class that was not known before."""
        runtime = self._runtime
        with runtime.lock:
            runtime.check_open()
            added_classes.check_grows(runtime.store.settings, runtime.instance, label, cost)
            now = runtime.clock()
            with runtime.writing() as connection:
                settings = added_classes.write(connection, runtime.store, label, cost, expert, now)
                audit_outbox.add(connection, audit, None, now)
                head = runtime.store.head(connection)
            runtime.store.settings = settings
            runtime.audit_written(audit)
            if settings.shape is not None:
                runtime.learn_upto(head)

    def set_costs(self, costs: Any, query_cost: float | None, who: str | None, audit: AuditLine | None) -> None:
        """Go on with other costs."""
        runtime = self._runtime
        with runtime.lock:
            runtime.check_open()
            with runtime.writing() as connection:
                before = runtime.store.settings
                game = changed_costs.changed_game(before, costs, query_cost)
                if game == before.game:
                    return
                changed_costs.check_takes(before, runtime.instance, game)
                settings = changed_costs.write(connection, runtime.store, game, who, runtime.clock())
                audit_outbox.add(connection, audit, None, runtime.clock())
                head = runtime.store.head(connection)
            runtime.store.settings = settings
            runtime.audit_written(audit)
            if settings.shape is not None:
                runtime.learn_upto(head)

    def erase(self, ticket_ids: Sequence[str], audit: AuditLine | None) -> None:
        """Erase what tickets show of a person, unlearn it, and overwrite it on disk."""
        runtime = self._runtime
        with runtime.lock:
            runtime.check_open()
            now = runtime.clock()
            with runtime.store.writing() as connection:
                rows = [ticket_lifecycle.find(connection, ticket_id) for ticket_id in ticket_ids]
                head = runtime.store.head(connection)
                last = erasure.erase(connection, rows, head, now)
                for row in rows:
                    audit_outbox.add(connection, audit, row.id, now)
            runtime.audit_written(audit)
            if last > head:
                runtime.learn_upto(last)
        runtime.store.backend.purge(runtime.store.engine)
