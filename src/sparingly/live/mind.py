"""Who decides for the agent while it serves: here, the learner itself, which trains inside the calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from sqlalchemy import Connection

from sparingly.live.facts import floor
from sparingly.live.features import Vector
from sparingly.live.learner import Learner
from sparingly.live.store import Store
from sparingly.strategies.strategy import Decision, Strategy


class Mind(Protocol):
    """What an agent asks of whoever decides."""

    def follow(self, connection: Connection, head: int) -> None:
        """Take notice of the journal up to its head."""

    def decide(self, X: Sequence[Vector]) -> list[Decision]:
        """Decide on observations that will be written next, in this order."""

    def decided(self, head: int) -> None:
        """The decisions are on disk, and the journal ends at `head`."""

    def failed(self) -> None:
        """They are not: the decisions never were."""

    def close(self) -> None:
        """Stop."""


class Inline:
    """The learner itself decides, and trains inside the calls: deterministic, bit for bit the same after a crash."""

    def __init__(self, store: Store, make: Callable[[], Strategy]) -> None:
        self._store = store
        self._make = make
        self._learner: Learner | None = None

    @property
    def learner(self) -> Learner | None:
        return self._learner

    def follow(self, connection: Connection, head: int) -> None:
        learner, self._learner = self._learner, None
        if learner is None or (learner.position != head and not learner.catch_up(connection, head)):
            learner = Learner.restore(self._make, connection, floor(connection))
            learner.catch_up(connection, head)
        self._learner = learner

    def decide(self, X: Sequence[Vector]) -> list[Decision]:
        assert self._learner is not None
        return self._learner.decide(X)

    def decided(self, head: int) -> None:
        assert self._learner is not None
        self._learner.position = head

    def failed(self) -> None:
        self._learner = None

    def close(self) -> None:
        self._learner = None
