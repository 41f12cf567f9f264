"""Two service processes on one PostgreSQL database, of which one is killed under load and stays dead.

Run as a program, with the database's URL; it prints what it saw as JSON.
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from typing import Any

import numpy as np

import sparingly as sp
from sparingly.live.agent.errors import ConflictError, StoreError
from sparingly.live.service import server
from sparingly.live.service.service import Service
from tests.live.service.http_crash import CLASSES, QUICK, Supervisor, verdict, wait_until_ready

CLIENTS = 4


class Streams:
    """Clients that turn to the other process when theirs is gone, with the same id again."""

    def __init__(self, urls: list[str], producer: str, expert: str) -> None:
        self.over = threading.Event()
        self.observed: dict[str, str] = {}
        self.answered: dict[str, str] = {}
        self.failures: list[str] = []
        self.urls = urls
        self.threads = [threading.Thread(target=self.observe, args=(producer, i)) for i in range(CLIENTS)]
        self.threads.append(threading.Thread(target=self.answer, args=(expert,)))

    def observe(self, token: str, number: int) -> None:
        rng = np.random.default_rng(number)
        clients = itertools.cycle(self.clients(token)[number % 2 :])
        client = next(clients)
        for i in itertools.takewhile(lambda _: not self.over.is_set(), itertools.count()):
            x = rng.normal(size=3)
            while True:
                try:
                    ticket = client.observe(x, id=f"{number}.{i}")
                    break
                except StoreError:
                    client = self.other(client, token)
            self.observed[ticket.id] = f"{ticket.prediction} {ticket.asks}"

    def answer(self, token: str) -> None:
        client = self.clients(token)[0]
        while not self.over.is_set():
            try:
                for question in client.questions(limit=3):
                    client.answer(question.id, "dog")
                    self.answered[question.id] = "dog"
            except ConflictError as error:
                self.failures.append(str(error))
            except StoreError:
                client = self.other(client, token)

    def clients(self, token: str) -> list[sp.Client]:
        return [sp.Client(url, token, patience=0.3, timeout=10) for url in self.urls]

    def other(self, client: sp.Client, token: str) -> sp.Client:
        here = str(client._http.base_url).rstrip("/")
        return sp.Client(next(url for url in self.urls if url != here), token, patience=0.3, timeout=10)


def main(place: str) -> None:
    service = Service(place)
    service.agents.create(
        "default", classes=CLASSES, n_features=3, strategy="always_ask", options=QUICK, training="inline"
    )
    producer, expert = (service.tokens.create(role, role)[1] for role in ("producer", "expert"))
    service.close()
    ports = []
    for _ in range(2):
        with server.listen("127.0.0.1", 0) as free:
            ports.append(free.getsockname()[1])
    first, second = (Supervisor(place, port) for port in ports)
    streams = Streams([f"http://127.0.0.1:{port}" for port in ports], producer, expert)
    for url in streams.urls:
        wait_until_ready(url)
    for thread in streams.threads:
        thread.start()
    _until(lambda: len(streams.observed) >= 40 and len(streams.answered) >= 3)
    first.kill(again=False)
    before = len(streams.observed), len(streams.answered)
    _until(lambda: len(streams.observed) >= before[0] + 40 and len(streams.answered) >= before[1] + 3)
    streams.over.set()
    for thread in streams.threads:
        thread.join()
    second.kill(again=False)
    report: dict[str, Any] = verdict(place, streams, 1)
    sys.stdout.write(json.dumps({**report, "after": len(streams.observed) - before[0]}))


def _until(true: Any) -> None:
    end = time.monotonic() + 60
    while not true():
        if time.monotonic() > end:
            raise TimeoutError("the streams do not move")
        time.sleep(0.02)


if __name__ == "__main__":
    main(sys.argv[1])
