"""What an admin has chosen to know how often people are right, and which of these checks fall on which question."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from sparingly.live.agent.errors import AgentError, shortened

THIRD, ADMIN = "third", "admin"


@dataclass(frozen=True, slots=True)
class QualityChecks:
    """How people's answers are checked.

    Attributes
    ----------
    second_opinions
        The share of answers that another person gives, too; where it is above 0, so does another person where an
        answer is so surprising that a second one is worth its price.
    disagreements
        Who settles it if the two differ: "third", another person and then an admin if all three differ, or "admin".
    known_answers
        The share of a person's questions that are planted items, as long as there are some that the person has not
        answered.
    careless_below
        A person who is right less often than this is careless.
    stop_careless
        Whether someone who was found careless gets no questions any more.

    >>> QualityChecks(second_opinions=1.5)
    Traceback (most recent call last):
    ...
    sparingly.live.agent.errors.AgentError: second_opinions is 1.5: it must be a share between 0 and 1
    """

    second_opinions: float = 0.0
    disagreements: str = THIRD
    known_answers: float = 0.05
    careless_below: float = 0.8
    stop_careless: bool = False

    def __post_init__(self) -> None:
        for name in ("second_opinions", "known_answers", "careless_below"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise AgentError(f"{name} is {shortened(value)}: it must be a share between 0 and 1")
        if self.disagreements not in (THIRD, ADMIN):
            raise AgentError(f"disagreements is {shortened(self.disagreements)}: it must be 'third' or 'admin'")
        if not isinstance(self.stop_careless, bool):
            raise AgentError(f"stop_careless is {shortened(self.stop_careless)}: it must be True or False")

    def changed(self, given: Mapping[str, Any]) -> QualityChecks:
        """The same with what is given; None leaves a choice as it is."""
        known = {f.name for f in fields(self)}
        for name in given:
            if name not in known:
                raise AgentError(f"there is no check {shortened(name)}: there are {', '.join(sorted(known))}")
        return replace(self, **{name: value for name, value in given.items() if value is not None})

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def draws_second_opinion(self, seed: int, ticket: int) -> bool:
        """Whether the share falls on this ticket: a function of the seed and the ticket, whatever happens to it."""
        return _drawn(self.second_opinions, f"{seed} second opinion {ticket}")

    def draws_known_answer(self, seed: int, expert: str, count: int) -> bool:
        """Whether a person who has given so many answers gets a planted item next."""
        return _drawn(self.known_answers, f"{seed} known answer {count} {expert}")


def _drawn(share: float, what: str) -> bool:
    number = int.from_bytes(hashlib.blake2b(what.encode(), digest_size=8).digest())
    return number < share * 2**64
