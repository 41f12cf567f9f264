"""Whether the service can work now, found out within bounded time however long a database makes one wait."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from sparingly.live.agent.errors import AgentError, BusyError, StoreError
from sparingly.live.service.agent_directory import DAMAGED, Agents
from sparingly.live.service.agent_registry import ACTIVE, PAUSED
from sparingly.live.service.service_database import ServiceDatabase

SECONDS = 4.0
FRESH = 0.5
"""Seconds for which a result is cached, so that anonymous callers cause few writes."""

log = logging.getLogger(__name__)


class Readiness:
    """Writes to every database, at most once at a time: whoever asks meanwhile waits for the same result.

    A disk that is full, or mounted read-only, is noticed by writing only.
    """

    def __init__(self, database: ServiceDatabase, agents: Agents) -> None:
        self._database = database
        self._agents = agents
        self._look: asyncio.Future[list[str]] | None = None
        self._looked = float("-inf")

    async def check(self) -> list[str]:
        """The agents that are set aside; raises if a database cannot be written, or does not reply in time."""
        if self._look is None or (self._look.done() and time.monotonic() - self._looked >= FRESH):
            self._look = asyncio.ensure_future(asyncio.to_thread(self._write_to_all))
            self._look.add_done_callback(self._note)
        try:
            return await asyncio.wait_for(asyncio.shield(self._look), SECONDS)
        except TimeoutError:
            raise BusyError(f"the database has not replied within {SECONDS:g} s") from None

    def _note(self, look: asyncio.Future[list[str]]) -> None:
        self._looked = time.monotonic()
        if not look.cancelled():
            look.exception()

    def _write_to_all(self) -> list[str]:
        _check("the service's database", self._database.check_writable)
        states = self._agents.states()
        for name, state in states.items():
            if state in (ACTIVE, PAUSED):
                _check(f"agent {name!r}", lambda name=name: self._agents.get(name).check_writable())  # type: ignore[misc]
        return [name for name, state in states.items() if state == DAMAGED]


def _check(what: str, write: Callable[[], None]) -> None:
    """What a database says, with paths and hosts, is for the log: anyone may ask whether the service is ready."""
    try:
        write()
    except AgentError as error:
        log.warning("%s cannot be written: %s", what, error)
        raise StoreError(f"{what} cannot be written; the service's log tells why") from None
