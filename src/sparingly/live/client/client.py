"""A client of the service that is used like an agent; what it could not deliver it tries again, never twice."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

try:
    import httpx
except ImportError:
    raise ImportError("the client needs httpx: pip install 'sparingly[service]'") from None

from sparingly.live.agent.errors import StoreError
from sparingly.live.agent.ticket_records import Entry, Question, Statistics, Ticket
from sparingly.live.client import wire_format
from sparingly.live.client.wire_format import AGAIN, Call, Patience

T = TypeVar("T")


class _Caller:
    """One agent of a running service, and the patience with which it is called."""

    _opens: ClassVar[Callable[..., Any]]
    _http: Any

    def __init__(
        self, url: str, token: str, *, agent: str = "default", patience: float = 30.0, timeout: float = 30.0
    ) -> None:
        self.agent = agent
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        self._http = type(self)._opens(base_url=url, headers=headers, timeout=timeout, trust_env=False)
        self._patience = Patience(patience)
        self._chance = random.Random()

    def _waits(self) -> list[float]:
        return self._patience.waits(self._chance)

    def _unreachable(self, error: Exception) -> StoreError:
        return StoreError(f"the service at {self._http.base_url} cannot be reached: {error or type(error).__name__}")


class Client(_Caller):
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
        For how many seconds a call is tried again while the service is away or busy.
    timeout
        Seconds after which one attempt has failed.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8000", "sparingly_...", agent="default")
    >>> client.close()
    """

    _opens = httpx.Client
    _http: httpx.Client

    def observe(self, x: Any, *, id: str | int | None = None, payload: Any = None) -> Ticket:
        """Decide on one observation; it is on the service's disk when this returns."""
        return self._do(wire_format.observe(self.agent, [x], [id], [payload]))[0]

    def observe_many(
        self, X: Any, *, ids: Sequence[str | int | None] | None = None, payloads: Sequence[Any] | None = None
    ) -> list[Ticket]:
        """Decide on a block of observations, all taken or none."""
        block = wire_format.block(X)
        return self._do(wire_format.observe(self.agent, block, ids, payloads)) if len(block) else []

    def questions(self, *, limit: int = 1, lease_seconds: float | None = None) -> list[Question]:
        """The next questions, lent to the owner of the token."""
        return self._do(wire_format.questions(self.agent, limit, lease_seconds))

    def answer(self, ticket_id: str, label: Any) -> None:
        """Tell the true class; a different one than before corrects it."""
        self._do(wire_format.done(self.agent, "answer", ticket_id, label))

    def correct(self, ticket_id: str, label: Any) -> None:
        """Change an answer that was given."""
        self._do(wire_format.done(self.agent, "correct", ticket_id, label))

    def skip(self, ticket_id: str) -> None:
        """Leave a question to others."""
        self._do(wire_format.done(self.agent, "skip", ticket_id))

    def dont_know(self, ticket_id: str) -> None:
        """Close a question that cannot be answered."""
        self._do(wire_format.done(self.agent, "dont-know", ticket_id))

    def withdraw(self, ticket_id: str) -> None:
        """Take an observation back for good."""
        self._do(wire_format.done(self.agent, "withdraw", ticket_id))

    def undo(self, ticket_id: str) -> Question:
        """Take an answer back; the question is lent again."""
        return self._do(wire_format.undo(self.agent, ticket_id))

    def stats(self) -> Statistics:
        """How the agent is doing."""
        return self._do(wire_format.statistics(self.agent))

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

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _do(self, call: Call[T]) -> T:
        waits = self._waits()
        while True:
            try:
                response = self._http.request(call.method, call.path, content=call.content)
            except httpx.TransportError as error:
                if not waits:
                    raise self._unreachable(error) from None
            else:
                if response.status_code not in AGAIN or not waits:
                    return _read(call, response)
            time.sleep(waits.pop(0))


class AsyncClient(_Caller):
    """The same as `Client`, to be awaited.

    >>> import asyncio
    >>> async def use():
    ...     async with AsyncClient("http://127.0.0.1:8000", "sparingly_...") as client:
    ...         return client.agent
    >>> asyncio.run(use())
    'default'
    """

    _opens = httpx.AsyncClient
    _http: httpx.AsyncClient

    async def observe(self, x: Any, *, id: str | int | None = None, payload: Any = None) -> Ticket:
        return (await self._do(wire_format.observe(self.agent, [x], [id], [payload])))[0]

    async def observe_many(
        self, X: Any, *, ids: Sequence[str | int | None] | None = None, payloads: Sequence[Any] | None = None
    ) -> list[Ticket]:
        block = wire_format.block(X)
        return await self._do(wire_format.observe(self.agent, block, ids, payloads)) if len(block) else []

    async def questions(self, *, limit: int = 1, lease_seconds: float | None = None) -> list[Question]:
        return await self._do(wire_format.questions(self.agent, limit, lease_seconds))

    async def answer(self, ticket_id: str, label: Any) -> None:
        await self._do(wire_format.done(self.agent, "answer", ticket_id, label))

    async def correct(self, ticket_id: str, label: Any) -> None:
        await self._do(wire_format.done(self.agent, "correct", ticket_id, label))

    async def skip(self, ticket_id: str) -> None:
        await self._do(wire_format.done(self.agent, "skip", ticket_id))

    async def dont_know(self, ticket_id: str) -> None:
        await self._do(wire_format.done(self.agent, "dont-know", ticket_id))

    async def withdraw(self, ticket_id: str) -> None:
        await self._do(wire_format.done(self.agent, "withdraw", ticket_id))

    async def undo(self, ticket_id: str) -> Question:
        return await self._do(wire_format.undo(self.agent, ticket_id))

    async def stats(self) -> Statistics:
        return await self._do(wire_format.statistics(self.agent))

    async def history(self) -> list[Entry]:
        found, after = await self._do(wire_format.history(self.agent, None))
        while after is not None:
            more, after = await self._do(wire_format.history(self.agent, after))
            found += more
        return found

    async def export(self, format: str = "csv") -> bytes:
        return await self._do(wire_format.export(self.agent, format))

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _do(self, call: Call[T]) -> T:
        waits = self._waits()
        while True:
            try:
                response = await self._http.request(call.method, call.path, content=call.content)
            except httpx.TransportError as error:
                if not waits:
                    raise self._unreachable(error) from None
            else:
                if response.status_code not in AGAIN or not waits:
                    return _read(call, response)
            await asyncio.sleep(waits.pop(0))


def _read(call: Call[T], response: httpx.Response) -> T:
    if not response.is_success:
        raise wire_format.refusal(response.status_code, response.text)
    return call.read(response.content if call.is_raw else response.json())
