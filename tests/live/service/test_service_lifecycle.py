"""The life of an agent in a service: paused, archived, renamed, deleted; and set aside if its file is damaged."""

from __future__ import annotations

import time
from pathlib import Path

import psycopg
import pytest
from starlette.testclient import TestClient

from sparingly.live.service import agent_directory
from sparingly.live.service.agent_directory import Agents
from sparingly.live.service.app import create_app
from sparingly.live.service.auth.tokens import ADMIN, EXPERT, PRODUCER, Operator
from sparingly.live.service.dashboard_cache import DashboardCache
from sparingly.live.service.service_database import ServiceDatabase
from tests.live.served import AT, Served, X, observed


def deeds(ask) -> list[str]:
    return [line["did"] for line in ask(ADMIN, "GET", "/api/audit").json()["lines"] if line["agent"] is not None]


def test_a_paused_agent_takes_no_observations_and_its_questions_stay_answerable(ask):
    ticket = observed(ask)
    assert ask(ADMIN, "POST", f"{AT}/state/pause").json() == {"name": "default", "state": "paused"}
    refused = ask(PRODUCER, "POST", f"{AT}/observations", X)
    assert (refused.status_code, refused.json()["error"].split(":")[0]) == (409, "agent 'default' is paused")
    assert ask(PRODUCER, "POST", f"{AT}/observations/batch", {"observations": [X]}).status_code == 409
    assert ask(EXPERT, "POST", f"{AT}/answer", {"ticket": ticket, "label": "dog"}).status_code == 200
    assert ask(ADMIN, "POST", f"{AT}/state/pause").status_code == 200, "again changes nothing"
    assert ask(ADMIN, "GET", "/api/agents").json()["states"] == {"default": "paused"}
    ask(ADMIN, "POST", f"{AT}/state/resume")
    assert ask(PRODUCER, "POST", f"{AT}/observations", X).status_code == 200
    assert deeds(ask).count("paused an agent") == deeds(ask).count("resumed an agent") == 1


def test_a_dashboard_drawn_before_a_pause_is_not_shown_after_it(served):
    board = DashboardCache(served.service.agents, freshest=1e6)
    assert board.dashboard("default")["alerts"] == []
    served.service.agents.registry.change_state("default", "pause", Operator("root"))
    assert [alert["kind"] for alert in board.dashboard("default")["alerts"]] == ["state"]
    served.service.close()


def test_an_archived_agent_can_only_be_read(ask, served):
    ticket = observed(ask)
    ask(ADMIN, "POST", f"{AT}/state/archive")
    assert ask(PRODUCER, "POST", f"{AT}/observations", X).status_code == 409
    for route in ("questions", "answer", "skip", "undo"):
        body = {"ticket": ticket, "label": "dog"} if route == "answer" else {"ticket": ticket}
        reply = ask(EXPERT, "POST", f"{AT}/{route}", None if route == "questions" else body)
        assert (reply.status_code, "archived" in reply.json()["error"]) == (409, True)
    assert ask(ADMIN, "POST", f"{AT}/state/pause").status_code == 409
    assert ask(ADMIN, "GET", f"{AT}/statistics").json()["observations"] == 1
    assert ask(ADMIN, "GET", f"{AT}/export").status_code == 200
    ask(ADMIN, "POST", f"{AT}/state/unarchive")
    assert ask(EXPERT, "POST", f"{AT}/answer", {"ticket": ticket, "label": "dog"}).status_code == 200


