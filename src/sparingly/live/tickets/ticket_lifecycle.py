"""The life cycle of a ticket: what may happen to it, and the event and row that each change writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, insert, select, update

from sparingly.games import Game
from sparingly.live.agent.errors import AgentError, ConflictError, UnknownTicketError, is_storable, shortened
from sparingly.live.store import journal
from sparingly.live.store.tables import features_dropped_upto, observations, passes, tickets
from sparingly.live.tickets.ticket_records import (
    ANNOUNCED,
    ANSWERED,
    CONSULTING,
    HELD,
    OPEN,
    SKIPPED,
    UNKNOWN,
    WITHDRAWN,
    Label,
)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an answer says in the game: the action it is learned for, its symbol, and the class if it tells one."""

    action: int
    symbol: int
    label: int | None


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be written: one event, and the ticket's new columns."""

    event: Mapping[str, Any]
    columns: Mapping[str, Any]


_BY_ID = select(tickets).where(tickets.c.id == bindparam("name"))


def find(connection: Connection, ticket_id: str) -> Any:
    """The row of a ticket."""
    row = None
    if is_storable(ticket_id):
        row = connection.execute(_BY_ID, {"name": str(ticket_id)}).first()
    if row is None:
        raise UnknownTicketError(f"there is no ticket {shortened(ticket_id)}")
    return row


def meaning(game: Game, classes: Sequence[Label], action: int, answer: Any) -> Meaning:
    """What an answer means for the question that was asked, or for the cheapest that tells the class.

    It is taken for the truth; `live/consultation` takes what an expert says who may be wrong.
    """
    expert = game.expert(action)
    is_question = game.informative_mask[action] and (expert is None or expert.gold)
    asked = action if is_question else labelling_action(game)
    symbols = game.symbols(asked)
    for label, name in enumerate(classes):
        if type(answer) is type(name) and answer == name:
            return Meaning(asked, game.symbol_index(asked, game.feedback[asked][label]), label)
    if isinstance(answer, str) and answer in symbols:
        place = symbols.index(answer)
        meant = [label for label, symbol in enumerate(game.feedback[asked]) if symbol == answer]
        return Meaning(asked, place, meant[0] if len(meant) == 1 else None)
    raise AgentError(f"class {shortened(answer)} is unknown: the classes are {', '.join(map(str, classes))}")


def labelling_action(game: Game) -> int:
    """The cheapest action that tells every class from every other, or that tells anything."""
    if game.labelling_action is not None:
        return game.labelling_action
    asks = [a for a in range(game.n_actions) if game.informative_mask[a]]
    return min(asks, key=lambda a: (float(game.costs[a].max()), a))


def answered(
    connection: Connection, row: Any, said: Meaning, expert: str | None, now: float, overrule: bool = False
) -> Change | None:
    """An answer, a correction, or None if this is what is known already; `overrule` asks for no lease or authorship."""
    if row.status == WITHDRAWN:
        raise ConflictError(f"ticket {row.id!r} was withdrawn: it takes no answer")
    if row.status == ANSWERED:
        if (row.symbol, row.label) == (said.symbol, said.label):
            return None
        if not overrule and expert is not None and expert != row.expert:
            raise ConflictError(f"ticket {row.id!r} was answered by {row.expert or 'someone else'}, not by {expert}")
    elif not overrule:
        check_lease(row, expert, now)
    there = select(observations.c.ticket).where(observations.c.ticket == row.seq)
    if connection.execute(there).first() is None:
        raise ConflictError(f"ticket {row.id!r} was announced too long ago: its features are no longer kept")
    event = {
        "kind": journal.CORRECTED if row.status == ANSWERED else ANSWERED,
        "action": said.action,
        "symbol": said.symbol,
        "label": said.label,
        "voids": _unlearnable(connection, row),
        "expert": expert,
    }
    columns = {"status": ANSWERED, "symbol": said.symbol, "label": said.label, "expert": expert}
    if row.status == CONSULTING:
        columns["action"] = said.action
    return Change(event, {**columns, "until": None, "closed": now})


