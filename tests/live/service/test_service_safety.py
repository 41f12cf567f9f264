"""Who gets in and what leaves: tokens, cookies, other sites, rates, headers, a client that hangs up."""

from __future__ import annotations

import asyncio
import re
import resource
import socket
import sqlite3
import time
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.testclient import TestClient

from sparingly.live.agent.errors import AgentError
from sparingly.live.service import server
from sparingly.live.service.auth.sessions import COOKIE
from sparingly.live.service.auth.tokens import ADMIN, EXPERT, PRODUCER, ROLES
from sparingly.live.service.service import Service
from sparingly.live.service.service_limits import ServiceLimits
from sparingly.live.service.web.server_sent_events import Events
from tests.live.served import Served

AT = "/api/agents/default"


@pytest.fixture
def served(tmp_path):
    return Served(str(tmp_path / "store"))


@pytest.fixture
def client(served):
    with TestClient(served.app, raise_server_exceptions=False, follow_redirects=False) as client:
        yield client


def signed_in(client, served, role=ADMIN):
    """The cookie and the CSRF word of someone who signed in on the page."""
    told = client.post("/sign-in", data={"token": served.tokens[role]})
    cookie = told.cookies.get(COOKIE) or re.search(rf"{COOKIE}=([^;]+)", told.headers["set-cookie"])[1]
    page = client.get(f"/agents/default/{'answer' if role == EXPERT else 'dashboard'}", headers=as_cookie(cookie))
    return cookie, re.search(r'data-csrf="([^"]+)"', page.text)[1]


def as_cookie(cookie):
    return {"cookie": f"{COOKIE}={cookie}"}


def test_only_hashes_are_kept(served, tmp_path):
    secret = served.tokens[ADMIN]
    rows = sqlite3.connect(tmp_path / "store" / "service.db").execute("SELECT * FROM tokens").fetchall()
    assert len(rows) == len(ROLES)
    everything = b"".join(path.read_bytes() for path in (tmp_path / "store").iterdir())
    assert secret.encode() not in everything
    assert secret.split("_", 2)[2].encode() not in everything
    assert (tmp_path / "store" / "service.db").stat().st_mode & 0o077 == 0, "for the owner only"


def test_a_revoked_token_and_its_sessions_are_shut_out(served, client):
    cookie, _ = signed_in(client, served, EXPERT)
    headers = served.headers(EXPERT)
    assert client.get("/api/agents", headers=headers).status_code == 200
    which = next(t.id for t in served.service.tokens.list() if t.name == EXPERT)
    assert client.delete(f"/api/tokens/{which}", headers=served.headers(ADMIN)).status_code == 200
    assert client.get("/api/agents", headers=headers).status_code == 401
    assert client.get("/api/agents", headers=as_cookie(cookie)).status_code == 401
    again = client.delete(f"/api/tokens/{which}", headers=served.headers(ADMIN))
    assert (again.status_code, "no token" in again.json()["error"]) == (422, True)


def test_a_token_revoked_by_another_process_is_shut_out_within_seconds(served, client, tmp_path):
    other = Service(str(tmp_path / "store"))
    assert client.get("/api/agents", headers=served.headers(EXPERT)).status_code == 200
    other.tokens.revoke(EXPERT)
    time.sleep(1.1)
    assert client.get("/api/agents", headers=served.headers(EXPERT)).status_code == 401


@pytest.mark.parametrize(
    ("name", "role"),
    [("x", "king"), ("", EXPERT), ("\u202e ", EXPERT), ("a" * 81, EXPERT), ("a\nb", EXPERT), (ADMIN, ADMIN)],
)
def test_a_token_needs_a_role_and_a_name_of_its_own(served, name, role):
    with pytest.raises(AgentError):
        served.service.tokens.create(name, role)


def test_a_new_token_is_told_once(served, client):
    made = client.post("/api/tokens", json={"name": "Zoe", "role": PRODUCER}, headers=served.headers(ADMIN)).json()
    assert client.get("/api/agents", headers={"authorization": f"Bearer {made['token']}"}).status_code == 200
    listed = client.get("/api/tokens", headers=served.headers(ADMIN))
    assert made["token"] not in listed.text
    assert listed.json()["tokens"][-1]["name"] == "Zoe"


