"""A service that is killed with SIGKILL again and again while it calls an expert over HTTP, which counts its calls.

Run as a program, like `http_crash`; it prints what it saw as JSON.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections import Counter
from typing import Any

import numpy as np

import sparingly as sp
from sparingly.live.service import server
from sparingly.live.service.service import Service
from tests.experts.endpoint import Endpoint, Handler
from tests.live.service.http_crash import CLASSES, Supervisor, wait_until_ready

PRICE = 0.01


def said(ticket: str) -> str:
    return CLASSES[sum(ticket.encode()) % 2]


def judge(handler: Handler, body: dict[str, Any]) -> None:
    """Answers after a moment, so that some calls are under way whenever the service is killed."""
    time.sleep(0.05 * random.random())
    handler.send(200, json.dumps({"label": said(body["id"])}).encode())


def observe(url: str, token: str, number: int, observed: list[str], over: threading.Event) -> None:
    rng = np.random.default_rng(number)
    with sp.Client(url, token, patience=60, timeout=5) as client:
        for i in range(10**9):
            if over.is_set():
                return
            observed.append(client.observe(rng.normal(size=3), id=f"{number}.{i}").id)
            time.sleep(0.01)


def verdict(place: str, endpoint: Endpoint, observed: list[str], kills: int) -> dict[str, Any]:
    service = Service(place)
    agent = service.agents.get("default")
    counted = Counter(body["id"] for body in endpoint.bodies)
    history = {entry.id: entry for entry in agent.history()}
    booked = {name: agent.calls(name) for name in history}
    states = Counter(call.state for calls in booked.values() for call in calls)
    found = {
        "kills": kills,
        "observed": len(observed),
        "lost": [name for name in observed if name not in history],
        "called": len(counted),
        "repeated": [name for name, count in counted.items() if count > 1],
        "not_booked": [name for name in counted if sum(call.price or 0 for call in booked.get(name, ())) != PRICE],
        "wrong": [
            name for name, calls in booked.items() if any(call.label not in (None, said(name)) for call in calls)
        ],
        "stuck": [name for name, entry in history.items() if entry.status == "consulting"],
        "states": dict(states),
        "bill": agent.stats().bill["gpt"],
    }
    service.close()
    return found


def main(place: str, kills: int) -> None:
    endpoint = Endpoint(judge)
    gpt = sp.HTTPExpert("gpt", endpoint.url, price=PRICE, timeout=10)
    experts = [gpt, sp.Expert("human", price=1.0, gold=True)]
    service = Service(place)
    service.agents.create("default", classes=CLASSES, n_features=3, experts=experts, training="inline")
    producer = service.tokens.create("producer", "producer")[1]
    service.close()
    with server.listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    supervisor = Supervisor(place, port, lambda where: _opened(where, gpt))
    threading.Thread(target=endpoint.serve_forever, daemon=True).start()
    observed: list[str] = []
    over = threading.Event()
    threads = [threading.Thread(target=observe, args=(url, producer, i, observed, over)) for i in range(2)]
    wait_until_ready(url)
    for thread in threads:
        thread.start()
    chance = random.Random(3)
    for _ in range(kills):
        before, end = len(endpoint.bodies), time.monotonic() + 20
        while len(endpoint.bodies) <= before + 1 and time.monotonic() < end:
            time.sleep(0.002)
        time.sleep(chance.uniform(0.0, 0.1))
        supervisor.kill(again=True)
        wait_until_ready(url)
    over.set()
    for thread in threads:
        thread.join()
    with sp.Client(url, producer) as client:
        end = time.monotonic() + 60
        while any(client.ticket(name).status == "consulting" for name in observed[-40:]) and time.monotonic() < end:
            time.sleep(0.1)
    supervisor.kill(again=False)
    sys.stdout.write(json.dumps(verdict(place, endpoint, observed, kills)))


def _opened(place: str, gpt: sp.HTTPExpert) -> Service:
    service = Service(place, machines=[gpt])
    service.agents.open_all()
    return service


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
