"""INeural: whether its training is at its limit, and which of its forms stands behind the paper's tables.

`python -m benchmarks.ineural [--rounds N] [--seeds N] [--first-seed N] [--gamma G] [--data NAME] [--form NAME ...]
[--silent]` plays the first rounds of a stream in the preset's form, with what older public versions of the released
code have instead (`FORMS`), and on the same data in another form; one line a run in docs/results/ineural.csv, its F1 by
labels in ineural_f1.csv, and only what is missing there; `--silent` plays only those that asked nothing in rounds 200
to 400, to the end if there are rounds enough.
`python -m benchmarks ineural` is about the time:

f2's input is the gradient of f1 with respect to the K blocks of its input, K d numbers, beside x in one block. That
gradient is W1' (mask * w2), of rank at most the width h for rows that saw the same W1; but f2's weights V change with
every step, so using the rank costs, for each W1 in a batch, a product W1 V' and one that takes V's gradient back to K d
columns, 4 h h K d operations, where the rows themselves cost 4 b h K d, and a batch has b = 64 rows while h = 100. So
the least is two products of the batch with V's shape (outputs, and V's gradient; none flows back to the input), two
small ones for x's own block, and Adam on all weights, which moves even where a gradient is zero. This measures the
training step against just that.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

import sparingly as sp
from sparingly.experiments.dataset import Dataset
from sparingly.experiments.datasets import load
from sparingly.experiments.openml import COVERTYPE_RANGES
from sparingly.experiments.runs.many_runs import begun_within
from sparingly.experiments.runs.paper_studies import TABLES_OF_NUMBERS
from sparingly.experiments.runs.single_run import HeldOutScores
from sparingly.experiments.streams import stream
from sparingly.learning.block_networks import BlockNet
from sparingly.learning.training import Adam, Training
from sparingly.strategies.published.selective_sampling.ineural import INeural

RUNS = Path("docs/results/ineural.csv")
SCORES = Path("docs/results/ineural_f1.csv")
SCORED_ROWS = 2000
"""Of the held-out set."""
COLUMNS = ["data", "gamma", "rounds", "seed", "form", "regret", "asked", "asked_by_100", "asked_200_to_400", "distinct"]
AT_ONCE = "at once"
FORMS: dict[str, dict[str, Any]] = {
    "released": {},
    "f2 divided": {"discount": True},
    "updates at once": {"wait": AT_ONCE},
    "both": {"discount": True, "wait": AT_ONCE},
    "10 epochs": {"epochs": 10},
    "residual of both": {"residual": "both"},
    "announced class": {"learns": "announced"},
    "every answer": {"schedule": "answers"},
    "rate 1e-4": {"learning_rate": 1e-4},
    "all epochs": {"stop": None},
    "earlier start": {"start": "each", "schedule": "paper"},
    "stop by columns": {},
    "networks anew": {},
    "new labels only": {},
    "the authors' weights": {},
    "classes sorted": {},
    "numbers unscaled": {},
    "indicators once": {},
}
"""The preset's form, and what older public versions do: they divide f2 by the round, learn from round 1 on, make fewer
epochs, and teach f2 what both networks lack. Then what the strategy's own authors' code does, which teaches the
announced class alone, after every answer, with a tenth of the rate; no early stop; the start that the preset had
before; and what has no option, but a function in `CHANGES` or `DATA`, or is another order of the classes."""
WIDTH, BATCH = 100, 64
SHAPES = {"MNIST": (10, 784), "covertype": (7, 98), "Magic": (2, 10)}
"""Classes and features."""


def stop_by_columns(strategy: INeural) -> None:
    """Divide the sum of an epoch's batch objectives by the input's length, as the released NeuralCBP does."""
    network = strategy.network
    length = len(network.f1.blocks) * network.n_features

    def train(rng: np.random.Generator) -> None:
        network.training.fit(network.f1, network.memory["x"], network.memory["target"], rng, divisor=length)
        network.training.fit(network.f2, network.memory["both"], network.memory["residual"], rng, divisor=2 * length)
        network._products = None

    network.train = train  # type: ignore[method-assign]


def networks_anew(strategy: INeural) -> None:
    """Begin each update from the initial weights, as an older public version of Margin does."""
    network, train = strategy.network, strategy.network.train
    first = [{name: value.clone() for name, value in net.state_dict().items()} for net in (network.f1, network.f2)]

    def train_anew(rng: np.random.Generator) -> None:
        network.f1.load_state_dict(first[0])
        network.f2.load_state_dict(first[1])
        train(rng)

    network.train = train_anew  # type: ignore[method-assign]


def new_labels_only(strategy: INeural) -> None:
    """Update on the schedule only if a label came since: public versions that learn after each answer do so, too."""
    network, train, learned = strategy.network, strategy.network.train, [0]

    def train_on_new(rng: np.random.Generator) -> None:
        if len(network.memory) > learned[0]:
            learned[0] = len(network.memory)
            train(rng)

    network.train = train_on_new  # type: ignore[method-assign]


def authors_weights(strategy: INeural) -> None:
    """The initial weights of the released code's runs 0 to 24."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(strategy.seed % 25)
        draw_weights(strategy)


