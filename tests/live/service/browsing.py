"""What the tests of the pages share: where the browser is, waiting, and what axe says."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest

pytest.importorskip("playwright")
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Playwright, expect

SECONDS = 90
"""Far more than anything takes: it only matters where something is broken."""
expect.set_options(timeout=1000 * SECONDS)
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium") or "/usr/bin/chromium"
"""Without windows if there is such a one: the same pages at a third of the time."""
IN_WINDOWS = "WebUIOmniboxPopup,WebUIOmniboxAimPopup,SpareRendererForSitePerProcess"
"""What the one with windows would start for each page, and no test looks at."""
needs_browser = [
    pytest.mark.browser,
    pytest.mark.skipif(not Path(CHROMIUM).exists(), reason="chromium is not installed"),
]
SIZES = {"desktop": {"width": 1280, "height": 800}, "phone": {"width": 360, "height": 740}}


def launch(playwright: Playwright) -> Browser:
    """A browser that shows nothing."""
    return playwright.chromium.launch(
        executable_path=CHROMIUM, args=["--no-sandbox", f"--disable-features={IN_WINDOWS}"]
    )


def observe(served, count=1, **more):
    """The tickets of so many observations."""
    return [served.agent.observe([i, 2, 3], **more).id for i in range(count)]


def choice(page: Page, name: str):
    """The button of a class."""
    return page.locator("#choices").get_by_role("button", name=name)


def rest(page: Page) -> None:
    """Wait until the page has done the last thing: what it shows before that may be of the question before."""
    expect(page.locator("body")).not_to_have_class(re.compile("busy"))


def press(page: Page, key: str) -> None:
    """Press a key once the page rests: before that, the question that it is for may not have come."""
    rest(page)
    page.keyboard.press(key)


def eventually(page: Page, holds, seconds=SECONDS, pause=50) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        page.wait_for_timeout(pause)


def violations(page: Page) -> list[tuple[str, str, str]]:
    """What axe finds wrong on the page, once it rests: until then choices are paler."""
    rest(page)
    found = Axe().run(page).response["violations"]
    return [(v["id"], v["impact"], v["nodes"][0]["html"]) for v in found]
