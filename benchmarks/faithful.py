"""NeuralCBP beside the paper's tables, and what each difference between text and released code changes.

`python -m benchmarks.faithful show` writes docs/results/neural_cbp.md from the summary of the reproduction's runs in
docs/results/summary. `python -m benchmarks.faithful run [--seeds N] [--data NAME ...] [--strategy NAME ...]` first
plays what is missing of the released forms with one difference at a time set as the text or the publication has it, one
line a run in docs/results/differences.csv; `--changed` plays some differences only, `--minutes` limits the time.
"""

from __future__ import annotations

import argparse
import csv
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from sparingly.experiments.reports.statistical_tests import summarise
from sparingly.experiments.runs.experiment_settings import Option, Player, Run, Task
from sparingly.experiments.runs.many_runs import begun_within
from sparingly.experiments.runs.paper_studies import REFERENCE, TABLES_OF_NUMBERS, printed
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
COLUMNS = ["strategy", "data", "changed", "seed", "regret", "questions", "f1"]
KEY = COLUMNS[:4]
STOPPED = 20
"""A run that asked no more than so many questions has stopped asking."""
NOTHING = "nothing"
"""The released form as it is."""
ONE_BATCH = 10_000
"""So large a batch holds all labels."""
RELEASED: dict[str, dict[str, Option]] = {
    "neural_cbp": {"preset": "released"},
    "neuronal": {"preset": "released", "gamma": 3},
    "ineural": {"preset": "released", "gamma": 3},
    "cesa": {"rule": "released"},
    "margin": {"rule": "released"},
}
"""The forms behind the tables."""
_BEGINNING: dict[str, Option] = {"start": "each", "schedule": "paper", "wait": 0}
_CLASSIFIER: dict[str, Option] = {"rule": "published", "network": "mlp", "divisor": "features", "batch": ONE_BATCH}
OTHERWISE: dict[str, dict[str, Option]] = {
    "neural_cbp": {
        name: value for name, value in vars(PRESETS["paper"]).items() if value != vars(PRESETS["released"])[name]
    },
    "neuronal": {"discount": True, "stop": None, **_BEGINNING},
    "ineural": {"discount": True, "residual": "both", "epochs": 10, "learns": "announced", "stop": None, **_BEGINNING},
    "cesa": {**_CLASSIFIER, **_BEGINNING, "start": "none"},
    "margin": {**_CLASSIFIER, **_BEGINNING, "start": "none"},
}
"""What is changed, one at a time: as the text, the publication or, for the batch, a plain reading has it."""
OF_THE_TASK = {"test_rows": 2000, "horizon": 9999}
"""What no strategy sees: the F1 on the first rows only, and the released code's number of rounds."""
_TWO_CLASSES = ("mnist_binary", "magic_telescope", "adult")
ONLY_ON = {"cesa": _TWO_CLASSES, "margin": _TWO_CLASSES}
"""These are in the paper's tables of two classes only."""
Key = tuple[str, str, str, int]


def variants(strategy: str, data: str) -> dict[str, tuple[dict[str, Option], dict[str, Any]]]:
    """The released form as it is, and with one difference at a time, in words: options of the player, of the task."""
    found: dict[str, tuple[dict[str, Option], dict[str, Any]]] = {NOTHING: ({}, {})}
    found |= {f"{name} = {value}": ({name: value}, {}) for name, value in OTHERWISE[strategy].items()}
    if data in TABLES_OF_NUMBERS:
        found["class_order = sorted"] = ({}, {"class_order": "sorted"})
    if strategy == "neural_cbp":
        found["schedule = answers"] = ({"schedule": "answers"}, {})
        found |= {f"{name} = {value}": ({}, {name: value}) for name, value in OF_THE_TASK.items()}
    return found


def plan(strategies: list[str], data: list[str], seeds: int) -> Iterator[tuple[Key, Run]]:
    """Every run with its key, seed by seed."""
    for seed, strategy, name in itertools.product(range(seeds), strategies, data):
        if strategy in ONLY_ON and name not in ONLY_ON[strategy]:
            continue
        as_released = {"test_rows": None, "class_order": "drawn" if name in TABLES_OF_NUMBERS else "sorted"}
        for words, (options, task) in variants(strategy, name).items():
            changed = Task(dataset=name, **as_released | task)
            player = Player(strategy=strategy, options=RELEASED[strategy] | options)
            yield (strategy, name, words, seed), Run(task=changed, player=player, seed=seed)


