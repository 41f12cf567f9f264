"""Costs that change while an agent lives: decided with from then on, journaled, replayed, or refused."""

from __future__ import annotations

import numpy as np
import pytest

import sparingly as sp
from sparingly.live.agent.errors import AgentError
from sparingly.live.store.integrity_check import check
from tests.live.conftest import stream


def taught(make, n=120, **options):
    agent = make(strategy="sparing", classes=["cat", "dog"], **options)
    X = stream(n)
    agent.teach(X, ["cat" if x[0] > 0 else "dog" for x in X])
    return agent


def sides(agent, seed=5, n=60):
    """How often it announces dog where it is nearly sure of neither."""
    X = stream(n, seed) * np.array([0.05, 1, 1])
    tickets = agent.observe_many(X)
    return sum(ticket.prediction == "dog" for ticket in tickets)


def test_an_agent_decides_with_the_costs_that_were_set(make):
    agent = taught(make, query_cost=20.0)
    even = sides(agent)
    agent.set_costs([{"announced": "cat", "true": "dog", "cost": 9}])
    assert agent.settings.costs == ((0, 9), (1, 0), (20, 20))
    careful = sides(agent)
    assert careful > even, "where it is not sure it says dog, which is cheap if it is wrong"
    agent.set_costs("0 1; 9 0", query_cost=0.5)
    assert agent.settings.costs == ((0, 1), (9, 0), (0.5, 0.5))
    assert sides(agent) < even


def test_costs_are_replayed_after_a_crash_and_from_the_beginning(make, path):
    agent = taught(make)
    agent.observe_many(stream(20, 3))
    agent.set_costs("0 4; 1 0")
    agent.add_class("cow")
    agent.set_costs(None, query_cost=0.7)
    tickets = agent.observe_many(stream(20, 4))
    scores = agent.scores(stream(10, 6))
    agent.close()
    assert check(path).problems == []
    again = sp.Agent.open(path)
    assert again.settings.costs == ((0, 4, 4), (1, 0, 4), (4, 4, 0), (0.7, 0.7, 0.7))
    np.testing.assert_array_equal(again.scores(stream(10, 6)), scores)
    with again._runtime.writing() as connection:
        connection.exec_driver_sql("DELETE FROM snapshots")
    again.close()
    replayed = sp.Agent.open(path)
    np.testing.assert_array_equal(replayed.scores(stream(10, 6)), scores)
    entries = replayed.history()[-20:]
    assert [(one.id, one.why) for one in entries] == [(one.id, one.why) for one in tickets]
    replayed.close()


def test_an_agent_is_the_same_by_its_first_costs_and_by_its_last(make):
    taught(make).set_costs("0 4; 1 0")
    for costs in (None, "0 4; 1 0"):
        assert make(strategy="sparing", costs=costs).settings.costs[0] == (0, 4)
    with pytest.raises(AgentError, match="costs is"):
        make(strategy="sparing", costs="0 5; 1 0")


@pytest.mark.usefixtures("forked_trainers")
def test_a_running_background_agent_takes_them_too(make):
    agent = taught(make, query_cost=20.0, training="background")
    agent.set_costs([{"announced": "cat", "true": "dog", "cost": 9}])
    assert sides(agent) > 35


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"costs": "0 1; 1"}, "matrix"),
        ({"costs": "0 1 1; 1 0 1; 1 1 0"}, "costs"),
        ({"costs": "0 -1; 1 0"}, "-1"),
        ({"query_cost": -1}, "-1"),
        ({"query_cost": "dear"}, "dear"),
        ({"costs": [{"announced": "cow", "true": "dog", "cost": 9}]}, "cow"),
    ],
)
def test_costs_that_make_no_sense_change_nothing(make, given, words):
    agent = taught(make, n=30)
    before, events = agent.settings, agent.count_events()
    with pytest.raises(AgentError, match=words):
        agent.set_costs(given.get("costs"), query_cost=given.get("query_cost"))
    assert (agent.settings, agent.count_events()) == (before, events)
    agent.set_costs("0 1; 1 0")
    assert agent.count_events() == events, "they are so already"


def test_a_strategy_that_cannot_refuses_with_the_reason(make):
    agent = make(strategy="neural_cbp")
    with pytest.raises(AgentError, match="strategy neural_cbp cannot change its costs"):
        agent.set_costs("0 4; 1 0")
    assert agent.settings.costs[0] == (0, 1)


def test_experts_keep_their_prices(make):
    agent = make(strategy="sparing", experts=[sp.Expert("junior", price=0.1), sp.Expert("human", price=1.0, gold=True)])
    with pytest.raises(AgentError, match="experts keep the prices they have"):
        agent.set_costs(query_cost=2.0)
    agent.set_costs("0 4; 1 0")
    assert agent.settings.costs[:2] == ((0, 4), (1, 0))
    agent.observe([1, 2, 3])
