"""What can be read of an agent's people: how often each is right, how far they agree, and what is to be settled."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, and_, func, select

from sparingly.experts.machine_expert import ANSWERED as REPLIED
from sparingly.live.agent.agent_settings import AgentSettings
from sparingly.live.quality import disagreements as disputes
from sparingly.live.quality.agreement import Agreement, Rating, agreement
from sparingly.live.quality.careless import accuracy_by_model
from sparingly.live.quality.checked_answers import Tally, held_likely, tallies
from sparingly.live.quality.disagreements import FIRST, KNOWN, SETTLED, sole_answers
from sparingly.live.quality.opinions import has_passed
from sparingly.live.quality.quality_checks import THIRD
from sparingly.live.quality.quality_records import Disagreement, Opinion, PersonQuality
from sparingly.live.statistics.performance import wilson
from sparingly.live.store.tables import calls, disagreements, opinions, payloads, team, tickets
from sparingly.live.tickets import ticket_lifecycle
from sparingly.live.tickets.ticket_records import ANSWERED, PLANTED, Label, read_payload

if TYPE_CHECKING:
    from sparingly.live.store.store import Store

MOST = 5000
"""So many answers of a person, the last ones, tell how fast they are."""
ENOUGH = 10
"""Fewer answers than these tell nothing by what the model held likely."""


class QualityQueries:
    """The queries about people; they change nothing. The parameters are those of `AgentQueries`."""

    def __init__(self, store: Store, reading: Callable[[], AbstractContextManager[Connection]]) -> None:
        self._store, self._reading = store, reading

    @property
    def _settings(self) -> AgentSettings:
        return self._store.settings

    def people(self, reliability: Mapping[str, tuple[float, float, float]]) -> list[PersonQuality]:
        """Everyone who has answered, whoever has answered most first.

        `reliability` is how often each who may be wrong is right by what the strategy has learned, and an interval.
        """
        with self._reading() as connection:
            given, cost = _given(connection, self._settings)
            checked, seconds = tallies(connection), _seconds(connection)
            marks = {row.expert: row for row in connection.execute(select(team))}
            found = [
                self._person(
                    connection,
                    name,
                    count,
                    cost[name],
                    checked.get(name, Tally()),
                    seconds,
                    marks.get(name),
                    reliability.get(name),
                )
                for name, count in given.most_common()
            ]
        return found

    def agreement(self) -> Agreement:
        """How far people agree on the questions that two or more of them have answered."""
        said = select(opinions.c.ticket, opinions.c.expert, opinions.c.label)
        said = said.where(and_(opinions.c.label.is_not(None), opinions.c.expert.is_not(None)))
        with self._reading() as connection:
            rows = connection.execute(said.order_by(opinions.c.ticket, opinions.c.place)).all()
        return agreement([Rating(int(row.ticket), row.expert, row.label) for row in rows])

    def opinions(self, ticket_id: str) -> list[Opinion]:
        """What people said, or are asked, of a ticket."""
        classes = self._settings.classes
        with self._reading() as connection:
            found = disputes.of_ticket(connection, ticket_lifecycle.find(connection, ticket_id).seq)
        return [
            Opinion(
                reason=one.reason,
                expert=one.expert,
                label=None if one.label is None else classes[one.label],
                at=one.at,
                closed=one.closed,
                price=one.price,
            )
            for one in found
        ]

    def disagreements(self, *, settled: bool = False, limit: int = 50) -> list[Disagreement]:
        """What is to be settled, oldest first; or with `settled` what was, newest first."""
        d = disagreements.c
        query = select(disagreements, tickets.c.id, tickets.c.why).join(tickets, tickets.c.seq == d.ticket)
        if settled:
            query = query.where(d.state == SETTLED).order_by(d.closed.desc(), d.ticket.desc())
        else:
            query = query.where(and_(d.state != SETTLED, tickets.c.status == ANSWERED)).order_by(d.at, d.ticket)
        with self._reading() as connection:
            return [self._disagreement(connection, row) for row in connection.execute(query.limit(limit)).all()]

    def given_by(self, person: str, limit: int) -> list[tuple[str, Label, float]]:
        """What a person said beside the answers that stand: ticket, class, when; the last first."""
        both = opinions.join(tickets, tickets.c.seq == opinions.c.ticket)
        said = select(tickets.c.id, opinions.c.label, opinions.c.closed).select_from(both)
        own = and_(opinions.c.expert == person, opinions.c.label.is_not(None), opinions.c.reason != FIRST)
        with self._reading() as connection:
            rows = connection.execute(said.where(own).order_by(opinions.c.closed.desc()).limit(limit)).all()
        return [(row.id, self._settings.classes[row.label], row.closed) for row in rows]

    def has_skipped(self, ticket_id: str, person: str) -> bool:
        """Whether a person has skipped an opinion that is still to be had."""
        with self._reading() as connection:
            return has_passed(connection, ticket_lifecycle.find(connection, ticket_id), person)

    def answered_since(self, person: str, since: float) -> tuple[int, float]:
        """How many opinions a person has given since a time, first answers aside, and what they cost."""
        own = and_(opinions.c.expert == person, opinions.c.label.is_not(None), opinions.c.closed >= since)
        said = select(func.count(), func.coalesce(func.sum(opinions.c.price), 0.0))
        with self._reading() as connection:
            count, cost = connection.execute(said.where(and_(own, opinions.c.reason != FIRST))).one()
        return int(count), float(cost)

    def planted(self) -> tuple[int, int, float]:
        """How many items are planted, how many answers there are to them, and what these have cost."""
        said = select(func.count(), func.coalesce(func.sum(opinions.c.price), 0.0))
        said = said.where(and_(opinions.c.reason == KNOWN, opinions.c.label.is_not(None)))
        items = select(func.count()).select_from(tickets).where(tickets.c.status == PLANTED)
        with self._reading() as connection:
            answers, cost = connection.execute(said).one()
            return int(connection.execute(items).scalar_one()), int(answers), float(cost)

    def _disagreement(self, connection: Connection, row: Any) -> Disagreement:
        classes = self._settings.classes
        seen = connection.execute(select(payloads).where(payloads.c.ticket == row.ticket)).first()
        said = disputes.of_ticket(connection, row.ticket)
        third = next((one for one in said if one.reason == THIRD and one.label is not None), None)
        return Disagreement(
            ticket=row.id,
            at=row.at,
            state=row.state,
            first=row.first,
            first_label=classes[row.first_label],
            second=row.second,
            second_label=classes[row.second_label],
            third=None if third is None else third.expert,
            third_label=None if third is None else classes[third.label],
            label=None if row.label is None else classes[row.label],
            settled_by=row.settled_by,
            closed=row.closed,
            why=row.why,
            payload=None if seen is None else read_payload(seen),
        )

    def _person(
        self,
        connection: Connection,
        name: str,
        answers: int,
        cost: float,
        checked: Tally,
        seconds: dict[str, list[float]],
        marked: Any,
        learned: tuple[float, float, float] | None,
    ) -> PersonQuality:
        number = checked.right + checked.wrong
        share = checked.right / number if number else None
        low, high = wilson(share, number) if share is not None else (None, None)
        by_model: tuple[float | None, ...] = learned or (None, None, None)
        if learned is None:
            said, squares = held_likely(connection, name, alone=True)
            if len(said) >= ENOUGH:
                by_model = accuracy_by_model(said, squares, len(self._settings.classes))
        return PersonQuality(
            expert=name,
            kind="machine" if name in self._settings.machine_prices else "person",
            answers=answers,
            known=checked.known_right + checked.known_wrong,
            known_right=checked.known_right,
            settled=checked.settled_right + checked.settled_wrong,
            settled_right=checked.settled_right,
            agreed=checked.agreed,
            accuracy=share,
            accuracy_low=low,
            accuracy_high=high,
            model_accuracy=by_model[0],
            model_low=by_model[1],
            model_high=by_model[2],
            seconds=statistics.median(seconds[name]) if seconds.get(name) else None,
            cost=cost,
            careless=None if marked is None else marked.found,
            found_after=None if marked is None else marked.answers,
            why=None if marked is None else marked.why,
            stopped=None if marked is None else marked.stopped,
        )


def _given(connection: Connection, settings: AgentSettings) -> tuple[Counter[str], dict[str, float]]:
    """How many answers each has given, and what they cost."""
    count: Counter[str] = Counter()
    cost: dict[str, float] = defaultdict(float)
    t, o, c = tickets.c, opinions.c, calls.c
    prices = settings.game.costs.max(axis=1)
    first = sole_answers(t.expert, t.action, t.asks, func.count())
    for name, action, asks, number in connection.execute(first.group_by(t.expert, t.action, t.asks)):
        count[name] += number
        cost[name] += number * float(prices[action]) if asks else 0.0
    other = select(o.expert, func.count(), func.sum(o.price)).join(tickets, t.seq == o.ticket)
    other = other.where(and_(o.label.is_not(None), t.status.in_([ANSWERED, PLANTED])))
    for name, number, paid in connection.execute(other.group_by(o.expert)):
        count[name] += number
        cost[name] += float(paid or 0.0)
    heard = select(c.expert, c.detail, func.count().filter(c.state == REPLIED), func.sum(c.price))
    for name, who, number, paid in connection.execute(heard.where(c.closed.is_not(None)).group_by(c.expert, c.detail)):
        person = name if name in settings.machine_prices or not who else who
        count[person] += number
        cost[person] += float(paid or 0.0)
    return count, cost


def _seconds(connection: Connection) -> dict[str, list[float]]:
    """How long each took for the last answers."""
    t, o, c = tickets.c, opinions.c, calls.c
    first = sole_answers(t.expert, t.closed - t.shown)
    other = select(o.expert, o.closed - o.shown).where(o.label.is_not(None))
    called = select(c.expert, c.closed - c.at).where(c.state == REPLIED)
    queries = (first.order_by(t.closed.desc()), other.order_by(o.closed.desc()), called.order_by(c.closed.desc()))
    found: dict[str, list[float]] = defaultdict(list)
    for query in queries:
        _collect(found, connection.execute(query.limit(MOST)))
    return found


def _collect(found: dict[str, list[float]], rows: Iterable[Any]) -> None:
    for name, seconds in rows:
        if seconds is not None:
            found[name].append(max(0.0, float(seconds)))
