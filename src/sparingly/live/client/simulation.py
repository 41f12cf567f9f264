"""Simulates the users of a service: data arrive, and people answer who are slow, sometimes wrong, and take breaks."""

from __future__ import annotations

import contextlib
import io
import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from sparingly.encoders.csv_format import CsvFormat, plain_number
from sparingly.encoders.encoding_errors import EncodingError
from sparingly.games.costs import cost_records, read_costs
from sparingly.live.agent.errors import AgentError, ConflictError
from sparingly.live.client.client import Client
from sparingly.live.client.wire_format import refusal
from sparingly.live.tickets.ticket_records import Question

NAMES = ("Ada", "Ben", "Chloe", "Dmitri", "Esra", "Femi", "Greta", "Hugo", "Ines", "Jun")


@dataclass(frozen=True)
class Example:
    """One observation to replay: its features, what a person sees, and the truth."""

    features: Any
    payload: Any
    label: str


@dataclass(frozen=True)
class SimulatedStream:
    """Observations in order, and their classes."""

    classes: tuple[str, ...]
    examples: Sequence[Example]


@dataclass(frozen=True)
class People:
    """How many people answer, how many seconds they think, and their shares of wrong answers, skips and breaks."""

    count: int = 3
    thinking: float = 2.0
    wrong: float = 0.05
    lunch: float = 0.02
    lunch_seconds: float = 20.0
    skips: float = 0.03
    unsure: float = 0.02


@dataclass
class SimulationResult:
    """Counts of what happened."""

    observations: int = 0
    questions: int = 0
    answers: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


def shuffled(stream: SimulatedStream, seed: int) -> SimulatedStream:
    """The same examples in a random order."""
    order = np.random.default_rng(seed).permutation(len(stream.examples))
    return SimulatedStream(stream.classes, [stream.examples[i] for i in order])


def read_csv(path: Path, target: str | None) -> SimulatedStream:
    """A CSV with a header; columns that are all numbers are features, and a person sees every column but the class."""
    try:
        form, text = CsvFormat().read(path.read_bytes())
    except EncodingError as error:
        raise AgentError(f"{path}: {error}") from None
    rows = list(form.rows(io.StringIO(text, newline="")))
    if not rows:
        raise AgentError(f"{path} has no rows")
    target = target or list(rows[0])[-1]
    if target not in rows[0]:
        raise AgentError(f"{path} has no column {target!r}: it has {', '.join(rows[0])}")
    commas = form.decimal_commas(text)
    numbers = {
        name: [plain_number(row[name] or "", ",") if name in commas else row[name] for row in rows] for name in rows[0]
    }
    numeric = [name for name in rows[0] if name != target and all(map(_is_number, numbers[name]))]
    if not numeric:
        raise AgentError(f"{path} has no column of numbers beside {target!r}")
    examples = [
        Example(
            {name: float(numbers[name][place]) for name in numeric},
            {name: value for name, value in row.items() if name != target},
            row[target],
        )
        for place, row in enumerate(rows)
    ]
    return SimulatedStream(tuple(sorted({example.label for example in examples})), examples)


def simulate(
    url: str,
    token: str,
    stream: SimulatedStream,
    people: People,
    *,
    agent: str = "demo",
    rate: float = 5.0,
    count: int = 0,
    costs: Any = None,
    query_cost: float = 1.0,
    seed: int = 0,
    say: Callable[[str], None] = lambda text: None,
) -> SimulationResult:
    """Replay a stream against a service; the people's tokens are made for it and revoked afterwards."""
    admin = AdminClient(url, token)
    admin.agent(agent, stream, costs, query_cost)
    names = [f"{NAMES[i % len(NAMES)]}{i // len(NAMES) or ''} (simulated)" for i in range(people.count)]
    made = [admin.token(name) for name in names]
    truth: dict[str, str] = {}
    result, over = SimulationResult(), threading.Event()
    chances = [random.Random(f"{seed} {name}") for name in names]
    workers = [
        threading.Thread(
            target=_person, args=(Client(url, secret, agent=agent), people, chance, truth, stream, result, over)
        )
        for (_, secret), chance in zip(made, chances, strict=True)
    ]
    say(f"{len(names)} people answer the questions of {agent}: {', '.join(names)}")
    say(f"watch them at {url}/agents/{agent}/dashboard; Ctrl-C ends it")
    try:
        for worker in workers:
            worker.start()
        _observe(Client(url, token, agent=agent), stream, rate, count or len(stream.examples), truth, result)
        over.wait(3 * people.thinking)
    finally:
        over.set()
        for worker in workers:
            worker.join()
        for token_id, _ in made:
            admin.revoke(token_id)
    return result


