"""The lock by which the calls of an agent take turns, with a bound on how long one waits for it."""

from __future__ import annotations

import threading

from sparingly.live.agent.errors import BusyError


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
