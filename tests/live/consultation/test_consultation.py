"""Experts that are called beside the agent: the way of a ticket, its bill, and what happens if something goes wrong."""

from __future__ import annotations

import sqlite3
import time

import numpy as np
import pytest
from sqlalchemy import select

import sparingly as sp
from sparingly.experts import ExpertReply
from sparingly.live.agent.errors import AgentError, ConflictError
from sparingly.live.consultation import expert_calls
from sparingly.live.consultation.heard_answers import hear_calls
from sparingly.live.store import journal, snapshots
from sparingly.live.store.integrity_check import check
from sparingly.live.store.tables import tickets
from tests.experts.small_model import small_model
from tests.live.consultation.team import CLASSES, HUMAN, Model, make, observe, stream


def until(condition, seconds=60.0):
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


def play(agent, X, y, start=0):
    """Observe, and answer what is asked of people."""
    for i, ticket in enumerate(observe(agent, X, start), start=start):
        entry = agent.wait(ticket.id, 60, for_people=False)
        assert entry.status in ("announced", "open", "answered")
        if entry.status == "open":
            agent.answer(ticket.id, y[i], expert="anna")


def learner_state(agent):
    with agent._runtime.lock:
        return agent._runtime.decider._learner.state()


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """An agent that has had sixty observations, a model, and a person."""
    path = tmp_path_factory.mktemp("team") / "agent.db"
    X, y, said = stream(60)
    model = Model(said)
    agent = make(path, [sp.FunctionExpert("gpt", model, price=0.01), HUMAN])
    play(agent, X, y)
    yield agent, model, path, y
    agent.close()


def test_a_ticket_tells_its_way_and_the_bill_adds_up(played):
    agent, model, _, y = played
    history = agent.history()
    first = history[0]
    assert first.asked == ("gpt", "human")
    assert (first.status, first.label, first.expert, first.paid) == ("answered", y[0], "anna", 0.01)
    assert [(call.expert, call.state, call.label) for call in agent.calls(first.id)] == [
        ("gpt", "answered", model.said[0])
    ]
    assert "gpt says" in first.why
    announced = [entry for entry in history if entry.status == "announced"]
    assert announced
    assert all(entry.asked in ((), ("gpt",)) and not entry.asks for entry in announced)
    stats = agent.stats()
    asked_human = sum("human" in entry.asked for entry in history)
    assert len(model.calls) == len(set(model.calls)) == sum("gpt" in entry.asked for entry in history)
    assert stats.bill == {"gpt": pytest.approx(0.01 * len(model.calls)), "human": asked_human}
    assert stats.questions_cost == pytest.approx(sum(stats.bill.values()))
    assert (stats.questions, stats.consulting, stats.always_asking) == (asked_human, 0, 60.0)
    assert agent.over_time(5)[-1].questions_cost == pytest.approx(stats.questions_cost)
    gpt = next(one for one in agent.people() if one.expert == "gpt")
    assert (gpt.kind, gpt.answers, gpt.cost) == ("machine", len(model.calls), pytest.approx(stats.bill["gpt"]))
    assert gpt.model_low < gpt.model_accuracy < gpt.model_high
    assert gpt.model_low < 0.8 < gpt.model_high
    assert agent.observe([0, 0, 0, 0], id="new", payload={"i": 0}).status in ("consulting", "open", "announced")
    agent.withdraw("new")


def test_the_journal_replays_bit_for_bit(played):
    agent, model, path, _ = played
    until(lambda: agent.stats().consulting == 0)
    state, calls = learner_state(agent), len(model.calls)
    agent.close()
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM snapshots")
    connection.close()
    again = sp.Agent.open(path, experts=[sp.FunctionExpert("gpt", model, price=0.01)])
    assert learner_state(again) == state
    assert len(model.calls) == calls
    again.close()
    assert check(path).ok


