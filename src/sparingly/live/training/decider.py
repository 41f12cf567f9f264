"""Who decides for the agent while it serves: the learner itself, or a copy that stands still between snapshots."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from sparingly.live.agent.errors import StoreError
from sparingly.live.agent.features import Vector
from sparingly.live.store import journal, snapshots
from sparingly.live.store.facts import floor
from sparingly.live.store.store import Store
from sparingly.live.training.learner import Learner
from sparingly.strategies.strategy import Decision, Strategy

log = logging.getLogger(__name__)

EVERY, SECONDS = 1000, 1.0
"""A snapshot is kept after so many events, or so much time spent on them: what opening has to replay at most."""

Make = Callable[[], Strategy]


class Mind(Protocol):
    """What an agent asks of whoever decides."""

    def follow(self, connection: Connection, head: int) -> None:
        """Take notice of the journal up to its head."""

    def decide(self, X: Sequence[Vector]) -> list[Decision]:
        """Decide on observations that will be written next, in this order."""

    def scores(self, X: Sequence[Vector]) -> NDArray[np.float64]:
        """How likely each class is held to be, `[block, class]`; changes nothing."""

    def decided(self, head: int) -> None:
        """The decisions are on disk, and the journal ends at `head`."""

    def failed(self) -> None:
        """They are not: the decisions never were."""

    def rest(self, *, closing: bool = False) -> None:
        """Between two calls: keep a snapshot if it is time."""

    def close(self) -> None:
        """Stop."""


class Inline:
    """The learner itself decides, and trains inside the calls: deterministic, bit for bit the same after a crash."""

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
            learner = Learner.restore(self._make, connection, floor(connection))
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

    def decided(self, head: int) -> None:
        assert self._learner is not None
        self._learner.position = head

    def failed(self) -> None:
        self._learner = None

    def rest(self, *, closing: bool = False) -> None:
        learner = self._learner
        events = learner.position - (self._kept_at or 0) if learner is not None else 0
        if learner is None or events < 1 or not (events >= EVERY or self._seconds >= SECONDS or closing):
            return
        keep_snapshot(self._store, learner.position, learner.state())
        self._kept_at, self._seconds = learner.position, 0.0

    def close(self) -> None:
        self._learner = None


class Follower:
    """A copy that decides with the parameters of the last snapshot; someone else trains.

    Between two snapshots it counts the observations and takes notice of the answers, as far as that needs no training.

    Parameters
    ----------
    looks
        Whether it looks for newer snapshots itself, now and then.
    """

    def __init__(self, make: Make, *, looks: bool = True) -> None:
        self._make = make
        self._looks = looks
        self._strategy: Strategy | None = None
        self._position = 0
        self.adopted = -1
        self._looked = 0.0

    def adopt(self, position: int, strategy: Strategy) -> None:
        """Decide with these parameters from now on, unless they are older than those it has."""
        if self._strategy is None or position > self.adopted:
            self._strategy, self._position, self.adopted = strategy.freeze(), position, position

    def follow(self, connection: Connection, head: int) -> None:
        if self._strategy is None or (self._looks and time.monotonic() - self._looked > 0.5):
            self._looked = time.monotonic()
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

    def decided(self, head: int) -> None:
        self._position = head

    def failed(self) -> None:
        """What it decided in vain only moved its clock a little."""

    def rest(self, *, closing: bool = False) -> None:
        """The learner keeps the snapshots."""

    def close(self) -> None:
        self._strategy = None

    def _adopt_newest(self, connection: Connection) -> None:
        newest = next(iter(snapshots.places(connection)), None)
        if self._strategy is None or (newest is not None and newest > self.adopted):
            learner = Learner.restore(self._make, connection, floor(connection))
            self.adopt(learner.position, learner.strategy)


class Shared:
    """One process of several on a database: it learns if no one else does, and follows otherwise."""

    def __init__(self, store: Store, make: Make) -> None:
        self._store = store
        self._make = make
        self._mind: Inline | Follower = Follower(make)

    @property
    def learns(self) -> bool:
        return isinstance(self._mind, Inline)

    def follow(self, connection: Connection, head: int) -> None:
        if self._store.backend.learns() != self.learns:
            self._mind.close()
            self._mind = Follower(self._make) if self.learns else Inline(self._store, self._make)
        self._mind.follow(connection, head)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mind, name)


def keep_snapshot(store: Store, position: int, state: bytes) -> None:
    """Keep a state; without it, opening only takes longer, so that a failure is no one's error."""
    try:
        with store.writing() as connection:
            head = store.head(connection)
            snapshots.write(connection, position, state, head)
            snapshots.thin(connection, head, store.settings.keep)
    except StoreError as error:
        log.warning("no snapshot was kept: %s", error)
