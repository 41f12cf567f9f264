"""The report: one self-contained HTML file, and the same in Markdown."""

from __future__ import annotations

import base64
import functools
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.experiments.reports.advice import Advice, advise, amount, table_row
from sparingly.experiments.reports.comparison import Comparison, Digest, Line, compare
from sparingly.experiments.reports.figures import draw_all, draw_costs_over_time
from sparingly.experiments.reports.paper_runs import (
    RowBesidePaper,
    agreement_in_words,
    beside_the_paper,
    draw_all_beside,
)
from sparingly.experiments.reports.statistical_tests import Summary
from sparingly.experiments.runs.paper_studies import PRINTED_FALSE_POSITIVES, REFERENCE
from sparingly.experiments.runs.run_records import write_whole

CLOSE = 0.1
"""A mean is called close to the paper's within this share of it."""
LEVEL = 0.05
FEWEST = 3
"""With fewer seeds nothing is said about luck."""
COUNTED = ("queries", "TP", "TN", "FP", "FN")
CHANGES = {"FP": "false positives went", "FN": "false negatives", "queries": "questions"}


@dataclass(frozen=True)
class Figure:
    """A drawn figure."""

    name: str
    title: str
    png: bytes

    @property
    def inline(self) -> str:
        return "data:image/png;base64," + base64.b64encode(self.png).decode()


@dataclass(frozen=True)
class Counts:
    """How often a strategy asked, and was right or wrong about each of two classes, under some costs."""

    table: str
    dataset: str
    label: str
    samples: dict[str, NDArray[np.float64]]

    def mean(self, name: str) -> float:
        return float(self.samples[name].mean())

    def shown(self, name: str) -> str:
        return f"{self.mean(name):.0f} ± {self.samples[name].std():.0f}"

    @property
    def third_quartile(self) -> float:
        """The third quartile of the false positives."""
        return float(np.percentile(self.samples["FP"], 75))

    @property
    def printed(self) -> str:
        """The paper's false positives, where it gives them."""
        known = PRINTED_FALSE_POSITIVES.get(self.label) if self.dataset == "mnist_binary" else None
        return f"{known[0]:.0f} ± {known[1]:.0f}" if known else ""


@dataclass(frozen=True)
class Report:
    """Everything that the report says, ready to be written.

    Attributes
    ----------
    title
        The headline.
    about
        What was run, with what: pairs of a name and a value.
    words
        The result, read out.
    comparisons
        The tables.
    counts
        Of tables with several cost structures.
    times
        For each strategy: runs, mean seconds of processor time, minutes in all, minutes by the clock.
    figures
        Drawn.
    advice
        What to do on each stream, with its figure.
    beside
        The paper's rows, our runs beside the authors'; None if theirs are not at hand.
    """

    title: str
    about: tuple[tuple[str, str], ...]
    words: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    counts: tuple[Counts, ...]
    times: tuple[dict[str, Any], ...]
    figures: tuple[Figure, ...]
    advice: tuple[tuple[Advice, Figure], ...] = ()
    beside: tuple[RowBesidePaper, ...] | None = None

    @property
    def has_paper(self) -> bool:
        """Whether a row of the paper's tables is among the comparisons."""
        return any(line.printed for comparison in self.comparisons for line in comparison.lines)

    @property
    def tables(self) -> dict[str, list[Comparison]]:
        """The comparisons by table."""
        found: dict[str, list[Comparison]] = {}
        for comparison in self.comparisons:
            found.setdefault(comparison.table, []).append(comparison)
        return found

    @property
    def all_tables(self) -> list[str]:
        """Names of tables, those of counts included."""
        return list(dict.fromkeys([*self.tables, *(count.table for count in self.counts)]))

    def figures_of(self, table: str) -> list[Figure]:
        return [figure for figure in self.figures if figure.name.startswith(f"{table.lower()}_")]

    def html(self) -> str:
        return str(_template("report.html.j2").render(report=self))

    def markdown(self, figures: str = "figures") -> str:
        """Markdown that finds its figures in a folder beside it."""
        return str(_template("report.md.j2").render(report=self, folder=figures))


