"""An agent's working life that is killed with SIGKILL at random moments, and one that is not.

Run as a program: it loads everything once and forks a child for each life, so that a hundred lives are cheap. It prints
what it saw as JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from typing import Any

import numpy as np

import sparingly as sp
import sparingly.live.training.decider

CLASSES = ["cat", "dog", "bird"]
LATE, CORRECTED_AFTER = 3, 6


def features(i: int) -> np.ndarray:
    return np.random.default_rng(i).normal(size=4)


def truth(i: int) -> str:
    return CLASSES[int(np.argmax(features(i)[:3]))]


def first_answer(i: int) -> str:
    """Every eleventh answer is wrong at first."""
    return truth(i) if i % 11 else CLASSES[(CLASSES.index(truth(i)) + 1) % 3]


def agent_at(path: str, options: dict[str, Any]) -> sp.Agent:
    return sp.Agent(classes=CLASSES, n_features=4, path=path, seed=3, keep=150, **options)


def step(agent: sp.Agent, i: int) -> list[str]:
    """One observation and the answers that are due after it; the same again changes nothing."""
    done = [f"observed o{i}"]
    if i % 7 == 3:
        known = [10_000 + i, 20_000 + i]
        agent.teach([features(k) for k in known], [truth(k) for k in known], ids=known)
        done.append(f"taught {2 * (i // 7 + (i % 7 >= 3))}")
    agent.observe(features(i), id=f"o{i}")
    for late, label in ((LATE, first_answer), (CORRECTED_AFTER, truth)):
        k = i - late
        if k >= 0 and (late == LATE or k % 11 == 0) and agent.observe(features(k), id=f"o{k}").asks:
            agent.answer(f"o{k}", label(k))
            done.append(f"{label(k)} o{k}")
    return done


def live(path: str, options: dict[str, Any], start: int, steps: int, acknowledge: int) -> None:
    agent = agent_at(path, options)
    for i in range(start, steps):
        for done in step(agent, i):
            os.write(acknowledge, f"{done}\n".encode())
        os.write(acknowledge, f"step {i}\n".encode())


def one_life(path: str, options: dict[str, Any], start: int, steps: int, rng: random.Random | None) -> list[str]:
    """What a child acknowledged before it was killed: a random moment after a random number of acknowledgements."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            live(path, options, start, steps, writer)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = [pipe.readline().strip() for _ in range(rng.randrange(12) if rng is not None else 0)]
        if rng is not None:
            time.sleep(rng.expovariate(1 / 0.01))
            os.kill(child, signal.SIGKILL)
        said += pipe.read().splitlines()
    os.waitpid(child, 0)
    return said


def decisions(path: str) -> list[list[Any]]:
    with sp.Agent.open(path) as agent:
        return [[e.id, e.prediction, e.asks, e.action, e.label, e.status, e.why] for e in agent.history()]


def taught(path: str) -> int:
    with sp.Agent.open(path) as agent:
        return int(agent.stats().taught)


def check(acknowledged: list[str], found: list[list[Any]]) -> list[str]:
    """What was acknowledged and is not there."""
    there = {row[0]: row for row in found}
    lost = [f"{a}: twice" for a in there if [row[0] for row in found].count(a) > 1]
    last: dict[str, str] = {}
    for line in acknowledged:
        word, name = line.split()
        if word == "observed" and name not in there:
            lost.append(line)
        elif word not in ("observed", "step", "taught"):
            last[name] = word
    return lost + [f"{label} {name}" for name, label in last.items() if there.get(name, [None] * 7)[4] != label]


def main(kills: int, options: dict[str, Any], place: str) -> None:
    killed, whole, warm = (place.format(name=name) for name in ("killed", "whole", "warm"))
    sparingly.live.training.decider.SNAPSHOT_EVENTS = 20
    live(warm, options, 0, 20, os.open(os.devnull, os.O_WRONLY))
    rng = random.Random(7)
    acknowledged: list[str] = []
    lost: list[str] = []
    steps_done = 0
    for _ in range(kills):
        said = one_life(killed, options, steps_done, 10**9, rng)
        acknowledged += said
        steps_done = max([steps_done, *(int(line.split()[1]) + 1 for line in said if line.startswith("step"))])
    acknowledged += one_life(killed, options, steps_done, steps_done + 5, None)
    one_life(whole, options, 0, steps_done + 5, None)
    found, expected = decisions(killed), decisions(whole)
    lost += check(acknowledged, found)
    report = {
        "steps": steps_done,
        "acknowledged": len(acknowledged),
        "lost": lost,
        "taught": [taught(killed), max(int(line.split()[1]) for line in acknowledged if line.startswith("taught"))],
        "same": found == expected,
        "answers": sum(row[4] is not None for row in found),
        "first_difference": next(([a, b] for a, b in zip(found, expected, strict=False) if a != b), None),
    }
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main(int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3])
