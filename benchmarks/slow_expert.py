"""How much longer `observe` takes while a machine is called that takes 2 s a call: p99 at most 1.2 times as long.

Two agents in turns, one call each, with the same experts and the same stream: one calls its machine, the other one's
calls wait. Whatever else the machine does meanwhile holds up both.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import sparingly as sp

CALL_SECONDS, LIMIT = 2.0, 1.2
OBSERVATIONS, PAUSE, FEATURES = 1200, 0.004, 20


def main(observations: int = OBSERVATIONS) -> None:
    """Time single observations."""
    rng = np.random.default_rng(0)
    called: list[float] = []

    def slow(content: object) -> str:
        time.sleep(CALL_SECONDS)
        called.append(time.monotonic())
        return "abc"[int(rng.integers(3))]

    with tempfile.TemporaryDirectory() as folder:
        gpt = sp.FunctionExpert("gpt", slow, price=0.01)
        experts = [gpt, sp.Expert("human", price=1.0, gold=True)]
        places = [Path(folder) / name for name in ("calling.db", "waiting.db")]
        for place in places:
            sp.Agent(["a", "b", "c"], FEATURES, path=place, experts=experts, training="background").close()
        with sp.Agent.open(places[0], experts=[gpt]) as calling, sp.Agent.open(places[1]) as waiting:
            times = _alternate([calling, waiting], rng, observations)
    _tell(times, len(called))


def _alternate(agents: list[sp.Agent], rng: np.random.Generator, observations: int) -> np.ndarray:
    """Seconds of each call, `[agent, call]`."""
    times = np.zeros((len(agents), observations))
    for i in range(observations):
        x = rng.normal(size=FEATURES)
        for a in range(len(agents)) if i % 2 else reversed(range(len(agents))):
            began = time.perf_counter()
            agents[a].observe(x)
            times[a, i] = time.perf_counter() - began
        time.sleep(PAUSE)
    return times[:, observations // 5 :]


def _tell(times: np.ndarray, calls: int) -> None:
    for name, own in zip(("with calls", "without"), 1000 * times, strict=True):
        quantiles = ", ".join(f"p{q} {np.percentile(own, q):.2f}" for q in (50, 90, 99))
        print(f"  {name:<10} ms: {quantiles}")
    ratio = float(np.divide(*np.percentile(times, 99, axis=1)))
    verdict = "met" if ratio <= LIMIT else "MISSED"
    print(
        f"  {calls} calls of {CALL_SECONDS:.0f} s meanwhile; p99 {ratio:.2f} times as long (limit {LIMIT}: {verdict})"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
