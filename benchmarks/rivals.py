"""Rounds per second of every strategy on one stream, and the ratio to NeuralCBP's, taken in one run.

The stream has 20 features and three classes. What is counted is processor time, so that other work on the machine
matters little. Beside it, the strategies with networks on images, where the networks themselves are what takes time.
Writes speed.csv and speed_on_images.csv in docs/results/rivals.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

import sparingly as sp
from benchmarks.neural_cbp import mnist
from benchmarks.result_files import Row, keep

ROUNDS, IMAGES = 5000, 3000
ON_IMAGES = ("neuronal", "ineural", "neur_al", "cesa", "margin", "entropy")


def blobs() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=ROUNDS)
    return (rng.normal(size=(3, 20))[y] + rng.normal(size=(ROUNDS, 20))).astype(np.float32), y


def rounds_per_second(name: str, X: Any, y: Any) -> tuple[float, int] | None:
    """Of one strategy, and its questions; None if it cannot play the game."""
    n_classes = int(y.max()) + 1
    game = sp.label_efficient(n_classes)
    try:
        strategy = sp.strategies()[name](game, n_features=X.shape[1], seed=0)
    except ValueError:
        return None
    began = time.process_time()
    asked = sum(r.action >= n_classes for r in sp.play(strategy, game, zip(X, y, strict=True)))
    return len(X) / (time.process_time() - began), int(asked)


def compare(names: Iterable[str], X: Any, y: Any) -> list[Row]:
    """A row for each strategy that can play the game."""
    rounds_per_second("neural_cbp", X[:300], y[:300])
    reference = rounds_per_second("neural_cbp", X, y)
    assert reference is not None
    rows: list[Row] = []
    for name in names:
        measured = reference if name == "neural_cbp" else rounds_per_second(name, X, y)
        if measured is None:
            print(f"{name} does not play this game")
            continue
        rate, asked = measured
        ratio = round(rate / reference[0], 3)
        rows.append({"strategy": name, "rounds a second": round(rate), "ratio": ratio, "questions": asked})
    return rows


def main() -> None:
    """On blobs and on images."""
    torch.set_num_threads(1)
    print(f"{ROUNDS} rounds, 20 features, 3 classes, one thread, processor time")
    keep("rivals/speed.csv", compare(sp.strategies(), *blobs()))
    X, y, data = mnist()
    print(f"{IMAGES} rounds of {data}")
    keep("rivals/speed_on_images.csv", compare(("neural_cbp", *ON_IMAGES), X[:IMAGES], np.asarray(y)[:IMAGES]))


if __name__ == "__main__":
    main()
