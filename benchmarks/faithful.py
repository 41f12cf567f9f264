"""NeuralCBP beside the paper's tables, and what each difference between text and released code changes.

`python -m benchmarks.faithful show` writes docs/results/neural_cbp.md from the summary of the reproduction's runs in
docs/results/summary. `python -m benchmarks.faithful run [--seeds N] [--data NAME ...]` first plays what is missing of
the preset `released` with one difference at a time set as the paper's text has it, one line a run in
docs/results/differences.csv.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from sparingly.experiments.reports.statistical_tests import summarise
from sparingly.experiments.runs.experiment_settings import Player, Run, Task
from sparingly.experiments.runs.paper_studies import REFERENCE, printed
from sparingly.experiments.runs.single_run import execute
from sparingly.strategies.published.partial_monitoring.neural_cbp_presets import PRESETS

SUMMARY = Path("docs/results/summary/runs.csv")
RUNS = Path("docs/results/differences.csv")
PAGE = Path("docs/results/neural_cbp.md")
NAMES = {
    "mnist": "MNIST",
    "mnist_binary": "MNIST-binary",
    "fashion_mnist": "Fashion",
    "magic_telescope": "Magic",
    "adult": "Adult",
    "covertype": "covertype",
    "shuttle": "shuttle",
}
COLUMNS = ["data", "changed", "seed", "regret", "questions"]
STOPPED = 20
"""A run that asked no more than so many questions has stopped asking."""


def variants() -> dict[str, dict[str, Any]]:
    """The preset as it is, and with one difference at a time as the text has it, in words."""
    text = {name: value for name, value in vars(PRESETS["paper"]).items() if value != vars(PRESETS["released"])[name]}
    return {"nothing": {}, **{f"{name} = {value}": {name: value} for name, value in text.items()}}


def plan(data: list[str], seeds: int) -> Iterator[tuple[str, str, int, Run]]:
    """Every run, seed by seed."""
    for seed in range(seeds):
        for name in data:
            drawn = Task(dataset=name, class_order="drawn", test_rows=1)
            for words, options in variants().items():
                player = Player(strategy="neural_cbp", options={"preset": "released", **options})
                yield name, words, seed, Run(task=drawn, player=player, seed=seed)
            plain = Player(strategy="neural_cbp", options={"preset": "released"})
            ordered = drawn.model_copy(update={"class_order": "sorted"})
            yield name, "class_order = sorted", seed, Run(task=ordered, player=plain, seed=seed)


def play_missing(data: list[str], seeds: int) -> None:
    """Add a line to the file for each run that it lacks."""
    known = set() if not RUNS.exists() else set(pd.read_csv(RUNS)[COLUMNS[:3]].itertuples(index=False, name=None))
    if not known:
        RUNS.write_text(",".join(COLUMNS) + "\n")
    for name, words, seed, run in plan(data, seeds):
        if (name, words, seed) not in known:
            record = execute(run)
            with RUNS.open("a", newline="") as file:
                csv.writer(file).writerow([name, words, seed, record.regret, record.queries])
            print(f"{name:<16} {words:<28} seed {seed}: {record.regret:7.0f} {record.queries:5d}", flush=True)


def rows() -> list[str]:
    """NeuralCBP's rows of the tables, ours beside the paper's."""
    runs = pd.read_csv(SUMMARY)
    lines = ["| task | seeds | regret | paper | questions | paper's questions |", "|---|---|---|---|---|---|"]
    for row in printed():
        ours = runs[(runs["table"] == row.table) & (runs["dataset"] == row.dataset) & (runs["label"] == REFERENCE)]
        if row.strategy == REFERENCE and not row.table.endswith("_app") and len(ours):
            name = NAMES.get(row.dataset, row.dataset) + (", LeNet" if row.table == "Q3" else "")
            cells = [name, len(ours), _spread(ours["regret"]), f"{row.regret:.0f}"]
            lines.append(f"| {' | '.join(map(str, [*cells, _spread(ours['queries']), f'{row.queries:.0f}']))} |")
    return lines


def one_row() -> list[str]:
    """The same on one line, for a page that has little room."""
    runs, lines = pd.read_csv(SUMMARY), ["| | " + " | ".join(NAMES.values()) + " |", "|" + "---|" * (len(NAMES) + 1)]
    ours = runs[(runs["label"] == REFERENCE) & runs["table"].isin(["Q1", "Q2"])]
    known = {row.dataset: row for row in printed() if row.strategy == REFERENCE and row.table in ("Q1", "Q2")}
    here = [_spread(ours[ours["dataset"] == name]["regret"]) for name in NAMES]
    lines.append("| here | " + " | ".join(here) + " |")
    return [*lines, "| paper | " + " | ".join(f"{known[name].regret:.0f}" for name in NAMES) + " |"]


def effects() -> list[str]:
    """What each difference changes."""
    lines = ["| data set | changed | seeds | regret | questions | stopped asking |", "|---|---|---|---|---|---|"]
    if not RUNS.exists():
        return ["No run of these is kept yet."]
    for (data, words), part in pd.read_csv(RUNS).groupby(["data", "changed"], sort=False):
        stopped = f"{(part['questions'] <= STOPPED).mean():.0%}"
        cells = [data, f"`{words}`", len(part), _spread(part["regret"]), _spread(part["questions"]), stopped]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def _spread(values: Any) -> str:
    if not len(values):
        return "-"
    told = summarise(values)
    return f"{told.mean:.0f} ± {told.error:.0f}" if told.n > 1 else f"{told.mean:.0f}"


def write() -> None:
    """Replace the tables of the page, and leave its words alone."""
    text = PAGE.read_text()
    for mark, lines in (("tables", rows()), ("one row", one_row()), ("effects", effects())):
        head, _, rest = text.partition(f"<!-- {mark} -->")
        _, _, tail = rest.partition(f"<!-- end of {mark} -->")
        text = f"{head}<!-- {mark} -->\n\n" + "\n".join(lines) + f"\n\n<!-- end of {mark} -->{tail}"
    PAGE.write_text(text)


def study() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["run", "show"])
    parser.add_argument("--seeds", type=int, default=25)
    parser.add_argument("--data", nargs="+", default=["magic_telescope"], choices=list(NAMES))
    arguments = parser.parse_args()
    if arguments.what == "run":
        play_missing(arguments.data, arguments.seeds)
    write()


if __name__ == "__main__":
    study()
