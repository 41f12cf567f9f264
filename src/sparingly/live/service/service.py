"""What the routes share: the agents, who may do what, and threads for everything that waits."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import datetime
import functools
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Annotated, Any, ParamSpec, TypeVar

from fastapi import Depends, Path, Request

from sparingly.experts import MachineExpert
from sparingly.live.agent.agent import Agent
from sparingly.live.agent.agent_settings import checked_retention
from sparingly.live.agent.errors import AgentError
from sparingly.live.service.agent_directory import Agents
from sparingly.live.service.agent_registry import NAME
from sparingly.live.service.audit import Actor, Audit
from sparingly.live.service.auth.authentication import Access
from sparingly.live.service.auth.sessions import Sessions
from sparingly.live.service.auth.tokens import Tokens
from sparingly.live.service.dashboard_cache import DashboardCache
from sparingly.live.service.housekeeping import Housekeeping
from sparingly.live.service.readiness import Readiness
from sparingly.live.service.service_database import ServiceDatabase
from sparingly.live.service.service_limits import ServiceLimits
from sparingly.live.service.web.metrics import Metrics
from sparingly.live.service.web.server_sent_events import Events
from sparingly.live.service.webhooks.webhook_dispatcher import WebhookDispatcher
from sparingly.live.service.webhooks.webhook_outbox import WebhookOutbox
from sparingly.live.service.webhooks.webhook_sender import WebhookSender
from sparingly.live.service.webhooks.webhook_targets import TargetRule
from sparingly.live.store.connection_pool import THREADS
from sparingly.live.tickets.ticket_records import Ticket

P = ParamSpec("P")
T = TypeVar("T")


class LoopWaker:
    """Wakes the calls of an event loop that wait for threads: those of a batch at once, not each by itself."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._done: deque[asyncio.Future[None]] = deque()
        self._is_due = False

    async def result(self, future: Future[T]) -> T:
        """What a thread returns; if nobody waits for it any more, it need not begin."""
        waiting = self.loop.create_future()
        future.add_done_callback(lambda _: self._put(waiting))
        try:
            await waiting
        except asyncio.CancelledError:
            future.cancel()
            raise
        return future.result()

    def _put(self, waiting: asyncio.Future[None]) -> None:
        self._done.append(waiting)
        if not self._is_due and not self.loop.is_closed():
            self._is_due = True
            self.loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._is_due = False
        while self._done:
            waiting = self._done.popleft()
            if not waiting.done():
                waiting.set_result(None)


class Service:
    """The parts of a running service."""

    def __init__(
        self,
        place: str,
        limits: ServiceLimits | None = None,
        *,
        secure_cookie: bool = True,
        retention_days: float | None = None,
        machines: Sequence[MachineExpert] = (),
        webhook_networks: Sequence[str] = (),
    ) -> None:
        self.limits = limits or ServiceLimits()
        self.secure_cookie = secure_cookie
        self.webhook_rule = TargetRule(webhook_networks)
        self.database = ServiceDatabase(place)
        self.tokens = Tokens(self.database)
        self.sessions = Sessions(self.database, self.tokens)
        self.agents = Agents(self.database, machines)
        self.audit = Audit(self.database, self.agents.opened)
        self.access = Access(self.tokens, self.sessions, self.limits)
        self.dashboard_cache = DashboardCache(self.agents)
        self.metrics = Metrics()
        self.metrics.watch(self.dashboard_cache)
        self.events = Events()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="agent")
        self._waker: LoopWaker | None = None
        self.readiness = Readiness(self.database, self.agents)
        self._retention_days = checked_retention(retention_days)
        self.webhooks = WebhookOutbox(self.database)
        self._dispatcher = WebhookDispatcher(
            self.webhooks, WebhookSender(self.webhook_rule), self.agents.get, self.dashboard_cache.alerts
        )
        self._housekeeping = Housekeeping(
            {
                self._copy_audit_lines: 1.0,
                self._announce_held: 1.0,
                self.agents.finish_changes: 1.0,
                self._apply_retention: 60.0,
            }
        )

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run what may wait for a disk or a database beside the event loop."""
        loop = asyncio.get_running_loop()
        context = contextvars.copy_context()
        return await loop.run_in_executor(self._threads, functools.partial(context.run, function, *args, **kwargs))

    async def observe(
        self, agent: Agent, X: Sequence[Any], ids: Sequence[Any], payloads: Sequence[Any]
    ) -> list[Ticket]:
        """The tickets of one call's observations, decided on a thread in one batch with those of other calls."""
        loop = asyncio.get_running_loop()
        if self._waker is None or self._waker.loop is not loop:
            self._waker = LoopWaker(loop)
        future = agent.submit_many(X, executor=self._threads, ids=ids, payloads=payloads)
        return await self._waker.result(future)

    async def agent(self, name: str) -> Agent:
        agent = self.agents.recall(name)
        return agent if agent is not None else await self.call(self.agents.get, name)

    def delete_agent(self, name: str, by: Actor) -> None:
        """Delete an agent for good; what was done to it stays in the audit trail."""
        agent = self.agents.opened.get(name)
        if agent is not None:
            with contextlib.suppress(AgentError):
                self.audit.collect(name, agent)
        self.agents.delete(name, by)

    def close(self) -> None:
        self.events.stop()
        self._threads.shutdown(wait=True)
        self._dispatcher.stop()
        self._housekeeping.stop()
        self._copy_audit_lines()
        self.agents.close()
        self.database.close()

    def _apply_retention(self) -> None:
        """Erase old payloads; the service's time counts for agents that have none of their own."""
        for agent in list(self.agents.opened.values()):
            agent.apply_retention(self._retention_days)

    def _announce_held(self) -> None:
        """A model may be there since the last call of an agent: no ticket is held longer."""
        for agent in list(self.agents.opened.values()):
            agent.announce_held()

    def _copy_audit_lines(self) -> None:
        self.audit.collect_all(lambda agent: agent.has_audit_lines)


async def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Name = Annotated[str, Path(description="The agent's name.", pattern=f"^{NAME}$")]


async def agent_of(request: Request, agent: Name) -> Agent:
    return await (await service_of(request)).agent(agent)


async def observing_agent_of(request: Request, agent: Name) -> Agent:
    here = await service_of(request)
    found = await here.agent(agent)
    here.agents.check_observes(agent)
    return found


async def answering_agent_of(request: Request, agent: Name) -> Agent:
    here = await service_of(request)
    found = await here.agent(agent)
    here.agents.check_answers(agent)
    return found


def midnight() -> float:
    """When today began, where the service runs."""
    today = datetime.datetime.now().replace(hour=0, minute=0, second=0, microsecond=0)
    return today.timestamp()


Here = Annotated[Service, Depends(service_of)]
TheAgent = Annotated[Agent, Depends(agent_of)]
ObservingAgent = Annotated[Agent, Depends(observing_agent_of)]
"""An agent that takes observations: neither paused nor archived."""
AnsweringAgent = Annotated[Agent, Depends(answering_agent_of)]
"""An agent that takes answers: not archived."""
Json = dict[str, Any]
