"""The learner: a strategy, and the place in the journal up to which it has seen everything.

Its state is a function of the journal alone. Every way to reach a place gives the same state, bit for bit: deciding
live, reading the journal from its beginning, or reading on from a snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import numpy as np
import torch
from sqlalchemy import Connection

from sparingly.learning import state_files
from sparingly.live.agent.errors import DamagedError
from sparingly.live.agent.features import Vector
from sparingly.live.store import journal, snapshots
from sparingly.live.store.journal import Event
from sparingly.live.store.tables import features_dropped_upto
from sparingly.strategies.strategy import Decision, Strategy

BLOCK = 1024
"""The most observations that are assessed together, so that memory stays small."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Sums come out the same, to the last bit, however many threads the process may use elsewhere."""
    threads = torch.get_num_threads()
    if threads != 1:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if threads != 1:
            torch.set_num_threads(threads)


class Learner:
    """A strategy that follows the journal.

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
            return cls(make().load_state_dict(state), position)
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

    def decide(self, X: Sequence[Vector]) -> list[Decision]:
        """Decide on observations in order, assessed together as far as no update comes between."""
        decisions: list[Decision] = []
        with one_thread():
            while len(decisions) < len(X):
                start = len(decisions)
                block = X[start : start + min(BLOCK, self.strategy.rounds_to_update())]
                assessment = self.strategy.assess(np.stack(block))
                decisions += [self.strategy.decide(assessment, row) for row in range(len(block))]
        return decisions

    def learn(self, x: Vector, action: int, symbol: int) -> None:
        with one_thread():
            self.strategy.learn(x, action, self.strategy.game.symbols(action)[symbol])

    def state(self) -> bytes:
        return state_files.dump(self.strategy.state_dict())

    def _see(self, events: Sequence[Event]) -> None:
        waiting: list[Vector] = []
        for event in events:
            if event.kind == journal.OBSERVED:
                waiting.append(self._features(event))
            elif event.teaches:
                self.decide(waiting)
                waiting = []
                assert event.action is not None
                assert event.symbol is not None
                self.learn(self._features(event), event.action, event.symbol)
        self.decide(waiting)

    def _features(self, event: Event) -> Vector:
        if event.x is None:
            raise DamagedError(f"the features of the observation at event {event.ticket} are gone")
        return journal.vector(event.x, self.strategy.shape)
