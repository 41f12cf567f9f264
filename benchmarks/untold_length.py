"""What Sparing pays for not knowing how long a stream is: the first 1000 rounds against all 10 000.

Without `horizon=` it counts on as many rounds as there have been, and `prior_horizon` more. Every run here is of 10 000
rounds on a seed that is not reported elsewhere; its first 1000 rounds are what a stream of that length costs, for
nothing was said of the end. `python -m benchmarks.untold_length` makes the missing runs, one line each in
docs/results/sparing/untold_length.jsonl, and writes the table beside them, untold_length.csv; `python -m benchmarks
untold_length` only writes it.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

import sparingly as sp
from benchmarks.result_files import keep
from sparingly.experiments.datasets import load
from sparingly.experiments.streams import stream

RUNS = Path(__file__).parent.parent / "docs" / "results" / "sparing" / "untold_length.jsonl"
DATASETS = ("adult", "magic_telescope", "covertype", "shuttle")
BELIEFS = (2000, 1000, 500, 250, 0)
SEEDS = (1200, 1201, 1202, 1203)
LENGTHS = (1000, 3000, 10_000)
Run = dict[str, Any]


def run(data: str, seed: int, prior_horizon: int) -> Run:
    """What the first rounds, and all of them, cost; what the class that was commonest in them would have cost."""
    dataset = load(data, preprocessing="encoded")
    rounds, game = stream(dataset, seed, LENGTHS[-1]), sp.label_efficient(dataset.n_classes)
    strategy = sp.Sparing(game, dataset.n_features, prior_horizon=prior_horizon, seed=seed)
    labelled = zip(rounds.X, rounds.answers.tolist(), strict=True)
    cost = np.cumsum([one.cost for one in sp.play(strategy, game, labelled)])
    return {
        "data": data,
        "seed": seed,
        "prior_horizon": prior_horizon,
        "cost": [float(cost[length - 1]) for length in LENGTHS],
        "commonest": [float(length - np.bincount(rounds.y[:length]).max()) for length in LENGTHS],
    }


def records() -> list[Run]:
    """Every run made so far."""
    return [json.loads(line) for line in RUNS.read_text().splitlines()] if RUNS.exists() else []


def make() -> None:
    """Make the runs that are missing, all beliefs with a seed before the next seed."""
    torch.set_num_threads(1)
    for seed, data, prior in itertools.product(SEEDS, DATASETS, BELIEFS):
        if not any((one["data"], one["seed"], one["prior_horizon"]) == (data, seed, prior) for one in records()):
            line = json.dumps(run(data, seed, prior))
            with RUNS.open("a") as file:
                file.write(line + "\n")


def table(runs: list[Run]) -> list[dict[str, str]]:
    """By belief and data set: 1000 rounds over the commonest class, and 10 000 rounds over those of the first belief.

    Of streams that were played with every belief. Ratios are geometric means over seeds; in brackets is the worst seed.
    """
    costs = {(one["data"], one["seed"], one["prior_horizon"]): one for one in runs}
    played = [(data, seed) for data, seed, _ in costs if all((data, seed, prior) in costs for prior in BELIEFS)]
    seeds = {data: sorted({seed for one, seed in played if one == data}) for data in DATASETS}
    seeds = {data: found for data, found in seeds.items() if found}
    rows = []
    for prior in BELIEFS:
        row, short, long = {"rounds counted on": str(prior)}, {}, {}
        for data, found in seeds.items():
            ours, first = ([costs[data, seed, one] for seed in found] for one in (prior, BELIEFS[0]))
            over = np.array([one["cost"][0] / one["commonest"][0] for one in ours])
            short[f"{data}, 1000"] = f"{_mean(over):.2f} ({over.max():.2f})"
            long[f"{data}, 10 000"] = _mean(
                np.array([one["cost"][-1] / old["cost"][-1] for one, old in zip(ours, first, strict=True)])
            )
        row |= short | {name: f"{ratio:.3f}" for name, ratio in long.items()}
        rows.append(row | {"geometric mean, 10 000": f"{_mean(np.array(list(long.values()))):.3f}"})
    return rows


def _mean(ratios: np.ndarray) -> float:
    return float(np.exp(np.log(ratios).mean()))


def main() -> None:
    """Write the table of the runs there are, and print it."""
    keep("sparing/untold_length.csv", table(records()))


if __name__ == "__main__":
    make()
    main()
