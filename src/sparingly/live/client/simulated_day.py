"""A day in a minute: a service, a language model whose answers were recorded, and a team of which one is careless."""

from __future__ import annotations

import contextlib
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sparingly.experts import CallLimits, Expert, RecordedExpert
from sparingly.live.agent.agent import Agent
from sparingly.live.agent.errors import AgentError, ConflictError
from sparingly.live.client.client import Client
from sparingly.live.client.simulation import NAMES, SimulatedStream
from sparingly.live.quality.quality_records import PersonQuality
from sparingly.live.service.app import create_app
from sparingly.live.service.auth.tokens import ADMIN, EXPERT
from sparingly.live.service.server import Server, address, configured, listen
from sparingly.live.service.service import Service
from sparingly.live.service.service_limits import ServiceLimits
from sparingly.live.tickets.ticket_records import Statistics

AGENT, HUMAN = "day", "human"
CENT = 0.005
"""What two sums may differ by that are the same to the cent."""


@dataclass(frozen=True)
class SimulatedTeam:
    """Who answers, and how.

    Attributes
    ----------
    wrong
        The share of wrong answers of each person.
    thinking
        Seconds that a person thinks, on average.
    person_price, machine_price, mistake
        What an answer of a person, a call of the machine and a mistake cost.
    second_opinions, known_answers
        The shares of answers that are given twice, and of questions that are planted items.
    planted
        How many items are planted, copies of some of the stream.
    hand
        How many questions a person takes at a time.
    """

    wrong: tuple[float, ...] = (0.03, 0.03, 0.4)
    thinking: float = 0.02
    person_price: float = 0.5
    machine_price: float = 0.01
    mistake: float = 2.0
    second_opinions: float = 0.1
    known_answers: float = 0.05
    planted: int = 100
    hand: int = 5

    @property
    def names(self) -> list[str]:
        return list(NAMES[: len(self.wrong)])


@dataclass(frozen=True)
class SimulatedDayResult:
    """How the day ended: the agent's statistics, its people, and how many announcements were right."""

    statistics: Statistics
    people: list[PersonQuality]
    unanswered: float
    """What questions cost that nobody has answered."""
    right: int
    seconds: float

    @property
    def bill(self) -> dict[str, float]:
        """What each expert has cost by their answers, and questions without one."""
        return {one.expert: one.cost for one in self.people} | {"not answered": self.unanswered}

    @property
    def total(self) -> float:
        """What the agent says that all questions and planted items have cost."""
        return self.statistics.questions_cost + self.statistics.known_cost

    @property
    def adds_up(self) -> bool:
        return abs(sum(self.bill.values()) - self.total) < CENT

    @property
    def careless(self) -> list[PersonQuality]:
        return [one for one in self.people if one.careless is not None]


@dataclass
class _Day:
    """What the threads share."""

    truth: dict[str, str] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)


def simulate_day(
    stream: SimulatedStream,
    recorded: Sequence[str | None],
    team: SimulatedTeam | None = None,
    *,
    machine: str = "machine",
    seconds: float = 60.0,
    patience: float = 60.0,
    port: int = 0,
    seed: int = 0,
    training: str = "background",
    say: Callable[[str], None] = lambda text: None,
) -> SimulatedDayResult:
    """Serve, let the stream come within so many seconds, and people answer; then wait for the last answers.

    `recorded` is what the machine says of each example; `patience` is for how many seconds the last answers are
    awaited. Whoever is found careless gets no questions any more.
    """
    team, day = team or SimulatedTeam(), _Day()
    names = [f"m{i}" for i in range(len(stream.examples))]
    said = {name: (label, team.machine_price) for name, label in zip(names, recorded, strict=True)}
    model = RecordedExpert(machine, said, team.machine_price, limits=CallLimits(concurrent=8))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sparingly-day-") as folder, _served(folder, [model], port) as (here, url):
        agent = _agent(here, stream, team, model, seed, training)
        secret = here.tokens.create("admin", ADMIN)[1]
        _plant(agent, stream, team, day, seed)
        say(f"watch it at {url}/agents/{AGENT}/people with the token {secret}")
        with _people(here, url, stream, team, day, seed), Client(url, secret, agent=AGENT) as client:
            _observe(client, stream, names, day.truth, seconds)
            _settle(agent, team, day, time.monotonic() + patience)
        return _result(agent, stream, names, team, time.monotonic() - began)


@contextlib.contextmanager
def _served(folder: str, machines: Sequence[RecordedExpert], port: int) -> Iterator[tuple[Service, str]]:
    service = Service(folder, ServiceLimits(per_second=1e5, burst=1e5), secure_cookie=False, machines=machines)
    listener = listen("127.0.0.1", port)
    server = Server(configured(create_app(service), service.limits, grace=2), service)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield service, address(listener)
    finally:
        service.events.stop()
        server.should_exit = True
        thread.join(30)
        listener.close()


