"""The budget of questions: limits, and the pace at which what they allow is spent where it is worth most."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from sqlalchemy import Connection, and_, func, select

from sparingly.games import Game
from sparingly.live.agent.agent_settings import AgentSettings, QuestionLimits
from sparingly.live.store.tables import tickets
from sparingly.live.tickets.ticket_records import OPEN
from sparingly.strategies.strategy import Decision

_HOUR, _DAY = 3600.0, 86400.0

FRONT = 1 / 5
"""By a share f of the way, f to this power of an allowance may be spent: early labels serve all that follows."""

AHEAD = 0.02
"""How far the pace looks ahead, as a share of the whole way: so much may be spent too early."""

WINDOW, MOST = 0.1, 1000
"""The questions of the last tenth of the way, of so many observations at the most, tell what one is worth now."""

USUAL = 2000
"""Observations that are expected in all, at least, where nobody says how many; or twice as many as there were."""

BEFORE_ALL = 1e6
"""What a question is worth without which a strategy knows nothing yet."""


FIRST_LABELS = 20
"""So many of these questions at once in any case, if the limit allows them."""


@dataclass
class Allowance:
    """What may be spent over a way: a number of questions, or money.

    Attributes
    ----------
    limit, spent
        In questions or in money.
    done, length
        How far on the way we are, and how long it is: in observations, or in seconds.
    words
        What the limit is.
    pace, step
        Observations in one unit of the way; how far each takes us on it.

    >>> early = Allowance(limit=80, spent=10, done=105, length=1000)
    >>> round(early.allowed_by_now(1.0)), round(early.rate(1.0), 1), early.refuses(1.0, 0.0)
    (53, 2.1, False)
    """

    limit: float
    spent: float
    done: float
    length: float
    words: str = ""
    in_money: bool = False
    pace: float = 1.0
    step: float = 1.0

    def allowed_by_now(self, price: float) -> float:
        """What may have been spent by now; one question in any case."""
        share = min(1.0, self.done / self.length + AHEAD)
        return float(max(self.limit * share**FRONT, price))

    def rate(self, price: float) -> float:
        """The share of the coming observations about which may be asked at this pace."""
        left = max(0.0, self.allowed_by_now(price) - self.spent) / max(price, 1e-12)
        return left / max(1.0, AHEAD * self.length * self.pace)

    def refuses(self, price: float, worth: float) -> bool:
        """Whether one more would be too early; of what comes before all else, half may be spent at once."""
        allowed = self.allowed_by_now(price)
        if worth >= BEFORE_ALL:
            allowed = max(allowed, self.limit / 2, min(self.limit, FIRST_LABELS * price))
        return self.spent + price > allowed + 1e-9


class Spending:
    """What an agent has asked so far: read once, then only what is new."""

    def __init__(self) -> None:
        self.observed = 0
        self.asked: Counter[int] = Counter()
        """Questions, by action."""
        self.recent: deque[float | None] = deque(maxlen=MOST)
        """Of the last observations, what a question about each was worth; None where the strategy wanted none."""
        self._upto = 0

    def update(self, connection: Connection) -> None:
        """Read the tickets that are new."""
        t, new = tickets.c, tickets.c.seq > self._upto
        counts = select(t.action, t.asks, func.count()).where(new).group_by(t.action, t.asks)
        for action, asks, number in connection.execute(counts):
            self.observed += number
            self.asked[action] += number if asks else 0
        last = select(t.seq, t.wanted, t.priority).where(new).order_by(t.seq.desc()).limit(MOST)
        for seq, wanted, priority in reversed(connection.execute(last).all()):
            self.recent.append((priority or 0.0) if wanted else None)
            self._upto = int(seq)

    def money(self, game: Game) -> float:
        prices = game.costs.max(axis=1)
        return float(sum(number * prices[action] for action, number in self.asked.items()))


@dataclass
class QuestionAllowance:
    """Whether a question may be asked now, with those asked in the same call counted.

    Limits only forbid. Allowances are paced: of the questions that the strategy wants those are asked that are worth
    most, by what the last ones were worth.
    """

    left: list[tuple[int, str]]
    allowances: list[Allowance] = field(default_factory=list)
    recent: deque[float | None] = field(default_factory=deque)
    _asked: int = 0

    @classmethod
    def at(cls, connection: Connection, settings: AgentSettings, spending: Spending, now: float) -> QuestionAllowance:
        """What the limits allow now."""
        left = list(_left(connection, settings.limits, now))
        if not settings.limits.is_paced:
            return cls(left)
        spending.update(connection)
        paced = list(_allowances(connection, settings, spending, now))
        window = max(100, round(WINDOW * max(a.length * a.pace for a in paced)))
        return cls(left, paced, deque(spending.recent, maxlen=min(MOST, window)))

    def judge(self, decision: Decision, settings: AgentSettings, action: int) -> tuple[float | None, str | None]:
        """What a question is worth, as far as it matters here, and why it must not be asked, if so."""
        worth = worth_of(decision, settings.game) if self.allowances else None
        self.observe(worth)
        return worth, self.refusal(worth, max(settings.costs[action]))

    def pass_over(self) -> tuple[None, None]:
        """An observation about which there is nothing to ask."""
        self.observe(None)
        return None, None

    def observe(self, priority: float | None) -> None:
        """One more observation has come; `priority` is None if there was nothing to ask."""
        self.recent.append(priority)
        for allowance in self.allowances:
            allowance.done += allowance.step

    def refusal(self, priority: float | None, price: float) -> str | None:
        """Why one more question must not be asked, in words; None if it may be, and it is counted."""
        worth = priority or 0.0
        for left, words in self.left:
            if self._asked >= left:
                return f"no more than {words}"
        for one in self.allowances:
            cost = price if one.in_money else 1.0
            if one.spent + cost > one.limit + 1e-9:
                return f"no more than {one.words}"
            if one.refuses(cost, worth) or worth < min(BEFORE_ALL, self._least(one.rate(cost))):
                return f"no more than {one.words}: they are kept for questions that are worth more"
        self._asked += 1
        for one in self.allowances:
            one.spent += price if one.in_money else 1.0
        return None

    def _least(self, rate: float) -> float:
        """What a question must be worth, so that about this share of the observations is asked about."""
        wanted = [one for one in self.recent if one is not None]
        if not wanted or rate * len(self.recent) >= len(wanted):
            return -np.inf
        return float(np.quantile(wanted, 1 - rate * len(self.recent) / len(wanted)))


def worth_of(decision: Decision, game: Game) -> float:
    """What asking is worth beyond its price where the strategy says so, else what announcing is expected to cost.

    >>> from sparingly import label_efficient
    >>> from sparingly.strategies import Why
    >>> why = Why("the label is worth {worth}, and costs {net} more", {"worth": 0.5, "net": 0.25})
    >>> worth_of(Decision(2, 0, True, why), label_efficient(2))
    0.25
    >>> worth_of(Decision(2, 0, True, Why("unsure"), np.array([0.75, 0.25])), label_efficient(2))
    0.25
    """
    why = decision.why
    if why.get("start") is not None:
        return BEFORE_ALL
    if why.get("audit") is True:
        return 0.0
    if why.get("worth") is not None and why.get("net") is not None:
        return float(why["worth"] - why["net"])
    if decision.probabilities is None:
        return 0.0
    return float(game.costs[decision.prediction] @ decision.probabilities)


_COUNT = select(func.count()).select_from(tickets)


def _left(connection: Connection, limits: QuestionLimits, now: float) -> Iterator[tuple[int, str]]:
    """How many more questions may be asked by each limit that is not paced."""
    if limits.open is not None:
        there = connection.execute(_COUNT.where(tickets.c.status == OPEN)).scalar_one()
        yield limits.open - there, f"{limits.open} questions may be open at a time"
    if limits.per_hour is not None:
        since = and_(tickets.c.asks, tickets.c.at > now - _HOUR)
        there = connection.execute(_COUNT.where(since)).scalar_one()
        yield limits.per_hour - there, f"{limits.per_hour} questions may be asked in an hour"


def _allowances(connection: Connection, settings: AgentSettings, spending: Spending, now: float) -> Iterator[Allowance]:
    limits = settings.limits
    length = settings.horizon or max(USUAL, 2 * spending.observed)
    if limits.total is not None:
        words = f"{limits.total} questions may be asked in all"
        yield Allowance(limits.total, spending.asked.total(), spending.observed, length, words)
    if limits.cost is not None:
        words = f"{limits.cost:g} may be spent on questions in all"
        yield Allowance(limits.cost, spending.money(settings.game), spending.observed, length, words, in_money=True)
    if limits.per_day is not None:
        since = and_(tickets.c.asks, tickets.c.at > now - _DAY)
        asked, first = connection.execute(select(func.count(), func.min(tickets.c.at)).where(since)).one()
        begun = now if first is None else float(first)
        seen = connection.execute(_COUNT.where(tickets.c.at >= begun)).scalar_one()
        words = f"{limits.per_day} questions may be asked in a day"
        pace = (seen + 1) / max(now - begun, _HOUR)
        yield Allowance(limits.per_day, asked, now - begun, _DAY, words, pace=pace, step=0.0)
