"""Second opinions and planted items in the queue: who is offered which, and what is written when they answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from sparingly.live.agent.agent_settings import AgentSettings
from sparingly.live.agent.errors import ConflictError
from sparingly.live.quality.careless import chance_wrong, expected_accuracy
from sparingly.live.quality.checked_answers import tally_of
from sparingly.live.quality.disagreements import (
    FIRST,
    KNOWN,
    SETTLED,
    SHARE,
    WORTH,
    add_opinion,
    class_number,
    find,
    forget_unsettled,
    judge,
    of_ticket,
    sole_answers,
)
from sparingly.live.store import journal
from sparingly.live.store.tables import opinions, passes, team, tickets
from sparingly.live.tickets.ticket_lifecycle import labelling_action
from sparingly.live.tickets.ticket_records import ANSWERED, PLANTED

_OTHERS = opinions.alias("others")
_TICKET = select(tickets).where(tickets.c.seq == bindparam("number"))


def is_stopped(connection: Connection, expert: str) -> bool:
    """Whether a person gets no questions any more."""
    return connection.execute(select(team.c.stopped).where(team.c.expert == expert)).scalar() is not None


def offered(connection: Connection, expert: str, limit: int | None, now: float) -> tuple[list[Any], list[Any]]:
    """The opinions that a person may give: those that are leased to them, and others, never on an own answer."""
    given = {"person": expert, "now": now} | ({} if limit is None else {"most": limit})
    leased, others = _offers(limit is not None)
    mine = connection.execute(leased, given).all()
    return [one for one in mine if one.status in (ANSWERED, PLANTED)], list(connection.execute(others, given))


@cache
def _offers(limited: bool) -> tuple[Select[Any], Select[Any]]:
    """The opinions that are leased to the `person`, and those that they may have; made once, for every question."""
    person: BindParameter[str] = bindparam("person")
    now: BindParameter[float] = bindparam("now")
    waits = select(opinions, tickets.c.status).join(tickets, tickets.c.seq == opinions.c.ticket)
    waits = waits.where(and_(opinions.c.closed.is_(None), tickets.c.erased.is_(None)))
    own = waits.where(and_(opinions.c.expert == person, opinions.c.until >= now)).order_by(opinions.c.ticket)
    said = exists().where(and_(_OTHERS.c.ticket == opinions.c.ticket, _OTHERS.c.expert == person))
    passed = exists().where(and_(passes.c.ticket == opinions.c.ticket, passes.c.expert == person))
    free = or_(opinions.c.until.is_(None), opinions.c.until < now)
    other = or_(tickets.c.expert.is_(None), tickets.c.expert != person)
    given_up = and_(opinions.c.expert == person, opinions.c.until < now)
    may = and_(opinions.c.reason != KNOWN, tickets.c.status == ANSWERED, free, other, ~passed, or_(~said, given_up))
    found = waits.where(may).order_by(opinions.c.ticket, opinions.c.place)
    most: BindParameter[int] = bindparam("most")
    return (own.limit(most), found.limit(most)) if limited else (own, found)


def unanswered_plant(connection: Connection, expert: str, besides: Sequence[int]) -> int | None:
    """A planted item that a person has not seen, the oldest one."""
    seen = exists().where(and_(opinions.c.ticket == tickets.c.seq, opinions.c.expert == expert))
    left = and_(tickets.c.status == PLANTED, tickets.c.erased.is_(None), ~seen, tickets.c.seq.not_in(besides))
    found = connection.execute(select(tickets.c.seq).where(left).order_by(tickets.c.seq).limit(1)).scalar()
    return None if found is None else int(found)


def answers_given(connection: Connection, expert: str) -> int:
    """How many answers of a person are there: first ones that stand, and those of all other kinds."""
    return int(connection.execute(_given(), {"person": expert}).scalar_one())


@cache
def _given() -> Select[Any]:
    person: BindParameter[str] = bindparam("person")
    alone = sole_answers(func.count()).select_from(tickets).where(tickets.c.expert == person)
    said = and_(opinions.c.expert == person, opinions.c.label.is_not(None))
    other = select(func.count()).select_from(opinions).where(said)
    return select(alone.scalar_subquery() + other.scalar_subquery())


def queue(
    connection: Connection, settings: AgentSettings, expert: str, rows: Sequence[Any], limit: int | None, now: float
) -> list[Any]:
    """The next questions of a person, among them opinions and planted items, which look like any other.

    `rows` are the open questions that the person may have, those already leased to the person first.
    """
    mine, others = offered(connection, expert, limit, now)
    held = [row for row in rows if row.expert == expert and row.until is not None and row.until >= now]
    fresh = [row for row in rows if row not in held]
    found = [*(as_ticket(connection, one) for one in mine), *held]
    found += [as_ticket(connection, one) for one in others]
    kept, new = len(mine) + len(held), [*found[len(mine) + len(held) :], *fresh]
    found = [*found[:kept], *new][:limit]
    if len(found) > kept and connection.execute(_ANY_PLANTED).first() is not None:
        _plant_among(connection, settings, expert, found, kept, now)
    return found


_ANY_PLANTED = select(tickets.c.seq).where(tickets.c.status == PLANTED).limit(1)


def _plant_among(
    connection: Connection, settings: AgentSettings, expert: str, found: list[Any], kept: int, now: float
) -> None:
    """Put planted items in the places of some of the new questions, which wait for the next time."""
    count, used = answers_given(connection, expert), [row.seq for row in found]
    for i in range(kept, len(found)):
        if not settings.quality.draws_known_answer(settings.seed, expert, count + i):
            continue
        seq = unanswered_plant(connection, expert, used)
        if seq is None:
            return
        add_opinion(connection, seq, KNOWN, now, expert=expert)
        one = of_ticket(connection, seq)[-1]
        # It shows the reason of the question that it replaces, so that a person cannot recognise it.
        shown = {"why": found[i].why, "numbers": found[i].numbers, "at": found[i].at}
        found[i] = as_ticket(connection, one, shown)
        used.append(seq)


def as_ticket(connection: Connection, opinion: Any, shown: Mapping[str, Any] | None = None) -> Any:
    """The row of the ticket that an opinion is about, with the opinion's place and lease."""
    row = connection.execute(_TICKET, {"number": opinion.ticket}).one()
    lease = {"expert": opinion.expert, "until": opinion.until, "opinion": opinion.place}
    return SimpleNamespace(**{**row._mapping, **lease, **(shown or {})})


