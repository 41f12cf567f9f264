"""Our runs beside the runs behind the paper's tables: two samples, not two means.

The authors published the final regret and the number of questions of each of their runs. Where that file is at hand, as
`paper/runs.csv` beside the folder SPARINGLY_DATA or where an option says, each row of a table is compared by
two-sample tests on regret and on questions.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.experiments.reports.figures import box_style, fill_boxes, panels_by_dataset, saved, with_legend
from sparingly.experiments.reports.statistical_tests import Summary, summarise
from sparingly.experiments.runs.experiment_settings import SettingsError
from sparingly.experiments.runs.paper_studies import REFERENCE

LEVEL = 0.01
"""Rows agree where no test finds a difference at this level."""
STOPPED = 20
"""A run that asked no more than so many questions has stopped asking."""
SLOWER = ", rate 0.0001"
"""How the file marks the rows of the appendix, Neuronal with a tenth of the learning rate."""
COLUMNS = ["table", "dataset", "strategy", "regret", "questions"]
COSTS = {"FP-sensitive costs": "Neural-CBP"}
"""The rows of Q4 that have other costs, which is what the file holds of Q4."""


@dataclass(frozen=True)
class RowBesidePaper:
    """One row of a table: our runs, theirs, and what tests say.

    Attributes
    ----------
    regret, questions
        Ours and theirs.
    p_values
        Of the rank test (Mann-Whitney) and of Kolmogorov and Smirnov's, on regret and then on questions.
    stopped
        The share of our runs, and of theirs, that stopped asking.
    """

    table: str
    dataset: str
    label: str
    regret: tuple[Summary, Summary]
    questions: tuple[Summary, Summary]
    p_values: tuple[float, float, float, float]
    stopped: tuple[float, float]

    @property
    def agrees(self) -> bool:
        """Whether no test finds a difference."""
        return min(self.p_values) >= LEVEL

    @property
    def apart(self) -> tuple[float, float]:
        """Ours less theirs in joint standard errors: regret, questions."""
        both = (self.regret, self.questions)
        errors = [float(np.hypot(ours.error, theirs.error)) for ours, theirs in both]
        apart = [
            (ours.mean - theirs.mean) / error if error else float("nan")
            for (ours, theirs), error in zip(both, errors, strict=True)
        ]
        return apart[0], apart[1]


def paper_runs(path: Path | None = None) -> Any | None:
    """The authors' runs, with the appendix's rows as tables of their own; None if the file is not at hand."""
    import pandas as pd

    place = path or Path(os.environ.get("SPARINGLY_DATA", "data")).parent / "paper" / "runs.csv"
    if not place.is_file():
        if path is not None:
            raise SettingsError(f"{path} holds no runs: there is no such file")
        return None
    found = pd.read_csv(place)
    missing = [name for name in COLUMNS if name not in found]
    if missing:
        raise SettingsError(f"{place} has no column {missing[0]!r}: it needs {', '.join(COLUMNS)}")
    slower = found["strategy"].str.endswith(SLOWER)
    found["table"] = found["table"].where(~slower, found["table"] + "_app")
    found["strategy"] = found["strategy"].str.removesuffix(SLOWER)
    return found


def beside_the_paper(runs: Any, theirs: Any) -> list[RowBesidePaper]:
    """Every row that both have, of at least two runs each, in the order of ours."""
    samples = dict(iter(theirs.groupby(["table", "dataset", "strategy"])))
    rows = []
    for (table, dataset, label), ours in runs.groupby(["table", "dataset", "label"], sort=False):
        other = samples.get((table, dataset, COSTS.get(label, label)))
        if other is not None and len(ours) > 1 and len(other) > 1:
            rows.append(_beside(str(table), str(dataset), str(label), ours, other))
    return rows


def _beside(table: str, dataset: str, label: str, ours: Any, theirs: Any) -> RowBesidePaper:
    regret = ours["regret"].to_numpy(dtype=float), theirs["regret"].to_numpy(dtype=float)
    asked = ours["queries"].to_numpy(dtype=float), theirs["questions"].to_numpy(dtype=float)
    return RowBesidePaper(
        table,
        dataset,
        label,
        regret=(summarise(regret[0]), summarise(regret[1])),
        questions=(summarise(asked[0]), summarise(asked[1])),
        p_values=(*two_sample(*regret), *two_sample(*asked)),
        stopped=(float((asked[0] <= STOPPED).mean()), float((asked[1] <= STOPPED).mean())),
    )


def agreement_in_words(rows: Iterable[RowBesidePaper]) -> list[str]:
    """How many rows agree, and which do not."""
    rows = list(rows)
    if not rows:
        return []
    near = sum(max(map(abs, row.apart)) <= 2 for row in rows if row.label == REFERENCE)
    ours = sum(row.label == REFERENCE for row in rows)
    apart = [f"{row.label} on {row.dataset} ({row.table})" for row in rows if not row.agrees]
    said = [f"{len(rows) - len(apart)} of {len(rows)} rows agree with the paper's own runs at the {LEVEL:.0%} level."]
    said += [f"{REFERENCE} is within two joint standard errors in regret and questions in {near} of {ours} rows."]
    return [*said, "Rows that differ: " + ", ".join(apart) + "."] if apart else said


def two_sample(one: NDArray[np.float64], other: NDArray[np.float64]) -> tuple[float, float]:
    """p-values, two-sided, of the rank test and of Kolmogorov and Smirnov's: how likely are samples so different?

    >>> first = np.arange(20.0)
    >>> [round(p, 3) for p in two_sample(first, first + 1)], [p < 0.001 for p in two_sample(first, first + 30)]
    ([0.607, 1.0], [True, True])
    """
    from scipy import stats

    rank = stats.mannwhitneyu(one, other, alternative="two-sided").pvalue
    return float(rank), float(stats.ks_2samp(one, other).pvalue)


def draw_beside(runs: Any, theirs: Any, column: str) -> bytes:
    """Boxes of one table: ours and theirs side by side for each strategy, a panel for each data set."""
    figure, panels, labels = panels_by_dataset(runs)
    named = {"regret": "regret", "queries": "questions"}
    for axes, (dataset, part) in zip(panels, runs.groupby("dataset", sort=False), strict=False):
        for place, (label, rows) in enumerate(part.groupby("label", sort=False)):
            chosen = (theirs["dataset"] == dataset) & (theirs["strategy"] == COSTS.get(label, label))
            samples = [rows[column], theirs[chosen & (theirs["table"] == rows["table"].iloc[0])][named[column]]]
            spots = [place - 0.2, place + 0.2]
            boxes = axes.boxplot(samples, positions=spots, widths=0.34, **box_style())
            fill_boxes(boxes["boxes"], labels.index(label), label)
            boxes["boxes"][1].set(facecolor="white")
        axes.set(title=dataset, ylabel=f"{named[column]} (white: the paper's runs)")
        axes.set_xticks([])
        axes.set_ylim(bottom=0)
    return saved(with_legend(figure, panels))


def draw_all_beside(runs: Any, theirs: Any) -> Iterator[tuple[str, str, bytes]]:
    """The figures of every table that the authors' runs have, too: name, title, PNG."""
    for table, part in runs.groupby("table", sort=False):
        known = part[[label in set(theirs["strategy"]) or label in COSTS for label in part["label"]]]
        if table in set(theirs["table"]) and len(known):
            for column, title in (("regret", "final regret"), ("queries", "questions")):
                name = f"{str(table).lower()}_beside_{column}"
                yield name, f"{table}: {title} beside the paper's own runs", draw_beside(known, theirs, column)
