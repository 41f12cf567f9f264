"""What an agent hands out: tickets, questions, the history, each readable as attributes or by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Label = str | int | float | bool

ANNOUNCED, OPEN, ANSWERED = "announced", "open", "answered"
SKIPPED, UNKNOWN, WITHDRAWN = "skipped", "unknown", "withdrawn"


class TicketRecord:
    """A frozen dataclass that also reads like a mapping, so that `dict(record)` is ready for JSON."""

    __slots__: tuple[str, ...] = ()

    def keys(self) -> Iterator[str]:
        return iter(self.__slots__)

    def __getitem__(self, name: str) -> Any:
        if name not in self.__slots__:
            raise KeyError(name)
        return getattr(self, name)


@dataclass(frozen=True, slots=True)
class Ticket(TicketRecord):
    """What the agent decided on one observation.

    Attributes
    ----------
    id
        The caller's own id, or one the agent made up.
    prediction
        The announced class; for a question, the class the agent would have announced.
    asks
        Whether a person is asked.
    action
        The action of the game: a class's number, or the number of the expert or question.
    why
        The reason, in words.

    >>> ticket = Ticket("a", "dog", False, 1, "dog is likely enough")
    >>> ticket.prediction, ticket["asks"], dict(ticket)["why"]
    ('dog', False, 'dog is likely enough')
    """

    id: str
    prediction: Label
    asks: bool
    action: int
    why: str


@dataclass(frozen=True, slots=True)
class Payload(TicketRecord):
    """What a person looks at: `kind` is "image", "text" or "fields"; `content` is bytes, a string or a dict."""

    kind: str
    content: Any
    media: str | None = None


@dataclass(frozen=True, slots=True)
class Question(TicketRecord):
    """An open question, with what its expert needs to see."""

    id: str
    prediction: Label
    action: int
    why: str
    at: float
    choices: tuple[Label, ...]
    """The answers that this question takes besides the classes: all classes, or the parts of a coarse question."""
    features: tuple[float, ...]
    payload: Payload | None
    expert: str | None
    until: float | None
    """When the lease ends."""


@dataclass(frozen=True, slots=True)
class Entry(TicketRecord):
    """One ticket as it stands: `label` is None while nobody has answered."""

    id: str
    prediction: Label
    asks: bool
    action: int
    label: Label | None
    status: str
    why: str
    at: float
    expert: str | None
    closed: float | None


@dataclass(frozen=True, slots=True)
class Waiting(TicketRecord):
    """An open question: since when, why, and who has it now, if anyone."""

    id: str
    at: float
    why: str
    expert: str | None


@dataclass(frozen=True, slots=True)
class Answered(TicketRecord):
    """The answers of one person that stand, how many were what the agent would have said, and when the last came."""

    expert: str | None
    answers: int
    agreed: int
    last: float | None


@dataclass(frozen=True, slots=True)
class Statistics(TicketRecord):
    """How an agent is doing; what cannot be known is None, and estimates say how sure they are.

    Attributes
    ----------
    observations, questions, answered, open, skipped, unknown, withdrawn
        Counts of tickets; `answered` counts labels that nobody was asked for too.
    cost
        What the questions cost, and what the errors of the announcements are estimated to have cost; None while
        nothing says how often the announcements are right.
    questions_cost, errors_cost
        Its two parts.
    accuracy, accuracy_low, accuracy_high
        How often an announcement is right, and a 95 % interval, from questions that were left to chance.
    sample
        How many such questions it rests on, counted as if all weighed the same.
    always_asking
        What asking about every observation would have cost.
    never_asking
        What announcing the one class that is cheapest on the whole would have cost, as far as the labels tell.
    """

    observations: int
    questions: int
    answered: int
    open: int
    skipped: int
    unknown: int
    withdrawn: int
    cost: float | None
    questions_cost: float
    errors_cost: float | None
    accuracy: float | None
    accuracy_low: float | None
    accuracy_high: float | None
    sample: float
    always_asking: float
    never_asking: float
    at: float | None
    """When the last of these observations came."""