def test_the_cookie_is_secure_and_out_of_a_scripts_reach(served, client):
    told = client.post("/sign-in", data={"token": served.tokens[ADMIN]})
    assert (told.status_code, told.headers["location"]) == (303, "/signed-in")
    parts = {part.strip().lower() for part in told.headers["set-cookie"].split(";")[1:]}
    assert {"httponly", "secure", "samesite=lax", "path=/"} <= parts
    wrong = client.post("/sign-in", data={"token": "sparingly_nonsense"})
    assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
    assert 'role="alert"' in wrong.text


def test_a_cookie_for_a_try_out_travels_over_plain_http(tmp_path):
    served = Served(str(tmp_path), secure_cookie=False)
    with TestClient(served.app, follow_redirects=False) as client:
        told = client.post("/sign-in", data={"token": served.tokens[ADMIN]}).headers["set-cookie"].lower()
    assert "httponly" in told
    assert "secure" not in told


def test_a_session_lasts_twelve_hours(served, client, monkeypatch):
    cookie, _ = signed_in(client, served)
    for hours, status in ((11.9, 200), (12.1, 401)):
        monkeypatch.setattr(served.service.sessions, "_clock", lambda hours=hours: time.time() + 3600 * hours)
        assert client.get("/api/agents", headers=as_cookie(cookie)).status_code == status, hours


def test_a_change_by_cookie_needs_the_sessions_word(served, client):
    cookie, word = signed_in(client, served)
    at = f"{AT}/questions"
    assert client.post(at, headers=as_cookie(cookie)).status_code == 403
    assert client.post(at, headers={**as_cookie(cookie), "x-csrf-token": "wrong"}).status_code == 403
    assert client.post(at, headers={**as_cookie(cookie), "x-csrf-token": word}).status_code == 200
    assert client.get("/api/agents", headers=as_cookie(cookie)).status_code == 200, "looking needs none"


