"""Every fault in one go: sixteen clients at work while their service is killed, starved and locked out.

`python -m benchmarks chaos [--hold SECONDS] [--rounds N] [sqlite] [postgresql]` prints what was acknowledged, and what
must be zero: acknowledged and lost, kept twice, kept although refused, calls that waited longer than 35 seconds, and
replies that blame the service (500). It exits with 1 if anything is not zero. Without options it writes what it prints
to docs/results/service/chaos.csv.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psycopg
import pytest
from sqlalchemy import func, select
from tests.live import postgres
from tests.live.service.http_crash import CLASSES, QUICK, Supervisor, verdict, wait_until_ready

from benchmarks.result_files import keep
from sparingly.live.service import server
from sparingly.live.service.service import Service
from sparingly.live.store import journal as events
from sparingly.live.store.tables import journal

PRODUCERS, EXPERTS = 12, 4
LONGEST = 35.0
"""Seconds after which a call counts as hung."""
AT = "/api/agents/default"
HUNG = f"over {LONGEST:.0f} s"
ZERO = ("lost", "doubled", "kept though refused", HUNG, "500s")
DEEP = "[" * 900 + "]" * 900
MALFORMED = [
    b'{"features": [1%s, 1, 2]}' % (b"0" * 400),
    b'{"features": [%s, 1, 2]}' % DEEP.encode(),
    b'{"features": [1, 2, 3], "id": "\\ud800"}',
    b'{"features": [1, 2, 3], "id": "\\u0000"}',
    b'{"features": [1, 2, 3], "payload": {"text": "\\ud800"}}',
    b'{"features": [1, 2, 3], "payload": {"fields": %s}}' % DEEP.encode(),
    b'{"features": [1e400, NaN, 2]}',
    b'{"features": [1, 2, 3], "id": "\xff"}',
    b'{"features": [1, 2]}',
    b"[" * 100_000,
    b"",
]


class Clients:
    """Twelve producers, who send nonsense in between, four experts and a load balancer that asks for readiness.

    A call that gets no reply, or 503, is sent again with the same id. Half of those that get 503 at the first attempt
    are left, for nothing of them may have been kept.
    """

    def __init__(self, url: str, producer: str, experts: list[str]) -> None:
        self.url = url
        self.over = threading.Event()
        self.observed: dict[str, str] = {}
        self.answered: dict[str, str] = {}
        self.failures: list[str] = []
        self.left: list[str] = []
        self.hung: list[str] = []
        self.broken: list[str] = []
        self.statuses: Counter[int] = Counter()
        self.slowest = (0.0, "")
        jobs: list[Callable[[], None]] = [self._watch]
        jobs += [lambda i=i: self._observe(producer, i) for i in range(PRODUCERS)]
        jobs += [lambda i=i, t=token: self._answer(t, i) for i, token in enumerate(experts)]
        self.threads = [threading.Thread(target=job, daemon=True) for job in jobs]

    def wait_for_more(self) -> None:
        """Until every kind of client has got something done again."""
        observed, answered, end = len(self.observed), len(self.answered), time.monotonic() + 2 * LONGEST
        while len(self.observed) < observed + PRODUCERS or len(self.answered) <= answered:
            if time.monotonic() > end:
                self.hung.append("the streams did not move again")
                return
            time.sleep(0.02)

    def _observe(self, token: str, number: int) -> None:
        chance = random.Random(number)
        rng = np.random.default_rng(number)
        with self._http(token) as http:
            i = 0
            while not self.over.is_set():
                i += 1
                ids = [f"{number}.{i}.{k}" for k in range(3 if i % 5 == 4 else 1)]
                block = [{"features": rng.normal(size=3).tolist(), "id": name} for name in ids]
                path, body = (
                    (f"{AT}/observations", block[0])
                    if len(ids) == 1
                    else (f"{AT}/observations/batch", {"observations": block})
                )
                if i % 5 == 1:
                    self._send_nonsense(http, chance.choice(MALFORMED))
                reply = self._until_done(http, path, body, chance, ids)
                for ticket in () if reply is None else reply.get("tickets", [reply]):
                    self.observed[ticket["id"]] = f"{ticket['prediction']} {ticket['asks']}"

    def _send_nonsense(self, http: httpx.Client, body: bytes) -> None:
        reply = self._post(http, f"{AT}/observations", body)
        if reply is not None and reply[0] < 400:
            self.broken.append(f"nonsense was taken: {body[:60]!r}")

    def _answer(self, token: str, number: int) -> None:
        chance = random.Random(100 + number)
        mine: set[str] = set()
        with self._http(token) as http:
            while not self.over.is_set():
                found = self._post(http, f"{AT}/questions?limit=3", b"")
                questions = found[1]["questions"] if found is not None and found[0] == 200 else []
                for question in [q["id"] for q in questions if q["id"] not in mine]:
                    label = chance.choice(CLASSES)
                    mine.add(question)
                    body = {"ticket": question, "label": label}
                    if self._until_done(http, f"{AT}/answer", body, chance, [f"answer {question}"]) is not None:
                        self.answered[question] = label
                if not questions:
                    time.sleep(0.05)

    def _watch(self) -> None:
        with self._http("") as http:
            while not self.over.wait(0.5):
                self._timed("/ready", lambda: http.get("/ready"))

    def _until_done(
        self, http: httpx.Client, path: str, body: Any, chance: random.Random, names: list[str]
    ) -> dict[str, Any] | None:
        content = json.dumps(body).encode()
        attempts = 0
        while not self.over.is_set():
            attempts += 1
            reply = self._post(http, path, content)
            if reply is not None and reply[0] == 200:
                return reply[1]
            if reply is not None and reply[0] not in (429, 503):
                self.failures.append(f"{path}: {reply[0]} {reply[1]}")
                return None
            if reply is not None and attempts == 1 and chance.random() < 0.5:
                self.left += names
                return None
            time.sleep(0.1)
        return None

    def _post(self, http: httpx.Client, path: str, content: bytes) -> tuple[int, dict[str, Any]] | None:
        headers = {"content-type": "application/json"}
        return self._timed(path, lambda: http.post(path, content=content, headers=headers))

    def _timed(self, path: str, call: Callable[[], httpx.Response]) -> tuple[int, dict[str, Any]] | None:
        """Status and body of a reply, None if there was none; what should not be is noted."""
        began = time.monotonic()
        reply = None
        with contextlib.suppress(httpx.TransportError):
            reply = call()
        took = time.monotonic() - began
        self.slowest = max(self.slowest, (took, path))
        if took > LONGEST:
            self.hung.append(f"{path}: {took:.0f} s")
        if reply is None:
            return None
        self.statuses[reply.status_code] += 1
        if reply.status_code >= 500 and reply.status_code != 503:
            self.broken.append(f"{path}: {reply.status_code} {reply.text[:200]}")
        return reply.status_code, reply.json()

    def _http(self, token: str) -> httpx.Client:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=LONGEST + 1, trust_env=False)


class Faults:
    """What is done to one service, and to the database under it."""

    def __init__(self, place: str, supervisor: Supervisor, url: str, database: postgres.Server | None, hold: float):
        self._place = place
        self._supervisor = supervisor
        self._url = url
        self._database = database
        self._hold = hold
        self._half_open: list[socket.socket] = []

    def every(self) -> list[Callable[[], None]]:
        mine = [
            self.half_open_connections,
            self.kill_the_trainers,
            self.lock,
            self.fill_the_disk,
            self.kill_the_service,
        ]
        return mine if self._database is None else [*mine, self.end_connections, self.kill_the_database]

    def half_open_connections(self) -> None:
        """Fifty callers who begin a request and never end it, until the service is killed."""
        where = httpx.URL(self._url)
        for i in range(50):
            half = socket.create_connection((where.host, where.port or 80))
            half.sendall((f"POST {AT}/observations HTTP/1.1\r\nhost: x\r\ncontent-le")[: 5 + i].encode())
            self._half_open.append(half)

    def kill_the_service(self) -> None:
        self._supervisor.kill(again=True)
        for half in self._half_open:
            half.close()
        self._half_open.clear()
        wait_until_ready(self._url)

    def kill_the_trainers(self) -> None:
        for process in _descendants(self._supervisor.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def lock(self) -> None:
        """Someone holds the database: a backup, a migration, a person with a console."""
        if self._database is not None:
            with psycopg.connect(self._place) as holder:
                for table in ("sparingly_service.audit", "sparingly_service.tokens", "agent_default.tickets"):
                    holder.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
                time.sleep(self._hold)
            return
        for name in ("service.db", "default.agent.db"):
            with closing(sqlite3.connect(Path(self._place) / name, timeout=30, isolation_level=None)) as holder:
                holder.execute("BEGIN IMMEDIATE")
                time.sleep(self._hold)
                holder.execute("ROLLBACK")

    def fill_the_disk(self) -> None:
        """No file can be written: those of the service, or of the database server, which panics and recovers."""
        processes = [self._supervisor.pid, *_descendants(self._supervisor.pid)]
        if self._database is not None:
            processes = self._connections("SELECT pid")
        _limit_files(processes, "1:")
        time.sleep(min(self._hold, 3.0))
        _limit_files(processes, "unlimited:")

    def end_connections(self) -> None:
        self._connections("SELECT pid, pg_terminate_backend(pid)")

    def kill_the_database(self) -> None:
        assert self._database is not None
        self._database.stop("immediate")
        self._database.start()

    def _connections(self, what: str) -> list[int]:
        """The processes of the database server that serve the service."""
        for _ in range(100):
            try:
                with psycopg.connect(self._place, autocommit=True) as look:
                    query = f"{what} FROM pg_stat_activity WHERE application_name = 'sparingly'"
                    return [row[0] for row in look.execute(query).fetchall()]  # type: ignore[arg-type]
            except psycopg.OperationalError:
                time.sleep(0.1)
        raise TimeoutError("the database server does not come back")


def _limit_files(processes: list[int], limit: str) -> None:
    """Let files grow no larger than so many bytes; a process that is gone by now needs no limit."""
    for process in processes:
        with contextlib.suppress(FileNotFoundError):
            owner = Path(f"/proc/{process}").stat().st_uid
            subprocess.run(["prlimit", f"--pid={process}", f"--fsize={limit}"], user=owner, check=False, cwd="/")


def _descendants(process: int) -> list[int]:
    found = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            found += [int(child) for child in (thread / "children").read_text().split()]
    return found + [below for child in found for below in _descendants(child)]


def ordeal(place: str, database: postgres.Server | None, hold: float, rounds: int) -> dict[str, Any]:
    """Put one service through every fault, and look at what is there in the end."""
    service = Service(place)
    service.agents.create("default", classes=CLASSES, n_features=3, strategy="always_ask", options=QUICK)
    producer = service.tokens.create("producer", "producer")[1]
    experts = [service.tokens.create(f"expert {i}", "expert")[1] for i in range(EXPERTS)]
    service.close()
    with server.listen("127.0.0.1", 0) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        port = free.getsockname()[1]
    supervisor = Supervisor(place, port)
    clients = Clients(url, producer, experts)
    faults = Faults(place, supervisor, url, database, hold)
    wait_until_ready(url)
    for thread in clients.threads:
        thread.start()
    suffered = 0
    for fault in faults.every() * rounds:
        clients.wait_for_more()
        began = time.monotonic()
        fault()
        suffered += 1
        words = fault.__name__.replace("_", " ")
        print(f"  {words}: {time.monotonic() - began:.1f} s, {len(clients.observed)} observed", file=sys.stderr)
    clients.wait_for_more()
    clients.over.set()
    for thread in clients.threads:
        thread.join()
    supervisor.kill(again=False)
    return {"faults": suffered, **judged(place, clients)}


def judged(place: str, clients: Clients) -> dict[str, Any]:
    """The row of the table, and what it counts in words."""
    report = verdict(place, clients, 1)
    service = Service(place)
    agent = service.agents.get("default")
    labels = {entry.id: entry.label for entry in agent.history()}
    with agent._runtime.reading() as connection:
        count = select(journal.c.ticket).where(journal.c.kind.in_((events.OBSERVED, "answered")))
        twice = count.group_by(journal.c.ticket, journal.c.kind).having(func.count() > 1)
        doubled = [f"ticket {row.ticket} is in the journal twice" for row in connection.execute(twice)]
    service.close()
    doubled += ["an observation has an id that no one gave it"] * report["unasked_for"]
    answers = [name.removeprefix("answer ") for name in clients.left if name.startswith("answer ")]
    kept = [name for name in clients.left if name in labels] + [
        name for name in answers if labels.get(name) is not None
    ]
    found = {
        "lost": report["lost"],
        "doubled": doubled,
        "kept though refused": kept,
        HUNG: clients.hung,
        "500s": clients.broken,
    }
    return {
        "acknowledged": len(clients.observed) + len(clients.answered),
        **{name: len(found[name]) for name in ZERO},
        "slowest": clients.slowest,
        "statuses": dict(sorted(clients.statuses.items())),
        "words": {name: problems[:5] for name, problems in found.items() if problems},
        "refusals": clients.failures[:5],
    }


@contextmanager
def _place(kind: str) -> Iterator[tuple[str, postgres.Server | None]]:
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(prefix="sparingly-chaos-") as folder:
            yield folder, None
    else:
        with postgres.Server.started() as database, database.database() as url:
            yield url, database


def run(kind: str, hold: float, rounds: int) -> dict[str, Any] | None:
    """One ordeal in a process of its own, since the service is forked from it; None if there is no such database."""
    command = [sys.executable, "-m", "benchmarks.chaos", kind, str(hold), str(rounds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def command(arguments: list[str]) -> int:
    """Run it against each kind of database and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks chaos")
    parser.add_argument("kinds", nargs="*", metavar="sqlite|postgresql")
    parser.add_argument("--hold", type=float, default=45.0, help="seconds for which the database is locked")
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args(arguments)
    rows = []
    for kind in given.kinds or ("sqlite", "postgresql"):
        row = run(kind, given.hold, given.rounds)
        if row is None:
            print(f"{kind} is not installed here")
            continue
        counts = {name: row[name] for name in ("faults", "acknowledged", *ZERO)}
        rows.append({"database": kind, **counts, "slowest, s": round(row["slowest"][0], 1)})
        for name, problems in row["words"].items():
            print("\n".join(f"  {name}: {problem}" for problem in problems))
    keep("service/chaos.csv", rows, whole=not arguments)
    return int(any(row[name] for row in rows for name in ZERO))


def _main(kind: str, hold: str, rounds: str) -> None:
    row = None
    with contextlib.suppress(pytest.skip.Exception), _place(kind) as (place, database):
        row = ordeal(place, database, float(hold), int(rounds))
    print(json.dumps(row))


if __name__ == "__main__":
    _main(*sys.argv[1:])
