"""Planted items: they look like any question, are counted apart, teach nothing, and tell how often people are right."""

from __future__ import annotations

import pytest

import sparingly as sp
from sparingly.live.agent.errors import AgentError, ConflictError
from sparingly.live.store.integrity_check import check
from tests.live.conftest import stream


def test_a_planted_item_looks_like_any_question_and_is_counted_apart(make, path):
    agent = make(classes=["cat", "dog"])
    agent.team.set_checks(known_answers=1.0)
    ticket = agent.observe([1, 2, 3], payload="a grey animal")
    planted = agent.plant([3, 2, 1], "dog", payload="a barking animal")
    (question,) = agent.questions("Ada")
    assert question.id == planted
    assert (question.why, question.at, question.choices) == (ticket.why, agent.ticket(ticket.id).at, ("cat", "dog"))
    assert question.payload.content == "a barking animal"
    assert agent.questions("Ada")[0].id == planted  # a page that is loaded again
    agent.answer(planted, "cat", expert="Ada")
    assert [q.id for q in agent.questions("Ada")] == [ticket.id]  # each planted item once
    agent.answer(ticket.id, "cat", expert="Ada")
    stats = agent.stats()
    assert (stats.observations, stats.questions, stats.answered, stats.questions_cost) == (1, 1, 1, 1.0)
    assert (stats.known_answers, stats.known_cost, stats.taught) == (1, 1.0, 0)
    assert agent.team.planted() == (1, 1, 1.0)
    (ada,) = agent.people()
    assert (ada.known, ada.known_right, ada.answers, ada.cost) == (1, 0, 2, 2.0)
    assert [entry.id for entry in agent.history()] == [entry.id for entry in agent.recent(9)] == [ticket.id]
    assert [entry.id for entry in agent.changes()[0]] == [ticket.id]
    agent.close()
    assert check(path).problems == []


def test_without_another_question_nobody_gets_a_planted_item(make):
    agent = make()
    agent.team.set_checks(known_answers=1.0)
    agent.plant([3, 2, 1], "dog")
    assert agent.questions("Ada") == []


def test_planted_items_come_at_their_share(make):
    agent = make()
    agent.team.plant(stream(40, seed=1), ["cat"] * 40)
    agent.team.set_checks(known_answers=0.2)
    kinds = []
    for x in stream(100):
        agent.observe(x)
        (question,) = agent.questions("Ada")
        kinds.append(agent.ticket(question.id).status)
        agent.answer(question.id, "cat", expert="Ada")
    assert 8 <= kinds.count("planted") <= 32


def test_they_teach_nothing_unless_said(make, tmp_path):
    quick = {"strategy": "neural_cbp", "options": {"epochs": 2, "width": 16}}
    decisions = []
    for name, plants in (("a", True), ("b", False)):
        agent = make(path=tmp_path / name, **quick)
        for i, x in enumerate(stream(30)):
            if plants and i % 5 == 0:
                agent.plant(x + 1, "dog")
            ticket = agent.observe(x)
            decisions.append((ticket.asks, ticket.prediction))
            if ticket.asks:
                agent.answer(ticket.id, "cat", expert="Ada")
    assert decisions[:30] == decisions[30:]
    agent.team.plant([[1, 2, 3]], ["dog"], teach=True)
    assert agent.stats().taught == 1


def test_planting_is_refused_in_one_line(make):
    agent = make()
    with pytest.raises(AgentError, match=r"labels\[0\] is 'cow': the classes are cat, dog"):
        agent.plant([1, 2, 3], "cow")
    agent.observe([1, 2, 3], id="one")
    with pytest.raises(ConflictError, match="id 'one' stands for an observation: it cannot be planted"):
        agent.plant([1, 2, 3], "cat", id="one")
    assert agent.plant([1, 2, 3], "cat", id="two") == agent.plant([1, 2, 3], "cat", id="two") == "two"
    with pytest.raises(ConflictError, match="id 'two' was planted with other features or as another class"):
        agent.plant([1, 2, 3], "dog", id="two")
    with pytest.raises(ConflictError, match="ask for questions again"):
        agent.answer("two", "cat", expert="Ada")  # was not asked
    assert agent.team.planted()[0] == 1


def test_answers_to_planted_items_are_changed_and_taken_back(make):
    agent = make()
    agent.team.set_checks(known_answers=1.0)
    planted = agent.plant([3, 2, 1], "dog")
    agent.observe([1, 2, 3])
    agent.questions("Ada")
    agent.answer(planted, "cat", expert="Ada")
    agent.answer(planted, "dog", expert="Ada")
    assert agent.people()[0].known_right == 1
    assert agent.reopen(planted, expert="Ada", lease_seconds=60).id == planted
    assert agent.people() == []
    agent.dont_know(planted, expert="Ada")
    assert agent.people() == []
    assert agent.ticket(planted).status == "planted"


def test_a_careless_person_is_found_and_stopped_if_an_admin_has_said_so(make):
    agent = make()
    agent.team.set_checks(known_answers=1.0, stop_careless=True)
    agent.team.plant(stream(60, seed=1), ["cat"] * 60)
    agent.observe_many(stream(3))
    for i in range(60):
        for name, label in (("Ada", "cat" if i % 15 else "dog"), ("Bob", "cat" if i % 2 else "dog")):
            for question in agent.questions(name):
                if agent.ticket(question.id).status == "planted":
                    agent.answer(question.id, label, expert=name)
    ada, bob = (next(one for one in agent.people() if one.expert == name) for name in ("Ada", "Bob"))
    assert ada.known == 60
    assert ada.careless is None
    assert bob.careless is not None
    assert bob.stopped is not None
    assert bob.found_after == bob.known < 40
    assert "checked answers were right" in bob.why
    assert ada.accuracy_low > bob.accuracy_high
    agent.team.allow("Bob")
    assert agent.questions("Bob") != []
    bob = next(one for one in agent.people() if one.expert == "Bob")
    assert (bob.careless, bob.stopped, bob.known) == (None, None, 0)
    agent.team.stop("Ada")
    assert agent.questions("Ada") == []


def test_a_careful_person_is_seldom_taken_for_careless():
    import numpy as np

    from sparingly.live.quality.careless import ALARM, evidence

    rng = np.random.default_rng(0)
    found = 0
    for _ in range(400):
        right = np.cumsum(rng.random(300) < 0.8)
        found += any(evidence(int(r), n + 1 - int(r), 0.8) >= ALARM for n, r in enumerate(right))
    assert found / 400 <= 1 / 20


def test_an_agent_goes_on_with_its_checks(make, path):
    agent = make(second_opinions=0.25)
    agent.team.set_checks(careless_below=0.6)
    agent.close()
    with sp.Agent.open(path) as again:
        assert (again.team.checks.second_opinions, again.team.checks.careless_below) == (0.25, 0.6)
    assert make().team.checks.second_opinions == 0.25
