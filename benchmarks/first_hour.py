"""What a user's own short stream costs when its length is told, what labels that are there already save, and what
river's documented pattern `StandardScaler() | ActiveClassifier()` costs beside the classifier alone.

`python -m benchmarks first_hour` plays all and writes a table of each, short.csv, taught.csv and river.csv in
docs/results/first_hour; `python -m benchmarks first_hour short` only that one. `short cancer`, `taught adult` or `river
phishing` plays a part of it and writes nothing. Seeds 0 to 4 are for reporting only; with `--first-seed 1000`, which is
for making, nothing is written either.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import sparingly as sp
from benchmarks.result_files import keep
from sparingly.experiments.datasets import load
from sparingly.experiments.runs.experiment_settings import Player, Run, Task
from sparingly.experiments.runs.single_run import execute
from sparingly.experiments.streams import stream

Row = dict[str, object]
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


def short(name: str, first_seed: int) -> Row:
    """The mean cost of every player, and of sparing as a share of the best of the others."""
    with tempfile.TemporaryDirectory() as folder:
        task = tasks(Path(folder), name)
        row: Row = {"stream": name.partition(" ")[0], "rows": 0, "a question costs": task.query_cost}
        means = {}
        for player in PLAYERS:
            records = [execute(Run(task=task, player=player, seed=first_seed + seed)) for seed in range(SEEDS)]
            means[player.label] = round(float(np.mean([record.rounds["cost"].sum() for record in records])), 2)
            row["rows"] = len(records[0].rounds["cost"])
    ours, *others = means.values()
    return {**row, **means, "sparing over the best of the others": round(ours / min(others), 3)}


def taught(name: str, first_seed: int) -> Row:
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
    cold, warm = (round(float(np.mean(costs[kind])), 2) for kind in ("cold", "taught"))
    questions = {kind: round(float(np.mean(asked[kind])), 1) for kind in asked}
    return {
        "data set": name,
        "from a cold start": cold,
        "questions": questions["cold"],
        f"after {TAUGHT} labels": warm,
        "questions then": questions["taught"],
        "ratio": round(warm / cold, 3),
    }


def in_river(name: str, first_seed: int) -> Row:
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
    scaled, without = (round(float(np.mean(costs[kind])), 2) for kind in ("scaler", "without"))
    row: Row = {"stream": stem, "a question costs": float(price or 1)}
    return {**row, "with StandardScaler": scaled, "without": without, "ratio": round(scaled / without, 3)}


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
    parts: tuple[tuple[str, Callable[[str, int], Row], Sequence[str]], ...] = (
        ("short", short, SHORT),
        ("taught", taught, DATASETS),
        ("river", in_river, RIVER),
    )
    for kind, play, names in parts:
        if given.what not in (kind, "all"):
            continue
        rows = [play(name, given.first_seed) for name in given.name or names]
        keep(f"first_hour/{kind}.csv", rows, whole=not given.name and given.first_seed == 0)
    return 0