def _observe(
    client: Client, stream: SimulatedStream, rate: float, count: int, truth: dict[str, str], result: SimulationResult
) -> None:
    began, run = time.monotonic(), f"{time.time():.0f}"
    for i, example in _numbered(stream.examples, count):
        time.sleep(max(0.0, began + i / rate - time.monotonic()))
        name = f"{run}-{i}"
        truth[name] = example.label
        ticket = client.observe(example.features, id=name, payload=example.payload)
        result.observations += 1
        result.questions += ticket.asks
        if not ticket.asks:
            del truth[name]


def _numbered(examples: Sequence[Example], count: int) -> Iterator[tuple[int, Example]]:
    return ((i, examples[i % len(examples)]) for i in range(count))


def _person(
    client: Client,
    people: People,
    chance: random.Random,
    truth: dict[str, str],
    stream: SimulatedStream,
    result: SimulationResult,
    over: threading.Event,
) -> None:
    """One person, until `over` is set: take a question, think, answer."""
    while not over.is_set():
        found = client.questions()
        over.wait(chance.expovariate(1 / people.thinking) if found else 0.5)
        for question in found if not over.is_set() else []:
            with contextlib.suppress(ConflictError):
                _reply(client, question, people, chance, truth.get(question.id), stream)
                with result.lock:
                    result.answers += 1
        if chance.random() < people.lunch:
            over.wait(people.lunch_seconds)


def _reply(
    client: Client,
    question: Question,
    people: People,
    chance: random.Random,
    right: str | None,
    stream: SimulatedStream,
) -> None:
    drawn = chance.random()
    if drawn < people.skips:
        client.skip(question.id)
    elif right is None or drawn < people.skips + people.unsure:
        client.dont_know(question.id)
    elif chance.random() < people.wrong:
        client.answer(question.id, chance.choice([c for c in stream.classes if c != right]))
    else:
        client.answer(question.id, right)


class AdminClient:
    """The calls that only an admin makes."""

    def __init__(self, url: str, token: str) -> None:
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        self._http = httpx.Client(base_url=url, headers=headers, trust_env=False)

    def agent(self, name: str, stream: SimulatedStream, costs: Any, query_cost: float) -> None:
        """Make the agent if it is not there."""
        if name in self._do("GET", "/api/agents")["agents"]:
            there = [str(c) for c in self._do("GET", f"/api/agents/{name}")["classes"]]
            if there != list(stream.classes):
                raise AgentError(f"the agent {name!r} has the classes {', '.join(there)}: choose another with --agent")
            return
        matrix = read_costs(costs, stream.classes)
        stated = None if matrix is None else cost_records(matrix, stream.classes)
        body = {"name": name, "classes": list(stream.classes), "query_cost": query_cost, "audit_rate": 0.02}
        body |= {"costs": stated} if stated else {}
        self._do("POST", "/api/agents", body)

    def token(self, name: str) -> tuple[str, str]:
        for one in self._do("GET", "/api/tokens")["tokens"]:
            if one["name"] == name and one["revoked"] is None:
                self.revoke(one["id"])
        made = self._do("POST", "/api/tokens", {"name": name, "role": "expert"})
        return made["id"], made["token"]

    def revoke(self, token_id: str) -> None:
        self._do("DELETE", f"/api/tokens/{token_id}")

    def _do(self, method: str, path: str, body: Any = None) -> Any:
        try:
            response = self._http.request(method, path, content=None if body is None else json.dumps(body))
        except httpx.TransportError as error:
            raise AgentError(f"the service at {self._http.base_url} cannot be reached: {error}") from None
        if not response.is_success:
            raise refusal(response.status_code, response.text)
        return response.json()


def _is_number(text: str | None) -> bool:
    try:
        return text is not None and np.isfinite(float(text)).item()
    except ValueError:
        return False
