"""Agents to test on: a strategy that is quick, and a clock that is told the time."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import sparingly as sp
from sparingly.live.service.service_limits import ServiceLimits
from sparingly.live.training import trainer_pool, trainer_process
from tests import fork_server
from tests.live.postgres import Server
from tests.live.served import Served

Make = Callable[..., sp.Agent]
QUICK = {"epochs": 2, "width": 16}


def stream(n: int, seed: int = 0) -> np.ndarray:
    """Observations of three features."""
    return np.random.default_rng(seed).normal(size=(n, 3))


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


@pytest.fixture
def make(path: Path, clock: Clock) -> Iterator[Callable[..., sp.Agent]]:
    """A function that makes an agent of three features and two classes, closed when the test is over."""
    made: list[sp.Agent] = []

    def build(**changes: Any) -> sp.Agent:
        settings: dict[str, Any] = {"classes": ["cat", "dog"], "n_features": 3, "path": path, "clock": clock}
        made.append(sp.Agent(**{**settings, "strategy": "always_ask", **changes}))
        return made[-1]

    yield build
    for agent in made:
        agent.close()


@pytest.fixture
def forked_trainers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainer processes without their seconds of start-up, where how they start and end is not what is tested.

    They have the tests' own priority: with the lower one of the product they would wait for all other tests.
    """
    command = fork_server.python_module(tmp_path, trainer_process.__name__)

    def start(most_bytes: int) -> subprocess.Popen[bytes]:
        words = [*command, "0", str(most_bytes)]
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    monkeypatch.setattr(trainer_pool, "_start_process", start)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A PostgreSQL server of this test session's own."""
    with Server.started() as server:
        yield server


@pytest.fixture
def postgres(postgres_server: Server) -> Iterator[str]:
    """The URL of an empty database."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture
def served(tmp_path):
    return Served(str(tmp_path / "store"), ServiceLimits(body=100_000, features=50, block=20))


@pytest.fixture
def client(served):
    with TestClient(served.app, raise_server_exceptions=False, follow_redirects=False) as client:
        yield client


@pytest.fixture
def ask(served, client):
    """Call a route with a role's token."""

    def call(role, method, path, body=None, **more):
        return client.request(method, path, headers=served.headers(role), json=body, **more)

    return call
