"""What the log tells an operator, what an error tells a stranger, and connections that never finish what they began."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import re
import socket
import time
from urllib.parse import urlsplit

import httpx
import pytest

from sparingly.live.agent.errors import AgentError, StoreError
from sparingly.live.service.auth.tokens import ADMIN, EXPERT, PRODUCER
from sparingly.live.service.service_limits import ServiceLimits
from sparingly.live.service.web import logs
from tests.live.served import AT, Served


@pytest.fixture
def configure():
    """Configure the log as `sparingly serve` does; returns the stream that it is written to."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    stream = io.StringIO()

    def build(*args, **more):
        with contextlib.redirect_stderr(stream):
            logs.configure(*args, **more)
        return stream

    yield build
    root.setLevel(level)
    root.handlers[:] = handlers
    logs.access.setLevel(logging.NOTSET)


def test_every_response_carries_the_requests_id(ask, client, served):
    seen = set()
    for told in (
        client.get("/health"),
        client.get("/sign-in"),
        client.get("/nothing"),
        client.get("/api/agents"),
        ask(EXPERT, "GET", f"{AT}/statistics"),
        ask(PRODUCER, "POST", f"{AT}/observations", {"features": "x"}),
    ):
        assert re.fullmatch(r"[0-9a-f]{16}", told.headers["x-request-id"])
        seen.add(told.headers["x-request-id"])
    assert len(seen) == 6
    assert client.get("/health", headers={"x-request-id": "from-the-proxy.7"}).headers["x-request-id"] == (
        "from-the-proxy.7"
    )
    for forged in ("a b", "x" * 65, "a\\nb", ""):
        assert re.fullmatch(
            r"[0-9a-f]{16}", client.get("/health", headers={"x-request-id": forged}).headers["x-request-id"]
        )


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_500_names_the_id_that_is_in_the_log(ask, served, monkeypatch, configure, form):
    written = configure("warning", form)
    monkeypatch.setattr(type(served.agent), "stats", lambda self: 1 / 0)
    told = ask(ADMIN, "GET", f"{AT}/statistics")
    number = told.headers["x-request-id"]
    assert (told.status_code, told.json()["error"].split()[-1]) == (500, number)
    log = written.getvalue()
    assert "ZeroDivisionError" in log
    if form == "json":
        line = json.loads(log)
        assert (line["level"], line["request"]) == ("ERROR", number)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
        assert "ZeroDivisionError" in line["traceback"]
    else:
        head = rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{{3}}Z ERROR \[{number}\] sparingly\.[\w.]+: unforeseen error"
        assert re.match(head, log)


def test_what_is_logged_in_a_thread_has_the_requests_id_too(ask, served, monkeypatch, configure):
    written = configure("warning", "json")
    monkeypatch.setattr(type(served.agent), "stats", lambda self: logging.getLogger("x").warning("two\nlines") or {})
    told = ask(ADMIN, "GET", f"{AT}/statistics")
    line = json.loads(written.getvalue().splitlines()[0])
    assert (line["request"], line["message"]) == (told.headers["x-request-id"], "two\nlines")


def test_text_in_a_message_makes_no_line_of_its_own(configure):
    written = configure("warning", "text")
    logging.getLogger("x").warning("from a caller: %s", "a\n2026-01-01T00:00:00.000Z ERROR [-] forged")
    assert len(written.getvalue().splitlines()) == 1


def test_the_access_log_is_written_on_request(ask, client, configure):
    written = configure("warning", "json")
    client.get("/health")
    assert written.getvalue() == ""
    configure("warning", "json", access_log=True)
    told = ask(EXPERT, "GET", "/api/agents?secret=1")
    client.get("/no%0Athing")
    first, second = map(json.loads, written.getvalue().splitlines())
    assert (first["who"], first["method"], first["path"], first["status"]) == (EXPERT, "GET", "/api/agents", 200)
    assert (first["request"], first["address"]) == (told.headers["x-request-id"], "testclient")
    assert first["milliseconds"] > 0
    assert (second["who"], second["path"], second["status"]) == (None, "/no%0Athing", 404)


@pytest.mark.parametrize(("level", "form"), [("loud", "text"), ("info", "xml")])
def test_a_log_that_makes_no_sense_is_named(level, form):
    with pytest.raises(AgentError, match=r"--log-(level 'loud'|format 'xml') is unknown"):
        logs.configure(level, form)


def test_a_broken_database_tells_its_place_to_admins_only(ask, client, served, monkeypatch, caplog):
    said = "/srv/secret/default.agent.db: connection to db.internal:5432 failed"

    def broken(*args, **kwargs):
        raise StoreError(said)

    monkeypatch.setattr(type(served.agent), "ticket", broken)
    path = f"{AT}/ticket?ticket=x"
    assert ask(ADMIN, "GET", path).json() == {"error": said}
    told = ask(PRODUCER, "GET", path)
    assert (told.status_code, told.headers["retry-after"]) == (503, "1")
    assert "secret" not in told.text
    assert "internal" not in told.text
    assert told.json()["error"].endswith(told.headers["x-request-id"])
    assert f"{told.headers['x-request-id']}: {said}" in caplog.text, "the operator reads it in the log"
    monkeypatch.setattr(type(served.service.tokens), "refresh", broken)
    served.service.tokens._read_at = -10.0
    stranger = client.get("/api/agents", headers={"authorization": "Bearer x"})
    assert (stranger.status_code, "secret" in stranger.text) == (503, False)


