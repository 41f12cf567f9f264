"""Before there is a model: a guess is called one, or nothing is announced until there is one."""

from __future__ import annotations

import json

import numpy as np
import pytest

import sparingly as sp
from sparingly.live.agent.errors import ConflictError
from sparingly.live.store.integrity_check import check
from tests.live.conftest import stream

SPARING = {"strategy": "sparing", "query_cost": 1.0}


def label(x):
    return "cat" if x[0] > 0 else "dog"


def test_before_the_first_model_a_ticket_says_that_it_is_a_guess(make):
    agent = make(**SPARING, max_total=0)
    ticket = agent.observe([1, 2, 3])
    assert ticket.status == "announced"
    assert "one of the first" in ticket.why or ticket.why.startswith("guess: nothing learned yet")
    free = make(strategy="sparing", query_cost=1000.0, path=agent._runtime.store.backend.path.with_name("dear.db"))
    assert free.observe([1, 2, 3]).why == "guess: nothing learned yet"


def test_held_tickets_are_announced_once_there_is_a_model(make, path):
    agent = make(**SPARING, hold=True, max_open=30)
    X = stream(150)
    tickets = agent.observe_many(X)
    held = [ticket for ticket in tickets if ticket.status == "held"]
    assert len(held) == 120
    assert {(t.prediction, t.asks, t.probabilities == {}) for t in held} == {(None, False, True)}
    assert held[0].why.startswith("held: nothing learned yet; not asked, for")
    told = agent.stats()
    assert (told.held, told.errors_cost) == (120, 0.0), "nothing was announced, so nothing can be wrong"
    _, seen = agent.changes()
    for ticket, x in zip(tickets, X, strict=True):
        if ticket.asks:
            agent.answer(ticket.id, label(x))
    after = {entry.id: entry for entry in agent.history()}
    announced = [after[ticket.id] for ticket in held]
    assert {entry.status for entry in announced} == {"announced"}
    truth = {ticket.id: label(x) for ticket, x in zip(tickets, X, strict=True)}
    right = np.mean([entry.prediction == truth[entry.id] for entry in announced])
    assert right >= 0.85, "by a model, and not by a guess"
    assert announced[0].probabilities
    changed = {entry.id for entry in agent.changes(seen, limit=1000)[0]}
    assert {ticket.id for ticket in held} <= changed, "the feed tells it"
    assert agent.observe([1, 2, 3]).status != "held"
    assert agent.stats().held == 0
    agent.close()
    assert check(path).problems == []
    again = sp.Agent.open(path)
    assert [(e.id, e.prediction) for e in again.history()][:150] == [(i, e.prediction) for i, e in after.items()]
    again.close()


def test_a_held_ticket_can_be_answered_withdrawn_and_erased_but_not_skipped(make):
    agent = make(**SPARING, hold=True, max_total=0)
    for i in range(4):
        assert agent.observe([i, 2, 3], id=f"n{i}").status == "held"
    with pytest.raises(ConflictError, match="'n0' is held"):
        agent.skip("n0")
    agent.answer("n0", "dog")
    agent.withdraw("n1")
    agent.erase("n2")
    assert [entry.status for entry in agent.history()] == ["answered", "withdrawn", "held", "held"]
    agent.teach(stream(60), [label(x) for x in stream(60)])
    assert [(entry.status, entry.prediction is None) for entry in agent.history()][2:] == [("announced", False)] * 2


@pytest.mark.usefixtures("forked_trainers")
def test_a_background_agent_holds_until_its_trainer_has_a_model(make):
    agent = make(**SPARING, hold=True, training="background", clock=__import__("time").time)
    X = stream(400, seed=3)
    errors = guesses = 0
    for i, x in enumerate(X):
        ticket = agent.observe(x, id=f"n{i}")
        guesses += ticket.why.startswith("guess")
        if ticket.asks:
            agent.answer(ticket.id, label(x))
    for i, x in enumerate(X):
        entry = agent.wait(f"n{i}", 0)
        while entry.status == "held":
            agent.announce_held()
            entry = agent.wait(f"n{i}", 0.2)
        errors += entry.status == "announced" and entry.prediction != label(x)
    assert guesses == 0
    assert errors <= 60, f"{errors} of 400, where guessing makes 200"


def test_over_http_a_held_ticket_has_no_prediction(served, ask):
    body = {"name": "holds", "classes": ["cat", "dog"], "strategy": "sparing", "max_total": 0, "hold": True}
    assert ask("admin", "POST", "/api/agents", body).status_code == 201
    at = "/api/agents/holds"
    ticket = ask("producer", "POST", f"{at}/observations", {"features": [1, 2, 3], "id": "one"}).json()
    assert (ticket["prediction"], ticket["status"]) == (None, "held")
    found = ask("admin", "GET", f"{at}/search?status=held").json()["tickets"]
    assert [(one["id"], one["prediction"], one["reason"][:5]) for one in found] == [("one", None, "held:")]
    assert ask("producer", "GET", f"{at}/ticket?ticket=one").json()["prediction"] is None
    assert json.loads(ask("admin", "GET", f"{at}/board").text)["statistics"]["held"] == 1
