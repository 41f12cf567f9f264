"""The batching queue: calls that wait at the same time are served in one transaction, with one wait for the disk."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence, Sized
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sparingly.live.agent.errors import BusyError, StoreError

Request = TypeVar("Request", bound=Sized)
Result = TypeVar("Result")

LARGEST_BATCH = 500
"""Items, such as observations, after which no further request joins a batch."""


class TurnLock:
    """A reentrant lock; entering it fails once `busy_timeout` seconds have passed, None for as long as it takes.

    >>> lock = TurnLock(0.01)
    >>> holder = threading.Thread(target=lock.acquire)
    >>> holder.start(); holder.join()
    >>> with lock:
    ...     pass
    Traceback (most recent call last):
    ...
    sparingly.live.agent.errors.BusyError: the agent is busy: no turn within 0.01 s, and nothing of this call was kept
    """

    def __init__(self, busy_timeout: float | None = None) -> None:
        self._lock = threading.RLock()
        self._busy_timeout = busy_timeout

    def acquire(self, timeout: float = -1) -> bool:
        """Whether the lock could be had in time."""
        return self._lock.acquire(timeout=timeout)

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=-1 if self._busy_timeout is None else self._busy_timeout):
            raise BusyError(
                f"the agent is busy: no turn within {self._busy_timeout:g} s, and nothing of this call was kept"
            )

    def __exit__(self, *exception: object) -> None:
        self._lock.release()


@dataclass(eq=False, slots=True)
class _Call(Generic[Request, Result]):
    request: Request
    future: Future[Result] = field(default_factory=Future)


class BatchingQueue(Generic[Request, Result]):
    """Whichever thread holds the lock serves a batch of those that wait for it.

    Every request's future is resolved, whatever happens: with its result, its own error, or the reason why the batch
    could not be served. If serving a batch fails for an unforeseen reason, each of its requests is served alone.

    Parameters
    ----------
    serve
        Takes requests in their order of arrival; returns for each its result, or the exception that it fails with.
        May be called again with some of the requests if it raises.
    lock
        Held while serving.

    >>> queue = BatchingQueue(lambda calls: [sum(numbers) for numbers in calls], TurnLock())
    >>> queue.call([20, 22])
    42
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(1) as executor:
    ...     queue.submit([1, 2], executor).result()
    3
    """

    def __init__(self, serve: Callable[[Sequence[Request]], Sequence[Result | BaseException]], lock: TurnLock) -> None:
        self._serve = serve
        self._lock = lock
        self._waiting: deque[_Call[Request, Result]] = deque()
        self._mutex = threading.Lock()
        self._worker_is_due = False

    def call(self, request: Request) -> Result:
        """Wait for the lock, serve whoever waits by then unless another thread has, and return the result."""
        if not self._waiting and self._lock.acquire(timeout=0):
            # Nobody waits: there is no batch to join, and no future to wait for.
            try:
                return self._serve_alone(request)
            finally:
                self._lock.release()
        call: _Call[Request, Result] = _Call(request)
        self._waiting.append(call)
        try:
            with self._lock:
                while not call.future.done():
                    self._serve_batch()
        except BusyError:
            # Whoever has the lock may be serving this very call: then its result counts.
            if call.future.cancel():
                raise
        except BaseException:
            call.future.cancel()
            raise
        return call.future.result()

    def _serve_alone(self, request: Request) -> Result:
        result = self._serve([request])[0]
        if isinstance(result, BaseException):
            raise result
        return result

    def submit(self, request: Request, executor: Executor) -> Future[Result]:
        """Wait for nothing: a thread of the executor serves this request, with the others that wait by then."""
        call: _Call[Request, Result] = _Call(request)
        with self._mutex:
            self._waiting.append(call)
            is_due, self._worker_is_due = self._worker_is_due, True
        if not is_due:
            self._hand_over(executor)
        return call.future

    def _hand_over(self, executor: Executor) -> None:
        try:
            executor.submit(self._work, executor)
        except RuntimeError:
            # The executor is shutting down and takes no more work: whoever waits is served here.
            self._work(executor)

    def _work(self, executor: Executor) -> None:
        """Serve one batch; the next is another task, so that other calls get their turn at the lock in between."""
        try:
            with self._lock:
                self._serve_batch()
        except BusyError as error:
            for call in self._next_batch():
                call.future.set_exception(error)
        finally:
            with self._mutex:
                self._worker_is_due = bool(self._waiting)
            if self._worker_is_due:
                self._hand_over(executor)

    def _serve_batch(self) -> None:
        calls = self._next_batch()
        try:
            self._resolve(calls)
        except BaseException:
            for call in calls:
                if not call.future.done():
                    call.future.set_exception(StoreError("the call was interrupted before it was acknowledged"))
            raise

    def _next_batch(self) -> list[_Call[Request, Result]]:
        """The next requests that nobody has cancelled, at least one if there is one."""
        batch: list[_Call[Request, Result]] = []
        items = 0
        with self._mutex:
            while self._waiting and (not batch or items + len(self._waiting[0].request) <= LARGEST_BATCH):
                call = self._waiting.popleft()
                if call.future.set_running_or_notify_cancel():
                    batch.append(call)
                    items += len(call.request)
        return batch

    def _resolve(self, calls: Sequence[_Call[Request, Result]]) -> None:
        if not calls:
            return
        try:
            results = self._serve([call.request for call in calls])
        except Exception as error:
            if len(calls) > 1 and not isinstance(error, StoreError):
                for call in calls:
                    self._resolve([call])
                return
            results = [error] * len(calls)
        for call, result in zip(calls, results, strict=True):
            if isinstance(result, BaseException):
                call.future.set_exception(result)
            else:
                call.future.set_result(result)
