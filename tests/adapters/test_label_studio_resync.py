"""Annotations that are fetched again, corrected and deleted, with a server that answers as Label Studio's API does."""

from __future__ import annotations

import base64
import copy
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from sqlalchemy import select
from starlette.testclient import TestClient

from sparingly.adapters.label_studio import label_studio_api, router
from sparingly.live.service.app import create_app
from sparingly.live.service.service import Service
from sparingly.live.service.service_database import label_studio_annotations, label_studio_projects

AT = "/api/agents/default/label-studio"
RECORDED = {r["name"]: r for r in json.loads((Path(__file__).parent / "label_studio_requests.json").read_text())}
TOKEN, PERSONAL = "0" * 40, "eyJh.eyJz.c2ln"


class Studio:
    """The tasks of the recorded project, and its API: pages of tasks, the project, its people."""

    def __init__(self) -> None:
        self.tasks = {task["id"]: copy.deepcopy(task) for task in RECORDED["predict"]["body"]["tasks"]}
        self.asked: list[str] = []
        studio = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                studio.asked.append(self.path)
                known = self.headers["authorization"] in (f"Token {TOKEN}", "Bearer short-lived")
                self._answer(*(studio.answer(self.path) if known else (401, {"detail": "Invalid token."})))

            def do_POST(self) -> None:
                sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self._answer(*((200, {"access": "short-lived"}) if sent == {"refresh": PERSONAL} else (401, {})))

            def _answer(self, status: int, body: object) -> None:
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, path: str) -> tuple[int, object]:
        parts = urlsplit(path)
        if parts.path == "/api/tasks/":
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            assert (query["project"], query["fields"]) == ("2", "all")
            size, page = int(query["page_size"]), int(query["page"])
            listed = list(self.tasks.values())[size * (page - 1) : size * page]
            return 200, {"tasks": listed, "total": len(self.tasks), "total_annotations": 0, "total_predictions": 0}
        people = {"id": 1, "email": "ada@example.org", "first_name": "Ada", "last_name": "Lovelace"}
        found = {"/api/projects/2/": RECORDED["annotation_created_31"]["body"]["project"], "/api/users/1/": people}
        return (200, found[parts.path]) if parts.path in found else (404, {"detail": "Not found."})

    def annotate(self, *names: str) -> None:
        """What a recorded event tells of is so here."""
        for name in names:
            annotation = RECORDED[name]["body"]["annotation"]
            kept = self.tasks[annotation["task"]]["annotations"]
            kept[:] = [one for one in kept if one["id"] != annotation["id"]] + [copy.deepcopy(annotation)]

    def delete(self, task: int) -> None:
        self.tasks[task]["annotations"].clear()


@pytest.fixture
def studio():
    studio = Studio()
    yield studio
    studio.server.shutdown()
    studio.server.server_close()


@pytest.fixture
def start(tmp_path):
    """Start a service on the same folder, with a client of its own."""
    opened = []

    def begin() -> tuple[Service, TestClient]:
        service = Service(str(tmp_path))
        if "default" not in service.agents.names():
            service.agents.create("default", classes=["ham", "spam"], strategy="always_ask", training="inline")
        name = f"label studio {len(service.tokens.list())}"
        credentials = base64.b64encode(f"x:{service.tokens.create(name, 'host')[1]}".encode()).decode()
        app = create_app(service, routers=[router])
        headers = {"authorization": f"Basic {credentials}"}
        opened.append(TestClient(app, headers=headers, raise_server_exceptions=False))
        return service, opened[-1].__enter__()

    yield begin
    for client in opened:
        if client.portal is not None:
            client.__exit__(None, None, None)


def send(client, name, **changes):
    body = copy.deepcopy(RECORDED[name]["body"]) | changes
    return client.post(f"{AT}/{RECORDED[name]['path']}", json=body)


def connect(client, studio):
    assert send(client, "setup", hostname=studio.url).status_code == 200


def resync(client, **body):
    return client.post(f"{AT}/resync", json=body)


def labels(service):
    return {e.id.split(".")[2]: (e.label, e.status) for e in service.agents.get("default").history()}


