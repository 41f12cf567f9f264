"""Before there is a model: announcements that are wrong, at full speed and with late answers, inline, beside, and held.

Digits, in orders that nothing was tuned on. At full speed every question is answered at once, 600 observations one
after the other; with late answers each comes after 200 more observations (25 s at 8 a second). Writes full_speed.csv
and late_answers.csv in docs/results/cold_start.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import sparingly as sp
from benchmarks.result_files import Row, keep

ROUNDS, LATE, ORDERS = 600, 200, (101, 102, 103)


def main() -> None:
    """Compare the ways to train, and holding with announcing."""
    ways: dict[str, dict[str, object]] = {
        "inline": {"training": "inline"},
        "in the background": {"training": "background"},
        "in the background, held": {"training": "background", "hold": True},
    }
    print(f"{ROUNDS} observations at full speed, questions answered at once:")
    keep("cold_start/full_speed.csv", [_row(at_full_speed, *one) for one in product(ways.items(), ORDERS)])
    print(f"the first {LATE} observations, answers {LATE} observations late:")
    ways = {"announced": {}, "held": {"hold": True}}
    keep("cold_start/late_answers.csv", [_row(with_late_answers, *one) for one in product(ways.items(), ORDERS)])


def _row(measure: Callable[..., tuple[int, int, int]], way: tuple[str, dict[str, object]], order: int) -> Row:
    asked, wrong, announced = measure(order, **way[1])
    return {"training": way[0], "order": order, "announced": announced, "wrong of these": wrong, "asked": asked}


def at_full_speed(order: int, **options: object) -> tuple[int, int, int]:
    """Questions, announcements that are wrong, and announcements."""
    X, y = _digits(order)
    with tempfile.TemporaryDirectory() as folder, _agent(folder, **options) as agent:
        for i, x in enumerate(X):
            ticket = agent.observe(x, id=f"n{i}")
            if ticket.asks:
                agent.answer(ticket.id, int(y[i]))
        return _counted(agent, y)


def with_late_answers(order: int, **options: object) -> tuple[int, int, int]:
    """The same of the first observations only, whose answers all come after the last of them."""
    X, y = _digits(order)
    with tempfile.TemporaryDirectory() as folder, _agent(folder, **options) as agent:
        tickets = [agent.observe(x, id=f"n{i}") for i, x in enumerate(X[:LATE])]
        for ticket, label in zip(tickets, y, strict=False):
            if ticket.asks:
                agent.answer(ticket.id, int(label))
        return _counted(agent, y)


def _counted(agent: sp.Agent, y: np.ndarray) -> tuple[int, int, int]:
    deadline = time.monotonic() + 60
    while agent.stats().held and time.monotonic() < deadline:
        time.sleep(0.1)
        agent.announce_held()
    entries = agent.history()
    said = [(entry.prediction, int(y[i])) for i, entry in enumerate(entries) if entry.status == "announced"]
    return sum(entry.asks for entry in entries), sum(told != true for told, true in said), len(said)


def _agent(folder: str, **options: object) -> sp.Agent:
    return sp.Agent(list(range(10)), 64, query_cost=0.5, path=Path(folder) / "agent.db", **options)  # type: ignore[arg-type]


def _digits(order: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    shuffled = np.random.default_rng(order).permutation(len(X))[:ROUNDS]
    return X[shuffled].astype(np.float32), y[shuffled]


if __name__ == "__main__":
    main()
