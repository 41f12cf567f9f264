"""What an agent makes of an answer that may be wrong, or that does not come: it decides on the ticket again."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from sqlalchemy import BindParameter, Connection, bindparam, func, insert, select, update

from sparingly.experts import ExpertReply
from sparingly.experts.machine_expert import ANSWERED as REPLIED
from sparingly.live.agent import observations
from sparingly.live.agent.agent_settings import AgentSettings
from sparingly.live.agent.errors import ConflictError
from sparingly.live.agent.observations import Observation
from sparingly.live.agent.pacing import QuestionAllowance
from sparingly.live.consultation import expert_calls
from sparingly.live.store import audit_outbox, journal
from sparingly.live.store.audit_outbox import AuditLine
from sparingly.live.store.journal import vector
from sparingly.live.store.tables import calls, tickets
from sparingly.live.store.tables import observations as features
from sparingly.live.tickets import ticket_lifecycle
from sparingly.live.tickets.ticket_records import ANNOUNCED, CONSULTING, HELD, OPEN

if TYPE_CHECKING:
    from sparingly.live.agent.runtime import AgentRuntime

_KEPT = ("seq", "id", "at", "digest", "probabilities")
"""What a new decision does not change in a ticket's row."""

_NUMBERS: BindParameter[Any] = bindparam("numbers", expanding=True)
_TICKETS = select(tickets).where(tickets.c.seq.in_(_NUMBERS))
_FEATURES = select(features).where(features.c.ticket.in_(_NUMBERS))
_DECIDED = update(tickets).where(tickets.c.seq == bindparam("number"))


@dataclass(frozen=True, slots=True)
class _Reply:
    """What a call brought, beside the row of its ticket and what was heard of that before."""

    call: Any
    reply: ExpertReply
    row: Any
    symbol: int | None
    action: int
    heard: tuple[tuple[int, int | None], ...]
    """All answers, (number of the expert, symbol or None) in the order asked, this one the last."""
    is_waited_for: bool
    is_truth: bool


