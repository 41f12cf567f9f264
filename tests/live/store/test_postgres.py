"""Several processes on one PostgreSQL database, of which one learns."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import text

import sparingly as sp
from sparingly.live.agent.errors import StoreError
from sparingly.live.store.integrity_check import check
from sparingly.live.store.migrations import VERSION, write_meta
from sparingly.live.store.store import Store
from sparingly.live.store.tables import MIGRATIONS
from tests import fork_server
from tests.live.conftest import QUICK
from tests.live.postgres import Server
from tests.live.store.old_formats import back_to

pytestmark = pytest.mark.postgres
SETTINGS = {
    "classes": ["cat", "dog"],
    "n_features": 3,
    "strategy": "neural_cbp",
    "options": {**QUICK, "schedule": "every 4"},
}

OTHER = """
import os, sys
import numpy as np
import sparingly as sp

print(os.getpid(), flush=True)
url, first = sys.argv[1], int(sys.argv[2])
agent = sp.Agent.open(url)
for i in range(first, first + 100_000):
    x = np.random.default_rng(i).normal(size=3)
    ticket = agent.observe(x, id=f"p{i}")
    if ticket.asks:
        agent.answer(ticket.id, "dog" if x[0] > 0 else "cat")
    print(i, agent.learns, flush=True)
"""


def stream(n: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, 3))


def test_it_decides_as_on_sqlite(postgres: str, path: Path) -> None:
    with sp.Agent(path=postgres, **SETTINGS) as there, sp.Agent(path=path, **SETTINGS) as here:
        for x in stream(40):
            tickets = there.observe(x), here.observe(x)
            assert tickets[0] == tickets[1]
            if tickets[0].asks:
                there.answer(tickets[0].id, "dog")
                here.answer(tickets[0].id, "dog")
        assert dict(there.stats(), at=None) == dict(here.stats(), at=None)
        assert len(there.over_time(5)) == 5
    with sp.Agent.open(postgres) as again, sp.Agent.open(path) as here:
        assert [again.observe(x).why for x in stream(10)] == [here.observe(x).why for x in stream(10)]


def test_two_agents_in_one_database(postgres: str) -> None:
    with (
        sp.Agent(path=postgres + "?agent=one", **SETTINGS) as one,
        sp.Agent(path=postgres + "?agent=two", **SETTINGS) as two,
    ):
        one.observe([1, 2, 3])
        assert (len(one.history()), len(two.history())) == (1, 0)


def test_the_first_observation_of_any_process_fixes_the_features(postgres: str) -> None:
    settings = {**SETTINGS, "n_features": None}
    with sp.Agent(path=postgres, **settings) as one, sp.Agent(path=postgres, **settings) as two:
        one.observe({"a": 1, "b": 2})
        with pytest.raises(ValueError, match="feature 'b' is missing"):
            two.observe({"a": 1, "c": 2})
        two.observe({"b": 1, "a": 2})


def test_the_learner_is_killed_and_the_other_takes_over(postgres: str, tmp_path: Path) -> None:
    sp.Agent(path=postgres, **SETTINGS).close()
    processes = [
        subprocess.Popen(
            [*fork_server.python(tmp_path), OTHER, postgres, str(first)], stdout=subprocess.PIPE, text=True
        )
        for first in (0, 1_000_000)
    ]
    try:
        numbers = [int(process.stdout.readline()) for process in processes if process.stdout is not None]
        roles = [_role(process, 10) for process in processes]
        assert sorted(roles) == [False, True], "exactly one learns"
        learner = roles.index(True)
        os.kill(numbers[learner], signal.SIGKILL)
        killed = time.monotonic()
        while not _role(processes[1 - learner], 1):
            assert time.monotonic() - killed < 60, "nobody took over"
        acknowledged = {1 - learner: _last(processes[1 - learner]), learner: _last(processes[learner])}
    finally:
        for process in processes:
            process.kill()
            process.wait()
    with sp.Agent.open(postgres) as agent:
        ids = [entry.id for entry in agent.history()]
        assert len(ids) == len(set(ids))
        for process, last in acknowledged.items():
            start = process * 1_000_000
            assert {f"p{i}" for i in range(start, last + 1)} <= set(ids)


def _role(process: subprocess.Popen[str], lines: int) -> bool:
    assert process.stdout is not None
    said = [process.stdout.readline().split() for _ in range(lines)]
    process.said = said[-1]  # type: ignore[attr-defined]
    return said[-1][1] == "True"


def _last(process: subprocess.Popen[str]) -> int:
    """The last observation that the process said was acknowledged."""
    if process.poll() is not None:
        assert process.stdout is not None
        for line in process.stdout:
            process.said = line.split()  # type: ignore[attr-defined]
    return int(process.said[0])  # type: ignore[attr-defined]


def test_a_database_that_goes_away_and_comes_back(postgres_server: Server, postgres: str, path: Path) -> None:
    X = stream(60)
    with sp.Agent(path=postgres, **SETTINGS) as agent, sp.Agent(path=path, **SETTINGS) as whole:
        first = [agent.observe(x, id=i) for i, x in enumerate(X[:20])]
        postgres_server.stop()
        try:
            with pytest.raises(StoreError, match="nothing of this call was acknowledged") as raised:
                agent.observe(X[20], id=20)
            assert "\n" not in str(raised.value)
        finally:
            postgres_server.start()
        rest = [agent.observe(x, id=20 + i) for i, x in enumerate(X[20:])]
        assert first + rest == [whole.observe(x, id=i) for i, x in enumerate(X)]


@pytest.mark.parametrize("version", range(1, MIGRATIONS.latest))
def test_an_older_format_is_brought_up_to_date(postgres: str, version: int) -> None:
    with sp.Agent(["cat", "dog"], 3, path=postgres, strategy="always_ask") as agent:
        tickets = agent.observe_many(stream(2))
        agent.answer(tickets[0].id, "cat", expert="ann")
    store = Store.open(postgres)
    with store.writing() as connection:
        for statement in back_to(version):
            connection.execute(text(statement))
        write_meta(connection, VERSION, version)
    store.close()
    with sp.Agent.open(postgres) as agent:
        assert [(entry.status, entry.label) for entry in agent.history()] == [("answered", "cat"), ("open", None)]
        assert [question.id for question in agent.questions("ann")] == [tickets[1].id]
        agent.answer(tickets[1].id, "dog", expert="ann")
        agent.observe_many(stream(3), ids=["a", "b", "c"])
        agent.teach(stream(1), ["dog"])
        assert agent.stats().answered == 2
    assert check(postgres).ok


def test_an_unknown_database_is_named(postgres: str) -> None:
    with pytest.raises(StoreError, match="nowhere"):
        sp.Agent.open(postgres.rsplit("/", 1)[0] + "/nowhere")
    with pytest.raises(StoreError, match="does not exist: make an agent"):
        sp.Agent.open(postgres)
    with pytest.raises(StoreError, match=r"mysql:// is not a database"):
        sp.Agent.open("mysql://x/y")
