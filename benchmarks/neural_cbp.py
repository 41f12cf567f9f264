"""NeuralCBP's speed as ratios taken in one run: against a plain version, against its own matrix products, and live."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor

import sparingly as sp
from benchmarks.plain_neural_cbp import PlainNeuralCBP
from benchmarks.result_files import keep

PLAIN_ROUNDS = 250
HORIZON = 10_000


def mnist() -> tuple[Tensor, np.ndarray[Any, Any], str]:
    """The MNIST stream of seed 0, or where there are no data, noise around ten centres of the same size."""
    if os.environ.get("SPARINGLY_DATA"):
        from sparingly.experiments.datasets import load
        from sparingly.experiments.streams import stream

        source = stream(load("mnist", "paper"), seed=0, horizon=HORIZON)
        return torch.from_numpy(np.ascontiguousarray(source.X.reshape(len(source), -1))), source.y, "MNIST"
    rng = np.random.default_rng(0)
    y = rng.integers(10, size=HORIZON)
    X = rng.normal(size=(10, 784))[y] * 0.3 + rng.normal(size=(HORIZON, 784))
    return torch.from_numpy(X.astype(np.float32)), y, "ten blobs (SPARINGLY_DATA is not set)"


def product(X: Tensor, y: np.ndarray[Any, Any]) -> tuple[list[int], float, sp.NeuralCBP]:
    game = sp.label_efficient(10)
    strategy = sp.NeuralCBP(game, X.shape[1], preset="released", seed=0)
    began = time.process_time()
    actions = [r.action for r in sp.play(strategy, game, zip(X, y, strict=True))]
    return actions, time.process_time() - began, strategy


def plain(X: Tensor, y: np.ndarray[Any, Any], rounds: int) -> tuple[list[int], float]:
    strategy = PlainNeuralCBP(X.shape[1], 10, seed=0)
    actions, began = [], time.process_time()
    for x, outcome in zip(X[:rounds], y[:rounds], strict=True):
        action = strategy.act(x)
        strategy.learn(action, int(outcome) if action == 10 else None)
        actions.append(action)
    return actions, time.process_time() - began


class Products:
    """The matrix products that the run made, noted on the way and made again alone."""

    def __init__(self) -> None:
        self.shapes: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    def note(self, X: Tensor, y: np.ndarray[Any, Any]) -> None:
        from torch.utils._python_dispatch import TorchDispatchMode

        shapes = self.shapes

        class Noting(TorchDispatchMode):
            def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                name = function.__name__.split(".")[0].rstrip("_")
                if name in ("mm", "addmm", "mv", "dot"):
                    shapes.append(tuple(tuple(a.shape) for a in args[-2:]))  # type: ignore[arg-type]
                return function(*args, **(kwargs or {}))

        with Noting():
            product(X, y)

    def seconds(self) -> float:
        """Only the products, on tensors of the same shapes."""
        tensors = {shape: torch.randn(*shape) for pair in self.shapes for shape in pair}
        pairs = [(tensors[a], tensors[b]) for a, b in self.shapes]
        began = time.process_time()
        for a, b in pairs:
            torch.matmul(a, b)
        return time.process_time() - began


def live(strategy: sp.NeuralCBP, X: Tensor) -> list[float]:
    taken = []
    for x in X:
        began = time.process_time()
        strategy.decide(strategy.assess(x[None]), 0)
        taken.append(time.process_time() - began)
    return taken


def main() -> None:
    """Take the times, and write them to docs/results/neural_cbp_speed.csv."""
    torch.set_num_threads(1)
    X, y, name = mnist()
    print(f"{name}, {HORIZON:,} rounds, 784 features, 10 classes, one thread")
    product(X[:600], y[:600])
    actions, seconds, strategy = product(X, y)
    plain_actions, plain_seconds = plain(X, y, PLAIN_ROUNDS)
    same = sum(a == b for a, b in zip(plain_actions, actions, strict=False))
    whole = plain_seconds / PLAIN_ROUNDS * HORIZON
    products = Products()
    products.note(X, y)
    alone = min(products.seconds() for _ in range(3))
    taken = 1e3 * np.array(live(strategy, X[:1000]))
    figures = (
        ("product", seconds, "s"),
        ("product, rounds a second", HORIZON / seconds, ""),
        (f"plain, first {PLAIN_ROUNDS} rounds", plain_seconds, "s"),
        (f"plain, of its {PLAIN_ROUNDS} decisions are the product's", same, ""),
        ("plain, extrapolated", whole, "s"),
        ("plain over product (target: 100 or more)", whole / seconds, "times"),
        ("matrix products alone", alone, "s"),
        ("product over matrix products (target: 3 or less)", seconds / alone, "times"),
        ("live, assess and decide, median (target: below 1)", float(np.median(taken)), "ms"),
        ("live, assess and decide, p99", float(np.quantile(taken, 0.99)), "ms"),
    )
    keep(
        "neural_cbp_speed.csv",
        [{"what": what, "figure": round(value, 3), "unit": unit} for what, value, unit in figures],
    )


if __name__ == "__main__":
    main()