class Hearing:
    """Writes what experts said in one transaction, with what the strategy decides then.

    Parameters
    ----------
    runtime
        Of the agent; its lock is held.
    connection
        A transaction that writes.
    head
        The last event of the journal.
    """

    def __init__(self, runtime: AgentRuntime, connection: Connection, head: int) -> None:
        self._runtime, self._connection = runtime, connection
        self.head = head
        self.now = runtime.clock()

    @property
    def _settings(self) -> AgentSettings:
        return self._runtime.store.settings

    def hear(self, replies: Sequence[tuple[Any, ExpertReply]]) -> None:
        """Take what calls brought, in this order; one that was taken before changes nothing.

        Those that the strategy can decide on together are read and written together.
        """
        while replies:
            count = _distinct([call.ticket for call, _ in replies])
            batch, replies = self._read(replies[:count]), replies[count:]
            while batch:
                batch = batch[self._hear_first(batch) :]

    def _read(self, replies: Sequence[tuple[Any, ExpertReply]]) -> list[_Reply]:
        """The replies, about a ticket each, that were not taken before, with what the database has of their tickets."""
        numbers = [call.ticket for call, _ in replies]
        rows = {row.seq: row for row in self._connection.execute(_TICKETS, {"numbers": numbers})}
        asked = expert_calls.of_tickets(self._connection, numbers)
        settings, found = self._settings, []
        for call, reply in replies:
            if any(one.place == call.place and one.closed is not None for one in asked[call.ticket]):
                continue
            row, action = rows[call.ticket], len(settings.classes) + call.number
            symbol = None if reply.label is None else settings.classes.index(reply.label)
            earlier = [(int(one.number), one.symbol) for one in asked[call.ticket] if one.event is not None]
            expert = settings.game.expert(action)
            is_waited_for = row.status in (CONSULTING, OPEN) and row.action == action
            is_truth = is_waited_for and expert is not None and expert.gold and symbol is not None
            found.append(
                _Reply(call, reply, row, symbol, action, (*earlier, (call.number, symbol)), is_waited_for, is_truth)
            )
        return found

    def _hear_first(self, batch: Sequence[_Reply]) -> int:
        """Take the truth, or all before it up to a question that the limits forbid; how many these are."""
        if batch[0].is_truth:
            self._learn_truth(batch[0])
            return 1
        batch = list(itertools.takewhile(lambda one: not one.is_truth, batch))
        again, refused = self._decide_again([one for one in batch if one.is_waited_for])
        if refused is not None:
            batch = batch[: batch.index(refused) + 1]
        events = []
        for seq, one in enumerate(batch, self.head + 1):
            kind, symbol = (journal.HEARD, one.symbol) if one.is_waited_for else (journal.PAID, None)
            event = {"seq": seq, "at": self.now, "ticket": one.row.seq, "action": one.action, "expert": one.call.expert}
            events.append({**event, "kind": kind, "symbol": symbol, "label": one.symbol})
        journal.append(self._connection, events)
        ended = [(e["seq"] if one.is_waited_for else None, one) for e, one in zip(events, batch, strict=True)]
        expert_calls.end(self._connection, [(one.call, one.reply, one.symbol, event) for event, one in ended], self.now)
        self._write(again)
        self.head += len(batch)
        self._runtime.decider.commit(self.head)
        if refused is not None:
            self._forgo(refused.row.seq)
        return len(batch)

    def _learn_truth(self, one: _Reply) -> None:
        """A machine whose answers are the truth ends the ticket as a person would."""
        connection, settings = self._connection, self._settings
        self.head += 1
        expert_calls.end(connection, [(one.call, one.reply, one.symbol, None)], self.now)
        said = ticket_lifecycle.meaning(settings.game, settings.classes, one.action, one.reply.label)
        change = ticket_lifecycle.answered(connection, one.row, said, one.call.expert, self.now, overrule=True)
        assert change is not None
        ticket_lifecycle.write(connection, one.row, change, self.head, self.now)
        self._runtime.decider.follow(connection, self.head)

    def _decide_again(self, batch: Sequence[_Reply]) -> tuple[list[dict[str, Any]], _Reply | None]:
        """The rows of tickets as the strategy decides now, up to one that wants a question which the limits forbid."""
        if not batch:
            return [], None
        settings, runtime = self._settings, self._runtime
        seen = {o.ticket: o.x for o in self._connection.execute(_FEATURES, {"numbers": [one.row.seq for one in batch]})}
        vectors = [vector(seen[one.row.seq], settings.shape or (-1,)) for one in batch]
        allowance = QuestionAllowance.at(self._connection, settings, runtime.spending, self.now)
        question = ticket_lifecycle.labelling_action(settings.game)
        rows: list[dict[str, Any]] = []
        decisions = runtime.decider.hear([(x, one.heard) for x, one in zip(vectors, batch, strict=True)])
        for one, x, decision in zip(batch, vectors, decisions, strict=True):
            names = [settings.experts[number][0] for number, _ in one.heard]
            observation = Observation(x, one.row.id)
            holds = settings.hold and not runtime.decider.strategy.has_learned
            rows.append(
                observations.ticket_row(
                    one.row.seq, one.row.at, observation, decision, settings, allowance, question, names, holds=holds
                )
            )
            if rows[-1]["wanted"] and rows[-1]["status"] in (ANNOUNCED, HELD):
                return rows, one
        return rows, None

    def _write(self, again: Sequence[dict[str, Any]]) -> None:
        """The tickets as they were decided on again, and the calls that they wait for now."""
        if not again:
            return
        kept = [{k: v for k, v in observations.stored(row).items() if k not in _KEPT} for row in again]
        numbered = [
            {**row, "expert": None, "until": None, "number": one["seq"]} for row, one in zip(kept, again, strict=True)
        ]
        self._connection.execute(_DECIDED, numbered)
        settings = self._settings
        if settings.limits.is_paced:
            for row in again:
                self._runtime.spending.asked[row["action"]] += bool(row["asks"])
        due = [row for row in again if row["status"] == CONSULTING]
        later = [{**row, "at": self.now, "place": len(json.loads(row["asked"])) - 1} for row in due]
        expert_calls.add(self._connection, later, settings)

    def _forgo(self, ticket: int) -> None:
        """The strategy learns that its question was not asked."""
        self.head += 1
        event = {"seq": self.head, "at": self.now, "kind": journal.NOT_ASKED, "ticket": ticket}
        journal.append(self._connection, [event])
        self._runtime.decider.follow(self._connection, self.head)


