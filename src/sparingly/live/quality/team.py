"""An agent's people: what is known of them, and what an admin decides about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sparingly.live.agent.features import rows
from sparingly.live.quality import planting, team_quality
from sparingly.live.quality.agreement import Agreement
from sparingly.live.quality.quality_checks import QualityChecks
from sparingly.live.quality.quality_records import Disagreement, Opinion, PersonQuality
from sparingly.live.store.audit_outbox import AuditLine
from sparingly.live.tickets.ticket_records import Label

if TYPE_CHECKING:
    from sparingly.live.agent.changes import AgentChanges
    from sparingly.live.agent.runtime import AgentRuntime


class Team:
    """The people of an agent, `agent.team`."""

    def __init__(self, runtime: AgentRuntime, changes: AgentChanges) -> None:
        self._runtime = runtime
        self._changes = changes

    @property
    def checks(self) -> QualityChecks:
        """How their answers are checked."""
        return self._runtime.store.settings.quality

    def set_checks(
        self,
        *,
        second_opinions: float | None = None,
        disagreements: str | None = None,
        known_answers: float | None = None,
        careless_below: float | None = None,
        stop_careless: bool | None = None,
        audit: AuditLine | None = None,
    ) -> None:
        """Change how answers are checked; what is left out stays as it is. `QualityChecks` says what each means."""
        given = {"second_opinions": second_opinions, "disagreements": disagreements, "known_answers": known_answers}
        given |= {"careless_below": careless_below, "stop_careless": stop_careless}
        team_quality.set_checks(self._runtime, given, audit)

    def people(self) -> list[PersonQuality]:
        """How often each expert is right, how fast, and what they cost; whoever has answered most first."""
        return self._runtime.quality.people(self._runtime.reliability())

    def agreement(self) -> Agreement:
        """How far people agree beyond chance, on questions that two or more of them have answered."""
        return self._runtime.quality.agreement()

    def opinions(self, ticket_id: str) -> list[Opinion]:
        """What people said, or are asked, of a ticket of which more than one was asked."""
        return self._runtime.quality.opinions(ticket_id)

    def disagreements(self, *, settled: bool = False, limit: int = 50) -> list[Disagreement]:
        """What is to be settled, oldest first; or with `settled` what was, newest first."""
        return self._runtime.quality.disagreements(settled=settled, limit=limit)

    def adjudicate(self, ticket_id: str, label: Any, by: str | None = None, audit: AuditLine | None = None) -> None:
        """Settle a disagreement; nobody settles one about their own answer."""
        team_quality.adjudicate(self._runtime, ticket_id, label, by, audit)

    def plant(
        self,
        X: Any,
        labels: Sequence[Label],
        *,
        ids: Sequence[str | int | None] | None = None,
        payloads: Sequence[Any] | None = None,
        teach: bool = False,
        audit: AuditLine | None = None,
    ) -> list[str]:
        """Plant items whose classes are known, all or none; returns their tickets. With `teach` they are learned."""
        block = rows(X)
        planted = planting.plant(self._runtime, block, labels, ids, payloads, audit)
        if teach:
            self._changes.teach(block, labels, [f"planted {one}" for one in planted])
        return planted

    def given_by(self, person: str, limit: int) -> list[tuple[str, Label, float]]:
        """The tickets of which a person has said something beside the answer that stands, what, and when."""
        return self._runtime.quality.given_by(person, limit)

    def has_skipped(self, ticket_id: str, person: str) -> bool:
        """Whether a person has skipped an opinion that is still to be had."""
        return self._runtime.quality.has_skipped(ticket_id, person)

    def answered_since(self, person: str, since: float) -> tuple[int, float]:
        """How many second opinions and planted items a person has answered since a time, and what they cost."""
        return self._runtime.quality.answered_since(person, since)

    def planted(self) -> tuple[int, int, float]:
        """How many items are planted, how many answers there are to them, and what these have cost."""
        return self._runtime.quality.planted()

    def stop(self, person: str, *, audit: AuditLine | None = None) -> None:
        """Let a person get no questions any more."""
        team_quality.stop(self._runtime, person, audit)

    def allow(self, person: str, *, audit: AuditLine | None = None) -> None:
        """Let a person get questions again; what was held against them until now counts no more."""
        team_quality.allow(self._runtime, person, audit)
