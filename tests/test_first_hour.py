"""The first hour of a new user, typed from an empty folder: the five commands of the page, and what one tries next."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

import sparingly as sp
from sparingly.commands.main import main
from tests import fork_server
from tests.live.service.browsing import launch, rest
from tests.snippets import snippets

PAGE = Path(__file__).parents[1] / "docs" / "get-started.md"
SECONDS = 120


class Shell:
    """A folder in which commands are typed, one after the other."""

    def __init__(self, folder: Path) -> None:
        (folder / "bin").mkdir()
        fork_server.install(folder / "bin" / "sparingly")
        source = str(Path(sp.__file__).parents[1])
        path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
        self.folder = folder

    def type(self, line: str, *, code: int = 0) -> str:
        """What a command says, on both streams."""
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == code, f"{line}\n{done.stdout}"
        assert "Traceback" not in done.stdout, done.stdout
        return done.stdout

    def start(self, line: str) -> subprocess.Popen[str]:
        """A command that goes on; stopped by whoever started it."""
        return subprocess.Popen(
            shlex.split(line.rstrip("& ")),
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def commands() -> tuple[str, list[str]]:
    """What the page has a newcomer write, and the five commands."""
    parts = snippets(PAGE)
    (last,) = [i for i, one in enumerate(parts) if "SPARINGLY_TOKEN" in one.text]
    return parts[last - 1].text, [line for line in parts[last].text.splitlines() if line.strip()]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def stopped() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for one in started:
        one.send_signal(signal.SIGTERM)
        one.wait(30)


def test_five_commands_lead_from_a_table_to_people_who_are_asked(
    shell: Shell, stopped: list[subprocess.Popen[str]]
) -> None:
    table, typed = commands()
    assert len(typed) <= 5
    port = str(free_port())
    run, serve, token, teach, observe = (line.replace("8000", port) for line in typed)
    (shell.folder / "write.py").write_text(table)
    shell.type(f"{shlex.quote(sys.executable)} write.py")
    assert "Sparing would have cost" in shell.type(run)
    stopped.append(shell.start(serve))
    assert stopped[0].stdout is not None
    assert port in stopped[0].stdout.readline()
    admin = stopped[0].stdout.readline().split()[-1]
    name, _, made = token.removeprefix("export ").partition("=")
    shell.environment[name] = shell.type(f"echo {made} 2>/dev/null").strip().splitlines()[-1]
    assert "80 labels taught" in shell.type(teach)
    tickets = shell.type(observe).splitlines()
    assert len(tickets) == 80
    assert any('"asks": true' in line for line in tickets)
    assert all('"probabilities": {"leaves": ' in line for line in tickets)
    with sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page()
        page.set_default_timeout(60_000)
        page.goto(f"http://127.0.0.1:{port}")
        page.get_by_label("Token").fill(admin)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/agents/default/**")
        expect(page.locator("#schema")).to_contain_text("job: ")
        expect(page.locator("#questions-text")).to_contain_text("80 labels taught")
        page.goto(f"http://127.0.0.1:{port}/agents/default/answer")
        for field in ("age", "job", "since", "member"):
            expect(page.locator("#shown")).to_contain_text(field)
        rest(page)
        with page.expect_response(lambda reply: reply.request.method == "POST" and "answer" in reply.url):
            page.locator("#choices").get_by_role("button", name="buys").click()
        browser.close()
    with sp.Client(f"http://127.0.0.1:{port}", admin) as client:
        deadline = time.monotonic() + SECONDS
        while client.stats().answered < 1:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert client.stats().taught == 80


def test_what_is_known_can_be_told_and_what_comes_out_can_be_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(commands()[0], {})

    def typed(line: str, *, code: int = 0) -> str:
        """What a command says; in this process, since starting one takes longer than most commands."""
        with pytest.raises(SystemExit) as left:
            main(shlex.split(line)[1:])
        said = capsys.readouterr()
        assert (left.value.code or 0) == code, said
        return said.out + said.err

    costs = "--cost announced=leaves,true=buys:5 --query-cost 0.3"
    limits = "--horizon 80 --max-total 20 --max-cost 9 --max-per-day 50 --max-per-hour 100"
    assert "strategy sparing" in typed(f"sparingly agent create shop.db --classes leaves,buys {costs} {limits}")
    assert "80 labels taught" in typed("sparingly agent teach shop.db known.csv --target outcome")
    tickets = typed("sparingly agent observe shop.db new.csv").splitlines()
    assert sum('"asks": true' in line for line in tickets) <= 20
    said = typed("sparingly agent stats shop.db")
    assert re.search(r"80 observations, \d+ questions: .*; 80 labels taught", said)
    typed("sparingly agent export-model shop.db shop.model")
    lines = typed("sparingly predict shop.model --data new.csv").splitlines()
    assert lines[0] == "prediction,leaves,buys"
    assert len(lines) == 81
    refused = typed("sparingly agent teach shop.db known.csv --target outcme", code=2)
    assert refused == "sparingly: row 1 has no column 'outcme'\n"
    assert "did you mean" in typed("sparingly datasets --fetch adlut", code=2)