def _distinct(numbers: Sequence[int]) -> int:
    """How many of the first numbers there are before one comes again.

    >>> _distinct([3, 5, 3, 4])
    2
    """
    return next((i for i, number in enumerate(numbers) if number in numbers[:i]), len(numbers))


def hear_calls(runtime: AgentRuntime, replies: Sequence[tuple[Any, ExpertReply]], connection: Connection) -> None:
    """Take what calls brought, in the caller's transaction; the decider has to be rolled back if that fails."""
    head = runtime.store.head(connection)
    runtime.decider.follow(connection, head)
    hearing = Hearing(runtime, connection, head)
    hearing.hear(replies)


def hear_person(runtime: AgentRuntime, ticket_id: str, label: Any, expert: str | None, audit: AuditLine | None) -> bool:
    """Take the answer of a person who may be wrong; False, and nothing done, if the question is not to such a one."""
    game, has_decided = runtime.store.settings.game, False
    with runtime.lock:
        try:
            with runtime.writing() as connection:
                row = ticket_lifecycle.find(connection, ticket_id)
                asked = game.expert(row.action)
                if row.status != OPEN or asked is None or asked.gold:
                    return False
                call, reply = _persons_call(connection, runtime, row, label, expert)
                has_decided = True
                hear_calls(runtime, [(call, reply)], connection)
                audit_outbox.add(connection, audit, row.id, runtime.clock())
        except BaseException:
            if has_decided:
                runtime.decider.rollback()
            raise
        runtime.audit_written(audit)
        runtime.decider.keep_snapshot_if_due()
    runtime.wake_consultation()
    return True


def _check_person(connection: Connection, settings: AgentSettings, row: Any, expert: str | None) -> None:
    """A question to one person is answered by that person, and no one says something of a ticket twice."""
    asked = settings.game.expert(row.action)
    if expert is not None and asked is not None and asked.name in settings.people and asked.name != expert:
        raise ConflictError(f"the question of ticket {row.id!r} is for {asked.name}, not for {expert}")
    said = select(calls.c.place).where(calls.c.ticket == row.seq, calls.c.detail == expert)
    if expert is not None and connection.execute(said).first() is not None:
        raise ConflictError(f"{expert} has answered ticket {row.id!r} already: another person is asked now")


def _persons_call(
    connection: Connection, runtime: AgentRuntime, row: Any, label: Any, expert: str | None
) -> tuple[Any, ExpertReply]:
    """An answer as a call that has just brought it; `detail` has the name of the person."""
    settings = runtime.store.settings
    ticket_lifecycle.check_lease(row, expert, runtime.clock())
    _check_person(connection, settings, row, expert)
    said = ticket_lifecycle.meaning(settings.game, settings.classes, row.action, label)
    asked = settings.game.expert(row.action)
    assert asked is not None
    assert said.label is not None
    earlier = select(func.count()).select_from(calls).where(calls.c.ticket == row.seq)
    place = int(connection.execute(earlier).scalar_one())
    new = {
        "ticket": row.seq,
        "place": place,
        "number": row.action - len(settings.classes),
        "expert": asked.name,
        "state": OPEN,
        "at": row.at,
    }
    connection.execute(insert(calls), new)
    return SimpleNamespace(**new), ExpertReply(settings.classes[said.label], asked.price, REPLIED, expert or "")
