"""The agents of a service, by name; each is opened once and closed with the service."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sparingly.experts import MachineExpert
from sparingly.live.agent.agent import Agent
from sparingly.live.agent.errors import AgentError, ConflictError, InUseError, StoreError
from sparingly.live.service.agent_registry import (
    ARCHIVED,
    DELETED,
    PAUSED,
    STALE,
    AgentRegistry,
    RegisteredAgent,
    check_reveal,
)
from sparingly.live.service.audit import Actor
from sparingly.live.service.service_database import ServiceDatabase
from sparingly.live.store.connection_pool import LOCK_SECONDS
from sparingly.live.store.store import backend_of

log = logging.getLogger(__name__)

CLOSED_AT_ONCE = 8
"""How many agents are closed at the same time: each waits for the disk and for its trainer."""

DAMAGED = "damaged"
"""The state of an agent that could not be opened."""

RETRY = 5.0
"""Seconds after which an agent that could not be opened is tried again."""


class Agents:
    """Agents by name: made here, listed in the service's database, opened when first needed.

    `machines` are experts that can be called: each agent calls those that it was made with. `opened` has the agents
    that are open already. One that cannot be opened is set aside: the others work, and its calls fail with the reason.
    """

    def __init__(self, database: ServiceDatabase, machines: Sequence[MachineExpert] = ()) -> None:
        self._database = database
        self._machines = machines
        self.registry = AgentRegistry(database)
        self.opened: dict[str, Agent] = {}
        self._opened_as: dict[str, RegisteredAgent] = {}
        self._failures: dict[str, tuple[float, StoreError]] = {}
        self._lock = threading.RLock()

    def names(self) -> list[str]:
        return [name for name, one in self.registry.all().items() if one.state != DELETED]

    def states(self) -> dict[str, str]:
        """Each agent's state: active, paused, archived, or damaged if it could not be opened."""
        return {name: DAMAGED if name in self._failures else self.registry.find(name).state for name in self.names()}

    def failure(self, name: str) -> str | None:
        """Why an agent could not be opened."""
        failed = self._failures.get(name)
        return str(failed[1]) if failed is not None else None

    def create(self, name: str, *, reveal: str = "after", by: Actor | None = None, **settings: Any) -> Agent:
        """A new agent; the parameters are those of `Agent`."""
        check_reveal(reveal)
        with self._lock:
            self.registry.check_free(name)
            file = self.registry.free_file(name)
            place = self._database.agent_place(file)
            is_new = not backend_of(place).exists()
            agent = Agent(path=place, **{"training": "background", "busy_timeout": LOCK_SECONDS, **settings})
            try:
                self.registry.add(name, file, reveal, by, ", ".join(map(str, agent.classes)))
            except BaseException:
                agent.close()
                if is_new:
                    backend_of(place).remove()
                raise
            self._keep(name, agent)
        return agent

    def recall(self, name: str) -> Agent | None:
        """The agent of this name if it is open, and nothing has changed as far as is known; waits for nothing."""
        known = self.registry.known.get(name)
        is_fresh = time.monotonic() - self.registry.read_at < STALE
        return self.opened.get(name) if is_fresh and known and self._opened_as.get(name) == known else None

    def get(self, name: str) -> Agent:
        """The agent of this name."""
        registered = self.registry.find(name)
        agent = self.opened.get(name)
        if agent is None or self._opened_as.get(name) != registered:
            with self._lock:
                self._close_changed()
                if name not in self.opened:
                    self._keep(name, self._open(self.registry.find(name)))
                agent = self.opened[name]
        return agent

    def open_all(self) -> None:
        """Open every agent that works, and set aside those that cannot be opened; finish what was being deleted."""
        for name, one in list(self.registry.all().items()):
            if one.state == DELETED:
                self._remove(one)
                continue
            try:
                if one.state != ARCHIVED:
                    self.get(name)
            except InUseError:
                raise
            except StoreError as error:
                log.error("agent %s is set aside: %s", name, error)

    def check_observes(self, name: str) -> None:
        """Refuse observations for an agent that is paused or archived."""
        if self._last_state(name) == PAUSED:
            raise ConflictError(f"agent {name!r} is paused: it takes no observations until an admin resumes it")
        self.check_answers(name)

    def check_answers(self, name: str) -> None:
        """Refuse changes of an agent that is archived."""
        if self._last_state(name) == ARCHIVED:
            raise ConflictError(f"agent {name!r} is archived: it can only be read until an admin unarchives it")

    def reveal(self, name: str) -> str:
        """When a person sees the agent's guess."""
        return self.registry.find(name).reveal

    def delete(self, name: str, by: Actor) -> bool:
        """Remove an agent with all it knows; whether it is gone now, or once the process that has it open closes it."""
        with self._lock:
            registered = self.registry.find(name)
            self.registry.mark_deleted(name, by)
            return self._remove(registered)

    def finish_changes(self) -> None:
        """Follow what other processes, and the command line, have changed."""
        with self._lock:
            self._close_changed()
            for one in list(self.registry.all().values()):
                if one.state == DELETED:
                    self._remove(one)

    def close(self) -> None:
        with self._lock:
            with ThreadPoolExecutor(CLOSED_AT_ONCE) as executor:
                list(executor.map(Agent.close, self.opened.values()))
            self.opened.clear()

    def _last_state(self, name: str) -> str | None:
        known = self.registry.known.get(name)
        return known.state if known is not None else None

    def _open(self, registered: RegisteredAgent) -> Agent:
        name = registered.name
        failed = self._failures.get(name)
        if failed is not None and time.monotonic() - failed[0] < RETRY:
            raise failed[1]
        training = "inline" if registered.state == ARCHIVED else None
        try:
            place = self._database.agent_place(registered.file)
            agent = Agent.open(place, training=training, busy_timeout=LOCK_SECONDS)
            if registered.state != ARCHIVED:
                self._consult(agent)
        except InUseError:
            raise
        except Exception as error:
            if not isinstance(error, AgentError):
                log.exception("agent %s cannot be opened", name)
            failure = (
                error if isinstance(error, StoreError) else StoreError(f"agent {name!r} cannot be opened: {error}")
            )
            self._failures[name] = (time.monotonic(), failure)
            raise failure from error
        self._failures.pop(name, None)
        return agent

    def _consult(self, agent: Agent) -> None:
        """Let an agent call the experts that it was made with."""
        own = [one for one in self._machines if one.name in agent.settings.machine_prices]
        if own:
            try:
                agent.consult(own)
            except AgentError:
                agent.close()
                raise

    def _keep(self, name: str, agent: Agent) -> None:
        self._opened_as[name] = self.registry.find(name)
        self.opened[name] = agent

    def _close_changed(self) -> None:
        """Close agents that have another name now, were archived or taken from the archive, or are deleted."""
        registered = self.registry.all()
        for name, was in list(self._opened_as.items()):
            now = registered.get(name)
            if now is not None and now.file == was.file and now.state != DELETED:
                self._opened_as[name] = now
                if (now.state == ARCHIVED) == (was.state == ARCHIVED):
                    continue
            self._opened_as.pop(name)
            agent = self.opened.pop(name, None)
            if agent is not None:
                agent.close()
        for name in [name for name in self._failures if name not in registered]:
            del self._failures[name]

    def _remove(self, registered: RegisteredAgent) -> bool:
        """Remove a deleted agent's file or schema, and then its row."""
        agent = self.opened.pop(registered.name, None)
        self._opened_as.pop(registered.name, None)
        if agent is not None:
            agent.close()
        try:
            backend_of(self._database.agent_place(registered.file)).remove()
        except InUseError as error:
            log.info("agent %s is removed later: %s", registered.name, error)
            return False
        self.registry.forget(registered.name)
        self._failures.pop(registered.name, None)
        return True
