"""Classes that turn up later, over HTTP: for admins, and for those whom they allow it."""

from __future__ import annotations

import pytest

from sparingly.live.client.client import Client
from sparingly.live.client.wire_format import RefusedError
from sparingly.live.service.auth.tokens import ADMIN, EXPERT, PRODUCER
from tests.live.served import Served

ZOO = "/api/agents/zoo"


@pytest.fixture
def served(tmp_path):
    served = Served(str(tmp_path / "store"))
    settings = {"classes": ["cat", "dog"], "n_features": 3, "strategy": "sparing", "training": "inline"}
    served.service.agents.create("zoo", **settings)
    return served


def first_question(ask):
    told = ask(EXPERT, "POST", f"{ZOO}/questions").json()
    return told["questions"][0], told["may_add_classes"]


def test_who_may_add_a_class(ask):
    for i in range(3):
        ask(PRODUCER, "POST", f"{ZOO}/observations", {"features": [i, 2, 3]})
    question, may_add = first_question(ask)
    assert not may_add
    for path, body in (("classes", {"label": "cow"}), ("answer", {"ticket": question["id"], "label": "cow"})):
        refused = ask(EXPERT, "POST", f"{ZOO}/{path}", body | ({"new_class": True} if path == "answer" else {}))
        assert (refused.status_code, "may not add classes" in refused.json()["error"]) == (403, True)
    assert ask(PRODUCER, "POST", f"{ZOO}/classes", {"label": "cow"}).status_code == 403
    assert ask(EXPERT, "PUT", f"{ZOO}/new-classes", {"people": ["expert"]}).status_code == 403
    assert ask(ADMIN, "PUT", f"{ZOO}/new-classes", {"people": ["expert"]}).json()["may_add_classes"] == ["expert"]
    question, may_add = first_question(ask)
    assert may_add
    body = {"ticket": question["id"], "label": "cow", "new_class": True}
    assert ask(EXPERT, "POST", f"{ZOO}/answer", body).json()["label"] == "cow"
    assert ask(EXPERT, "POST", f"{ZOO}/answer", body).status_code == 200  # again: nothing changes
    question, _ = first_question(ask)
    assert question["choices"] == ["cat", "dog", "cow"]
    told = ask(ADMIN, "POST", f"{ZOO}/classes", {"label": "pig", "cost": 2.0}).json()
    assert told == {"classes": ["cat", "dog", "cow", "pig"]}
    assert ask(ADMIN, "GET", ZOO).json()["costs"][3] == [2.0, 2.0, 2.0, 0.0]
    audit = ask(ADMIN, "GET", "/api/audit?limit=50").json()["lines"]
    assert {"added class", "allowed new classes", "answered"} <= {line["did"] for line in audit}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"label": "cat"}, "class 'cat' is named twice"),
        ({"label": " "}, "class ' '"),
        ({"label": "cow", "cost": -1}, "cost"),
        ({"label": None}, "label"),
    ],
)
def test_what_cannot_be_a_class(ask, body, words):
    refused = ask(ADMIN, "POST", f"{ZOO}/classes", body)
    assert (refused.status_code, words in refused.json()["error"]) == (422, True)
    assert ask(ADMIN, "GET", ZOO).json()["classes"] == ["cat", "dog"]


def test_the_client_adds_classes(served):
    with served.on_a_socket() as url:
        with Client(url, served.tokens[ADMIN], agent="zoo") as admin:
            ticket = admin.observe([1.0, 2.0, 3.0])
            assert admin.add_class("cow") == ["cat", "dog", "cow"]
            admin.answer(ticket.id, "pig", new_class=True)
            assert [entry.label for entry in admin.history()] == ["pig"]
        with (
            Client(url, served.tokens[EXPERT], agent="zoo") as expert,
            pytest.raises(RefusedError, match="may not add"),
        ):
            expert.add_class("hen")