def test_a_renamed_agent_is_the_same_and_its_old_name_is_free(ask, served, client):
    ticket = observed(ask)
    _, secret = served.service.tokens.create("limited", PRODUCER, agents=["default"])
    assert ask(ADMIN, "POST", f"{AT}/rename", {"name": "fruit"}).json() == {"name": "fruit", "state": "active"}
    assert ask(ADMIN, "GET", "/api/agents").json()["agents"] == ["fruit"]
    assert ask(PRODUCER, "GET", f"{AT}/ticket?ticket={ticket}").status_code == 404
    assert ask(PRODUCER, "GET", f"/api/agents/fruit/ticket?ticket={ticket}").json()["id"] == ticket
    served.service.tokens._read_at = float("-inf")
    limited = client.post("/api/agents/fruit/observations", headers={"authorization": f"Bearer {secret}"}, json=X)
    assert limited.status_code == 200
    made = ask(ADMIN, "POST", "/api/agents", {"name": "default", "classes": ["a", "b"], "strategy": "always_ask"})
    assert made.status_code == 201
    assert ask(ADMIN, "GET", f"{AT}/statistics").json()["observations"] == 0
    assert ask(ADMIN, "POST", f"{AT}/rename", {"name": "fruit"}).status_code == 409


def test_a_deleted_agent_is_gone_with_its_file_and_its_name_is_free(ask, served, tmp_path, client):
    ticket = observed(ask)
    ask(EXPERT, "POST", f"{AT}/answer", {"ticket": ticket, "label": "dog"})
    _, secret = served.service.tokens.create("limited", PRODUCER, agents=["default"])
    assert ask(ADMIN, "DELETE", AT).json() == {"name": "default", "state": "deleted"}
    assert not list((tmp_path / "store").glob("default.agent.db*"))
    assert ask(ADMIN, "GET", AT).status_code == 404
    assert ask(ADMIN, "DELETE", AT).status_code == 404
    assert {"answered", "deleted an agent"} <= set(deeds(ask)), "what was done to it stays"
    ask(ADMIN, "POST", "/api/agents", {"name": "default", "classes": ["a", "b"], "strategy": "always_ask"})
    assert ask(ADMIN, "GET", f"{AT}/statistics").json()["observations"] == 0
    served.service.tokens._read_at = float("-inf")
    limited = client.post(f"{AT}/observations", headers={"authorization": f"Bearer {secret}"}, json=X)
    assert limited.status_code == 403, "a token for the agent that is gone is none for another of its name"


