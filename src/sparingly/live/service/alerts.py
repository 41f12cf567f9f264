"""What an admin should know of an agent now: it is paused, people cannot keep up, its budget is nearly spent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sparingly.live.agent.agent_settings import QuestionLimits
from sparingly.live.quality.quality_records import PersonQuality
from sparingly.live.service.agent_registry import ACTIVE, ARCHIVED, PAUSED
from sparingly.live.tickets.ticket_records import Statistics

LATE = 3600.0
"""Seconds that a question may wait before it is an alert."""

NEARLY = 0.9
"""The share of a budget from which on it is nearly spent."""

NEWS = 86400.0
"""Seconds for which a change that was noticed is an alert."""

KINDS = ("state", "late", "full", "budget", "change", "expert", "careless", "disagreements")


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that needs an admin: its kind, one of `KINDS`, and a sentence."""

    kind: str
    text: str


def alerts_of(
    state: str,
    limits: QuestionLimits,
    statistics: Statistics,
    oldest: float | None,
    now: float,
    noticed: Sequence[tuple[float, str | None]] = (),
    people: Sequence[PersonQuality] = (),
) -> Iterator[Alert]:
    """The alerts of an agent; `oldest` is when the oldest open question was asked, `noticed` what changed when.

    >>> from dataclasses import fields
    >>> nothing = Statistics(**{f.name: 0 for f in fields(Statistics)})
    >>> [alert.text for alert in alerts_of("active", QuestionLimits(), nothing, None, 7200.0, [(0.0, "gpt")])]
    ['gpt has become worse, as was noticed 2 hours ago: its answers count for less until they are right again.']
    >>> statistics = Statistics(**{f.name: 0 for f in fields(Statistics)} | {"questions": 95, "open": 1})
    >>> for alert in alerts_of("paused", QuestionLimits(total=100), statistics, 0.0, 7200.0):
    ...     print(alert.kind, "-", alert.text)
    state - The agent is paused: it takes no observations.
    late - The oldest of 1 open question has waited for 2 hours.
    budget - 95 of 100 questions are spent.
    """
    words = {PAUSED: "it takes no observations", ARCHIVED: "it can only be read"}
    if state != ACTIVE:
        yield Alert("state", f"The agent is {state}: {words.get(state, 'it cannot be used')}.")
    if oldest is not None and now - oldest >= LATE:
        questions = "question has" if statistics.open == 1 else "questions has"
        yield Alert("late", f"The oldest of {statistics.open} open {questions} waited for {_duration(now - oldest)}.")
    if limits.open is not None and statistics.open >= limits.open:
        yield Alert(
            "full", f"{statistics.open} questions are open, as many as may be: it asks no more until some are answered."
        )
    if limits.total is not None and statistics.questions >= NEARLY * limits.total:
        yield Alert("budget", f"{statistics.questions} of {limits.total} questions are spent.")
    if limits.cost is not None and statistics.questions_cost >= NEARLY * limits.cost:
        yield Alert("budget", f"Questions have cost {statistics.questions_cost:g} of {limits.cost:g}.")
    for at, expert in noticed:
        if now - at < NEWS and expert is None:
            yield Alert(
                "change", f"What is observed has changed, as was noticed {_duration(now - at)} ago: {_FORGOTTEN}."
            )
        elif now - at < NEWS:
            yield Alert("expert", f"{expert} has become worse, as was noticed {_duration(now - at)} ago: {_TRUSTED}.")
    for one in people:
        yield from _about(one)
    if statistics.disagreements:
        what = "disagreement waits" if statistics.disagreements == 1 else "disagreements wait"
        yield Alert("disagreements", f"{statistics.disagreements} {what} to be settled.")


_FORGOTTEN = "labels that no longer hold are forgotten, and it asks more for a while"
_TRUSTED = "its answers count for less until they are right again"


def _about(one: PersonQuality) -> Iterator[Alert]:
    """What there is to know of one expert."""
    if one.careless is not None:
        stopped = ", and gets no questions any more" if one.stopped is not None else ""
        yield Alert("careless", f"{one.expert} was found careless after {one.found_after} answers: {one.why}{stopped}.")


def _duration(seconds: float) -> str:
    hours = round(seconds / 3600)
    return f"{hours} hour{'s' * (hours != 1)}" if hours < 48 else f"{hours // 24} days"
