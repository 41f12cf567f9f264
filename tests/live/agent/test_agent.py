"""The agent as its user sees it: what it announces, with which strategy, and the same again after a night."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch

import sparingly as sp
from sparingly.live.agent.errors import AgentError
from tests.live.conftest import QUICK, Make, stream


def test_a_ticket_says_what_is_announced_and_why(make: Make) -> None:
    ticket = make().observe([1.0, 2.0, 3.0])
    assert ticket.asks
    assert ticket.action == 2
    assert ticket.prediction in ("cat", "dog")
    assert isinstance(ticket.why, str)
    assert ticket.why


@pytest.mark.parametrize("name", sorted(sp.strategies()))
def test_every_strategy_serves_and_continues_bit_for_bit(make: Make, path: Path, name: str) -> None:
    known = inspect.signature(sp.strategies()[name]).parameters
    settings: dict[str, Any] = {"strategy": name, "options": {key: QUICK[key] for key in QUICK if key in known}}
    if name == "tspm":
        settings["query_cost"] = 0.3
    whole = make(path=path.with_name("whole.db"), **settings)
    agent = make(**settings)
    for i, x in enumerate(stream(20)):
        if i % 10 == 5:
            agent = sp.Agent.open(path)
        tickets = whole.observe(x), agent.observe(x)
        assert tickets[0] == tickets[1]
        if tickets[0].asks and i % 3:
            for one in (whole, agent):
                one.answer(tickets[0].id, "dog" if x[0] > 0 else "cat")
    agent.close()


def test_a_call_with_many_decides_as_many_calls_do(make: Make, path: Path) -> None:
    one_by_one = make(strategy="neural_cbp", options=QUICK)
    together = make(strategy="neural_cbp", options=QUICK, path=path.with_name("many.db"))
    X = stream(120)
    assert [one_by_one.observe(x) for x in X] == together.observe_many(X[:70]) + together.observe_many(X[70:])


def test_a_strategy_instance(make: Make, path: Path) -> None:
    game = sp.label_efficient(2)
    agent = make(strategy=sp.NeuralCBP(game, 3, seed=5, epochs=2, width=16, schedule="every 2"))
    pure = sp.NeuralCBP(game, 3, seed=5, epochs=2, width=16, schedule="every 2")
    X = stream(20)
    for x in X[:10]:
        ticket = agent.observe(x)
        decision = pure.decide(pure.assess(x[None]), 0)
        assert (ticket.action, ticket.asks) == (decision.action, decision.asks)
    agent.close()
    again = sp.Agent.open(path)
    assert [again.observe(x).action for x in X[10:]] == [pure.decide(pure.assess(x[None]), 0).action for x in X[10:]]
    again.close()


def test_an_instance_that_was_already_trained_begins_where_it_is(make: Make, path: Path) -> None:
    strategy = sp.NeuralCBP(sp.label_efficient(2), 3, seed=5, epochs=2, width=16, schedule="every 2")
    X = stream(30)
    for x in X[:10]:
        if strategy.decide(strategy.assess(x[None]), 0).asks:
            strategy.learn(x, 2, "1")
    agent = make(strategy=strategy)
    first = [agent.observe(x).why for x in X[10:20]]
    assert first == [strategy.decide(strategy.assess(x[None]), 0).why.words for x in X[10:20]]
    agent._runtime._decider = None
    agent.close()
    assert sp.Agent.open(path).observe(X[20]).why == strategy.decide(strategy.assess(X[20:21]), 0).why.words


def test_an_instance_that_cannot_be_made_again_is_asked_for(make: Make, path: Path) -> None:
    def network() -> torch.nn.Module:
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))

    def strategy() -> sp.Strategy:
        return sp.NeuralCBP(sp.label_efficient(2), 3, network=network(), schedule="every 2")

    make(strategy=strategy()).observe([1, 2, 3])
    with pytest.raises(AgentError, match="pass the strategy it was made with"):
        sp.Agent.open(path)
    again = sp.Agent.open(path, strategy=strategy())
    assert len(again.history()) == 1
    again.close()
