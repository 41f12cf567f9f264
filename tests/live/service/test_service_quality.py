"""The routes about people: second opinions, disagreements, planted items, how often each is right."""

from __future__ import annotations

import pytest

import sparingly as sp
from tests.live.served import AT, observed


@pytest.fixture
def team(served):
    """Three people, each with a token, and every answer is given twice."""
    served.agent.team.set_checks(second_opinions=1.0, known_answers=0.0)
    for name in ("Ada", "Ben", "Cleo"):
        served.tokens[name] = served.service.tokens.create(name, "expert")[1]
    return served


def says(ask, name, label):
    """A person answers what they are offered first; the ticket, or None."""
    found = ask(name, "POST", f"{AT}/questions").json()["questions"]
    if not found:
        return None
    told = ask(name, "POST", f"{AT}/answer", {"ticket": found[0]["id"], "label": label})
    assert told.status_code == 200, told.text
    return found[0]["id"]


def test_a_second_token_of_the_same_person_is_the_same_person(team, ask):
    ticket = observed(ask)
    assert says(ask, "Ada", "cat") == ticket
    team.service.tokens.revoke("Ada")
    team.tokens["Ada again"] = team.service.tokens.create("Ada", "expert")[1]
    assert says(ask, "Ada again", "cat") is None
    assert says(ask, "Ben", "cat") == ticket


def test_an_admin_settles_what_two_people_disagree_on(team, ask):
    ticket = observed(ask, payload={"text": "a grey cat"})
    says(ask, "Ada", "cat")
    says(ask, "Ben", "dog")
    (one,) = ask("admin", "GET", f"{AT}/disagreements").json()["disagreements"]
    assert (one["ticket"], one["first"], one["first_label"], one["second"], one["second_label"]) == (
        ticket,
        "Ada",
        "cat",
        "Ben",
        "dog",
    )
    assert one["payload"]["text"] == "a grey cat"
    assert ask("Ada", "POST", f"{AT}/adjudicate", {"ticket": ticket, "label": "cat"}).status_code == 403
    refused = ask("admin", "POST", f"{AT}/adjudicate", {"ticket": ticket, "label": "cow"})
    assert (refused.status_code, refused.json()["error"]) == (422, "class 'cow' is unknown: the classes are cat, dog")
    assert ask("admin", "POST", f"{AT}/adjudicate", {"ticket": ticket, "label": "dog"}).status_code == 200
    assert team.agent.ticket(ticket).label == "dog"
    details = ask("admin", "GET", f"{AT}/details?ticket={ticket}").json()
    assert [event["what"] for event in details["events"]][-2:] == ["corrected", "adjudicated"]
    assert [(o["reason"], o["expert"]) for o in details["opinions"]] == [("first", "Ada"), ("share", "Ben")]
    (settled,) = ask("admin", "GET", f"{AT}/disagreements?settled=true").json()["disagreements"]
    assert (settled["label"], settled["settled_by"]) == ("dog", "admin")


def test_an_admin_does_not_settle_an_own_answer(team, ask):
    team.agent.team.set_checks(disagreements="admin")
    ticket = observed(ask)
    says(ask, "admin", "cat")
    says(ask, "Ben", "dog")
    refused = ask("admin", "POST", f"{AT}/adjudicate", {"ticket": ticket, "label": "cat"})
    assert refused.status_code == 409
    assert refused.json()["error"] == f"admin has answered ticket {ticket!r}: another person must adjudicate it"


def test_a_second_opinion_is_undone_counted_and_listed_like_any_answer(team, ask):
    ticket = observed(ask)
    says(ask, "Ada", "cat")
    says(ask, "Ben", "dog")
    assert [one["label"] for one in ask("Ben", "GET", f"{AT}/answers").json()["answers"]] == ["dog"]
    assert ask("Ben", "POST", f"{AT}/questions").json()["today"] == {"answers": 1, "cost": 1.0}
    undone = ask("Ben", "POST", f"{AT}/undo", {"ticket": ticket})
    assert undone.json()["question"]["id"] == ticket
    assert (team.agent.ticket(ticket).status, team.agent.ticket(ticket).label) == ("answered", "cat")
    assert ask("Ben", "POST", f"{AT}/skip", {"ticket": ticket}).json() == {
        "ticket": ticket,
        "status": "open",
        "label": None,
        "prediction": None,
        "today": None,
    }
    assert ask("Ben", "POST", f"{AT}/undo", {"ticket": ticket}).status_code == 200
    assert ask("Ben", "POST", f"{AT}/renew", {"ticket": ticket}).status_code == 200
    assert ask("Ben", "POST", f"{AT}/release", {"ticket": ticket}).status_code == 200
    assert says(ask, "Cleo", "cat") == ticket


