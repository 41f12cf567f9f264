"""Time and memory with texts and very many classes: `python -m benchmarks many_classes`.

Processor time of one core, so that other work on the machine matters little; each part runs in a process of its own, so
that its peak memory is its own. `python -m benchmarks encoders` has the texts a second of each encoder.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

ROUNDS = 1500
CLASSES = 1000


def a_run(encoder: str) -> None:
    """13 083 messages with 77 classes, from their texts on: encoded, and played by Sparing."""
    import sparingly as sp
    from sparingly.encoders import text_encoder
    from sparingly.experiments.datasets import load

    data = load("banking77", encoder=encoder)
    order = np.random.default_rng(0).permutation(len(data))
    assert data.texts is not None
    texts = [data.texts[place] for place in order]
    began = time.process_time()
    X = text_encoder(encoder)(texts)
    encoded = time.process_time() - began
    game = sp.label_efficient(data.n_classes, classes=list(data.classes))
    strategy = sp.Sparing(game, X.shape[1], class_vectors=encoder)
    cost = sum(one.cost for one in sp.play(strategy, game, zip(X, data.y[order].tolist(), strict=True)))
    whole = time.process_time() - began
    print(f"{encoder}, {len(X)} messages, {data.n_classes} classes", end=": ")
    print(f"{whole:.1f} s, {encoded:.1f} s of it encoding; cost {cost:.0f}")


def live(encoder: str) -> None:
    """Single texts observed by an agent on disk, its questions answered."""
    import sparingly as sp
    from sparingly.experiments.datasets import load

    data = load("banking77", encoder=encoder)
    order = np.random.default_rng(0).permutation(len(data))[:ROUNDS]
    assert data.texts is not None
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder) / "agent.db"
        agent = sp.Agent(list(data.classes), path=where, training="background", encoder=encoder)
        print(f"{encoder}, live", end="; ")
        _observe(agent, [data.texts[place] for place in order], [data.classes[data.y[place]] for place in order])
        agent.close()


def thousand(strategy: str) -> None:
    """An agent with a thousand classes, from its making on."""
    import sparingly as sp

    rng = np.random.default_rng(0)
    y = rng.integers(CLASSES, size=ROUNDS)
    X = (rng.normal(size=(CLASSES, 256))[y] + 0.5 * rng.normal(size=(ROUNDS, 256))).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        names = [f"class {k}" for k in range(CLASSES)]
        began = time.process_time()
        agent = sp.Agent(names, path=Path(folder) / "agent.db", strategy=strategy, training="background")
        print(f"{strategy}, {CLASSES} classes: made in {time.process_time() - began:.2f} s", end="; ")
        _observe(agent, list(X), [names[k] for k in y])
        began = time.process_time()
        agent.add_class("one more")
        print(f"    one more class: {time.process_time() - began:.2f} s")
        agent.close()


def _observe(agent: object, X: list, labels: list[str]) -> None:
    took, wall, asked = [], [], 0
    for x, label in zip(X, labels, strict=True):
        began, at = time.process_time(), time.perf_counter()
        ticket = agent.observe(x)  # type: ignore[attr-defined]
        took.append(time.process_time() - began)
        wall.append(time.perf_counter() - at)
        if ticket.asks:
            asked += 1
            agent.answer(ticket.id, label)  # type: ignore[attr-defined]
    half = len(took) // 2
    print(
        f"first observation {took[0]:.2f} s, then {1e3 * median(took[1:]):.2f} ms at the median (late half "
        f"{1e3 * median(took[half:]):.2f} ms; by the clock {1e3 * median(wall[1:]):.2f} ms), {asked} of {len(X)} asked"
    )


PARTS: dict[str, Callable[[], None]] = {
    "run minilm": lambda: a_run("minilm"),
    "run static": lambda: a_run("static"),
    "live minilm": lambda: live("minilm"),
    "live static": lambda: live("static"),
    "sparing": lambda: thousand("sparing"),
    "neural_cbp": lambda: thousand("neural_cbp"),
}


def main() -> None:
    """Every part, with the most memory that its process had."""
    for name in PARTS:
        subprocess.run([sys.executable, "-m", "benchmarks.many_classes", name], check=True)


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    PARTS[sys.argv[1]]()
    print(f"    {sys.argv[1]}: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB at most", flush=True)
