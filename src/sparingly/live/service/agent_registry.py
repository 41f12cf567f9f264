"""The service's list of agents: their names, their states, where they live; every change has its audit line."""

from __future__ import annotations

import json
import re
import threading
import time
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from sparingly.live.agent.errors import AgentError, ConflictError, StoreError
from sparingly.live.service.audit import Actor, add_line
from sparingly.live.service.service_database import (
    ServiceDatabase,
    agents,
    label_studio_annotations,
    label_studio_projects,
    tokens,
    webhook_messages,
    webhooks,
)

NAME = r"[a-z][a-z0-9_]{0,39}"

REVEAL = ("after", "before", "never")
"""When a person sees the agent's guess; `before` may influence the answer."""

ACTIVE, PAUSED, ARCHIVED, DELETED = "active", "paused", "archived", "deleted"
"""A paused agent takes no observations, an archived one can only be read, a deleted one is being removed."""

TRANSITIONS = {
    "pause": ((ACTIVE,), PAUSED, "paused"),
    "resume": ((PAUSED,), ACTIVE, "resumed"),
    "archive": ((ACTIVE, PAUSED), ARCHIVED, "archived"),
    "unarchive": ((ARCHIVED,), ACTIVE, "unarchived"),
}
"""What may be done: from which states, to which, and in words."""

STALE = 1.0
"""Seconds after which the list is read again: how long a change takes to reach every process."""


class UnknownAgentError(AgentError):
    """No agent has that name."""


@dataclass(frozen=True, slots=True)
class RegisteredAgent:
    """An agent as the list has it; `file` is the name of its file or schema, which a new name does not change."""

    name: str
    reveal: str
    state: str
    file: str