def draw_weights(strategy: INeural) -> None:
    """Weights in the released code's order, from the global generator: whole first layers, f1's and then f2's."""
    network = strategy.network
    blocks, size = len(network.f1.blocks), network.n_features
    with torch.no_grad():
        for net, dense in ((network.f1, 0), (network.f2, blocks * size)):
            first, head = nn.Linear(dense + blocks * size, WIDTH), nn.Linear(WIDTH, 1)
            parts = torch.split(first.weight, [dense, *[size] * blocks], 1)
            for here, part in zip(net.side_by_side, parts, strict=True):
                here.copy_(part)
            net.bias.copy_(first.bias)
            net.head.load_state_dict(head.state_dict())


CHANGES: dict[str, Callable[[INeural], None]] = {
    "stop by columns": stop_by_columns,
    "networks anew": networks_anew,
    "new labels only": new_labels_only,
    "the authors' weights": authors_weights,
}
"""Forms that no option has, made of a new strategy."""


def numbers_unscaled(data: Dataset) -> Dataset:
    """Covertype with its ten numbers as they were measured: in a row of length 1 little is left of the indicators."""
    doubled = np.stack([1 - data.raw[:, 10:], data.raw[:, 10:]], axis=2).reshape(len(data), -1)
    return replace(data, name="covertype, unscaled", raw=np.concatenate([data.raw[:, :10], doubled], axis=1))


def indicators_once(data: Dataset) -> Dataset:
    """Covertype with a column for each of its 44 indicators instead of two."""
    low, high = np.array(COVERTYPE_RANGES, dtype=np.float64).T
    scaled = (data.raw[:, :10] - low) / (high - low)
    return replace(data, name="covertype, indicators once", raw=np.concatenate([scaled, data.raw[:, 10:]], axis=1))


DATA: dict[str, Callable[[Dataset], Dataset]] = {
    "numbers unscaled": numbers_unscaled,
    "indicators once": indicators_once,
}
"""Other forms of the data; the preset's form plays them."""


def operations(n_classes: int, n_features: int) -> dict[str, float]:
    """Millions of operations of one step: by the rows, and by the gradient's rank if all rows had seen one W1."""
    dense, own = n_classes * n_features * WIDTH, n_features * WIDTH
    rows = 4 * BATCH * (dense + own)
    return {"rows": rows / 1e6, "rank": (4 * WIDTH * dense + 4 * BATCH * own) / 1e6}


def step_seconds(n_classes: int, n_features: int, rows: int = 1024, epochs: int = 3) -> float:
    """Processor time of one step of f2's training as INeural does it."""
    generator = torch.Generator().manual_seed(0)
    net = BlockNet(n_classes, n_features, WIDTH, n_classes * n_features)
    values = torch.randn(rows, (n_classes + 1) * n_features, generator=generator) / 30
    blocks = torch.randint(n_classes, (rows, 1), generator=generator).float()
    inputs, targets = torch.cat([values, blocks], 1), torch.randn(rows, 1, generator=generator)
    training = Training(epochs=epochs, objective="mean_squared")
    began = time.process_time()
    training.fit(net, inputs, targets, np.random.default_rng(0))
    return (time.process_time() - began) / (epochs * rows / BATCH)


def least_seconds(n_classes: int, n_features: int, steps: int = 48) -> float:
    """Processor time of the products and of Adam alone, on the same shapes."""
    dense, own = torch.randn(BATCH, n_classes * n_features), torch.randn(BATCH, n_features)
    hidden, V = torch.randn(BATCH, WIDTH), torch.randn(WIDTH, n_classes * n_features)
    W = torch.randn(WIDTH, n_features)
    weights = torch.randn(V.numel() + n_classes * W.numel() + 2 * WIDTH + 1)
    adam, gradient = Adam([weights]), torch.randn_like(weights)
    slope, own_slope = torch.empty_like(V), torch.empty_like(W)
    began = time.process_time()
    for _ in range(steps):
        dense @ V.T
        own @ W.T
        torch.mm(hidden.T, dense, out=slope)
        torch.mm(hidden.T, own, out=own_slope)
        adam.step([gradient])
    return (time.process_time() - began) / steps


