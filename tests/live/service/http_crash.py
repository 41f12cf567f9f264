"""A service that is killed with SIGKILL again and again while clients stream observations and answers.

Run as a program: it loads everything once and forks a child for each life of the service, so that thirty are cheap.
It prints what it saw as JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

import sparingly as sp
from sparingly.live.agent.errors import ConflictError
from sparingly.live.service import server
from sparingly.live.service.service import Service

CLASSES = ["cat", "dog"]
CLIENTS, EXPERTS = 4, 2
QUICK = {"epochs": 1}


class Supervisor:
    """Starts one life of the service after another, each forked from a process that has loaded everything already.

    It is made before any thread is, so that what it forks is whole.
    """

    def __init__(self, place: str, port: int, open_service: Callable[[str], Service] = Service) -> None:
        (orders, self._orders), (self._replies, replies) = os.pipe(), os.pipe()
        if os.fork() == 0:
            os.close(self._orders)
            child = _life(place, port, open_service)
            os.write(replies, b"%12d" % child)
            while order := os.read(orders, 1):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                child = _life(place, port, open_service) if order == b"a" else 0
                os.write(replies, b"%12d" % child)
            os._exit(0)
        os.close(orders)
        self.pid = int(os.read(self._replies, 12))
        """The process id of the service."""

    def kill(self, *, again: bool) -> None:
        """Kill the service, and start the next one."""
        os.write(self._orders, b"a" if again else b"e")
        self.pid = int(os.read(self._replies, 12))


def _life(place: str, port: int, open_service: Callable[[str], Service]) -> int:
    child = os.fork()
    if child == 0:
        try:
            server.run(open_service(place), server.listen("127.0.0.1", port))
        finally:
            os._exit(1)
    return child


class Streams:
    """Clients that observe and experts who answer, and everything they were acknowledged."""

    def __init__(self, url: str, producer: str, experts: list[str]) -> None:
        self.over = threading.Event()
        self.observed: dict[str, str] = {}
        self.answered: dict[str, str] = {}
        self.failures: list[str] = []
        self.threads = [threading.Thread(target=self.observe, args=(url, producer, i)) for i in range(CLIENTS)]
        self.threads += [threading.Thread(target=self.answer, args=(url, secret)) for secret in experts]

    def wait_for_more(self) -> None:
        """Each life gets something done before it ends, however slow the machine is."""
        observed, answered, end = len(self.observed), len(self.answered), time.monotonic() + 20
        while (len(self.observed) <= observed or len(self.answered) <= answered) and time.monotonic() < end:
            time.sleep(0.002)

    def observe(self, url: str, token: str, number: int) -> None:
        rng = np.random.default_rng(number)
        with sp.Client(url, token, patience=60, timeout=5) as client:
            for i in range(10**9):
                if self.over.is_set():
                    return
                name = f"{number}.{i}"
                if i % 5 == 4:
                    block = [client.observe_many(rng.normal(size=(3, 3)), ids=[f"{name}.{k}" for k in range(3)])]
                else:
                    block = [[client.observe(rng.normal(size=3), id=name)]]
                for ticket in block[0]:
                    self.observed[ticket.id] = f"{ticket.prediction} {ticket.asks}"
                time.sleep(0.005)

    def answer(self, url: str, token: str) -> None:
        chance = random.Random(token)
        with sp.Client(url, token, patience=60, timeout=5) as client:
            while not self.over.is_set():
                for question in client.questions(limit=2):
                    label = chance.choice(CLASSES)
                    try:
                        client.answer(question.id, label)
                        self.answered[question.id] = label
                    except ConflictError as error:
                        self.failures.append(str(error))
                time.sleep(0.01)


def wait_until_ready(url: str) -> None:
    import httpx

    # Loading certificates for each look would take longer than the service takes to start.
    with httpx.Client(timeout=5, trust_env=False, verify=False) as client:
        for _ in range(2000):
            try:
                if client.get(f"{url}/ready").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.01)
    raise TimeoutError("the service does not become ready")


class Acknowledged(Protocol):
    """What clients were told: the ticket of each observation, the label of each answer, and refusals."""

    observed: dict[str, str]
    answered: dict[str, str]
    failures: list[str]


def verdict(place: str, streams: Acknowledged, kills: int) -> dict[str, Any]:
    service = Service(place)
    agent = service.agents.get("default")
    history = agent.history()
    there = {entry.id: entry for entry in history}
    lines = service.audit.lines(limit=10**6)
    audited = {line["ticket"] for line in lines if line["did"] == "answered"}
    lost = [name for name, said in streams.observed.items() if name not in there or _told(there[name]) != said]
    lost += [f"{name}: {label}" for name, label in streams.answered.items() if there[name].label != label]
    lost += [f"{name}: not in the audit trail" for name in streams.answered if name not in audited]
    service.close()
    return {
        "kills": kills,
        "observed": len(streams.observed),
        "answered": len(streams.answered),
        "doubled": len(history) - len(there),
        "unasked_for": len([entry.id for entry in history if entry.id.startswith("t.")]),
        "lost": lost,
        "refused": streams.failures,
    }


def _told(entry: Any) -> str:
    return f"{entry.prediction} {entry.asks}"


def main(place: str, kills: int) -> None:
    service = Service(place)
    service.agents.create(
        "default", classes=CLASSES, n_features=3, strategy="always_ask", options=QUICK, training="inline"
    )
    producer = service.tokens.create("producer", "producer")[1]
    experts = [service.tokens.create(f"expert {i}", "expert")[1] for i in range(EXPERTS)]
    service.close()
    with server.listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    supervisor = Supervisor(place, port)
    streams = Streams(url, producer, experts)
    chance = random.Random(5)
    wait_until_ready(url)
    for thread in streams.threads:
        thread.start()
    for _ in range(kills):
        streams.wait_for_more()
        time.sleep(chance.uniform(0.02, 0.35))
        supervisor.kill(again=True)
        wait_until_ready(url)
    time.sleep(0.2)
    streams.over.set()
    for thread in streams.threads:
        thread.join()
    supervisor.kill(again=False)
    sys.stdout.write(json.dumps(verdict(place, streams, kills)))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
