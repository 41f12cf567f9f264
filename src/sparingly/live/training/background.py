"""Training elsewhere: another process or thread trains, and this one decides with the parameters it sent last."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from sparingly.learning import state_files
from sparingly.live.agent.batching import TurnLock
from sparingly.live.agent.errors import StoreError
from sparingly.live.agent.features import Vector
from sparingly.live.store import journal, snapshots
from sparingly.live.store.store import Store
from sparingly.live.training import added_classes
from sparingly.live.training.decider import SNAPSHOT_EVENTS, Decider, InlineDecider, Make, keep_snapshot
from sparingly.live.training.learner import HeardItem, Learner
from sparingly.live.training.strategy_maker import maker
from sparingly.live.training.trainer import Trainer
from sparingly.live.training.trainer_pool import Enrolment, shared_pool
from sparingly.live.training.trainer_process import EVICTED, LEARNS, SNAPSHOT, TrainerRecord
from sparingly.strategies.strategy import Decision, Strategy

log = logging.getLogger(__name__)

KEEP_SECONDS = 10.0
"""Seconds between two snapshots in a file; in a database that other processes follow, one second."""
POLL_SECONDS = 0.5
"""Seconds between two looks at a database that other processes write to, for a newer snapshot or after an error."""


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
                if event.kind == journal.TAUGHT:
                    Learner(self._strategy).teach(event)
                elif event.new_class is not None:
                    self._strategy.add_class(*event.new_class)
                elif event.new_costs is not None:
                    self._strategy.set_costs(event.new_costs)
                elif event.kind == journal.NOT_ASKED:
                    if event.x:
                        self._strategy.forgo(journal.vector(event.x, self._strategy.shape))
                elif event.x and event.action is not None and event.symbol is not None:
                    symbol = self._strategy.game.symbols(event.action)[event.symbol]
                    self._strategy.learn(journal.vector(event.x, self._strategy.shape), event.action, symbol)
            self._position = head

    def decide(self, X: Sequence[Vector]) -> list[Decision]:
        assert self._strategy is not None
        return Learner(self._strategy).decide(X)

    def hear(self, items: Sequence[HeardItem]) -> Iterator[Decision]:
        assert self._strategy is not None
        return Learner(self._strategy).hear(items)

    def scores(self, X: Sequence[Vector]) -> NDArray[np.float64]:
        return self.strategy.scores(np.stack(X))

    @property
    def current(self) -> Strategy | None:
        return self._strategy

    @property
    def strategy(self) -> Strategy:
        assert self._strategy is not None
        return self._strategy

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


class BackgroundDecider:
    """Decides with the last finished parameters while the next are trained in another process or thread.

    Parameters
    ----------
    lock
        Held by the agent during its calls, so that a snapshot is written between two of them.
    worker
        "process", or "thread" for a strategy that cannot be made again in another process.
    """

    def __init__(self, store: Store, make: Make, lock: TurnLock, worker: str) -> None:
        self._store = store
        self._make = make
        self._lock = lock
        self._follower = FollowingDecider(make, polls_snapshots=False)
        self._arrived: tuple[int, Strategy] | None = None
        self._latest: tuple[int, bytes] | None = None
        self._kept = (0, time.monotonic())
        self._reported_head = -1
        self._has_unwritten_decisions = False
        """Whether the one that decides has decided what was not written."""
        self._closed = threading.Event()
        self._woken = threading.Event()
        self._keeping: threading.Thread | None = None
        self.learns = False
        work = [self._train_in_thread] if worker == "thread" else []
        work += [self._poll] if store.backend.is_shared else []
        self._threads = [threading.Thread(target=one, name="sparingly-training", daemon=True) for one in work]
        for thread in self._threads:
            thread.start()
        self._enrolment = shared_pool().enrol(store.backend.url, self._take) if worker == "process" else None

    @property
    def enrolment(self) -> Enrolment | None:
        """The agent's place in the pool of trainers; None if it is trained in a thread."""
        return self._enrolment

    def follow(self, connection: Connection, head: int) -> None:
        arrived, self._arrived = self._arrived, None
        if arrived is not None:
            self._follower.adopt(*arrived)
        self._follower.follow(connection, head)
        self._wake(head)

    def decide(self, X: Sequence[Vector]) -> list[Decision]:
        return self._follower.decide(X)

    def hear(self, items: Sequence[HeardItem]) -> Iterator[Decision]:
        return self._follower.hear(items)

    def scores(self, X: Sequence[Vector]) -> NDArray[np.float64]:
        return self._follower.scores(X)

    @property
    def current(self) -> Strategy | None:
        return self._follower.current

    @property
    def strategy(self) -> Strategy:
        return self._follower.strategy

    def commit(self, head: int) -> None:
        self._follower.commit(head)
        self._wake(head)

    def rollback(self) -> None:
        self._follower.rollback()
        self._has_unwritten_decisions = True

    def keep_snapshot_if_due(self, *, closing: bool = False) -> None:
        """When closing, write the last state that arrived; all others are written as they arrive."""
        if closing and self._latest is not None and self._latest[0] > self._kept[0]:
            keep_snapshot(self._store, *self._latest)

    def close(self) -> None:
        self._closed.set()
        self._woken.set()
        if self._enrolment is not None:
            self._enrolment.close()
        for thread in [*self._threads, *filter(None, [self._keeping])]:
            thread.join(timeout=10)

    def _wake(self, head: int) -> None:
        """Tell whoever trains that the journal ends at `head` now."""
        if head > self._reported_head:
            self._reported_head = head
            if not self._woken.is_set():
                self._woken.set()
            if self._enrolment is not None:
                self._enrolment.head = head
                if self._enrolment.is_idle:
                    self._enrolment.wake()

    # the threads

    def _take(self, record: TrainerRecord) -> None:
        """What the trainer process has sent; a snapshot is written in another thread, since it waits for the agent."""
        if record.kind == LEARNS:
            self.learns = bool(record.position)
            return
        self._adopt(record.position, record.state, record.kind != SNAPSHOT)
        if self._keeping is None or not self._keeping.is_alive():
            at_once = record.kind == EVICTED
            self._keeping = threading.Thread(target=self._keep_if_due, args=(at_once,), name="snapshot", daemon=True)
            self._keeping.start()

    def _train_in_thread(self) -> None:
        trainer = Trainer(self._store, self._make, self._receive)
        while True:
            self._woken.clear()
            if self._closed.is_set():
                return
            try:
                if not trainer.step():
                    self._woken.wait(POLL_SECONDS if self._store.backend.is_shared else None)
            except StoreError as error:
                log.warning("training waits: %s", error)
                self._closed.wait(POLL_SECONDS)

    def _poll(self) -> None:
        """Poll the database for the snapshots of the process that learns; write them while it is this one."""
        while not self._closed.wait(POLL_SECONDS):
            if self.learns:
                self._keep_if_due()
                continue
            try:
                with self._store.reading() as connection:
                    newest = next(iter(snapshots.places(connection)), -1)
                    if newest > self._follower.adopted:
                        learner = Learner.restore(self._make, connection)
                        self._arrived = (learner.position, learner.strategy)
            except (StoreError, ValueError) as error:
                log.warning("the learner's snapshot could not be taken: %s", error)

    def _receive(self, position: int, state: bytes, is_new: bool) -> None:
        if not state:
            self.learns = bool(position)
            return
        self._adopt(position, state, is_new)
        self._keep_if_due()

    def _adopt(self, position: int, state: bytes, is_new: bool) -> None:
        """Decide with a state from now on; one with the parameters that are there already is only kept.

        It would know less: the questions that were asked since then are only in the one that decides. But what was
        decided and not written has to be forgotten.
        """
        self._latest = (position, state)
        if not (is_new or self._has_unwritten_decisions):
            return
        self._has_unwritten_decisions = False
        with self._store.reading() as connection:
            strategy = added_classes.grow_to(self._make(), connection, position)
        self._arrived = (position, strategy.load_state_dict(state_files.load(state)))

    def _keep_if_due(self, at_once: bool = False) -> None:
        """Write the last state that arrived as a snapshot, if it is newer than the last one and it is time."""
        position, state = self._latest or (0, b"")
        kept_at, kept_when = self._kept
        wait = 1.0 if self._store.backend.is_shared else KEEP_SECONDS
        is_due = at_once or position - kept_at >= SNAPSHOT_EVENTS or time.monotonic() - kept_when >= wait
        if position <= kept_at or not is_due:
            return
        while not self._closed.is_set():
            if self._lock.acquire(timeout=0.1):
                try:
                    keep_snapshot(self._store, position, state)
                finally:
                    self._lock.release()
                break
        self._kept = (position, time.monotonic())


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

    def hear(self, items: Sequence[HeardItem]) -> Iterator[Decision]:
        return self._current.hear(items)

    def scores(self, X: Sequence[Vector]) -> NDArray[np.float64]:
        return self._current.scores(X)

    @property
    def current(self) -> Strategy | None:
        return self._current.current

    @property
    def strategy(self) -> Strategy:
        return self._current.strategy

    def commit(self, head: int) -> None:
        self._current.commit(head)

    def rollback(self) -> None:
        self._current.rollback()

    def keep_snapshot_if_due(self, *, closing: bool = False) -> None:
        self._current.keep_snapshot_if_due(closing=closing)

    def close(self) -> None:
        self._current.close()


def choose_decider(store: Store, instance: Strategy | None, training: str, lock: TurnLock) -> Decider:
    """The decider for an agent: by how it trains, and by whether other processes may write to its database."""
    make = maker(store.settings, instance)
    if training == "background":
        return BackgroundDecider(store, make, lock, "thread" if store.settings.instance else "process")
    return SharedDecider(store, make) if store.backend.is_shared else InlineDecider(store, make)
