"""Who decides for the agent: the learner itself, or a copy with the parameters of the last snapshot."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from sparingly.live.agent.errors import StoreError
from sparingly.live.agent.features import Vector
from sparingly.live.store import journal, snapshots
from sparingly.live.store.store import Store
from sparingly.live.training.learner import Learner
from sparingly.strategies.strategy import Decision, Strategy

log = logging.getLogger(__name__)

EVERY, SECONDS = 1000, 1.0
"""A snapshot is written after so many events, or so many seconds spent on them: what opening has to replay at most."""

POLL_SECONDS = 0.5
"""Seconds between two looks for a newer snapshot of another process."""

Make = Callable[[], Strategy]


class Decider(Protocol):
    """Makes the agent's decisions, and keeps up with its journal."""

    @property
    def learns(self) -> bool:
        """Whether the training happens in this process, or one that it has started."""

    def follow(self, connection: Connection, head: int) -> None:
        """Read the journal up to its head."""

    def decide(self, X: Sequence[Vector]) -> list[Decision]:
        """Decide on the observations that will be written next, in this order; `commit` or `rollback` comes after."""

    def scores(self, X: Sequence[Vector]) -> NDArray[np.float64]:
        """How likely each class is held to be, `[block, class]`; changes nothing."""

    def commit(self, head: int) -> None:
        """The decisions are on disk, and the journal ends at `head`."""

    def rollback(self) -> None:
        """The decisions could not be written: forget them, and read the journal again before the next."""

    def keep_snapshot_if_due(self, *, closing: bool = False) -> None:
        """Write a snapshot if enough has happened since the last one; called between two calls of the agent."""

    def close(self) -> None:
        """Stop."""


class InlineDecider:
    """The learner itself decides, and trains inside the calls: deterministic, bit for bit the same after a crash."""

    learns = True

    def __init__(self, store: Store, make: Make) -> None:
        self._store = store
        self._make = make
        self._learner: Learner | None = None
        self._kept_at: int | None = None
        self._seconds = 0.0

    def follow(self, connection: Connection, head: int) -> None:
        began = time.perf_counter()
        learner, self._learner = self._learner, None
        if learner is None or (
            learner.position != head and not learner.catch_up(lambda: nullcontext(connection), head)
        ):
            learner = Learner.restore(self._make, connection)
            self._kept_at = learner.position if self._kept_at is None else self._kept_at
            learner.catch_up(lambda: nullcontext(connection), head)
        self._learner = learner
        self._seconds += time.perf_counter() - began

    def decide(self, X: Sequence[Vector]) -> list[Decision]:
        assert self._learner is not None
        began = time.perf_counter()
        decisions = self._learner.decide(X)
        self._seconds += time.perf_counter() - began
        return decisions

    def scores(self, X: Sequence[Vector]) -> NDArray[np.float64]:
        assert self._learner is not None
        return self._learner.strategy.scores(np.stack(X))

    def commit(self, head: int) -> None:
        assert self._learner is not None
        self._learner.position = head

    def rollback(self) -> None:
        self._learner = None

    def keep_snapshot_if_due(self, *, closing: bool = False) -> None:
        learner = self._learner
        events = learner.position - (self._kept_at or 0) if learner is not None else 0
        if learner is None or events < 1 or not (events >= EVERY or self._seconds >= SECONDS or closing):
            return
        keep_snapshot(self._store, learner.position, learner.state())
        self._kept_at, self._seconds = learner.position, 0.0

    def close(self) -> None:
        self._learner = None


class FollowingDecider:
    """A copy that decides with the parameters of the last snapshot; another process or thread trains.

    Between two snapshots it counts the observations and learns of the answers what needs no training.

    Parameters
    ----------
    polls_snapshots
        Whether it polls the database for newer snapshots itself.
    """

    learns = False

    def __init__(self, make: Make, *, polls_snapshots: bool = True) -> None:
        self._make = make
        self._polls_snapshots = polls_snapshots
        self._strategy: Strategy | None = None
        self._position = 0
        self.adopted = -1
        self._polled_at = 0.0

    def adopt(self, position: int, strategy: Strategy) -> None:
        """Decide with these parameters from now on, unless they are older than those it has."""
        if self._strategy is None or position > self.adopted:
            self._strategy, self._position, self.adopted = strategy.freeze(), position, position

    def follow(self, connection: Connection, head: int) -> None:
        if self._strategy is None or (self._polls_snapshots and time.monotonic() - self._polled_at > POLL_SECONDS):
            self._polled_at = time.monotonic()
            self._adopt_newest(connection)
        assert self._strategy is not None
        if self._position != head:
            self._strategy.advance(journal.count_observed(connection, self._position, head))
            for event in journal.teaching(connection, self._position, head):
                if event.x is not None and event.action is not None and event.symbol is not None:
                    symbol = self._strategy.game.symbols(event.action)[event.symbol]
                    self._strategy.learn(journal.vector(event.x, self._strategy.shape), event.action, symbol)
            self._position = head

    def decide(self, X: Sequence[Vector]) -> list[Decision]:
        assert self._strategy is not None
        return Learner(self._strategy).decide(X)

    def scores(self, X: Sequence[Vector]) -> NDArray[np.float64]:
        assert self._strategy is not None
        return self._strategy.scores(np.stack(X))

    def commit(self, head: int) -> None:
        self._position = head

    def rollback(self) -> None:
        """Nothing to undo: the decisions have only advanced its clock, which the next snapshot sets right."""

    def keep_snapshot_if_due(self, *, closing: bool = False) -> None:
        """Nothing to do: the one who trains writes the snapshots."""

    def close(self) -> None:
        self._strategy = None

    def _adopt_newest(self, connection: Connection) -> None:
        newest = next(iter(snapshots.places(connection)), None)
        if self._strategy is None or (newest is not None and newest > self.adopted):
            learner = Learner.restore(self._make, connection)
            self.adopt(learner.position, learner.strategy)


class SharedDecider:
    """One of several processes on a database: it learns inline if it holds the learner's lock, and follows if not."""

    def __init__(self, store: Store, make: Make) -> None:
        self._store = store
        self._make = make
        self._current: InlineDecider | FollowingDecider = FollowingDecider(make)

    @property
    def learns(self) -> bool:
        return self._current.learns

    def follow(self, connection: Connection, head: int) -> None:
        if self._store.backend.holds_learner_lock() != self.learns:
            self._current.close()
            self._current = FollowingDecider(self._make) if self.learns else InlineDecider(self._store, self._make)
        self._current.follow(connection, head)

    def decide(self, X: Sequence[Vector]) -> list[Decision]:
        return self._current.decide(X)

    def scores(self, X: Sequence[Vector]) -> NDArray[np.float64]:
        return self._current.scores(X)

    def commit(self, head: int) -> None:
        self._current.commit(head)

    def rollback(self) -> None:
        self._current.rollback()

    def keep_snapshot_if_due(self, *, closing: bool = False) -> None:
        self._current.keep_snapshot_if_due(closing=closing)

    def close(self) -> None:
        self._current.close()


def keep_snapshot(store: Store, position: int, state: bytes) -> None:
    """Write a snapshot; a failure is only logged, since without it opening takes longer and nothing is lost."""
    try:
        with store.writing() as connection:
            head = store.head(connection)
            snapshots.write(connection, position, state, head)
            snapshots.thin(connection, head, store.settings.keep)
    except StoreError as error:
        log.warning("no snapshot was kept: %s", error)
