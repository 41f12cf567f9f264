"""The service under load: durable observations a second over HTTP, singly and in calls of 100, and their times.

Then what it takes while it is idle, with one agent and with twenty, and how long it takes to stop. Writes load.csv and
idle.csv in docs/results/service.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.result_files import Row, keep
from sparingly.live.service.service import Service

CLIENTS, SECONDS, WARM, FEATURES = 16, 6.0, 1.0, 20
ANSWERS = 50
"""Answers a second while an agent trains: as many as a roomful of people give."""
SINGLE_LIMIT, BLOCK_LIMIT, BLOCK_LIMIT_TRAINING, P99_LIMIT = 600.0, 6000.0, 5000.0, 5.0
MANY, MEGABYTES_LIMIT, IDLE_LIMIT, STOP_LIMIT = 20, 1200.0, 0.05, 5.0


def main() -> None:
    """Measure at rest, while an agent trains, and idle."""
    with _served(["rest", "training"]) as (process, port, token):
        keep("service/load.csv", asyncio.run(_measure(port, token, process.pid)))
    rows = []
    for count in (1, MANY):
        with _served([f"agent{i}" for i in range(count)]) as (process, port, token):
            row = asyncio.run(_idle(port, token, process.pid, count))
            began = time.perf_counter()
            process.terminate()
            process.wait(60)
            seconds = time.perf_counter() - began
            print(f"  stopping took {seconds:.1f} s (limit {STOP_LIMIT:.0f}: {_verdict(seconds <= STOP_LIMIT)})")
            rows.append({**row, "stopping, s": round(seconds, 2)})
    keep("service/idle.csv", rows)


@contextmanager
def _served(names: Sequence[str]) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    """A service with agents of these names, its port and a token."""
    with tempfile.TemporaryDirectory(prefix="sparingly-bench-") as folder:
        service = Service(folder)
        for name in names:
            service.agents.create(name, classes=["a", "b", "c"], n_features=FEATURES, query_cost=0.5)
        token = service.tokens.create("bench", "admin")[1]
        service.close()
        process = _start(folder, names[0])
        try:
            yield process, _port(process), token
        finally:
            process.terminate()
            process.wait(30)


async def _idle(port: int, token: str, service: int, count: int) -> Row:
    """Let each agent see and learn something; then measure what they all take while nothing happens."""
    talk = await _Talk.open(port, token)
    for i in range(count):
        await talk.post(
            f"/api/agents/agent{i}/observations/batch", json.dumps(_hundred(np.random.default_rng(i))).encode()
        )
        reply = await talk.post(f"/api/agents/agent{i}/questions?limit=30", b"")
        for question in reply["questions"]:
            body = {"ticket": question["id"], "label": "abc"[int(np.argmax(question["features"][:3]))]}
            await talk.post(f"/api/agents/agent{i}/answer", json.dumps(body).encode())
    await _settle(service)
    before = _processor_seconds(service) + _busy_seconds(service)
    await asyncio.sleep(10.0)
    share = (_processor_seconds(service) + _busy_seconds(service) - before) / 10.0
    processes = [service, *_children(service)]
    megabytes = sum(map(_megabytes, processes))
    memory = f"{megabytes:.0f} MB (limit {MEGABYTES_LIMIT:.0f}: {_verdict(megabytes <= MEGABYTES_LIMIT)})"
    cores = f"{share:.1%} of a core (limit {IDLE_LIMIT:.0%}: {_verdict(share <= IDLE_LIMIT)})"
    print(f"idle agents: {count}, in {len(processes)} processes: {memory} and {cores}")
    return {"idle agents": count, "memory, MB": round(megabytes), "% of a core": round(100 * share, 2)}


async def _settle(service: int) -> None:
    """Wait until the trainers have nothing more to learn."""
    for _ in range(120):
        before = _busy_seconds(service)
        await asyncio.sleep(1.0)
        if _children(service) and _busy_seconds(service) - before <= 0.02:
            return
    raise RuntimeError("the trainers did not come to rest within two minutes")


async def _measure(port: int, token: str, service: int) -> list[Row]:
    rows = []
    for agent in ("rest", "training"):
        answering = asyncio.create_task(_answer(port, token, agent)) if agent == "training" else None
        if answering is not None:
            await asyncio.sleep(3.0)
        when = "at rest" if answering is None else "while people answer and the agent trains"
        block_limit = BLOCK_LIMIT if answering is None else BLOCK_LIMIT_TRAINING
        for what, path, body, count, limit in (
            ("single", "observations", _one, 1, SINGLE_LIMIT),
            ("in calls of 100", "observations/batch", _hundred, 100, block_limit),
        ):
            await _load(port, token, f"/api/agents/{agent}/{path}", body, WARM)
            before, others = _processor_seconds(service), _busy_seconds(service)
            seconds, times = await _load(port, token, f"/api/agents/{agent}/{path}", body, SECONDS)
            spent = _processor_seconds(service) - before
            others = (_busy_seconds(service) - others) / seconds
            rows.append(_told(f"{what}, {when}", count, seconds, times, spent, others, limit))
        if answering is not None:
            answering.cancel()
    return rows


def _told(what: str, count: int, seconds: float, times: list[float], spent: float, others: float, limit: float) -> Row:
    """Print what was measured beside its limits; the row of the table."""
    rate = count * len(times) / seconds
    p50, p99 = np.percentile(times, [50, 99]) * 1000
    print(
        f"{what}: {rate:.0f}/s (limit {limit:.0f}: {_verdict(rate >= limit)}), p50 {p50:.1f} ms, p99 {p99:.1f} ms, "
        f"{p99 / p50:.1f} times that (limit {P99_LIMIT:.0f}: {_verdict(p99 <= P99_LIMIT * p50)})"
    )
    each = 1000 * spent / (count * len(times))
    print(
        f"  the service used {each:.3f} ms of a processor an observation, {spent / seconds:.2f} processors in all; "
        f"its trainers {others:.2f}; the machine's load was {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    )
    row: Row = {"observations": what, "a second": round(rate), "p50, ms": round(p50, 1), "p99, ms": round(p99, 1)}
    return {**row, "of a processor for each, ms": round(each, 3)}


def _processor_seconds(process: int) -> float:
    """What a process has used so far, whatever else the machine is busy with."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _busy_seconds(process: int) -> float:
    """What the processes that it has started have used."""
    return sum(map(_processor_seconds, _children(process)))


