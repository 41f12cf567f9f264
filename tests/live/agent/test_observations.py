"""What can be observed: ids, names, images, costs; and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sparingly as sp
from sparingly.live.agent.errors import AgentError, ConflictError, UnknownTicketError
from tests.live.conftest import QUICK, Make, stream


def test_the_callers_own_id_is_idempotent(make: Make) -> None:
    agent = make()
    first = agent.observe([1, 2, 3], id="a")
    assert agent.observe([1, 2, 3], id="a") == first
    assert agent.observe_many([[1, 2, 3], [4, 5, 6], [4, 5, 6]], ids=["a", "b", "b"])[0] == first
    assert len(agent.history()) == 2
    with pytest.raises(ConflictError, match="id 'a' stands for an observation with other features"):
        agent.observe([1, 2, 4], id="a")
    with pytest.raises(AgentError, match=r"id 't\.7' is of the form"):
        agent.observe([1, 2, 4], id="t.7")
    assert len(agent.history()) == 2


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (lambda a: a.observe([1, float("nan"), 3]), AgentError, "feature 1 is nan"),
        (lambda a: a.observe([1, 2]), AgentError, "2 features, not 3"),
        (lambda a: a.observe([1, "x", 2]), AgentError, "feature 1 is 'x'"),
        (lambda a: a.observe_many([[1, 2, 3], [1, 2, np.inf]]), AgentError, "feature 2 is inf"),
        (lambda a: a.answer("0", "cow"), AgentError, "class 'cow' is unknown: the classes are cat, dog"),
        (lambda a: a.answer("0", 1), AgentError, "class 1 is unknown"),
        (lambda a: a.answer("nix", "cat"), UnknownTicketError, "there is no ticket 'nix'"),
        (lambda a: a.skip("nix"), KeyError, "there is no ticket 'nix'"),
        (lambda a: a.observe([1, 2, 3], payload=7), AgentError, "payload is .* not int"),
        (lambda a: a.observe([1, 2, 3], id=""), AgentError, "id ''"),
        (lambda a: a.questions("ann", lease_seconds=0), AgentError, "lease_seconds is 0"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(
    make: Make, act: Callable[[sp.Agent], Any], error: type[Exception], words: str
) -> None:
    agent = make()
    agent.observe([1, 2, 3], id="0")
    before = agent.history()
    with pytest.raises(error, match=words) as raised:
        act(agent)
    assert "\n" not in str(raised.value)
    assert agent.history() == before


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"classes": ["cat"]}, "two or more classes"),
        ({"classes": ["cat", "cat"]}, "'cat' is named twice"),
        ({"costs": [[0, 1, 2], [1, 0, 2]]}, r"costs has shape \(2, 3\)"),
        ({"costs": [[0, np.nan], [1, 0]]}, "announced cat, true dog"),
        ({"query_cost": float("inf")}, "inf"),
        ({"training": "sometimes"}, "training is 'sometimes'"),
        ({"strategy": "nix"}, "strategy 'nix' is unknown"),
        ({"strategy": "neural_cbp", "options": {"nix": 1}}, "nix"),
        ({"n_features": 0}, "n_features is 0"),
        ({"max_open": -1}, "max_open is -1"),
        ({"audit_rate": 2}, "audit_rate is 2"),
    ],
)
def test_bad_settings_leave_no_file(make: Make, path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make(**changes)
    assert list(path.parent.iterdir()) == []


def test_features_by_name_in_any_order_and_learned_from_the_first(make: Make, path: Path) -> None:
    agent = make(n_features=None)
    agent.observe({"a": 1, "b": 2.5})
    agent.observe(pd.Series({"b": 1.0, "a": 3.0}))
    frame = pd.DataFrame({"b": [1, 2], "a": [3, 4]})
    agent.observe_many(frame)
    for row in frame.itertuples():
        agent.observe(row)
    assert [q.features for q in agent.questions(limit=None)] == [(1, 2.5), (3, 1), (3, 1), (4, 2), (3, 1), (4, 2)]
    unnamed = make(path=path.with_name("unnamed.db"))
    unnamed.observe([1, 2, 3])
    with pytest.raises(AgentError, match="feature 'a' is named, but the first observation had no names"):
        unnamed.observe({"a": 1, "b": 2, "c": 3})
    with pytest.raises(AgentError, match="feature 'b' is missing"):
        agent.observe({"a": 1})
    with pytest.raises(AgentError, match="feature 'c' is unknown"):
        agent.observe({"a": 1, "b": 2, "c": 3})
    with pytest.raises(AgentError, match="feature 'b' is 'red'"):
        agent.observe({"a": 1, "b": "red"})


def test_images_keep_their_shape(make: Make, path: Path) -> None:
    agent = make(n_features=None, strategy="neural_cbp", options={**QUICK, "network": "lenet"})
    agent.observe(np.zeros((28, 28), dtype=np.uint8), payload=b"\x89PNG\r\n")
    agent.close()
    again = sp.Agent.open(path)
    assert again.settings.shape == (1, 28, 28)
    again.observe(np.zeros((1, 28, 28)))
    again.close()


def test_named_costs_reach_the_game(make: Make) -> None:
    frame = pd.DataFrame([[0, 5], [1, 0]], index=["cat", "dog"], columns=["cat", "dog"])
    frame.index.name, frame.columns.name = "true", "announced"
    agent = make(costs=frame, query_cost=2.0)
    assert agent.settings.costs == ((0.0, 1.0), (5.0, 0.0), (2.0, 2.0))
    with pytest.raises(AgentError, match="name them 'announced' and 'true'"):
        make(costs=pd.DataFrame([[0, 5], [1, 0]]))


def test_coarse_questions_take_a_class_or_a_part(make: Make) -> None:
    classes = ["cat", "dog", "cow"]
    parts = [[["cat", "dog"], ["cow"]], [["cat"], ["dog", "cow"]]]
    game = sp.label_efficient(classes=classes, experts=0, questions=parts)
    agent = make(classes=classes, game=game, strategy="neural_cbp")
    for x in stream(8):
        agent.observe(x)
    coarse = {q.choices: q.id for q in agent.questions(limit=None)}
    assert set(coarse) == {("cat dog", "cow"), ("cat", "dog cow")}
    agent.answer(coarse["cat dog", "cow"], "cat dog")
    agent.answer(coarse["cat", "dog cow"], "cow")
    labels = {e.id: e.label for e in agent.history()}
    assert labels[coarse["cat dog", "cow"]] == "cat dog"
    assert labels[coarse["cat", "dog cow"]] == "cow"
