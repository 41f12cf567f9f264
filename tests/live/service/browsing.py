"""What the tests of the pages share: where the browser is, waiting, and what axe says."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest

pytest.importorskip("playwright")
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

expect.set_options(timeout=15_000)
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
needs_browser = [
    pytest.mark.browser,
    pytest.mark.skipif(not Path(CHROMIUM).exists(), reason="chromium is not installed"),
]
SIZES = {"desktop": {"width": 1280, "height": 800}, "phone": {"width": 360, "height": 740}}


def press(page: Page, key: str) -> None:
    """Press a key once the page has done the last thing: a key that comes too early is dropped on purpose."""
    expect(page.locator("body")).not_to_have_class(re.compile("busy"))
    page.keyboard.press(key)


def eventually(page: Page, holds, seconds=15, pause=50) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        page.wait_for_timeout(pause)


def press_until(page: Page, key: str, holds) -> None:
    """Press a key, again if it was dropped: news of the agent may make the page busy between a look and the key."""

    def pressed() -> bool:
        done = holds()
        if not done:
            press(page, key)
        return done

    eventually(page, pressed, pause=1000)


def violations(page: Page) -> list[tuple[str, str, str]]:
    """What axe finds wrong on the page as it stands."""
    found = Axe().run(page).response["violations"]
    return [(v["id"], v["impact"], v["nodes"][0]["html"]) for v in found]
