"""The ML backend against requests that a real Label Studio 1.23 has sent."""

import base64
import copy
import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from sparingly.adapters.label_studio import router
from sparingly.live.service.app import create_app
from sparingly.live.service.service import Service

AT = "/api/agents/default/label-studio"
RECORDED = {r["name"]: r for r in json.loads((Path(__file__).parent / "label_studio_requests.json").read_text())}


@pytest.fixture
def service(tmp_path):
    service = Service(str(tmp_path))
    service.agents.create("default", classes=["ham", "spam"], strategy="always_ask", training="inline")
    return service


@pytest.fixture
def client(service):
    token = service.tokens.create("label studio", "host")[1]
    credentials = base64.b64encode(f"anyone:{token}".encode()).decode()
    app = create_app(service, routers=[router])
    with TestClient(app, headers={"authorization": f"Basic {credentials}"}) as client:
        yield client


@pytest.fixture
def send(client):
    """Send a recorded request, or a changed one."""

    def call(name, change=None):
        request = copy.deepcopy(RECORDED[name])
        if change is not None:
            change(request["body"])
        return client.request(request["method"], f"{AT}/{request['path']}", json=request["body"])

    return call


def test_connecting(send, client):
    assert send("health").json()["status"] == "UP"
    assert send("setup").json() == {"model_version": "sparingly-0"}
    assert client.get(f"{AT}/versions").json() == {"versions": ["sparingly-0"]}


def test_predictions_have_the_shape_that_label_studio_reads(send):
    results = send("predict").json()["results"]
    assert len(results) == len(RECORDED["predict"]["body"]["tasks"]) == 4
    for result in results:
        (choice,) = result["result"]
        assert (choice["from_name"], choice["to_name"], choice["type"]) == ("kind", "letter", "choices")
        assert choice["value"]["choices"][0] in ("ham", "spam")
        assert 0 <= result["score"] <= 0.5
        assert result["model_version"] == "sparingly-0"


def test_answers_flow_back(send, service):
    send("predict")
    agent = service.agents.get("default")
    assert agent.stats().open == 4
    for name in ("annotation_created_31", "annotation_created_32", "annotation_created_33"):
        assert send(name).status_code == 200
    labels = [entry.label for entry in agent.history()]
    assert labels == ["spam", "spam", "ham", None]
    assert send("annotation_updated").json()["tickets"][0]["label"] == "ham"
    assert [entry.label for entry in agent.history()] == ["ham", "spam", "ham", None]
    assert send("setup").json() == {"model_version": "sparingly-3"}
    trail = [line["did"] for line in service.audit.lines(limit=20) if line["agent"] == "default"]
    assert trail.count("answered") == 4


def test_open_questions_are_sorted_before_the_others(send):
    send("predict")
    send("annotation_created_32")
    scores = [result["score"] for result in send("predict").json()["results"]]
    assert scores[1] > 0.5
    assert max(scores[0], *scores[2:]) <= 0.5


def test_asking_again_does_not_observe_again(send, service):
    first = send("predict").json()
    assert send("predict").json() == first
    assert service.agents.get("default").stats().observations == 4


def test_an_annotation_of_a_task_that_was_never_sent(send, service):
    send("annotation_created_33")
    (entry,) = service.agents.get("default").history()
    assert (entry.label, entry.status) == ("ham", "answered")


def test_a_skip_is_a_skip_and_can_be_undone_by_an_answer(send, service):
    send("predict")
    assert send("skipped").json()["tickets"][0]["label"] is None
    statuses = [entry.status for entry in service.agents.get("default").history()]
    assert statuses == ["open", "open", "open", "skipped"]

    def answered(body):
        body["annotation"] |= {
            "was_cancelled": False,
            "result": RECORDED["annotation_created_31"]["body"]["annotation"]["result"],
        }

    send("skipped", answered)
    assert service.agents.get("default").history()[3].label == "spam"


@pytest.mark.parametrize("name", ["annotations_deleted", "start_training"])  # the deleted one is another's
def test_other_events_change_nothing(send, service, name):
    send("annotation_created_31")
    before = service.agents.get("default").history()
    assert send(name).status_code == 200
    assert service.agents.get("default").history() == before


