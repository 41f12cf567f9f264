"""A call is answered with 200 and everything of it is kept, or with 503 and nothing is; no call waits for ever."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import httpx
import psycopg
import pytest

from sparingly.live.service.audit import line_of
from sparingly.live.service.auth.authentication import Identity
from sparingly.live.service.auth.tokens import ADMIN, EXPERT, PRODUCER
from sparingly.live.service.service import Service
from tests import fork_server
from tests.live.served import AT, Served, observed


@contextmanager
def locked(file) -> Iterator[None]:
    """Another program has the only right to write to a database."""
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


DEEDS = {
    "answer": ({"label": "dog"}, "answered"),
    "correct": ({"label": "cat"}, "corrected"),
    "undo": ({}, "took back"),
    "skip": ({}, "skipped"),
    "dont-know": ({}, "did not know"),
}


def test_with_the_services_tables_locked_everything_done_to_an_agent_is_kept_with_its_audit_line(ask, served, tmp_path):
    ticket, other = observed(ask), observed(ask)
    ask(EXPERT, "POST", f"{AT}/questions?limit=2")
    with locked(tmp_path / "store" / "service.db"):
        for route, (more, _) in DEEDS.items():
            reply = ask(EXPERT, "POST", f"{AT}/{route}", {"ticket": ticket, **more})
            assert reply.status_code == 200, (route, reply.json())
        assert ask(PRODUCER, "POST", f"{AT}/withdraw", {"ticket": other}).status_code == 200
    assert served.agent.ticket(ticket).status == "unknown"
    lines = [line for line in ask(ADMIN, "GET", "/api/audit").json()["lines"] if line["agent"] == "default"]
    assert [line["did"] for line in reversed(lines)] == [did for _, did in DEEDS.values()] + ["withdrew"]
    assert {(line["who"], line["role"]) for line in lines[1:]} == {("expert", "expert")}
    assert [line["detail"] for line in lines[-2:]] == ["cat", "dog"]
    assert ask(ADMIN, "GET", "/api/audit").json()["lines"][0] == lines[0], "and none is there twice"


def test_a_line_that_is_copied_twice_is_there_once(served):
    ticket = served.agent.observe([1, 2, 3]).id
    served.agent.answer(ticket, "dog", audit=line_of(Identity("ada", "expert", "t"), "answered", "dog"))

    def copy_and_die(lines):
        served.service.audit._copy("default", lines)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        served.agent.copy_audit_lines(copy_and_die)
    assert [line["ticket"] for line in served.service.audit.lines() if line["agent"]] == [ticket]
    assert not served.agent.has_audit_lines


def test_the_lines_are_copied_without_being_asked_for(ask, served, tmp_path):
    ticket = observed(ask)
    ask(EXPERT, "POST", f"{AT}/answer", {"ticket": ticket, "label": "dog"})
    deadline = time.monotonic() + 60
    found = []
    while not found and time.monotonic() < deadline:
        time.sleep(0.05)
        with closing(sqlite3.connect(tmp_path / "store" / "service.db")) as connection:
            found = connection.execute("SELECT ticket FROM audit WHERE did = 'answered'").fetchall()
    assert found == [(ticket,)]


FULL = """
import json, os, resource, sys
from starlette.testclient import TestClient
from tests import fork_server
from tests.live.served import AT, Served

