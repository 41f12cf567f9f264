"""An agent takes rows with words, dates and missing values, and texts, as they are."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sparingly as sp
from sparingly.encoders import text_encoder
from sparingly.live.agent.errors import AgentError, StoreError
from sparingly.live.training.strategy_maker import maker

ROW = {"age": 39, "job": "clerk", "since": None}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "agent.db")


def lengths(texts):
    return [[float(len(text)), float(text.count(" "))] for text in texts]


def doubled(texts):
    return [[2.0 * len(text), float(text.count(" "))] for text in texts]


def test_words_dates_and_gaps_from_the_first_observation_on(path):
    with sp.Agent(["yes", "no"], path=path) as agent:
        agent.observe(ROW)
        agent.observe({"age": None, "job": "smith", "since": "2024-05-31"})
        agent.observe({"age": "41", "job": "clerk", "since": "spring"})
        width = agent.settings.shape
        assert agent.settings.schema.table.fields["job"].values == ("clerk", "smith")
        assert "job: category (2 of 32 known)" in repr(agent)
        assert [q.payload.content for q in agent.questions(limit=1)] == [ROW]
    with sp.Agent.open(path) as again:
        assert again.settings.shape == width
        again.observe({"age": 1, "job": "baker", "since": 3})
        assert again.settings.schema.table.fields["job"].values == ("clerk", "smith", "baker")
        assert again.settings.shape == width
        assert again.scores([ROW]).shape == (1, 2)


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ({**ROW, "age": "old"}, "field 'age' is 'old': it must be a number"),
        ({"age": 1, "job": "clerk"}, "field 'since' is missing"),
        ({**ROW, "height": 3}, r"field 'height' is unknown \(3\)"),
        ("a text", "an observation is the text 'a text'"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_and_changes_nothing(path, row, line):
    with sp.Agent(["yes", "no"], path=path) as agent:
        agent.observe(ROW)
        before = agent.settings
        with pytest.raises(AgentError, match=line):
            agent.observe_many([{**ROW, "job": "new"}, row])
        assert agent.settings == before
        assert agent.count_events() == 1


def test_a_schema_that_is_stated_is_kept_and_another_is_refused(path):
    stated = {"age": "number", "job": ["clerk", "smith"]}
    sp.Agent(["yes", "no"], path=path, schema=stated).close()
    with sp.Agent(["yes", "no"], path=path, schema=stated) as agent:
        agent.observe({"age": 3, "job": "baker"})
    with sp.Agent(["yes", "no"], path=path, schema=stated) as agent:
        assert agent.settings.schema.table.fields["job"].values == ("clerk", "smith", "baker")
    with pytest.raises(StoreError, match="whose schema is age: number, job: category"):
        sp.Agent(["yes", "no"], path=path, schema={"age": "number", "job": "date"})
    with pytest.raises(AgentError, match="field 'age' is 'numeric'"):
        sp.Agent(["yes", "no"], path=f"{path}2", schema={"age": "numeric"})
    with pytest.raises(AgentError, match="leave n_features out"):
        sp.Agent(["yes", "no"], 3, path=f"{path}2", schema=stated)
    assert not Path(f"{path}2").exists()


def test_a_number_that_is_missing_later_is_filled_where_all_were_numbers(path):
    with sp.Agent(["yes", "no"], path=path) as agent:
        agent.observe({"a": 4.0, "b": 2})
        agent.observe({"a": None, "b": 3})
        assert (agent.settings.shape, agent.settings.names) == ((2,), ("a", "b"))
    with sqlite3.connect(path) as connection:
        kept = [np.frombuffer(x, "<f4").tolist() for (x,) in connection.execute("select x from observations")]
    assert kept == [[4, 2], [4, 3]]


def test_texts_are_observed_and_shown(path):
    with sp.Agent(["yes", "no"], path=path, encoder="hashing") as agent:
        agent.observe("where is my card?", id="one")
        assert agent.observe("where is my card?", id="one").id == "one"
        agent.observe_many(["another text", b"a third"])
        agent.observe({"text": "by name"})
        assert [q.payload.content for q in agent.questions(limit=None)] == [
            "where is my card?",
            "another text",
            "a third",
            "by name",
        ]
        for bad in ("", b"\xff", "x" * 10_000_000, None, 3):
            with pytest.raises(AgentError, match="text"):
                agent.observe(bad)
        assert agent.count_events() == 4
    with pytest.raises(StoreError, match="text encoder is hashing, not static"):
        sp.Agent(["yes", "no"], path=path, encoder="static")


def test_a_strategy_is_told_what_the_classes_of_texts_are_called(path):
    with sp.Agent(["lost card", "late_transfer"], path=path, encoder="static") as agent:
        agent.observe("where is my card?")
        agent.add_class("exchange rates")
        names = agent._runtime.decider.strategy.knowledge.beliefs._names
        expected = text_encoder("static")(["lost card", "late transfer", "exchange rates"])
        np.testing.assert_array_equal(names.vectors.numpy(), expected)
    with sp.Agent.open(path) as agent:
        agent.observe("and my money?")
        again = agent._runtime.decider.strategy.knowledge.beliefs._names
        np.testing.assert_array_equal(again.vectors.numpy(), expected)
        before = replace(agent._runtime.store.settings, tells_names=False)
        assert maker(before, None)().knowledge.beliefs._names is None


@pytest.mark.parametrize("first", [[0.5, 1.0], {"note": "a long text of words", "n": 3}])
def test_names_say_nothing_where_an_observation_is_no_single_text(path, first):
    with sp.Agent(["yes", "no"], path=path, encoder="static") as agent:
        agent.observe(first)
        assert agent._runtime.decider.strategy.knowledge.beliefs._names is None


def test_an_own_encoder_has_to_be_given_again_and_another_is_refused(path):
    with sp.Agent(["yes", "no"], path=path, encoder=lengths) as agent:
        agent.observe("abc d")
    with sp.Agent.open(path) as agent, pytest.raises(AgentError, match=r"your own .*lengths: pass it as encoder="):
        agent.observe("more")
    with pytest.raises(StoreError, match=r"the texts were encoded by .*lengths"):
        sp.Agent.open(path, encoder=doubled)
    with sp.Agent.open(path, encoder=lengths) as agent:
        agent.observe("more")
        assert agent.count_events() == 2


def test_a_table_with_a_text_among_its_fields_can_be_exported(path, tmp_path):
    with sp.Agent(["yes", "no"], path=path, schema={"n": "number", "note": "text"}, encoder=lengths) as agent:
        ticket = agent.observe({"n": 1, "note": "ab c"})
        agent.observe({"n": None, "note": None})
        agent.answer(ticket.id, "yes")
        agent.export(tmp_path / "labels.csv")
    header, first = (tmp_path / "labels.csv").read_text().splitlines()
    assert header.startswith("id,n,n is missing,note[0],note[1],note is missing,label")
    assert first.startswith("t.1,1.0,0.0,4.0,1.0,0.0,yes")
