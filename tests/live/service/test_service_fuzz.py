"""Raw bodies that no honest client sends, on every route that takes one: a refusal that names the problem, soon."""

from __future__ import annotations

import functools
import gzip
import json
import tempfile
import time

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparingly.live.service.app import create_app
from sparingly.live.service.auth.tokens import ADMIN
from sparingly.live.service.service import Service
from sparingly.live.service.service_limits import ServiceLimits
from tests.live.served import AT, Served

DEADLINE = 60.0
"""Seconds that a call may take, on a machine that is busy with other things."""

GOOD = {
    "/observations": '{"features": [1, 2, 3], "id": "x", "payload": {"fields": {"a": 1}}}',
    "/observations/batch": '{"observations": [{"features": [1, 2, 3], "id": "y"}, {"features": [1, 2, 3]}]}',
    "/answer": '{"ticket": "a", "label": "dog"}',
    "/correct": '{"ticket": "a", "label": "dog"}',
    "/api/agents": (
        '{"name": "new", "classes": ["a", "b"], "n_features": 3, "costs": [{"announced": "a", "true": "b", "cost": 2}],'
        ' "query_cost": 1, "strategy": "always_ask", "seed": 0, "max_open": 5, "max_cost": 5, "audit_rate": 0.1,'
        ' "reveal": "after"}'
    ),
}
"""Bodies that routes take; the others' are made from the description of the service."""


def example(schema, components):
    """A value that fits a JSON schema."""
    if "$ref" in schema:
        return example(components[schema["$ref"].rpartition("/")[2]], components)
    if "anyOf" in schema:
        return example(schema["anyOf"][0], components)
    if "enum" in schema or "const" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    if schema.get("type") == "object":
        return {name: example(below, components) for name, below in schema.get("properties", {}).items()}
    if schema.get("type") == "array":
        return [example(schema["items"], components)]
    return {"string": "a", "integer": 1, "number": 1.5, "boolean": True}.get(schema.get("type"))


def bodies():
    """A body for each route that takes JSON; what is done to an agent as a whole is done to one that is spare."""
    with tempfile.TemporaryDirectory() as folder:
        service = Service(folder)
        described = create_app(service).openapi()
        service.close()
    found = {}
    for path, methods in described["paths"].items():
        for method, about in methods.items():
            content = about.get("requestBody", {}).get("content", {}).get("application/json")
            if content is None:
                continue
            good = GOOD.get(path.removeprefix("/api/agents/{agent}"))
            if good is None:
                good = json.dumps(example(content["schema"], described["components"]["schemas"]))
            agent = "spare" if about.get("tags") == ["look after"] else "default"
            found[f"{method.upper()} {path.replace('{agent}', agent)}"] = good
    return found


BODIES = bodies()

NUMBERS = [
    *("1e400", "-1e400", "NaN", "-Infinity", "-0", "-0.0", "1e-400", "1e39", "-1", "3.5", "true", "null"),
    *("9223372036854775808", "-9223372036854775809", "2147483648", "1" + "0" * 400, "1" + "0" * 5000),
]
TEXTS = [
    *('""', '" "', r'"\u0000"', r'"a\u0000b"', r'"\ud800"', r'"\udc00\ud800"', r'"\u202e"', r'"\n"', '"1"', '"t.5"'),
    *('"\N{GRINNING FACE}"', '"../../etc/passwd"', '"%00"', '"' + "x" * 30_000 + '"'),
]
NESTED = [
    *("[]", "{}", "[[]]", "[null]", "[[1, 2], [3]]", '{"a": 1, "a": 2}', '{"": 1}', r'{"\u0000": 1, "b": 2, "c": 3}'),
    *("[" * depth + "]" * depth for depth in (40, 900, 990, 5000)),
    '{"a": ' * 900 + "1" + "}" * 900,
]
ODD = NUMBERS + TEXTS + NESTED


@pytest.fixture(scope="module")
def send_to_sqlite(tmp_path_factory):
    """A function that sends a body and gives the status; it fails on an error of ours, and on a slow or empty reply."""
    yield from _sender(str(tmp_path_factory.mktemp("fuzz") / "store"))


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def send(request):
    """The same, for what may reach a database, to a service on each of them."""
    if request.param == "sqlite":
        yield request.getfixturevalue("send_to_sqlite")
    else:
        with request.getfixturevalue("postgres_server").database() as url:
            yield from _sender(url)


