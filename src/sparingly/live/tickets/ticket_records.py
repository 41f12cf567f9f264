"""What an agent hands out: tickets, questions, the history, each readable as attributes or by name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sparingly.live.agent.errors import AgentError, checked_text

Label = str | int | float | bool

ANNOUNCED, OPEN, ANSWERED = "announced", "open", "answered"
CONSULTING = "consulting"
"""A machine was asked, and its answer is on the way: people are asked only if the agent says so then."""
HELD = "held"
"""Nothing is announced, since nothing is learned yet: the ticket is announced once there is a model."""
SKIPPED, UNKNOWN, WITHDRAWN = "skipped", "unknown", "withdrawn"
PLANTED = "planted"
"""An item whose class is known, to see how often people are right; it is no observation, and in no count of them."""


class TicketRecord:
    """A frozen dataclass that also reads like a mapping, so that `dict(record)` is ready for JSON."""

    __slots__: tuple[str, ...] = ()

    def keys(self) -> Iterator[str]:
        return iter(self.__slots__)

    def __getitem__(self, name: str) -> Any:
        if name not in self.__slots__:
            raise KeyError(name)
        return getattr(self, name)


class Reason(str):
    """The words of a reason, which also give its numbers by name.

    >>> reason = Reason("the label is worth 0.90")
    >>> reason.numbers = {"worth": 0.9}
    >>> reason == "the label is worth 0.90", reason["worth"], reason[:3]
    (True, 0.9, 'the')
    """

    numbers: Mapping[str, Any]

    def __getitem__(self, which: Any) -> Any:
        return self.numbers[which] if isinstance(which, str) else super().__getitem__(which)


@dataclass(frozen=True, slots=True)
class Ticket(TicketRecord):
    """What the agent decided on one observation.

    Attributes
    ----------
    id
        The caller's own id, or one the agent made up.
    prediction
        The announced class; for a question, the class the agent would have announced; None if the ticket is held.
    asks
        Whether a person is asked.
    action
        The action of the game: a class's number, or the number of the expert or question.
    why
        The reason, in words; `why["risk"]` is one of its numbers, `why.numbers` all of them.
    probabilities
        How likely each class is held to be; calibrated where the strategy is `sparing`.
    numbers
        The numbers of the reason, by name.
    status
        "announced", "open" while a person is asked, "consulting" while a machine is (the prediction is then what
        would be announced if it did not answer), or "held" until there is a model (`Agent(hold=True)`).
    asked
        Who was asked so far, in this order, where experts have names.

    >>> ticket = Ticket("a", "dog", False, 1, "dog is likely enough")
    >>> ticket.prediction, ticket["asks"], dict(ticket)["why"]
    ('dog', False, 'dog is likely enough')
    """

    id: str
    prediction: Label | None
    asks: bool
    action: int
    why: str
    probabilities: dict[Any, float] = field(default_factory=dict)
    numbers: dict[str, Any] = field(default_factory=dict)
    status: str | None = None
    asked: tuple[str, ...] = ()


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
    probabilities: dict[Any, float] = field(default_factory=dict)
    numbers: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry(TicketRecord):
    """One ticket as it stands: `label` is None while nobody has answered, `prediction` while the ticket is held."""

    id: str
    prediction: Label | None
    asks: bool
    action: int
    label: Label | None
    status: str
    why: str
    at: float
    expert: str | None
    closed: float | None
    erased: str | None = None
    """What of it was erased: "payload", or "everything" that was observed."""
    probabilities: dict[Any, float] = field(default_factory=dict)
    numbers: dict[str, Any] = field(default_factory=dict)
    asked: tuple[str, ...] = ()
    """Who was asked so far, in this order, where experts have names."""
    paid: float = 0.0
    """What experts that were called have cost."""


@dataclass(frozen=True, slots=True)
class ExpertCall(TicketRecord):
    """What an expert was asked about a ticket, and what came of it.

    Attributes
    ----------
    expert
        Its name.
    state
        "due", "called", or how it ended: "answered", "no class", "timed out", ...
    label
        The class it named, if one.
    price
        What it cost; None while it is on the way.
    detail
        In words, why there is no class.
    at, closed
        When it was asked for, and when it ended.
    """

    expert: str
    state: str
    label: Label | None
    price: float | None
    detail: str | None
    at: float
    closed: float | None


@dataclass(frozen=True, slots=True)
class TicketEvent(TicketRecord):
    """Something that happened to a ticket: when, what, by whom, and the class that was named."""

    at: float
    what: str
    who: str | None
    label: Label | None


@dataclass(frozen=True, slots=True)
class TicketDetails(TicketRecord):
    """All about one ticket; what was erased, or dropped since it is old, is None."""

    entry: Entry
    payload: Payload | None
    features: tuple[float, ...] | None
    holder: str | None
    """Who has the question now."""
    events: tuple[TicketEvent, ...]


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
class Outlook(TicketRecord):
    """What is to be expected of asking on: when one can stop; intervals are meant to hold 95 times in 100.

    Attributes
    ----------
    questions, price
        The next questions, and what they cost.
    rounds
        The observations that are expected to come.
    saves, saves_low, saves_high
        What the answers to these questions save in all of them.
    per_day
        Observations a day, as they came lately; None, as all that follows, in the first minutes.
    stopping_costs, stopping_low, stopping_high
        What announcements would cost more until tomorrow if nothing was asked from now on.
    stopping_saves
        What the questions until tomorrow would cost.
    """

    questions: int
    price: float
    rounds: int
    saves: float
    saves_low: float
    saves_high: float
    per_day: float | None = None
    stopping_costs: float | None = None
    stopping_low: float | None = None
    stopping_high: float | None = None
    stopping_saves: float | None = None

    def __str__(self) -> str:
        """The outlook in words, a line or two.

        >>> print(Outlook(100, 50.0, 5000, 70.5, 46.3, 94.8))
        the next 100 questions cost 50 and save about 70.5 (46.3 to 94.8) in 5000 observations to come
        """
        low = max(0.0, self.saves_low)
        savings = (
            f"the next {self.questions} questions cost {self.price:.4g} and save about {max(0.0, self.saves):.4g} "
            f"({low:.4g} to {self.saves_high:.4g}) in {self.rounds} observations to come"
        )
        if self.stopping_costs is None or self.stopping_low is None or self.stopping_high is None:
            return savings
        return (
            f"{savings}\nasking no more would cost about {max(0.0, self.stopping_costs):.4g} by tomorrow "
            f"({max(0.0, self.stopping_low):.4g} to {self.stopping_high:.4g}), "
            f"and save {self.stopping_saves:.4g} of questions"
        )


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
    never_asking: float | None
    at: float | None
    """When the last of these observations came."""
    taught: int = 0
    """Labels that it was taught without having asked: they cost nothing, and are in no other count."""
    held: int = 0
    """Tickets that are announced once there is a model."""
    consulting: int = 0
    """Tickets for which a machine's answer is on the way."""
    bill: dict[str, float] = field(default_factory=dict)
    """What each expert has cost, where experts have names; together the questions' cost."""
    outlook: Outlook | None = None
    """What the next questions will save, where the strategy can tell."""
    second_opinions: int = 0
    """Answers to questions that someone had answered before; their cost is in that of the questions."""
    disagreements: int = 0
    """Those between two people that are to be settled."""
    known_answers: int = 0
    """Answers to planted items: they and their cost are in no other number."""
    known_cost: float = 0.0


