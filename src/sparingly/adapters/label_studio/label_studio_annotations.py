"""Annotations as answers: the tickets of an agent follow what Label Studio has, also when an annotation is deleted."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, delete, insert, or_, select

from sparingly.live.agent.agent import Agent
from sparingly.live.agent.errors import AgentError
from sparingly.live.service.audit import Actor, line_of
from sparingly.live.service.service_database import ServiceDatabase, agents
from sparingly.live.service.service_database import label_studio_annotations as table
from sparingly.live.tickets.ticket_records import ANSWERED, OPEN, SKIPPED

_lock = threading.Lock()


@dataclass(frozen=True)
class Annotation:
    """One annotation: the class that was chosen, or None for a task that was skipped, by whom, and when it changed."""

    id: int
    label: str | None
    expert: str
    updated: str


class Annotations:
    """The annotations of one project, and the tickets of one agent that follow them.

    A ticket has the label of the annotation that changed last; without one it is skipped, and once all are deleted it
    is as if nobody had answered. The agent is told first and the table written second, so that after a crash between
    the two the same is done again, and changes nothing.
    """

    def __init__(self, database: ServiceDatabase, name: str, agent: Agent, project: str, who: Actor) -> None:
        self._database = database
        self._agent = agent
        self._project = project
        self._who = who
        self._key = agent_key(database, name)

    def put(self, ticket: str, annotations: Sequence[Annotation], *, all_at: float | None = None) -> bool:
        """Take annotations of a ticket; whether anything changed.

        `all_at` says that these were all there were at that time: others that were known before it are deleted.
        """
        with _lock:
            known = self._known(table.c.ticket == ticket, [one.id for one in annotations])
            kept = {id: row for id, (row, seen, where) in known.items() if where == ticket}
            gone = set()
            if all_at is not None:
                there = {one.id for one in annotations}
                gone = {id for id in kept if id not in there and known[id][1] < all_at}
            new = [one for one in annotations if one.id not in known or _is_newer(one, ticket, known[one.id])]
            if not new and not gone:
                return False
            left = {id: row for id, row in kept.items() if id not in gone} | {one.id: one for one in new}
            self._follow(ticket, left, {kept[id].expert for id in gone})
            self._write(ticket, new, gone)
            return True

    def remove(self, ids: Collection[int]) -> list[str]:
        """Unlearn deleted annotations; the tickets that they were answers to."""
        with _lock:
            tickets = {where for _, _, where in self._known(None, ids).values()}
            for ticket in sorted(tickets):
                kept = {id: row for id, (row, _, _) in self._known(table.c.ticket == ticket, []).items()}
                left = {id: row for id, row in kept.items() if id not in ids}
                gone = set(kept) - set(left)
                self._follow(ticket, left, {kept[id].expert for id in gone})
                self._write(ticket, [], gone)
            return sorted(tickets)

    def _follow(self, ticket: str, left: Mapping[int, Annotation], gone: Collection[str]) -> None:
        """Bring a ticket to the annotations that are left; `gone` are the experts of those that were deleted."""
        agent, entry = self._agent, self._agent.ticket(ticket)
        labelled = [one for one in left.values() if one.label is not None]
        if labelled:
            last = max(labelled, key=lambda one: (one.updated, one.id))
            label = class_of(agent, str(last.label))
            if entry.status != ANSWERED or entry.label != label:
                line = line_of(self._who, "answered", label)
                agent.answer(ticket, label, expert=last.expert, overrule=True, audit=line)
        elif left:
            if entry.status == ANSWERED and entry.expert in {*gone, *(one.expert for one in left.values())}:
                agent.reopen(ticket, audit=line_of(self._who, "took back"))
            if agent.ticket(ticket).status == OPEN:
                agent.skip(ticket, audit=line_of(self._who, "skipped"))
        elif entry.status == SKIPPED or (entry.status == ANSWERED and entry.expert in gone):
            agent.reopen(ticket, audit=line_of(self._who, "took back"))

    @property
    def _here(self) -> Any:
        return and_(table.c.agent == self._key, table.c.project == self._project)

    def _known(self, ticket: Any, ids: Collection[int]) -> dict[int, tuple[Annotation, float, str]]:
        named = table.c.annotation.in_(list(ids))
        query = select(table).where(self._here, named if ticket is None else or_(ticket, named))
        with self._database.reading() as connection:
            return {
                row.annotation: (Annotation(row.annotation, row.label, row.expert, row.updated), row.seen, row.ticket)
                for row in connection.execute(query)
            }

    def _write(self, ticket: str, new: Sequence[Annotation], gone: Collection[int]) -> None:
        changed = [*gone, *(one.id for one in new)]
        common = {"agent": self._key, "project": self._project, "ticket": ticket, "seen": time.time()}
        rows = [
            {**common, "annotation": one.id, "label": one.label, "expert": one.expert, "updated": one.updated}
            for one in new
        ]
        with self._database.writing() as connection:
            connection.execute(delete(table).where(self._here, table.c.annotation.in_(changed)))
            if rows:
                connection.execute(insert(table), rows)


def _is_newer(one: Annotation, ticket: str, known: tuple[Annotation, float, str]) -> bool:
    before, _, where = known
    same = (one.label, one.updated, ticket) == (before.label, before.updated, where)
    return not same and one.updated >= before.updated


def class_of(agent: Agent, label: str) -> Any:
    """The class that a choice stands for; choices are always words."""
    for known in agent.classes:
        if str(known) == label:
            return known
    raise AgentError(f"class {label[:100]!r} is unknown: the classes are {', '.join(map(str, agent.classes))}")


def agent_key(database: ServiceDatabase, name: str) -> str:
    """What stays the same when an agent is renamed."""
    with database.reading() as connection:
        return connection.execute(select(agents.c.file).where(agents.c.name == name)).scalar() or name