def test_planted_items_look_like_any_question(team, ask):
    ask("admin", "PUT", f"{AT}/checks", {"known_answers": 1, "second_opinions": 0})
    body = {"observations": [{"features": [3, 2, 1], "label": "dog", "payload": {"text": "it barks"}}]}
    (planted,) = ask("admin", "POST", f"{AT}/plant", body).json()["tickets"]
    ticket = observed(ask, payload={"text": "it purrs"})
    (question,) = ask("Ada", "POST", f"{AT}/questions").json()["questions"]
    (other,) = ask("Ben", "POST", f"{AT}/questions").json()["questions"]
    assert question["id"] == other["id"] == planted
    answer = ask("Ada", "POST", f"{AT}/answer", {"ticket": planted, "label": "cat"}).json()
    says(ask, "Ada", "cat")
    like = ask("Ada", "POST", f"{AT}/answer", {"ticket": ticket, "label": "cat"}).json()
    assert set(answer) == set(like)
    assert (answer["status"], like["status"]) == ("answered", "answered")
    (plain,) = team.agent.questions(None, limit=5) or [None]
    assert plain is None  # the one observation was answered
    assert set(question) == set(other)
    told = ask("admin", "GET", f"{AT}/people").json()
    assert [(one["expert"], one["known"], one["known_right"]) for one in told["people"]] == [("Ada", 1, 0)]
    assert told["planted"] == {"items": 1, "answers": 1, "cost": 1.0}
    bad = {"observations": [{"features": [3, 2, 1], "label": "cow"}]}
    refused = ask("admin", "POST", f"{AT}/plant", bad)
    assert (refused.status_code, refused.json()["error"]) == (422, "labels[0] is 'cow': the classes are cat, dog")
    assert ask("producer", "POST", f"{AT}/plant", body).status_code == 403


def test_checks_are_changed_and_refused(team, ask):
    told = ask("admin", "PUT", f"{AT}/checks", {"second_opinions": 0.1, "stop_careless": True}).json()
    assert (told["second_opinions"], told["stop_careless"], told["disagreements"]) == (0.1, True, "third")
    refused = ask("admin", "PUT", f"{AT}/checks", {"second_opinions": 1.5})
    assert refused.status_code == 422
    assert "second_opinions" in refused.json()["error"]
    body = {"name": "mails", "classes": ["ham", "spam"], "second_opinions": 0.2}
    assert ask("admin", "POST", "/api/agents", body).status_code == 201
    assert team.agent_of("mails").team.checks.second_opinions == 0.2


def test_who_is_stopped_gets_no_questions_and_an_alert_tells_of_the_careless(team, ask):
    team.agent.team.set_checks(known_answers=1.0, stop_careless=True, second_opinions=0.0)
    team.agent.team.plant([[i, 0, 0] for i in range(40)], ["cat"] * 40)
    observed(ask)
    for _ in range(40):
        says(ask, "Ben", "dog")
    (ben,) = ask("admin", "GET", f"{AT}/people").json()["people"]
    assert ben["careless"] is not None
    assert ben["stopped"] is not None
    assert ben["answers"] < 15
    board = ask("admin", "GET", f"{AT}/board").json()
    (alert,) = [one["text"] for one in board["alerts"] if one["kind"] == "careless"]
    assert alert.startswith(f"Ben was found careless after {ben['found_after']} answers: ")
    assert "gets no questions any more" in alert
    metrics = ask("admin", "GET", "/metrics").text
    assert 'sparingly_agent_alert{agent="default",kind="careless"} 1.0' in metrics
    assert 'sparingly_expert_answers{agent="default",expert="Ben"}' in metrics
    ask("admin", "POST", f"{AT}/people/allow", {"person": "Ben"})
    assert ask("Ben", "POST", f"{AT}/questions").json()["questions"]
    told = ask("admin", "POST", f"{AT}/people/stop", {"person": "Ben"}).json()
    assert told["people"][0]["stopped"] is not None
    assert ask("Ben", "POST", f"{AT}/questions").json()["questions"] == []


def test_a_client_plants_looks_and_settles(team):
    with team.on_a_socket() as url:
        people = {name: sp.Client(url, team.tokens[name]) for name in ("admin", "Ada", "Ben")}
        admin = people["admin"]
        assert len(admin.plant([[1, 2, 3], [3, 2, 1]], ["cat", "dog"], payloads=["a", "b"])) == 2
        ticket = admin.observe([1, 2, 3])
        for name, label in (("Ada", "cat"), ("Ben", "dog")):
            people[name].questions()
            people[name].answer(ticket.id, label)
        admin.adjudicate(ticket.id, "dog")
        assert admin.ticket(ticket.id).label == "dog"
        assert {one.expert: one.settled_right for one in admin.people()} == {"Ada": 0, "Ben": 1}
        assert admin.stats().second_opinions == 1
        for client in people.values():
            client.close()
