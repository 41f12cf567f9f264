"""What a token may be limited to, when it ends, and what the audit trail keeps of tokens and sign-ins."""

from __future__ import annotations

import re
import time

import httpx
import pytest

from sparingly.live.agent.errors import AgentError
from sparingly.live.service import server
from sparingly.live.service.auth.sessions import COOKIE
from sparingly.live.service.auth.tokens import ADMIN, EXPERT, HOST, PRODUCER, Operator, Tokens
from tests.live.served import AT, X

CHOSEN = "c0ffee" * 8


@pytest.fixture
def other(served):
    """A second agent of the service."""
    served.service.agents.create("other", classes=["a", "b"], n_features=3, strategy="always_ask", training="inline")
    return "/api/agents/other"


def bearer(secret):
    return {"authorization": f"Bearer {secret}"}


def audit(served):
    return [(line["who"], line["role"], line["did"], line["detail"]) for line in served.service.audit.lines()]


def test_a_token_limited_to_an_agent_can_do_nothing_else(ask, client, served, other):
    made = ask(ADMIN, "POST", "/api/tokens", {"name": "cam", "role": PRODUCER, "agents": ["other"]}).json()
    assert made["agents"] == ["other"]
    cam = bearer(made["token"])
    assert client.post(f"{other}/observations", json=X, headers=cam).status_code == 200
    for method, path in (
        ("POST", f"{AT}/observations"),
        ("GET", "/api/agents/default"),
        ("GET", "/api/agents/nobody"),
        ("GET", "/metrics"),
        ("GET", "/agents/default/answer"),
    ):
        told = client.request(method, path, headers=cam, json=X if method == "POST" else None)
        assert (told.status_code, told.json()) == (403, {"error": "this token is limited to other"})
    assert client.get("/api/agents", headers=cam).json() == {"agents": ["other"]}
    assert len(served.agent.history()) == 0


def test_an_admin_limited_to_an_agent_is_none_of_the_service(ask, client, served, other):
    _, secret = served.service.tokens.create("Olga", ADMIN, agents=["other"])
    olga = bearer(secret)
    assert client.get(f"{other}/statistics", headers=olga).status_code == 200
    for method, path, body in (
        ("POST", "/api/tokens", {"name": "x", "role": ADMIN}),
        ("GET", "/api/tokens", None),
        ("GET", "/api/audit", None),
        ("POST", "/api/agents", {"name": "third", "classes": ["a", "b"]}),
        ("GET", f"{AT}/export", None),
        ("POST", f"{AT}/label-studio/webhook", {"action": "x"}),
    ):
        assert client.request(method, path, headers=olga, json=body).status_code == 403
    cookie = client.post("/sign-in", data={"token": secret}).cookies.get(COOKIE)
    signed_in = {"cookie": f"{COOKIE}={cookie}", "accept": "text/html"}
    assert client.get("/", headers=signed_in).headers["location"] == "/agents/other/dashboard"
    shown = client.get("/agents/other/dashboard", headers=signed_in)
    assert (shown.status_code, "/agents/default/" in shown.text) == (200, False)
    refused = client.get("/agents/default/dashboard", headers=signed_in)
    assert (refused.status_code, "This token is limited to other." in refused.text) == (403, True)


def test_a_token_ends_when_it_said_and_its_session_with_it(ask, client, served, monkeypatch):
    ends = time.time() + 1800.0
    made = ask(ADMIN, "POST", "/api/tokens", {"name": "guest", "role": EXPERT, "expires": ends}).json()
    assert made["expires"] == ends
    guest = bearer(made["token"])
    assert client.get("/api/agents", headers=guest).status_code == 200
    cookie = client.post("/sign-in", data={"token": made["token"]}).cookies.get(COOKIE)
    signed_in = {"cookie": f"{COOKIE}={cookie}"}
    assert client.get("/api/agents", headers=signed_in).status_code == 200
    monkeypatch.setattr(served.service.tokens, "_clock", lambda: ends + 1)
    assert client.get("/api/agents", headers=guest).status_code == 401
    assert client.get("/api/agents", headers=guest).json() == {"error": "this token has expired"}
    assert client.get("/api/agents", headers=signed_in).status_code == 401
    assert served.service.tokens.check(made["token"]) is None
    again = ask(ADMIN, "POST", "/api/tokens", {"name": "guest", "role": EXPERT, "expires": "30d"})
    assert again.status_code == 201, "the name is free again"
    assert again.json()["expires"] == pytest.approx(time.time() + 30 * 86400, abs=60)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"agents": ["nobody"]}, "there is no agent 'nobody'"),
        ({"agents": []}, "agents"),
        ({"agents": "default"}, "agents"),
        ({"expires": "soon"}, "expires is 'soon': it must be a duration, such as 30d or 12h, or a date"),
        ({"expires": "-1d"}, "expires is '-1d'"),
        ({"expires": "2020-01-01"}, "it must be a time to come"),
        ({"expires": 12}, "expires is 12.0: it must be a time to come"),
        ({"expires": 1e300}, "it must be between the years 1970 and 9999"),
        ({"expires": True}, "expires"),
    ],
)
def test_limits_that_make_no_sense_are_named(ask, served, limits, said):
    told = ask(ADMIN, "POST", "/api/tokens", {"name": "cam", "role": PRODUCER, **limits})
    assert (told.status_code, said in told.json()["error"]) == (422, True)
    assert [token.name for token in served.service.tokens.list()] == [PRODUCER, EXPERT, HOST, ADMIN]