@pytest.mark.parametrize(
    "header", [{"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}]
)
def test_other_sites_change_nothing(served, client, header):
    cookie, word = signed_in(client, served)
    told = client.post(f"{AT}/questions", headers={**as_cookie(cookie), "x-csrf-token": word, **header})
    assert told.status_code == 403
    assert client.post("/sign-in", data={"token": served.tokens[ADMIN]}, headers=header).status_code == 403
    assert client.post("/sign-out", data={"csrf": word}, headers={**as_cookie(cookie), **header}).status_code == 403


def test_signing_out_ends_the_session(served, client):
    cookie, word = signed_in(client, served)
    assert client.post("/sign-out", data={"csrf": "wrong"}, headers=as_cookie(cookie)).status_code == 403
    assert client.post("/sign-out", data={"csrf": word}, headers=as_cookie(cookie)).status_code == 303
    assert client.get("/api/agents", headers=as_cookie(cookie)).status_code == 401


def test_pages_are_for_those_who_signed_in(served, client):
    for path in ("/", "/agents/default/answer", "/agents/default/dashboard"):
        assert client.get(path).headers["location"] == "/sign-in"
    cookie, _ = signed_in(client, served, EXPERT)
    assert client.get("/", headers=as_cookie(cookie)).headers["location"] == "/agents/default/answer"
    assert client.get("/agents/default/dashboard", headers=as_cookie(cookie)).status_code == 403
    admin, _ = signed_in(client, served, ADMIN)
    assert "Observes 3 numbers" in client.get("/agents/default/dashboard", headers=as_cookie(admin)).text
    assert client.get("/signed-in").headers["location"] == "/sign-in?kept=no"
    assert "kept no cookie" in client.get("/sign-in?kept=no").text


def test_a_person_is_refused_with_a_page_and_a_program_with_a_line(served, client):
    cookie, _ = signed_in(client, served, EXPERT)
    looking = {**as_cookie(cookie), "accept": "text/html,*/*"}
    for path, status, said in (
        ("/agents/default/dashboard", 403, "The role expert may not see this page: it takes admin."),
        ("/agents/nobody/answer", 404, "There is no agent &#39;nobody&#39;."),
        ("/<script>", 404, "/&lt;script&gt;: Not Found."),
    ):
        told = client.get(path, headers=looking)
        assert (told.status_code, told.headers["content-type"]) == (status, "text/html; charset=utf-8")
        assert said in told.text
        assert ("Not with this token" if status == 403 else "Nothing is here") in told.text
        assert "<script>" not in told.text
    told = client.get("/agents/nobody/answer", headers=as_cookie(cookie))
    assert (told.status_code, told.json()) == (404, {"error": "there is no agent 'nobody'"})
    assert client.get("/api/nothing", headers=looking).json() == {"error": "/api/nothing: Not Found"}


@pytest.mark.parametrize(
    "path", ["/sign-in", "/health", "/api/agents", "/static/page.css", "/nothing", "/openapi.json"]
)
def test_every_response_carries_the_policy(client, path):
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert "server" not in headers


def test_pages_have_no_inline_script_or_style(served, client):
    cookie, _ = signed_in(client, served)
    for path in ("/agents/default/answer", "/agents/default/dashboard", "/sign-in"):
        text = client.get(path, headers=as_cookie(cookie) if "agents" in path else {}).text
        assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", text) == []


def test_whoever_comes_too_often_waits(tmp_path):
    served = Served(str(tmp_path / "store"), ServiceLimits(per_second=0.01, burst=5, wrong_per_minute=3))
    with TestClient(served.app) as client:
        codes = [client.get("/api/agents", headers=served.headers(ADMIN)).status_code for _ in range(7)]
        assert codes == [200] * 5 + [429] * 2
        assert client.get("/api/agents", headers=served.headers(EXPERT)).status_code == 200, "others need not"
        wrong = {"authorization": "Bearer nonsense"}
        assert [client.get("/api/agents", headers=wrong).status_code for _ in range(5)] == [401] * 3 + [429] * 2
        waits = client.get("/api/agents", headers=wrong).headers["retry-after"]
        assert int(waits) > 0


def test_wrong_tokens_never_keep_a_right_one_out(tmp_path):
    served = Served(str(tmp_path / "store"), ServiceLimits(wrong_per_minute=3))
    with TestClient(served.app, follow_redirects=False) as client:
        wrong = {"authorization": "Bearer nonsense"}
        assert [client.get("/api/agents", headers=wrong).status_code for _ in range(5)] == [401] * 3 + [429] * 2
        assert client.post("/sign-in", data={"token": "nonsense"}).status_code == 429
        assert client.get("/api/agents", headers=served.headers(EXPERT)).status_code == 200
        assert client.post("/sign-in", data={"token": served.tokens[EXPERT]}).status_code == 303
        assert client.get("/api/agents", headers=wrong).status_code == 429, "a right one gives no new tries"


@pytest.mark.parametrize(
    ("trusted", "forwarded", "codes"),
    [
        ((), "203.0.113.{i}", [401, 401, 429]),
        (("127.0.0.1",), "203.0.113.{i}", [401, 401, 401]),
        (("127.0.0.0/8",), "203.0.113.{i}, 198.51.100.1", [401, 401, 429]),
        (("127.0.0.1", "10.0.0.0/8"), "203.0.113.{i}, 10.1.2.3", [401, 401, 401]),
        (("10.0.0.0/8",), "203.0.113.{i}", [401, 401, 429]),
    ],
)
def test_only_a_trusted_proxy_says_who_calls(tmp_path, trusted, forwarded, codes):
    """The address is the right-most one that is no trusted proxy; what stands left of it is a stranger's invention."""
    served = Served(str(tmp_path / "store"), ServiceLimits(wrong_per_minute=2))
    with served.on_a_socket(trusted_proxies=trusted) as url, httpx.Client(timeout=60) as client:
        for i, code in enumerate(codes):
            headers = {"authorization": "Bearer nonsense", "x-forwarded-for": forwarded.format(i=i)}
            assert client.get(f"{url}/api/agents", headers=headers).status_code == code


def test_a_client_that_hangs_up_in_the_middle_harms_no_one(served):
    with served.on_a_socket() as url:
        where = urlsplit(url)
        for cut in (b"POST /api/agents/default/observations HT", None):
            hung = socket.create_connection((where.hostname, where.port))
            head = (
                f"POST {AT}/observations HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
                f"authorization: Bearer {served.tokens[PRODUCER]}\r\ncontent-length: 1000\r\n\r\n"
            )
            hung.sendall(cut or head.encode() + b'{"features": [1,')
            hung.close()
        time.sleep(0.2)
        headers = served.headers(PRODUCER)
        told = httpx.post(f"{url}{AT}/observations", json={"features": [1, 2, 3]}, headers=headers, timeout=60)
        assert told.status_code == 200
        assert len(served.agent.history()) == 1


@pytest.mark.parametrize("told", ["content-length: 104857600", "transfer-encoding: chunked"])
def test_a_hundred_megabytes_are_refused_and_whoever_sends_them_is_told(served, told):
    """By a client that listens only when it has sent everything, as most do; none of it is kept in memory."""
    with served.on_a_socket() as url:
        where = urlsplit(url)
        sender = socket.create_connection((where.hostname, where.port), timeout=60)
        head = f"POST {AT}/observations HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{told}\r\n"
        sender.sendall(f"{head}authorization: Bearer {served.tokens[PRODUCER]}\r\n\r\n".encode())
        piece, before = b"x" * 2**20, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(100):
            sender.sendall(b"%x\r\n%s\r\n" % (len(piece), piece) if "chunked" in told else piece)
        sender.sendall(b"0\r\n\r\n" if "chunked" in told else b"")
        reply = sender.recv(65536).decode()
        assert reply.startswith("HTTP/1.1 413")
        assert "16777216" in reply
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000
        sender.close()
        assert httpx.get(f"{url}/health", timeout=60).status_code == 200
        assert served.agent.history() == []


def test_events_tell_that_the_agent_moved(served):
    with served.on_a_socket() as url:
        headers = served.headers(EXPERT)
        with httpx.stream("GET", f"{url}{AT}/events", headers=headers, timeout=60) as stream:
            lines = stream.iter_lines()
            assert next(line for line in lines if line.startswith("data:")) == 'data: {"events": 0, "open": 0}'
            served.agent.observe([1, 2, 3])
            assert next(line for line in lines if line.startswith("data:")) == 'data: {"events": 1, "open": 1}'


def test_the_first_start_needs_classes_and_the_second_nothing(tmp_path):
    service = Service(str(tmp_path / "store"))
    with pytest.raises(AgentError, match="--classes"):
        server.first_agent(service, "default", [], {})
    server.first_agent(service, "default", ["cat", "dog"], {"query_cost": 0.5})
    secret = server.first_token(service)
    assert service.tokens.check(secret).role == ADMIN
    service.close()
    service = Service(str(tmp_path / "store"))
    server.first_agent(service, "default", [], {})
    server.first_agent(service, "default", ["cat", "dog"], {})
    assert server.first_token(service) is None, "shown once"
    with pytest.raises(AgentError, match="has the classes cat, dog, not cat, bird"):
        server.first_agent(service, "default", ["cat", "bird"], {})
    service.close()


def test_listeners_that_hang_up_together_are_no_error_of_the_service(served):
    """A server cancels a listener that is gone again and again until it has ended."""

    async def may_listen():
        return True

    async def hear(events):
        async for _ in events.stream("default", served.agent, may_listen):
            pass

    async def hang_up():
        events = Events()
        listeners = [asyncio.create_task(hear(events)) for _ in range(20)]
        await asyncio.sleep(0.8)
        for _ in range(100):
            for listener in listeners:
                listener.cancel()
            await asyncio.sleep(0)
        assert all(listener.done() for listener in listeners)
        ended = await asyncio.gather(*listeners, return_exceptions=True)
        events.stop()
        return {type(one) for one in ended}

    assert asyncio.run(hang_up()) == {asyncio.CancelledError}


def test_an_address_in_use_is_named():
    with server.listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(AgentError, match=rf"127\.0\.0\.1:{port} cannot be listened on"):
            server.listen("127.0.0.1", port)