def closed(connection: Connection, row: Any, status: str, expert: str | None, now: float) -> Change | None:
    """A skip, a "don't know" or a withdrawal; None if it stands so already.

    A named expert's skip closes nothing: the question is offered to the others.
    """
    if row.status == status:
        return None
    if row.status in (ANSWERED, WITHDRAWN) or (row.status in (ANNOUNCED, CONSULTING, HELD) and status != WITHDRAWN):
        raise ConflictError(f"ticket {row.id!r} is {row.status}: it cannot be {_CLOSED_AS[status]}")
    event = {"kind": status, "expert": expert}
    if status != WITHDRAWN:
        check_lease(row, expert, now)
    if status == SKIPPED and expert is not None:
        seen = select(passes).where(passes.c.ticket == row.seq, passes.c.expert == expert)
        if connection.execute(seen).first() is not None:
            return None
        connection.execute(insert(passes), {"ticket": row.seq, "expert": expert})
        return Change(event, {"expert": None, "until": None})
    return Change(event, {"status": status, "expert": expert, "until": None, "closed": now})


def reopened(connection: Connection, row: Any, expert: str | None, now: float) -> Change | None:
    """An answer taken back, or a closed question opened again; of skips, a named expert's own."""
    if row.status == WITHDRAWN:
        raise ConflictError(f"ticket {row.id!r} was withdrawn: it cannot be opened again")
    voids = _unlearnable(connection, row)
    if row.status == ANSWERED and voids is None:
        raise ConflictError(f"ticket {row.id!r} was answered too long ago to be taken back: correct it instead")
    if row.status == OPEN:
        check_not_leased_to_another(row, expert, now)
    skips = (
        passes.c.ticket == row.seq if expert is None else and_(passes.c.ticket == row.seq, passes.c.expert == expert)
    )
    undone = connection.execute(delete(passes).where(skips)).rowcount
    if row.status in (OPEN, ANNOUNCED, HELD) and not undone:
        return None
    event = {"kind": journal.REOPENED, "voids": voids, "expert": expert}
    columns = {"status": OPEN if row.asks else ANNOUNCED, "symbol": None, "label": None, "learned": None}
    return Change(event, {**columns, "expert": None, "until": None, "closed": None})


def check_lease(row: Any, expert: str | None, now: float) -> None:
    """A named expert needs a lease that has not run out, if the question was ever leased."""
    if expert is None or row.until is None:
        return
    check_not_leased_to_another(row, expert, now)
    if now > row.until:
        raise ConflictError(f"the lease of ticket {row.id!r} has run out: ask for questions again")


def check_not_leased_to_another(row: Any, expert: str | None, now: float) -> None:
    """A named expert may not change a question that is leased to another."""
    if None not in (expert, row.expert, row.until) and row.expert != expert and now <= row.until:
        raise ConflictError(f"ticket {row.id!r} is leased to {row.expert}")


def write(connection: Connection, row: Any, change: Change, seq: int, now: float) -> None:
    """Append the event and bring the ticket's row up to it."""
    journal.append(connection, [{"seq": seq, "at": now, "ticket": row.seq, **change.event}])
    learned = {"learned": seq} if change.event.get("symbol") is not None else {}
    connection.execute(update(tickets).where(tickets.c.seq == row.seq).values(**change.columns, **learned))


def _unlearnable(connection: Connection, row: Any) -> int | None:
    """The event whose label can still be unlearned: one after the features that were dropped."""
    if row.learned is None or row.learned <= features_dropped_upto(connection):
        return None
    return int(row.learned)


_CLOSED_AS = {SKIPPED: "skipped", UNKNOWN: 'answered "don\'t know"', WITHDRAWN: "withdrawn"}