def test_features_stay_as_long_as_a_late_answer_needs_them(tmp_path):
    X, y, said = stream(60)
    agent = make(tmp_path / "agent.db", [sp.FunctionExpert("gpt", Model(said), price=0.01), HUMAN])
    play(agent, X, y)
    with agent._runtime.store.writing() as connection:
        late = [event for event in journal.events(connection, 0, 10_000) if event.kind == journal.HEARD]
        announced = {
            row.seq for row in connection.execute(select(tickets.c.seq).where(tickets.c.status == "announced"))
        }
        last = next(event for event in reversed(late) if event.ticket in announced)
        snapshots._drop_features(connection, last.ticket)
        assert all(event.x is not None for event in journal.events(connection, last.ticket, 10_000))
        snapshots._drop_features(connection, last.seq)
        gone = {event.ticket for event in journal.events(connection, 0, last.seq) if event.x is None}
        assert gone >= {ticket for ticket in announced if ticket <= last.ticket}
    agent.close()


@pytest.mark.parametrize("limits", [{}, {"max_open": 3}])
def test_replies_that_are_taken_together_are_decided_on_as_one_by_one(tmp_path, limits):
    X, y, said = stream(60)
    states, ways = [], []
    for size in (1, 7):
        path = tmp_path / f"{size}.db"
        make(path, [sp.FunctionExpert("gpt", Model(said), price=0.01), HUMAN], **limits).close()
        agent = sp.Agent.open(path)  # without its expert: calls wait
        for start in (0, 20, 40):
            tickets = observe(agent, X[start : start + 20], start)
            hear_waiting(agent, size, lambda name: said[int(name[1:])])
            for ticket in tickets:
                if agent.ticket(ticket.id).status == "open":
                    agent.answer(ticket.id, y[int(ticket.id[1:])], expert="anna")
        states.append(learner_state(agent))
        ways.append([(entry.status, entry.label, entry.why, entry.asked, entry.paid) for entry in agent.history()])
        agent.close()
    assert ways[0] == ways[1]
    assert states[0] == states[1]
    assert {status for status, *_ in ways[0]} == {"announced", "answered"}


def hear_waiting(agent, size, say):
    """Let the expert reply to all calls that are due, so many in one transaction."""
    runtime = agent._runtime
    with runtime.reading() as connection:
        due = expert_calls.read(connection, expert_calls.to_come(connection, "gpt", 100), runtime.store.settings)
    replies = [(call, ExpertReply(say(call.inquiry.id), 0.01, "answered")) for call in due]
    for start in range(0, len(replies), size):
        with runtime.lock, runtime.writing() as connection:
            hear_calls(runtime, replies[start : start + size], connection)
            hear_calls(runtime, replies[start : start + size], connection)  # a second time changes nothing


def test_a_slow_expert_blocks_nothing_and_people_see_only_what_is_theirs(tmp_path):
    X, y, said = stream(30)
    model = Model(said)
    model.open.clear()
    agent = make(tmp_path / "agent.db", [sp.FunctionExpert("gpt", model, price=0.01), HUMAN])
    tickets = observe(agent, X)
    assert [(t.status, t.asked, t.asks) for t in tickets] == [("consulting", ("gpt",), False)] * 30
    assert agent.stats().consulting == 30
    assert agent.questions("anna", limit=100) == agent.pending() == []
    with pytest.raises(ConflictError, match="consulting"):
        agent.skip("i0", expert="anna")
    agent.answer("i29", y[29], expert="boss")
    agent.withdraw("i28")
    model.open.set()
    until(lambda: agent.stats().consulting == 0)
    assert len(agent.questions("anna", limit=100)) == agent.stats().open > 10
    assert (agent.ticket("i29").status, agent.ticket("i29").label) == ("answered", y[29])
    until(lambda: agent.calls("i28")[0].closed)
    assert [agent.calls(f"i{i}")[0].state for i in (28, 29)] == ["not needed", "not needed"]
    assert agent.stats().bill["gpt"] == pytest.approx(0.28)
    assert sorted(model.calls) == list(range(28))
    agent.close()


