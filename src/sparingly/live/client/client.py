"""Clients of the service that are used like an agent; failed calls are retried, and never take effect twice."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

try:
    import httpx
    from tenacity import (
        AsyncRetrying,
        Retrying,
        retry_if_exception_type,
        stop_before_delay,
        wait_exponential,
        wait_random,
    )
except ImportError:
    raise ImportError("the client needs httpx and tenacity: pip install 'sparingly[service]'") from None

from sparingly.live.agent.errors import StoreError
from sparingly.live.agent.features import rows
from sparingly.live.client import wire_format
from sparingly.live.client.wire_format import Call, UnavailableError
from sparingly.live.quality.quality_records import PersonQuality
from sparingly.live.tickets.ticket_records import Entry, Question, Statistics, Ticket

T = TypeVar("T")


class Client:
    """One agent of a running service.

    Parameters
    ----------
    url
        The service's address.
    token
        A token of `sparingly token create`.
    agent
        The agent's name.
    patience
        For how many seconds a call is retried while the service cannot be reached or is busy.
    timeout
        Seconds after which one attempt fails.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8000", "sparingly_...", agent="default")
    >>> client.close()
    """

    def __init__(
        self, url: str, token: str, *, agent: str = "default", patience: float = 30.0, timeout: float = 30.0
    ) -> None:
        self.agent = agent
        self._patience = patience
        self._http = httpx.Client(base_url=url, headers=_headers(token), timeout=timeout, trust_env=False)

    def observe(self, x: Any, *, id: str | int | None = None, payload: Any = None) -> Ticket:
        """Decide on one observation; it is on the service's disk when this returns."""
        return self._do(wire_format.observe(self.agent, [x], [id], [payload]))[0]

    def observe_many(
        self, X: Any, *, ids: Sequence[str | int | None] | None = None, payloads: Sequence[Any] | None = None
    ) -> list[Ticket]:
        """Decide on a block of observations, all taken or none."""
        block = rows(X)
        return self._do(wire_format.observe(self.agent, block, ids, payloads)) if len(block) else []

    def teach(self, X: Any, labels: Sequence[Any], *, ids: Sequence[str | int | None] | None = None) -> int:
        """Learn labels that are there already, all taken or none; returns how many were new."""
        return self._do(wire_format.teach(self.agent, rows(X), labels, ids))

    def ticket(self, ticket_id: str) -> Entry:
        """One ticket as it stands: its status, the label if there is one, and who has said so."""
        return self._do(wire_format.ticket(self.agent, ticket_id))

    def wait(self, ticket_id: str, timeout: float | None = None) -> Entry:
        """One ticket once nobody is asked about it any more, or as it stands when the time is over."""
        schedule = wire_format.PollingSchedule(timeout)
        while schedule.goes_on(entry := self.ticket(ticket_id)):
            time.sleep(schedule.pause())
        return entry

    def changes(self, since: int = 0, *, limit: int = 100) -> tuple[list[Entry], int]:
        """The tickets to which something happened after an event, as they stand, and the event to go on from."""
        return self._do(wire_format.changes(self.agent, since, limit))

    @property
    def classes(self) -> tuple[Any, ...]:
        """The agent's classes, as the service has them now."""
        return self._do(wire_format.classes(self.agent))

    def questions(self, *, limit: int = 1, lease_seconds: float | None = None) -> list[Question]:
        """The next questions, leased to the owner of the token."""
        return self._do(wire_format.questions(self.agent, limit, lease_seconds))

    def renew(self, ticket_id: str, *, lease_seconds: float | None = None) -> float:
        """Go on holding a question; returns when the lease ends now."""
        return self._do(wire_format.renew(self.agent, ticket_id, lease_seconds))

    def release(self, ticket_id: str) -> None:
        """Give a question back unanswered."""
        self._do(wire_format.ticket_action(self.agent, "release", ticket_id))

    def answer(self, ticket_id: str, label: Any, *, new_class: bool = False) -> None:
        """Tell the true class; a different one than before corrects it. With `new_class` it may be one that is new."""
        self._do(wire_format.ticket_action(self.agent, "answer", ticket_id, label, new_class=new_class))

    def add_class(self, label: Any, *, cost: float | None = None) -> list[Any]:
        """Take on a class that was not known before; returns all classes."""
        return self._do(wire_format.add_class(self.agent, label, cost))

    def correct(self, ticket_id: str, label: Any) -> None:
        """Change an answer that was given."""
        self._do(wire_format.ticket_action(self.agent, "correct", ticket_id, label))

    def skip(self, ticket_id: str) -> None:
        """Leave a question to others."""
        self._do(wire_format.ticket_action(self.agent, "skip", ticket_id))

    def dont_know(self, ticket_id: str) -> None:
        """Close a question that cannot be answered."""
        self._do(wire_format.ticket_action(self.agent, "dont-know", ticket_id))

    def withdraw(self, ticket_id: str) -> None:
        """Take an observation back for good."""
        self._do(wire_format.ticket_action(self.agent, "withdraw", ticket_id))

    def undo(self, ticket_id: str) -> Question:
        """Take an answer back; the question is leased again."""
        return self._do(wire_format.undo(self.agent, ticket_id))

    def stats(self) -> Statistics:
        """How the agent is doing."""
        return self._do(wire_format.statistics(self.agent))

    def people(self) -> list[PersonQuality]:
        """How often each expert is right, how fast, and what they cost."""
        return self._do(wire_format.people(self.agent))

    def adjudicate(self, ticket_id: str, label: Any) -> None:
        """Settle a disagreement between two people: this class stands."""
        self._do(wire_format.ticket_action(self.agent, "adjudicate", ticket_id, label))

    def plant(
        self,
        X: Any,
        labels: Sequence[Any],
        *,
        ids: Sequence[str | int | None] | None = None,
        payloads: Sequence[Any] | None = None,
    ) -> list[str]:
        """Plant items whose classes are known among the questions, to see how often people are right."""
        return self._do(wire_format.plant(self.agent, rows(X), labels, ids, payloads))

    def history(self) -> list[Entry]:
        """Every ticket in order."""
        found, after = self._do(wire_format.history(self.agent, None))
        while after is not None:
            more, after = self._do(wire_format.history(self.agent, after))
            found += more
        return found

    def export(self, format: str = "csv") -> bytes:
        """The labelled data, as "csv" or "parquet"."""
        return self._do(wire_format.export(self.agent, format))

    def set_costs(self, costs: Any = None, *, query_cost: float | None = None) -> None:
        """Change what mistakes, or a question, cost from now on; the token must be an admin's."""
        self._do(wire_format.set_costs(self.agent, costs, query_cost, self.classes))

    def webhooks(self) -> list[dict[str, Any]]:
        """The agent's webhooks, without secrets, and the state of their messages; the token must be an admin's."""
        return self._do(wire_format.webhooks(self.agent))

    def add_webhook(self, url: str, events: Sequence[str] | None = None) -> dict[str, Any]:
        """Send messages of what happens to tickets; `["secret"]`, which signs them, is shown only once."""
        return self._do(wire_format.add_webhook(self.agent, url, events))

    def remove_webhook(self, webhook_id: str) -> None:
        self._do(wire_format.remove_webhook(self.agent, webhook_id))

    def dead_letters(self, webhook_id: str) -> list[dict[str, Any]]:
        """The messages of a webhook that were given up."""
        return self._do(wire_format.dead_letters(self.agent, webhook_id))

    def resend(self, webhook_id: str, messages: Sequence[str] | None = None) -> int:
        """Send messages again that were given up, all of them if none is named; how many there are."""
        return self._do(wire_format.resend(self.agent, webhook_id, messages))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _do(self, call: Call[T]) -> T:
        try:
            result: T = Retrying(**_retry_policy(self._patience))(self._try, call)
        except httpx.TransportError as error:
            raise _unreachable(self._http.base_url, error) from None
        return result

    def _try(self, call: Call[T]) -> T:
        return _read(call, self._http.request(call.method, call.path, content=call.content))


