"""Second opinions: whom they go to, what is kept of them, and that nothing else depends on them."""

from __future__ import annotations

import numpy as np
import pytest

import sparingly as sp
from sparingly.live.agent.errors import AgentError, ConflictError
from tests.live.conftest import stream


@pytest.fixture
def doubled(make):
    """An agent of which every answer is given twice."""
    return make(second_opinions=1.0)


def answered(agent, label="cat", by="Ada"):
    ticket = agent.observe(stream(1, seed=len(agent.history()))[0]).id
    assert [q.id for q in agent.questions(by)] == [ticket]
    agent.answer(ticket, label, expert=by)
    return ticket


def test_a_second_opinion_goes_to_another_person(doubled):
    ticket = answered(doubled)
    assert doubled.questions("Ada") == []
    (question,) = doubled.questions("Ben")
    assert (question.id, question.expert) == (ticket, "Ben")
    assert doubled.questions("Chloe") == []  # it is leased
    assert [q.id for q in doubled.questions("Ben")] == [ticket]
    doubled.answer(ticket, "cat", expert="Ben")
    assert doubled.questions("Chloe") == []
    entry = doubled.ticket(ticket)
    assert (entry.status, entry.label, entry.expert, entry.paid) == ("answered", "cat", "Ada", 1.0)
    assert [(o.reason, o.expert, o.label) for o in doubled.team.opinions(ticket)] == [
        ("first", "Ada", "cat"),
        ("share", "Ben", "cat"),
    ]
    stats = doubled.stats()
    assert (stats.questions, stats.answered, stats.second_opinions, stats.questions_cost) == (1, 1, 1, 2.0)


def test_the_share_is_drawn_by_the_seed_and_the_ticket(make, tmp_path):
    drawn = []
    for name in ("a", "b"):
        agent = make(second_opinions=0.3, path=tmp_path / name)
        tickets = [answered(agent) for _ in range(60)]
        drawn.append([bool(agent.team.opinions(ticket)) for ticket in tickets])
    assert drawn[0] == drawn[1]
    assert 8 <= sum(drawn[0]) <= 28


def test_a_disagreement_goes_to_a_third_person_whose_word_counts(doubled):
    ticket = answered(doubled)
    doubled.questions("Ben")
    doubled.answer(ticket, "dog", expert="Ben")
    (dispute,) = doubled.team.disagreements()
    assert (dispute.state, dispute.first, dispute.first_label, dispute.second, dispute.second_label) == (
        "third",
        "Ada",
        "cat",
        "Ben",
        "dog",
    )
    assert doubled.questions("Ada") == doubled.questions("Ben") == []
    assert [q.id for q in doubled.questions("Chloe")] == [ticket]
    doubled.answer(ticket, "dog", expert="Chloe")
    assert doubled.team.disagreements() == []
    assert (doubled.ticket(ticket).label, doubled.ticket(ticket).expert) == ("dog", "Ben")
    (settled,) = doubled.team.disagreements(settled=True)
    assert (settled.label, settled.settled_by, settled.third_label) == ("dog", "Chloe", "dog")
    events = [(e.what, e.who, e.label) for e in doubled.queries.details(ticket).events]
    assert events == [
        ("observed", None, None),
        ("answered", "Ada", "cat"),
        ("second opinion", "Ben", "dog"),
        ("second opinion", "Chloe", "dog"),
        ("corrected", "Ben", "dog"),
        ("adjudicated", "Chloe", "dog"),
    ]
    right = {one.expert: (one.settled, one.settled_right) for one in doubled.people()}
    assert right == {"Ada": (1, 0), "Ben": (1, 1), "Chloe": (1, 1)}


def test_three_classes_from_three_people_go_to_an_admin_who_has_not_answered(make):
    agent = make(second_opinions=1.0, classes=["cat", "dog", "cow"])
    ticket = answered(agent)
    for name, label in (("Ben", "dog"), ("Chloe", "cow")):
        agent.questions(name)
        agent.answer(ticket, label, expert=name)
    (dispute,) = agent.team.disagreements()
    assert (dispute.state, dispute.third, dispute.third_label) == ("admin", "Chloe", "cow")
    with pytest.raises(ConflictError, match=r"Ben has answered ticket .*: another person must adjudicate it"):
        agent.adjudicate(ticket, "dog", expert="Ben")
    with pytest.raises(AgentError, match="class 'cwo' is unknown: the classes are cat, dog, cow"):
        agent.adjudicate(ticket, "cwo", expert="Dora")
    agent.adjudicate(ticket, "cow", expert="Dora")
    assert (agent.ticket(ticket).label, agent.ticket(ticket).expert) == ("cow", "Dora")
    agent.adjudicate(ticket, "cow", expert="Dora")  # again: nothing happens
    with pytest.raises(ConflictError, match="settled"):
        agent.adjudicate(ticket, "cat", expert="Dora")
    with pytest.raises(ConflictError, match="no disagreement"):
        agent.adjudicate(answered(agent), "cat", expert="Dora")


def test_disagreements_go_to_an_admin_at_once_if_that_is_chosen(doubled):
    doubled.team.set_checks(disagreements="admin")
    ticket = answered(doubled)
    doubled.questions("Ben")
    doubled.answer(ticket, "dog", expert="Ben")
    assert doubled.questions("Chloe") == []
    assert doubled.team.disagreements()[0].state == "admin"