def checked_payload(given: Any) -> Payload | None:
    """What the person will look at: bytes are an image, a string is text, a mapping is a table of fields.

    >>> checked_payload({"height": 3}).kind, checked_payload(b"\\x89PNG....").media
    ('fields', 'image/png')
    """
    if given is None or isinstance(given, Payload):
        return given
    if isinstance(given, bytes | bytearray):
        return Payload("image", bytes(given), _media(bytes(given)))
    if isinstance(given, str):
        return Payload("text", checked_text("the payload's text", given), "text/plain")
    if isinstance(given, Mapping):
        try:
            checked_text("the payload's fields", json.dumps(dict(given), ensure_ascii=False))
            return Payload("fields", json.loads(json.dumps(dict(given))), "application/json")
        except AgentError:
            raise
        except (TypeError, ValueError, RecursionError) as error:
            raise AgentError(f"the payload's fields must be plain values: {error}") from None
    raise AgentError(f"a payload is an image's bytes, a text or a table of fields, not {type(given).__name__}")


def read_payload(row: Any) -> Payload:
    """A payload as it was given."""
    content: Any = row.content
    if row.kind != "image":
        content = bytes(row.content).decode()
    return Payload(row.kind, json.loads(content) if row.kind == "fields" else content, row.media)


def payload_row(seq: int, payload: Payload) -> dict[str, Any]:
    """A payload as a row of the table."""
    content = payload.content
    if payload.kind == "fields":
        content = json.dumps(content)
    return {
        "ticket": seq,
        "kind": payload.kind,
        "media": payload.media,
        "content": content.encode() if isinstance(content, str) else content,
    }


def _media(data: bytes) -> str:
    starts = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"BM": "image/bmp"}
    for start, media in starts.items():
        if data.startswith(start):
            return media
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else "application/octet-stream"