def make_report(
    digest: Digest,
    *,
    title: str = "Report",
    reference: str = REFERENCE,
    versions: Iterable[str] = (),
    theirs: Any | None = None,
) -> Report:
    """Compare, test, draw and put into words.

    Regrets under different costs are not compared: a table with several cost structures shows counts instead. `theirs`
    are the authors' own runs (see `paper_runs`), if they are at hand.
    """
    mixed = digest.runs.groupby("table")["costs"].transform("nunique") > 1
    comparisons = compare(digest.runs[~mixed], reference)
    counts = _counts(digest.runs[mixed])
    beside = None if theirs is None else tuple(beside_the_paper(digest.runs, theirs))
    words = (*in_words(comparisons), *_counts_in_words(counts), *agreement_in_words(beside or ()))
    figures = tuple(Figure(*parts) for parts in draw_all(digest))
    if beside:
        figures += tuple(Figure(*parts) for parts in draw_all_beside(digest.runs, theirs))
    about = _about(digest.runs, versions)
    advice = tuple((one, _cost_figure(one, digest.costs)) for one in advise(digest.runs, digest.costs))
    return Report(title, about, words, tuple(comparisons), counts, _times(digest.runs), figures, advice, beside)


def _cost_figure(advice: Advice, curves: Any) -> Figure:
    mine = curves[(curves["table"] == advice.table) & (curves["dataset"] == advice.dataset)]
    png = draw_costs_over_time(mine, advice.best.label, {one.label: one.name for one in advice.spent})
    name = re.sub(r"[^\w]+", "_", f"costs_{advice.table}_{advice.dataset}".lower())
    return Figure(name, f"{advice.dataset}: cost over time, and what it was spent for", png)


