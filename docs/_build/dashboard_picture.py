"""The picture of the dashboard in the README: a service, digits, three people who answer, and a browser.

`python -m docs._build.dashboard_picture` writes docs/dashboard.png; chromium and Playwright are needed.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from sparingly.live.agent.agent import Agent
from sparingly.live.service.app import create_app
from sparingly.live.service.server import Server, address, configured, listen
from sparingly.live.service.service import Service

TARGET = Path(__file__).parents[1] / "dashboard.png"
PEOPLE = ("Ada", "Grace", "Alan")
OBSERVATIONS = 1500


def main(target: str | Path = TARGET) -> None:
    """Play, and take the picture."""
    with tempfile.TemporaryDirectory() as folder:
        service = Service(folder)
        classes = [str(digit) for digit in range(10)]
        agent = service.agents.create("digits", classes=classes, query_cost=0.5, training="inline")
        play(agent)
        secret = service.tokens.create("Ada", "admin")[1]
        listener = listen("127.0.0.1", 0)
        server = Server(configured(create_app(service), service.limits, grace=2), service)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            take(address(listener), secret, Path(target))
        finally:
            service.events.stop()
            server.should_exit = True
            thread.join(20)
            listener.close()


def play(agent: Agent, observations: int = OBSERVATIONS) -> None:
    """An afternoon: one observation every few seconds, and answers a minute late."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(7)
    began, now = time.time() - 6.0 * observations, [0.0]
    agent._runtime.clock = lambda: now[0]
    waiting: list[tuple[float, str, str]] = []
    for i in rng.permutation(len(X))[:observations]:
        now[0] = (now[0] or began) + 6.0 * float(rng.exponential())
        ticket = agent.observe(X[i], id=f"scan {i}", payload=f"digit {i}")
        if ticket.asks:
            waiting.append((now[0] + 60.0, ticket.id, str(y[i])))
        while waiting and waiting[0][0] <= now[0]:
            _, one, label = waiting.pop(0)
            agent.answer(one, label, expert=str(rng.choice(PEOPLE)))
    agent._runtime.clock = time.time


def take(url: str, secret: str, target: Path) -> None:
    """Sign in, wait until the dashboard is drawn, and keep it as a picture."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or "/usr/bin/chromium", args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.goto(url)
        page.get_by_label("Token").fill(secret)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_selector("#recent td.id")
        page.wait_for_selector(".live.on")
        page.wait_for_timeout(500)
        page.screenshot(path=target)
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