def play_missing(chosen: argparse.Namespace) -> None:
    """Add a line for each run that the file lacks: its outcome, questions by round, how many first labels differ."""
    if not RUNS.exists():
        RUNS.write_text(",".join(COLUMNS) + "\n")
    if not SCORES.exists():
        SCORES.write_text(",".join([*COLUMNS[:5], "labels", "f1"]) + "\n")
    known = set(pd.read_csv(RUNS)[COLUMNS[:5]].itertuples(index=False, name=None))
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    forms = itertools.product([chosen.data], [chosen.gamma], [chosen.rounds], seeds, chosen.form)
    stopped = silent(chosen.rounds)
    todo = (key for key in forms if key not in known and (key in stopped or not chosen.silent))
    for key in begun_within(chosen.minutes, todo):
        seed, options, data = key[3], dict(FORMS[key[4]]), in_form(chosen.data, key[4])
        if options.get("wait") == AT_ONCE:
            options["wait"] = -data.n_classes
        drawn = chosen.data in TABLES_OF_NUMBERS and key[4] != "classes sorted"
        source = stream(data, seed, chosen.rounds, class_order="drawn" if drawn else "sorted")
        game = sp.label_efficient(data.n_classes)
        strategy = INeural(game, data.n_features, gamma=chosen.gamma, seed=seed, **options)
        if key[4] in CHANGES:
            CHANGES[key[4]](strategy)
        scores, played = HeldOutScores(strategy, source, SCORED_ROWS), []
        for one in sp.play(strategy, game, zip(source.X, source.y, strict=True)):
            played.append(one)
            scores.look(one.t)
        asked = np.array([one.action == strategy.expert for one in played])
        distinct = len(set(source.y[asked][:3].tolist()))
        regret = sum(one.cost for one in played)
        counts = [asked.sum(), asked[:100].sum(), asked[200:400].sum()]
        with RUNS.open("a") as file:
            file.write(",".join(map(str, [*key, regret, *counts, distinct])) + "\n")
        with SCORES.open("a") as file:
            file.writelines(f"{','.join(map(str, key))},{labels},{f1:.4f}\n" for labels, _, f1 in scores.measured)


@lru_cache
def in_form(name: str, form: str) -> Dataset:
    """A data set as the paper has it, or as a form has it."""
    data = load(name, "paper")
    return DATA[form](data) if form in DATA else data


def silent(rounds: int) -> set[tuple[Any, ...]]:
    """The runs, with as many rounds as are given, that asked nothing in rounds 200 to 400 of a run that has these."""
    known = pd.read_csv(RUNS)
    return set(known[known["asked_200_to_400"] == 0].assign(rounds=rounds)[COLUMNS[:5]].itertuples(False, None))


def study() -> None:
    """Play what is missing, and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="covertype")
    parser.add_argument("--gamma", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--form", nargs="+", default=list(FORMS), choices=list(FORMS))
    parser.add_argument("--silent", action="store_true", help="only seeds that asked nothing in rounds 200 to 400")
    parser.add_argument("--minutes", type=float, help="begin no run after so many")
    torch.set_num_threads(1)
    play_missing(parser.parse_args())
    for key, part in pd.read_csv(RUNS).groupby(["data", "gamma", "rounds", "form"], sort=False):
        distinct = part[part["distinct"] == 3]["asked_by_100"]
        print(
            f"{', '.join(map(str, key))}: {len(part)} seeds, regret {part['regret'].mean():.0f}, asked "
            f"{part['asked'].mean():.0f} times, {part['asked_by_100'].mean():.1f} by round 100, {distinct.mean():.1f} "
            f"where the first three labels differ ({len(distinct)} seeds), nothing in rounds 200 to 400 in "
            f"{(part['asked_200_to_400'] == 0).mean():.0%}"
        )


def main() -> None:
    torch.set_num_threads(1)
    for name, (n_classes, n_features) in SHAPES.items():
        told = operations(n_classes, n_features)
        ratios, steps = [], []
        for _ in range(5):
            least = least_seconds(n_classes, n_features)
            steps.append(step_seconds(n_classes, n_features))
            ratios.append(steps[-1] / least)
        print(
            f"{name:<10} a step of f2: {told['rows']:.1f} million operations by rows, {told['rank']:.1f} by the "
            f"gradient's rank if all rows had seen one W1; {1e3 * float(np.median(steps)):.2f} ms, "
            f"{float(np.median(ratios)):.2f} times its products and Adam alone"
        )


if __name__ == "__main__":
    study()
