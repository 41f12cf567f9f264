"""Calls that arrive together are written together: one wait for the disk serves them all."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sparingly.live.agent.errors import StoreError

Request = TypeVar("Request")
Result = TypeVar("Result")


@dataclass(eq=False)
class _Call(Generic[Request, Result]):
    request: Request
    done: bool = False
    results: list[Result | BaseException] = field(default_factory=list)


class Gathering(Generic[Request, Result]):
    """Whichever thread holds the lock serves everyone who waits for it.

    Parameters
    ----------
    serve
        Takes the requests in their order of arrival; returns for each its result, or the exception to raise.
    lock
        Held while serving.

    >>> doubled = Gathering(lambda numbers: [2 * n for n in numbers], threading.RLock())
    >>> doubled(21)
    42
    """

    def __init__(self, serve: Callable[[Sequence[Request]], Sequence[Result | BaseException]], lock: threading.RLock):
        self._serve = serve
        self._lock = lock
        self._waiting: deque[_Call[Request, Result]] = deque()

    def __call__(self, request: Request) -> Result:
        call: _Call[Request, Result] = _Call(request)
        self._waiting.append(call)
        with self._lock:
            if not call.done:
                self._serve_all()
        result = call.results[0]
        if isinstance(result, BaseException):
            raise result
        return result

    def _serve_all(self) -> None:
        calls = [self._waiting.popleft() for _ in range(len(self._waiting))]
        try:
            results: Sequence[Result | BaseException] = self._serve([call.request for call in calls])
        except Exception as error:
            results = [error] * len(calls)
        except BaseException:
            self._finish(calls, [StoreError("the call was interrupted before it was acknowledged")] * len(calls))
            raise
        self._finish(calls, results)

    @staticmethod
    def _finish(calls: Sequence[_Call[Request, Result]], results: Sequence[Result | BaseException]) -> None:
        for call, result in zip(calls, results, strict=True):
            call.results.append(result)
            call.done = True
