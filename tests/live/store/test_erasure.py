"""Erasure and retention: what a ticket shows of a person is gone from the file, and the agent goes on without it."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select

import sparingly as sp
from sparingly.live.agent.errors import AgentError, ConflictError
from sparingly.live.store.integrity_check import check
from sparingly.live.store.tables import observations, payloads
from tests.live.conftest import QUICK, Clock, Make, stream

DAY = 86400.0


def on_disk(path: Path) -> bytes:
    """Everything in the agent's file and its write-ahead log."""
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob(f"{path.name}*")))


def secret(i: int) -> str:
    return f"the secret of person {i:04d}."


def test_what_was_erased_is_in_no_file_and_the_rest_is(make: Make, path: Path) -> None:
    agent = make()
    X = stream(300)
    tickets = agent.observe_many(X, payloads=[secret(i) * (1 if i % 3 else 400) for i in range(300)])
    agent.answer(tickets[7].id, "dog")
    erased = list(np.random.default_rng(1).permutation(300)[:120])
    for i in erased[:20]:
        agent.erase(tickets[i].id)
    agent.erase(*(tickets[i].id for i in erased[20:]))
    content = on_disk(path)
    for i in range(300):
        assert (secret(i).encode() in content) == (i not in erased), i
        assert (X[i].astype("<f4").tobytes() in content) == (i not in erased), i
    assert agent.stats().observations == 300
    assert check(path).ok


def test_an_erased_ticket_keeps_its_place_and_takes_nothing_more(make: Make, path: Path) -> None:
    agent = make()
    for name in ("answered", "open", "skipped"):
        agent.observe([1, 2, 3], id=name, payload=secret(1))
    agent.answer("answered", "dog", expert="ann")
    agent.skip("skipped")
    agent.erase("answered", "open", "skipped")
    agent.erase("answered")
    found = {entry.id: (entry.status, entry.label, entry.erased) for entry in agent.history()}
    assert found == {
        "answered": ("answered", "dog", "everything"),
        "open": ("withdrawn", None, "everything"),
        "skipped": ("skipped", None, "everything"),
    }
    assert agent.questions() == []
    for act in (lambda: agent.answer("answered", "cat"), lambda: agent.reopen("skipped")):
        with pytest.raises(ConflictError, match="was erased"):
            act()
    assert agent.observe([9, 9, 9], id="answered").id == "answered", "its id stays taken"
    agent.export(path.with_name("all.csv"))
    (row,) = csv.DictReader(path.with_name("all.csv").open())
    assert (row["x0"], row["label"], row["erased"]) == ("", "dog", "everything")
    agent.close()
    assert check(path).ok


def test_the_learner_becomes_the_one_that_never_saw_it(make: Make, path: Path) -> None:
    """Bit for bit: the scores are those of an agent without the erased observations."""
    X = stream(60)
    agents = [make(path=path.with_name(f"{i}.db"), strategy="neural_cbp", options=QUICK) for i in range(2)]
    for i, x in enumerate(X):
        for agent in agents[: 1 if i in (10, 30) else 2]:
            agent.observe(x, id=f"o{i}")
            agent.answer(f"o{i}", "dog" if x[0] > 0 else "cat")
    agents[0].erase("o10", "o30")
    np.testing.assert_array_equal(agents[0].scores(X), agents[1].scores(X))
    agents[0].close()
    with sp.Agent.open(path.with_name("0.db")) as again:
        np.testing.assert_array_equal(again.scores(X), agents[1].scores(X))
        again.answer("o5", "cat" if X[5][0] > 0 else "dog")
    assert check(path.with_name("0.db")).ok


def test_what_is_too_old_to_be_unlearned_can_be_erased(make: Make, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparingly.live.training.decider.SNAPSHOT_EVENTS", 20)
    agent = make(strategy="random", options={"p": 0.5}, keep=50)
    for start in range(0, 400, 20):
        for ticket in agent.observe_many(stream(20, seed=start)):
            agent.answer(ticket.id, "dog")
    agent.erase("t.1", agent.history()[-1].id)
    agent.close()
    with sp.Agent.open(path) as again:
        again.observe([1, 2, 3])
    assert check(path).ok


def test_payloads_are_erased_after_their_time(make: Make, path: Path, clock: Clock) -> None:
    agent = make(retention_days=30)
    agent.observe([1, 2, 3], id="old", payload=secret(1))
    clock.now += 29 * DAY
    agent.observe([1, 2, 3], id="new", payload=secret(2))
    assert agent.apply_retention() == 0
    clock.now += 2 * DAY
    agent.close()
    agent = make(retention_days=30)
    assert [entry.erased for entry in agent.history()] == ["payload", None], "at opening"
    assert secret(1).encode() not in on_disk(path)
    old, new = agent.questions(limit=2)
    assert (old.payload, new.payload.content) == (None, secret(2))
    clock.now += 30 * DAY
    agent._runtime._retained_at = float("-inf")
    agent.observe([1, 2, 3])
    assert agent.ticket("new").erased == "payload", "and while it observes"
    agent.answer("old", "dog")


@pytest.mark.parametrize("days", [0, -1, float("nan"), True, "30"])
def test_a_retention_time_is_a_positive_number(make: Make, days: object) -> None:
    with pytest.raises(AgentError, match="retention_days is"):
        make(retention_days=days)


@pytest.mark.postgres
def test_erasure_on_postgresql(postgres: str) -> None:
    with sp.Agent(classes=["cat", "dog"], n_features=3, path=postgres, strategy="neural_cbp", options=QUICK) as agent:
        agent.observe([1, 2, 3], id="erased", payload=secret(1))
        agent.observe([4, 5, 6], id="kept", payload=secret(2))
        agent.answer("erased", "dog")
        agent.erase("erased")
        with agent._runtime.reading() as connection:
            shown = [bytes(row.content) for row in connection.execute(select(payloads))]
            seen = [bytes(row.x) for row in connection.execute(select(observations))]
        assert shown == [secret(2).encode()]
        assert np.float32([1, 2, 3]).tobytes() not in seen
        assert np.float32([4, 5, 6]).tobytes() in seen
    with sp.Agent.open(postgres) as agent:
        assert [(entry.id, entry.erased) for entry in agent.history()] == [("erased", "everything"), ("kept", None)]
        agent.observe([7, 8, 9])