# connections


@pytest.fixture
def hurried(tmp_path):
    return Served(str(tmp_path / "store"), ServiceLimits(header_seconds=0.5, body_seconds=0.5))


def closed_after(connection, began):
    """What came before the service closed the connection, and when it did."""
    connection.settimeout(60)
    heard = b""
    while piece := connection.recv(65536):
        heard += piece
    return heard, time.monotonic() - began


@pytest.mark.parametrize("sent", [b"", b"GET /health HTTP/1.1\r\nhost: x\r\nx-half: a", b"GET /hea"])
def test_half_a_header_is_not_waited_for(hurried, sent):
    with hurried.on_a_socket() as url:
        where, began = urlsplit(url), time.monotonic()
        with socket.create_connection((where.hostname, where.port)) as connection:
            connection.sendall(sent)
            heard, took = closed_after(connection, began)
        assert heard == b""
        assert 0.4 < took < 30


def test_a_header_that_trickles_is_not_waited_for(hurried):
    with hurried.on_a_socket() as url:
        where, began = urlsplit(url), time.monotonic()
        with socket.create_connection((where.hostname, where.port)) as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200"), "the first request of the connection is served"
            with contextlib.suppress(OSError):
                connection.sendall(b"GET /health HTTP/1.1\r\n")
                while time.monotonic() - began < 60:
                    connection.sendall(b"x-more: a\r\n")
                    time.sleep(0.05)
            assert time.monotonic() - began < 30, "closed although bytes kept coming"


def test_headers_without_end_are_not_taken_in(served):
    """Be it one long one or many; the next connection is served as ever."""
    with served.on_a_socket() as url:
        where = urlsplit(url)
        for piece in (b"a" * 65536, b"x-more: a\r\n" * 6000):
            with socket.create_connection((where.hostname, where.port)) as connection:
                connection.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\nx-long: ")
                sent = 0
                with contextlib.suppress(OSError):
                    while sent < 50_000_000:
                        connection.sendall(piece)
                        sent += len(piece)
                assert sent < 10_000_000, "what fits into the sockets' buffers, and no more"
        assert httpx.get(f"{url}/health", timeout=60).status_code == 200


@pytest.mark.parametrize("route", ["observations", "observations/batch", "teach"])
def test_a_body_that_breaks_off_is_no_error_of_the_service(served, caplog, route):
    head = f"POST {AT}/{route} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {served.tokens[PRODUCER]}\r\n"
    head += "content-type: application/json\r\n"
    with served.on_a_socket() as url:
        where = urlsplit(url)
        for rest in ("content-length: 100\r\n\r\n{", "transfer-encoding: chunked\r\n\r\nZZ\r\n"):
            with socket.create_connection((where.hostname, where.port)) as connection:
                connection.sendall((head + rest).encode())
                time.sleep(0.1)
        for _ in range(1000):
            counted = httpx.get(f"{url}/metrics", headers=served.headers(ADMIN), timeout=60).text
            if f'route="/api/agents/{{agent}}/{route}",status="400"}} 2.0' in counted:
                break
            time.sleep(0.05)
        else:
            raise AssertionError(counted)
    assert "unforeseen" not in caplog.text


def test_an_idle_connection_and_a_slow_request_are_no_half_headers(hurried, monkeypatch):
    monkeypatch.setattr(type(hurried.agent), "stats", lambda self: time.sleep(1.2) or {})
    with hurried.on_a_socket() as url, httpx.Client(timeout=60) as client:
        assert client.get(f"{url}/health").status_code == 200
        time.sleep(0.8)
        stream = client.get(f"{url}{AT}/statistics", headers=hurried.headers(ADMIN))
        assert stream.status_code == 500, "served, though the stand-in's answer is none"
        assert client.get(f"{url}/health").status_code == 200


def test_a_body_that_does_not_come_is_not_waited_for(hurried):
    """Neither that of someone known, nor that of a stranger who was refused already."""
    with hurried.on_a_socket() as url:
        where = urlsplit(url)
        for token, status in ((hurried.tokens[PRODUCER], b"408"), ("nonsense", b"401")):
            began = time.monotonic()
            with socket.create_connection((where.hostname, where.port)) as connection:
                head = f"POST {AT}/observations HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
                head += f"authorization: Bearer {token}\r\ncontent-length: 100\r\n\r\n"
                connection.sendall(head.encode() + b'{"features": [1,')
                heard, took = closed_after(connection, began)
            assert heard.startswith(b"HTTP/1.1 " + status)
            assert took < 30
        assert hurried.agent.history() == []
