"""The agent: observations in, tickets out, answers at once or late; nothing acknowledged is ever lost."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sparingly.encoders.learned_schema import EncoderChoice
from sparingly.encoders.pictures import is_picture
from sparingly.experts import Expert, MachineExpert, Person
from sparingly.games import Game
from sparingly.live.agent.agent_settings import (
    AgentSettings,
    QuestionLimits,
    checked_retention,
    described_classes,
    new_settings,
)
from sparingly.live.agent.changes import AgentChanges
from sparingly.live.agent.errors import AgentError
from sparingly.live.agent.features import given_encoder, rows
from sparingly.live.agent.observations import ObserveCall
from sparingly.live.agent.queries import AgentQueries
from sparingly.live.agent.runtime import AgentRuntime
from sparingly.live.consultation.consultation import Consultation, started_consultation
from sparingly.live.quality import team_quality
from sparingly.live.quality.quality_checks import QualityChecks
from sparingly.live.quality.quality_records import PersonQuality
from sparingly.live.quality.team import Team
from sparingly.live.store import export
from sparingly.live.store.audit_outbox import AuditLine
from sparingly.live.store.migrations import WRITE_CHECK, write_meta
from sparingly.live.store.store import Store, backend_of, check_same_agent
from sparingly.live.tickets.leases import Lending
from sparingly.live.tickets.ticket_lifecycle import closed
from sparingly.live.tickets.ticket_records import (
    CONSULTING,
    HELD,
    OPEN,
    SKIPPED,
    UNKNOWN,
    WITHDRAWN,
    Answered,
    Entry,
    ExpertCall,
    Label,
    Question,
    Statistics,
    Ticket,
    Waiting,
)
from sparingly.live.training.added_classes import checked_people
from sparingly.live.training.learner import Learner
from sparingly.strategies.strategy import Strategy


class Agent:
    """Announces a class for each observation or asks a person, who answers when there is time.

    Everything that was returned is on disk before it is returned. An agent made where one with the same settings
    already is continues it, with the limits, `keep`, `retention_days` and `training` given now.

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
        "inline" trains inside the calls, deterministically; "background" trains in another process.
    strategy
        A strategy's name, or an instance; ours where the game allows it when left out.
    options
        What a strategy named by its name is made with, plain values.
    game
        Any label-efficient game in place of `costs` and `query_cost`: several experts, coarse questions.
    experts
        Who can be asked, in place of `query_cost`: people as `Expert`, or each as a `Person`, and machines that are
        called beside the agent.
    schema
        What the fields of raw rows are: kinds by name, `{"age": "number", "job": ["clerk", "smith"], "note": "text"}`,
        a DataFrame, its dtypes, or a TOML file; learned from the first observations when left out.
    encoder
        What turns texts into numbers: "minilm", "static", "hashing", a Hugging Face model, or a function of strings.
    max_open, max_per_hour
        Limits on questions; where they forbid one, the prediction is announced.
    max_per_day, max_total, max_cost
        Questions in a day and in all, and money for questions in all: spent where they are worth most, over the day or
        the whole stream, and not all at its beginning.
    horizon
        How many observations are expected in all, if somebody knows.
    audit_rate
        The chance that an observation that would not be asked is asked all the same, to know how often the agent is
        right; the default strategy asks such questions by itself.
    keep
        For how many events back an answer can be unlearned exactly.
    retention_days
        Days after which payloads are erased; never when left out.
    descriptions
        What classes mean, texts by the classes' names, for people who answer.
    hold
        Whether nothing is announced before there is a model: such tickets are "held", without a prediction, and
        announced as soon as there is one.
    second_opinions
        The share of answers that another person gives, too; as it was, and at first none, when left out.
    clock
        The time in seconds; another one for tests.
    busy_timeout
        The most seconds that a call waits for its turn, then nothing of it is kept; for ever when left out.

    Examples
    --------
    >>> import tempfile, sparingly as sp
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = f"{folder.name}/fruit.db"
    >>> agent = sp.Agent(classes=["apple", "pear"], n_features=2, path=path, strategy="neural_cbp")
    >>> tickets = [agent.observe([0.1 * i, 1.0]) for i in range(3)]
    >>> [ticket.asks for ticket in tickets]
    [True, False, False]
    >>> agent.answer(tickets[0].id, "pear")
    >>> agent.close()
    >>> [(entry.status, entry.label) for entry in sp.Agent.open(path).history()]
    [('answered', 'pear'), ('announced', None), ('announced', None)]
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
        experts: Sequence[Expert | MachineExpert | Person] | None = None,
        feature_names: Sequence[str] | None = None,
        schema: Any = None,
        encoder: EncoderChoice = None,
        max_open: int | None = None,
        max_per_hour: int | None = None,
        max_per_day: int | None = None,
        max_total: int | None = None,
        max_cost: float | None = None,
        horizon: int | None = None,
        audit_rate: float = 0.0,
        keep: int = 20_000,
        retention_days: float | None = None,
        descriptions: Mapping[Any, str] | None = None,
        hold: bool = False,
        second_opinions: float | None = None,
        clock: Callable[[], float] = time.time,
        busy_timeout: float | None = None,
    ) -> None:
        instance = strategy if isinstance(strategy, Strategy) else None
        texts = given_encoder(encoder)
        settings = new_settings(
            classes,
            n_features,
            costs=costs,
            query_cost=query_cost,
            seed=seed,
            training=training,
            strategy=strategy,
            options=options,
            game=game,
            experts=experts,
            feature_names=feature_names,
            schema=schema,
            encoder=texts,
            limits=QuestionLimits(max_open, max_per_hour, max_per_day, max_total, max_cost),
            horizon=horizon,
            audit_rate=audit_rate,
            keep=keep,
            retention_days=retention_days,
            descriptions=descriptions,
            hold=hold,
            quality=QualityChecks().changed({"second_opinions": second_opinions}),
        )
        if not backend_of(path).exists():
            Store.create(path, settings, state=None if instance is None else Learner(instance).state())
        else:
            check_same_agent(path, settings)
        self._begin(AgentRuntime(Store.open(path), instance, settings, None, clock, busy_timeout, texts), experts)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        strategy: Strategy | None = None,
        training: str | None = None,
        encoder: EncoderChoice = None,
        experts: Sequence[Expert | MachineExpert | Person] | None = None,
        clock: Callable[[], float] = time.time,
        busy_timeout: float | None = None,
    ) -> Self:
        """Continue an agent, after a crash or a stop: its decisions are those it would have made without it.

        `strategy` is needed if the agent was made with an instance that cannot be made again from its name, `encoder`
        if its texts are encoded by a function, `experts` if some are machines: their calls wait otherwise.
        """
        agent = cls.__new__(cls)
        texts = given_encoder(encoder)
        agent._begin(AgentRuntime(Store.open(path), strategy, None, training, clock, busy_timeout, texts), experts)
        return agent

    def _begin(self, runtime: AgentRuntime, experts: Sequence[Expert | MachineExpert | Person] | None) -> None:
        self._runtime, self._lending, self._changes = runtime, Lending(runtime), AgentChanges(runtime)
        self.team = Team(runtime, self._changes)
        self._consultation: Consultation | None = None
        machines = [one for one in experts or () if isinstance(one, MachineExpert)]
        if machines:
            try:
                self.consult(machines)
            except BaseException:
                self.close()
                raise

    def consult(self, machines: Sequence[MachineExpert]) -> None:
        """Call these experts from now on; each must be one that the agent was made with."""
        if self._consultation is not None:
            raise AgentError("the agent calls its experts already")
        self._consultation = started_consultation(self._runtime, machines)

    def observe(self, x: Any, *, id: str | int | None = None, payload: Any = None) -> Ticket:
        """Decide on one observation; the ticket is on disk when it is returned.

        `x` is a vector or an image of numbers, a row by name (numbers, words, dates, missing values, texts), a text, or
        a picture: a PIL image, the bytes of a file, or its path.
        With an `id` of the caller's own a repeated call returns the same ticket and does nothing.
        """
        if isinstance(x, str) and is_picture(x):
            x = Path(x)
        call = ObserveCall([x], None if id is None else [id], None if payload is None else [payload])
        return self._runtime.queue.call(call)[0]

    def observe_many(
        self, X: Any, *, ids: Sequence[str | int | None] | None = None, payloads: Sequence[Any] | None = None
    ) -> list[Ticket]:
        """Decide on a block of observations in order, all of them on disk in one go or none."""
        return self._runtime.queue.call(ObserveCall(rows(X), ids, payloads))

    def submit_many(
        self,
        X: Any,
        *,
        executor: Executor,
        ids: Sequence[str | int | None] | None = None,
        payloads: Sequence[Any] | None = None,
    ) -> Future[list[Ticket]]:
        """Like `observe_many` without waiting: a thread of the executor serves this call and others in one batch."""
        return self._runtime.queue.submit(ObserveCall(rows(X), ids, payloads), executor)

    def teach(
        self, X: Any, labels: Any, *, ids: Sequence[str | int | None] | None = None, audit: AuditLine | None = None
    ) -> int:
        """Learn labels that are there already, at once and with one training; returns how many were new.

        They cost nothing and are counted apart from questions. A label taught before under the same id of the
        caller's own is not learned again.
        """
        return self._changes.teach(rows(X), labels, ids, audit)

    def scores(self, X: Any) -> NDArray[np.float64]:
        """How likely each class is held to be by now, `[block, class]`: the larger, the likelier; nothing is kept."""
        return self._runtime.scores(rows(X))

    def answer(
        self,
        ticket_id: str,
        label: Any,
        *,
        expert: str | None = None,
        overrule: bool = False,
        new_class: bool = False,
        audit: AuditLine | None = None,
    ) -> None:
        """Tell the true class: late, out of order, again; a different class than before is a correction.

        A named expert whose lease has run out is refused, and so is one who corrects another's answer, unless they
        `overrule` the others, as an admin may. With `new_class` a label that is no class yet becomes one. `audit`, here
        and below, is kept if the call is, in one transaction.
        """
        self._changes.answer(ticket_id, label, expert, overrule, new_class, audit)

    def add_class(
        self, label: Label, *, cost: float | None = None, expert: str | None = None, audit: AuditLine | None = None
    ) -> None:
        """Take on a class that was not known before; nothing that was learned is lost.

        `cost` is that of every mistake about it, the largest that there is if left out. The strategy must be one that
        can grow: "sparing" or "neural_cbp".
        """
        self._changes.add_class(label, cost, expert, audit)

    def set_costs(
        self,
        costs: Any = None,
        *,
        query_cost: float | None = None,
        expert: str | None = None,
        audit: AuditLine | None = None,
    ) -> None:
        """Change what mistakes cost, in any form that `Agent` takes, or what a question does.

        It decides with them from now on; what it has learned of the classes stays. The strategy must be one that can:
        "sparing". Statistics are at today's costs, also those of what happened before.
        """
        self._changes.set_costs(costs, query_cost, expert, audit)

    def allow_new_classes(self, people: Sequence[str], *, audit: AuditLine | None = None) -> None:
        """Say whose answers may name new classes, besides admins': people by name, or `["*"]` for everyone's."""
        self._runtime.change_settings({"may_add_classes": checked_people(people)}, audit)

    def skip(self, ticket_id: str, *, expert: str | None = None, audit: AuditLine | None = None) -> None:
        """Close a question without an answer; a named expert's skip leaves it open for the others."""
        if not team_quality.set_aside(self._runtime, ticket_id, expert, audit):
            self._runtime.change(ticket_id, lambda c, row, now: closed(c, row, SKIPPED, expert, now), audit)

    def dont_know(self, ticket_id: str, *, expert: str | None = None, audit: AuditLine | None = None) -> None:
        """Close a question to which the person has no answer."""
        if not team_quality.set_aside(self._runtime, ticket_id, expert, audit):
            self._runtime.change(ticket_id, lambda c, row, now: closed(c, row, UNKNOWN, expert, now), audit)

    def withdraw(self, ticket_id: str, *, audit: AuditLine | None = None) -> None:
        """Take an observation back for good: it is not asked any more, and takes no answer."""
        self._runtime.change(ticket_id, lambda c, row, now: closed(c, row, WITHDRAWN, None, now), audit)

    def reopen(
        self,
        ticket_id: str,
        *,
        expert: str | None = None,
        lease_seconds: float | None = None,
        most: int | None = None,
        audit: AuditLine | None = None,
    ) -> Question | None:
        """Undo: take an answer back and unlearn it, or open a question again that was skipped or closed.

        With `lease_seconds` it is leased to the named expert in the same transaction, and returned: no one else gets
        it first. An expert who holds `most` others is refused.
        """
        return self._lending.reopen(ticket_id, expert, lease_seconds, most, audit)

    def erase(self, *ticket_ids: str, audit: AuditLine | None = None) -> None:
        """Erase payloads and features of tickets, and unlearn them; their counts stay, an open question does not."""
        self._changes.erase(ticket_ids, audit)

    def apply_retention(self, days: float | None = None) -> int:
        """Erase payloads older than `retention_days`, or `days` if there are none; opening and observing do so, too."""
        return self._runtime.apply_retention(days)

    def set_retention(self, days: float | None, *, audit: AuditLine | None = None) -> None:
        """Change after how many days payloads are erased."""
        self._runtime.change_settings({"retention_days": checked_retention(days)}, audit)

    def describe_classes(self, descriptions: Mapping[Any, str], *, audit: AuditLine | None = None) -> None:
        """Say what classes mean, in texts by their names; they replace the earlier ones."""
        self._runtime.change_settings({"descriptions": described_classes(descriptions, self.classes)}, audit)

    def questions(
        self, expert: str | None = None, *, limit: int | None = 1, lease_seconds: float = 600.0
    ) -> list[Question]:
        """The next open questions with what a person needs to see.

        A named expert has them leased for a time, in which no one else gets them; without a name they are only shown.
        """
        return self._lending.questions(expert, limit, lease_seconds)

    def lend(self, ticket_id: str, expert: str, *, lease_seconds: float = 600.0, most: int | None = None) -> Question:
        """One particular question, leased to an expert like any other, unless the expert holds `most` others."""
        return self._lending.lend(ticket_id, expert, lease_seconds, most)

    def renew(self, ticket_id: str, expert: str, *, lease_seconds: float = 600.0) -> Question:
        """Make an expert's lease last for this time from now, also one that has run out if no one else took it."""
        return self._lending.renew(ticket_id, expert, lease_seconds)

    def release(self, ticket_id: str, *, expert: str, audit: AuditLine | None = None) -> None:
        """Give a question that was leased to an expert back, so that the others may have it at once."""
        self._lending.release(ticket_id, expert, audit)

    def pending(self, limit: int | None = None) -> list[Ticket]:
        """The open questions, oldest first."""
        return self._runtime.queries.pending(limit)

    def waiting(self, limit: int | None = None) -> list[Waiting]:
        """The open questions, oldest first, each with the expert who has it now."""
        return self._runtime.queries.waiting(limit)

    def count_open(self) -> int:
        """How many questions are open."""
        return self._runtime.queries.count_open()

    def ticket(self, ticket_id: str) -> Entry:
        """One ticket as it stands."""
        return self._runtime.queries.ticket(ticket_id)

    def calls(self, ticket_id: str) -> list[ExpertCall]:
        """What experts that are called, or who may be wrong, were asked about a ticket, and what came of it."""
        return self._runtime.queries.calls(ticket_id)

    def wait(self, ticket_id: str, timeout: float | None = None, *, for_people: bool = True) -> Entry:
        """One ticket once nobody, or no machine, is asked about it any more, or as it stands when the time is over."""
        return self._runtime.queries.wait(
            ticket_id, timeout, (OPEN, CONSULTING, HELD) if for_people else (CONSULTING, HELD)
        )

    def history(self, *, after: str | None = None, limit: int | None = None) -> list[Entry]:
        """Every ticket in order, as it stands now; `after` and `limit` to read it in pieces."""
        return self._runtime.queries.history(after, limit)

    def changes(self, since: int = 0, limit: int = 100) -> tuple[list[Entry], int]:
        """The tickets to which something happened after an event, as they stand, and the event to go on from."""
        return self._runtime.queries.changes(since, limit)

    def recent(self, limit: int) -> list[Entry]:
        """The last tickets, newest first."""
        return self._runtime.queries.recent(limit)

    def announce_held(self) -> None:
        """Announce tickets that were held, if there is a model by now; calls that observe or answer do so, too."""
        self._runtime.announce_held()

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write the labelled observations to a .csv or .parquet file; returns how many there are."""
        with self._runtime.reading() as connection:
            return export.write(path, export.columns(self.settings), export.labelled(connection, self.settings))

    def export_model(self, path: str | os.PathLike[str], *, format: str | None = None) -> None:
        """Write what it has learned to a file that only predicts: `sp.load_model(path).predict(rows)`.

        `format="onnx"`, or a path that ends in .onnx, writes it for onnxruntime and others instead.
        """
        self._runtime.export_model(path, format)

    def stats(self) -> Statistics:
        """How it is doing: counts, costs, and how often its announcements are right."""
        return self._runtime.stats()

    def noticed(self) -> list[tuple[float, str | None]]:
        """The changes that it has noticed: when, and the expert's name if one got worse, None if the stream changed."""
        return self._runtime.noticed()

    def over_time(self, points: int = 50) -> list[Statistics]:
        """The statistics up to each of so many points of its life."""
        return self._runtime.queries.over_time(points)

    def people(self) -> list[PersonQuality]:
        """How often each expert is right, how fast, and what they cost; `agent.team` has more about people."""
        return self.team.people()

    def plant(self, x: Any, label: Label, *, id: str | int | None = None, payload: Any = None) -> str:
        """Plant an item whose class is known among the questions, to see how often people are right.

        People cannot tell it from any other question. It is in no count of observations and teaches nothing. Returns
        its ticket's id.
        """
        ids, payloads = None if id is None else [id], None if payload is None else [payload]
        return self.team.plant([x], [label], ids=ids, payloads=payloads)[0]

    def adjudicate(
        self, ticket_id: str, label: Any, *, expert: str | None = None, audit: AuditLine | None = None
    ) -> None:
        """Settle a disagreement between two people: this class stands, and is learned if it is another than before."""
        self.team.adjudicate(ticket_id, label, expert, audit)

    def experts(self) -> list[Answered]:
        """What each person has answered, whoever has answered most first."""
        return self._runtime.queries.experts()

    def answered_since(self, expert: str, since: float) -> tuple[int, float]:
        """How many questions a person has answered since a time, and what they cost."""
        return self._runtime.queries.answered_since(expert, since)

    def count_events(self) -> int:
        """How many events the journal has: every observation, answer, skip and correction is one."""
        return self._runtime.queries.count_events()

    @property
    def has_audit_lines(self) -> bool:
        """Whether there may be audit lines that were not copied yet."""
        return self._runtime.has_audit_lines

    def copy_audit_lines(self, copy: Callable[[list[dict[str, Any]]], None]) -> None:
        """Call `copy` with the audit lines, oldest first, and forget them then; after a crash some come again."""
        self._runtime.copy_audit_lines(copy)

    def check_writable(self) -> None:
        """Raise what keeps the database from being written now; nothing of the agent is changed."""
        with self._runtime.writing() as connection:
            write_meta(connection, WRITE_CHECK, time.time())

    @property
    def classes(self) -> tuple[Label, ...]:
        return self._runtime.store.settings.classes

    @property
    def settings(self) -> AgentSettings:
        return self._runtime.store.settings

    @property
    def queries(self) -> AgentQueries:
        """What else can be read of it: a search in its tickets, and all about one of them."""
        return self._runtime.queries

    @property
    def learns(self) -> bool:
        """Whether this process is the one that learns; on PostgreSQL there may be others."""
        return self._runtime.learns

    def close(self) -> None:
        """Write a snapshot and close the database."""
        if self._consultation is not None:
            self._consultation.close()
        self._runtime.close("it was closed")

    def __repr__(self) -> str:
        return f"Agent({self.settings.described}, at {self._runtime.store.backend.name})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
