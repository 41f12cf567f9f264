"""The agent: observations in, tickets out, answers whenever people find the time; nothing acknowledged is ever lost."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from sparingly.games import Game
from sparingly.live.agent import answers, leases, observations
from sparingly.live.agent.agent_settings import Settings
from sparingly.live.agent.batching import BatchingQueue
from sparingly.live.agent.errors import AgentError, StoreError
from sparingly.live.agent.features import rows
from sparingly.live.agent.making import checked_training, made_settings, try_strategy
from sparingly.live.agent.observations import Observation, ObserveCall
from sparingly.live.agent.question_limits import Limits
from sparingly.live.agent.reading import Reading
from sparingly.live.agent.ticket_records import SKIPPED, UNKNOWN, WITHDRAWN, Label, Question, Ticket
from sparingly.live.statistics.ticket_counts import TicketCounts
from sparingly.live.store.store import Store, backend_of
from sparingly.live.training.background import choose_decider
from sparingly.live.training.decider import Decider
from sparingly.live.training.learner import Learner
from sparingly.strategies.strategy import Strategy

log = logging.getLogger(__name__)


class Agent(Reading):
    """Announces a class for each observation or asks a person, who answers when there is time.

    Everything that was returned is on disk before it is returned. An agent made where one with the same settings
    already is continues it, with the limits, `keep` and `training` that are given now.

    Parameters
    ----------
    classes
        The names of two or more classes.
    n_features
        The number of features, or the shape of an image; learned from the first observation when left out.
    costs
        What a mistake costs: a matrix [announced, true], a DataFrame with axes so named, or a list of records
        `{"announced": ..., "true": ..., "cost": ...}`; 1 an error when left out.
    query_cost
        The price of a question.
    path
        An SQLite file, or the URL of a PostgreSQL database.
    seed
        The strategy's seed.
    training
        "inline" trains inside the calls, deterministically; "background" trains aside and never makes a call wait.
    strategy
        A strategy's name, or an instance; ours where the game allows it when left out.
    options
        What a strategy named by its name is made with, plain values.
    game
        Any label-efficient game in place of `costs` and `query_cost`: several experts, coarse questions.
    max_open, max_per_hour, max_per_day
        Limits on questions; where they forbid one, the prediction is announced.
    audit_rate
        The chance that an observation that would not be asked is asked all the same, to know how often the agent is
        right; the default strategy asks such questions by itself.
    keep
        For how many events back an answer can be unlearned exactly.
    clock
        The time in seconds; another one for tests.

    Examples
    --------
    >>> import tempfile, sparingly as sp
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = f"{folder.name}/fruit.db"
    >>> agent = sp.Agent(classes=["apple", "pear"], n_features=2, path=path, strategy="neural_cbp")
    >>> tickets = [agent.observe([0.1 * i, 1.0]) for i in range(3)]
    >>> [ticket.asks for ticket in tickets]
    [False, False, True]
    >>> agent.answer(tickets[2].id, "pear")
    >>> agent.close()
    >>> [(entry.status, entry.label) for entry in sp.Agent.open(path).history()]
    [('announced', None), ('announced', None), ('answered', 'pear')]
    """

    def __init__(
        self,
        classes: Sequence[Label],
        n_features: int | tuple[int, ...] | None = None,
        *,
        costs: Any = None,
        query_cost: float = 1.0,
        path: str | os.PathLike[str] = "agent.db",
        seed: int = 0,
        training: str = "inline",
        strategy: str | Strategy | None = None,
        options: Mapping[str, Any] | None = None,
        game: Game | None = None,
        feature_names: Sequence[str] | None = None,
        max_open: int | None = None,
        max_per_hour: int | None = None,
        max_per_day: int | None = None,
        audit_rate: float = 0.0,
        keep: int = 20_000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        instance = strategy if isinstance(strategy, Strategy) else None
        settings = made_settings(
            classes,
            n_features,
            costs=costs,
            query_cost=query_cost,
            seed=seed,
            training=training,
            strategy=strategy,
            options=options,
            game=game,
            feature_names=feature_names,
            limits=Limits(max_open, max_per_hour, max_per_day),
            audit_rate=audit_rate,
            keep=keep,
        )
        if not backend_of(path).exists():
            Store.create(path, settings, state=None if instance is None else Learner(instance).state())
        self._start(Store.open(path), instance, settings, None, clock)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        strategy: Strategy | None = None,
        training: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Continue an agent, after a crash or a night: its decisions are the ones it would have made anyway.

        `strategy` is needed if the agent was made with an instance that cannot be made again from its name.
        """
        agent = cls.__new__(cls)
        agent._start(Store.open(path), strategy, None, training, clock)
        return agent

    def _start(
        self,
        store: Store,
        instance: Strategy | None,
        asked_for: Settings | None,
        training: str | None,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._instance = instance
        self._clock = clock
        self._lock = threading.RLock()
        self._closed: str | None = None
        self._queue: BatchingQueue[ObserveCall, list[Ticket]] = BatchingQueue(self._serve, self._lock)
        self._decider: Decider | None = None
        self._ticket_counts = TicketCounts()
        try:
            differs = store.settings.differs(asked_for) if asked_for is not None else None
            if differs is not None:
                raise StoreError(f"{store.backend.name} is an agent whose {differs}: open it, or choose another place")
            if asked_for is not None:
                store.adjust(asked_for)
            self._training = checked_training(training or store.settings.training)
            store.backend.on_taken_over = lambda: self._close("another agent of this process has opened its file")
            if store.settings.shape is not None:
                with store.reading() as connection:
                    self._get_decider().follow(connection, store.head(connection))
                self._get_decider().keep_snapshot_if_due()
        except BaseException:
            store.close()
            raise

    # observations

    def observe(self, x: Any, *, id: str | int | None = None, payload: Any = None) -> Ticket:
        """Decide on one observation; the ticket is on disk when it is returned.

        With an `id` of the caller's own a repeated call returns the same ticket and does nothing.
        """
        call = ObserveCall([x], None if id is None else [id], None if payload is None else [payload])
        return self._queue.call(call)[0]

    def observe_many(
        self, X: Any, *, ids: Sequence[str | int | None] | None = None, payloads: Sequence[Any] | None = None
    ) -> list[Ticket]:
        """Decide on a block of observations in order, all of them on disk in one go or none."""
        return self._queue.call(ObserveCall(rows(X), ids, payloads))

    def submit_many(
        self,
        X: Any,
        *,
        executor: Executor,
        ids: Sequence[str | int | None] | None = None,
        payloads: Sequence[Any] | None = None,
    ) -> Future[list[Ticket]]:
        """Like `observe_many` without waiting: a thread of the executor serves this call and others in one batch."""
        return self._queue.submit(ObserveCall(rows(X), ids, payloads), executor)

    def scores(self, X: Any) -> NDArray[np.float64]:
        """How likely each class is held to be by now, `[block, class]`: the larger, the likelier; nothing is kept."""
        block = [self._store.settings.schema.read(x) for x in rows(X)]
        with self._lock, self._reading() as connection:
            decider = self._get_decider()
            decider.follow(connection, self._store.head(connection))
            return decider.scores(block)

    def _settle(self, first: Any) -> None:
        """Learn shape and names from the first observation, once."""
        with self._lock:
            self._check_open()
            settings = self._store.settings
            schema = settings.schema.settle(first)
            if schema == settings.schema:
                return
            schema.read(first)
            try_strategy(settings.with_schema(schema), self._instance)
            with self._store.writing() as connection:
                self._store.settle(connection, first)

    def _read(self, call: ObserveCall) -> list[Observation] | Exception:
        """One call's observations; whatever is wrong with its content is the error of this call alone."""
        try:
            call.check_lengths()
            if not len(call):
                return []
            self._settle(call.X[0])
            return call.read(self._store.settings.schema)
        except Exception as error:
            return error

    def _serve(self, calls: Sequence[ObserveCall]) -> list[list[Ticket] | BaseException]:
        """Decide on and write the observations of several calls in one transaction; an error fails its own call."""
        self._check_open()
        requests = [self._read(call) for call in calls]
        if not any(isinstance(request, list) and request for request in requests):
            return list(requests)  # type: ignore[arg-type]
        decider = self._get_decider()
        try:
            with self._store.writing() as connection:
                head = self._store.head(connection)
                decider.follow(connection, head)
                there = observations.known(connection, requests)
                accepted, errors = observations.accept(requests, there)
                written = observations.decide(
                    connection, head, self._clock(), self._store.settings, accepted, decider.decide
                )
        except BaseException:
            decider.rollback()
            raise
        decider.commit(head + len(written))
        decider.keep_snapshot_if_due()
        return observations.tickets_of(requests, errors, accepted, written, there, self._store.settings.classes)

    # answers

    def answer(self, ticket_id: str, label: Any, *, expert: str | None = None) -> None:
        """Tell the true class: late, out of order, again; a different class than before is a correction.

        A named expert whose lease has run out is refused.
        """
        settings = self._store.settings
        game = settings.game

        def change(connection: Connection, row: Any, now: float) -> answers.Change | None:
            said = answers.meaning(game, settings.classes, row.action, label)
            return answers.answered(connection, row, said, expert, now)

        self._change(ticket_id, change)

    def skip(self, ticket_id: str, *, expert: str | None = None) -> None:
        """Set a question aside; a named expert's skip leaves it open for the others."""
        self._change(ticket_id, lambda c, row, now: answers.set_aside(c, row, SKIPPED, expert, now))

    def dont_know(self, ticket_id: str, *, expert: str | None = None) -> None:
        """Close a question to which the person has no answer."""
        self._change(ticket_id, lambda c, row, now: answers.set_aside(c, row, UNKNOWN, expert, now))

    def withdraw(self, ticket_id: str) -> None:
        """Take an observation back for good: it is not asked any more, and takes no answer."""
        self._change(ticket_id, lambda c, row, now: answers.set_aside(c, row, WITHDRAWN, None, now))

    def reopen(self, ticket_id: str, *, expert: str | None = None, lease_seconds: float | None = None) -> None:
        """Undo: take an answer back and unlearn it, or put a question that was set aside on the table again.

        With `lease_seconds` it is lent to the named expert in the same breath, so that no one else gets it first.
        """
        self._change(ticket_id, lambda c, row, now: answers.reopened(c, row, expert, now, lease_seconds))

    def _change(self, ticket_id: str, rule: Callable[[Connection, Any, float], answers.Change | None]) -> None:
        with self._lock:
            self._check_open()
            now = self._clock()
            with self._store.writing() as connection:
                row = answers.find(connection, ticket_id)
                change = rule(connection, row, now)
                if change is None:
                    return
                head = self._store.head(connection)
                answers.write(connection, row, change, head + 1, now)
            self._learn(head + 1)

    def _learn(self, head: int) -> None:
        """Let the decider read what was just written; if the database fails now, it will read it at the next call."""
        decider = self._get_decider()
        try:
            with self._store.reading() as connection:
                decider.follow(connection, head)
        except StoreError as error:
            decider.rollback()
            log.warning("an answer was kept but not learned yet: %s", error)
        decider.keep_snapshot_if_due()

    # questions

    def questions(
        self, expert: str | None = None, *, limit: int | None = 1, lease_seconds: float = 600.0
    ) -> list[Question]:
        """The next open questions with what a person needs to see.

        A named expert has them lent for a time, in which no one else gets them; without a name they are only shown.
        """
        if lease_seconds <= 0:
            raise AgentError(f"lease_seconds is {lease_seconds}: it must be positive")
        now = self._clock()
        settings = self._store.settings
        if expert is None:
            with self._reading() as connection:
                found = leases.offered(connection, None, limit, now)
                return leases.questions_of(connection, found, settings, None, None)
        with self._lock:
            self._check_open()
            with self._store.writing() as connection:
                found = leases.offered(connection, expert, limit, now)
                leases.lend(connection, found, expert, now, now + lease_seconds)
                return leases.questions_of(connection, found, settings, expert, now + lease_seconds)

    def lend(self, ticket_id: str, expert: str, *, lease_seconds: float = 600.0) -> Question:
        """One particular question, lent to an expert like any other."""
        now = self._clock()
        with self._lock:
            self._check_open()
            with self._store.writing() as connection:
                row = answers.find(connection, ticket_id)
                leases.check_free(row, expert, now)
                leases.lend(connection, [row], expert, now, now + lease_seconds)
                return leases.questions_of(connection, [row], self.settings, expert, now + lease_seconds)[0]

    def release(self, ticket_id: str, *, expert: str) -> None:
        """Give a question that was lent to an expert back, so that the others may have it at once."""
        with self._lock:
            self._check_open()
            with self._store.writing() as connection:
                leases.give_back(connection, answers.find(connection, ticket_id), expert)

    # life

    @property
    def learns(self) -> bool:
        """Whether this process is the one that learns; on PostgreSQL there may be others."""
        return self._decider is None or self._decider.learns

    def close(self) -> None:
        """Keep a snapshot and give the database back."""
        self._close("it was closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _close(self, why: str) -> None:
        with self._lock:
            if self._closed is None:
                self._closed = why
                if self._decider is not None:
                    self._decider.keep_snapshot_if_due(closing=True)
                    self._decider.close()
                self._store.close()

    def _get_decider(self) -> Decider:
        if self._decider is None:
            self._decider = choose_decider(self._store, self._instance, self._training, self._lock)
        return self._decider
