"""How well experts and our own model can do together, whenever the truth is bought: `python -m benchmarks expert_line`.

`python -m benchmarks expert_line banking77 0` prints, for one order of a stream with recorded experts, how often our
own model errs and how often it errs after all experts have answered, with n truths bought at random and what everyone
said of 3000 rows or more; and what it would cost to buy the first n, hear everyone on every row and announce for the
rest. The best n, chosen afterwards, is a line that nobody can follow; it shows what is left to be saved by buying other
truths, or at another time. Results are kept in docs/results/experts/line.csv.
"""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path

import numpy as np
import torch

import sparingly as sp
from benchmarks.expert_runs import KEPT, Order, order
from sparingly.strategies.sparing.open_questions import OpenQuestion

FILE = KEPT.with_name("line.csv")
TRUTHS = (60, 150, 300, 600, 1000, 1500, 2000)
HEARD = 3000
"""Rows that experts are heard on before the models are trained, at least."""
SCORED = 3000
"""The last rows, on which mistakes are counted."""
PRICE = 0.01


def trained(stream: Order, truths: int, seed: int) -> sp.Sparing:
    """A strategy that has bought the first truths, whatever it believed, and heard everyone on these rows and more."""
    experts = [sp.Expert(name, PRICE) for name in stream.items[0][2]]
    game = sp.label_efficient(stream.n_classes, experts=[*experts, sp.Expert("human", 1.0, gold=True)])
    strategy = sp.Sparing(game, stream.n_features, seed=seed)
    knowledge, panel, rng = strategy.knowledge, strategy.panel, np.random.default_rng(seed)
    assert panel is not None
    flat = torch.full((stream.n_classes,), 1 / stream.n_classes)
    for t, (row, y, said) in enumerate(stream.items[: max(HEARD, 2 * truths)]):
        x, answers = torch.as_tensor(row), tuple(-1 if one is None else one for one in said.values())
        knowledge.observe(x, rng)
        knowledge.hear(x, answers, rng)
        for one, answer in zip(panel.reliability, answers, strict=True):
            one.calls, one.silent = one.calls + 1, one.silent + (answer < 0)
            if answer >= 0:
                one.leave(one.accuracy)
            if answer >= 0 and t < truths:
                one.check(y, answer, flat, clock=t, random=one.accuracy)
                one.wealth = 1.0  # truths that come all at once are no change
        if t < truths:
            question = OpenQuestion(x, t, 0, math.nan, math.nan, flat, t, answers, True, None)
            knowledge.add(x, y, question, t + 1, rng)
    knowledge.train(max(HEARD, 2 * truths), rng)
    return strategy


def shares(stream: Order, truths: int, seed: int) -> tuple[float, float]:
    """How often the own model errs on the last rows, and how often it does after the answers."""
    strategy, last = trained(stream, truths, seed), stream.items[-SCORED:]
    assert strategy.panel is not None
    X = torch.as_tensor(np.stack([row for row, _, _ in last]))
    y = torch.tensor([one for _, one, _ in last])
    answers = torch.tensor([[-1 if one is None else one for one in said.values()] for _, _, said in last])
    with torch.no_grad():
        own = strategy.knowledge.members(X)
        after = strategy.knowledge.posterior(strategy.panel, X, own, answers)
    wrong = [float((held.mean(0).argmax(1) != y).float().mean()) for held in (own, after)]
    return wrong[0], wrong[1]


def command(words: list[str]) -> int:
    """Streams and orders to measure; the results are printed, and kept."""
    torch.set_num_threads(1)
    for name in [word for word in words if not word.isdecimal()]:
        for seed in [int(word) for word in words if word.isdecimal()]:
            stream = order(name, seed)
            for truths in TRUTHS:
                own, after = shares(stream, truths, seed)
                rest = len(stream.items) - truths
                cost = truths + PRICE * len(stream.items) * len(stream.items[0][2]) + rest * after
                found = {"stream": name, "order": seed, "truths": truths, "own": round(own, 4)}
                _keep({**found, "after": round(after, 4), "cost": round(cost)}, FILE)
    return 0


def _keep(found: dict[str, object], path: Path) -> None:
    print(found, flush=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        rows = csv.DictWriter(file, list(found), lineterminator="\n")
        if new:
            rows.writeheader()
        rows.writerow(found)


if __name__ == "__main__":
    sys.exit(command(sys.argv[1:]))
