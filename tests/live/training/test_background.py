"""Training aside: calls never wait for it, and what it finishes is used."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sparingly as sp
from sparingly.live.training.background import BackgroundDecider
from sparingly.live.training.learner import Learner
from sparingly.live.training.trainer_process import SNAPSHOT, TrainerRecord
from tests import fork_server

Make = Callable[..., sp.Agent]
SLOW = {"epochs": 400, "width": 64, "schedule": "every 20", "stop": None}


def serve(agent: sp.Agent, n: int, seed: int = 0) -> None:
    for x in np.random.default_rng(seed).normal(size=(n, 3)):
        ticket = agent.observe(x)
        if ticket.asks:
            agent.answer(ticket.id, "dog" if x[0] > 0 else "cat")


def until(true: Callable[[], Any], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.05)


def adopted(agent: sp.Agent) -> int:
    assert isinstance(agent._runtime._decider, BackgroundDecider)
    return (
        agent._runtime._decider._arrived[0]
        if agent._runtime._decider._arrived
        else agent._runtime._decider._follower.adopted
    )


@pytest.mark.usefixtures("forked_trainers")
def test_calls_do_not_wait_for_training(make: Make) -> None:
    agent = make(strategy="neural_cbp", options=SLOW, training="background")
    waits = []
    for x in np.random.default_rng(0).normal(size=(200, 3)):
        began = time.perf_counter()
        ticket = agent.observe(x)
        if ticket.asks:
            agent.answer(ticket.id, "dog" if x[0] > 0 else "cat")
        waits.append(time.perf_counter() - began)
    until(lambda: adopted(agent) > 0)
    began = time.perf_counter()
    pure = sp.NeuralCBP(sp.label_efficient(2), 3, **SLOW)
    pure.learn([0, 0, 1], 2, "1")
    pure._train()
    assert float(np.quantile(waits, 0.9)) < (time.perf_counter() - began) / 3


@pytest.mark.usefixtures("forked_trainers")
@pytest.mark.parametrize("aside", ["process", "thread"])
def test_what_is_learned_aside_is_used_and_kept(make: Make, path: Path, aside: str) -> None:
    options: dict[str, Any] = {"epochs": 5, "width": 16, "schedule": "every 10"}
    strategy: Any = "neural_cbp"
    if aside == "thread":
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        strategy, options = sp.NeuralCBP(sp.label_efficient(2), 3, network=net, **{**options, "epochs": 5}), {}
    agent = make(strategy=strategy, options=options or None, training="background")
    serve(agent, 60)
    until(lambda: adopted(agent) >= 20)
    serve(agent, 5)
    agent.close()
    given = {} if aside == "process" else {"strategy": strategy}
    again = sp.Agent.open(path, **given)
    assert len(again.history()) == 65
    again.observe([1, 2, 3])
    again.close()


def test_a_trainer_that_dies_is_replaced(make: Make) -> None:
    agent = make(
        strategy="neural_cbp", options={"epochs": 2, "width": 16, "schedule": "every 5"}, training="background"
    )
    serve(agent, 20)
    until(lambda: adopted(agent) > 0)
    decider = agent._runtime._decider
    assert isinstance(decider, BackgroundDecider)
    assert decider.enrolment is not None
    process = decider.enrolment.process
    assert process is not None
    os.kill(process, signal.SIGKILL)
    before = adopted(agent)
    serve(agent, 20, seed=1)
    until(lambda: adopted(agent) > before)


def test_the_trainer_ends_with_its_agent(path: Path) -> None:
    code = f"""
import os, sparingly as sp, time
agent = sp.Agent(["cat", "dog"], 3, path={str(path)!r}, strategy="neural_cbp", training="background")
agent.observe([1, 2, 3])
while agent._runtime._decider.enrolment.process is None:
    time.sleep(0.01)
print(os.getpid(), agent._runtime._decider.enrolment.process, flush=True)
time.sleep(60)
"""
    typed = subprocess.Popen([*fork_server.python(path.parent), code], stdout=subprocess.PIPE, text=True)
    assert typed.stdout is not None
    process, trainer = map(int, typed.stdout.readline().split())
    os.kill(process, signal.SIGKILL)
    typed.wait()
    until(lambda: not Path(f"/proc/{trainer}").exists() or "Z" in Path(f"/proc/{trainer}/stat").read_text().split()[2])
    with sp.Agent.open(path) as agent:
        assert len(agent.history()) == 1


@pytest.mark.usefixtures("forked_trainers")
@pytest.mark.postgres
def test_others_follow_the_one_that_learns(postgres: str) -> None:
    settings: dict[str, Any] = {"strategy": "neural_cbp", "options": {"epochs": 2, "width": 16, "schedule": "every 5"}}
    with sp.Agent(["cat", "dog"], 3, path=postgres, training="background", **settings) as one:
        serve(one, 20)
        with sp.Agent.open(postgres, training="background") as two:
            until(lambda: one.learns or two.learns)
            serve(two, 40, seed=1)
            until(lambda: adopted(one) > 40 and adopted(two) > 40)
            assert [one.learns, two.learns].count(True) == 1


@pytest.mark.usefixtures("forked_trainers")
def test_a_state_that_taught_nothing_is_kept_and_not_copied(make: Make) -> None:
    """The one that decides knows more than it; unless it has decided what could not be written."""
    agent = make(training="background")
    serve(agent, 10)
    decider = agent._runtime._decider
    assert isinstance(decider, BackgroundDecider)
    until(lambda: decider._arrived is not None or decider._follower.adopted >= 0)
    serve(agent, 1, seed=1)
    deciding = decider.strategy
    record = TrainerRecord(SNAPSHOT, 0, 10, Learner(deciding, 10).state())
    decider._take(record)
    assert decider._latest == (10, record.state)
    serve(agent, 1, seed=2)
    assert decider.strategy is deciding
    decider.rollback()
    decider._take(record._replace(position=11))
    serve(agent, 1, seed=3)
    assert decider.strategy is not deciding
