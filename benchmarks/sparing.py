"""Every number said of the strategy `sparing`.

`python -m benchmarks.sparing GROUP ...` makes the missing runs of the groups named (`table`, `line`, `learner`,
`drift`, `time`, `prices`, `horizons`, `long`, `ablation`, `lenet`), one line a run in docs/results/sparing/runs.jsonl.
Seeds 30 to 39 are for reporting only: the strategy was made on seeds 1000 to 1057; earlier forms of it were run on
seeds 0 to 29, which are not reported.
`python -m benchmarks.sparing limits` looks among them for runs that no user should meet;
`python -m benchmarks.sparing picture` draws the idea;
`python -m benchmarks sparing` reads that file and prints the tables.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import sparingly as sp
from sparingly.experiments.datasets import Dataset, load
from sparingly.experiments.streams import Drift, stream
from sparingly.strategies import registered
from sparingly.strategies.sparing.ablation import Ablation
from sparingly.strategies.sparing.beliefs import Beliefs

RUNS = Path(__file__).parent.parent / "docs" / "results" / "sparing" / "runs.jsonl"
DATASETS = ("shuttle", "magic_telescope", "adult", "covertype", "mnist_binary", "mnist", "fashion_mnist")
ABLATIONS: dict[str, dict[str, Any]] = {
    "full": {},
    "without quantile encoding": {"ablation": Ablation(intervals=1)},
    "without cross-fitting": {"ablation": Ablation(crossfit=False)},
    "without measured learnability": {"ablation": Ablation(learnability=False)},
    "without selection": {"ablation": Ablation(selection=False)},
    "without random questions": {"audit": 0.0},
    "without kernel": {"ablation": Ablation(kernel=False)},
    "two members": {"members": 2},
}
FIRST_SEED = 30
FP_SENSITIVE = [[0.0, 1.0], [0.5, 0.0]]
Spec = dict[str, Any]


@lru_cache(maxsize=2)
def _dataset(name: str, flat: bool = True, who: str = "sparing") -> Dataset:
    """Sparing scales by itself; its rivals get the running standardisation, which serves them best."""
    return load(name, preprocessing="encoded" if who == "sparing" else "streaming", flat=flat)


def specs(group: str) -> Iterator[Spec]:
    """The runs of a group, seed by seed, so that a part of them is a fair part."""
    seeds, variants = GROUPS[group]
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        yield from ({"group": group, "seed": seed, **variant} for variant in variants)


def _each(data: tuple[str, ...], **options: tuple[Any, ...]) -> list[Spec]:
    """Every data set with every value of the options."""
    values = itertools.product(data, *options.values())
    return [dict(zip(("data", *options), value, strict=True)) for value in values]


TWO_CLASSES = ("magic_telescope", "adult", "mnist_binary")
RIVALS = (
    "sparing", "neural_cbp", "neuronal", "margin", "least_confidence", "label_budget", "cesa", "gappletron",
    "explore_then_commit", "random", "always_ask", "never_ask",
)  # fmt: skip
TABLES = ("shuttle", "magic_telescope", "adult", "covertype")
BOTH = ("sparing", "line")
GROUPS: dict[str, tuple[int, list[Spec]]] = {
    "table": (10, _each(DATASETS)),
    "line": (10, _each(DATASETS, who=("line",))),
    "learner": (3, _each(DATASETS, who=("our learner",))),
    "drift": (3, _each(("mnist", "magic_telescope", "shuttle"))),
    "time": (3, _each(("mnist", "fashion_mnist", "magic_telescope", "adult"), who=("neural_cbp", "sparing"))),
    "prices": (
        1,
        [
            spec
            for data in TWO_CLASSES
            for spec in _each((data,), who=RIVALS, costs=("fp",)) + _each((data,), price=(0.3, 3.0, 0.1), who=RIVALS)
        ],
    ),
    "horizons": (2, _each(TABLES, who=BOTH, horizon=(1000, 3000))),
    "long": (
        1,
        _each(("covertype", "adult", "shuttle"), who=BOTH, horizon=(30_000,))
        + _each(("covertype",), who=BOTH, horizon=(100_000,)),
    ),
    "ablation": (5, _each(("magic_telescope", "shuttle", "mnist_binary"), without=tuple(ABLATIONS))),
    "lenet": (2, _each(("mnist", "fashion_mnist"))),
}
"""By name: over how many seeds, and what is run with each."""


def run(spec: Spec) -> Spec:
    """Play one run; the spec with what it cost."""
    who = spec.get("who", "sparing")
    if who == "our learner":
        return {**spec, **our_learner(spec["data"], spec["seed"])}
    if who == "line":
        return {**spec, **hindsight(spec["data"], spec["seed"], spec.get("horizon", 10_000))}
    lenet = spec["group"] == "lenet"
    data = _dataset(spec["data"], not lenet, who)
    drift = Drift(0.5, 0.5) if spec["group"] == "drift" else None
    rounds = stream(data, spec["seed"], spec.get("horizon", 10_000), drift=drift)
    price = spec.get("price", 1.0)
    costs = FP_SENSITIVE if spec.get("costs") == "fp" else 1 - np.eye(data.n_classes)
    game = sp.label_efficient(costs=np.array(costs), query_cost=price)
    options = ABLATIONS[spec["without"]] if "without" in spec else {"network": "lenet"} if lenet else {}
    shape = data.shape if lenet else data.n_features
    strategy = registered()[who](game, n_features=shape, seed=spec["seed"], **options)
    X = rounds.X
    began = time.process_time()
    played = list(sp.play(strategy, game, zip(X, rounds.answers.tolist(), strict=True)))
    seconds = time.process_time() - began
    cost = np.array([one.cost for one in played])
    asked = sum(one.action >= game.n_outcomes for one in played)
    majority = float(((1 - np.eye(data.n_classes)) if costs is not FP_SENSITIVE else np.array(costs))[
        :, rounds.y].sum(1).min())  # fmt: skip
    found = {"cost": float(cost.sum()), "asked": asked, "seconds": round(seconds, 2), "majority": majority}
    if who == "sparing":
        found |= {"changes": getattr(strategy, "changes", [])}
    if drift is not None:
        half = len(cost) // 2
        found |= {"before": float(cost[half - 2000 : half].sum()), "after": float(cost[-2000:].sum())}
    return {**spec, **found}


def hindsight(data: str, seed: int, horizon: int) -> Spec:
    """Label the first n, train once, announce for the rest: the best n and learner, chosen afterwards."""
    rounds = stream(_dataset(data), seed, horizon)
    game, tried = sp.label_efficient(_dataset(data).n_classes), {}
    most = min(800, horizon // 2) if horizon <= 10_000 else horizon // 10
    for n, learner in itertools.product((50, 100, 200, 400, 800, 1600, 3200), ("forest", "mlp")):
        if n > most or (learner == "mlp" and n < 200):
            continue
        strategy = registered()["explore_then_commit"](game, rounds.X.shape[1], n=n, learner=learner, seed=seed)
        for _ in sp.play(strategy, game, zip(rounds.X[:n], rounds.answers[:n].tolist(), strict=True)):
            pass
        tried[f"{learner} {n}"] = n + float((strategy.scores(rounds.X[n:]).argmax(1) != rounds.y[n:]).sum())
    best = min(tried, key=lambda one: tried[one])
    return {"cost": tried[best], "asked": int(best.split()[1]), "learner": best.split()[0], "tried": tried}


def our_learner(data: str, seed: int) -> Spec:
    """The line with our own learner: what it would cost to label the first n, the best n chosen afterwards."""
    rounds = stream(_dataset(data), seed, 10_000)
    X, y = torch.from_numpy(rounds.X), torch.from_numpy(rounds.y)
    tried = {}
    for n in (50, 100, 200, 400, 800):
        beliefs = Beliefs(_dataset(data).n_classes, (X.shape[1],))
        with torch.no_grad():
            folds = torch.arange(n) % beliefs.members
            beliefs.fit(X[: max(n, 1000)], X[:n], y[:n], folds, torch.Generator().manual_seed(seed))
            tried[n] = n + float((beliefs(X[n:]).mean(0).argmax(1) != y[n:]).sum())
    best = min(tried, key=lambda n: tried[n])
    return {"cost": tried[best], "asked": best, "tried": tried}


def limits(runs: list[Spec]) -> list[Spec]:
    """Runs of sparing that no user should meet: 5 % worse than the majority class, or fewer than 20 labels."""
    ours = [run for run in runs if run.get("who", "sparing") == "sparing" and "without" not in run]
    return [run for run in ours if run["cost"] > 1.05 * run["majority"] or run["asked"] < 20]


def records() -> list[Spec]:
    """Every run made so far."""
    return [json.loads(line) for line in RUNS.read_text().splitlines()] if RUNS.exists() else []


def _key(spec: Spec) -> str:
    names = ("group", "data", "seed", "horizon", "who", "costs", "price", "without")
    return json.dumps([spec.get(name) for name in names])


def make(groups: list[str]) -> None:
    """Make the runs that are missing, all groups of a seed before the next seed."""
    torch.set_num_threads(1)
    RUNS.parent.mkdir(parents=True, exist_ok=True)
    for spec in sorted((spec for group in groups for spec in specs(group)), key=lambda spec: spec["seed"]):
        if _key(spec) in {_key(record) for record in records()}:
            continue
        line = json.dumps(run(spec))
        with RUNS.open("a") as file:
            file.write(line + "\n")


def picture(path: Path = RUNS.parent / "idea.png") -> None:
    """One run, looked at: what labels were worth against what they cost, and which questions were asked when."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    data = _dataset("magic_telescope")
    rounds, game = stream(data, 1000), sp.label_efficient(data.n_classes)
    strategy = registered()["sparing"](game, n_features=data.n_features, seed=1000)
    played = [one for one in sp.play(strategy, game, rounds) if one.why.get("worth") is not None]
    asks = np.array([one.action >= game.n_outcomes for one in played])
    audit = np.array([bool(one.why.get("audit")) for one in played]) & asks
    t, worth, net = (np.array(v) for v in zip(*[(o.t, o.why["worth"], o.why["net"]) for o in played], strict=True))
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for rows, mark, label in (
        (~asks, ".", "announced"),
        (asks & ~audit, "o", "asked"),
        (audit, "^", "asked at random"),
    ):
        left.scatter(net[rows], worth[rows].clip(1e-3), s=8 if mark == "." else 20, marker=mark, label=label, alpha=0.6)
        if mark != ".":
            right.plot(t[rows], np.arange(1, rows.sum() + 1), label=label)
    line = np.linspace(0.3, 1)
    left.plot(line, line, color="black", linewidth=1)
    left.set(yscale="log", xlabel="price less the expected cost of announcing", ylabel="worth of the label")
    right.set(xlabel="round", ylabel="questions so far")
    left.legend()
    right.legend()
    figure.savefig(path, dpi=110)