def test_an_answer_that_comes_too_late_is_paid_and_changes_nothing(tmp_path):
    X, y, said = stream(1)
    model = Model(said)
    model.open.clear()
    agent = make(tmp_path / "agent.db", [sp.FunctionExpert("gpt", model, price=0.25), HUMAN])
    observe(agent, X)
    until(lambda: model.calls)
    agent.answer("i0", y[0])
    state = learner_state(agent)
    model.open.set()
    until(lambda: agent.calls("i0")[0].closed)
    assert (agent.ticket("i0").status, agent.ticket("i0").label) == ("answered", y[0])
    assert agent.stats().bill == {"gpt": 0.25, "human": 0.0}
    assert agent.stats().questions_cost == 0.25
    assert learner_state(agent) == state
    agent.close()


def test_calls_that_are_not_needed_hold_up_no_others(tmp_path):
    X, _, said = stream(6)
    model = Model(said)
    model.open.clear()
    one = sp.FunctionExpert("gpt", model, price=0.01, limits=sp.CallLimits(concurrent=1))
    agent = make(tmp_path / "agent.db", [one, HUMAN])
    observe(agent, X)
    until(lambda: model.calls)
    for i in range(1, 5):
        agent.withdraw(f"i{i}")
    model.open.set()
    until(lambda: agent.stats().consulting == 0)
    assert model.calls == [0, 5]
    agent.close()


def test_experts_that_fail_leave_the_ticket_to_people(tmp_path):
    def breaks(content):
        raise RuntimeError("out of order")

    X, _, _ = stream(3)
    agent = make(tmp_path / "agent.db", [sp.FunctionExpert("gpt", breaks, price=0.01), HUMAN])
    observe(agent, X)
    entry = agent.wait("i0", 60, for_people=False)
    assert (entry.status, entry.asked) == ("open", ("gpt", "human"))
    (call,) = agent.calls("i0")
    assert (call.state, call.detail, call.price) == ("failed", "RuntimeError: out of order", 0.01)
    until(lambda: agent.stats().consulting == 0)
    agent.erase("i1")
    assert agent.calls("i1")[0].detail is None
    agent.close()


def test_money_and_rate_are_limited(tmp_path):
    X, _, said = stream(12)
    model = Model(said)
    limits = sp.CallLimits(concurrent=2, cost_per_day=0.045)
    agent = make(tmp_path / "agent.db", [sp.FunctionExpert("gpt", model, price=0.01, limits=limits), HUMAN])
    observe(agent, X)
    until(lambda: agent.stats().consulting == 0)
    assert len(model.calls) == 4
    assert agent.stats().bill["gpt"] == pytest.approx(0.04)
    states = [agent.calls(f"i{i}")[0].state for i in range(12)]
    assert states.count("over budget") == 8
    assert agent.calls("i11")[0].detail == "0.045 a day are spent"
    agent.close()
    slow = sp.FunctionExpert("gpt", model, price=0.0, limits=sp.CallLimits(per_minute=60))
    agent = make(tmp_path / "slow.db", [slow, HUMAN])
    began = time.monotonic()
    observe(agent, X)
    until(lambda: agent.stats().consulting == 0)
    assert time.monotonic() - began > 1.5
    agent.close()


def test_two_experts_and_one_who_is_gold(tmp_path):
    X, y, said = stream(40)
    small, large = Model(said), Model(y)
    experts = [
        sp.FunctionExpert("small", small, price=0.01),
        sp.FunctionExpert("large", large, price=0.1, accuracy=0.95),
        sp.FunctionExpert("oracle", Model(y), price=1.0, gold=True),
    ]
    agent = make(tmp_path / "agent.db", experts)
    for ticket in observe(agent, X):
        assert agent.wait(ticket.id, 60).status in ("announced", "answered")
    history = agent.history()
    assert history[0].asked[-1] == "oracle"
    assert (history[0].label, history[0].expert, history[0].status) == (y[0], "oracle", "answered")
    assert any(len(entry.asked) > 1 for entry in history)
    paid = sum(call.price for entry in history for call in agent.calls(entry.id))
    assert agent.stats().questions_cost == pytest.approx(paid) == pytest.approx(sum(agent.stats().bill.values()))
    state = learner_state(agent)
    agent.close()
    again = sp.Agent.open(tmp_path / "agent.db")
    assert learner_state(again) == state
    again.close()