served = Served(sys.argv[1])
kept, refused = [], []
with TestClient(served.app) as client:
    def call(role, route, body):
        return client.post(f"{AT}/{route}", headers=served.headers(role), json=body)

    block = [{"features": [i, 0, 0], "id": f"o{i}"} for i in range(60)]
    call("producer", "observations/batch", {"observations": block})
    room = os.path.getsize(f"{sys.argv[1]}/default.agent.db-wal") + 500_000
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    for i in range(60):
        for route, body in (("answer", {"label": "dog"}), ("undo", {}), ("dont-know", {})):
            reply = call("admin", route, {"ticket": f"o{i}", **body})
            assert reply.status_code in (200, 409, 503), reply.text
            (kept if reply.status_code == 200 else refused).append((route, f"o{i}"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
print(json.dumps([kept, refused]))
"""


def test_with_a_full_disk_either_all_of_a_call_is_kept_or_nothing(tmp_path):
    """A limit on the size of files stands in for the disk."""
    place = str(tmp_path / "store")
    done = subprocess.run([*fork_server.python(tmp_path), FULL, place], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    kept, refused = json.loads(done.stdout)
    assert len(kept) > 10
    assert len(refused) > 20
    words = {"answer": "answered", "undo": "took back", "dont-know": "did not know"}
    served = Served.__new__(Served)
    served.service = Service(place)
    there = [(line["did"], line["ticket"]) for line in served.service.audit.lines(limit=10_000) if line["ticket"]]
    assert sorted(there) == sorted((words[route], ticket) for route, ticket in kept)
    events = served.agent.count_events()
    served.service.close()
    changes = [call for call in kept if call[0] != "undo" or ["answer", call[1]] in kept]
    assert events == 60 + len(changes), "an undo changes nothing where the answer was refused"


def test_a_locked_table_makes_no_call_wait_for_long(postgres):
    """Only 200 and 503 within the bound, and a probe of readiness that replies at once, while a table is locked."""
    served = Served(postgres)
    with served.on_a_socket() as url, httpx.Client(base_url=url, timeout=60) as client:
        tickets = [
            client.post(f"{AT}/observations", headers=served.headers(PRODUCER), json={"features": [i, 0, 0]}).json()[
                "id"
            ]
            for i in range(12)
        ]

        def call(i: int) -> tuple[int, float, bool]:
            began = time.monotonic()
            if i % 2:
                reply = client.post(
                    f"{AT}/observations", headers=served.headers(PRODUCER), json={"features": [i, 1, 1]}
                )
            else:
                body = {"ticket": tickets[i // 2], "label": "dog"}
                reply = client.post(f"{AT}/answer", headers=served.headers(ADMIN), json=body)
            return reply.status_code, time.monotonic() - began, "retry-after" in reply.headers

        with psycopg.connect(postgres) as other, ThreadPoolExecutor(24) as executor:
            other.execute("LOCK TABLE agent_default.journal IN ACCESS EXCLUSIVE MODE")
            calls = [executor.submit(call, i) for i in range(24)]
            began = time.monotonic()
            assert client.get("/ready").status_code == 503
            assert time.monotonic() - began < 5.0
            release = threading.Timer(12.0, other.rollback)
            release.start()
            replies = [one.result(60) for one in calls]
            release.join()
        assert {status for status, _, _ in replies} <= {200, 503}
        assert any(status == 503 for status, _, _ in replies)
        assert all(later for status, _, later in replies if status == 503)
        assert max(seconds for _, seconds, _ in replies) < 25
        answered = {ticket for ticket in tickets if served.agent.ticket(ticket).status == "answered"}
        assert answered == {tickets[i // 2] for i in range(0, 24, 2) if replies[i][0] == 200}
        assert client.get("/ready").status_code == 200


@pytest.mark.postgres
def test_sixty_callers_wait_for_one_reading_of_the_tokens(postgres, monkeypatch):
    """They are refused together when the tokens cannot be read, and not one group of threads after the other."""
    monkeypatch.setattr("sparingly.live.service.service_database.LOCK_SECONDS", 2.0)
    served = Served(postgres)
    headers = served.headers(ADMIN)

    async def call_all():
        transport = httpx.ASGITransport(served.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://here", timeout=60) as client:
            return await asyncio.gather(*(client.get("/api/agents", headers=headers) for _ in range(60)))

    with psycopg.connect(postgres) as other:
        other.execute("LOCK TABLE sparingly_service.tokens IN ACCESS EXCLUSIVE MODE")
        began = time.monotonic()
        replies = asyncio.run(call_all())
        took = time.monotonic() - began
    assert {reply.status_code for reply in replies} == {503}
    assert took < 6.0
    assert {reply.status_code for reply in asyncio.run(call_all())} == {200}
    served.service.close()


def test_a_backup_made_under_way_is_a_whole_service(served, ask, tmp_path):
    """What docs/running.md says: SQLite's own backup of each file, while the service runs; put back, it goes on."""
    for i in range(5):
        observed(ask, id=f"before {i}")
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in (tmp_path / "store").glob("*.db"):
        with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(copy / file.name)) as target:
            source.backup(target)
    observed(ask, id="after")
    restored = Service(str(copy))
    assert [entry.id for entry in restored.agents.get("default").history()] == [f"before {i}" for i in range(5)]
    assert restored.tokens.check(served.tokens[ADMIN]).role == ADMIN
    restored.agents.get("default").observe([1, 2, 3])
    restored.close()
