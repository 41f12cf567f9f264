"""Live updates: who listens hears that an agent has moved on, whichever process moved it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from sparingly.live.agent.agent import Agent
from sparingly.live.agent.errors import AgentError

EVERY = 0.5
PING = 15.0


@dataclass
class _Pulse:
    """What was last seen of an agent, and everyone who waits for more."""

    seen: tuple[int, int] = (-1, 0)
    listeners: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    task: asyncio.Task[None] | None = None


class Events:
    """One look at the journal's head every half second for an agent that someone listens to, none for the others."""

    def __init__(self) -> None:
        self._pulses: dict[str, _Pulse] = {}
        self._stopping = asyncio.Event()

    async def stream(self, name: str, agent: Agent) -> AsyncIterator[str]:
        """Server-sent events until the listener goes or the service stops."""
        pulse = self._pulses.setdefault(name, _Pulse())
        pulse.listeners += 1
        if pulse.task is None:
            pulse.task = asyncio.create_task(self._watch(pulse, agent))
        told = (-2, 0)
        try:
            yield "retry: 1000\n\n"
            while not self._stopping.is_set():
                if pulse.seen != told and pulse.seen[0] >= 0:
                    told = pulse.seen
                    data = json.dumps({"events": told[0], "open": told[1]})
                    yield f"event: moved\nid: {told[0]}\ndata: {data}\n\n"
                    continue
                if not await self._wait(pulse):
                    yield ": still here\n\n"
        finally:
            pulse.listeners -= 1

    def stop(self) -> None:
        """Let every listener go, so that the service can close."""
        self._stopping.set()

    async def _wait(self, pulse: _Pulse) -> bool:
        async with pulse.changed:
            try:
                await asyncio.wait_for(pulse.changed.wait(), PING)
            except TimeoutError:
                return False
        return True

    async def _watch(self, pulse: _Pulse, agent: Agent) -> None:
        try:
            while pulse.listeners and not self._stopping.is_set():
                with contextlib.suppress(AgentError):
                    seen = await asyncio.to_thread(_look, agent)
                    if seen != pulse.seen:
                        pulse.seen = seen
                        async with pulse.changed:
                            pulse.changed.notify_all()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), EVERY)
        finally:
            pulse.task = None
            async with pulse.changed:
                pulse.changed.notify_all()


def _look(agent: Agent) -> tuple[int, int]:
    return agent.count_events(), agent.count_open()
