"""Where Sparing's processor time goes, and what it would be if parts of it took none.

`python -m benchmarks sparing_parts [DATA [ROUNDS]]` plays that many rounds of a data set (100 000 of covertype if
nothing is said) with a timer around each part: the seconds of each, and how many rounds a second there would be without
it. Where nothing is said the table is written to docs/results/sparing/parts.csv.
"""

from __future__ import annotations

import functools
import importlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

import sparingly as sp
from benchmarks.result_files import keep
from sparingly.experiments.datasets import load
from sparingly.experiments.streams import stream
from sparingly.strategies.sparing.knowledge import Knowledge
from sparingly.strategies.sparing.models.ensemble import MLPEnsemble
from sparingly.strategies.sparing.models.kernel import KernelMembers
from sparingly.strategies.sparing.models.trees import TreeMembers

SEED = 1005
"""Not one that is reported."""
REST = "the rest: questions, checks and the loop over rounds"
PARTS: dict[str, tuple[type, str]] = {
    "training": (Knowledge, "train"),
    "training: networks": (MLPEnsemble, "fit"),
    "training: trees": (TreeMembers, "fit"),
    "training: kernels": (KernelMembers, "fit"),
    "assessing blocks": (Knowledge, "assess"),
    "assessing blocks: walking down trees": (TreeMembers, "probabilities"),
}
"""By name: the method that is timed; what is in another part has its name before the colon."""


@contextmanager
def timed(owner: type, name: str, seconds: Counter[str], part: str) -> Iterator[None]:
    """Add the processor time of a method's calls to a part."""
    method: Callable[..., Any] = getattr(owner, name)

    @functools.wraps(method)
    def measured(*arguments: Any, **options: Any) -> Any:
        began = time.process_time()
        try:
            return method(*arguments, **options)
        finally:
            seconds[part] += time.process_time() - began

    setattr(owner, name, measured)
    try:
        yield
    finally:
        setattr(owner, name, method)


def parts(name: str, rounds: int) -> tuple[int, Counter[str]]:
    """How many questions were asked on a data set, and the seconds of each part and of the whole.

    scikit-learn, which a process loads once, is loaded before.
    """
    importlib.import_module("sklearn.tree")
    data = load(name, preprocessing="encoded")
    played, game = stream(data, SEED, rounds), sp.label_efficient(data.n_classes)
    strategy = sp.Sparing(game, data.n_features, seed=SEED)
    seconds: Counter[str] = Counter()
    with ExitStack() as timers:
        for part, (owner, name) in PARTS.items():
            timers.enter_context(timed(owner, name, seconds, part))
        began = time.process_time()
        labelled = zip(played.X, played.answers.tolist(), strict=True)
        asked = sum(one.action >= game.n_outcomes for one in sp.play(strategy, game, labelled))
        seconds["all"] = time.process_time() - began
    seconds[REST] = seconds["all"] - seconds["training"] - seconds["assessing blocks"]
    return asked, seconds


def command(arguments: list[str]) -> int:
    """Print the table."""
    torch.set_num_threads(1)
    name, rounds = arguments[0] if arguments else "covertype", int(arguments[1]) if arguments[1:] else 100_000
    asked, seconds = parts(name, rounds)
    print(f"{rounds} rounds of {name}, seed {SEED}, {asked} questions\n")
    rows = []
    for part in ("all", *PARTS, REST):
        left = seconds["all"] - (seconds[part] if part != "all" else 0.0)
        share = round(seconds[part] / seconds["all"], 3)
        row = {"part": part, "seconds": round(seconds[part], 2), "share": share}
        rows.append({**row, "rounds a second without it": round(rounds / left)})
    keep("sparing/parts.csv", rows, whole=not arguments)
    return 0
