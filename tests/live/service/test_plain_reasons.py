"""Reasons for people: what the agent holds likely, told without the guess where the guess is not to be told."""

from __future__ import annotations

import numpy as np
import pytest

from sparingly.live.service.page.plain_reasons import plain_reason
from tests.live.served import AT

CLOSE = {"cat": 0.48, "dog": 0.41, "cow": 0.11}


@pytest.mark.parametrize(
    ("probabilities", "asks", "numbers", "told"),
    [
        (CLOSE, True, {"risk": 0.5}, "two guesses are close: cat 48 %, dog 41 %"),
        (
            {"a": 0.3, "b": 0.3, "c": 0.2, "d": 0.2},
            True,
            {"risk": 0.5},
            "several guesses are close: a 30 %, b 30 %, c 20 %, d 20 %",
        ),
        ({"a": 0.6, "b": 0.2, "c": 0.2}, True, {"risk": 0.5}, "a is only 60 % likely"),
        ({"a": 0.9, "b": 0.1}, True, {"risk": 3.0, "price": 1.0}, "a mistake would cost more than the question"),
        ({"a": 0.9, "b": 0.1}, True, {"risk": 0.1, "price": 1.0}, "the answer will help with others like it"),
        ({"a": 0.99, "b": 0.01}, True, {"audit": True}, "a random check: a is 99 % likely"),
        ({"a": 0.99, "b": 0.01}, False, {"risk": 0.5}, "a is 99 % likely: asking would cost more than it saves"),
        ({"a": 0.5, "b": 0.5}, True, {"start": 60}, "it is still learning: the reason"),
        ({"a": 0.5, "b": 0.5}, True, {"risk": 0.5}, "the reason"),
        ({}, True, {"risk": 0.5}, "the reason"),
        (CLOSE, True, {}, "the reason"),
    ],
)
def test_a_reason_in_plain_words(probabilities, asks, numbers, told):
    assert told in plain_reason("the reason", asks, probabilities, numbers)


def test_a_question_that_a_limit_forbade_says_so():
    why = "the label is worth 2; not asked, for 5 questions are open"
    assert (
        plain_reason(why, False, CLOSE, {"risk": 0.5})
        == "cat is 48 % likely: it was not asked, for 5 questions are open"
    )


@pytest.mark.parametrize(("reveal", "tells"), [("before", True), ("after", False), ("never", False)])
def test_a_question_tells_the_guess_only_if_it_may(served, ask, reveal, tells):
    classes = [f"class {letter}" for letter in "abcdefgh"]
    made = {"classes": classes, "n_features": 2, "strategy": "sparing", "training": "inline", "audit_rate": 1.0}
    agent = served.service.agents.create("letters", reveal=reveal, **made)
    X = np.random.default_rng(0).normal(size=(60, 2))
    agent.teach(X, [classes[int(x[0] > 0) + 2 * int(x[1] > 0)] for x in X])
    agent.observe([0.02, 1.0])
    (question,) = ask("expert", "POST", "/api/agents/letters/questions").json()["questions"]
    assert (question["prediction"] is not None) == tells
    assert ("class" in question["reason"]) == tells
    held = agent.ticket(question["id"]).probabilities
    ranked = sorted(held, key=held.get, reverse=True)
    likely = question["likely"]
    expected = [] if reveal == "never" else ranked[: len(likely)] if tells else sorted(likely)
    assert likely == expected
    assert (max(held, key=held.get) in likely) == (reveal != "never")
    assert ask("expert", "POST", f"{AT}/questions").json()["questions"] == []