def test_opinions_are_taken_back_and_changed_until_it_is_settled(doubled):
    ticket = answered(doubled)
    doubled.questions("Ben")
    doubled.answer(ticket, "dog", expert="Ben")
    question = doubled.reopen(ticket, expert="Ben", lease_seconds=60)
    assert question.id == ticket
    assert doubled.team.disagreements() == []
    assert doubled.ticket(ticket).paid == 0.0
    doubled.answer(ticket, "dog", expert="Ben")
    assert len(doubled.team.disagreements()) == 1
    doubled.answer(ticket, "cat", expert="Ben")  # a correction of the own opinion
    (settled,) = doubled.team.disagreements(settled=True)
    assert settled.label == "cat"
    with pytest.raises(ConflictError, match="settled"):
        doubled.answer(ticket, "dog", expert="Ben")


def test_the_author_sees_the_mistake(doubled):
    ticket = answered(doubled)
    doubled.questions("Ben")
    doubled.answer(ticket, "dog", expert="Ben")
    doubled.answer(ticket, "dog", expert="Ada")
    assert doubled.team.disagreements() == []
    assert doubled.questions("Chloe") == []  # nobody needs to be asked any more
    tally = {one.expert: (one.settled, one.settled_right) for one in doubled.people()}
    assert tally == {"Ada": (1, 0), "Ben": (1, 1)}


def test_an_answer_that_is_taken_back_waits_with_its_opinions(doubled):
    ticket = answered(doubled)
    doubled.questions("Ben")
    doubled.answer(ticket, "dog", expert="Ben")
    doubled.reopen(ticket)
    assert doubled.team.disagreements() == []
    assert doubled.questions("Ben") == []  # has had a say already
    doubled.questions("Chloe")
    doubled.answer(ticket, "dog", expert="Chloe")
    assert doubled.team.disagreements() == []
    assert [(o.expert, o.label) for o in doubled.team.opinions(ticket)] == [("Chloe", "dog"), ("Ben", "dog")]


def test_late_skipped_and_withdrawn_opinions(doubled, clock):
    ticket = answered(doubled)
    doubled.questions("Ben", lease_seconds=60)
    clock.now += 61
    with pytest.raises(ConflictError, match="has run out"):
        doubled.answer(ticket, "cat", expert="Ben")
    doubled.renew(ticket, "Ben", lease_seconds=60)
    doubled.release(ticket, expert="Ben")
    assert [q.id for q in doubled.questions("Chloe")] == [ticket]
    doubled.skip(ticket, expert="Chloe")
    assert doubled.questions("Chloe") == []
    assert doubled.reopen(ticket, expert="Chloe", lease_seconds=60).id == ticket  # the skip is undone, not the answer
    assert doubled.ticket(ticket).status == "answered"
    doubled.dont_know(ticket, expert="Chloe")
    assert [q.id for q in doubled.questions("Ben")] == [ticket]
    doubled.erase(ticket)
    assert doubled.questions("Dora") == []


def test_nothing_that_is_learned_depends_on_opinions(tmp_path):
    """The same answers with and without opinions that agree give the same decisions, also after a crash."""
    X = np.random.default_rng(0).normal(size=(60, 3)) + 2
    y = ["cat" if x[0] > 2 else "dog" for x in X]
    seen = []
    for name, share in (("with", 1.0), ("without", 0.0)):
        path = tmp_path / name
        settings = {"classes": ["cat", "dog"], "n_features": 3, "path": path, "strategy": "neural_cbp"}
        agent = sp.Agent(**settings, options={"epochs": 2, "width": 16}, second_opinions=share)
        for i, x in enumerate(X):
            ticket = agent.observe(x, id=f"i{i}")
            if ticket.asks:
                agent.questions("Ada")
                agent.answer(ticket.id, y[i], expert="Ada")
                for _ in agent.questions("Ben"):
                    agent.answer(ticket.id, y[i], expert="Ben")
            if i == 30:
                agent._runtime.store.close()  # a crash: no snapshot is written
                agent = sp.Agent.open(path)
        seen.append([(e.asks, e.prediction, e.label) for e in agent.history()])
        agent.close()
    assert seen[0] == seen[1]


def test_where_an_answer_is_surprising_a_second_one_is_worth_its_price(tmp_path):
    X = np.vstack([np.full((40, 2), 3.0), np.full((40, 2), -3.0)]) + np.random.default_rng(0).normal(size=(80, 2))
    settings = {"query_cost": 0.2, "path": tmp_path / "a", "audit_rate": 1.0}
    agent = sp.Agent(["cat", "dog"], 2, **settings, second_opinions=1e-9)
    agent.teach(X, ["cat"] * 40 + ["dog"] * 40)
    reasons = []
    for i, label in enumerate(["cat", "dog"]):
        ticket = agent.observe([3.0 + i / 100, 3.0])
        agent.answer(ticket.id, label, expert="Ada")
        reasons.append([o.reason for o in agent.team.opinions(ticket.id)])
    agent.close()
    assert reasons == [[], ["first", "worth"]]


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan"), "half", True])
def test_a_share_is_between_0_and_1(make, share):
    with pytest.raises(AgentError, match=r"second_opinions is .*: it must be a share between 0 and 1"):
        make(second_opinions=share)