def lease(connection: Connection, rows: Sequence[Any], expert: str, now: float, until: float) -> None:
    """Lease opinions to a person."""
    for row in rows:
        this = and_(opinions.c.ticket == row.seq, opinions.c.place == row.opinion)
        shown = func.coalesce(opinions.c.shown, now) if row.expert == expert else now
        connection.execute(update(opinions).where(this).values(expert=expert, until=until, shown=shown))


def own_opinion(connection: Connection, row: Any, expert: str | None) -> Any:
    """What a person was asked, or said, of a ticket beside its answer: the last such row, or None."""
    if expert is None:
        return None
    own = and_(opinions.c.ticket == row.seq, opinions.c.expert == expert, opinions.c.reason != FIRST)
    found = connection.execute(select(opinions).where(own).order_by(opinions.c.place.desc()).limit(1)).first()
    return found if found is not None and row.status in (ANSWERED, PLANTED) else None


def check_open(row: Any, opinion: Any, now: float) -> None:
    """An opinion is taken while its lease lasts, and changed until a disagreement is settled."""
    if opinion.closed is None and (opinion.until is None or now > opinion.until):
        raise ConflictError(f"the lease of ticket {row.id!r} has run out: ask for questions again")


def check_not_settled(connection: Connection, row: Any) -> None:
    dispute = find(connection, row.seq)
    if dispute is not None and dispute.state == SETTLED:
        raise ConflictError(f"the disagreement on ticket {row.id!r} is settled: an opinion on it cannot be changed")


def take(
    connection: Connection, row: Any, opinion: Any, label: Any, settings: AgentSettings, head: int, now: float
) -> int:
    """Write what a person says, and hold it against the answer that stands; the last event."""
    number = class_number(settings, label)
    check_open(row, opinion, now)
    if opinion.label == number:
        return head
    if opinion.closed is not None:
        check_not_settled(connection, row)
    price = question_price(settings, row)
    new = {"label": number, "price": price, "closed": now, "until": None}
    connection.execute(update(opinions).where(_this(opinion)).values(**new))
    if opinion.closed is None and row.status != PLANTED:
        _pay(connection, row, price)
    kind = journal.KNOWN_ANSWER if row.status == PLANTED else journal.SECOND_OPINION
    head = _event(connection, row, kind, opinion.expert, number, head, now)
    return head if row.status == PLANTED else judge(connection, row.seq, settings, head, now)


def take_back(connection: Connection, row: Any, opinion: Any, settings: AgentSettings, head: int, now: float) -> int:
    """Undo what a person said: it is asked again, of the same person; the last event."""
    if opinion.closed is None:
        return head
    check_not_settled(connection, row)
    if opinion.label is not None and row.status != PLANTED:
        _pay(connection, row, -(opinion.price or 0.0))
    again = {"label": None, "price": None, "closed": None}
    connection.execute(update(opinions).where(_this(opinion)).values(**again))
    head = _event(connection, row, journal.OPINION_BACK, opinion.expert, None, head, now)
    return head if row.status == PLANTED else judge(connection, row.seq, settings, head, now)


