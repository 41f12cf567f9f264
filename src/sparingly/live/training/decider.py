"""Who decides for the agent: what every decider can do, and the one that is itself the learner."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from sparingly.live.agent.errors import StoreError
from sparingly.live.agent.features import Vector
from sparingly.live.store import snapshots
from sparingly.live.store.store import Store
from sparingly.live.training.learner import HeardItem, Learner
from sparingly.strategies.strategy import Decision, Strategy

log = logging.getLogger(__name__)

SNAPSHOT_EVENTS, SNAPSHOT_SECONDS = 1000, 1.0
"""A snapshot is written after so many events, or so many seconds spent on them: what opening has to replay at most."""

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

    def hear(self, items: Sequence[HeardItem]) -> Iterator[Decision]:
        """Decide again once answers came, or did not, one after the other; `commit` or `rollback` comes after."""

    def scores(self, X: Sequence[Vector]) -> NDArray[np.float64]:
        """How likely each class is held to be, `[block, class]`; changes nothing."""

    @property
    def current(self) -> Strategy | None:
        """The strategy that decides, without waiting for the agent's turn; None while it is being made."""

    @property
    def strategy(self) -> Strategy:
        """The strategy that decides, once it has followed the journal; only to be read."""

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

    def hear(self, items: Sequence[HeardItem]) -> Iterator[Decision]:
        assert self._learner is not None
        return self._learner.hear(items)

    def scores(self, X: Sequence[Vector]) -> NDArray[np.float64]:
        return self.strategy.scores(np.stack(X))

    @property
    def current(self) -> Strategy | None:
        learner = self._learner
        return None if learner is None else learner.strategy

    @property
    def strategy(self) -> Strategy:
        assert self._learner is not None
        return self._learner.strategy

    def commit(self, head: int) -> None:
        assert self._learner is not None
        self._learner.position = head

    def rollback(self) -> None:
        self._learner = None

    def keep_snapshot_if_due(self, *, closing: bool = False) -> None:
        learner = self._learner
        events = learner.position - (self._kept_at or 0) if learner is not None else 0
        if (
            learner is None
            or events < 1
            or not (events >= SNAPSHOT_EVENTS or self._seconds >= SNAPSHOT_SECONDS or closing)
        ):
            return
        keep_snapshot(self._store, learner.position, learner.state())
        self._kept_at, self._seconds = learner.position, 0.0

    def close(self) -> None:
        self._learner = None


def keep_snapshot(store: Store, position: int, state: bytes) -> None:
    """Write a snapshot; a failure is only logged, since without it opening takes longer and nothing is lost."""
    try:
        with store.writing() as connection:
            head = store.head(connection)
            snapshots.write(connection, position, state, head)
            snapshots.thin(connection, head, store.settings.keep)
    except StoreError as error:
        log.warning("no snapshot was kept: %s", error)
