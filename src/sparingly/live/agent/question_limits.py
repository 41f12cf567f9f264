"""How many questions people can take: open at a time, in an hour, in a day."""

from __future__ import annotations

from dataclasses import dataclass, fields

from sqlalchemy import Connection, and_, func, select

from sparingly.live.agent.errors import AgentError
from sparingly.live.agent.ticket_records import OPEN
from sparingly.live.store.tables import tickets

HOUR, DAY = 3600.0, 86400.0


@dataclass(frozen=True)
class QuestionLimits:
    """When the agent must not ask: it then announces its prediction, and says why."""

    open: int | None = None
    per_hour: int | None = None
    per_day: int | None = None

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise AgentError(f"the limit {limit.name} is {value!r}: it must be a whole number or None")


class QuestionAllowance:
    """Whether a question may be asked now, with those asked in the same call counted."""

    def __init__(self, connection: Connection, limits: QuestionLimits, now: float) -> None:
        self._left: list[tuple[int, str]] = []
        count = select(func.count()).select_from(tickets)
        if limits.open is not None:
            there = connection.execute(count.where(tickets.c.status == OPEN)).scalar_one()
            self._left.append((limits.open - there, f"{limits.open} questions may be open at a time"))
        for limit, span, name in ((limits.per_hour, HOUR, "an hour"), (limits.per_day, DAY, "a day")):
            if limit is not None:
                since = and_(tickets.c.asks, tickets.c.at > now - span)
                there = connection.execute(count.where(since)).scalar_one()
                self._left.append((limit - there, f"{limit} questions may be asked in {name}"))
        self._asked = 0

    def refusal(self) -> str | None:
        """The limit that forbids one more question, in words; None if it may be asked, and it is counted."""
        for left, words in self._left:
            if self._asked >= left:
                return words
        self._asked += 1
        return None
