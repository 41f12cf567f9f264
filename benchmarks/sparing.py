"""Every number said of the strategy `sparing`.

`python -m benchmarks.sparing GROUP ...` makes the missing runs of the groups named (`table`, `line`, `learner`,
`drift`, `time`, `prices`, `table_prices`, `dear`, `horizons`, `told`, `long`, `whole`, `long_told`, `late`, `live`,
`ablation`, `lenet`, `boosted`, `unseen`), one line a run in docs/results/sparing/runs.jsonl.
Seeds 30 to 39 are for reporting only: the strategy was made on seeds from 1000 on; earlier forms of it were run on
seeds 0 to 29, which are not reported.
`python -m benchmarks.sparing limits` looks among them for runs that no user should meet;
`python -m benchmarks.sparing picture` draws the idea; `python -m benchmarks.sparing tables` writes the tables of
docs/sparing.md into docs/results/sparing/tables.md;
`python -m benchmarks sparing` reads that file and prints the tables.
"""

from __future__ import annotations

import importlib
import itertools
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import sparingly as sp
from benchmarks import hindsight, late_answers, sparing_tables, unseen_data
from sparingly.experiments.datasets import Dataset, load
from sparingly.experiments.streams import Drift, Stream, stream
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
    "without trees": {"ablation": Ablation(trees=False)},
    "two members": {"members": 2},
}
FIRST_SEED = 30
FP_SENSITIVE = [[0.0, 1.0], [0.5, 0.0]]
SHOWN = ("horizon", "who", "costs", "price", "without", "told", "delay", "seconds_late")
"""What tells the runs of one group and data set apart, beside their seed."""
Spec = dict[str, Any]


@lru_cache(maxsize=2)
def _dataset(name: str, flat: bool = True, who: str = "sparing") -> Dataset:
    """Sparing scales by itself; its rivals get the running standardisation, which serves them best."""
    if name in unseen_data.NAMES:
        return unseen_data.load(name)
    return load(name, preprocessing="encoded" if who == "sparing" else "streaming", flat=flat)


def _rounds(spec: Spec, data: Dataset, horizon: int) -> Stream:
    """The stream of a run; one of a whole data set holds nothing out for tests."""
    if spec["group"].startswith("unseen") or horizon == WHOLE:
        data = replace(data, raw_test=data.raw[:1], y_test=data.y[:1])
    drift = Drift(0.5, 0.5) if spec["group"] == "drift" else None
    return stream(data, spec["seed"], horizon, drift=drift)


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
WHOLE = 581_012
"""Rounds that covertype has in all."""
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
    "table_prices": (1, _each(TABLES, who=BOTH, price=(0.1,))),
    "dear": (5, _each(TABLES, who=BOTH, price=(5.0,))),
    "horizons": (2, _each(TABLES, who=BOTH, horizon=(1000, 3000))),
    "told": (2, _each(TABLES, horizon=(1000, 3000), told=(True,))),
    "long": (
        1,
        _each(("covertype", "adult", "shuttle"), who=BOTH, horizon=(30_000,))
        + _each(("covertype",), who=BOTH, horizon=(100_000,)),
    ),
    "whole": (1, _each(("covertype",), who=BOTH, horizon=(WHOLE,))),
    "long_told": (
        1,
        _each(("covertype", "adult", "shuttle"), horizon=(30_000,), told=(True,))
        + _each(("covertype",), horizon=(100_000, WHOLE), told=(True,)),
    ),
    "late": (
        2,
        _each(("magic_telescope",), horizon=(5000,), delay=(0, 200))
        + _each(("digits",), horizon=(1797,), delay=(0, 200))
        + _each(("magic_telescope",), horizon=(5000,), who=("our learner",), delay=(0, 200))
        + _each(("digits",), horizon=(1797,), who=("our learner",), delay=(0, 200)),
    ),
    "live": (1, _each(("digits",), horizon=(1797,), seconds_late=(0, 25))),
    "ablation": (5, _each(("magic_telescope", "shuttle", "mnist_binary"), without=tuple(ABLATIONS))),
    "lenet": (5, _each(("mnist", "fashion_mnist"))),
    "boosted": (3, _each(TABLES, who=("boosted line",))),
    "unseen": (
        2,
        [spec for data, rows in unseen_data.LENGTHS.items() for spec in _each((data,), who=BOTH, horizon=(rows,))],
    ),
    "unseen_learner": (
        2,
        [
            spec
            for data, rows in unseen_data.LENGTHS.items()
            for spec in _each((data,), who=("our learner",), horizon=(rows,))
        ],
    ),
    "lenet_learner": (3, _each(("mnist", "fashion_mnist"), who=("our learner",))),
    "unseen_told": (
        2,
        [
            spec
            for data, rows in unseen_data.LENGTHS.items()
            for spec in _each((data,), who=("sparing",), horizon=(rows,), told=(True,))
        ],
    ),
}
"""By name: over how many seeds, and what is run with each."""


