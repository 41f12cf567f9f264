"""How NeuralCBP's time and memory a round grow with classes and features: `python -m benchmarks.growing`.

Each size runs in a process of its own, so that its peak memory is its own. Writes docs/results/growing.csv and .png.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

ROUNDS = 600
SIZES = [(n_classes, 100) for n_classes in (10, 100, 1000)] + [(10, n_features) for n_features in (10, 1000, 10_000)]
RESULTS = Path("docs/results")

PROGRAM = """
import json, resource, sys, time
import numpy as np, torch, sparingly as sp
torch.set_num_threads(1)
n_classes, n_features, rounds = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
y = rng.integers(n_classes, size=rounds)
X = (rng.normal(size=(n_classes, n_features))[y] + rng.normal(size=(rounds, n_features))).astype(np.float32)
game = sp.label_efficient(n_classes)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began = time.perf_counter()
strategy = sp.NeuralCBP(game, n_features, seed=0, start="informative", schedule="every 100")
built, began = time.perf_counter() - began, time.perf_counter()
asked = sum(r.action >= n_classes for r in sp.play(strategy, game, zip(X, y)))
taken = time.perf_counter() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"classes": n_classes, "features": n_features, "build_s": round(built, 3), "questions": asked,
                  "ms_a_round": round(taken / rounds * 1e3, 3), "peak_mb": round((peak - before) / 1024, 1)}))
"""


def measure() -> list[dict[str, float]]:
    rows = []
    for n_classes, n_features in sorted(set(SIZES)):
        command = [sys.executable, "-c", PROGRAM, str(n_classes), str(n_features), str(ROUNDS)]
        rows.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
        print(rows[-1], flush=True)
    return rows


def draw(rows: list[dict[str, float]]) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    for axis, by, fixed, value in zip(axes, ("classes", "features"), ("features", "classes"), (100, 10), strict=True):
        chosen = sorted((row for row in rows if row[fixed] == value), key=lambda row: row[by])
        axis.plot([row[by] for row in chosen], [row["ms_a_round"] for row in chosen], "o-", label="ms a round")
        axis.plot([row[by] for row in chosen], [row["peak_mb"] for row in chosen], "s--", label="MB at the peak")
        axis.set(xscale="log", yscale="log", xlabel=by, title=f"{value} {fixed}")
        axis.grid(alpha=0.3)
        axis.legend()
    figure.savefig(RESULTS / "growing.png", dpi=130)


def study() -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    rows = measure()
    with (RESULTS / "growing.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    draw(rows)


if __name__ == "__main__":
    study()
