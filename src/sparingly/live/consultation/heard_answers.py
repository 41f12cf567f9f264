"""What an agent makes of an answer that may be wrong, or that does not come: it decides on the ticket again."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, func, insert, select, update

from sparingly.experts import ExpertReply
from sparingly.experts.machine_expert import ANSWERED as REPLIED
from sparingly.live.agent import observations, ticket_lifecycle
from sparingly.live.agent.agent_settings import AgentSettings
from sparingly.live.agent.errors import ConflictError
from sparingly.live.agent.observations import Observation
from sparingly.live.agent.pacing import QuestionAllowance
from sparingly.live.agent.ticket_records import ANNOUNCED, CONSULTING, HELD, OPEN
from sparingly.live.consultation import calls
from sparingly.live.store import audit_outbox, journal
from sparingly.live.store.audit_outbox import AuditLine
from sparingly.live.store.journal import vector
from sparingly.live.store.tables import calls as call_table
from sparingly.live.store.tables import observations as features
from sparingly.live.store.tables import tickets

if TYPE_CHECKING:
    from sparingly.live.agent.runtime import AgentRuntime

_KEPT = ("seq", "id", "at", "digest", "probabilities")
"""What a new decision does not change in a ticket's row."""


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

    def hear(self, call: Any, reply: ExpertReply) -> None:
        """Take what a call brought; nothing happens if it was taken before."""
        connection, settings = self._connection, self._settings
        if calls.has_ended(connection, call):
            return
        row = connection.execute(select(tickets).where(tickets.c.seq == call.ticket)).one()
        symbol = None if reply.label is None else settings.classes.index(reply.label)
        action = len(settings.classes) + call.number
        expert = settings.game.expert(action)
        waited_for = row.status in (CONSULTING, OPEN) and row.action == action
        is_truth = expert is not None and expert.gold and symbol is not None
        self.head += 1
        calls.end(connection, call, reply, symbol, self.head if waited_for and not is_truth else None, self.now)
        if waited_for and is_truth:
            said = ticket_lifecycle.meaning(settings.game, settings.classes, action, reply.label)
            change = ticket_lifecycle.answered(connection, row, said, call.expert, self.now, overrule=True)
            assert change is not None
            ticket_lifecycle.write(connection, row, change, self.head, self.now)
            self._runtime.decider.follow(connection, self.head)
            return
        event = {"seq": self.head, "at": self.now, "ticket": row.seq, "action": action, "expert": call.expert}
        kind, told = (journal.HEARD, symbol) if waited_for else (journal.PAID, None)
        journal.append(connection, [{**event, "kind": kind, "symbol": told, "label": symbol}])
        if waited_for:
            is_refused = self._decide_again(row)
            self._runtime.decider.commit(self.head)
            if is_refused:
                self.head += 1
                journal.append(
                    connection, [{"seq": self.head, "at": self.now, "kind": journal.NOT_ASKED, "ticket": row.seq}]
                )
                self._runtime.decider.follow(connection, self.head)

    def _decide_again(self, row: Any) -> bool:
        """Write what the strategy decides now; whether it wants a question that the limits forbid."""
        connection, settings, runtime = self._connection, self._settings, self._runtime
        data = connection.execute(select(features.c.x).where(features.c.ticket == row.seq)).scalar_one()
        x = vector(data, settings.shape or (-1,))
        heard = journal.heard(connection, row.seq, self.head)
        decision = runtime.decider.hear(x, heard)
        allowance = QuestionAllowance.at(connection, settings, runtime.spending, self.now)
        names = [settings.experts[number][0] for number, _ in heard]
        question = ticket_lifecycle.labelling_action(settings.game)
        again = observations.ticket_row(
            row.seq,
            row.at,
            Observation(x, row.id),
            decision,
            settings,
            allowance,
            question,
            names,
            holds=settings.hold and not runtime.decider.strategy.has_learned,
        )
        columns = {name: value for name, value in observations.stored(again).items() if name not in _KEPT}
        columns |= {"expert": None, "until": None}
        connection.execute(update(tickets).where(tickets.c.seq == row.seq).values(**columns))
        if again["asks"] and settings.limits.is_paced:
            runtime.spending.asked[again["action"]] += 1
        if again["status"] == CONSULTING:
            calls.add(connection, [{**again, "at": self.now, "place": len(heard)}], settings)
        return bool(again["wanted"] and again["status"] in (ANNOUNCED, HELD))


def hear_calls(runtime: AgentRuntime, replies: Sequence[tuple[Any, ExpertReply]], connection: Connection) -> None:
    """Take what calls brought, in the caller's transaction; the decider has to be rolled back if that fails."""
    head = runtime.store.head(connection)
    runtime.decider.follow(connection, head)
    hearing = Hearing(runtime, connection, head)
    for call, reply in replies:
        hearing.hear(call, reply)


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
                if audit is not None:
                    audit_outbox.add(connection, audit, row.id, runtime.clock())
        except BaseException:
            if has_decided:
                runtime.decider.rollback()
            raise
        runtime.has_audit_lines |= audit is not None
        runtime.decider.keep_snapshot_if_due()
    runtime.wake_consultation()
    return True


def _check_person(connection: Connection, settings: AgentSettings, row: Any, expert: str | None) -> None:
    """A question to one person is answered by that person, and no one says something of a ticket twice."""
    asked = settings.game.expert(row.action)
    if expert is not None and asked is not None and asked.name in settings.people and asked.name != expert:
        raise ConflictError(f"the question of ticket {row.id!r} is for {asked.name}, not for {expert}")
    said = select(call_table.c.place).where(call_table.c.ticket == row.seq, call_table.c.detail == expert)
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
    earlier = select(func.count()).select_from(call_table).where(call_table.c.ticket == row.seq)
    place = int(connection.execute(earlier).scalar_one())
    new = {
        "ticket": row.seq,
        "place": place,
        "number": row.action - len(settings.classes),
        "expert": asked.name,
        "state": OPEN,
        "at": row.at,
    }
    connection.execute(insert(call_table), new)
    return SimpleNamespace(**new), ExpertReply(settings.classes[said.label], asked.price, REPLIED, expert or "")