def eventually(holds, seconds=60):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


THREE = ("annotation_created_31", "annotation_created_32", "annotation_created_33")
LEARNED = {"31": ("spam", "answered"), "32": ("spam", "answered"), "33": ("ham", "answered")}


def test_what_was_annotated_before_connecting_is_fetched_page_by_page(start, studio, monkeypatch):
    monkeypatch.setattr(label_studio_api, "PAGE", 2)
    studio.annotate(*THREE)
    service, client = start()
    connect(client, studio)
    eventually(lambda: labels(service) == LEARNED)
    assert len([path for path in studio.asked if path.startswith("/api/tasks/")]) == 2
    asked = len(studio.asked)
    connect(client, studio)
    assert resync(client).json() == {"tasks": 4, "annotations": 3, "changed": 0, "problems": []}
    assert len([path for path in studio.asked[asked:] if path.startswith("/api/tasks/")]) == 2, "setup fetched nothing"
    assert {(one.expert, one.answers) for one in service.agents.get("default").experts()} == {("Ada Lovelace", 3)}


def test_what_happened_while_the_service_was_down_is_fetched_at_its_start(start, studio):
    service, client = start()
    connect(client, studio)
    for name in THREE:
        send(client, name)
    assert labels(service) == LEARNED
    client.__exit__(None, None, None)
    studio.annotate(*THREE, "annotation_updated", "skipped")
    studio.delete(32)
    service, client = start()
    after = {"31": ("ham", "answered"), "32": (None, "open"), "33": ("ham", "answered"), "57": (None, "skipped")}
    eventually(lambda: labels(service) == after)
    assert resync(client).json()["changed"] == 0
    done = {(line["who"], line["did"]) for line in service.audit.lines(limit=4)}
    assert {("label studio resync", "took back"), ("label studio resync", "answered")} <= done


def test_a_deleted_agent_leaves_neither_its_token_nor_its_annotations(start, studio, tmp_path):
    service, client = start()
    connect(client, studio)
    for name in THREE:
        send(client, name)
    admin = {"authorization": f"Bearer {service.tokens.create('admin', 'admin')[1]}"}
    assert client.delete("/api/agents/default", headers=admin).status_code == 200
    with service.database.reading() as connection:
        for table in (label_studio_projects, label_studio_annotations):
            assert connection.execute(select(table)).all() == []


def test_a_deleted_annotation_is_unlearned(start, studio):
    service, client = start()
    for name in THREE:
        send(client, name)
    deleted = send(client, "annotations_deleted").json()["tickets"]
    assert [(one["ticket"].split(".")[2], one["label"]) for one in deleted] == [("32", None)]
    assert labels(service) == LEARNED | {"32": (None, "open")}
    assert send(client, "annotations_deleted").json()["tickets"] == []
    assert send(client, "annotation_created_32").status_code == 200
    assert labels(service) == LEARNED


def test_of_two_annotations_the_last_stands_and_the_other_when_it_is_deleted(start):
    service, client = start()
    first = RECORDED["annotation_created_31"]["body"]["annotation"]
    second = RECORDED["annotation_updated"]["body"]["annotation"] | {"id": 900, "completed_by": 7}
    person = {"id": 7, "email": "bob@example.org", "first_name": "", "last_name": ""}
    send(client, "annotation_updated", annotation=second | {"completed_by": person})
    send(client, "annotation_created_31", annotation=first)
    entry = service.agents.get("default").history()[0]
    assert (entry.label, entry.expert) == ("ham", "bob@example.org"), "the first came late"
    send(client, "annotations_deleted", annotations=[{"id": 900}])
    entry = service.agents.get("default").history()[0]
    assert (entry.label, entry.expert) == ("spam", "Label Studio user 1")


def test_a_label_from_our_own_page_is_not_taken_back(start):
    service, client = start()
    send(client, "annotation_created_32")
    agent = service.agents.get("default")
    agent.answer(agent.history()[0].id, "ham", expert="ann", overrule=True)
    send(client, "annotations_deleted")
    assert labels(service) == {"32": ("ham", "answered")}


