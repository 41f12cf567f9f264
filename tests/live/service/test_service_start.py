"""Several processes that start at the same moment where nothing was before."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from sparingly.live.service import server
from sparingly.live.service.auth.tokens import Tokens
from sparingly.live.service.service import Service
from sparingly.live.service.service_database import ServiceDatabase
from tests import fork_server

SERVES = re.compile(r"sparingly serves default at (\S+)\n")
SECRET = re.compile(r"sparingly_[0-9a-f]{12}_[\w-]{43}")
COUNT = 4


@pytest.fixture
def start_together(tmp_path):
    """Start so many services on one place; returns what each has said once it is ready or has ended."""
    processes: list[subprocess.Popen[bytes]] = []
    files = [tmp_path / f"said-{i}" for i in range(COUNT)]

    def is_settled(process: subprocess.Popen[bytes], file: Path) -> bool:
        found = SERVES.search(file.read_text())
        if found is None:
            return process.poll() is not None
        try:
            return httpx.get(f"{found[1]}/ready", timeout=10).status_code == 200
        except httpx.TransportError:
            return False

    def start(place: str) -> list[tuple[str, int | None]]:
        fork_server.install(tmp_path / "sparingly")
        command = [str(tmp_path / "sparingly"), "serve", "--port", "0", "--classes", "cat,dog", "--store", place]
        for file in files:
            with file.open("wb") as said:
                processes.append(subprocess.Popen(command, stdout=said, stderr=said))
        deadline = time.monotonic() + 120
        for process, file in zip(processes, files, strict=True):
            while not is_settled(process, file):
                assert time.monotonic() < deadline, f"neither ready nor ended: {file.read_text()}"
                time.sleep(0.1)
        return [(file.read_text(), process.poll()) for process, file in zip(processes, files, strict=True)]

    yield start
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait(60)


def test_four_on_one_database_make_one_agent_and_one_token(start_together, postgres):
    started = start_together(postgres)
    assert [code for _, code in started] == [None] * COUNT, started
    (secret,) = [secret for said, _ in started for secret in SECRET.findall(said)]
    for said, _ in started:
        url = SERVES.search(said)[1]
        headers = {"authorization": f"Bearer {secret}"}
        assert httpx.get(f"{url}/api/agents", headers=headers, timeout=60).json()["agents"] == ["default"]
        assert len(httpx.get(f"{url}/api/tokens", headers=headers, timeout=60).json()["tokens"]) == 1


@pytest.mark.postgres
def test_an_agent_made_while_another_waited_for_its_turn_is_found(postgres):
    """Also if the list was read meanwhile, as housekeeping does every second."""
    first, second = Service(postgres), Service(postgres)
    assert second.agents.names() == []
    for service in (first, second):
        with service.database.starting():
            server.first_agent(service, "default", ["cat", "dog"], {"n_features": 3, "training": "inline"})
    assert second.agents.names() == ["default"]
    for service in (first, second):
        service.close()


BEGIN = """
import sys, time
from sparingly.live.service.auth.tokens import Tokens
from sparingly.live.service.service_database import ServiceDatabase

print("ready", flush=True)
sys.stdin.readline()
database = ServiceDatabase(sys.argv[1])
with database.starting():
    tokens = Tokens(database)
    is_first = not tokens.list()
    if is_first:
        tokens.create("admin", "admin")
database.close()
print(is_first, flush=True)
"""


def test_four_that_make_one_service_db_agree_on_the_first_token(tmp_path):
    """With SQLite one process serves; commands beside it, and those that start too late, open the same file."""
    fork_server.install(tmp_path / "python", "python")
    command = [str(tmp_path / "python"), BEGIN, str(tmp_path / "store")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(COUNT)]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * COUNT
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * COUNT
    assert sorted(said) == ["False\n"] * 3 + ["True\n"], "one makes it, the others find it"
    assert [token.name for token in Tokens(ServiceDatabase(tmp_path / "store")).list()] == ["admin"]
