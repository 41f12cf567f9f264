"""Experts who are one person each: their questions are theirs alone, and what they say is heard like a machine's."""

from __future__ import annotations

import pytest

import sparingly as sp
from sparingly.live.agent.errors import ConflictError
from tests.live.consultation.team import CLASSES, HUMAN, make, stream


@pytest.fixture
def agent(tmp_path):
    experts = [sp.Person("Ada", price=0.02), sp.Person("Ben", price=0.02), HUMAN]
    with make(tmp_path / "team.db", experts) as agent:
        yield agent


def test_a_question_to_one_person_is_theirs_and_another_opinion_is_another_persons(agent):
    X, y, _ = stream(40)
    told = {"Ada": 0, "Ben": 0, "Cleo": 0}
    for i, x in enumerate(X):
        ticket = agent.observe(x, id=f"i{i}")
        while (entry := agent.ticket(ticket.id)).status == "open":
            asked = entry.asked[-1]
            who = asked if asked in told else "Cleo"
            others = [name for name in told if name != who]
            assert asked == "human" or all(agent.questions(name) == [] for name in others)
            assert [question.id for question in agent.questions(who)] == [ticket.id]
            if asked != "human":
                with pytest.raises(ConflictError, match=f"is for {asked}, not for Cleo|leased to"):
                    agent.answer(ticket.id, y[i], expert="Cleo")
            agent.answer(ticket.id, y[i] if who != "Ben" else CLASSES[0], expert=who)
            told[who] += 1
        assert len(set(entry.asked)) == len(entry.asked)  # nobody twice
    assert told["Ada"] > 5
    assert sum(told.values()) == sum(one.answers for one in agent.people())
    assert sum(one.cost for one in agent.people()) == pytest.approx(agent.stats().questions_cost)


def test_nobody_says_something_of_a_ticket_twice(tmp_path):
    with make(tmp_path / "team.db", [sp.Expert("junior", price=0.02), HUMAN]) as agent:
        ticket = agent.observe(stream(1)[0][0])
        assert agent.ticket(ticket.id).asked == ("junior",)
        agent.questions("Ada")
        agent.answer(ticket.id, "joy", expert="Ada")
        assert agent.ticket(ticket.id).asked == ("junior", "human")  # worth its price
        assert agent.questions("Ada") == []
        assert [question.id for question in agent.questions("Ben")] == [ticket.id]


def test_a_person_is_kept(agent, tmp_path):
    assert agent.settings.people == ("Ada", "Ben")
    assert sp.Person("Ada", 0.2) == sp.Person("Ada", 0.2)
    with pytest.raises(ValueError, match="the price of Ada is -1"):
        sp.Person("Ada", -1)
