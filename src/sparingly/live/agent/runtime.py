"""An open agent: its database, its decider, and the transactions in which it observes and learns."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from sparingly.encoders import EncodingError, TextEncoder
from sparingly.encoders.encoding_errors import MissingEncoderError
from sparingly.encoders.text_encoders import kept_encoder
from sparingly.learning.determinism import one_thread
from sparingly.live.agent import observations
from sparingly.live.agent.agent_settings import AgentSettings, checked_training
from sparingly.live.agent.batching import BatchingQueue, TurnLock
from sparingly.live.agent.errors import AgentError, ConflictError, StoreError
from sparingly.live.agent.features import Schema, Vector
from sparingly.live.agent.observations import Observation, ObserveCall
from sparingly.live.agent.pacing import Spending
from sparingly.live.agent.queries import AgentQueries
from sparingly.live.model.exported_model import write_model
from sparingly.live.quality import team_quality
from sparingly.live.quality.quality_queries import QualityQueries
from sparingly.live.store import audit_outbox, erasure
from sparingly.live.store.audit_outbox import AuditLine
from sparingly.live.store.store import Store
from sparingly.live.tickets import held_tickets, ticket_lifecycle
from sparingly.live.tickets.ticket_records import CONSULTING, Statistics, Ticket
from sparingly.live.training import added_classes
from sparingly.live.training.background import choose_decider
from sparingly.live.training.decider import Decider
from sparingly.live.training.strategy_maker import try_strategy
from sparingly.strategies.strategy import Strategy

log = logging.getLogger(__name__)

T = TypeVar("T")

RETENTION_SECONDS = 60.0
"""Seconds between two looks for payloads that are to be erased."""


class AgentRuntime:
    """The agent of an open database, from its opening to its closing; the calls that write take turns by a lock.

    Parameters
    ----------
    store
        The open database; closed if the agent cannot be continued.
    instance
        The strategy, if it cannot be made again from its name.
    asked_for
        The settings that the agent should have; None takes them as they are.
    training
        "inline" or "background"; None as in the settings.
    clock
        The time in seconds.
    busy_timeout
        The most seconds that a call waits for its turn; None for as long as it takes.
    encoder
        For texts, if it cannot be made again from its name.
    """

    def __init__(
        self,
        store: Store,
        instance: Strategy | None,
        asked_for: AgentSettings | None,
        training: str | None,
        clock: Callable[[], float],
        busy_timeout: float | None = None,
        encoder: TextEncoder | None = None,
    ) -> None:
        self.store = store
        self._given_encoder = encoder
        self.instance = instance
        self.clock = clock
        self.lock = TurnLock(busy_timeout)
        self._closed: str | None = None
        self._has_audit_lines = True
        self._retained_at = float("-inf")
        self.spending = Spending()
        self._may_hold = store.settings.hold
        """Whether there may be tickets that were held until there is a model."""
        self.wake_consultation: Callable[[], None] = _do_nothing
        """Called when a call of an expert may be due; does nothing while no expert is consulted."""
        self.queue: BatchingQueue[ObserveCall, list[Ticket]] = BatchingQueue(self._serve, self.lock)
        self._decider: Decider | None = None
        self.queries = AgentQueries(store, self.reading, clock)
        self.quality = QualityQueries(store, self.reading)
        try:
            differs = store.settings.differs(asked_for) if asked_for is not None else None
            if differs is not None:
                raise StoreError(f"{store.backend.name} is an agent whose {differs}: open it, or choose another place")
            if asked_for is not None:
                store.adjust(asked_for)
            self._check_encoder()
            self._training = checked_training(training or store.settings.training)
            store.backend.on_taken_over = lambda: self.close("another agent of this process has opened its file")
            if store.settings.shape is not None:
                with store.reading() as connection:
                    self.decider.follow(connection, store.head(connection))
                self.decider.keep_snapshot_if_due()
            self._apply_retention_if_due()
        except BaseException:
            store.close()
            raise

    @property
    def learns(self) -> bool:
        """Whether the training happens in this process, or one that it has started."""
        return self._decider is None or self._decider.learns

    def close(self, why: str) -> None:
        """Write a snapshot and close the database; later calls are refused and say why."""
        with self.lock:
            if self._closed is None:
                self._closed = why
                if self._decider is not None:
                    self._decider.keep_snapshot_if_due(closing=True)
                    self._decider.close()
                self.store.close()

    @property
    def is_closed(self) -> bool:
        return self._closed is not None

    def stats(self) -> Statistics:
        """How the agent is doing, and what asking on would save."""
        strategy = None if self._decider is None else self._decider.current
        forecast = None if strategy is None else strategy.forecast()
        return replace(self.queries.stats(), outlook=self.queries.outlook(forecast))

    def noticed(self) -> list[tuple[float, str | None]]:
        """The changes that the strategy has noticed: when, and the expert's name if one got worse."""
        strategy = None if self._decider is None else self._decider.current
        return [] if strategy is None else self.queries.times_of(strategy.noticed())

    def reliability(self) -> dict[str, tuple[float, float, float]]:
        """How often each expert who may be wrong is right, and an interval, by what the strategy has learned."""
        strategy = None if self._decider is None else self._decider.current
        return {} if strategy is None else strategy.reliability()

    def rollback_decider(self) -> None:
        """A transaction with decisions has failed."""
        if self._decider is not None and not self.is_closed:
            self._decider.rollback()

    @property
    def decider(self) -> Decider:
        """Who decides; made when it is first needed, since its shape may come with the first observation."""
        if self._decider is None:
            self._decider = choose_decider(self.store, self.instance, self._training, self.lock)
        return self._decider

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that reads."""
        self.check_open()
        with self.store.reading() as connection:
            added_classes.refresh(connection, self.store)
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that writes, one at a time."""
        with self.lock:
            self.check_open()
            with self.store.writing() as connection:
                self._refresh_classes(connection)
                yield connection

    def _refresh_classes(self, connection: Connection) -> None:
        """Before something is written: only another process can have added a class."""
        if self.store.backend.is_shared:
            added_classes.refresh(connection, self.store)

    def change(
        self,
        ticket_id: str,
        rule: Callable[[Connection, Any, float], ticket_lifecycle.Change | None],
        audit: AuditLine | None = None,
        then: Callable[[Connection, float], T] | None = None,
    ) -> T | None:
        """Write what a rule makes of a ticket's row, if anything, and learn from it; `then` is in the transaction."""
        with self.lock:
            self.check_open()
            now = self.clock()
            with self.store.writing() as connection:
                self._refresh_classes(connection)
                row = ticket_lifecycle.find(connection, ticket_id)
                if row.erased == erasure.EVERYTHING:
                    raise ConflictError(f"ticket {row.id!r} was erased: nothing can be done with it")
                change = rule(connection, row, now)
                head = self.store.head(connection) + 1
                if change is not None:
                    ticket_lifecycle.write(connection, row, change, head, now)
                    head = team_quality.follow(connection, self, row, change, head, now)
                audit_outbox.add(connection, audit, row.id, now)
                result = then(connection, now) if then is not None else None
            self.audit_written(audit)
            if change is not None:
                self.learn_upto(head)
            return result

    def change_settings(self, now: dict[str, Any], audit: AuditLine | None) -> None:
        """Change settings of the open agent."""
        with self.writing() as connection:
            changed = self.store.write_settings(connection, now)
            audit_outbox.add(connection, audit, None, self.clock())
        self.store.settings = changed
        self.audit_written(audit)

    def apply_retention(self, days: float | None = None) -> int:
        """Erase the payloads that are older than the agent's retention time, or than `days` if it has none."""
        own = self.store.settings.retention_days
        self._retained_at = time.monotonic()
        days = own if own is not None else days
        count = 0
        while days is not None:
            with self.writing() as connection:
                erased = erasure.erase_payloads(connection, self.clock() - 86400 * days)
            count += erased
            if not erased:
                break
        if count:
            self.store.backend.purge(self.store.engine)
        return count

    @property
    def has_audit_lines(self) -> bool:
        """Whether there may be audit lines that were not copied yet."""
        return self._has_audit_lines

    def audit_written(self, audit: AuditLine | None) -> None:
        """Called once the transaction of an audit line, if there was one, is on disk: it waits to be copied."""
        self._has_audit_lines |= audit is not None

    def copy_audit_lines(self, copy: Callable[[list[dict[str, Any]]], None]) -> None:
        """Hand the lines of the outbox to whoever keeps them, and forget those; the same line may be handed out again.

        `has_audit_lines` says whether there may be any.
        """
        self._has_audit_lines = False
        try:
            while True:
                with self.reading() as connection:
                    lines = audit_outbox.waiting(connection)
                if not lines:
                    return
                copy(lines)
                with self.writing() as connection:
                    audit_outbox.remove(connection, lines)
        except BaseException:
            self._has_audit_lines = True
            raise

    def learn_upto(self, head: int) -> None:
        """Let the decider read what was just written; if the database fails now, it will read it at the next call."""
        decider = self.decider
        try:
            with self.store.reading() as connection:
                decider.follow(connection, head)
        except StoreError as error:
            decider.rollback()
            log.warning("an answer was kept but not learned yet: %s", error)
        decider.keep_snapshot_if_due()
        self.announce_held()

    def _holds(self, decider: Decider) -> bool:
        """Whether nothing is announced now, because there is no model yet."""
        holds = self.store.settings.hold and not decider.strategy.has_learned
        self._may_hold |= holds
        return holds

    def announce_held(self, most: int = 10**6) -> None:
        """Announce what was held, if there is a model by now, in at most so many transactions."""
        if not self._may_hold or self._decider is None:
            return
        with self.lock:
            self.check_open()
            for _ in range(most):
                with self.store.writing() as connection:
                    head = self.store.head(connection)
                    self.decider.follow(connection, head)
                    strategy = self.decider.strategy
                    if not strategy.has_learned:
                        return
                    count = held_tickets.announce(connection, head, self.clock(), self.store.settings, strategy)
                self.decider.commit(head + count)
                if not count:
                    self._may_hold = False
                    return

    def _serve(self, calls: Sequence[ObserveCall]) -> list[list[Ticket] | BaseException]:
        """Decide on and write the observations of several calls in one transaction; an error fails its own call."""
        self.check_open()
        requests = [self._read(call) for call in calls]
        if not any(isinstance(request, list) and request for request in requests):
            return list(requests)  # type: ignore[arg-type]
        decider = self.decider
        try:
            with self.store.writing() as connection:
                self._refresh_classes(connection)
                head = self.store.head(connection)
                decider.follow(connection, head)
                there = observations.known(connection, requests)
                accepted, errors = observations.accept(requests, there)
                written = observations.decide(
                    connection,
                    head,
                    self.clock(),
                    self.store.settings,
                    accepted,
                    self.spending,
                    decider.decide,
                    self._holds(decider),
                )
        except BaseException:
            decider.rollback()
            raise
        decider.commit(head + len(written))
        if self.store.settings.machine_actions and any(row.status == CONSULTING for row in written):
            self.wake_consultation()
        decider.keep_snapshot_if_due()
        if self._may_hold:
            self.announce_held(most=1)
        self._apply_retention_if_due()
        return observations.tickets_of(requests, errors, accepted, written, there, self.store.settings.classes)

    def _apply_retention_if_due(self) -> None:
        """Called between two calls of the agent; a failure is only logged, since the next time makes up for it."""
        if self.store.settings.retention_days is None or time.monotonic() - self._retained_at < RETENTION_SECONDS:
            return
        try:
            self.apply_retention()
        except StoreError as error:
            log.warning("payloads were not erased yet: %s", error)

    def _read(self, call: ObserveCall) -> list[Observation] | Exception:
        """One call's observations; whatever is wrong with its content is the error of this call alone."""
        try:
            call.check_lengths()
            if not len(call):
                return []
            self.complete_schema(call.X)
            return call.read(self.store.settings.schema, self.text_encoder())
        except Exception as error:
            return error

    def read_block(self, call: ObserveCall) -> list[Observation]:
        """The observations of one call, checked; the first ones tell what an observation is."""
        read = self._read(call)
        if isinstance(read, Exception):
            raise read
        return read

    def held_likely(self, X: Sequence[Vector]) -> list[NDArray[np.float64] | None]:
        """What is held likely of observations, `[class]` each, as tickets have it; None while there is no telling."""
        with self.lock, self.reading() as connection:
            self.decider.follow(connection, self.store.head(connection))
            strategy = self.decider.strategy
            with one_thread():
                held = strategy.probabilities(strategy.assess(np.stack(X)))
        return [None] * len(X) if held is None else list(held)

    def scores(self, block: Sequence[Any]) -> NDArray[np.float64]:
        """How likely each class is held to be for some observations, `[block, class]`."""
        schema = self.store.settings.schema
        read = schema.read_all(block, self.text_encoder()) if schema.is_raw else [schema.read(x) for x in block]
        with self.lock, self.reading() as connection:
            self.decider.follow(connection, self.store.head(connection))
            return self.decider.scores(read)

    def export_model(self, path: str | os.PathLike[str], format: str | None) -> None:
        """Write what has been learned by now to a file that only predicts."""
        if self.store.settings.shape is None:
            raise AgentError("there is nothing to export yet: the agent has neither observed nor been taught anything")
        with self.lock, self.reading() as connection:
            self.decider.follow(connection, self.store.head(connection))
            write_model(path, self.store.settings, self.decider.strategy, format)

    def complete_schema(self, block: Sequence[Any]) -> None:
        """Learn what an observation is from the first ones, once; later, the words that are new."""
        with self.lock:
            self.check_open()
            settings = self.store.settings
            schema = settings.schema.complete(block, self._given_encoder or settings.encoder)
            if schema is settings.schema or schema == settings.schema:
                return
            schema.read_all(block if schema.is_raw else block[:1], self.text_encoder(schema))
            if settings.shape is None:
                try_strategy(settings.with_schema(schema), self.instance)
            with self.store.writing() as connection:
                self.store.complete_schema(connection, block, self._given_encoder)

    def text_encoder(self, schema: Schema | None = None) -> TextEncoder | None:
        """The text encoder of the agent's observations; None if they have no texts."""
        table = (schema or self.store.settings.schema).table
        if table is None or table.encoder is None:
            return None
        try:
            return kept_encoder(table.encoder, self._given_encoder)
        except EncodingError as error:
            raise AgentError(str(error)) from error

    def _check_encoder(self) -> None:
        """Refuse to go on with another text encoder; one that is not installed is missed when a text comes."""
        table = self.store.settings.schema.table
        if table is not None and table.encoder is not None:
            try:
                kept_encoder(table.encoder, self._given_encoder)
            except MissingEncoderError:
                return
            except EncodingError as error:
                raise StoreError(f"{self.store.backend.name}: {error}") from error

    def check_open(self) -> None:
        """Refuse what is asked of an agent that is closed."""
        if self._closed is not None:
            raise StoreError(f"the agent on {self.store.backend.name} is closed: {self._closed}")


def _do_nothing() -> None:
    """Stands in for a consultation that there is not."""
