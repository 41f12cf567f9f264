"""What a user's own short stream costs when its length is told, what labels that are there already save, and what
river's documented pattern `StandardScaler() | ActiveClassifier()` costs beside the classifier alone.

`python -m benchmarks first_hour` plays all and prints a table of each; `python -m benchmarks first_hour short cancer`,
`taught adult` or `river phishing` plays a part. Seeds 0 to 4 are for reporting only; `--first-seed 1000` is for making.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import sparingly as sp
from sparingly.experiments.datasets import load
from sparingly.experiments.runs.experiment_settings import Player, Run, Task
from sparingly.experiments.runs.single_run import execute
from sparingly.experiments.streams import stream

SEEDS = 5
TAUGHT, NEXT = 500, 1000
PLAYERS = (
    Player(strategy="sparing", label="sparing, length told"),
    Player(strategy="always_ask", options={"epochs": 0}, label="always asking"),
    Player(strategy="never_ask", label="20 labels, then the commonest"),
    Player(strategy="neural_cbp", label="NeuralCBP"),
    Player(strategy="explore_then_commit", options={"n": 50}, label="explore_then_commit,n=50"),
)
SHORT = ("cancer", "wine", "wine at 0.2", "phishing", "phishing at 0.2")
RIVER = ("phishing", "phishing at 0.2", "cancer", "wine")
DATASETS = ("adult", "magic_telescope", "covertype", "digits")


def tasks(folder: Path, name: str) -> Task:
    """A short stream: cancer with 10 for a missed tumour and 0.2 for a question, the others with 1 for a mistake."""
    from sklearn.datasets import load_breast_cancer, load_wine

    price = 0.2 if name == "cancer" or name.endswith("at 0.2") else 1.0
    stem = name.partition(" ")[0]
    if stem == "phishing":
        return Task(dataset=stem, preprocessing="auto", query_cost=price, horizon_known=True)
    bunch = load_breast_cancer(as_frame=True) if stem == "cancer" else load_wine(as_frame=True)
    bunch.frame["target"] = bunch.target_names[bunch.frame["target"]]
    bunch.frame.to_csv(folder / f"{stem}.csv", index=False)
    costs = ((0.0, 10.0), (1.0, 0.0)) if stem == "cancer" else None
    return Task(
        dataset=str(folder / f"{stem}.csv"),
        target="target",
        preprocessing="auto",
        costs=costs,
        query_cost=price,
        horizon_known=True,
    )


def short(name: str, first_seed: int) -> Iterator[str]:
    """The cost of every player, and of sparing as a share of the best of the others."""
    with tempfile.TemporaryDirectory() as folder:
        task = tasks(Path(folder), name)
        means = {}
        for player in PLAYERS:
            records = [execute(Run(task=task, player=player, seed=first_seed + seed)) for seed in range(SEEDS)]
            costs = [float(record.rounds["cost"].sum()) for record in records]
            means[player.label] = float(np.mean(costs))
            asked = np.mean([record.queries for record in records])
            each = " ".join(f"{cost:.1f}" for cost in costs)
            yield f"{name:16} {player.label:32} {means[player.label]:8.1f}   {asked:6.1f} questions   ({each})"
    ours, *others = means.values()
    yield f"{name:16} sparing over the best of the others: {ours / min(others):.2f}"


def taught(name: str, first_seed: int) -> Iterator[str]:
    """What the next rows cost after some labels were taught, and from a cold start."""
    data = load(name, "encoded")
    game = sp.label_efficient(data.n_classes)
    costs: dict[str, list[float]] = {"cold": [], "taught": []}
    asked: dict[str, list[int]] = {"cold": [], "taught": []}
    for seed in range(first_seed, first_seed + SEEDS):
        source = stream(data, seed, TAUGHT + NEXT)
        X, y = source.X, source.y
        for kind in costs:
            strategy = sp.Sparing(game, data.n_features, seed=seed)
            if kind == "taught":
                strategy.teach(X[:TAUGHT], y[:TAUGHT])
            rounds = list(sp.play(strategy, game, zip(X[TAUGHT:], y[TAUGHT:].tolist(), strict=True)))
            costs[kind].append(sum(played.cost for played in rounds))
            asked[kind].append(sum(played.action >= game.n_outcomes for played in rounds))
    cold, warm = (float(np.mean(costs[kind])) for kind in ("cold", "taught"))
    questions = " and ".join(f"{np.mean(asked[kind]):.0f}" for kind in ("cold", "taught"))
    yield f"{name:16} cold {cold:7.1f}   taught {warm:7.1f}   ratio {warm / cold:.2f}   questions {questions}"


def in_river(name: str, first_seed: int) -> Iterator[str]:
    """What a river stream costs with a scaler before the classifier in a pipeline, and without."""
    from river import preprocessing

    from sparingly.adapters.river import ActiveClassifier

    stem, _, price = name.partition(" at ")
    rows = list(_river_rows(stem))
    costs: dict[str, list[float]] = {"scaler": [], "without": []}
    for seed in range(first_seed, first_seed + SEEDS):
        order = np.random.default_rng(seed).permutation(len(rows))
        for kind in costs:
            alone = ActiveClassifier(query_cost=float(price or 1), seed=seed)
            model = preprocessing.StandardScaler() | alone if kind == "scaler" else alone
            costs[kind].append(_river_cost(model, [rows[place] for place in order], float(price or 1)))
    scaled, without = (float(np.mean(costs[kind])) for kind in ("scaler", "without"))
    yield f"{name:16} StandardScaler() | ... {scaled:7.1f}   without {without:7.1f}   ratio {scaled / without:.2f}"


def _river_rows(name: str) -> Iterator[tuple[dict[str, float], Any]]:
    from river import datasets
    from sklearn.datasets import load_breast_cancer, load_wine

    if name == "phishing":
        yield from datasets.Phishing()
        return
    bunch = load_breast_cancer(as_frame=True) if name == "cancer" else load_wine(as_frame=True)
    yield from zip(bunch.data.to_dict("records"), bunch.target.tolist(), strict=True)


def _river_cost(model: Any, rows: Sequence[tuple[dict[str, float], Any]], price: float) -> float:
    """The price of all questions, and 1 for each announcement that is wrong."""
    total = 0.0
    for x, label in rows:
        announced, asks = model.predict_one(x)
        total += price if asks else float(announced != label)
        if asks:
            model.learn_one(x, label)
    return total


def command(words: list[str]) -> int:
    """All parts, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks first_hour")
    parser.add_argument("what", nargs="?", choices=("short", "taught", "river", "all"), default="all")
    parser.add_argument("name", nargs="*")
    parser.add_argument("--first-seed", type=int, default=0)
    given = parser.parse_args(words)
    parts = (("short", short, SHORT), ("taught", taught, DATASETS), ("river", in_river, RIVER))
    for kind, play, names in parts:
        for name in (given.name or names) if given.what in (kind, "all") else ():
            for line in play(name, given.first_seed):
                print(line, flush=True)
    return 0
