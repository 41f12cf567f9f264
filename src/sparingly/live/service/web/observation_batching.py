"""Observations that arrive together are written together: one hop to a thread, one wait for the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sparingly.live.agent.agent import Agent
from sparingly.live.agent.errors import AgentError
from sparingly.live.agent.ticket_records import Ticket

if TYPE_CHECKING:
    from sparingly.live.service.service import Service

MOST = 500
"""So many observations, and no further call joins a group."""


@dataclass(slots=True)
class Block:
    """The observations of one call."""

    features: list[Any]
    ids: list[str | int | None]
    payloads: list[Any]
    tickets: asyncio.Future[list[Ticket]]


class Together:
    """Whoever comes while others are served waits for the next round, which takes those that wait."""

    def __init__(self) -> None:
        self._waiting: dict[Agent, list[Block]] = {}
        self._serving: dict[Agent, asyncio.Task[None]] = {}

    async def observe(
        self, here: Service, agent: Agent, features: list[Any], ids: list[str | int | None], payloads: list[Any]
    ) -> list[Ticket]:
        """The tickets of one call's observations; all are taken or none."""
        block = Block(features, ids, payloads, asyncio.get_running_loop().create_future())
        self._waiting.setdefault(agent, []).append(block)
        if agent not in self._serving:
            self._serving[agent] = asyncio.create_task(self._serve(here, agent))
        return await block.tickets

    async def _serve(self, here: Service, agent: Agent) -> None:
        try:
            while self._waiting.get(agent):
                group = self._next(agent)
                results = await here.call(_observe, agent, group)
                for block, result in zip(group, results, strict=True):
                    if block.tickets.done():
                        continue
                    if isinstance(result, BaseException):
                        block.tickets.set_exception(result)
                    else:
                        block.tickets.set_result(result)
        finally:
            del self._serving[agent]
            for block in self._waiting.pop(agent, []):
                block.tickets.cancel()

    def _next(self, agent: Agent) -> list[Block]:
        waiting, count = self._waiting[agent], 0
        group: list[Block] = []
        while waiting and (not group or count + len(waiting[0].ids) <= MOST):
            count += len(waiting[0].ids)
            group.append(waiting.pop(0))
        return group


def _observe(agent: Agent, group: Sequence[Block]) -> list[list[Ticket] | BaseException]:
    """All in one go; if one of the calls makes no sense, each by itself, so that it fails alone."""
    if len(group) > 1:
        try:
            tickets = iter(
                agent.observe_many(
                    [x for block in group for x in block.features],
                    ids=[one for block in group for one in block.ids],
                    payloads=[one for block in group for one in block.payloads],
                )
            )
            return [[next(tickets) for _ in block.ids] for block in group]
        except AgentError:
            pass
    return [_observe_alone(agent, block) for block in group]


def _observe_alone(agent: Agent, block: Block) -> list[Ticket] | BaseException:
    try:
        return agent.observe_many(block.features, ids=block.ids, payloads=block.payloads)
    except Exception as error:
        return error