def test_a_deletion_at_the_command_line_is_finished_by_the_service_that_has_the_file(ask, served, tmp_path):
    observed(ask)
    database = ServiceDatabase(tmp_path / "store")
    database_agents = Agents(database)
    database_agents.registry.mark_deleted("default", Operator("root"))
    database.close()
    deadline = time.monotonic() + 60
    while list((tmp_path / "store").glob("default.agent.db*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not list((tmp_path / "store").glob("default.agent.db*"))
    assert ask(ADMIN, "GET", "/api/agents").json()["agents"] == []


def test_an_agent_that_cannot_be_listed_leaves_no_file(served, tmp_path, monkeypatch):
    def fail(*args):
        raise OSError("the table is locked")

    monkeypatch.setattr(served.service.agents.registry, "add", fail)
    with pytest.raises(OSError, match="locked"):
        served.service.agents.create("other", classes=["a", "b"], training="inline")
    assert not list((tmp_path / "store").glob("other*"))


def _no_bytes(file: Path) -> None:
    file.write_bytes(b"")


def _half(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _wrong_header(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(b"\xff" * 100 + content[100:])


@pytest.mark.parametrize("damage", [_no_bytes, _half, _wrong_header])
def test_a_damaged_agent_is_set_aside_shown_and_can_be_deleted(tmp_path, damage):
    first = Served(str(tmp_path))
    first.service.agents.create("other", classes=["a", "b"], n_features=3, strategy="always_ask", training="inline")
    first.agent.observe_many([[i, 0, 0] for i in range(300)])
    first.service.close()
    damage(tmp_path / "default.agent.db")

    served = Served.__new__(Served)
    served.service, served.tokens = type(first.service)(str(tmp_path)), first.tokens
    served.service.agents.open_all()
    with TestClient(create_app(served.service), raise_server_exceptions=False) as client:

        def ask(role, method, path, body=None):
            return client.request(method, path, headers=served.headers(role), json=body)

        listed = ask(ADMIN, "GET", "/api/agents").json()
        assert listed["states"] == {"default": "damaged"}
        assert "default.agent.db" in listed["failures"]["default"]
        assert "failures" not in ask(PRODUCER, "GET", "/api/agents").json()
        assert client.get("/ready").json() == {"status": "ready", "damaged": ["default"]}
        assert ask(PRODUCER, "POST", "/api/agents/other/observations", X).status_code == 200
        assert ask(PRODUCER, "POST", f"{AT}/observations", X).status_code == 503
        assert ask(ADMIN, "GET", "/metrics").status_code == 200
        assert ask(ADMIN, "DELETE", AT).status_code == 200
        assert ask(ADMIN, "GET", "/api/agents").json()["agents"] == ["other"]


def test_a_damaged_agent_is_tried_again_and_comes_back_once_it_is_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(agent_directory, "RETRY", 0.2)
    first = Served(str(tmp_path))
    first.agent.observe([1, 2, 3], id="one")
    first.service.close()
    file = tmp_path / "default.agent.db"
    whole = file.read_bytes()
    _wrong_header(file)
    service = type(first.service)(str(tmp_path))
    service.agents.open_all()
    with TestClient(create_app(service), raise_server_exceptions=False) as client:
        at, headers = f"{AT}/ticket?ticket=one", first.headers(PRODUCER)
        assert client.get(at, headers=headers).status_code == 503
        file.write_bytes(whole)
        deadline = time.monotonic() + 60
        while client.get(at, headers=headers).status_code == 503 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert client.get(at, headers=headers).json()["id"] == "one"
        assert client.get("/ready").json() == {"status": "ready"}


def test_an_agent_in_postgresql_is_deleted_with_its_schema(postgres):
    served = Served(postgres)
    served.agent.observe([1, 2, 3])
    served.service.delete_agent("default", Operator("root"))
    served.service.close()
    with psycopg.connect(postgres) as connection:
        found = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'agent%'").fetchall()
    assert found == []


def test_a_ticket_is_erased_by_an_admin(ask, served, tmp_path):
    ticket = observed(ask, payload={"text": "the name of a person"})
    ask(EXPERT, "POST", f"{AT}/answer", {"ticket": ticket, "label": "dog"})
    assert ask(EXPERT, "POST", f"{AT}/erase", {"ticket": ticket}).status_code == 403
    assert ask(ADMIN, "POST", f"{AT}/erase", {"ticket": ticket}).json()["status"] == "erased"
    assert ask(ADMIN, "POST", f"{AT}/erase", {"ticket": "none"}).status_code == 404
    (entry,) = ask(ADMIN, "GET", f"{AT}/history").json()["tickets"]
    assert (entry["erased"], entry["label"]) == ("everything", "dog")
    assert ask(EXPERT, "POST", f"{AT}/undo", {"ticket": ticket}).status_code == 409
    assert deeds(ask)[0] == "erased"
    files = (tmp_path / "store").glob("default.agent.db*")
    assert not any(b"the name of a person" in file.read_bytes() for file in files)


def test_the_service_erases_payloads_of_agents_that_have_no_time_of_their_own(tmp_path):
    served = Served(str(tmp_path), retention_days=10)
    old = time.time() - 20 * 86400
    served.agent._runtime.clock = lambda: old
    served.agent.observe([1, 2, 3], id="old", payload="seen")
    served.agent._runtime.clock = time.time
    served.service._apply_retention()
    assert served.agent.ticket("old").erased == "payload"
    served.service.close()


def test_the_retention_time_is_an_admins_to_set(ask, served):
    assert ask(ADMIN, "PUT", f"{AT}/retention", {"days": 30}).status_code == 200
    assert served.agent.settings.retention_days == 30
    assert ask(ADMIN, "PUT", f"{AT}/retention", {"days": -1}).status_code == 422
    assert deeds(ask)[0] == "set retention"