def run(spec: Spec) -> Spec:
    """Play one run; the spec with what it cost."""
    who = spec.get("who", "sparing")
    if who == "our learner" and "delay" not in spec:
        return {**spec, **our_learner(spec)}
    horizon, price = spec.get("horizon", 10_000), spec.get("price", 1.0)
    if who in ("line", "boosted line", "our learner") or "seconds_late" in spec:
        data, seed = _dataset(spec["data"]), spec["seed"]
        rounds = _rounds(spec, data, horizon)
        if who == "our learner":
            return {**spec, **late_answers.by_hindsight(rounds, data.n_classes, spec["delay"], seed)}
        if "seconds_late" not in spec:
            learners = hindsight.LEARNERS if who == "line" else ("boosting",)
            return {**spec, **hindsight.line(rounds, data.n_classes, seed=seed, price=price, learners=learners)}
        return {**spec, **late_answers.live(rounds, data, spec["seconds_late"], seed)}
    lenet = spec["group"] == "lenet"
    data = _dataset(spec["data"], not lenet, who)
    rounds = _rounds(spec, data, horizon)
    costs = FP_SENSITIVE if spec.get("costs") == "fp" else 1 - np.eye(data.n_classes)
    game = sp.label_efficient(costs=np.array(costs), query_cost=price)
    options = dict(ABLATIONS[spec["without"]] if "without" in spec else {"network": "lenet"} if lenet else {})
    options |= {"horizon": horizon} if spec.get("told") else {}
    shape = data.shape if lenet else data.n_features
    strategy = registered()[who](game, n_features=shape, seed=spec["seed"], **options)
    X = rounds.X
    began = time.process_time()
    labelled = zip(X, rounds.answers.tolist(), strict=True)
    played = [(one.cost, one.action) for one in sp.play(strategy, game, labelled, delay=spec.get("delay", 0))]
    seconds = time.process_time() - began
    cost = np.array([one for one, _ in played])
    asked = sum(action >= game.n_outcomes for _, action in played)
    majority = float(((1 - np.eye(data.n_classes)) if costs is not FP_SENSITIVE else np.array(costs))[
        :, rounds.y].sum(1).min())  # fmt: skip
    found = {"cost": float(cost.sum()), "asked": asked, "seconds": round(seconds, 2), "majority": majority}
    if who == "sparing":
        found |= {"changes": getattr(strategy, "changes", [])}
    if spec["group"] == "drift":
        half = len(cost) // 2
        found |= {"before": float(cost[half - 2000 : half].sum()), "after": float(cost[-2000:].sum())}
    return {**spec, **found}


