"""A class that turns up while an agent runs: nothing is lost, and the journal replays."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import sparingly as sp
from sparingly.learning import state_files
from sparingly.live.agent.errors import AgentError, ConflictError
from sparingly.live.store.integrity_check import check
from tests.live.conftest import QUICK
from tests.live.training.test_background import until

RNG = np.random.default_rng(0)
Y = RNG.integers(3, size=160)
X = (4 * np.eye(3)[Y] + RNG.normal(size=(160, 3))).astype(np.float32)
NAMES = ["cat", "dog", "cow"]


def live(agent, start, end, answer=True):
    """Observe, and answer what is asked."""
    for i in range(start, end):
        ticket = agent.observe(X[i], id=f"o{i}")
        if ticket.asks and answer:
            agent.answer(ticket.id, NAMES[Y[i]], new_class=True)


def state(agent):
    decider = agent._runtime.decider
    return state_files.dump(decider._learner.strategy.state_dict())


def told(agent):
    return [(e.id, e.prediction, e.asks, e.action, e.label, e.status, e.why) for e in agent.history()]


@pytest.mark.parametrize("strategy", ["sparing", "neural_cbp"])
def test_a_class_is_added_and_the_agent_goes_on_bit_for_bit(make, path, strategy) -> None:
    options = {**QUICK, "preset": "paper"} if strategy == "neural_cbp" else {"width": 16}
    agent = make(strategy=strategy, options=options)
    agent.observe_many(X[:20], ids=range(20))
    for ticket in agent.pending():
        agent.answer(ticket.id, NAMES[min(1, Y[int(ticket.id)])])
    before = agent.stats()
    agent.add_class("cow")
    assert agent.classes == ("cat", "dog", "cow")
    assert agent.stats() == before
    live(agent, 20, 60)
    assert "cow" in {entry.label for entry in agent.history()}
    kept, entries = state(agent), told(agent)
    copy = path.with_name("killed.db")
    shutil.copy(path, copy)  # as if the process had died here
    for suffix in ("-wal", "-shm"):
        if path.with_name(path.name + suffix).exists():
            shutil.copy(path.with_name(path.name + suffix), copy.with_name(copy.name + suffix))
    agent.close()
    for place in (path, copy):
        with sp.Agent.open(place) as opened:
            assert opened.classes == ("cat", "dog", "cow")
            assert state(opened) == kept
            assert told(opened) == entries
        assert check(place).ok, check(place).problems


def test_the_whole_journal_replays_to_the_same_state(make, path) -> None:
    agent = make(strategy="sparing", options={"width": 16})
    live(agent, 0, 40)
    assert agent.classes == ("cat", "dog", "cow")
    kept = state(agent)
    with agent._runtime.writing() as connection:
        connection.exec_driver_sql("DELETE FROM snapshots")
    agent.close()
    with sp.Agent.open(path) as opened:
        assert state(opened) == kept


def test_an_answer_from_before_the_class_can_be_taken_back(make) -> None:
    agent = make(strategy="sparing", options={"width": 16})
    live(agent, 0, 40)
    first = next(e for e in agent.history() if e.label == "cat")
    agent.answer(first.id, "cow")
    assert agent.ticket(first.id).label == "cow"
    other = next(e for e in agent.history() if e.label == "dog")
    agent.reopen(other.id)
    assert agent.ticket(other.id).status == "open"
    assert agent.pending()[0].action == 3  # the question's number has grown with the classes
    live(agent, 40, 60)


def test_open_questions_take_the_new_class(make) -> None:
    agent = make(strategy="sparing")
    ticket = agent.observe(X[0])
    agent.add_class("cow", cost=2.0)
    (question,) = agent.questions()
    assert question.choices == ("cat", "dog", "cow")
    agent.answer(ticket.id, "cow")
    assert agent.settings.game.costs.tolist() == [[0, 1, 2], [1, 0, 2], [2, 2, 0], [1, 1, 1]]
    assert agent.stats().questions_cost == 1.0


def test_before_the_first_observation(make, path) -> None:
    agent = make(n_features=None, strategy="sparing")
    agent.add_class("cow")
    live(agent, 0, 30)
    agent.close()
    with sp.Agent(["cat", "dog"], path=path, strategy="sparing") as again:  # as it was made
        assert again.classes == ("cat", "dog", "cow")
    with pytest.raises(AgentError, match=r"classes is \['cat', 'dog', 'cow'\]"):
        sp.Agent(["cat", "dog", "pig"], path=path, strategy="sparing")


@pytest.mark.parametrize(
    ("label", "cost", "words"),
    [
        ("cat", None, "class 'cat' is named twice"),
        ("", None, "class ''"),
        (["x"], None, "must be a string or a number"),
        ("cow", float("nan"), "cost is nan"),
        ("cow", -1, "cost is -1"),
    ],
)
def test_what_cannot_be_a_class_changes_nothing(make, label, cost, words) -> None:
    agent = make(strategy="sparing")
    live(agent, 0, 3, answer=False)
    events = agent.count_events()
    with pytest.raises(AgentError, match=words.replace("[", r"\[")):
        agent.add_class(label, cost=cost)
    assert (agent.classes, agent.count_events()) == (("cat", "dog"), events)


def test_a_strategy_that_cannot_grow_refuses_before_anything_is_written(make) -> None:
    agent = make(strategy="margin")
    ticket = agent.observe(X[0])
    for attempt in (lambda: agent.add_class("cow"), lambda: agent.answer(ticket.id, "cow", new_class=True)):
        with pytest.raises(AgentError, match="strategy margin cannot take on class 'cow'"):
            attempt()
    assert agent.count_events() == 1


def test_a_refused_answer_adds_no_class(make, clock) -> None:
    agent = make(strategy="sparing")
    agent.observe(X[0])
    (question,) = agent.questions("ann", lease_seconds=10)
    clock.now += 11
    with pytest.raises(ConflictError, match="has run out"):
        agent.answer(question.id, "cow", expert="ann", new_class=True)
    assert agent.classes == ("cat", "dog")
    assert agent.count_events() == 1
    agent.answer(question.id, "dog", new_class=True)  # known already: an answer like any other


@pytest.mark.usefixtures("forked_trainers")
def test_training_in_the_background_grows_too(make, path) -> None:
    agent = make(strategy="sparing", options={"width": 16}, training="background")
    live(agent, 0, 60)
    head = agent.count_events()
    decider = agent._runtime.decider
    until(lambda: decider._latest is not None and decider._latest[0] >= head - 60)
    agent.observe(X[0])
    assert agent.scores(X[:2]).shape == (2, 3)
    agent.close()
    with sp.Agent.open(path, training="inline") as opened:
        assert opened.scores(X[:2]).shape == (2, 3)


def test_another_process_on_the_same_database_learns_of_the_class(make, postgres) -> None:
    one, other = (make(path=postgres, strategy="sparing", options={"width": 16}) for _ in range(2))
    live(one, 0, 10, answer=False)
    other.observe(X[10], id="b")
    one.add_class("cow")
    assert other.pending()[0].action == 3
    other.answer("b", "cow")
    assert one.ticket("b").label == "cow"
    assert other.classes == one.classes == ("cat", "dog", "cow")
    one.answer("o3", "cow")
    assert other.scores(X[:2]).shape == (2, 3)


def test_whoever_reads_while_a_class_is_being_added_knows_it(make) -> None:
    agent = make(strategy="sparing", options={"width": 16})
    live(agent, 0, 20)
    before = agent._runtime.store.settings
    agent.answer(agent.observe(X[20], id="new").id, "yak", new_class=True)
    agent._runtime.store.settings = before  # as in the instant between the commit and the end of the call
    assert agent.history()[-1].label == "yak"
    assert agent._runtime.store.settings.classes[-1] == "yak"