def test_the_address_can_be_told_and_a_personal_token_is_exchanged(start, studio):
    studio.annotate(*THREE)
    service, client = start()
    assert resync(client, project=2, url=studio.url, token=PERSONAL).json()["changed"] == 3
    send(client, "setup", hostname="http://127.0.0.1:1")
    studio.delete(31)
    assert resync(client).json()["changed"] == 1, "what a person told stands"
    assert labels(service)["31"] == (None, "open")


def test_what_cannot_be_fetched_is_named_and_nothing_is_lost(start, studio):
    studio.annotate(*THREE)
    studio.tasks[32]["data"] = {"image": "/data/1.png"}
    service, client = start()
    for body, status, message in (
        ({"project": 2}, 422, "it is not known where project 2 is"),
        ({"project": "../x"}, 422, "is not a project's number"),
        ({"project": 2, "url": "file:///etc", "token": "x"}, 422, "must be http or https"),
        ({"project": 2, "url": studio.url}, 422, "given together"),
        ({"project": 2, "url": studio.url, "token": "wrong"}, 502, "said 401"),
        ({"project": 3, "url": studio.url, "token": TOKEN}, 502, "said 404"),
        ({"project": 2, "url": "http://127.0.0.1:1", "token": TOKEN}, 502, "cannot be reached"),
    ):
        refused = resync(client, **body)
        assert (refused.status_code, message in refused.text) == (status, True), refused.text
    told = resync(client, project=2, url=studio.url, token=TOKEN).json()
    assert (told["changed"], len(told["problems"])) == (2, 1)
    assert told["problems"][0].startswith("task 32: task 32 has neither numbers nor text")
    assert set(labels(service)) == {"31", "33"}


WRONG = [None, True, -1, 10**400, 1.5, "", "x" * 300, "\ud800", "\x00", [], [[]], [None], {}, {"id": {}}, {"a": [1]}]
PLACES = {
    "setup": ["schema", "project", "hostname", "access_token"],
    "predict": ["tasks", "tasks.0", "tasks.0.id", "tasks.0.data", "tasks.0.data.text", "label_config", "project"],
    "annotation_created_31": [
        *("action", "project", "project.id", "project.label_config", "task", "task.id", "task.data", "task.data.text"),
        *("annotation", "annotation.id", "annotation.result", "annotation.result.0", "annotation.result.0.value"),
        *("annotation.result.0.from_name", "annotation.result.0.value.choices", "annotation.result.0.value.choices.0"),
        *("annotation.completed_by", "annotation.was_cancelled", "annotation.updated_at"),
    ],
    "annotations_deleted": ["annotations", "annotations.0", "annotations.0.id", "project", "project.id"],
}


@pytest.mark.parametrize("name", PLACES)
def test_whatever_label_studio_sends_is_taken_or_refused_in_words(start, name):
    """Every part that matters is left out, or is of a wrong type, too long, too large or not text at all."""
    _, client = start()
    path = f"{AT}/{RECORDED[name]['path']}"
    missing = object()
    for place in PLACES[name]:
        for wrong in (missing, *WRONG):
            body = copy.deepcopy(RECORDED[name]["body"]) | {"access_token": ""}
            *way, last = [int(part) if part.isdigit() else part for part in place.split(".")]
            inner = body
            for part in way:
                inner = inner[part]
            if wrong is missing:
                del inner[last]
            else:
                inner[last] = wrong
            answer = client.post(path, content=json.dumps(body), headers={"content-type": "application/json"})
            assert answer.status_code in (200, 400, 404, 409, 422), (place, wrong, answer.text)
            assert answer.status_code == 200 or answer.json()["error"], (place, wrong)


@pytest.mark.parametrize("body", ["[]", "3", "null", '"x"', "{", "[" * 900 + "]" * 900, '{"action": "x"}'])
def test_bodies_that_are_none(start, body):
    _, client = start()
    for route in ("setup", "predict", "webhook", "resync"):
        answer = client.post(f"{AT}/{route}", content=body, headers={"content-type": "application/json"})
        assert answer.status_code < 500, answer.text
