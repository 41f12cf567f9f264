"""Statistics that say what is known, and how sure they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import sparingly as sp

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


def test_over_time_ends_at_now(make: Make) -> None:
    agent = make(strategy="random", options={"p": 0.3})
    serve(agent, 100)
    points = agent.over_time(10)
    assert len(points) == 10
    observed = [point.observations for point in points]
    assert observed == sorted(observed)
    last, now = dict(points[-1]), dict(agent.stats())
    for name in ("accuracy", "accuracy_low", "accuracy_high", "sample"):
        last.pop(name), now.pop(name)
    assert last == pytest.approx(now)


def test_an_agent_that_has_seen_nothing(make: Make) -> None:
    stats = make().stats()
    assert (stats.observations, stats.cost, stats.accuracy, stats.never_asking) == (0, 0.0, None, 0.0)
    assert make().over_time() == []
