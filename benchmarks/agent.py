"""The live agent: durable observations a second, the wait for a ticket while it trains, memory and opening at length.

`python -m benchmarks.agent rate wait length counting` runs only the parts that are named.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch

import sparingly as sp
from sparingly.live.training.trainer_pool import shared_pool

FEATURES = 20
SETTINGS: dict[str, Any] = {"classes": ["cat", "dog", "bird"], "n_features": FEATURES}


def main() -> None:
    """Every part in turn."""
    torch.set_num_threads(1)
    for part in (rate, wait, length, counting):
        part()


def rate() -> None:
    """Observations a second, each on disk before it is acknowledged; flushes of the disk are timed in between."""
    with tempfile.TemporaryDirectory() as folder:
        made: dict[str, Any] = {"path": f"{folder}/agent.db", "training": "background", **SETTINGS}
        with sp.Agent(**made) as agent, Path(f"{folder}/flushed").open("wb") as file:
            _serve(agent, 1000)
            flushes, single = [], []
            for x in _stream(500, seed=1):
                flushes.append(_timed(lambda: _flush(file)))
                single.append(_timed(lambda x=x: agent.observe(x)))
            flush, one = float(np.median(flushes)), float(np.median(single))
            print(f"one flush of this disk takes {1000 * flush:.2f} ms, one durable observation {1000 * one:.2f} ms:")
            print(f"  {one / flush:.1f} times a flush (to show: at most 3), {1 / one:.0f} /s one by one")
            X = _stream(6000, seed=2)
            print(f"in calls of 100: {len(X) / sum(_in_calls(agent, X)):.0f} /s durable")


def wait() -> None:
    """The wait for a ticket at rest and while a training goes on aside."""
    waits: dict[str, list[float]] = {}
    for name, options in (
        ("at rest", {"schedule": "every 1000000"}),
        ("during training", {"schedule": "every 25", "epochs": 300, "stop": None}),
    ):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/agent.db"
            made: dict[str, Any] = {"strategy": "neural_cbp", "options": options, "training": "background", **SETTINGS}
            with sp.Agent(path=path, **made) as agent:
                _serve(agent, 300)
                busy = _trainer_seconds()
                began = time.perf_counter()
                waits[name] = [_timed(lambda x=x: agent.observe(x)) for x in _stream(1500, seed=2)]
                share = (_trainer_seconds() - busy) / (time.perf_counter() - began)
        p50, p99 = np.quantile(waits[name], [0.5, 0.99])
        print(f"observe {name:16s} p50 {1000 * p50:6.2f} ms  p99 {1000 * p99:6.2f} ms  (trainer {share:.0%} of a core)")
    ratio = np.quantile(waits["during training"], 0.99) / np.quantile(waits["at rest"], 0.99)
    print(f"p99 during training is {ratio:.2f} times that at rest (to show: at most 3)")


def length(observations: int = 200_000) -> None:
    """Memory over a long life, and the time to open at its end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.db"
        sizes: list[tuple[int, float]] = []
        with sp.Agent(path=path, **SETTINGS) as agent:
            for start in range(0, observations, 10_000):
                _in_calls(agent, _stream(10_000, seed=start))
                sizes.append((start + 10_000, _memory()))
            labels = agent.stats().answered
        after = [size for at, size in sizes if at >= 20_000]
        print(f"memory at 20000 observations {after[0]:.0f} MB, at {observations} {after[-1]:.0f} MB ({labels} labels)")
        print(f"largest change in between {max(after) - min(after):.0f} MB; file {path.stat().st_size / 1e6:.0f} MB")
        seconds = _timed(lambda: sp.Agent.open(path).close())
        print(f"opening after {observations} observations takes {seconds:.2f} s")


def counting(observations: int = 200_000) -> None:
    """How long the statistics of a long life take, at first and when little has happened since."""
    with tempfile.TemporaryDirectory() as folder:
        made: dict[str, Any] = {"strategy": "random", "options": {"p": 0.05}, **SETTINGS}
        with sp.Agent(path=f"{folder}/agent.db", **made) as agent:
            for start in range(0, observations, 1000):
                agent.observe_many(_stream(1000, seed=start))
            for when in ("at first", "after 100 more, and answers to 50 old questions"):
                seconds = [_processor(agent.stats), _processor(lambda: agent.over_time(60))]
                counted, drawn = (f"{1000 * one:.0f} ms" for one in seconds)
                print(f"statistics of {observations} observations {when}: {counted}, over time {drawn} of a processor")
                agent.observe_many(_stream(100, seed=observations))
                pending = agent.pending()
                for ticket in pending[:: max(1, len(pending) // 50)][:50]:
                    agent.answer(ticket.id, "cat")


def _processor(call: Callable[[], Any]) -> float:
    """The processor time of a call, whatever else the machine is busy with."""
    began = time.process_time()
    call()
    return time.process_time() - began


def _stream(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, FEATURES)).astype(np.float32)


def _label(x: np.ndarray) -> str:
    return ["cat", "dog", "bird"][int(np.argmax(x[:3]))]


def _serve(agent: sp.Agent, n: int) -> None:
    _in_calls(agent, _stream(n))


def _in_calls(agent: sp.Agent, X: np.ndarray, *, size: int = 100) -> list[float]:
    """Observe in calls of one size, and answer what is asked after each; the seconds that the observing took."""
    seconds = []
    for start in range(0, len(X), size):
        block = X[start : start + size]
        began = time.perf_counter()
        tickets = agent.observe_many(block)
        seconds.append(time.perf_counter() - began)
        for x, ticket in zip(block, tickets, strict=True):
            if ticket.asks:
                agent.answer(ticket.id, _label(x))
    return seconds


def _timed(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _flush(file: IO[bytes]) -> None:
    file.write(b"x" * 4096)
    file.flush()
    os.fsync(file.fileno())


def _trainer_seconds() -> float:
    """The processor time that the trainer has taken."""
    while not (processes := shared_pool().processes()):
        time.sleep(0.01)
    fields = Path(f"/proc/{processes[0]}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory() -> float:
    """The resident size of this process in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


if __name__ == "__main__":
    torch.set_num_threads(1)
    for named in sys.argv[1:] or ["rate", "wait", "length", "counting"]:
        {"rate": rate, "wait": wait, "length": length, "counting": counting}[named]()
