"""Whether the service can work now, found out within bounded time however long a database makes one wait."""

from __future__ import annotations

import asyncio

from sparingly.live.agent.errors import BusyError
from sparingly.live.service.agent_directory import Agents

SECONDS = 4.0


class Readiness:
    """Looks at every agent, at most once at a time: whoever asks meanwhile waits for the same look."""

    def __init__(self, agents: Agents) -> None:
        self._agents = agents
        self._look: asyncio.Future[None] | None = None

    async def check(self) -> None:
        """Raise the first agent's error, or one that says that there was no reply in time."""
        if self._look is None or self._look.done():
            self._look = asyncio.ensure_future(asyncio.to_thread(self._touch_all))
            self._look.add_done_callback(lambda look: look.cancelled() or look.exception())
        try:
            await asyncio.wait_for(asyncio.shield(self._look), SECONDS)
        except TimeoutError:
            raise BusyError(f"the database has not replied within {SECONDS:g} s") from None

    def _touch_all(self) -> None:
        for name in self._agents.names():
            self._agents.get(name).count_events()
