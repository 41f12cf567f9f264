"""Allowances are spent over the whole way, and where questions are worth most."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparingly as sp
from sparingly.live.agent.errors import AgentError
from sparingly.live.agent.pacing import Allowance, QuestionAllowance
from sparingly.live.store.integrity_check import check
from tests.live.conftest import Clock, Make, stream


def asked(agent: sp.Agent, X: np.ndarray, many: int = 1) -> list[int]:
    """The places of the observations that were asked about."""
    tickets = [ticket for i in range(0, len(X), many) for ticket in agent.observe_many(X[i : i + many])]
    return [i for i, ticket in enumerate(tickets) if ticket.asks]


@pytest.mark.parametrize("many", [1, 50])
def test_questions_in_all_last_for_the_whole_stream(make: Make, many: int) -> None:
    agent = make(max_total=40, horizon=400)
    places = asked(agent, stream(400), many)
    assert len(places) == 40
    assert 10 <= sum(place < 40 for place in places) <= 28, "the first tenth has a share, not all of them"
    assert any(place >= 300 for place in places)
    more = agent.observe_many(stream(50, 1))
    assert not any(ticket.asks for ticket in more)
    assert more[0].why.endswith("not asked, for no more than 40 questions may be asked in all")


def test_money_in_all_is_spent_by_the_price(make: Make) -> None:
    agent = make(max_cost=5.0, query_cost=0.25, horizon=100)
    places = asked(agent, stream(100))
    assert len(places) == 20
    assert agent.stats().questions_cost == 5.0
    assert places[-1] >= 75


def test_a_day_is_paced_and_the_next_one_begins_anew(make: Make, clock: Clock) -> None:
    agent = make(max_per_day=24)
    first_hour = asked(agent, stream(100))
    assert 1 <= len(first_hour) <= 12
    for _ in range(23):
        clock.now += 3600
        asked(agent, stream(20), 20)
    assert 22 <= agent.stats().questions <= 24
    clock.now += 86400
    assert agent.observe([0, 0, 0]).asks


def test_a_limit_survives_a_restart(make: Make, path: Path, clock: Clock) -> None:
    whole, agent = make(max_total=15, horizon=120, path=path.with_name("whole.db")), make(max_total=15, horizon=120)
    for i, x in enumerate(stream(120)):
        if i % 30 == 29:
            agent = sp.Agent.open(path, clock=clock)
        assert agent.observe(x) == whole.observe(x)
    assert whole.stats().questions == 15
    agent.close()


def test_of_the_questions_wanted_those_worth_most_are_asked() -> None:
    rng = np.random.default_rng(0)
    allowance = QuestionAllowance([], [Allowance(100, 0, 0, 2000)])
    worth, chosen = rng.random(2000), []
    for i, one in enumerate(worth):
        allowance.observe(one)
        if allowance.refusal(one, 1.0) is None:
            chosen.append(i)
    assert 95 <= len(chosen) <= 100
    assert np.mean(worth[[i for i in chosen if i >= 500]]) > 0.9


def test_every_strategy_is_paced(make: Make, path: Path) -> None:
    for name in ("entropy", "random"):
        agent = make(strategy=name, max_total=5, horizon=60, path=path.with_name(f"{name}.db"))
        for x in stream(60):
            ticket = agent.observe(x)
            if ticket.asks:
                agent.answer(ticket.id, "dog" if x[0] > 0 else "cat")
        assert agent.stats().questions <= 5


def test_the_horizon_reaches_a_strategy_that_takes_it(make: Make, path: Path) -> None:
    agent = make(strategy="sparing", horizon=500)
    agent.observe([1, 2, 3])
    assert agent._runtime.decider._learner.strategy.purchase_rule.horizon == 500  # type: ignore[attr-defined]
    with pytest.raises(AgentError, match="horizon is 500, not 7"):
        make(strategy="sparing", horizon=7)
    with pytest.raises(AgentError, match="strategy 'entropy' takes no horizon"):
        make(strategy="entropy", horizon=500, path=path.with_name("other.db"))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_total": -1}, "max_total is -1"),
        ({"max_total": 2.5}, "max_total is 2.5"),
        ({"max_cost": float("nan")}, "max_cost is nan"),
        ({"max_cost": "much"}, "max_cost is 'much'"),
        ({"horizon": 0, "max_total": 3}, "horizon is 0"),
        ({"horizon": True, "max_total": 3}, "horizon is True"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Make, path: Path, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(AgentError, match=words):
        make(**settings)
    assert not path.exists()


def test_over_http(ask: Any) -> None:
    body = {
        "name": "paced",
        "classes": ["cat", "dog"],
        "strategy": "always_ask",
        "max_total": 2,
        "max_cost": 5,
        "horizon": 9,
    }
    assert ask("admin", "POST", "/api/agents", body).status_code == 201
    block = {"observations": [{"features": [i, 1]} for i in range(9)]}
    tickets = ask("producer", "POST", "/api/agents/paced/observations/batch", block).json()["tickets"]
    assert sum(ticket["asks"] for ticket in tickets) == 2
    assert ask("admin", "POST", "/api/agents", {**body, "name": "other", "horizon": 0}).status_code == 422


def test_a_strategy_does_not_wait_for_answers_to_questions_that_were_forbidden(make: Make, path: Path) -> None:
    agent = make(strategy="sparing", max_total=3, horizon=50)
    agent.observe_many(stream(20))
    again = sp.Agent.open(path)
    for one in (agent, again)[1:]:
        one.observe(stream(21)[20])
        with one._runtime.reading() as connection:
            one._runtime.decider.follow(connection, one.count_events())
        strategy = one._runtime.decider.strategy
        assert len(strategy.questions) == one.stats().open  # type: ignore[attr-defined]
        assert one.stats().open <= 3
    assert check(path).ok
    again.close()