class AsyncClient:
    """The same as `Client`, to be awaited.

    >>> import asyncio
    >>> async def use():
    ...     async with AsyncClient("http://127.0.0.1:8000", "sparingly_...") as client:
    ...         return client.agent
    >>> asyncio.run(use())
    'default'
    """

    def __init__(
        self, url: str, token: str, *, agent: str = "default", patience: float = 30.0, timeout: float = 30.0
    ) -> None:
        self.agent = agent
        self._patience = patience
        self._http = httpx.AsyncClient(base_url=url, headers=_headers(token), timeout=timeout, trust_env=False)

    async def observe(self, x: Any, *, id: str | int | None = None, payload: Any = None) -> Ticket:
        return (await self._do(wire_format.observe(self.agent, [x], [id], [payload])))[0]

    async def observe_many(
        self, X: Any, *, ids: Sequence[str | int | None] | None = None, payloads: Sequence[Any] | None = None
    ) -> list[Ticket]:
        block = rows(X)
        return await self._do(wire_format.observe(self.agent, block, ids, payloads)) if len(block) else []

    async def teach(self, X: Any, labels: Sequence[Any], *, ids: Sequence[str | int | None] | None = None) -> int:
        return await self._do(wire_format.teach(self.agent, rows(X), labels, ids))

    async def ticket(self, ticket_id: str) -> Entry:
        return await self._do(wire_format.ticket(self.agent, ticket_id))

    async def wait(self, ticket_id: str, timeout: float | None = None) -> Entry:
        schedule = wire_format.PollingSchedule(timeout)
        while schedule.goes_on(entry := await self.ticket(ticket_id)):
            await asyncio.sleep(schedule.pause())
        return entry

    async def changes(self, since: int = 0, *, limit: int = 100) -> tuple[list[Entry], int]:
        return await self._do(wire_format.changes(self.agent, since, limit))

    async def questions(self, *, limit: int = 1, lease_seconds: float | None = None) -> list[Question]:
        return await self._do(wire_format.questions(self.agent, limit, lease_seconds))

    async def renew(self, ticket_id: str, *, lease_seconds: float | None = None) -> float:
        return await self._do(wire_format.renew(self.agent, ticket_id, lease_seconds))

    async def release(self, ticket_id: str) -> None:
        await self._do(wire_format.ticket_action(self.agent, "release", ticket_id))

    async def answer(self, ticket_id: str, label: Any, *, new_class: bool = False) -> None:
        await self._do(wire_format.ticket_action(self.agent, "answer", ticket_id, label, new_class=new_class))

    async def add_class(self, label: Any, *, cost: float | None = None) -> list[Any]:
        return await self._do(wire_format.add_class(self.agent, label, cost))

    async def correct(self, ticket_id: str, label: Any) -> None:
        await self._do(wire_format.ticket_action(self.agent, "correct", ticket_id, label))

    async def skip(self, ticket_id: str) -> None:
        await self._do(wire_format.ticket_action(self.agent, "skip", ticket_id))

    async def dont_know(self, ticket_id: str) -> None:
        await self._do(wire_format.ticket_action(self.agent, "dont-know", ticket_id))

    async def withdraw(self, ticket_id: str) -> None:
        await self._do(wire_format.ticket_action(self.agent, "withdraw", ticket_id))

    async def undo(self, ticket_id: str) -> Question:
        return await self._do(wire_format.undo(self.agent, ticket_id))

    async def stats(self) -> Statistics:
        return await self._do(wire_format.statistics(self.agent))

    async def people(self) -> list[PersonQuality]:
        return await self._do(wire_format.people(self.agent))

    async def adjudicate(self, ticket_id: str, label: Any) -> None:
        await self._do(wire_format.ticket_action(self.agent, "adjudicate", ticket_id, label))

    async def plant(
        self,
        X: Any,
        labels: Sequence[Any],
        *,
        ids: Sequence[str | int | None] | None = None,
        payloads: Sequence[Any] | None = None,
    ) -> list[str]:
        return await self._do(wire_format.plant(self.agent, rows(X), labels, ids, payloads))

    async def history(self) -> list[Entry]:
        found, after = await self._do(wire_format.history(self.agent, None))
        while after is not None:
            more, after = await self._do(wire_format.history(self.agent, after))
            found += more
        return found

    async def export(self, format: str = "csv") -> bytes:
        return await self._do(wire_format.export(self.agent, format))

    async def set_costs(self, costs: Any = None, *, query_cost: float | None = None) -> None:
        classes = await self._do(wire_format.classes(self.agent))
        await self._do(wire_format.set_costs(self.agent, costs, query_cost, classes))

    async def webhooks(self) -> list[dict[str, Any]]:
        return await self._do(wire_format.webhooks(self.agent))

    async def add_webhook(self, url: str, events: Sequence[str] | None = None) -> dict[str, Any]:
        return await self._do(wire_format.add_webhook(self.agent, url, events))

    async def remove_webhook(self, webhook_id: str) -> None:
        await self._do(wire_format.remove_webhook(self.agent, webhook_id))

    async def dead_letters(self, webhook_id: str) -> list[dict[str, Any]]:
        return await self._do(wire_format.dead_letters(self.agent, webhook_id))

    async def resend(self, webhook_id: str, messages: Sequence[str] | None = None) -> int:
        return await self._do(wire_format.resend(self.agent, webhook_id, messages))

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _do(self, call: Call[T]) -> T:
        try:
            return await AsyncRetrying(**_retry_policy(self._patience))(self._try, call)
        except httpx.TransportError as error:
            raise _unreachable(self._http.base_url, error) from None

    async def _try(self, call: Call[T]) -> T:
        return _read(call, await self._http.request(call.method, call.path, content=call.content))


def _headers(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}", "content-type": "application/json"}


def _retry_policy(patience: float) -> dict[str, Any]:
    """Exponential backoff with jitter, from a tenth of a second to two seconds, for `patience` seconds in all."""
    return {
        "retry": retry_if_exception_type((httpx.TransportError, UnavailableError)),
        "wait": wait_exponential(multiplier=0.1, max=2.0) + wait_random(0.0, 0.1),
        "stop": stop_before_delay(patience),
        "reraise": True,
    }


def _unreachable(url: httpx.URL, error: Exception) -> StoreError:
    return StoreError(f"the service at {url} cannot be reached: {error or type(error).__name__}")


def _read(call: Call[T], response: httpx.Response) -> T:
    if not response.is_success:
        raise wire_format.refusal(response.status_code, response.text)
    return call.read(response.content if call.is_raw else response.json())
