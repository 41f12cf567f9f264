"""Two answers that name different classes: a third person or an admin settles it, and the ticket tells its way."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, delete, exists, insert, select, update

from sparingly.live.agent.agent_settings import AgentSettings
from sparingly.live.agent.errors import AgentError, ConflictError, shortened
from sparingly.live.quality.quality_checks import ADMIN, THIRD
from sparingly.live.store import journal
from sparingly.live.store.tables import disagreements, opinions, tickets
from sparingly.live.tickets import ticket_lifecycle
from sparingly.live.tickets.ticket_records import ANSWERED, Label

FIRST, SHARE, WORTH, KNOWN = "first", "share", "worth", "known"
"""Why a person's word of a ticket is kept: it is the first answer, a second one by the share or since it is worth its
price, or that to a planted item; `THIRD` settles a disagreement."""

SETTLED = "settled"

_OF_TICKET = select(opinions).where(opinions.c.ticket == bindparam("number")).order_by(opinions.c.place)


def of_ticket(connection: Connection, ticket: int) -> list[Any]:
    """What people said, or are asked, of a ticket, in order."""
    return list(connection.execute(_OF_TICKET, {"number": ticket}))


def sole_answers(*columns: Any) -> Select[Any]:
    """A query of the tickets of which one person alone was asked, and has answered; the others have opinions."""
    first = exists().where(and_(opinions.c.ticket == tickets.c.seq, opinions.c.place == 0))
    return select(*columns).where(and_(tickets.c.status == ANSWERED, tickets.c.expert.is_not(None), ~first))


def find(connection: Connection, ticket: int) -> Any:
    """The disagreement on a ticket, or None."""
    return connection.execute(select(disagreements).where(disagreements.c.ticket == ticket)).first()


def add_opinion(connection: Connection, ticket: int, reason: str, now: float, **columns: Any) -> None:
    """One more opinion on a ticket, which is to come unless the columns say that it has."""
    place = 1 + max((row.place for row in of_ticket(connection, ticket)), default=-1)
    connection.execute(insert(opinions), {"ticket": ticket, "place": place, "reason": reason, "at": now, **columns})


def judge(connection: Connection, ticket: int, settings: AgentSettings, head: int, now: float) -> int:
    """Hold the answer of a ticket against the second opinion, and settle what can be; returns the last event.

    It may be called whenever anything has changed: what stands in the tables says everything.
    """
    row = connection.execute(select(tickets).where(tickets.c.seq == ticket)).one()
    if row.status != ANSWERED or row.label is None:
        return head
    said = [one for one in of_ticket(connection, ticket) if one.reason != FIRST and one.label is not None]
    dispute = find(connection, ticket)
    if dispute is not None and dispute.state == SETTLED:
        if dispute.label != row.label:
            _settle(connection, ticket, row.label, row.expert, now)
        return head
    if dispute is not None and row.expert != dispute.first:
        return _settled(connection, row, row.label, row.expert, head, now)
    second = next((one for one in said if one.reason != THIRD), None)
    if second is None:
        _forget(connection, ticket)
        return head
    if second.label == row.label:
        return head if dispute is None else _settled(connection, row, row.label, row.expert, head, now)
    if dispute is None:
        dispute = _begin(connection, row, second, settings, now)
    third = next((one for one in said if one.reason == THIRD), None)
    sides = {"first": row.expert, "first_label": row.label, "second": second.expert, "second_label": second.label}
    if third is None or third.label not in (row.label, second.label):
        state = ADMIN if third is not None else dispute.state
        _change(connection, ticket, **sides, state=state)
        return head
    _change(connection, ticket, **sides)
    author = row.expert if third.label == row.label else second.expert
    return settle(connection, row, third.label, author, third.expert, settings, head, now)


def settle(
    connection: Connection,
    row: Any,
    label: int,
    author: str | None,
    by: str | None,
    settings: AgentSettings,
    head: int,
    now: float,
) -> int:
    """Let a class stand: it is a correction if it is another one than before, learned like any; the last event."""
    if label != row.label:
        said = ticket_lifecycle.meaning(settings.game, settings.classes, row.action, settings.classes[label])
        change = ticket_lifecycle.answered(connection, row, said, author, now, overrule=True)
        assert change is not None
        head += 1
        ticket_lifecycle.write(connection, row, change, head, now)
    return _settled(connection, row, label, by, head, now)


def check_adjudicator(connection: Connection, row: Any, by: str | None) -> None:
    """Nobody settles a disagreement about their own answer."""
    if by is not None and by in {one.expert for one in of_ticket(connection, row.seq) if one.closed is not None}:
        raise ConflictError(f"{by} has answered ticket {row.id!r}: another person must adjudicate it")


def class_number(settings: AgentSettings, label: Any) -> int:
    """The number of a class that is to stand."""
    for number, name in enumerate(settings.classes):
        if type(name) is type(label) and name == label:
            return number
    raise AgentError(f"class {shortened(label)} is unknown: the classes are {_listed(settings.classes)}")


def _listed(classes: tuple[Label, ...]) -> str:
    return ", ".join(map(str, classes))


def _begin(connection: Connection, row: Any, second: Any, settings: AgentSettings, now: float) -> Any:
    state = settings.quality.disagreements
    new = {"ticket": row.seq, "at": now, "state": state, "first": row.expert, "first_label": row.label}
    connection.execute(insert(disagreements), {**new, "second": second.expert, "second_label": second.label})
    if state == THIRD:
        add_opinion(connection, row.seq, THIRD, now)
    return find(connection, row.seq)


def _settled(connection: Connection, row: Any, label: int, by: str | None, head: int, now: float) -> int:
    event = {"seq": head + 1, "at": now, "kind": journal.ADJUDICATED, "ticket": row.seq, "expert": by, "label": label}
    journal.append(connection, [event])
    _settle(connection, row.seq, label, by, now)
    return head + 1


def _settle(connection: Connection, ticket: int, label: int, by: str | None, now: float) -> None:
    _change(connection, ticket, state=SETTLED, label=label, settled_by=by, closed=now)
    _drop_third(connection, ticket)


def forget_unsettled(connection: Connection, ticket: int) -> None:
    """The first answer was taken back: there is nothing to settle until there is another."""
    dispute = find(connection, ticket)
    if dispute is not None and dispute.state != SETTLED:
        _forget(connection, ticket)


def _forget(connection: Connection, ticket: int) -> None:
    """One of the two was taken back."""
    connection.execute(delete(disagreements).where(disagreements.c.ticket == ticket))
    _drop_third(connection, ticket)


def _drop_third(connection: Connection, ticket: int) -> None:
    asked = and_(opinions.c.ticket == ticket, opinions.c.reason == THIRD, opinions.c.closed.is_(None))
    connection.execute(delete(opinions).where(asked))


def _change(connection: Connection, ticket: int, **columns: Any) -> None:
    connection.execute(update(disagreements).where(disagreements.c.ticket == ticket).values(**columns))
