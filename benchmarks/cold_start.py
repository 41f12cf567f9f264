"""Before there is a model: announcements that are wrong, at full speed and with late answers, inline, beside, and held.

Digits, in orders that nothing was tuned on. At full speed every question is answered at once, 600 observations one
after the other; with late answers each comes after 200 more observations (25 s at 8 a second).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import sparingly as sp

ROUNDS, LATE, ORDERS = 600, 200, (101, 102, 103)


def main() -> None:
    """Compare the ways to train, and holding with announcing."""
    ways = {
        "inline": {"training": "inline"},
        "background": {"training": "background"},
        "background, held": {"training": "background", "hold": True},
    }
    print(f"  {ROUNDS} observations at full speed, questions answered at once:")
    for name, options in ways.items():
        print(f"    {name:<17} {_described([at_full_speed(order, **options) for order in ORDERS])}")
    print(f"  the first {LATE} observations, answers {LATE} observations late:")
    for name, options in {"announced": {}, "held": {"hold": True}}.items():
        print(f"    {name:<17} {_described([with_late_answers(order, **options) for order in ORDERS])}")


def at_full_speed(order: int, **options: object) -> tuple[int, int, int, float]:
    """Questions, announcements that are wrong, announcements, and the longest that a call took."""
    X, y = _digits(order)
    longest = 0.0
    with tempfile.TemporaryDirectory() as folder, _agent(folder, **options) as agent:
        for i, x in enumerate(X):
            began = time.perf_counter()
            ticket = agent.observe(x, id=f"n{i}")
            longest = max(longest, time.perf_counter() - began)
            if ticket.asks:
                agent.answer(ticket.id, int(y[i]))
        return (*_counted(agent, y), longest)


def with_late_answers(order: int, **options: object) -> tuple[int, int, int, float]:
    """The same of the first observations only, whose answers all come after the last of them."""
    X, y = _digits(order)
    with tempfile.TemporaryDirectory() as folder, _agent(folder, **options) as agent:
        tickets = [agent.observe(x, id=f"n{i}") for i, x in enumerate(X[:LATE])]
        for ticket, label in zip(tickets, y, strict=False):
            if ticket.asks:
                agent.answer(ticket.id, int(label))
        return (*_counted(agent, y), 0.0)


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


def _described(found: Sequence[tuple[int, int, int, float]]) -> str:
    cells = [f"{wrong:3d} wrong of {said:3d} said, {asked:3d} asked" for asked, wrong, said, _ in found]
    return "; ".join(cells) + f"; longest call {1000 * max(one[3] for one in found):.0f} ms"


if __name__ == "__main__":
    main()