class AgentRegistry:
    """The table of agents; read at most once a second, written by whoever looks after the service.

    Attributes
    ----------
    known
        The agents by name, as last read.
    read_at
        When that was, by the monotonic clock.
    """

    def __init__(self, database: ServiceDatabase) -> None:
        self._database = database
        self.known: dict[str, RegisteredAgent] = {}
        self.read_at = -STALE
        self._reading = threading.Lock()
        self._failure: tuple[float, StoreError] | None = None

    @property
    def is_stale(self) -> bool:
        return time.monotonic() - self.read_at >= STALE

    def all(self) -> dict[str, RegisteredAgent]:
        """Every agent by name, oldest first, deleted ones too; whoever comes meanwhile shares the reading."""
        if not self.is_stale:
            return self.known
        asked_at = time.monotonic()
        with self._reading:
            if self.is_stale:
                if self._failure is not None and self._failure[0] > asked_at:
                    raise self._failure[1]
                read_at = time.monotonic()
                try:
                    with self._database.reading() as connection:
                        self.known = _rows(connection)
                except StoreError as error:
                    self._failure = (time.monotonic(), error)
                    raise
                self.read_at = read_at
            return self.known

    def find(self, name: str) -> RegisteredAgent:
        """The agent of this name."""
        found = self.all().get(name)
        if found is None or found.state == DELETED:
            raise UnknownAgentError(f"there is no agent {name!r}")
        return found

    def free_file(self, name: str) -> str:
        """A file's name that no agent has: its own, unless one that was renamed has it."""
        taken = {one.file for one in self.read_now().values()}
        return next(file for file in chain([name], (f"{name}_{i}" for i in count(2))) if file not in taken)

    def check_free(self, name: str) -> None:
        """A name that can be given."""
        if not re.fullmatch(NAME, name):
            raise AgentError(f"agent name {name!r} must be small letters, digits and underscores, at most 40")
        if name in self.read_now():
            raise ConflictError(f"there is already an agent named {name!r}")

    def add(self, name: str, file: str, reveal: str, by: Actor | None, detail: str) -> None:
        """A new agent."""
        with self._database.locked() as connection:
            connection.execute(
                insert(agents), {"name": name, "file": file, "reveal": reveal, "state": ACTIVE, "created": time.time()}
            )
            if by is not None:
                add_line(connection, by, "made an agent", agent=name, detail=detail)
        self.read_at = -STALE

    def set_reveal(self, name: str, reveal: str, by: Actor) -> None:
        """When a person sees the agent's guess."""
        check_reveal(reveal)
        with self._database.locked() as connection:
            _existing(connection, name)
            connection.execute(update(agents).where(agents.c.name == name).values(reveal=reveal))
            add_line(connection, by, "set reveal", agent=name, detail=reveal)
        self.read_at = -STALE

    def change_state(self, name: str, what: str, by: Actor) -> str:
        """Pause, resume, archive or unarchive; the state then. What is so already stays so."""
        origins, target, did = TRANSITIONS[what]
        with self._database.locked() as connection:
            now = _existing(connection, name).state
            if now != target:
                if now not in origins:
                    raise ConflictError(f"agent {name!r} is {now}: it cannot be {did}")
                connection.execute(update(agents).where(agents.c.name == name).values(state=target))
                add_line(connection, by, f"{did} an agent", agent=name)
        self.read_at = -STALE
        return target

    def rename(self, name: str, new: str, by: Actor) -> None:
        """Another name; tokens that are limited to the agent keep it."""
        self.check_free(new)
        with self._database.locked() as connection:
            _existing(connection, name)
            if new in _rows(connection):
                raise ConflictError(f"there is already an agent named {new!r}")
            connection.execute(update(agents).where(agents.c.name == name).values(name=new))
            _rename_in_tokens(connection, name, new)
            add_line(connection, by, "renamed an agent", agent=new, detail=f"from {name}")
        self.read_at = -STALE

    def mark_deleted(self, name: str, by: Actor) -> None:
        """From now on no one gets at the agent; `forget` follows once its file is gone."""
        with self._database.locked() as connection:
            _existing(connection, name)
            connection.execute(update(agents).where(agents.c.name == name).values(state=DELETED))
            _rename_in_tokens(connection, name, None)
            add_line(connection, by, "deleted an agent", agent=name)
        self.read_at = -STALE

    def forget(self, name: str) -> None:
        """Take a deleted agent from the list, and with it its connection to Label Studio, and its webhooks."""
        with self._database.locked() as connection:
            file = select(agents.c.file).where(agents.c.name == name).scalar_subquery()
            own = select(webhooks.c.id).where(webhooks.c.agent == file)
            connection.execute(delete(webhook_messages).where(webhook_messages.c.webhook.in_(own)))
            for table in (label_studio_projects, label_studio_annotations, webhooks):
                connection.execute(delete(table).where(table.c.agent == file))
            connection.execute(delete(agents).where(agents.c.name == name, agents.c.state == DELETED))
        self.read_at = -STALE

    def read_now(self) -> dict[str, RegisteredAgent]:
        """Every agent by name, as the list has it at this moment."""
        self.read_at = -STALE
        return self.all()


def check_reveal(reveal: str) -> None:
    if reveal not in REVEAL:
        raise AgentError(f"reveal is {reveal!r}: it must be one of {', '.join(REVEAL)}")


def _rows(connection: Connection) -> dict[str, RegisteredAgent]:
    rows = connection.execute(select(agents).order_by(agents.c.created))
    return {row.name: RegisteredAgent(row.name, row.reveal, row.state, row.file or row.name) for row in rows}


def _existing(connection: Connection, name: str) -> Any:
    row = connection.execute(select(agents).where(agents.c.name == name, agents.c.state != DELETED)).first()
    if row is None:
        raise UnknownAgentError(f"there is no agent {name!r}")
    return row


def _rename_in_tokens(connection: Connection, name: str, new: str | None) -> None:
    """Tokens limited to an agent follow its name; one limited to an agent that is gone is good for nothing there."""
    for row in connection.execute(select(tokens.c.id, tokens.c.agents).where(tokens.c.agents.is_not(None))).all():
        limited = json.loads(row.agents)
        if name in limited:
            changed = [new if one == name else one for one in limited if one != name or new is not None]
            connection.execute(update(tokens).where(tokens.c.id == row.id).values(agents=json.dumps(changed)))
