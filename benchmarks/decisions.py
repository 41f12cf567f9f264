"""Whether a change left every decision as it was: record before it, compare after it.

`python -m benchmarks decisions --out FILE` records; `python -m benchmarks decisions --against FILE` compares with that
file and exits with 1 if anything differs. Recorded are hashes: of every strategy's decisions, reasons and scores on
four short streams, one of them with experts who may be wrong, and of the tickets of agents whose answers come late. It
measures nothing, so `make bench` leaves it out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_digits

import sparingly as sp

SLOW = ("alps", "ineural", "neur_al")
"""Strategies that are played on the first 250 observations only."""
AGENTS = ("sparing", "neural_cbp", "cbp_side")
"""Strategies whose agents are recorded."""


@dataclass(frozen=True)
class Case:
    """A short stream and the game played on it."""

    name: str
    game: sp.Game
    X: np.ndarray
    y: np.ndarray
    answers: Sequence[Mapping[str, int]] = ()
    """What the experts who may be wrong say of each observation, if there are any."""

    def stream(self, n: int) -> Iterator[tuple[Any, ...]]:
        """The first observations as `play` takes them."""
        columns = (self.X, self.y, self.answers) if self.answers else (self.X, self.y)
        return zip(*(column[:n] for column in columns), strict=True)


def cases() -> Iterator[Case]:
    """Digits, a table with two classes and unequal costs, three classes that are made up, and these beside experts."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(5).permutation(len(X))[:500]
    yield Case("digits", sp.label_efficient(10), X[order] / 16, y[order])
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(6).permutation(len(X))[:400]
    costs = [[0, 1], [0.5, 0]]
    yield Case("cancer", sp.label_efficient(costs=costs, query_cost=1.0), ((X - X.mean(0)) / X.std(0))[order], y[order])
    X = np.random.default_rng(7).normal(size=(450, 6))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] + X[:, 2] > 0.5).astype(int)
    yield Case("made", sp.label_efficient(3), X, y)
    experts = [sp.Expert("good", 0.05), sp.Expert("poor", 0.01), sp.Expert("human", 0.5, gold=True)]
    said = {name: _answers(y, accuracy, seed) for seed, (name, accuracy) in enumerate((("good", 0.9), ("poor", 0.6)))}
    answers = [dict(zip(said, row, strict=True)) for row in zip(*said.values(), strict=True)]
    yield Case("experts", sp.label_efficient(3, experts=experts), X, y, answers)


def _answers(y: np.ndarray, accuracy: float, seed: int) -> list[int]:
    """The classes as someone names them who is right so often, and else says anything."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(len(y)) < accuracy, y, rng.integers(y.max() + 1, size=len(y))).tolist()


def of_strategy(name: str, case: Case) -> Any:
    """Hashes of a strategy's decisions, reasons and scores on a stream, and its cost; or that it refuses the game."""
    try:
        strategy = sp.strategies()[name](case.game, n_features=case.X.shape[1], seed=3)
    except ValueError as error:
        return f"refused {type(error).__name__}"
    n = 250 if name in SLOW else len(case.X)
    rounds = list(sp.play(strategy, case.game, case.stream(n)))
    return [
        _hash_json([(one.action, one.prediction, *(one.asked if case.answers else ())) for one in rounds]),
        sum(float(one.cost) for one in rounds),
        _hash_json([str(one.why) for one in rounds]),
        _hash(strategy.scores(case.X[:50]).tobytes()),
    ]


def of_agent(strategy: str) -> Any:
    """Hashes of the tickets and reasons of an agent whose answers come up to twelve observations late."""
    X, y = load_digits(return_X_y=True)
    few = y[:400] < 3
    X, y = X[:400][few] / 16, y[:400][few]
    late: list[tuple[int, str, str]] = []
    tickets = []
    with tempfile.TemporaryDirectory() as folder:
        agent = sp.Agent(classes=list("abc"), n_features=64, path=f"{folder}/agent.db", seed=1, strategy=strategy)
        for t, (x, outcome) in enumerate(zip(X, y, strict=True)):
            ticket = agent.observe(x)
            tickets.append(ticket)
            if ticket.asks:
                late.append((t + (7 * t) % 13, ticket.id, "abc"[outcome]))
            for due in [one for one in late if one[0] <= t]:
                agent.answer(due[1], due[2])
                late.remove(due)
        agent.close()
    decisions = [(ticket.prediction, ticket.asks, ticket.action) for ticket in tickets]
    return [_hash_json(decisions), _hash_json([str(ticket.why) for ticket in tickets])]


def _hash_json(values: Any) -> str:
    return _hash(json.dumps(values).encode())


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def record() -> dict[str, Any]:
    """Everything that is recorded, by `strategy/stream` or `agent/strategy`."""
    found = {f"{name}/{case.name}": of_strategy(name, case) for name in sp.strategies() for case in cases()}
    return found | {f"agent/{strategy}": of_agent(strategy) for strategy in AGENTS}


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """A line for each record that differs, or that only one of the two has."""
    lines = []
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old != new:
            only_words = isinstance(old, list) and isinstance(new, list) and old[0] == new[0]
            lines.append(f"{key}: {'reasons or scores' if only_words else 'decisions'} differ: {old}, now {new}")
    return lines


def command(arguments: list[str]) -> int:
    """Record, compare, or both; 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks decisions", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="the file to write the record to")
    parser.add_argument("--against", type=Path, help="the record to compare with")
    options = parser.parse_args(arguments)
    if options.out is None and options.against is None:
        parser.error("give --out FILE to record, --against FILE to compare, or both")
    torch.set_num_threads(1)
    before = json.loads(options.against.read_text()) if options.against else None
    found = json.loads(json.dumps(record()))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")
    if before is None:
        return 0
    lines = differences(before, found)
    print("\n".join([*lines, f"{len(found)} recorded, {len(lines)} differ"]))
    return bool(lines)