def test_people_who_may_be_wrong_are_heard_and_the_next_is_asked(tmp_path):
    agent = make(tmp_path / "agent.db", [sp.Expert("junior", price=0.2), HUMAN])
    X, y, _ = stream(3)
    tickets = observe(agent, X)
    assert [(t.status, t.asked) for t in tickets] == [("open", ("junior",))] * 3
    (question,) = agent.questions("ben", limit=1)
    agent.answer(question.id, y[0], expert="ben")
    entry = agent.ticket(question.id)
    assert (entry.status, entry.asked, entry.paid) == ("open", ("junior", "human"), 0.2)
    assert (agent.calls(question.id)[0].label, agent.calls(question.id)[0].detail) == (y[0], "ben")
    agent.answer(question.id, y[0], expert="anna")
    assert agent.ticket(question.id).status == "answered"
    assert agent.stats().bill == {"junior": pytest.approx(0.2 + 2 * 0.2), "human": 1.0}
    with pytest.raises(AgentError, match="unknown"):
        agent.answer("i1", "cow")
    state = learner_state(agent)
    agent.close()
    again = sp.Agent.open(tmp_path / "agent.db")
    assert learner_state(again) == state
    again.close()


def test_calls_wait_for_an_agent_that_is_opened_without_its_experts(tmp_path):
    X, _, said = stream(5)
    model = Model(said)
    experts = [sp.RecordedExpert("gpt", {f"i{i}": said[i] for i in range(5)}, price=0.01), HUMAN]
    make(tmp_path / "agent.db", experts).close()
    agent = sp.Agent.open(tmp_path / "agent.db")
    assert agent.settings.game.experts[0].name == "gpt"
    observe(agent, X)
    assert agent.stats().consulting == 5
    agent.close()
    with pytest.raises(AgentError, match="'claude' is no expert that this agent calls: there is gpt"):
        sp.Agent.open(tmp_path / "agent.db", experts=[sp.FunctionExpert("claude", model, price=0.01)])
    with pytest.raises(AgentError, match="experts is"):
        make(tmp_path / "agent.db", [sp.Expert("gpt", 0.01), HUMAN])
    agent = sp.Agent.open(tmp_path / "agent.db", experts=experts)
    until(lambda: agent.stats().consulting == 0)
    assert agent.stats().bill["gpt"] == pytest.approx(0.05)
    agent.close()


def test_a_call_that_was_cut_off_is_not_paid_twice_unless_that_is_free(tmp_path):
    """As after a kill: the database says that the call was made, and nobody knows what came."""
    X, _, said = stream(2)
    for repeatable, made, state in ((False, 0, "interrupted"), (True, 2, "answered")):
        path = tmp_path / f"{repeatable}.db"
        model = Model(said)
        gpt = sp.FunctionExpert("gpt", model, price=0.01, repeatable=repeatable)
        make(path, [gpt, HUMAN]).close()
        agent = sp.Agent.open(path)
        observe(agent, X)
        agent.close()
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE calls SET state = 'called', until = 1e12")
        connection.close()
        agent = sp.Agent.open(path, experts=[gpt])
        until(lambda agent=agent: agent.stats().consulting == 0)
        assert (len(model.calls), agent.calls("i0")[0].state) == (made, state)
        assert agent.stats().bill["gpt"] == pytest.approx(0.02)
        agent.close()


def test_a_class_that_is_added_while_calls_are_under_way(tmp_path):
    X, _, said = stream(4)
    model = Model([*said[:3], "shame"])
    model.open.clear()
    agent = make(tmp_path / "agent.db", [sp.FunctionExpert("gpt", model, price=0.01), HUMAN])
    observe(agent, X[:3])
    until(lambda: len(model.calls) == 3)
    agent.add_class("shame")
    model.open.set()
    until(lambda: agent.stats().consulting == 0)
    observe(agent, X[3:], start=3)
    agent.wait("i3", 60, for_people=False)
    assert [agent.calls(f"i{i}")[0].label for i in (0, 3)] == [said[0], "shame"]
    assert agent.ticket("i0").asked == ("gpt", "human")
    agent.answer("i3", "shame")
    state = learner_state(agent)
    agent.close()
    with sqlite3.connect(tmp_path / "agent.db") as connection:
        connection.execute("DELETE FROM snapshots")
    connection.close()
    again = sp.Agent.open(tmp_path / "agent.db")
    assert learner_state(again) == state
    again.close()