def our_learner(spec: Spec) -> Spec:
    """The line with our own learner: what it would cost to label the first n, the best n chosen afterwards."""
    lenet = spec["group"] == "lenet_learner"
    data = _dataset(spec["data"], not lenet)
    rounds = _rounds(spec, data, spec.get("horizon", 10_000))
    X, y = torch.from_numpy(rounds.X), torch.from_numpy(rounds.y)
    tried = {}
    for n in (50, 100, 150, 200, 300, 400, 600, 800):
        beliefs = Beliefs(data.n_classes, tuple(X.shape[1:]), network="lenet" if lenet else "mlp", seed=spec["seed"])
        with torch.no_grad():
            folds = torch.arange(n) % beliefs.members
            beliefs.fit(X[: max(n, 1000)], X[:n], y[:n], folds, torch.Generator().manual_seed(spec["seed"]))
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
    return json.dumps([spec.get(name) for name in ("group", "data", "seed", *SHOWN)])


def make(groups: list[str]) -> None:
    """Make the runs that are missing, all groups of a seed before the next seed.

    scikit-learn, which a process loads once, is loaded before: no run's seconds have it in them.
    """
    torch.set_num_threads(1)
    importlib.import_module("sklearn.tree")
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


def against_the_line(runs: list[Spec]) -> dict[tuple[str, int, float, bool], list[float]]:
    """By data set, horizon, price and whether it was told: sparing over the line, where both are known."""
    groups = ("table", "line", "horizons", "told", "long", "whole", "long_told", "table_prices", "dear", "unseen")
    known = [one for one in runs if one["group"] in groups]
    lines = {_place(one): one["cost"] for one in known if one.get("who") == "line"}
    ratios: dict[tuple[str, int, float, bool], list[float]] = {}
    for one in sorted((one for one in known if one.get("who") != "line"), key=_place):
        if _place(one) in lines:
            data, horizon, price, _ = _place(one)
            key = data, horizon, price, bool(one.get("told"))
            ratios.setdefault(key, []).append(one["cost"] / lines[_place(one)])
    return ratios


def _place(run: Spec) -> tuple[str, int, float, int]:
    return run["data"], run.get("horizon", 10_000), run.get("price", 1.0), run["seed"]


def main() -> None:
    """Print the mean of every group of runs, and what sparing costs beside the line."""
    rows: dict[str, list[Spec]] = {}
    for record in records():
        rows.setdefault(_key({**record, "seed": "all"}), []).append(record)
    heads = ("seeds", "cost", "s.e.", "most", "asked", "s")
    print(f"{'group':10} {'data set':16} {'what':40} " + " ".join(f"{head:>6}" for head in heads))
    for runs in rows.values():
        first = runs[0]
        what = " ".join(f"{k}={first[k]}" for k in SHOWN if k in first)
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
    print_ratios(against_the_line(records()))


def print_ratios(ratios: dict[tuple[str, int, float, bool], list[float]]) -> None:
    """Sparing over the line, case by case; the geometric mean of the main table, and of all other cases."""
    means = {case: float(np.exp(np.mean(np.log(found)))) for case, found in ratios.items()}
    for (data, horizon, price, told), found in ratios.items():
        what = f"{data:16} {horizon:7} rounds{' told' if told else '     '} price {price:<4g}"
        print(
            f"over the line: {what} {len(found):2} seeds: {means[data, horizon, price, told]:.3f}, "
            f"at most {max(found):.3f}"
        )
    table = [case for case in means if case[1] == 10_000 and case[2] == 1.0]
    others = [case for case in means if case not in table and case[1] <= 100_000 and (case[3] or case[1] > 3000)]
    for name, cases in (("10 000 rounds at a price of 1", table), ("other lengths, told, and prices", others)):
        if cases:
            mean = np.exp(np.mean([np.log(means[case]) for case in cases]))
            print(f"geometric mean of {len(cases)} cases, {name}: {mean:.3f}")


if __name__ == "__main__":
    if sys.argv[1:] == ["picture"]:
        picture()
    elif sys.argv[1:] == ["tables"]:
        RUNS.with_name("tables.md").write_text(sparing_tables.page(records()))
    elif sys.argv[1:] == ["limits"]:
        print(f"{len(limits(records()))} of {len(records())} runs are beyond the limits", *limits(records()), sep="\n")
    else:
        make(sys.argv[1:])
        main()
