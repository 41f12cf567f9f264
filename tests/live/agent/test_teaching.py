"""Labels that are there already: learned at once, free, counted apart, and the same again after a night."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import func, select

import sparingly as sp
from sparingly.live.agent.errors import AgentError, ConflictError
from sparingly.live.store.integrity_check import check
from sparingly.live.store.tables import journal
from tests.live.conftest import QUICK, Make, stream

KNOWN = stream(40, seed=9)
LABELS = ["dog" if x[0] > 0 else "cat" for x in KNOWN]


def test_labels_are_learned_free_and_counted_apart(make: Make) -> None:
    agent = make(strategy=None)
    assert agent.teach(KNOWN, LABELS) == 40
    stats = agent.stats()
    assert (stats.taught, stats.observations, stats.questions, stats.answered) == (40, 0, 0, 0)
    assert stats.questions_cost == 0
    assert agent.scores([[3.0, 0, 0]])[0, 1] > 0.8
    assert agent.history() == []


def test_one_call_is_one_event_and_one_training(make: Make) -> None:
    agent = make(strategy="neural_cbp", options=QUICK)
    agent.teach(KNOWN, LABELS)
    with agent._runtime.reading() as connection:
        assert connection.execute(select(func.count()).select_from(journal)).scalar_one() == 1
    strategy = agent._runtime.decider._learner.strategy  # type: ignore[attr-defined]
    assert (strategy.generation, strategy.n_taught, strategy.clock) == (1, 40, 0)


@pytest.mark.parametrize("name", ["sparing", "neural_cbp", "entropy"])
def test_a_taught_agent_continues_bit_for_bit(make: Make, path: Path, name: str) -> None:
    settings = {"strategy": name, "options": {} if name == "sparing" else QUICK}
    whole, agent = make(path=path.with_name("whole.db"), **settings), make(**settings)
    for i, x in enumerate(stream(24)):
        if i in (3, 15):
            for one in (whole, agent):
                assert one.teach(KNOWN[i : i + 20], LABELS[i : i + 20]) == 20
        if i % 6 == 4:
            agent = sp.Agent.open(path)  # the first is left as a crash would leave it
        tickets = whole.observe(x), agent.observe(x)
        assert tickets[0] == tickets[1]
        if tickets[0].asks:
            for one in (whole, agent):
                one.answer(tickets[0].id, "dog" if x[0] > 0 else "cat")
    agent.close()
    assert check(path).ok
    assert "40 labels were taught" in check(path).facts


def test_ids_make_a_repeated_call_harmless(make: Make) -> None:
    agent = make()
    ids = [f"k{i}" for i in range(40)]
    assert agent.teach(KNOWN[:30], LABELS[:30], ids=ids[:30]) == 30
    assert agent.teach(KNOWN, LABELS, ids=ids) == 10
    assert agent.teach(KNOWN, LABELS, ids=ids) == 0
    assert agent.teach(KNOWN[[0, 0]], LABELS[:1] * 2, ids=["new", "new"]) == 1
    assert agent.stats().taught == 41
    with pytest.raises(ConflictError, match="'k1' was taught with other features"):
        agent.teach(KNOWN[:1], LABELS[:1], ids=["k1"])
    with pytest.raises(ConflictError, match="'k0' was taught as another class"):
        agent.teach(KNOWN[:1], ["cat" if LABELS[0] == "dog" else "dog"], ids=["k0"])
    assert agent.stats().taught == 41


@pytest.mark.parametrize(
    ("X", "labels", "ids", "words"),
    [
        (KNOWN[:2], ["cat", "cow"], None, r"labels\[1\] is 'cow': the classes are cat, dog"),
        (KNOWN[:2], ["cat", None], None, r"labels\[1\] is None"),
        (KNOWN[:2], ["cat"], None, "1 labels for 2 observations"),
        (KNOWN[:2], "cat", None, "labels is 'cat': give a list"),
        (KNOWN[:2], ["cat", "dog"], ["a"], "1 ids for 2 observations"),
        ([[1, 2, 3], [1, float("nan"), 3]], ["cat", "dog"], None, "feature 1 is nan"),
        ([[1, 2]], ["cat"], None, "2 features, not 3"),
    ],
)
def test_what_makes_no_sense_is_refused_whole(make: Make, X, labels, ids, words: str) -> None:  # type: ignore[no-untyped-def]
    agent = make()
    with pytest.raises(AgentError, match=words):
        agent.teach(X, labels, ids=ids)
    assert agent.stats().taught == 0
    assert agent.count_events() == 0


def test_a_strategy_that_cannot_be_taught_refuses_before_anything_is_written(make: Make, path: Path) -> None:
    agent = make(strategy="feed_exp3", query_cost=0.3)
    with pytest.raises(AgentError, match="feed_exp3 weighs a symbol by the chance"):
        agent.teach(KNOWN, LABELS)
    assert agent.count_events() == 0
    agent.observe(KNOWN[0])


def test_raw_rows_of_a_data_frame_make_the_schema(make: Make) -> None:
    frame = pd.DataFrame({"age": [20, 60, None, 61] * 10, "job": ["clerk", "smith", "clerk", None] * 10})
    agent = make(n_features=None, strategy=None)
    labels = np.array(["cat", "dog", "cat", "dog"] * 10)
    assert agent.teach(frame, labels) == 40
    assert agent.observe({"age": 59, "job": "baker"}).prediction in agent.classes
    with pytest.raises(AgentError, match="field 'age' is missing"):
        agent.teach([{"wage": 3}], ["cat"])


def test_texts_can_be_taught(make: Make) -> None:
    agent = make(n_features=None, strategy=None, encoder="hashing")
    assert agent.teach(["win a prize", "see you at noon"] * 10, ["dog", "cat"] * 10) == 20
    assert agent.observe("win a prize").prediction == "dog"


@pytest.mark.usefixtures("forked_trainers")
def test_an_agent_that_trains_in_the_background_learns_them_too(make: Make) -> None:
    agent = make(strategy=None, training="background")
    agent.teach(KNOWN, LABELS)
    deadline = time.monotonic() + 60
    while agent.scores([[3.0, 0, 0]])[0, 1] < 0.8:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert agent.stats().taught == 40


def test_over_http_and_with_the_client(served, ask) -> None:  # type: ignore[no-untyped-def]
    body = {
        "observations": [{"features": [1, 2, 3], "label": "cat", "id": "a"}, {"features": [3, 2, 1], "label": "dog"}]
    }
    assert ask("producer", "POST", "/api/agents/default/teach", body).json() == {"taught": 2}
    body["observations"].append({"features": [0, 0, 0], "label": "cow"})
    refused = ask("producer", "POST", "/api/agents/default/teach", body)
    assert refused.status_code == 422
    assert "'cow'" in refused.json()["error"]
    assert ask("expert", "POST", "/api/agents/default/teach", body).status_code == 403
    assert ask("admin", "GET", "/api/agents/default/statistics").json()["taught"] == 2
    with served.on_a_socket() as url, sp.Client(url, served.tokens["producer"]) as client:
        assert client.teach(KNOWN, LABELS, ids=range(40)) == 40
        assert client.teach(KNOWN, LABELS, ids=range(40)) == 0
