"""Housekeeping: the periodic tasks of a service, on one thread of their own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)

SECONDS = 1.0


class Housekeeping:
    """Runs tasks by turns, each once in every so many seconds; one that fails is logged and has its turn again.

    Parameters
    ----------
    tasks
        Each task and its seconds.

    >>> done = threading.Event()
    >>> housekeeping = Housekeeping({done.set: 1.0})
    >>> done.wait(10)
    True
    >>> housekeeping.stop()
    """

    def __init__(self, tasks: dict[Callable[[], None], float]) -> None:
        self._tasks = tasks
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sparingly-housekeeping", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Finish the task at hand, and no other."""
        self._stopped.set()
        self._thread.join(timeout=30)

    def _run(self) -> None:
        turn = 0
        while not self._stopped.wait(SECONDS):
            for task, seconds in self._tasks.items():
                if turn % max(1, round(seconds / SECONDS)) == 0 and not self._stopped.is_set():
                    try:
                        task()
                    except Exception as error:
                        log.warning("housekeeping: %s", error)
            turn += 1