def test_the_audit_trail_tells_who_was_refused_and_who_made_tokens(ask, client, served):
    assert client.post("/sign-in", data={"token": "nonsense"}).status_code == 401
    who, role, did, detail = audit(served)[0]
    assert (who, role, did) == ("a stranger", "none", "was refused")
    assert detail == "sign-in from testclient: this token is unknown or was revoked"
    made = ask(ADMIN, "POST", "/api/tokens", {"name": "cam", "role": PRODUCER, "agents": ["default"]}).json()
    assert audit(served)[0] == (ADMIN, ADMIN, "made a token", f"{made['id']} cam (producer); only default")
    ask(ADMIN, "DELETE", f"/api/tokens/{made['id']}")
    assert audit(served)[0] == (ADMIN, ADMIN, "revoked a token", f"{made['id']} cam (producer); only default")
    token, _ = served.service.tokens.create("Zoe", EXPERT)
    assert audit(served)[0] == (Operator.current().name, "operator", "made a token", f"{token.id} Zoe (expert)")


def test_a_token_made_by_another_process_lets_in_at_once(served, client):
    assert client.get("/api/agents", headers=served.headers(EXPERT)).status_code == 200, "the tokens are read"
    time.sleep(0.06)  # what another process makes sooner than this after a look may be refused once
    _, secret = Tokens(served.service.database).create("Zoe", EXPERT)
    assert client.get("/api/agents", headers=bearer(secret)).status_code == 200


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_a_stream_of_events_ends_with_its_token(served, how, monkeypatch):
    expires = time.time() + 1800 if how == "expired" else None
    token, secret = served.service.tokens.create("Zoe", EXPERT, expires=expires)
    with (
        served.on_a_socket() as url,
        httpx.stream("GET", f"{url}{AT}/events", headers=bearer(secret), timeout=60) as stream,
        httpx.stream("GET", f"{url}{AT}/events", headers=served.headers(EXPERT), timeout=60) as others,
    ):
        lines, still = stream.iter_lines(), others.iter_lines()
        for heard in (lines, still):
            assert next(line for line in heard if line.startswith("data:")) == 'data: {"events": 0, "open": 0}'
        if how == "revoked":
            served.service.tokens.revoke(token.id)
        else:
            monkeypatch.setattr(served.service.tokens, "_clock", lambda: time.time() + 3600)
        assert not [line for line in lines if line.startswith("data:")], "it ends, and tells nothing more"
        served.agent.observe([1, 2, 3])
        assert any(line == 'data: {"events": 1, "open": 1}' for line in still), "the others hear more"


def test_the_first_admins_token_may_be_chosen(served, client, tmp_path, monkeypatch):
    file = tmp_path / "secret"
    file.write_text(f"{CHOSEN}\n")
    monkeypatch.delenv(server.ADMIN_TOKEN, raising=False)
    assert server.chosen_secret(None) is None
    assert server.chosen_secret(file) == CHOSEN
    assert server.first_token(served.service, CHOSEN) is None, "nothing to show"
    assert client.get("/api/tokens", headers=bearer(CHOSEN)).status_code == 200
    assert server.first_token(served.service, CHOSEN) is None
    chosen = [token for token in served.service.tokens.list() if token.name == "admin 2"]
    assert [token.role for token in chosen] == [ADMIN], "the same again makes no second one"
    assert client.get("/api/tokens", headers=bearer(CHOSEN[:-1] + "f")).status_code == 401
    served.service.tokens.revoke(chosen[0].id)
    assert server.first_token(served.service, CHOSEN) is None
    assert client.get("/api/tokens", headers=bearer(CHOSEN)).status_code == 401, "what was revoked stays so"


def test_a_chosen_token_that_cannot_be_one_is_refused(served, tmp_path, monkeypatch):
    with pytest.raises(AgentError, match="has 6 characters: it must have 32 to 200") as refused:
        server.first_token(served.service, "secret")
    assert "secret" not in re.sub("characters", "", str(refused.value))
    with pytest.raises(AgentError, match="there already, with the role expert"):
        server.first_token(served.service, served.tokens[EXPERT])
    with pytest.raises(AgentError, match=r"cannot be read from .*nowhere: No such file"):
        server.chosen_secret(tmp_path / "nowhere")
    monkeypatch.setenv(server.ADMIN_TOKEN, CHOSEN)
    assert server.chosen_secret(None) == CHOSEN
    with pytest.raises(AgentError, match="choose one"):
        server.chosen_secret(tmp_path / "nowhere")
