"""Statistics that say what is known, and how sure they are."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sparingly as sp
from sparingly.live.agent.errors import ConflictError
from sparingly.live.statistics import ticket_counts
from sparingly.live.statistics.performance import over_time, statistics
from sparingly.live.statistics.ticket_counts import TicketCounts
from sparingly.live.tickets.ticket_records import Statistics

Make = Callable[..., sp.Agent]


def serve(agent: sp.Agent, n: int, seed: int = 0) -> list[bool]:
    """A stream whose class is the sign of the first feature, told when asked; which announcements were right."""
    right = []
    for x in np.random.default_rng(seed).normal(size=(n, 3)):
        truth = "dog" if x[0] + 0.5 * x[1] > 0.3 else "cat"
        ticket = agent.observe(x)
        if ticket.asks:
            agent.answer(ticket.id, truth)
        else:
            right.append(ticket.prediction == truth)
    return right


def test_the_accuracy_is_honest(make: Make) -> None:
    agent = make(strategy="random", options={"p": 0.3}, query_cost=0.5)
    right = serve(agent, 300)
    stats = agent.stats()
    assert stats.observations == 300
    assert stats.questions == stats.answered == 300 - len(right)
    assert stats.accuracy is not None
    assert stats.accuracy == pytest.approx(np.mean(right), abs=0.1)
    assert stats.accuracy_low is not None
    assert stats.accuracy_high is not None
    assert stats.accuracy_low < stats.accuracy < stats.accuracy_high < stats.accuracy_low + 0.2
    assert stats.sample == pytest.approx(stats.questions)
    assert stats.always_asking == 150
    assert stats.questions_cost == 0.5 * stats.questions
    assert stats.errors_cost == pytest.approx((1 - stats.accuracy) * len(right))
    assert 0.3 * 300 < stats.never_asking < 0.5 * 300


def test_what_nothing_tells_is_none(make: Make) -> None:
    agent = make(strategy="neural_cbp", options={"epochs": 2, "width": 16})
    serve(agent, 60)
    stats = agent.stats()
    assert stats.accuracy is None
    assert stats.cost is None
    assert stats.questions > 0


def test_questions_at_random_tell_what_a_strategy_does_not(make: Make) -> None:
    agent = make(strategy="never_ask", options={"start": 20}, audit_rate=0.25)
    right = serve(agent, 300)
    stats = agent.stats()
    assert 20 + 40 < stats.questions < 20 + 110
    assert stats.sample == pytest.approx(stats.questions - 20)
    assert stats.accuracy_low is not None
    assert stats.accuracy_high is not None
    assert stats.accuracy_low < float(np.mean(right)) < stats.accuracy_high
    assert any("asked at random" in entry.why for entry in agent.history())


def numbers(stats: Any) -> dict[str, Any]:
    """The statistics but for the bill, which experts without a name have not."""
    assert stats.bill == {}
    return {name: value for name, value in dict(stats).items() if name != "bill"}


def test_over_time_ends_at_now(make: Make) -> None:
    agent = make(strategy="random", options={"p": 0.3})
    serve(agent, 100)
    points = agent.over_time(10)
    assert len(points) == 10
    observed = [point.observations for point in points]
    assert observed == sorted(observed)
    last, now = numbers(points[-1]), numbers(agent.stats())
    for name in ("accuracy", "accuracy_low", "accuracy_high", "sample"):
        last.pop(name), now.pop(name)
    assert last == pytest.approx(now)


def test_an_agent_that_has_seen_nothing(make: Make) -> None:
    stats = make().stats()
    assert (stats.observations, stats.cost, stats.accuracy, stats.never_asking) == (0, 0.0, None, 0.0)
    assert make().over_time() == []


def counted_anew(agent: sp.Agent) -> tuple[Statistics, list[Statistics]]:
    """What an agent that is opened now, and has counted nothing yet, would say."""
    fresh = TicketCounts()
    with agent._runtime.reading() as connection:
        fresh.update(connection)
    game = agent.settings.game
    return statistics(fresh, game), over_time(fresh, game, 7)


def test_what_is_kept_up_to_date_is_what_counting_anew_gives(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old and new tickets change in every way, while blocks take in their neighbours."""
    monkeypatch.setattr(ticket_counts, "MOST", 16)
    agent = make(strategy="random", options={"p": 0.4}, audit_rate=0.1)
    rng = np.random.default_rng(3)
    changes = [
        lambda ticket: agent.answer(ticket, "dog"),
        lambda ticket: agent.answer(ticket, "cat"),
        agent.skip,
        agent.dont_know,
        agent.withdraw,
        agent.reopen,
    ]
    for _ in range(30):
        agent.observe_many(rng.normal(size=(int(rng.integers(1, 9)), 3)))
        tickets = [entry.id for entry in agent.history()]
        for which in rng.integers(len(tickets), size=4):
            with contextlib.suppress(ConflictError):
                changes[int(rng.integers(len(changes)))](tickets[which])
        now, parts = counted_anew(agent)
        assert numbers(agent.stats()) == pytest.approx(numbers(now))
        assert [numbers(part) for part in agent.over_time(7)] == [pytest.approx(numbers(part)) for part in parts]
    assert len(agent._runtime.queries._ticket_counts._blocks) <= 16
    assert agent.stats().withdrawn > 0
    assert agent.stats().observations == len(agent.history())


def test_only_blocks_in_which_something_happened_are_read_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = make(strategy="random", options={"p": 0.5})
    tickets = agent.observe_many(np.random.default_rng(0).normal(size=(600, 3)))
    agent.stats()
    read = []
    monkeypatch.setattr(ticket_counts, "_counted", lambda c, size, first, last: read.append((first, last)) or [])
    agent.stats()
    assert read == []
    agent.answer(tickets[10].id, "dog")
    agent.observe([1, 2, 3])
    agent.stats()
    assert read == [(10, 10), (601, 601)]


def test_what_never_asking_costs_is_not_known_before_an_answer(make: Callable[..., sp.Agent]) -> None:
    agent = make()
    ticket = agent.observe([1, 2, 3])
    assert agent.stats().never_asking is None
    agent.answer(ticket.id, "dog")
    assert agent.stats().never_asking == 0
