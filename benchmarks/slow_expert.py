"""How much longer `observe` takes beside a machine of 2 s a call: p99 at most 1.2 times as long as without.

One agent, in blocks of observations by turns: while its calls come back and the next are made, and while every call is
held up, so that nothing happens beside it. So both are of the same strategy with the same panel and the same model. A
second agent with the same experts, whose machine answers at once, has its blocks in between. What counts is the median
of the ratios of blocks that follow each other: whatever else the computer does holds up both.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import sparingly as sp

CALL_SECONDS, LIMIT = 2.0, 1.2
TURNS, OBSERVATIONS, PAUSE, FEATURES = 8, 600, 0.004, 20
WARM_UP = 100


class SlowMachine:
    """A machine that takes its time, and waits as long as it is held up."""

    def __init__(self) -> None:
        self.flows = threading.Event()
        self.calls = 0
        self._rng = np.random.default_rng(1)

    def __call__(self, content: object) -> str:
        time.sleep(CALL_SECONDS)
        self.flows.wait()
        self.calls += 1
        return "abc"[int(self._rng.integers(3))]


def main(turns: int = TURNS) -> None:
    """Time single observations."""
    rng, machine = np.random.default_rng(0), SlowMachine()
    with tempfile.TemporaryDirectory() as folder:
        slow = _agent(Path(folder) / "slow.db", machine)
        instant = _agent(Path(folder) / "instant.db", lambda content: "abc"[int(rng.integers(3))])
        with slow, instant:
            times = _in_turns(slow, instant, machine, rng, turns)
            machine.flows.set()
    _tell(times, machine.calls)


def _agent(place: Path, function: Callable[[object], str]) -> sp.Agent:
    experts = [sp.FunctionExpert("gpt", function, price=0.01), sp.Expert("human", price=1.0, gold=True)]
    return sp.Agent(["a", "b", "c"], FEATURES, path=place, experts=experts, training="background")


def _in_turns(
    slow: sp.Agent, instant: sp.Agent, machine: SlowMachine, rng: np.random.Generator, turns: int
) -> np.ndarray:
    """Seconds of each observation, `[turn, way, observation]`: beside calls, without, and beside instant ones."""
    times = np.zeros((turns, 3, OBSERVATIONS))
    for turn in range(turns):
        for way in range(3) if turn % 2 else (1, 0, 2):
            if way == 0:
                machine.flows.set()
            else:
                machine.flows.clear()
            time.sleep(CALL_SECONDS if way == 1 else 0.2)  # until every call is held up
            agent = instant if way == 2 else slow
            _block(agent, rng, WARM_UP)
            times[turn, way] = _block(agent, rng, OBSERVATIONS)
    return times


def _block(agent: sp.Agent, rng: np.random.Generator, count: int) -> list[float]:
    found = []
    for x in rng.normal(size=(count, FEATURES)):
        began = time.perf_counter()
        agent.observe(x)
        found.append(time.perf_counter() - began)
        time.sleep(PAUSE)
    return found


def _tell(times: np.ndarray, calls: int) -> None:
    for name, own in zip(("2 s a call", "without", "instant"), 1000 * times.transpose(1, 0, 2), strict=True):
        quantiles = ", ".join(f"p{q} {np.percentile(own, q):.2f}" for q in (50, 90, 99))
        print(f"  {name:<10} ms: {quantiles}")
    beside, without, instant = np.percentile(times, 99, axis=2).T
    ratio = float(np.median(beside / without))
    verdict = "met" if ratio <= LIMIT else "MISSED"
    each = ", ".join(f"{one:.2f}" for one in beside / without)
    print(f"  p99 beside {calls} calls of {CALL_SECONDS:.0f} s over p99 without, by turns: {each}")
    print(f"  the median is {ratio:.2f} (limit {LIMIT}: {verdict})")
    print(f"  over p99 beside instant calls: {np.median(beside / instant):.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