def test_several_annotations_at_once(send, service):
    def many(body):
        other = copy.deepcopy(RECORDED["annotation_created_33"]["body"])
        body.update(
            action="ANNOTATIONS_CREATED",
            annotation=[body["annotation"], other["annotation"]],
            task=[body["task"], other["task"]],
        )

    assert send("annotation_created_31", many).status_code == 200
    assert [entry.label for entry in service.agents.get("default").history()] == ["spam", "ham"]


def test_an_edited_task_is_another_observation(send, service):
    send("predict")
    send("predict", lambda body: body["tasks"][0]["data"].update(text="meet for lunch"))
    assert service.agents.get("default").stats().observations == 5


def test_numbers_come_before_text(send, service):
    def numbers(body):
        for place, task in enumerate(body["tasks"]):
            task["data"] |= {"length": 10 + place, "links": place}

    send("predict", numbers)
    assert service.agents.get("default").settings.names == ("length", "links")


def test_it_learns_from_text(tmp_path):
    service = Service(str(tmp_path / "learning"))
    agent = service.agents.create("default", classes=["ham", "spam"], training="inline", options={"width": 20})
    token = service.tokens.create("label studio", "host")[1]
    words = {"spam": "win money now", "ham": "meet for lunch"}
    body = copy.deepcopy(RECORDED["annotation_created_31"]["body"])
    with TestClient(create_app(service, routers=[router]), headers={"authorization": f"Bearer {token}"}) as client:
        for k in range(40):
            label = ("spam", "ham")[k % 2]
            body["task"] |= {"id": 100 + k, "data": {"text": f"{words[label]} {k}"}}
            body["annotation"]["result"][0]["value"]["choices"] = [label]
            assert client.post(f"{AT}/webhook", json=body).status_code == 200
        predict = copy.deepcopy(RECORDED["predict"]["body"])
        predict["tasks"] = [{"id": 1, "data": {"text": "win win money"}}, {"id": 2, "data": {"text": "lunch for all"}}]
        results = client.post(f"{AT}/predict", json=predict).json()["results"]
    assert agent.stats is not None
    assert [result["result"][0]["value"]["choices"] for result in results] == [["spam"], ["ham"]]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("setup", lambda b: b.update(schema=b["schema"].replace("spam", "eggs")), "'eggs' is only among the choices"),
        ("setup", lambda b: b.update(schema="<View><Text"), "is not XML"),
        ("setup", lambda b: b.update(schema='<!DOCTYPE a [<!ENTITY x "y">]><View/>'), "has a document type"),
        ("setup", lambda b: b.update(schema="<View/>"), "no <Choices>"),
        ("predict", lambda b: b["tasks"][1].update(data={"image": "/data/1.png"}), "task 32 has neither numbers"),
        ("annotation_created_31", lambda b: b["annotation"]["result"][0]["value"].update(choices=["x"]), "class 'x'"),
    ],
)
def test_what_makes_no_sense_is_named_and_nothing_is_kept(send, service, name, change, message):
    answer = send(name, change)
    assert answer.status_code == 422
    assert message in answer.json()["error"]
    assert not [entry for entry in service.agents.get("default").history() if entry.label is not None]


def test_who_may(service):
    app = create_app(service, routers=[router])
    with TestClient(app) as client:
        assert client.get(f"{AT}/health").status_code == 401
        assert client.get(f"{AT}/health", headers={"authorization": "Basic nonsense!"}).status_code == 401
        for role, status in (("expert", 403), ("producer", 403), ("admin", 200)):
            token = service.tokens.create(role, role)[1]
            headers = {"authorization": f"Bearer {token}"}
            assert client.get(f"{AT}/health", headers=headers).status_code == status
        host = {"authorization": f"Bearer {service.tokens.create('host', 'host')[1]}"}
        assert client.get("/api/tokens", headers=host).status_code == 403
        assert client.post("/api/agents/default/questions", headers=host).status_code == 403
