"""NeuralCBP beside the paper's tables: `python -m benchmarks.faithful run|show [--seeds N]`.

`run` plays what is missing (10 000 rounds each, from the folder SPARINGLY_DATA) and writes one small JSON file a run
under results/faithful; `show` prints the tables and writes docs/results/neural_cbp.md from whatever is there.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import sparingly as sp
from sparingly.experiments.datasets import load
from sparingly.experiments.streams import stream

RESULTS = Path("results/faithful")
PAGE = Path("docs/results/neural_cbp.md")
FP_SENSITIVE = [[0.0, 1.0], [0.5, 0.0]]

PAPER = {
    "mnist": (1811.96, 1305.24),
    "mnist_binary": (1351.92, 638.32),
    "magic_telescope": (3370.36, 496.68),
    "adult": (2968.88, 127.64),
    "fashion_mnist": (2898.24, 1523.92),
    "covertype": (5060.24, 446.96),
    "shuttle": (907.56, 190.08),
    "mnist lenet": (954.458, 439.75),
}
"""Mean regret and mean questions in the paper's tables Q1 to Q3."""


def tasks(seeds: int) -> list[dict[str, Any]]:
    """Every run, seed by seed, so that a table of few seeds is whole early."""
    wanted = []
    for seed in range(seeds):
        for name in PAPER:
            lenet = name.endswith("lenet")
            if seed < (3 if lenet else 6) or name in VARIABLE:
                network = "lenet" if lenet else "mlp"
                wanted.append({"task": name, "dataset": name.split()[0], "network": network, "seed": seed})
        if seed < 6:
            wanted.append(
                {"task": "mnist_binary fp", "dataset": "mnist_binary", "network": "mlp", "seed": seed, "fp": True}
            )
        for variant, options in VARIANTS.items():
            for name in VARIABLE:
                wanted.append({"task": f"{name} {variant}", "dataset": name, "network": "mlp", "seed": seed} | options)
    return wanted


VARIABLE = ("magic_telescope", "shuttle", "adult", "covertype")
"""Where runs differ so much that a handful of seeds says little."""

VARIANTS: dict[str, dict[str, Any]] = {
    "absolute widths": {"options": {"widths": "absolute"}},
    "no early stop": {"options": {"stop": None}},
    "labels in random order": {"relabel": True},
}
"""What might explain a difference from the paper, one change at a time."""


def run(task: dict[str, Any]) -> dict[str, Any]:
    """One run, as plain numbers."""
    torch.set_num_threads(1)
    data = load(task["dataset"], "paper")
    source = stream(data, seed=task["seed"], horizon=10_000)
    game = sp.label_efficient(costs=FP_SENSITIVE) if task.get("fp") else sp.label_efficient(data.n_classes)
    y = source.y
    if task.get("relabel"):
        y = np.random.default_rng([task["seed"], 1]).permutation(data.n_classes)[y]
    X = source.X if task["network"] == "lenet" else source.X.reshape(len(source), -1)
    shape = (1, 28, 28) if task["network"] == "lenet" else X.shape[1]
    options = task.get("options", {})
    strategy = sp.NeuralCBP(game, shape, preset="released", network=task["network"], seed=task["seed"], **options)
    began = time.perf_counter()
    rounds = list(sp.play(strategy, game, zip(X, y, strict=True)))
    seconds = time.perf_counter() - began
    action, outcome = (np.array([getattr(r, name) for r in rounds]) for name in ("action", "outcome"))
    announced = action < game.n_outcomes
    return task | {
        "regret": sum(r.regret for r in rounds),
        "questions": int((~announced).sum()),
        "false_positives": int(((action == 0) & (outcome != 0)).sum()),
        "false_negatives": int((announced & (action != 0) & (outcome == 0)).sum()),
        "majority": int(len(outcome) - np.bincount(outcome).max()),
        "seconds": round(seconds, 2),
    }


def play_missing(seeds: int) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    for task in tasks(seeds):
        path = RESULTS / f"{task['task'].replace(' ', '-')}-{task['seed']}.json"
        if not path.exists():
            result = run(task)
            partial = path.with_suffix(".partial")
            partial.write_text(json.dumps(result))
            partial.replace(path)
            print(
                f"{task['task']:<32} seed {task['seed']}: {result['regret']:7.0f} {result['questions']:5d}", flush=True
            )


def collected() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(RESULTS.glob("*.json")):
        result = json.loads(path.read_text())
        found.setdefault(result["task"], []).append(result)
    return found


def mean(results: list[dict[str, Any]], what: str) -> tuple[float, float]:
    values = np.array([result[what] for result in results], dtype=float)
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def tables(found: dict[str, list[dict[str, Any]]]) -> str:
    lines = [
        "| task | seeds | regret | paper | ratio | questions | paper | at most 10 questions | majority class |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for task, results in sorted(found.items(), key=lambda item: (item[0].split()[0], item[0])):
        (regret, error), (questions, spread) = mean(results, "regret"), mean(results, "questions")
        paper = PAPER.get(task, (float("nan"), float("nan")))
        collapsed = sum(result["questions"] <= 10 for result in results)
        lines.append(
            f"| {task} | {len(results)} | {regret:.0f} ± {error:.0f} | {paper[0]:.0f} | {regret / paper[0]:.2f} "
            f"| {questions:.0f} ± {spread:.0f} | {paper[1]:.0f} | {collapsed} | {mean(results, 'majority')[0]:.0f} |"
        )
    if {"mnist_binary", "mnist_binary fp"} <= set(found):
        lines += ["", "| MNIST-binary | false positives | false negatives |", "|---|---|---|"]
        for label, task in (("uniform costs", "mnist_binary"), ("a false positive costs twice", "mnist_binary fp")):
            results = found[task]
            counts = [
                f"{mean(results, what)[0]:.0f} ± {mean(results, what)[1]:.0f}"
                for what in ("false_positives", "false_negatives")
            ]
            lines.append(f"| {label} | {counts[0]} | {counts[1]} |")
    return "\n".join(lines).replace("nan", "-")


def study() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["run", "show"])
    parser.add_argument("--seeds", type=int, default=15)
    arguments = parser.parse_args()
    if arguments.what == "run":
        play_missing(arguments.seeds)
    text = tables(collected())
    print(text)
    head, _, tail = PAGE.read_text().partition("<!-- tables -->") if PAGE.exists() else ("# NeuralCBP\n\n", "", "")
    _, _, tail = tail.partition("<!-- end of tables -->")
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(f"{head}<!-- tables -->\n\n{text}\n\n<!-- end of tables -->{tail}")


if __name__ == "__main__":
    study()
