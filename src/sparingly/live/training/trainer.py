"""A trainer follows the journal of one agent with a learner of its own, and hands over each finished state."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

from sparingly.live.agent.errors import StoreError
from sparingly.live.store.store import Store
from sparingly.live.training.learner import Learner
from sparingly.strategies.strategy import Strategy

SEND_EVERY = 5000
"""Events after which a state is sent though nothing was learned: the most that opening replays."""
AT_ONCE = 64
"""The most events that are seen before a finished state is sent."""

Send = Callable[[int, bytes, bool], None]


class Trainer:
    """Follows the journal with a learner of its own.

    Parameters
    ----------
    send
        Called with the place, the state and True whenever there are new parameters, with False if only the place is
        new; with 1 or 0 and no state when this trainer becomes the one that learns, or no longer is.
    """

    def __init__(self, store: Store, make: Callable[[], Strategy], send: Send) -> None:
        self._store = store
        self._make = make
        self._send = send
        self._learner: Learner | None = None
        self._sent = (-1, -1)
        self._lock = threading.Lock()
        self._closed = False
        self.state_size = 0
        """About how many bytes the learner's state has."""

    @property
    def learns(self) -> bool:
        return self._learner is not None

    @property
    def position(self) -> int:
        """The last event that was seen; 0 while another process learns."""
        return self._learner.position if self._learner is not None else 0

    def step(self) -> bool:
        """See the next events, if any; whether there are more."""
        with self._opened() as store:
            holds_lock = store.backend.holds_learner_lock()
        if not holds_lock:
            self._become(None)
            return False
        with self._reading() as connection:
            head = self._store.head(connection)
            learner = self._learner or Learner.restore(self._make, connection)
        if self._learner is None:
            self.state_size = len(learner.state())
            self._become(learner)
        if learner.position != head:
            self._catch_up(learner, head)
        return self.position < head

    def forget(self) -> Learner | None:
        """Give the learner up until the next step, which restores it from a snapshot."""
        learner, self._learner, self._sent = self._learner, None, (-1, -1)
        return learner

    def close(self) -> None:
        """Close the database, from any thread: a step that is under way ends where it would read the next events."""
        with self._lock:
            self._closed = True
            self._store.close()

    @contextmanager
    def _opened(self) -> Iterator[Store]:
        with self._lock:
            if self._closed:
                raise StoreError(f"the trainer of {self._store.backend.name} is closed")
            yield self._store

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._opened() as store, store.reading() as connection:
            yield connection

    def _catch_up(self, learner: Learner, head: int) -> None:
        """See some events, or all at once from a snapshot on if something already seen was taken back."""
        if not learner.catch_up(self._reading, min(head, learner.position + AT_ONCE)):
            with self._reading() as connection:
                learner = Learner.restore(self._make, connection)
            learner.catch_up(self._reading, head)
            self._become(learner)
        position, generation = self._sent
        if learner.strategy.generation != generation or learner.position - position >= SEND_EVERY:
            self._sent = (learner.position, learner.strategy.generation)
            state = learner.state()
            self.state_size = len(state)
            self._send(learner.position, state, learner.strategy.generation != generation)

    def _become(self, learner: Learner | None) -> None:
        """Begin or stop learning; a record with an empty state tells `BackgroundDecider` which."""
        if self.learns != (learner is not None):
            self._send(int(learner is not None), b"", False)
        self._learner = learner
        self._sent = (-1, -1)
