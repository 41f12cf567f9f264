"""One process at a time, in as many threads as it likes; opened again, an agent continues."""

from __future__ import annotations

import gc
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

import sparingly as sp
from sparingly.live.agent.errors import StoreError
from sparingly.live.training.decider import InlineDecider
from tests import fork_server
from tests.live.conftest import Make, stream


def test_one_process_at_a_time(make: Make, path: Path) -> None:
    agent = make()
    code = f"import sparingly as sp; sp.Agent.open({str(path)!r})"
    done = subprocess.run([*fork_server.python(path.parent), code], capture_output=True, text=True, check=False)
    assert "InUseError" in done.stderr
    assert "is in use by process" in done.stderr
    agent.observe([1, 2, 3])


def test_opening_again_in_one_process_takes_the_file_over(make: Make, path: Path) -> None:
    old = make()
    old.observe([1, 2, 3])
    new = sp.Agent.open(path)
    assert len(new.history()) == 1
    with pytest.raises(StoreError, match="is closed: another agent"):
        old.observe([1, 2, 3])
    new.close()


def test_made_again_with_the_same_settings_it_continues(make: Make) -> None:
    make().observe([1, 2, 3])
    assert len(make().history()) == 1
    with pytest.raises(StoreError, match="seed is 0, not 1"):
        make(seed=1)
    assert not make(max_open=1).observe([4, 5, 6]).asks
    assert make(max_open=2).observe([4, 5, 6]).asks


def test_calls_from_many_threads_are_all_kept_once(make: Make) -> None:
    agent = make()
    X = stream(64)
    threads = [
        threading.Thread(target=lambda k=k: [agent.observe(X[k * 8 + i], id=k * 8 + i) for i in range(8)])
        for k in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(int(e.id) for e in agent.history()) == list(range(64))


def test_an_agent_that_was_forgotten_gives_its_file_back(make: Make, path: Path) -> None:
    def forget() -> None:
        sp.Agent(["cat", "dog"], 3, path=path, strategy="always_ask").observe([1, 2, 3])

    forget()
    gc.collect()
    assert len(make().history()) == 1


def test_the_number_of_threads_does_not_matter(make: Make, path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(12, 3000)).astype(np.float32)
    said = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        options = {"epochs": 2, "schedule": "every 2"}
        agent = make(n_features=3000, strategy="neural_cbp", options=options, path=path.with_name(f"{threads}.db"))
        for x in X:
            ticket = agent.observe(x)
            if ticket.asks:
                agent.answer(ticket.id, "dog")
        assert torch.get_num_threads() == threads
        assert isinstance(agent._runtime._decider, InlineDecider)
        assert agent._runtime._decider._learner is not None
        said.append(agent._runtime._decider._learner.state())
    torch.set_num_threads(1)
    assert said[0] == said[1]


def test_a_second_agent_that_is_refused_leaves_the_first_open(make: Make, path: Path) -> None:
    first = make()
    first.observe([1, 2, 3])
    with pytest.raises(StoreError, match=r"seed is 0, not 7"):
        make(seed=7)
    with pytest.raises(StoreError, match=r"classes is \['cat', 'dog'\]"):
        make(classes=["ham", "spam"])
    assert first.observe([1, 2, 4]).asks
    assert first.stats().observations == 2
