"""From mails.csv to questions on the page in three commands, as the page on texts has them."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.commands.test_service_commands import SECRET, start, stop

pytest.importorskip("playwright")
from playwright.sync_api import expect, sync_playwright

from tests.live.service.browsing import SECONDS, launch, needs_browser

pytestmark = needs_browser
MAILS = [
    ("Hello,\n\nmy card was stolen in Rome.\nWhat now?", 39, "web"),
    ("The transfer of last Monday has not arrived yet.", None, "phone"),
    ("הכרטיס שלי נגנב", 23, "web"),
]


def test_three_commands(tmp_path: Path) -> None:
    with (tmp_path / "mails.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("message", "age", "channel"), *MAILS])
    process, line = start(tmp_path, "--name", "mails", "--classes", "card,money")  # the first
    try:
        url, admin = line.split()[-1], SECRET.search(process.stdout.readline())[0]
        seen = type_in(tmp_path, admin, "agent", "observe", f"{url}/mails", "mails.csv")  # the second
        tickets = [json.loads(one) for one in seen.splitlines()]
        assert [ticket["asks"] for ticket in tickets] == [True] * 3
        made = type_in(tmp_path, admin, "token", "create", "ann", "--role", "expert")  # the third
        headers = {"authorization": f"Bearer {admin}"}
        told = httpx.get(f"{url}/api/agents/mails", headers=headers, timeout=60).json()
        assert told["fields"]["message"] == "text"
        look_and_answer(url, SECRET.search(made)[0], tmp_path)
        said = type_in(tmp_path, admin, "agent", "stats", f"{url}/mails")
        assert said.startswith("3 observations, 3 questions:")
        open_now = type_in(tmp_path, admin, "agent", "observe", f"{url}/nobody", "mails.csv", fails=True)
        assert "nobody" in open_now
    finally:
        assert stop(process)


def type_in(folder: Path, token: str, *args: str, fails: bool = False) -> str:
    """What a command says when it is typed."""
    env = {**os.environ, "SPARINGLY_TOKEN": token}
    done = subprocess.run([str(folder / "sparingly"), *args], cwd=folder, env=env, capture_output=True, text=True)
    assert (done.returncode != 0) == fails, done.stderr
    return done.stdout if not fails else done.stderr


def look_and_answer(url: str, token: str, folder: Path) -> None:
    with sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page()
        page.set_default_timeout(1000 * SECONDS)
        page.goto(url)
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="Which class is it?")).to_be_visible()
        cell = page.locator("#shown td").first
        assert cell.inner_text() == MAILS[0][0]  # with its empty line
        expect(page.locator("#shown")).to_contain_text("channel")
        page.screenshot(path=folder / "mails.png")
        page.locator("#choices").get_by_role("button", name="card").click()
        expect(page.locator("#today-answers")).to_have_text("1")
        browser.close()
