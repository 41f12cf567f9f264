"""What is known of people's answers: those whose truth is known, and what the model held likely before the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    CompoundSelect,
    Connection,
    Select,
    and_,
    bindparam,
    exists,
    func,
    insert,
    literal,
    select,
    union_all,
    update,
)

from sparingly.live.agent.agent_settings import AgentSettings
from sparingly.live.quality.careless import evidence, is_careless, model_evidence
from sparingly.live.quality.disagreements import KNOWN, SETTLED, SHARE, WORTH, sole_answers
from sparingly.live.quality.quality_checks import THIRD
from sparingly.live.store.tables import calls, disagreements, opinions, team, tickets
from sparingly.live.tickets.ticket_records import ANSWERED

LAST = 300
"""So many answers of a person, the last ones, are held against what the model held likely."""


@dataclass
class Tally:
    """A person's answers whose truth is known: to planted items, settled disagreements, and where two agreed."""

    known_right: int = 0
    known_wrong: int = 0
    settled_right: int = 0
    settled_wrong: int = 0
    agreed: int = 0

    @property
    def right(self) -> int:
        return self.known_right + self.settled_right + self.agreed

    @property
    def wrong(self) -> int:
        return self.known_wrong + self.settled_wrong

    def count(self, what: str, right: bool, number: int) -> None:
        name = "agreed" if what == "agreed" else f"{what}_{'right' if right else 'wrong'}"
        setattr(self, name, getattr(self, name) + number)


def tally_of(connection: Connection, expert: str) -> Tally:
    """What is known of one person's answers."""
    return tallies(connection, expert).get(expert, Tally())


def tallies(connection: Connection, expert: str | None = None) -> dict[str, Tally]:
    """What is known of everyone's answers, or of one person's, since their answers count."""
    found: dict[str, Tally] = defaultdict(Tally)
    given = {} if expert is None else {"person": expert}
    for what, name, right, number in connection.execute(_checks(expert is not None), given):
        found[str(name)].count(what, bool(right), int(number))
    return dict(found)


@cache
def _checks(of_one: bool) -> CompoundSelect[Any]:
    """All kinds of checks in one query, of the `person` or of everyone; cached, as building it is slow."""
    parts = []
    for what, query, who, when in _queries():
        counted = query.add_columns(literal(what)).outerjoin(team, team.c.expert == who)
        counted = counted.where(and_(who.is_not(None), when > func.coalesce(team.c.since, 0.0)))
        counted = counted.where(who == bindparam("person")) if of_one else counted
        name, right, number, kind = counted.selected_columns
        parts.append(counted.with_only_columns(kind, name, right, number).group_by(name, right))
    return union_all(*parts)


def _queries() -> Iterator[tuple[str, Select[Any], ColumnElement[Any], ColumnElement[Any]]]:
    """By kind of check: who, whether right, how many; and the columns of the person and the time."""
    o, d, t, count = opinions.c, disagreements.c, tickets.c, func.count()
    known = select(o.expert, o.label == t.label, count).select_from(opinions.join(tickets, t.seq == o.ticket))
    yield "known", known.where(and_(o.reason == KNOWN, o.label.is_not(None))), o.expert, o.closed
    for who, said in ((d.first, d.first_label), (d.second, d.second_label)):
        settled = select(who, said == d.label, count).select_from(disagreements).where(d.state == SETTLED)
        yield "settled", settled, who, d.closed
    third = select(o.expert, o.label == d.label, count).select_from(opinions.join(disagreements, d.ticket == o.ticket))
    third = third.where(and_(o.reason == THIRD, o.label.is_not(None), d.state == SETTLED))
    yield "settled", third, o.expert, o.closed
    both = opinions.join(tickets, t.seq == o.ticket).outerjoin(disagreements, d.ticket == o.ticket)
    agree = and_(o.reason.in_([SHARE, WORTH]), o.label == t.label, t.status == ANSWERED, d.ticket.is_(None))
    for who in (o.expert, t.expert):
        yield "agreed", select(who, o.label == t.label, count).select_from(both).where(agree), who, o.closed


def held_likely(
    connection: Connection,
    expert: str,
    *,
    others: bool = False,
    alone: bool = False,
    sole: bool = False,
    limit: int = LAST,
) -> tuple[list[float], list[float]]:
    """For a person's last answers: how likely the model held what they said before, and the sum of all squares.

    Or those of all the `others`. With `alone` only where nobody else was heard before the person was asked: where an
    answer of a machine has led to the question, what the model held likely before it is too much. With `sole` only
    answers that no other person's is held against: none of these counts among the checked ones.
    """
    since = connection.execute(select(team.c.since).where(team.c.expert == expert)).scalar() or 0.0
    rows: list[Any] = []
    for query in _answers(others, alone)[: 1 if sole else 2]:
        rows += connection.execute(query, {"person": expert, "since": since, "most": limit}).all()
    rows.sort(key=lambda row: -row[2])
    said, squares = [], []
    for label, kept, _ in rows[:limit]:
        if label is None or not kept:
            continue
        shares = np.frombuffer(kept, dtype="<f4").astype(float)
        if label < len(shares):
            said.append(float(shares[label]))
            squares.append(float(shares @ shares))
    return said, squares


@cache
def _answers(others: bool, alone: bool) -> tuple[Select[Any], Select[Any]]:
    """First answers and opinions, the last ones first: the class, the probabilities before, and when."""
    o, t = opinions.c, tickets.c
    person: BindParameter[str] = bindparam("person")
    first, second = (t.expert != person, o.expert != person) if others else (t.expert == person, o.expert == person)
    own = sole_answers(t.label, t.probabilities, t.closed).where(and_(first, t.asks, t.closed > bindparam("since")))
    given = select(o.label, t.probabilities, o.closed).select_from(opinions.join(tickets, t.seq == o.ticket))
    given = given.where(and_(second, o.reason != KNOWN, o.closed > bindparam("since")))
    if alone:
        heard = exists().where(calls.c.ticket == t.seq)
        own, given = own.where(~heard), given.where(~heard)
    most: BindParameter[int] = bindparam("most")
    return own.order_by(t.closed.desc()).limit(most), given.order_by(o.closed.desc()).limit(most)


def look_at(connection: Connection, settings: AgentSettings, expert: str, answers: int, now: float) -> bool:
    """Whether a person is found careless now, for the first time; then it is written, and questions may stop."""
    row = connection.execute(select(team).where(team.c.expert == expert)).first()
    if row is not None and row.found is not None:
        return False
    checked, below = tally_of(connection, expert), settings.quality.careless_below
    truth = evidence(checked.right, checked.wrong, below)
    said, _ = held_likely(connection, expert, sole=True)
    others, _ = held_likely(connection, expert, others=True, sole=True)
    model = model_evidence(np.array(said), np.array(others), len(settings.classes), below)
    if not is_careless(truth, model):
        return False
    number = checked.right + checked.wrong
    why = (
        f"{checked.right} of {number} checked answers were right"
        if truth >= model
        else (f"{answers} answers fit too badly to what the agent held likely")
    )
    mark(connection, expert, found=now, answers=answers, why=why)
    if settings.quality.stop_careless:
        mark(connection, expert, stopped=now)
    return True


def mark(connection: Connection, expert: str, **columns: Any) -> None:
    """Write what is to be known of a person."""
    changed = connection.execute(update(team).where(team.c.expert == expert).values(**columns)).rowcount
    if not changed:
        connection.execute(insert(team), {"expert": expert, "since": 0.0, **columns})