def write_report(report: Report, path: Path) -> list[Path]:
    """Write `path` (HTML), and beside it the Markdown with its figures; returns the files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figures = path.parent / f"{path.stem}_figures"
    figures.mkdir(exist_ok=True)
    written = [path, path.with_suffix(".md")]
    write_whole(path, report.html().encode())
    write_whole(path.with_suffix(".md"), report.markdown(figures.name).encode())
    for figure in (*report.figures, *(figure for _, figure in report.advice)):
        write_whole(figures / f"{figure.name}.png", figure.png)
        written.append(figures / f"{figure.name}.png")
    return written


def in_words(comparisons: Iterable[Comparison]) -> list[str]:
    """The result in sentences: who was best, by how much, whether it could be luck, and how near the paper is."""
    comparisons = list(comparisons)
    sentences = [_one_in_words(comparison) for comparison in comparisons if len(comparison.lines) > 1]
    lines = [(comparison, line) for comparison in comparisons for line in comparison.lines if line.printed]
    if not lines:
        return sentences
    near = [line for _, line in lines if abs(line.ratio - 1) <= CLOSE]
    far = sorted(
        ((c, line) for c, line in lines if abs(line.ratio - 1) > CLOSE), key=lambda pair: abs(math.log(pair[1].ratio))
    )
    sentences.append(f"{len(near)} of {len(lines)} mean regrets are within {CLOSE:.0%} of the paper's.")
    if far:
        worst = [f"{line.label} on {c.dataset} ({line.ratio:.2f})" for c, line in reversed(far)]
        sentences.append("Further off (ours over the paper's): " + ", ".join(worst) + ".")
    return sentences


def _one_in_words(comparison: Comparison) -> str:
    best = comparison.best
    reference = next(line for line in comparison.lines if line.label == comparison.reference)
    counts = [line.regret.n for line in comparison.lines]
    start = f"{comparison.table}, {comparison.dataset}, {_seeds(min(counts), max(counts))}: "
    if best is reference:
        second = min((line for line in comparison.lines if line is not best), key=lambda line: line.regret.mean)
        return start + (
            f"{best.label} had the lowest mean regret, {best.regret.mean:.0f} with {best.queries.mean:.0f} questions, "
            f"{_share(best, second)} below {second.label} ({second.regret.mean:.0f}); {_luck(second)}."
        )
    ahead = f"{_share(best, reference)} below {reference.label} ({reference.regret.mean:.0f})"
    lead = best.paired
    sure = lead is not None and lead.interval[1] < 0
    doubt = "seed by seed the lead is clear" if sure else "seed by seed the lead could be luck"
    doubt = doubt if min(best.regret.n, reference.regret.n) >= FEWEST else "too few seeds to tell"
    return start + f"{best.label} had the lowest mean regret, {best.regret.mean:.0f}, {ahead}; {doubt}."


def _seeds(fewest: int, most: int) -> str:
    """How many seeds there are, where rows may differ.

    >>> _seeds(1, 1), _seeds(25, 25), _seeds(3, 25)
    ('1 seed', '25 seeds', '3 to 25 seeds')
    """
    return f"{fewest} to {most} seeds" if fewest < most else "1 seed" if most == 1 else f"{most} seeds"


def _share(best: Line, other: Line) -> str:
    return f"{1 - best.regret.mean / other.regret.mean:.0%}" if other.regret.mean else "0%"


def _luck(line: Line) -> str:
    if math.isnan(line.p_holm) or line.regret.n < FEWEST:
        return "too few seeds to tell"
    verdict = "significant" if line.p_holm < LEVEL else "not significant"
    return f"the lead is {verdict} (Welch, p = {line.p_value:.3g}, after Holm's correction {line.p_holm:.3g})"


def _about(runs: Any, versions: Iterable[str]) -> tuple[tuple[str, str], ...]:
    once = runs.drop_duplicates("run")
    seeds = runs.groupby(["table", "dataset", "label"], sort=False).size().groupby("table", sort=False)
    return (
        ("runs", f"{len(once)}, {int(once['rounds'].sum()):,} rounds"),
        ("tables", ", ".join(f"{table} ({_seeds(part.min(), part.max())})" for table, part in seeds)),
        ("data sets", ", ".join(once["dataset"].drop_duplicates())),
        ("preprocessing", ", ".join(once["preprocessing"].drop_duplicates())),
        ("rounds a run", ", ".join(f"{n:,}" for n in sorted(once["rounds"].unique()))),
        ("time of all runs", f"{once['cpu_seconds'].sum() / 60:.1f} minutes of processor time"),
        ("the same by the clock", f"{once['seconds'].sum() / 60:.1f} minutes, one worker's after the other's"),
        ("versions", ", ".join(versions) or "not known"),
        *_earlier_rows(runs),
    )


def _earlier_rows(runs: Any) -> tuple[tuple[str, str], ...]:
    """The rows that were not run again, if any: they come from a summary of earlier code."""
    if "earlier" not in runs or not runs["earlier"].any():
        return ()
    rows = runs[runs["earlier"]].drop_duplicates(["table", "dataset", "label"])
    named = [f"{row.label} on {row.dataset} ({row.table})" for row in rows.itertuples()]
    return (("rows of an earlier summary, not run again with this code", ", ".join(named)),)


def _counts(runs: Any) -> tuple[Counts, ...]:
    return tuple(
        Counts(str(table), str(dataset), str(label), {name: part[name].to_numpy(dtype=float) for name in COUNTED})
        for (table, dataset, label), part in runs.groupby(["table", "dataset", "label"], sort=False)
    )


def _counts_in_words(counts: Iterable[Counts]) -> list[str]:
    sentences = []
    for first, second in pairwise(counts):
        if first.dataset == second.dataset:
            changes = (f"{name} from {first.mean(key):.0f} to {second.mean(key):.0f}" for key, name in CHANGES.items())
            sentences.append(
                f"{first.table}, {first.dataset}: from {first.label} to {second.label}, " + ", ".join(changes) + "."
            )
    return sentences


def _times(runs: Any) -> tuple[dict[str, Any], ...]:
    once = runs.drop_duplicates("run")
    return tuple(
        {
            "label": label,
            "runs": len(part),
            "mean": part["cpu_seconds"].mean(),
            "minutes": part["cpu_seconds"].sum() / 60,
            "wall": part["seconds"].sum() / 60,
        }
        for label, part in once.groupby("label", sort=False)
    )


@functools.cache
def _template(name: str) -> Any:
    from jinja2 import Environment, StrictUndefined

    text = (resources.files("sparingly.experiments.reports") / "templates" / name).read_text()
    environment = Environment(
        autoescape=name.endswith(".html.j2"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"] = _number
    environment.filters["spread"] = _spread
    environment.filters["amount"] = amount
    environment.filters["table_row"] = table_row
    return environment.from_string(text)


def _number(value: float, form: str = ".0f") -> str:
    """A number for a table; nothing for nan.

    >>> _number(1351.92), _number(float("nan")), _number(0.0004, "p")
    ('1352', '', '<0.001')
    """
    if value is None or math.isnan(value):
        return ""
    if form == "p":
        return "<0.001" if value < 0.001 else f"{value:.3f}"
    return format(value, form)


def _spread(summary: Summary) -> str:
    """Mean and standard error, if there is one."""
    return f"{summary.mean:.0f}" + ("" if math.isnan(summary.error) else f" ± {summary.error:.0f}")
