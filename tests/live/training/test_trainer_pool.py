"""Few processes train many agents: by turns, woken on demand, and let go in time."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparingly as sp
from sparingly.live.training.background import BackgroundDecider
from sparingly.live.training.trainer_pool import CLOSE_SECONDS, TrainerPool, shared_pool
from sparingly.live.training.trainer_process import EVICTED, STATE, TrainerRecord

QUICK: dict[str, Any] = {"strategy": "neural_cbp", "options": {"epochs": 2, "width": 16, "schedule": "every 5"}}


def until(true: Callable[[], Any], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.02)


def made(path: Path, training: str = "background") -> sp.Agent:
    return sp.Agent(["cat", "dog"], 3, path=path, training=training, **QUICK)


def serve(agent: sp.Agent, n: int, seed: int = 0) -> None:
    for x in np.random.default_rng(seed).normal(size=(n, 3)):
        ticket = agent.observe(x)
        if ticket.asks:
            agent.answer(ticket.id, "dog" if x[0] > 0 else "cat")


def decider_of(agent: sp.Agent) -> BackgroundDecider:
    decider = agent._runtime._decider
    assert isinstance(decider, BackgroundDecider)
    return decider


def seen(agent: sp.Agent) -> int:
    """Up to which event the trainer has sent parameters."""
    latest = decider_of(agent)._latest
    return latest[0] if latest is not None else 0


def is_idle(agent: sp.Agent) -> bool:
    enrolment = decider_of(agent).enrolment
    return enrolment is not None and enrolment.is_idle


def processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_asleep(processes: list[int]) -> bool:
    before = sum(map(processor_seconds, processes))
    time.sleep(1.0)
    return sum(map(processor_seconds, processes)) - before <= 0.02


def is_stopped(process: int) -> bool:
    """Whether every thread is: on a busy machine one that takes commands goes on until another was given the signal."""
    threads = Path(f"/proc/{process}/task").iterdir()
    return all((one / "stat").read_text().rpartition(")")[2].split()[0] == "T" for one in threads)


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[list[sp.Agent]]:
    several = [made(tmp_path / f"{i}.db") for i in range(6)]
    yield several
    for agent in several:
        agent.close()


def test_many_agents_share_few_processes_that_sleep_and_end(agents: list[sp.Agent]) -> None:
    for i, agent in enumerate(agents):
        serve(agent, 12, seed=i)
    until(lambda: all(seen(agent) > 0 for agent in agents))
    processes = shared_pool().processes()
    assert 1 <= len(processes) <= max(1, (os.cpu_count() or 1) - 1)

    until(lambda: all(is_idle(agent) for agent in agents))
    until(lambda: is_asleep(processes))

    old = seen(agents[3])
    serve(agents[3], 12, seed=9)
    until(lambda: seen(agents[3]) > old)

    began = time.monotonic()
    for agent in agents:
        agent.close()
    assert time.monotonic() - began < len(agents) * CLOSE_SECONDS, "it replies to each"
    until(lambda: not shared_pool().processes())
    until(lambda: not any(Path(f"/proc/{process}").exists() for process in processes))


@pytest.mark.usefixtures("forked_trainers")
def test_a_killed_process_loses_none_of_its_agents(agents: list[sp.Agent]) -> None:
    for agent in agents:
        serve(agent, 12)
    until(lambda: all(seen(agent) > 0 for agent in agents))
    for process in shared_pool().processes():
        os.kill(process, signal.SIGKILL)
    old = [seen(agent) for agent in agents]
    for agent in agents:
        serve(agent, 12, seed=1)
    until(lambda: all(seen(agent) > before for agent, before in zip(agents, old, strict=True)))


def test_a_process_that_does_not_reply_does_not_hold_up_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparingly.live.training.trainer_pool.CLOSE_SECONDS", 0.5)
    agent = made(tmp_path / "agent.db")
    serve(agent, 12)
    until(lambda: seen(agent) > 0)
    (process,) = shared_pool().processes()
    os.kill(process, signal.SIGSTOP)
    until(lambda: is_stopped(process))
    agent.close()
    until(lambda: not Path(f"/proc/{process}").exists())


def test_an_agent_closed_before_its_trainer_has_started_waits_for_nothing(tmp_path: Path) -> None:
    pool = TrainerPool(size=1)
    made(tmp_path / "agent.db", training="inline").close()
    enrolment = pool.enrol(str(tmp_path / "agent.db"), lambda record: None)
    until(lambda: enrolment.process is not None)
    began = time.monotonic()
    enrolment.close()
    assert time.monotonic() - began < CLOSE_SECONDS
    until(lambda: not pool.processes())


@pytest.mark.usefixtures("forked_trainers")
def test_learners_beyond_the_memory_are_given_up_and_come_back(tmp_path: Path) -> None:
    pool = TrainerPool(size=1, most_bytes=1)
    received: list[TrainerRecord] = []
    paths = [tmp_path / "one.db", tmp_path / "two.db"]
    enrolments = []
    for path in paths:
        with made(path, training="inline") as agent:
            serve(agent, 20)
        enrolments.append(pool.enrol(str(path), received.append))
        until(lambda: enrolments[-1].is_idle)
    one = enrolments[0].number
    until(lambda: any(record.kind == EVICTED for record in received))
    evicted = next(record for record in received if record.kind == EVICTED)
    with sp.Agent.open(paths[0]) as agent:
        assert (evicted.agent, evicted.position) == (one, agent.count_events())
        serve(agent, 20, seed=2)
        enrolments[0].head = agent.count_events()
        enrolments[0].wake()
        # While the agent is open: closing it writes a snapshot, and the trainer would have nothing to catch up on.
        until(lambda: any(r.kind == STATE and r.agent == one and r.position > evicted.position for r in received))
    for enrolment in enrolments:
        enrolment.close()
