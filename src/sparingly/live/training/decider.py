"""Who decides for the agent: the learner itself, or a copy with the parameters of the last snapshot."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from sparingly.learning import state_files
from sparingly.learning.determinism import one_thread, without_gradients
from sparingly.live.agent.errors import DamagedError, StoreError
from sparingly.live.agent.features import Vector
from sparingly.live.store import journal, snapshots
from sparingly.live.store.erasure import NO_FEATURES
from sparingly.live.store.journal import Event
from sparingly.live.store.store import Store
from sparingly.live.store.tables import features_dropped_upto
from sparingly.live.training import added_classes
from sparingly.strategies.strategy import Decision, Strategy

log = logging.getLogger(__name__)

EVERY, SECONDS = 1000, 1.0
"""A snapshot is written after so many events, or so many seconds spent on them: what opening has to replay at most."""

POLL_SECONDS = 0.5
"""Seconds between two looks for a newer snapshot of another process."""

BLOCK = 1024
"""The most observations that are assessed together, so that memory stays small."""

Make = Callable[[], Strategy]

HeardItem = tuple[Vector, Sequence[tuple[int, int | None]]]
"""An observation and answers to it that may be wrong: (number of the expert, symbol or None), in the order asked."""


class Learner:
    """A strategy, and the place in the journal up to which it has seen everything.

    Its state is a function of the journal alone: deciding live, reading the journal from its beginning, and reading on
    from a snapshot give the same state, bit for bit.

    Parameters
    ----------
    strategy
        The strategy as it is after the first `position` events.
    """

    def __init__(self, strategy: Strategy, position: int = 0) -> None:
        self.strategy = strategy
        self.position = position

    @classmethod
    def restore(cls, make: Callable[[], Strategy], connection: Connection) -> Learner:
        """The learner of the last good snapshot; `catch_up` brings it to the head."""
        for position, state in snapshots.valid(connection):
            return cls(added_classes.grow_to(make(), connection, position).load_state_dict(state), position)
        dropped = features_dropped_upto(connection)
        if dropped:
            raise DamagedError(
                f"no snapshot is whole, and features before event {dropped} are gone: the labelled data can be exported"
            )
        return cls(make(), 0)

    def catch_up(self, reading: Callable[[], AbstractContextManager[Connection]], upto: int) -> bool:
        """See the events up to `upto`; False, and nothing done, if one of them takes back something already seen.

        Each chunk is read in a transaction of its own and seen outside of it, since training may take long.
        """
        with reading() as connection:
            if journal.rewrites(connection, self.position, upto):
                return False
            void = journal.voided(connection, self.position, upto)
        while self.position < upto:
            with reading() as connection:
                chunk = journal.events(connection, self.position, upto)
            self._see([event for event in chunk if event.seq not in void])
            self.position = chunk[-1].seq
        return True

    def decide(self, X: Sequence[Vector], *, replayed: bool = False) -> list[Decision]:
        """Decide on observations in order, assessed together as far as no update comes between.

        Decisions that are only replayed come without probabilities.
        """
        decisions: list[Decision] = []
        with one_thread(), without_gradients():
            while len(decisions) < len(X):
                start = len(decisions)
                block = X[start : start + min(BLOCK, self.strategy.rounds_to_update())]
                assessment = self.strategy.assess(np.stack(block) if len(block) > 1 else block[0][None])
                held = None if replayed else self.strategy.probabilities(assessment)
                while len(decisions) < start + len(block):
                    row = len(decisions) - start
                    made = self.strategy.decide_block(assessment, row, past_questions=True)
                    if held is not None:
                        made = [_with_probabilities(one, p) for one, p in zip(made, held[row:], strict=False)]
                    decisions += made
        return decisions

    def learn(self, x: Vector, action: int, symbol: int) -> None:
        with one_thread():
            self.strategy.learn(x, action, self.strategy.game.symbols(action)[symbol])

    def hear(self, items: Sequence[HeardItem]) -> Iterator[Decision]:
        """For each item learn the last of the answers, if one came, and decide again with all of them, in this order.

        The items are assessed together; whoever stops asking for decisions leaves the later items as they were.
        """
        game = self.strategy.game
        with one_thread():
            assessment = self.strategy.assess(np.stack([x for x, _ in items]))
        for row, (x, heard) in enumerate(items):
            asked = [game.n_outcomes + number for number, _ in heard]
            if heard[-1][1] is not None:
                self.learn(x, asked[-1], heard[-1][1])
            told = [
                (action, None if said is None else game.symbols(action)[said])
                for action, (_, said) in zip(asked, heard, strict=True)
            ]
            with one_thread():
                decision = self.strategy.decide(assessment, row, told)
            yield decision

    def teach(self, event: Event) -> None:
        """Learn what an event tells, with one training."""
        X = np.stack([journal.vector(x, self.strategy.shape) for x, _ in event.told])
        with one_thread():
            self.strategy.teach(X, [label for _, label in event.told])

    def state(self) -> bytes:
        return state_files.dump(self.strategy.state_dict())

    def add_class(self, name: str, cost: float) -> None:
        with one_thread():
            self.strategy.add_class(name, cost)

    def set_costs(self, costs: Sequence[Sequence[float]]) -> None:
        with one_thread():
            self.strategy.set_costs(costs)

    def _see(self, events: Sequence[Event]) -> None:
        # An earlier version dropped features that a late answer still needed: such an answer says nothing any more.
        there = (
            event
            for event in events
            if event.x != NO_FEATURES and not (event.x is None and event.kind == journal.HEARD)
        )
        for kind, same in itertools.groupby(there, lambda event: event.kind):
            run = list(same)
            if kind == journal.OBSERVED:
                self.decide([self._features(event) for event in run], replayed=True)
            elif kind == journal.HEARD:
                for _ in self.hear([(self._features(event), event.heard) for event in run]):
                    pass
            else:
                for event in run:
                    self._see_one(event)

    def _see_one(self, event: Event) -> None:
        if event.teaches:
            assert event.action is not None
            assert event.symbol is not None
            self.learn(self._features(event), event.action, event.symbol)
        elif event.kind == journal.TAUGHT:
            self.teach(event)
        elif event.kind == journal.NOT_ASKED:
            self.strategy.forgo(self._features(event))
        elif event.new_class is not None:
            self.add_class(*event.new_class)
        elif event.new_costs is not None:
            self.set_costs(event.new_costs)

    def _features(self, event: Event) -> Vector:
        if event.x is None:
            raise DamagedError(f"the features of the observation at event {event.ticket} are gone")
        return journal.vector(event.x, self.strategy.shape)


def _with_probabilities(one: Decision, probabilities: NDArray[np.float64]) -> Decision:
    return Decision(one.action, one.prediction, one.asks, one.why, probabilities)


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
        """The same at any time, without waiting for the agent's turn; None while it is being made."""

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


def keep_snapshot(store: Store, position: int, state: bytes) -> None:
    """Write a snapshot; a failure is only logged, since without it opening takes longer and nothing is lost."""
    try:
        with store.writing() as connection:
            head = store.head(connection)
            snapshots.write(connection, position, state, head)
            snapshots.thin(connection, head, store.settings.keep)
    except StoreError as error:
        log.warning("no snapshot was kept: %s", error)
