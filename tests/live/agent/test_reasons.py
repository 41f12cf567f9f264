"""Tickets say how likely each class is held to be, and why, in numbers."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import sparingly as sp
from tests.live.conftest import QUICK, Make, stream


def taught(make: Make, **settings) -> sp.Agent:  # type: ignore[no-untyped-def]
    agent = make(strategy=None, **settings)
    X = stream(60, seed=5)
    agent.teach(X, ["dog" if x[0] > 0 else "cat" for x in X])
    return agent


def test_probabilities_are_those_of_the_model(make: Make) -> None:
    agent = taught(make)
    ticket = agent.observe([3.0, 0, 0])
    assert list(ticket.probabilities) == ["cat", "dog"]
    assert sum(ticket.probabilities.values()) == pytest.approx(1, abs=1e-5)
    assert ticket.probabilities["dog"] == pytest.approx(agent.scores([[3.0, 0, 0]])[0, 1], abs=1e-5)
    assert ticket.probabilities["dog"] > 0.8
    assert ticket.prediction == "dog"


def test_the_reason_has_its_numbers(make: Make) -> None:
    ticket = taught(make).observe([3.0, 0, 0])
    assert isinstance(ticket.why, str)
    assert ticket.why["risk"] == ticket.numbers["risk"] == ticket.why.numbers["risk"]  # type: ignore[index, attr-defined]
    assert f"{ticket.numbers['worth']:.2f}" in ticket.why
    assert ticket.why[:3] == str(ticket.why)[:3]
    assert pickle.loads(pickle.dumps(ticket)) == ticket
    json.dumps(dict(ticket))


def test_history_and_a_reopened_agent_tell_the_same(make: Make, path: Path) -> None:
    agent = taught(make)
    tickets = agent.observe_many(stream(5))
    agent.close()
    with sp.Agent.open(path) as again:
        for ticket, entry in zip(tickets, again.history(), strict=True):
            assert (entry.probabilities, entry.numbers) == (ticket.probabilities, ticket.numbers)
        again.answer(tickets[0].id, "dog")
        again.export(path.with_name("out.csv"))
        again.erase(tickets[1].id)
        assert again.ticket(tickets[1].id).probabilities == {}
    header, row = (line.split(",") for line in path.with_name("out.csv").read_text().splitlines())
    told = dict(zip(header, row, strict=False))
    assert float(told["probability"]) == pytest.approx(tickets[0].probabilities[tickets[0].prediction])
    assert told["why"]


@pytest.mark.parametrize("name", sorted(sp.strategies()))
def test_every_strategy_has_probabilities(name: str) -> None:
    game = sp.label_efficient(2, query_cost=0.4)
    strategy = sp.strategies()[name](game, 3, **(QUICK if name == "neural_cbp" else {}))
    X = stream(10)
    before = strategy.state_dict()["rng"]
    held = strategy.probabilities(strategy.assess(X))
    assert held.shape == (10, 2)
    assert np.allclose(held.sum(1), 1)
    assert (held >= 0).all()
    assert strategy.state_dict()["rng"] == before


def test_over_the_wire(served, ask) -> None:  # type: ignore[no-untyped-def]
    service = served.service
    service.agents.create("digits", classes=[0, 1], n_features=3, training="inline")
    with served.on_a_socket() as url, sp.Client(url, served.tokens["admin"], agent="digits") as client:
        client.teach(stream(60), [int(x[0] > 0) for x in stream(60)])
        ticket = client.observe([2.0, 0, 0])
        assert set(ticket.probabilities) == {0, 1}
        assert ticket == service.agents.get("digits").observe([2.0, 0, 0], id=ticket.id)
        assert ticket.why["risk"] == client.history()[0].numbers["risk"]  # type: ignore[index]