def _sender(place):
    served = Served(place, ServiceLimits(body=400_000, features=50, block=20, per_second=1e6, burst=1e6))
    served.service.agents.create = functools.partial(served.service.agents.create, training="inline")
    served.agent.observe([1, 2, 3], id="a")
    headers = {**served.headers(ADMIN), "content-type": "application/json"}
    with served.on_a_socket() as url, httpx.Client(base_url=url, headers=headers, timeout=DEADLINE) as client:

        def send(route, body, **more):
            method, path = route.split(" ")
            if "/spare" in path and "spare" not in served.service.agents.names():
                served.service.agents.create("spare", classes=["cat", "dog"], n_features=3, strategy="always_ask")
            began = time.monotonic()
            reply = client.request(method, path, content=body, headers=more)
            assert time.monotonic() - began < DEADLINE
            assert reply.status_code < 500, (route, body[:200], reply.text)
            if reply.status_code >= 400:
                assert set(reply.json()) == {"error"}
                assert 0 < len(reply.json()["error"]) <= 500
            return reply.status_code

        yield send
        assert client.get("/ready").status_code == 200
        assert client.get(f"{AT}/history").status_code == 200
        for name in client.get("/api/agents").json()["agents"]:
            assert client.get(f"/api/agents/{name}/board").status_code == 200


def places(value, path=()):
    """The path of every value inside a body."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inside:
        yield from places(below, (*path, key))


def replaced(value, path, odd):
    """A body as text in which one value is an odd one."""
    if not path:
        return odd
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    parts = [(k, replaced(v, path[1:], odd) if k == path[0] else json.dumps(v)) for k, v in inside]
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {text}" for key, text in parts) + "}"
    return "[" + ", ".join(text for _, text in parts) + "]"


@pytest.mark.parametrize("route", BODIES)
def test_an_odd_value_anywhere_in_a_body(request, send, route):
    """Every odd value at the outer places; a third of them further in, and on the second database, by turns."""
    body, again = json.loads(BODIES[route]), "postgresql" in request.node.name
    statuses = set()
    for number, path in enumerate(places(body)):
        for odd in ODD[number % 3 :: 3] if again or len(path) > 1 else ODD:
            statuses.add(send(route, replaced(body, path, odd).encode()))
    assert statuses & {404, 422}


@pytest.mark.parametrize("route", BODIES)
def test_a_body_that_is_not_json_in_utf_8(send_to_sqlite, route):
    send, good = send_to_sqlite, BODIES[route]
    for body in (
        *(b"", b" ", b"\0" * 10, b"\xff\xfe", b"null", b"[]", b'"x"', b"{'a': 1}", good[:-1].encode(), b"[" * 300_000),
        *(gzip.compress(good.encode()), good.encode() + b"\0"),
        good.replace('"', '"\udcff', 1).encode(errors="surrogateescape"),
    ):
        assert send(route, body) in (400, 415, 422)
    for encoding in ("utf-16", "utf-32", "utf-7", "utf-8-sig", "cp500"):
        send(route, good.encode(encoding))
    for kind in ("text/plain", "application/xml", "multipart/form-data", "application/x-www-form-urlencoded", "\xe9"):
        assert send(route, good.encode(), **{"content-type": kind.encode("latin-1")}) in (400, 415, 422)
    assert send(route, gzip.compress(good.encode()), **{"content-encoding": "gzip"}) in (400, 415, 422)


RAW = st.recursive(
    st.sampled_from(NUMBERS + TEXTS) | st.text(max_size=20).map(json.dumps) | st.integers().map(str),
    lambda inner: (
        st.lists(inner, max_size=5).map(lambda parts: "[" + ",".join(parts) + "]")
        | st.lists(st.tuples(st.sampled_from(["features", "id", "ticket", "a", ""]), inner), max_size=4).map(
            lambda pairs: "{" + ",".join(f'"{key}":{text}' for key, text in pairs) + "}"
        )
    ),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(route=st.sampled_from(sorted(BODIES)), text=RAW, data=st.data())
def test_any_json_at_any_place(send, route, text, data):
    body = json.loads(BODIES[route])
    path = data.draw(st.sampled_from(list(places(body))))
    raw = replaced(body, path, text).encode(errors="surrogatepass")
    cut = data.draw(st.integers(0, len(raw)))
    send(route, raw)
    send(route, raw[:cut] + data.draw(st.binary(max_size=4)) + raw[cut:])
