"""The paper's rows for every strategy, beside what ours gives: `python -m benchmarks.rivals_table`, which resumes.

The rows are those of `make reproduce`, from its records; five seeds of each are made if they are missing. Beside them
stand variants that change one thing, where the difference from the paper is to be explained.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
from pathlib import Path

import numpy as np
from scipy.stats import norm

from sparingly.experiments.runs.experiment_settings import Player, Run, Task
from sparingly.experiments.runs.many_runs import local, run_all
from sparingly.experiments.runs.paper_studies import REFERENCE, Printed, printed, study
from sparingly.experiments.runs.run_records import Results

DATA = ("magic_telescope", "adult", "mnist_binary", "mnist", "shuttle")
SEEDS, MOST = 5, 25
"""Made if they are missing, and shown if they are there."""
PAGE = Path("docs/results/rivals.md")
VARIANTS = (
    ("shuttle", "neuronal", {"gamma": 6, "wait": 0}, "updates from the first label on"),
    ("shuttle", "neuronal", {"gamma": 6, "epochs": 10}, "10 epochs"),
    ("magic_telescope", "neuronal", {"gamma": 6, "wait": 0}, "updates from the first label on"),
    ("magic_telescope", "neuronal", {"gamma": 6, "epochs": 10}, "10 epochs"),
    ("adult", "neuronal", {"gamma": 6, "epochs": 10}, "10 epochs"),
    ("magic_telescope", "cesa", {"rule": "released", "positive": 0}, "q of the other class"),
    ("adult", "cesa", {"rule": "released", "positive": 0}, "q of the other class"),
    ("adult", "ineural", {"gamma": 6, "gradient": "own"}, "only the gradient with respect to x"),
    ("mnist", "ineural", {"gamma": 6, "gradient": "own"}, "only the gradient with respect to x"),
    ("mnist", "ineural", {"gamma": 3, "gradient": "own"}, "only the gradient with respect to x"),
)
"""Data set, strategy, options, and what is changed in words."""


def rows() -> list[tuple[str, Run]]:
    """The paper's rows on the five data sets, with the run of seed 0 of each."""
    chosen = [(row, name) for name in ("q1", "q2") for row in study(name).rows if row.task.dataset in DATA]
    return [(name.upper(), Run(task=row.task, player=row.player, seed=0)) for row, name in chosen]


def variants() -> list[tuple[str, Run]]:
    return [
        (words, Run(task=Task(dataset=data), player=Player(strategy=name, options=options, label=name), seed=0))
        for data, name, options, words in VARIANTS
    ]


def seeds(run: Run) -> list[Run]:
    return [run.model_copy(update={"seed": seed}) for seed in range(MOST)]


def measured(results: Results, run: Run) -> tuple[np.ndarray, np.ndarray]:
    records = [results.read(one.id) for one in seeds(run) if results.has(one.id)]
    return np.array([r.regret for r in records]), np.array([r.queries for r in records])


def spread(values: np.ndarray) -> str:
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{values.mean():.0f} ± {error:.0f}"


def papers_error(paper: dict[tuple[str, str, str], Printed], row: Printed) -> float:
    """The standard error of a row of the paper, from its p-value against NeuralCBP if both vary alike; 0: unknown."""
    apart = abs(row.regret - paper[row.table, row.dataset, REFERENCE].regret)
    others = [one for key, one in paper.items() if key[:2] == (row.table, row.dataset) and 0.001 < one.p_value < 0.999]
    if row.strategy == REFERENCE and others:
        return statistics.median(papers_error(paper, one) for one in others)
    if not 0.001 < row.p_value < 0.999:
        return 0.0
    return apart / float(norm.isf(row.p_value / 2)) / math.sqrt(2)


def table(results: Results) -> list[str]:
    paper = {(row.table, row.dataset, row.strategy): row for row in printed()}
    lines = ["| table | data set | strategy | regret, paper | ours | questions, paper | ours | apart | seeds |"]
    lines += ["|---|---|---|---|---|---|---|---|---|"]
    for name, run in rows():
        regret, asked = measured(results, run)
        if len(regret):
            told = paper[name, run.task.dataset, run.player.shown]
            theirs, ours = papers_error(paper, told), regret.std(ddof=1) / math.sqrt(len(regret))
            apart = (regret.mean() - told.regret) / math.hypot(theirs, ours)
            known = f"{told.regret:.0f} ± {theirs:.0f}" if theirs else f"{told.regret:.0f}"
            cells = [name, run.task.dataset, run.player.shown, known, spread(regret)]
            cells += [f"{told.queries:.0f}", spread(asked), f"{apart:+.1f}", str(len(regret))]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def changed(results: Results) -> list[str]:
    lines = [
        "| data set | strategy | changed | regret | questions | each seed (questions) |",
        "|---|---|---|---|---|---|",
    ]
    for words, run in variants():
        regret, asked = measured(results, run)
        if len(regret):
            each = ", ".join(f"{r:.0f} ({q})" for r, q in zip(regret, asked, strict=True))
            cells = [run.task.dataset, run.player.strategy, words, spread(regret), spread(asked), each]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def write(results: Results) -> None:
    """Replace the two tables of the page, and leave its words alone."""
    text = PAGE.read_text()
    for mark, lines in (("rows", table(results)), ("variants", changed(results))):
        head, _, rest = text.partition(f"<!-- {mark} -->\n")
        _, _, tail = rest.partition(f"<!-- end of {mark} -->")
        text = head + f"<!-- {mark} -->\n\n" + "\n".join(lines) + f"\n\n<!-- end of {mark} -->" + tail
    PAGE.write_text(text)


def main_study(folder: str) -> None:
    results = Results(folder).open()
    plan = [run for seed in range(SEEDS) for _, first in rows() + variants() for run in [seeds(first)[seed]]]
    run_all(plan, results, local(int(os.environ.get("WORKERS", "2"))), watch=lambda run, well: print(run.id, well))
    write(results)


if __name__ == "__main__":
    main_study(sys.argv[1] if len(sys.argv) > 1 else "results/paper")