def set_aside(connection: Connection, row: Any, opinion: Any, now: float) -> None:
    """A person skips it or does not know: others are asked, and a planted item is not shown to the person again."""
    check_open(row, opinion, now)
    if opinion.closed is not None:
        raise ConflictError(f"ticket {row.id!r} was answered by {opinion.expert}: it cannot be skipped")
    if row.status == PLANTED:
        connection.execute(update(opinions).where(_this(opinion)).values(closed=now, until=None))
        return
    connection.execute(insert(passes), {"ticket": row.seq, "expert": opinion.expert})
    connection.execute(update(opinions).where(_this(opinion)).values(expert=None, until=None, shown=None))


def give_back(connection: Connection, opinion: Any) -> None:
    """End a lease; whoever had a planted item keeps it for later."""
    if opinion.closed is None:
        who = opinion.expert if opinion.reason == KNOWN else None
        connection.execute(update(opinions).where(_this(opinion)).values(expert=who, until=None))


def passed_opinion(connection: Connection, row: Any, expert: str) -> Any:
    """The opinion on a ticket that a person has skipped; the skip is forgotten."""
    connection.execute(delete(passes).where(and_(passes.c.ticket == row.seq, passes.c.expert == expert)))
    return next(one for one in of_ticket(connection, row.seq) if one.closed is None and one.expert is None)


def has_passed(connection: Connection, row: Any, expert: str) -> bool:
    """Whether a person has skipped an opinion on a ticket that is still to be had."""
    skipped = and_(passes.c.ticket == row.seq, passes.c.expert == expert)
    if (
        row.status != ANSWERED
        or row.expert == expert
        or connection.execute(select(passes).where(skipped)).first() is None
    ):
        return False
    return any(one.closed is None and one.expert is None for one in of_ticket(connection, row.seq))


def follow(
    connection: Connection, before: Any, event: Mapping[str, Any], settings: AgentSettings, head: int, now: float
) -> int:
    """What an answer, a correction or an undo means for opinions on the ticket; the last event."""
    kind, expert, label = event["kind"], event.get("expert"), event.get("label")
    if kind == journal.REOPENED:
        forget_unsettled(connection, before.seq)
    if kind not in (ANSWERED, journal.CORRECTED) or label is None:
        return head
    said = of_ticket(connection, before.seq)
    first = {"expert": expert, "label": label, "closed": now, "until": None}
    if said and kind == ANSWERED:
        # An answer that was taken back has another author now, who may have been asked for an opinion.
        connection.execute(update(opinions).where(_this(said[0])).values(**first))
        held = and_(opinions.c.ticket == before.seq, opinions.c.expert == expert, opinions.c.closed.is_(None))
        connection.execute(update(opinions).where(held).values(expert=None, until=None))
    elif said:
        own = and_(_this(said[0]), opinions.c.expert == expert)
        connection.execute(update(opinions).where(own).values(label=label))
    elif kind == ANSWERED and expert is not None and before.asks and settings.quality.second_opinions:
        reason = _reason(connection, before, expert, label, settings)
        if reason is not None:
            price = question_price(settings, before)
            add_opinion(connection, before.seq, FIRST, now, **first, shown=before.shown, price=price)
            add_opinion(connection, before.seq, reason, now)
    return judge(connection, before.seq, settings, head, now) if said else head


def _reason(connection: Connection, row: Any, expert: str, label: int, settings: AgentSettings) -> str | None:
    """Why another person is to answer, too: the share falls on the ticket, or it is worth its price."""
    if settings.quality.draws_second_opinion(settings.seed, row.seq):
        return SHARE
    if not row.probabilities:
        return None
    held = float(np.frombuffer(row.probabilities, dtype="<f4")[label])
    n_classes = len(settings.classes)
    checked = tally_of(connection, expert)
    wrong = chance_wrong(expected_accuracy(checked.right, checked.wrong), held, n_classes)
    mistakes = settings.game.costs[label, :n_classes]
    cost = float(mistakes.sum()) / (n_classes - 1)
    return WORTH if wrong * cost > question_price(settings, row) else None


def question_price(settings: AgentSettings, row: Any) -> float:
    """What one more answer to a ticket costs: as much as the question."""
    game = settings.game
    action = row.action if game.informative_mask[row.action] else labelling_action(game)
    return float(game.costs[action].max())


def _pay(connection: Connection, row: Any, price: float) -> None:
    paid = func.coalesce(tickets.c.paid, 0.0) + price
    connection.execute(update(tickets).where(tickets.c.seq == row.seq).values(paid=paid))


def _event(
    connection: Connection, row: Any, kind: str, expert: str | None, label: int | None, head: int, now: float
) -> int:
    event = {"seq": head + 1, "at": now, "kind": kind, "ticket": row.seq, "expert": expert, "label": label}
    journal.append(connection, [event])
    return head + 1


def _this(opinion: Any) -> ColumnElement[bool]:
    return and_(opinions.c.ticket == opinion.ticket, opinions.c.place == opinion.place)
