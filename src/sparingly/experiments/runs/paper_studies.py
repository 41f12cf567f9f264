"""The paper's experiments as studies, and the figures it printed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any, Literal

from sparingly.experiments.runs.experiment_settings import Option, Player, Row, SettingsError, Study, Task

FP_SENSITIVE = ((0.0, 1.0), (0.5, 0.0))
"""Announcing 0 when 1 is true costs 1, announcing 1 when 0 is true costs 1/2."""

_STRATEGIES: dict[str, tuple[str, dict[str, Option]]] = {
    "Neural-CBP": ("neural_cbp", {"preset": "released"}),
    "IneurAL (official)": ("ineural", {"preset": "released", "gamma": 6}),
    "IneurAL (less exploration)": ("ineural", {"preset": "released", "gamma": 3}),
    "Neuronal (official)": ("neuronal", {"preset": "released", "gamma": 6}),
    "Neuronal (less exploration)": ("neuronal", {"preset": "released", "gamma": 3}),
    "Cesa": ("cesa", {"rule": "released"}),
    "Margin": ("margin", {"rule": "released"}),
}
LENET_SEEDS = {"mnist": 25, "fashion_mnist": 25, "cifar10": 5}
"""Convolutional networks take minutes a run on a processor."""
PRINTED_FALSE_POSITIVES = {"uniform costs": (336.0, 112.24), "FP-sensitive costs": (136.0, 30.0)}
"""Mean and deviation of the false positives on MNIST binary, as the paper gives them in its text."""
TABLE_SEEDS = 75
"""Of tables of numbers, where runs that stop asking by chance make a mean of 25 say little."""
TABLES_OF_NUMBERS = ("magic_telescope", "adult", "covertype", "shuttle")
REFERENCE = "Neural-CBP"
TABLES = ("q1", "q2", "q3", "q4", "q1_app", "q2_app", "q3_app")
ALL = TABLES


@dataclass(frozen=True)
class PrintedRow:
    """A row of a table of the paper: means over 25 runs."""

    table: str
    dataset: str
    strategy: str
    regret: float
    queries: float
    wins: float
    p_value: float


@lru_cache
def printed() -> tuple[PrintedRow, ...]:
    """Every row of the paper's tables.

    >>> [(row.dataset, row.regret) for row in printed() if row.table == "Q1" and row.strategy == "Margin"]
    [('mnist_binary', 3169.6), ('magic_telescope', 3574.12), ('adult', 3166.56)]
    """
    text = (resources.files("sparingly.experiments.runs") / "paper.json").read_text()
    return tuple(PrintedRow(**row) for row in json.loads(text)["rows"])


def study(name: str, *, seeds: int | None = None, horizon: int = 10_000, first_seed: int = 0) -> Study:
    """One of the paper's experiments, with 25 seeds, or 75 on tables of numbers, unless seeds are given.

    As in the code behind the paper's tables, the classes of tables of numbers are numbered anew for each seed, and F1
    is measured on all rows that are held out.

    >>> len(study("q1").rows), len(study("q2").rows), len(study("q3").rows), len(study("q4").rows)
    (21, 20, 9, 6)
    >>> next(study("q2").runs()).id
    'mnist-neural_cbp-preset=released-seed0-...'
    """
    if name not in TABLES:
        raise SettingsError(f"there is no experiment {name!r}: it is one of {', '.join(TABLES)} or all")
    rows = _cost_rows(horizon) if name == "q4" else _table_rows(name, horizon)
    if seeds is None:
        rows = tuple(row.model_copy(update={"seeds": _seeds(name, row.task.dataset)}) for row in rows)
    most = max(row.seeds or 1 for row in rows)
    return Study(name=name, rows=rows, seeds=seeds or most, first_seed=first_seed)


def described() -> list[str]:
    """Each of the paper's experiments in a line: its name, the data sets, and how many strategies.

    >>> described()[0]
    'q1      mnist_binary, magic_telescope, adult: 7 strategies'
    """
    lines = []
    for name in TABLES:
        rows = study(name).rows
        sets = dict.fromkeys(row.task.dataset for row in rows)
        lines.append(f"{name:<7} {', '.join(sets)}: {len(rows) // len(sets)} strategies")
    return [*lines, f"all     {', '.join(ALL)}"]


def _table_rows(name: str, horizon: int) -> tuple[Row, ...]:
    table = name[:2].upper() + name[2:]
    rows = [row for row in printed() if row.table == table]
    return tuple(Row(table=table, task=_task(row.dataset, horizon), player=_player(row.strategy, name)) for row in rows)


def _seeds(name: str, dataset: str) -> int:
    if name.startswith("q3"):
        return LENET_SEEDS[dataset]
    return TABLE_SEEDS if dataset in TABLES_OF_NUMBERS else 25


def _task(dataset: str, horizon: int, costs: tuple[tuple[float, ...], ...] | None = None) -> Task:
    drawn: Literal["drawn", "sorted"] = "drawn" if dataset in TABLES_OF_NUMBERS else "sorted"
    return Task(dataset=dataset, horizon=horizon, costs=costs, class_order=drawn, test_rows=None)


def _player(label: str, name: str) -> Player:
    strategy, options = _STRATEGIES[label]
    extra: dict[str, Any] = {"network": "lenet"} if name.startswith("q3") else {}
    if name.endswith("_app") and strategy == "neuronal":
        extra["learning_rate"] = 1e-4
    return Player(strategy=strategy, options=options | extra, label=label)


def _cost_rows(horizon: int) -> tuple[Row, ...]:
    """NeuralCBP on the binary data sets, with uniform and with FP-sensitive costs."""
    strategy, options = _STRATEGIES[REFERENCE]
    rows = []
    for dataset in ("adult", "magic_telescope", "mnist_binary"):
        for label, costs in (("uniform costs", None), ("FP-sensitive costs", FP_SENSITIVE)):
            task = _task(dataset, horizon, costs)
            rows.append(Row(table="Q4", task=task, player=Player(strategy=strategy, options=options, label=label)))
    return tuple(rows)
