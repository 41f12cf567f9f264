"""The service's routes: whom each refuses, and what it says to nonsense."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest
from starlette.testclient import TestClient

from sparingly.live.service.auth.tokens import ADMIN, EXPERT, PRODUCER, ROLES
from sparingly.live.service.service_limits import ServiceLimits
from tests.live.served import AT, Served, X, observed


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("observations", b"{", 400, "the body is not JSON"),
        ("observations", b'{"text": "\xff"}', 400, "the body is not UTF-8: byte 0xff at place 10"),
        ("observations", b'{"features": [1, NaN, 2]}', 422, "feature 1 is nan"),
        ("observations", b'{"features": [1, 1e999, 2]}', 422, "feature 1 is inf"),
        ("observations", b'{"features": [1, 2]}', 422, "an observation has 2 features, not 3"),
        ("observations", b'{"features": [1, "x", 2]}', 422, "feature 1 is 'x'"),
        ("observations", b'{"features": []}', 422, "an observation has 0 features, not 3"),
        ("observations", b'{"features": {"a": 1, "b": 2}}', 422, "2 features, not 3"),
        ("observations", b'{"features": [[[[1]]], 2, 3]}', 422, "features"),
        ("observations", b"[" * 9000, 400, "body"),
        ("observations", b'{"features": [%s]}' % b",".join([b"1"] * 51), 422, "more than 50 features"),
        ("observations", b'{"features": [1, 2, 3], "id": ""}', 422, "id"),
        ("observations", b'{"features": [1, 2, 3], "id": "t.77"}', 422, "of the form that the agent gives itself"),
        ("observations", b'{"features": [1, 2, 3], "id": "\\ud800"}', 422, "id"),
        ("observations", b'{"features": [1, 2, 3], "colour": 1}', 422, "colour"),
        ("observations", b'{"features": [1, 2, 3], "payload": {}}', 422, "none of them"),
        ("observations", b'{"features": [1, 2, 3], "payload": "a"}', 422, "payload: Input should be an object, not"),
        ("observations", b'{"features": [1, 2, 3], "payload": {"text": "a", "fields": {}}}', 422, "text and fields"),
        ("observations", b'{"features": [1, 2, 3], "payload": {"image": "%%%"}}', 422, "not base64"),
        ("observations", b'{"features": [1, 2, 3], "payload": {"fields": {"a": [1]}}}', 422, "payload.fields.a"),
        ("observations/batch", b'{"observations": [%s]}' % b",".join([b'{"features": [1,2,3]}'] * 21), 422, "21"),
        ("answer", b'{"ticket": "nope", "label": "dog"}', 404, "there is no ticket 'nope'"),
        ("answer", b'{"ticket": "a", "label": "bird"}', 422, "class 'bird' is unknown: the classes are cat, dog"),
        ("answer", b'{"ticket": "a", "label": null}', 422, "label"),
        ("answer", b'{"ticket": "a"}', 422, "label: Field required"),
        ("withdraw", b'{"ticket": "nope"}', 404, "nope"),
    ],
)
def test_nonsense_is_named(ask, client, served, path, body, status, said):
    observed(ask, id="a")
    headers = {**served.headers(ADMIN), "content-type": "application/json"}
    refused = client.post(f"{AT}/{path}", content=body, headers=headers)
    assert refused.status_code == status
    assert said in refused.json()["error"]
    assert len(served.agent.history()) == 1, "nothing was kept"


def test_large_bodies_are_refused_whether_or_not_they_say_so(client, served):
    headers = {**served.headers(PRODUCER), "content-type": "application/json"}
    told = client.post(f"{AT}/observations", content=b"x" * 100_001, headers=headers)
    assert (told.status_code, told.json()["error"]) == (413, "the body has 100001 bytes: 100000 are the most")
    chunked = client.post(f"{AT}/observations", content=(b"x" * 1000 for _ in range(101)), headers=headers)
    assert chunked.status_code == 413


def test_a_body_that_is_not_sent_as_json_is_named(client, served):
    told = client.post(f"{AT}/observations", content=b'{"features": [1, 2, 3]}', headers=served.headers(PRODUCER))
    assert (told.status_code, "content-type" in told.json()["error"]) == (415, True)


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON", "application/vnd.api+json"])
def test_json_by_any_of_its_names_is_read(client, served, kind):
    headers = {**served.headers(PRODUCER), "content-type": kind}
    for path, body in (("observations", b'{"features": [1, 2, 3]}'), ("observations/batch", b'{"observations": []}')):
        assert client.post(f"{AT}/{path}", content=body, headers=headers).status_code == 200


def test_a_stranger_is_refused_before_the_body_is_read(client):
    told = client.post(f"{AT}/observations", content=b"x" * 100_001)
    assert (told.status_code, told.json()) == (401, {"error": "a token is needed"})


def test_an_unforeseen_error_tells_nothing_of_the_inside(ask, served, monkeypatch, caplog):
    monkeypatch.setattr(type(served.agent), "stats", lambda self: 1 / 0)
    told = ask(ADMIN, "GET", f"{AT}/statistics")
    assert told.status_code == 500
    assert set(told.json()) == {"error"}
    assert "division" not in told.text
    number = told.json()["error"].split()[-1]
    assert number in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_an_unknown_agent_and_an_unknown_path(ask, client):
    assert ask(ADMIN, "GET", "/api/agents/nobody/statistics").json() == {"error": "there is no agent 'nobody'"}
    assert ask(ADMIN, "GET", "/api/agents/../etc").status_code == 404
    assert ask(ADMIN, "GET", "/api/agents/Bad%20Name/statistics").status_code == 422
    assert client.get("/nothing").status_code == 404
    assert client.request("DELETE", "/health").status_code == 405


# roles

ANY, NONE = frozenset(ROLES), frozenset()
MAY = {
    ("GET", "/health"): None,
    ("GET", "/ready"): None,
    ("GET", "/metrics"): {PRODUCER, ADMIN},
    ("GET", "/api/agents"): ANY,
    ("POST", "/api/agents"): {ADMIN},
    ("GET", "/api/agents/{agent}"): ANY,
    ("DELETE", "/api/agents/{agent}"): {ADMIN},
    ("PUT", "/api/agents/{agent}/retention"): {ADMIN},
    ("POST", "/api/agents/{agent}/erase"): {ADMIN},
    ("POST", "/api/agents/{agent}/state/{what}"): {ADMIN},
    ("POST", "/api/agents/{agent}/rename"): {ADMIN},
    ("PUT", "/api/agents/{agent}/reveal"): {ADMIN},
    ("PUT", "/api/agents/{agent}/costs"): {ADMIN},
    ("GET", "/api/agents/{agent}/webhooks"): {ADMIN},
    ("POST", "/api/agents/{agent}/webhooks"): {ADMIN},
    ("DELETE", "/api/agents/{agent}/webhooks/{webhook}"): {ADMIN},
    ("GET", "/api/agents/{agent}/webhooks/{webhook}/dead"): {ADMIN},
    ("POST", "/api/agents/{agent}/webhooks/{webhook}/resend"): {ADMIN},
    ("POST", "/api/agents/{agent}/webhooks/{webhook}/test"): {ADMIN},
    ("POST", "/api/agents/{agent}/observations"): {PRODUCER, ADMIN},
    ("POST", "/api/agents/{agent}/observations/batch"): {PRODUCER, ADMIN},
    ("POST", "/api/agents/{agent}/observations/image"): {PRODUCER, ADMIN},
    ("POST", "/api/agents/{agent}/withdraw"): {PRODUCER, ADMIN},
    ("GET", "/api/agents/{agent}/ticket"): {PRODUCER, ADMIN},
    ("POST", "/api/agents/{agent}/questions"): {EXPERT, ADMIN},
    ("POST", "/api/agents/{agent}/answer"): {EXPERT, ADMIN},
    ("POST", "/api/agents/{agent}/renew"): {EXPERT, ADMIN},
    ("POST", "/api/agents/{agent}/correct"): {EXPERT, ADMIN},
    ("POST", "/api/agents/{agent}/skip"): {EXPERT, ADMIN},
    ("POST", "/api/agents/{agent}/dont-know"): {EXPERT, ADMIN},
    ("POST", "/api/agents/{agent}/release"): {EXPERT, ADMIN},
    ("POST", "/api/agents/{agent}/teach"): {PRODUCER, ADMIN},
    ("POST", "/api/agents/{agent}/undo"): {EXPERT, ADMIN},
    ("GET", "/api/agents/{agent}/events"): {PRODUCER, EXPERT, ADMIN},
    ("GET", "/api/agents/{agent}/tickets"): {PRODUCER, ADMIN},
    ("GET", "/api/agents/{agent}/answers"): {EXPERT, ADMIN},
    ("GET", "/api/agents/{agent}/search"): {ADMIN},
    ("GET", "/api/agents/{agent}/details"): {ADMIN},
    ("GET", "/api/agents/{agent}/descriptions"): {EXPERT, ADMIN},
    ("PUT", "/api/agents/{agent}/descriptions"): {ADMIN},
    ("POST", "/api/agents/{agent}/classes"): {EXPERT, ADMIN},
    ("PUT", "/api/agents/{agent}/new-classes"): {ADMIN},
    ("GET", "/api/agents/{agent}/statistics"): {ADMIN},
    ("GET", "/api/agents/{agent}/history"): {ADMIN},
    ("GET", "/api/agents/{agent}/board"): {ADMIN},
    ("GET", "/api/agents/{agent}/people"): {ADMIN},
    ("POST", "/api/agents/{agent}/people/{what}"): {ADMIN},
    ("PUT", "/api/agents/{agent}/checks"): {ADMIN},
    ("GET", "/api/agents/{agent}/disagreements"): {ADMIN},
    ("POST", "/api/agents/{agent}/adjudicate"): {ADMIN},
    ("POST", "/api/agents/{agent}/plant"): {ADMIN},
    ("GET", "/api/agents/{agent}/export"): {ADMIN},
    ("GET", "/api/audit"): {ADMIN},
    ("GET", "/api/tokens"): {ADMIN},
    ("POST", "/api/tokens"): {ADMIN},
    ("DELETE", "/api/tokens/{token}"): {ADMIN},
}


def test_the_table_of_roles_has_every_route(served):
    described = served.app.openapi()["paths"]
    assert {(method.upper(), path) for path, methods in described.items() for method in methods} == set(MAY)


@pytest.mark.parametrize(("method", "path"), MAY)
def test_each_route_refuses_each_role_it_should(served, client, method, path):
    where = path.replace("{agent}", "default").replace("{token}", "0" * 12)
    may = MAY[method, path]
    told = client.request(method, where)
    assert told.status_code == (200 if may is None else 401)
    for wrong in ("Bearer nonsense", "Basic YTpi", f"Bearer {served.tokens[ADMIN]}x", "Bearer "):
        if may is not None:
            assert client.request(method, where, headers={"authorization": wrong}).status_code == 401
    for role in ROLES:
        if may is None or (role in may and path.endswith("/events")):
            continue
        told = client.request(method, where, headers=served.headers(role))
        allowed = role in may
        assert (told.status_code == 403) == (not allowed), told.text
        if not allowed and method == "GET":
            assert f"the role {role} may not do this" in told.json()["error"]


# one call's nonsense among others

DEEP = b"[" * 900 + b"1" + b"]" * 900


@pytest.mark.parametrize(
    "body",
    [
        b'{"features": [1%s, 1, 2]}' % (b"0" * 400),
        b'{"features": [1%s, 1, 2]}' % (b"0" * 4400),
        b'{"features": [%s, 1, 2]}' % DEEP,
        b'{"features": %s}' % DEEP,
        b'{"features": {"a": %s, "b": 1, "c": 2}}' % DEEP,
        b'{"features": [1, 2, 3], "id": "\\ud800"}',
        b'{"features": [1, 2, 3], "payload": {"text": "\\ud800"}}',
        b'{"features": [1, 2, 3], "payload": {"fields": {"\\ud800": 1}}}',
        b'{"features": [1, 2, 3], "payload": {"fields": {"a": "\\ud800"}}}',
        b'{"features": {"a": 1, "b": 2, "\\ud800": 3}}',
    ],
    ids=lambda body: body.decode()[:60],
)
def test_one_nonsensical_call_among_forty_fails_alone(served, body):
    good = json.dumps(X).encode()
    headers = {**served.headers(PRODUCER), "content-type": "application/json"}

    async def post_all():
        transport = httpx.ASGITransport(served.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://here", timeout=60) as client:
            bodies = [good] * 20 + [body] + [good] * 20
            posts = [client.post(f"{AT}/observations", content=one, headers=headers) for one in bodies]
            return await asyncio.wait_for(asyncio.gather(*posts), 60)

    answers = asyncio.run(post_all())
    served.service.close()
    assert [answer.status_code for answer in answers[:20] + answers[21:]] == [200] * 40
    assert answers[20].status_code in (400, 422), answers[20].text
    assert len(answers[20].json()["error"]) < 300


def test_a_failure_in_deciding_on_one_observation_is_its_callers_alone(served, monkeypatch):
    decide = type(served.agent._runtime.decider).decide

    def fails_on_seven(self, block):
        if any(x[0] == 7 for x in block):
            raise ZeroDivisionError
        return decide(self, block)

    monkeypatch.setattr(type(served.agent._runtime.decider), "decide", fails_on_seven)

    async def observe_all():
        calls = [served.service.observe(served.agent, [[float(i), 0.0, 0.0]], [None], [None]) for i in range(10)]
        return await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 60)

    results = asyncio.run(observe_all())
    assert [i for i, result in enumerate(results) if isinstance(result, ZeroDivisionError)] == [7]
    assert len(served.agent.history()) == 9


@pytest.mark.parametrize("depth", [50, 200, 400, 600, 800, 900, 940, 960, 980, 1000, 1500])
def test_a_body_nested_too_deep_is_refused(ask, client, served, depth):
    deep = b"[" * depth + b"]" * depth
    headers = {**served.headers(ADMIN), "content-type": "application/json"}
    for path, body in (
        (f"{AT}/observations", b'{"features": %s}' % deep),
        (f"{AT}/observations/batch", b'{"observations": [{"features": [%s]}]}' % deep),
        (f"{AT}/observations", b'{"features": [1, 2, 3], "payload": {"fields": {"a": %s}}}' % deep),
        (f"{AT}/observations", b'{"features": [1, 2, 3], "id": %s}' % deep),
        (f"{AT}/answer", b'{"ticket": "a", "label": %s}' % deep),
        ("/api/agents", b'{"name": "deep", "classes": %s}' % deep),
    ):
        assert client.post(path, content=body, headers=headers).status_code in (400, 422)


def test_a_class_name_that_is_not_unicode_is_refused(client, served):
    headers = {**served.headers(ADMIN), "content-type": "application/json"}
    body = b'{"name": "odd", "classes": ["cat", "\\ud800"]}'
    told = client.post("/api/agents", content=body, headers=headers)
    assert (told.status_code, "surrogate" in told.json()["error"]) == (422, True)
    assert client.get("/api/agents", headers=headers).json() == {"agents": ["default"]}


def test_an_observation_has_no_more_features_than_the_service_allows(tmp_path):
    served = Served(str(tmp_path), ServiceLimits(features=5))
    served.service.agents.create("wide", classes=["a", "b"], training="inline")
    headers = served.headers(ADMIN)
    with TestClient(served.app) as client:
        for features in ([1.0] * 6, [[1.0] * 3] * 2, {f"f{i}": 1.0 for i in range(6)}):
            told = client.post("/api/agents/wide/observations", json={"features": features}, headers=headers)
            assert (told.status_code, told.json()["error"]) == (422, "an observation has more than 5 features")
        assert client.post("/api/agents/wide/observations", json={"features": [1.0] * 5}, headers=headers).is_success
        made = client.post("/api/agents", json={"name": "w", "classes": ["a", "b"], "n_features": 6}, headers=headers)
        assert (made.status_code, made.json()["error"]) == (422, "n_features is 6: 5 are the most")
