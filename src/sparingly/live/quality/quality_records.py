"""What is known of an agent's people: how often each is right, how fast, at what cost; opinions; disagreements."""

from __future__ import annotations

from dataclasses import dataclass

from sparingly.live.tickets.ticket_records import Label, Payload, TicketRecord


@dataclass(frozen=True, slots=True)
class PersonQuality(TicketRecord):
    """How one expert answers, a person or a machine; what cannot be known yet is None.

    Attributes
    ----------
    expert
        The name.
    kind
        "person", or "machine" if it is called.
    answers
        All that were given: first ones that stand, second opinions, answers to planted items, answers that were heard.
    known, known_right
        Answers to planted items, and how many of them were right.
    settled, settled_right
        Answers in disagreements that were settled, and how many of them stood.
    agreed
        Answers that another person gave, too.
    accuracy, accuracy_low, accuracy_high
        The share of right answers among all of these, and a 95 % interval.
    model_accuracy, model_low, model_high
        The same by what the agent held likely before each answer, where no machine was heard before. Of machines, and
        of people who may be wrong by the agent's experts, what the strategy has learned of all their answers: truths
        beside them, and beliefs where nobody told the truth.
    seconds
        The median time from when a question was shown to the answer.
    cost
        What the answers have cost.
    careless
        When the person was found careless, if they were, after `found_after` answers, and `why`.
    stopped
        Since when the person gets no questions any more.
    """

    expert: str
    kind: str
    answers: int
    known: int
    known_right: int
    settled: int
    settled_right: int
    agreed: int
    accuracy: float | None
    accuracy_low: float | None
    accuracy_high: float | None
    model_accuracy: float | None
    model_low: float | None
    model_high: float | None
    seconds: float | None
    cost: float
    careless: float | None = None
    found_after: int | None = None
    why: str | None = None
    stopped: float | None = None


@dataclass(frozen=True, slots=True)
class Opinion(TicketRecord):
    """What a person said, or is asked, of a ticket: why ("first", "share", "worth", "third", "known"), and when."""

    reason: str
    expert: str | None
    label: Label | None
    at: float
    closed: float | None
    price: float | None


@dataclass(frozen=True, slots=True)
class Disagreement(TicketRecord):
    """Two answers to one question that differ; `state` is "third" or "admin", whoever is asked, or "settled"."""

    ticket: str
    at: float
    state: str
    first: str | None
    first_label: Label
    second: str | None
    second_label: Label
    third: str | None
    third_label: Label | None
    label: Label | None
    settled_by: str | None
    closed: float | None
    why: str
    payload: Payload | None
