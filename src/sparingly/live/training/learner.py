"""The learner: a strategy, and how far in the agent's journal it has come."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from sparingly.learning import state_files
from sparingly.learning.determinism import one_thread, without_gradients
from sparingly.live.agent.errors import DamagedError
from sparingly.live.agent.features import Vector
from sparingly.live.store import journal, snapshots
from sparingly.live.store.erasure import NO_FEATURES
from sparingly.live.store.journal import Event
from sparingly.live.store.tables import features_dropped_upto
from sparingly.live.training import added_classes
from sparingly.strategies.strategy import Decision, Strategy

BLOCK = 1024
"""The most observations that are assessed together, so that memory stays small."""

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
            answers = [
                (action, None if said is None else game.symbols(action)[said])
                for action, (_, said) in zip(asked, heard, strict=True)
            ]
            with one_thread():
                decision = self.strategy.decide(assessment, row, answers)
            yield decision

    def teach(self, event: Event) -> None:
        """Learn what an event tells, with one training."""
        X = np.stack([journal.vector(x, self.strategy.shape) for x, _ in event.taught])
        with one_thread():
            self.strategy.teach(X, [label for _, label in event.taught])

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