def play_missing(todo: Iterable[tuple[Key, Run]], minutes: float | None) -> None:
    """Add a line to the file for each run that it lacks, until the time is over."""
    if not RUNS.exists():
        RUNS.write_text(",".join(COLUMNS) + "\n")
    known = set(pd.read_csv(RUNS)[KEY].itertuples(index=False, name=None))
    for key, run in begun_within(minutes, (one for one in todo if one[0] not in known)):
        record = execute(run)
        with RUNS.open("a", newline="") as file:
            csv.writer(file).writerow([*key, record.regret, record.queries, round(record.f1[-1][2], 4)])
        print(f"{' '.join(map(str, key)):<60} {record.regret:7.0f} {record.queries:5d}", flush=True)


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
    """What each difference changes, in full."""
    names = ["strategy", "data set", "changed", "seeds", "regret", "questions", "stopped asking", "F1"]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    for key, part in pd.read_csv(RUNS).groupby(KEY[:3], sort=False):
        cells = [key[0], NAMES[key[1]], f"`{key[2]}`", len(part), _spread(part["regret"]), _spread(part["questions"])]
        cells += [f"{(part['questions'] <= STOPPED).mean():.0%}", f"{part['f1'].mean():.3f}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def changes() -> list[str]:
    """How much regret each difference adds on each data set: mean ± standard error of differences seed by seed."""
    runs = pd.read_csv(RUNS)
    plain = runs[runs["changed"] == NOTHING].set_index(["strategy", "data", "seed"])["regret"]
    runs["added"] = runs["regret"] - pd.MultiIndex.from_frame(runs[["strategy", "data", "seed"]]).map(plain)
    changed = runs[runs["changed"] != NOTHING].dropna()
    added = {key: _spread(part, "+") for key, part in changed.groupby(["strategy", "changed", "data"])["added"]}
    data = [name for name in NAMES if name in set(changed["data"])]
    lines = [
        "| strategy | changed | " + " | ".join(NAMES[name] for name in data) + " |",
        "|" + "---|" * (len(data) + 2),
    ]
    for key in dict.fromkeys(changed[["strategy", "changed"]].itertuples(index=False, name=None)):
        cells = [added.get((*key, name), "-") for name in data]
        lines.append(f"| {key[0]} | `{key[1]}` | {' | '.join(cells)} |")
    return lines


def _spread(values: Any, sign: str = "") -> str:
    if not len(values):
        return "-"
    told = summarise(values)
    mean = f"{round(told.mean):{sign}}"
    return f"{mean} ± {told.error:.0f}" if told.n > 1 else mean


def write() -> None:
    """Replace the tables of the page, and leave its words alone."""
    text = PAGE.read_text()
    for mark, lines in (
        ("tables", rows()),
        ("one row", one_row()),
        ("changes", changes()),
        ("effects", effects()),
    ):
        head, _, rest = text.partition(f"<!-- {mark} -->")
        _, _, tail = rest.partition(f"<!-- end of {mark} -->")
        text = f"{head}<!-- {mark} -->\n\n" + "\n".join(lines) + f"\n\n<!-- end of {mark} -->{tail}"
    PAGE.write_text(text)


def study() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["run", "show"])
    parser.add_argument("--seeds", type=int, default=25)
    parser.add_argument("--data", nargs="+", default=["magic_telescope"], choices=list(NAMES))
    parser.add_argument("--strategy", nargs="+", default=["neural_cbp"], choices=list(RELEASED))
    parser.add_argument("--changed", nargs="+", help="only these options, or `nothing`")
    parser.add_argument("--minutes", type=float, help="begin no run after so many")
    arguments = parser.parse_args()
    if arguments.what == "run":
        todo = plan(arguments.strategy, arguments.data, arguments.seeds)
        wanted = (one for one in todo if not arguments.changed or one[0][2].split(" ")[0] in arguments.changed)
        play_missing(wanted, arguments.minutes)
    write()


if __name__ == "__main__":
    study()