@pytest.mark.usefixtures("forked_trainers")
def test_a_background_agent_has_experts_too(tmp_path):
    X, y, said = stream(30)
    agent = make(
        tmp_path / "agent.db", [sp.FunctionExpert("gpt", Model(said), price=0.01), HUMAN], training="background"
    )
    play(agent, X, y)
    stats = agent.stats()
    assert stats.consulting == 0
    assert stats.questions_cost == pytest.approx(sum(stats.bill.values()))
    agent.close()


def test_limits_on_questions_are_for_people(tmp_path):
    X, _, said = stream(6)
    agent = make(tmp_path / "agent.db", [sp.FunctionExpert("gpt", Model(said), price=0.01), HUMAN], max_open=2)
    observe(agent, X)
    until(lambda: agent.stats().consulting == 0)
    stats = agent.stats()
    assert (stats.open, stats.bill["gpt"]) == (2, pytest.approx(0.06))
    assert sum("not asked, for no more than 2" in entry.why for entry in agent.history()) == 4
    state = learner_state(agent)
    assert len(agent._runtime.decider.strategy.questions) == 2
    agent.close()
    with sqlite3.connect(tmp_path / "agent.db") as connection:
        connection.execute("DELETE FROM snapshots")
    connection.close()
    again = sp.Agent.open(tmp_path / "agent.db")
    assert learner_state(again) == state
    again.close()


@pytest.mark.parametrize(
    ("experts", "more", "says"),
    [
        ([HUMAN, HUMAN], {}, "two experts are called 'human'"),
        ([HUMAN, sp.FunctionExpert("human", str, price=1)], {}, "two experts are called 'human'"),
        ([HUMAN], {"query_cost": 2.0}, "there are experts, who have prices, and a query_cost"),
        ([HUMAN], {"game": sp.label_efficient(3)}, "there are experts, who have prices, and a game"),
        ([], {}, r"experts is \[\]: give a list of experts"),
        (["gpt"], {}, "expert 'gpt' must be an Expert"),
        ([sp.Expert("gpt", 0.01), HUMAN], {"strategy": "neural_cbp"}, "that of gpt may be wrong"),
    ],
)
def test_experts_that_make_no_sense_are_refused(tmp_path, experts, more, says):
    with pytest.raises(AgentError, match=says):
        make(tmp_path / "agent.db", experts, **more)
    assert not (tmp_path / "agent.db").exists()


def test_a_real_language_model_is_an_expert(tmp_path):
    with small_model() as url:
        options = {"temperature": 0, "max_tokens": 16}
        small = sp.LanguageModel(
            "small", url, "smollm2", price=0.001, token_prices=(1, 2), structured=True, options=options, timeout=120
        )
        agent = sp.Agent(CLASSES, path=tmp_path / "agent.db", encoder="hashing", experts=[small, HUMAN])
        ticket = agent.observe("I won the lottery and I am so happy!")
        assert ticket.asked == ("small",)
        entry = agent.wait(ticket.id, 120, for_people=False)
        agent.close()
    assert (entry.status, entry.asked) == ("open", ("small", "human"))
    assert 0 < entry.paid < 0.001


def test_agents_without_experts_have_no_calls(tmp_path):
    with sp.Agent(CLASSES, n_features=4, path=tmp_path / "agent.db") as agent:
        ticket = agent.observe(np.zeros(4))
        assert (ticket.status, ticket.asked) == ("open", ())
        assert (agent.ticket(ticket.id).asked, agent.calls(ticket.id), agent.stats().bill) == ((), [], {})
