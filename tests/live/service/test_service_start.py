"""Several processes that start at the same moment where nothing was before."""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

import sparingly as sp
from sparingly.live.service.auth.tokens import Tokens
from sparingly.live.service.service_database import ServiceDatabase

COMMAND = "from sparingly.commands.main import main; main()"
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
        command = [sys.executable, "-c", COMMAND, "serve", "--port", "0", "--classes", "cat,dog", "--store", place]
        environment = {**os.environ, "PYTHONPATH": str(Path(sp.__file__).parents[1]), "PYTHONUNBUFFERED": "1"}
        for file in files:
            with file.open("wb") as said:
                processes.append(subprocess.Popen(command, env=environment, stdout=said, stderr=said))
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
        assert httpx.get(f"{url}/api/agents", headers=headers).json()["agents"] == ["default"]
        assert len(httpx.get(f"{url}/api/tokens", headers=headers).json()["tokens"]) == 1


@pytest.mark.parametrize("round_", range(5))
def test_four_that_make_one_service_db_agree_on_the_first_token(tmp_path, round_):
    """With SQLite one process serves; commands beside it, and those that start too late, open the same file."""
    context = multiprocessing.get_context("fork")
    barrier, told = context.Barrier(COUNT), context.SimpleQueue()
    processes = [context.Process(target=_begin, args=(str(tmp_path / "store"), barrier, told)) for _ in range(COUNT)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * COUNT
    assert sorted(told.get() for _ in processes) == [False, False, False, True], "one makes it, the others find it"
    assert [token.name for token in Tokens(ServiceDatabase(tmp_path / "store")).list()] == ["admin"]


def _begin(place, barrier, told):
    barrier.wait(30)
    database = ServiceDatabase(place)
    with database.starting():
        tokens = Tokens(database)
        is_first = not tokens.list()
        if is_first:
            tokens.create("admin", "admin")
    told.put(is_first)
    database.close()
