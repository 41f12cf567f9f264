"""The agents of a service, by name; each is opened once and closed with the service."""

from __future__ import annotations

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sqlalchemy import insert, select, update

from sparingly.live.agent.agent import Agent
from sparingly.live.agent.errors import AgentError, ConflictError
from sparingly.live.service.service_database import ServiceDatabase, agents
from sparingly.live.store.connection_pool import LOCK_SECONDS

NAME = r"[a-z][a-z0-9_]{0,39}"
REVEAL = ("after", "before", "never")
"""When a person is told what the agent would have said; `before` may sway the answer."""

CLOSED_AT_ONCE = 8
"""How many agents are closed at the same time: each waits for the disk and for its trainer."""


class UnknownAgentError(AgentError):
    """No agent has that name."""


class Agents:
    """Agents by name: made here, listed in the service's database, opened when first needed.

    `opened` has those that are open already.
    """

    def __init__(self, database: ServiceDatabase) -> None:
        self._database = database
        self.opened: dict[str, Agent] = {}
        self._reveal: dict[str, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        with self._database.reading() as connection:
            return list(connection.execute(select(agents.c.name).order_by(agents.c.created)).scalars())

    def create(self, name: str, *, reveal: str = "after", **settings: Any) -> Agent:
        """A new agent; the parameters are those of `Agent`."""
        if not re.fullmatch(NAME, name):
            raise AgentError(f"agent name {name!r} must be small letters, digits and underscores, at most 40")
        _check_reveal(reveal)
        with self._lock:
            if name in self.names():
                raise ConflictError(f"there is already an agent named {name!r}")
            settings = {"training": "background", "busy_timeout": LOCK_SECONDS, **settings}
            agent = Agent(path=self._database.agent_place(name), **settings)
            with self._database.writing() as connection:
                connection.execute(insert(agents), {"name": name, "reveal": reveal, "created": time.time()})
            self.opened[name] = agent
        return agent

    def get(self, name: str) -> Agent:
        """The agent of this name."""
        agent = self.opened.get(name)
        if agent is None:
            with self._lock:
                if name not in self.opened:
                    if name not in self.names():
                        raise UnknownAgentError(f"there is no agent {name!r}")
                    self.opened[name] = Agent.open(self._database.agent_place(name), busy_timeout=LOCK_SECONDS)
                agent = self.opened[name]
        return agent

    def open_all(self) -> None:
        """Open every agent now, so that one that cannot be used is noticed before anything is promised."""
        for name in self.names():
            self.get(name)

    def reveal(self, name: str) -> str:
        """When a person is told the agent's guess."""
        told_at, told = self._reveal.get(name, (float("-inf"), ""))
        if time.monotonic() - told_at > 1.0:
            with self._database.reading() as connection:
                told = connection.execute(select(agents.c.reveal).where(agents.c.name == name)).scalar_one()
            self._reveal[name] = (time.monotonic(), told)
        return told

    def set_reveal(self, name: str, reveal: str) -> None:
        _check_reveal(reveal)
        with self._database.writing() as connection:
            connection.execute(update(agents).where(agents.c.name == name).values(reveal=reveal))
        self._reveal.pop(name, None)

    def close(self) -> None:
        with self._lock:
            with ThreadPoolExecutor(CLOSED_AT_ONCE) as executor:
                list(executor.map(Agent.close, self.opened.values()))
            self.opened.clear()


def _check_reveal(reveal: str) -> None:
    if reveal not in REVEAL:
        raise AgentError(f"reveal is {reveal!r}: it must be one of {', '.join(REVEAL)}")