def _agent(
    here: Service, stream: SimulatedStream, team: SimulatedTeam, model: RecordedExpert, seed: int, training: str
) -> Agent:
    count = len(stream.classes)
    agent = here.agents.create(
        AGENT,
        classes=list(stream.classes),
        experts=[model, Expert(HUMAN, team.person_price, gold=True)],
        costs=[[0.0 if i == j else team.mistake for j in range(count)] for i in range(count)],
        second_opinions=team.second_opinions,
        seed=seed,
        training=training,
    )
    agent.team.set_checks(known_answers=team.known_answers, stop_careless=True)
    return agent


def _plant(agent: Agent, stream: SimulatedStream, team: SimulatedTeam, day: _Day, seed: int) -> None:
    """Plant copies of some examples before the first question; a person cannot tell them from others."""
    chosen = random.Random(f"{seed} planted").sample(list(stream.examples), min(team.planted, len(stream.examples)))
    tickets = agent.team.plant(
        [one.features for one in chosen], [one.label for one in chosen], payloads=[one.payload for one in chosen]
    )
    day.truth.update({ticket: one.label for ticket, one in zip(tickets, chosen, strict=True)})


def _observe(
    client: Client,
    stream: SimulatedStream,
    names: Sequence[str],
    truth: dict[str, str],
    seconds: float,
    block: int = 50,
) -> None:
    """Send the stream in blocks, spread over the time."""
    began, count = time.monotonic(), len(names)
    truth.update({name: one.label for name, one in zip(names, stream.examples, strict=True)})
    for start in range(0, count, block):
        time.sleep(max(0.0, began + seconds * start / count - time.monotonic()))
        part = stream.examples[start : start + block]
        client.observe_many(
            [one.features for one in part], ids=names[start : start + block], payloads=[one.payload for one in part]
        )


@contextlib.contextmanager
def _people(
    here: Service, url: str, stream: SimulatedStream, team: SimulatedTeam, day: _Day, seed: int
) -> Iterator[None]:
    """The people at work, until the block ends."""
    workers = []
    for name, wrong in zip(team.names, team.wrong, strict=True):
        secret = here.tokens.create(name, EXPERT)[1]
        chance = random.Random(f"{seed} {name}")
        given = (Client(url, secret, agent=AGENT), wrong, team, chance, stream.classes, day)
        workers.append(threading.Thread(target=_person, args=given, daemon=True))
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        day.over.set()
        for worker in workers:
            worker.join(30)


def _person(
    client: Client, wrong: float, team: SimulatedTeam, chance: random.Random, classes: Sequence[str], day: _Day
) -> None:
    """One person: take some questions, think about each, answer."""
    with client:
        while not day.over.is_set():
            try:
                found = client.questions(limit=team.hand)
            except AgentError:
                continue
            if not found:
                day.over.wait(0.2)
            for question in found:
                day.over.wait(chance.expovariate(1 / team.thinking))
                right = day.truth[question.id]
                label = chance.choice([c for c in classes if c != right]) if chance.random() < wrong else right
                with contextlib.suppress(ConflictError):
                    client.answer(question.id, label)


def _settle(agent: Agent, team: SimulatedTeam, day: _Day, deadline: float) -> None:
    """An admin settles what three people, or all who still answer, disagree on, until nothing is open any more."""
    while time.monotonic() < deadline:
        waiting = agent.team.disagreements(limit=200)
        still_answer = {*team.names} - {one.expert for one in agent.people() if one.stopped is not None}
        for one in waiting:
            if one.state == "admin" or still_answer <= {one.first, one.second}:
                agent.adjudicate(one.ticket, day.truth[one.ticket], expert="admin")
        if not waiting:
            statistics = agent.stats()
            if not statistics.open and not statistics.consulting:
                return
        time.sleep(0.5)


def _result(
    agent: Agent, stream: SimulatedStream, names: Sequence[str], team: SimulatedTeam, seconds: float
) -> SimulatedDayResult:
    truth: Mapping[str, Any] = dict(zip(names, (one.label for one in stream.examples), strict=True))
    statistics, people = agent.stats(), agent.people()
    while (now := agent.stats()) != statistics:  # a call that was under way has come back meanwhile
        statistics, people = now, agent.people()
    history = agent.history()
    right = sum((one.label if one.label is not None else one.prediction) == truth[one.id] for one in history)
    unanswered = team.person_price * (statistics.open + statistics.skipped + statistics.unknown)
    return SimulatedDayResult(statistics, people, unanswered, right, seconds)