def _children(process: int) -> list[int]:
    threads = Path(f"/proc/{process}/task").iterdir()
    return [int(child) for one in threads for child in (one / "children").read_text().split()]


def _megabytes(process: int) -> float:
    """The resident size of a process."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _verdict(holds: bool) -> str:
    return "ok" if holds else "MISSED"


async def _load(
    port: int, token: str, path: str, body: Callable[[np.random.Generator], object], lasts: float
) -> tuple[float, list[float]]:
    """The seconds it lasted and those each call took, from clients that each wait for the reply."""
    times: list[float] = []
    bodies = [json.dumps(body(np.random.default_rng(i))).encode() for i in range(CLIENTS)]
    end = time.perf_counter() + lasts

    async def client(content: bytes) -> None:
        talk = await _Talk.open(port, token)
        while time.perf_counter() < end:
            began = time.perf_counter()
            await talk.send(path, content)
            times.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(client(content) for content in bodies))
    return time.perf_counter() - began, times


async def _answer(port: int, token: str, agent: str) -> None:
    """People who answer, many in a second, so that there is always something to learn."""
    talk = await _Talk.open(port, token)
    rng = np.random.default_rng(1)
    await talk.post(f"/api/agents/{agent}/observations/batch", json.dumps(_hundred(rng)).encode())
    began, answers = time.perf_counter(), 0
    while True:
        reply = await talk.post(f"/api/agents/{agent}/questions?limit=20", b"")
        for question in reply["questions"]:
            label = "abc"[int(np.argmax(question["features"][:3]))]
            body = {"ticket": question["id"], "label": label}
            await talk.post(f"/api/agents/{agent}/answer", json.dumps(body).encode())
            answers += 1
            await asyncio.sleep(max(0.0, began + answers / ANSWERS - time.perf_counter()))
        await asyncio.sleep(0.01)


class _Talk:
    """One kept connection, with as little of its own work as possible: the machine is the service's."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
        self._reader, self._writer, self._token = reader, writer, token

    @classmethod
    async def open(cls, port: int, token: str) -> _Talk:
        return cls(*await asyncio.open_connection("127.0.0.1", port), token)

    async def post(self, path: str, content: bytes) -> dict[str, list[dict[str, list[float]]]]:
        """Send a call, and read what the reply says."""
        return json.loads(await self.send(path, content))  # type: ignore[no-any-return]

    async def send(self, path: str, content: bytes) -> bytes:
        """Send a call, and wait for the whole reply; it must be 200."""
        head = (
            f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {self._token}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
        )
        self._writer.write(head.encode() + content)
        reply_head = await self._reader.readuntil(b"\r\n\r\n")
        length = reply_head.lower().partition(b"\r\ncontent-length: ")[2].partition(b"\r\n")[0]
        reply = await self._reader.readexactly(int(length))
        if not reply_head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"{path}: {reply[:200]!r}")
        return reply


def _observation(rng: np.random.Generator) -> dict[str, list[float]]:
    return {"features": rng.normal(size=FEATURES).round(4).tolist()}


def _one(rng: np.random.Generator) -> object:
    return _observation(rng)


def _hundred(rng: np.random.Generator) -> object:
    return {"observations": [_observation(rng) for _ in range(100)]}


def _start(folder: str, name: str) -> subprocess.Popen[str]:
    command = "from sparingly.commands.main import main; main()"
    arguments = ["serve", "--store", folder, "--port", "0", "--name", name, "--rate", "1000000"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", command, *arguments], stdout=subprocess.PIPE, text=True, env=environment, cwd=Path.cwd()
    )


def _port(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline().rsplit(":", 1)[1])


if __name__ == "__main__":
    main()
