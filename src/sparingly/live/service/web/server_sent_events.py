"""Server-sent events: listeners hear that an agent has changed, whichever process changed it.

The events are three lines of text; what takes code here is polling once for all listeners, so no library writes them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from sparingly.live.agent.agent import Agent
from sparingly.live.agent.errors import AgentError

EVERY = 0.5
PING = 15.0
CHECK = 1.0
"""Seconds between two looks whether a listener's token is still valid."""


@dataclass
class _WatchedAgent:
    """What was last seen of an agent, and everyone who waits for more."""

    seen: tuple[int, int] = (-1, 0)
    listeners: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set at the next change; there is a new one for the change after that. A condition would not do: a listener that
    hangs up is cancelled more than once while it waits, and would leave it without its lock."""
    task: asyncio.Task[None] | None = None

    def tell(self) -> None:
        """Wake everyone who waits."""
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()


class Events:
    """One look at the journal's head every half second for an agent that someone listens to, none for the others."""

    def __init__(self) -> None:
        self._watched: dict[str, _WatchedAgent] = {}
        self._stopping = asyncio.Event()

    async def stream(self, name: str, agent: Agent, may_listen: Callable[[], Awaitable[bool]]) -> AsyncIterator[str]:
        """Server-sent events until the listener goes or may no longer listen, or the service stops."""
        watched = self._watched.setdefault(name, _WatchedAgent())
        watched.listeners += 1
        if watched.task is None:
            watched.task = asyncio.create_task(self._watch(watched, agent))
        sent, spoke = (-2, 0), time.monotonic()
        try:
            yield "retry: 1000\n\n"
            while not self._stopping.is_set() and await _is_let(may_listen):
                if watched.seen != sent and watched.seen[0] >= 0:
                    sent = watched.seen
                    data = json.dumps({"events": sent[0], "open": sent[1]})
                    yield f"event: moved\nid: {sent[0]}\ndata: {data}\n\n"
                    spoke = time.monotonic()
                elif time.monotonic() - spoke >= PING:
                    yield ": still here\n\n"
                    spoke = time.monotonic()
                else:
                    await self._wait(watched)
        finally:
            watched.listeners -= 1

    def stop(self) -> None:
        """Let every listener go, so that the service can close."""
        self._stopping.set()

    async def _wait(self, watched: _WatchedAgent) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(watched.changed.wait(), CHECK)

    async def _watch(self, watched: _WatchedAgent, agent: Agent) -> None:
        try:
            while watched.listeners and not self._stopping.is_set():
                with contextlib.suppress(AgentError):
                    seen = await asyncio.to_thread(_look, agent)
                    if seen != watched.seen:
                        watched.seen = seen
                        watched.tell()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), EVERY)
        finally:
            watched.task = None
            watched.tell()


async def _is_let(may_listen: Callable[[], Awaitable[bool]]) -> bool:
    """A database that cannot be read now ends no stream: nothing is sent until it can."""
    try:
        return await may_listen()
    except AgentError:
        return True


def _look(agent: Agent) -> tuple[int, int]:
    return agent.count_events(), agent.count_open()
