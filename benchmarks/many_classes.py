"""Time and memory with texts and very many classes: `python -m benchmarks many_classes`.

Processor time of one core, so that other work on the machine matters little; each part runs in a process of its own, so
that its peak memory is its own. Writes docs/results/many_classes.csv. `python -m benchmarks encoders` has the texts a
second of each encoder.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.result_files import keep

ROUNDS = 1500
CLASSES = 1000
Figures = dict[str, tuple[float, str]]
"""By what was measured: the figure and its unit."""


def a_run(encoder: str) -> Figures:
    """13 083 messages with 77 classes, from their texts on: encoded, and played by Sparing."""
    import sparingly as sp
    from sparingly.encoders import text_encoder
    from sparingly.experiments.datasets import load

    data = load("banking77", encoder="hashing")  # only its texts: an encoder does not encode the same text twice
    order = np.random.default_rng(0).permutation(len(data))
    assert data.texts is not None
    texts = [data.texts[place] for place in order]
    began = time.process_time()
    X = text_encoder(encoder)(texts)
    encoded = time.process_time() - began
    game = sp.label_efficient(data.n_classes, classes=list(data.classes))
    strategy = sp.Sparing(game, X.shape[1], class_vectors=encoder)
    sum(one.cost for one in sp.play(strategy, game, zip(X, data.y[order].tolist(), strict=True)))
    return {"all": (time.process_time() - began, "s"), "of it encoding": (encoded, "s")}


def live(encoder: str) -> Figures:
    """Single texts observed by an agent on disk, its questions answered."""
    import sparingly as sp
    from sparingly.experiments.datasets import load

    data = load("banking77", encoder="hashing")  # only its texts, as above
    order = np.random.default_rng(0).permutation(len(data))[:ROUNDS]
    assert data.texts is not None
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder) / "agent.db"
        agent = sp.Agent(list(data.classes), path=where, training="background", encoder=encoder)
        labels = [data.classes[data.y[place]] for place in order]
        found = _observe(agent, [data.texts[place] for place in order], labels)
        agent.close()
    return found


def thousand(strategy: str) -> Figures:
    """An agent with a thousand classes, from its making on."""
    import sparingly as sp

    rng = np.random.default_rng(0)
    y = rng.integers(CLASSES, size=ROUNDS)
    X = (rng.normal(size=(CLASSES, 256))[y] + 0.5 * rng.normal(size=(ROUNDS, 256))).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        names = [f"class {k}" for k in range(CLASSES)]
        began = time.process_time()
        agent = sp.Agent(names, path=Path(folder) / "agent.db", strategy=strategy, training="background")
        made = time.process_time() - began
        found = _observe(agent, list(X), [names[k] for k in y])
        began = time.process_time()
        agent.add_class("one more")
        added = time.process_time() - began
        agent.close()
    return {"making it": (made, "s"), **found, "one more class": (added, "s")}


def _observe(agent: object, X: list, labels: list[str]) -> Figures:
    took, wall, asked = [], [], 0
    for x, label in zip(X, labels, strict=True):
        began, at = time.process_time(), time.perf_counter()
        ticket = agent.observe(x)  # type: ignore[attr-defined]
        took.append(time.process_time() - began)
        wall.append(time.perf_counter() - at)
        if ticket.asks:
            asked += 1
            agent.answer(ticket.id, label)  # type: ignore[attr-defined]
    return {
        "first observation": (took[0], "s"),
        "then, at the median": (1e3 * median(took[1:]), "ms"),
        "then, at the median by the clock": (1e3 * median(wall[1:]), "ms"),
        f"asked of {len(X)}": (asked, ""),
    }


RUN, LIVE, THOUSAND = "13 083 messages, 77 classes", "live agent, 77 classes", f"live agent, {CLASSES} classes"
PARTS: dict[tuple[str, str], Callable[[str], Figures]] = {
    (RUN, "minilm"): a_run,
    (RUN, "static"): a_run,
    (LIVE, "minilm"): live,
    (LIVE, "static"): live,
    (THOUSAND, "sparing"): thousand,
    (THOUSAND, "neural_cbp"): thousand,
}
"""By what is measured, and with which encoder or strategy."""


def main() -> None:
    """Every part, with the most memory that its process had."""
    rows = []
    for what, by in PARTS:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.many_classes", what, by], stdout=subprocess.PIPE, check=True
        )
        for name, (figure, unit) in json.loads(done.stdout).items():
            rows.append({"what": what, "with": by, "measured": name, "figure": round(figure, 3), "unit": unit})
            print(*rows[-1].values(), flush=True)
    keep("many_classes.csv", rows)


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    found = PARTS[sys.argv[1], sys.argv[2]](sys.argv[2])
    found["memory at most"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MB")
    print(json.dumps(found))