def against_the_line(runs: list[Spec]) -> dict[tuple[str, int], list[float]]:
    """For each data set and horizon the cost of sparing over that of the line, seed by seed where both are known."""
    costs: dict[str, dict[tuple[str, int, int], float]] = {"sparing": {}, "line": {}}
    for one in runs:
        if one["group"] in ("table", "line", "horizons", "long"):
            place = one["data"], one.get("horizon", 10_000), one["seed"]
            costs[one.get("who", "sparing")][place] = one["cost"]
    ratios: dict[tuple[str, int], list[float]] = {}
    for (data, horizon, seed), cost in sorted(costs["sparing"].items()):
        if (data, horizon, seed) in costs["line"]:
            ratios.setdefault((data, horizon), []).append(cost / costs["line"][data, horizon, seed])
    return ratios


def main() -> None:
    """Print the mean of every group of runs, and what sparing costs beside the line."""
    rows: dict[str, list[Spec]] = {}
    for record in records():
        rows.setdefault(_key({**record, "seed": "all"}), []).append(record)
    heads = ("seeds", "cost", "s.e.", "most", "asked", "s")
    print(f"{'group':10} {'data set':16} {'what':40} " + " ".join(f"{head:>6}" for head in heads))
    for runs in rows.values():
        first = runs[0]
        what = " ".join(f"{k}={first[k]}" for k in ("horizon", "who", "costs", "price", "without") if k in first)
        cost = np.array([one["cost"] for one in runs])
        error = cost.std(ddof=1) / len(cost) ** 0.5 if len(cost) > 1 else 0.0
        asked, seconds = (np.mean([one.get(k, 0) for one in runs]) for k in ("asked", "seconds"))
        tail = ""
        if "after" in first:
            tail = "  after/before " + " ".join(f"{one['after'] / one['before']:.2f}" for one in runs)
        print(
            f"{first['group']:10} {first['data']:16} {what:40} {len(runs):6} {cost.mean():6.0f} {error:6.0f} "
            f"{cost.max():6.0f} {asked:6.0f} {seconds:6.1f}{tail}"
        )
    ratios = against_the_line(records())
    for (data, horizon), found in ratios.items():
        mean = float(np.exp(np.mean(np.log(found))))
        print(
            f"over the line: {data:16} {horizon:7} rounds, {len(found):2} seeds: {mean:.3f}, at most {max(found):.3f}"
        )
    main_rows = [np.mean(np.log(found)) for (_, horizon), found in ratios.items() if horizon == 10_000]
    if main_rows:
        print(f"geometric mean of the {len(main_rows)} rows of 10 000 rounds: {np.exp(np.mean(main_rows)):.3f}")


if __name__ == "__main__":
    if sys.argv[1:] == ["picture"]:
        picture()
    elif sys.argv[1:] == ["limits"]:
        print(f"{len(limits(records()))} of {len(records())} runs are beyond the limits", *limits(records()), sep="\n")
    else:
        make(sys.argv[1:])
        main()
