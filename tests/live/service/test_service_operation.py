"""What an operator relies on: readiness that writes, files for their owner alone, exports without formulas."""

from __future__ import annotations

import csv
import os
import sqlite3
import time
from contextlib import closing

import pytest

from sparingly.live.service import readiness, service_database
from sparingly.live.service.auth.tokens import ADMIN
from tests.live.served import AT, Served


def not_ready(client):
    """The first reply that says so."""
    deadline = time.monotonic() + 60
    while (told := client.get("/ready")).status_code == 200 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (told.status_code, told.headers["retry-after"]) == (503, "1")
    return told


def test_an_agent_that_was_closed_is_not_ready(client, served, caplog):
    assert client.get("/ready").json()["status"] == "ready"
    served.agent.close()
    told = not_ready(client)
    assert told.json() == {"error": "not ready: agent 'default' cannot be written; the service's log tells why"}
    assert "closed" in caplog.text


@pytest.mark.parametrize(
    ("file", "what"), [("service.db", "the service's database"), ("default.agent.db", "agent 'default'")]
)
def test_a_database_that_can_only_be_read_is_not_ready(ask, client, tmp_path, caplog, file, what):
    assert client.get("/ready").status_code == 200
    with closing(sqlite3.connect(tmp_path / "store" / file)) as other:
        other.execute("CREATE TRIGGER full BEFORE INSERT ON meta BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
        other.commit()
    told = not_ready(client)
    assert told.json() == {"error": f"not ready: {what} cannot be written; the service's log tells why"}
    assert "disk is full" in caplog.text
    assert ask(ADMIN, "GET", f"{AT}/statistics").status_code == 200, "reading goes on"


def test_readiness_is_told_in_time_while_the_database_is_locked(client, tmp_path, monkeypatch):
    monkeypatch.setattr(readiness, "SECONDS", 0.5)
    assert client.get("/health").status_code == 200
    with closing(sqlite3.connect(tmp_path / "store" / "service.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        began = time.monotonic()
        not_ready(client)
        assert time.monotonic() - began < service_database.LOCK_SECONDS, "before the lock is given up"


def test_the_files_of_an_agent_are_their_owners_alone(tmp_path):
    before = os.umask(0)
    try:
        served = Served(str(tmp_path / "store"))
        served.agent.observe([1.0, 2.0, 3.0])
        modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "store").iterdir()}
        served.service.close()
    finally:
        os.umask(before)
    assert {f"default.agent.db{ending}" for ending in ("", "-wal", "-shm", ".lock")} <= set(modes)
    assert set(modes.values()) == {0o600}


def test_an_exported_table_has_no_formulas(ask, served):
    formulas = ["=cmd()", "+1+2", "-2+3", "@sum"]
    ask(ADMIN, "POST", "/api/agents", {"name": "sheet", "classes": [*formulas, "-7", "ham"], "strategy": "always_ask"})
    sheet = served.service.agents.get("sheet")
    for number, label in enumerate([*formulas, "-7", "ham"]):
        ticket = sheet.observe({"=width": -1.5, "height": 2}, id=f"={number}")
        sheet.answer(ticket.id, label)
    rows = list(csv.reader(ask(ADMIN, "GET", "/api/agents/sheet/export").text.splitlines()))
    assert rows[0][:3] == ["id", "'=width", "height"]
    assert [row[0] for row in rows[1:3]] == ["'=0", "'=1"]
    assert {row[1] for row in rows[1:]} == {"-1.5"}, "numbers stay numbers"
    assert [row[3] for row in rows[1:]] == [*(f"'{label}" for label in formulas), "-7", "ham"]
