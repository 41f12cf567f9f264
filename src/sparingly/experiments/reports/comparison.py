"""From records to what a report shows: a long table of runs, curves over time and over labels, comparisons."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sparingly.experiments.reports.statistical_tests import (
    Paired,
    Summary,
    Wins,
    holm,
    paired,
    summarise,
    welch,
    win_counts,
)
from sparingly.experiments.runs.experiment_settings import Row, SettingsError, Study
from sparingly.experiments.runs.paper_studies import REFERENCE, PrintedRow, printed
from sparingly.experiments.runs.run_records import Record, Results, write_whole

POINTS = 101
"""Moments at which a curve over time is kept."""
KEY = ["table", "dataset", "label"]
PARTS = ("runs", "regret", "f1", "costs")


@dataclass(frozen=True)
class Line:
    """One strategy on one data set.

    Attributes
    ----------
    regret, queries
        Over the seeds.
    f1
        Mean weighted F1 on the held-out set at the end.
    seconds
        Mean processor time of a run.
    wins
        Seeds on which it was best.
    p_value, p_holm
        Of the Welch test that the reference's regret is lower, raw and corrected within the table; nan for itself.
    paired
        Against the reference, seed by seed; None for the reference.
    printed
        The paper's row, if it has one.
    """

    label: str
    regret: Summary
    queries: Summary
    f1: float
    seconds: float
    wins: Wins
    p_value: float
    p_holm: float
    paired: Paired | None
    printed: PrintedRow | None

    @property
    def p_two_sided(self) -> float:
        """Of the Welch test that the two differ, which is what the paper's tables print."""
        return 2 * min(self.p_value, 1 - self.p_value)

    @property
    def ratio(self) -> float:
        """Our mean regret over the paper's."""
        return self.regret.mean / self.printed.regret if self.printed else float("nan")


@dataclass(frozen=True)
class Comparison:
    """The strategies on one data set."""

    table: str
    dataset: str
    seeds: int
    reference: str
    lines: tuple[Line, ...]

    @property
    def best(self) -> Line:
        return min(self.lines, key=lambda line: line.regret.mean)


@dataclass(frozen=True)
class Digest:
    """What is left of many records: small enough to send, enough to draw and test everything.

    Attributes
    ----------
    runs
        A row for each run of each table: regret, questions, errors, F1, seconds.
    regret
        Cumulative regret over time: mean and quartiles over the seeds.
    f1
        Weighted F1 by labels: mean and quartiles over the seeds that got so far.
    costs
        Over time, means over the seeds: the cost so far, the part of it that was paid for questions, the questions.
    """

    runs: Any
    regret: Any
    f1: Any
    costs: Any

    def write(self, folder: Path) -> None:
        """As four CSV files."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in PARTS:
            frame = getattr(self, name)
            write_whole(folder / f"{name}.csv", frame.to_csv(index=False, float_format="%.6g").encode())

    def filled_from(self, earlier: Digest) -> Digest:
        """The same with the rows of an earlier summary that this one has no run of; their runs are marked `earlier`.

        A row of which this one has a few runs only, all as the earlier summary has them, stands as it was, too, and is
        not marked: today's code plays what was played then. Nor is a row that the earlier summary itself, which was
        filled so, does not mark. Seeds that such a row lacks are added to it, where those that both have are alike; its
        curves, whose seeds cannot be told apart any more, are of the side with more runs. Rows stand in the order of
        the earlier summary.
        """
        import pandas as pd

        confirmed, longer = self._confirmed(earlier), self._longer(earlier)
        known = set(self.runs[KEY].itertuples(index=False, name=None)) - confirmed
        parts = {}
        for name in PARTS:
            mine = {row for row in known if name == "runs" or not longer.get(row, False)}
            new, old = getattr(self, name), getattr(earlier, name)
            new = new[[row in mine for row in new[KEY].itertuples(index=False, name=None)]]
            kept = [row not in mine for row in old[KEY].itertuples(index=False, name=None)]
            if name == "runs":
                new = new.assign(earlier=False)
                kept = self._kept(old, known, set(longer))
                marked = old.get("earlier", True)
                unseen = [row not in confirmed for row in old[KEY].itertuples(index=False, name=None)]
                old = old.assign(earlier=marked & np.array(unseen, dtype=bool))
            both = pd.concat([part for part in (old[kept], new) if len(part)])[list(dict.fromkeys([*old, *new]))]
            parts[name] = _in_order(both, earlier.runs)
        return Digest(**parts)

    def _kept(self, old: Any, known: set[Any], longer: set[Any]) -> list[bool]:
        """Which runs of an earlier summary stay: those of rows without a run here, and seeds that a longer row adds."""
        here = set(self.runs[[*KEY, "seed"]].itertuples(index=False, name=None))
        runs = old[[*KEY, "seed"]].itertuples(index=False, name=None)
        return [run[:3] not in known or (run[:3] in longer and run not in here) for run in runs]

    def _longer(self, earlier: Digest) -> dict[tuple[Any, ...], bool]:
        """The rows that an earlier summary has unmarked and with other seeds: whether it has more runs than this one.

        Seeds that both have must be alike there; otherwise only today's runs count.
        """
        if "earlier" not in earlier.runs:
            return {}
        unmarked = earlier.runs[~earlier.runs["earlier"].astype(bool)]
        found = {}
        for row, old in unmarked.groupby(KEY):
            mine = self.runs[[key == row for key in self.runs[KEY].itertuples(index=False, name=None)]]
            both = mine.merge(old, on="seed", suffixes=("", "_then"))
            alike = (both["regret"] == both["regret_then"]) & (both["queries"] == both["queries_then"])
            if len(mine) > len(both) and len(old) > len(both) and alike.all():
                found[row] = len(old) >= len(mine)
        return found

    def _confirmed(self, earlier: Digest) -> set[tuple[Any, ...]]:
        """The rows whose runs, fewer than an earlier summary has, are there with the same regret and questions."""
        columns = [*KEY, "seed", "regret", "queries"]
        there = {row[:4]: row[4:] for row in earlier.runs[columns].itertuples(index=False, name=None)}
        seeds = earlier.runs.groupby(KEY).size().to_dict()
        return {
            row
            for row, mine in self.runs[columns].groupby(KEY)
            if len(mine) < seeds.get(row, 0)
            and all(there.get(run[:4]) == run[4:] for run in mine.itertuples(index=False, name=None))
        }

    @classmethod
    def read(cls, folder: Path) -> Digest:
        import pandas as pd

        try:
            parts = {name: pd.read_csv(folder / f"{name}.csv") for name in PARTS if name != "costs"}
        except OSError as error:
            raise SettingsError(f"{folder} holds no summary: {error}") from error
        newer = folder / "costs.csv"
        return cls(**parts, costs=pd.read_csv(newer) if newer.is_file() else _cost_curves({}))


def _in_order(rows: Any, known: Any) -> Any:
    """Rows of tables in the order of those that are known, new ones after them, and the runs of a row by seed."""
    places: dict[tuple[Any, ...], tuple[int, int]] = {}
    tables = list(dict.fromkeys([*known["table"], *rows["table"]]))
    for row in [*known[KEY].itertuples(index=False, name=None), *rows[KEY].itertuples(index=False, name=None)]:
        places.setdefault(row, (tables.index(row[0]), len(places)))
    seeds = rows["seed"] if "seed" in rows else np.zeros(len(rows), dtype=int)
    spots = [
        (*places[row], seed) for row, seed in zip(rows[KEY].itertuples(index=False, name=None), seeds, strict=True)
    ]
    return rows.iloc[sorted(range(len(rows)), key=spots.__getitem__)]


def digest(results: Results, studies: Iterable[Study]) -> Digest:
    """Read the records of some studies; a seed that is not complete on a data set is left out of it."""
    import pandas as pd

    parts: list[Digest] = [_digest_of(results, study) for study in studies]
    frames = [[getattr(part, name) for part in parts if len(part.runs)] for name in PARTS]
    if not frames[0]:
        raise SettingsError(f"{results.folder} has no complete seed of any study: let it run on first")
    return Digest(*(pd.concat(frame, ignore_index=True) for frame in frames))


def complete_seeds(results: Results, study: Study, row: Row) -> list[int]:
    """The seeds of a row for which every row on the same data set has its record: those can be compared.

    A row with a number of seeds of its own, as the paper's have, stands for itself: all of its records count.
    """
    if row.seeds is not None:
        return [seed for seed in study.seeds_of(row) if results.has(study.at(row, seed).id)]
    rivals = [other for other in study.rows if other.task.dataset == row.task.dataset]
    return [seed for seed in study.seeds_of(row) if all(results.has(study.at(other, seed).id) for other in rivals)]


def compare(runs: Any, reference: str = REFERENCE) -> list[Comparison]:
    """A comparison for each data set of each table, in the order of the runs."""
    comparisons: list[Comparison] = []
    for table, rows in runs.groupby("table", sort=False):
        drafts = dict(iter(rows.groupby("dataset", sort=False)))
        raw = {
            f"{dataset}\n{label}": welch(samples[base], sample)
            for dataset, part in drafts.items()
            for samples, base in [_by_label(part, "regret", reference)]
            for label, sample in samples.items()
            if label != base
        }
        corrected = holm(raw)
        comparisons.extend(
            _comparison(str(table), str(name), part, reference, raw, corrected) for name, part in drafts.items()
        )
    return comparisons


def _comparison(
    table: str, dataset: str, part: Any, reference: str, raw: dict[str, float], corrected: dict[str, float]
) -> Comparison:
    samples, base = _by_label(part, "regret", reference)
    wins = win_counts(_at_common_seeds(part, list(samples)))
    shown = {row.strategy: row for row in printed() if (row.table, row.dataset) == (table, dataset)}
    lines = []
    for label, rows in part.groupby("label", sort=False):
        key = f"{dataset}\n{label}"
        lines.append(
            Line(
                label=str(label),
                regret=summarise(samples[label]),
                queries=summarise(rows["queries"].to_numpy()),
                f1=float(rows["f1"].mean()),
                seconds=float(rows["cpu_seconds"].mean()),
                wins=wins[str(label)],
                p_value=raw.get(key, float("nan")),
                p_holm=corrected.get(key, float("nan")),
                paired=None if label == base else _paired(part, base, str(label)),
                printed=shown.get(str(label)),
            )
        )
    return Comparison(table, dataset, part["seed"].nunique(), base, tuple(lines))


def _by_label(part: Any, column: str, reference: str) -> tuple[dict[str, Any], str]:
    """The values of each strategy in the order of the seeds, and which strategy the others are tested against."""
    samples = {
        str(label): rows.sort_values("seed")[column].to_numpy(dtype=np.float64)
        for label, rows in part.groupby("label", sort=False)
    }
    return samples, reference if reference in samples else next(iter(samples))


def _at_common_seeds(part: Any, labels: list[str]) -> dict[str, Any]:
    """The regrets of some strategies on the seeds that all of them have, in the order of the seeds."""
    wide = part.pivot_table(index="seed", columns="label", values="regret").reindex(columns=labels).dropna()
    return {label: wide[label].to_numpy(dtype=np.float64) for label in labels}


def _paired(part: Any, base: str, label: str) -> Paired | None:
    common = _at_common_seeds(part, [base, label])
    return paired(common[base], common[label]) if len(common[base]) else None


def _digest_of(results: Results, study: Study) -> Digest:
    import pandas as pd

    runs: list[dict[str, Any]] = []
    scores: list[dict[str, Any]] = []
    curves: dict[tuple[str, ...], list[Any]] = {}
    costs: dict[tuple[str, ...], list[Any]] = {}
    for row in study.rows:
        key = (row.table, Path(row.task.dataset).stem, row.player.shown)
        columns = dict(zip(KEY, key, strict=True))
        for seed in complete_seeds(results, study, row):
            run_id = study.at(row, seed).id
            record = results.read(run_id)
            measured = record.row(run_id) | _met(record)
            runs.append(columns | {name: value for name, value in measured.items() if name not in columns})
            scores.extend(columns | {"labels": labels, "f1": f1} for labels, _, f1 in record.f1[:-1])
            curves.setdefault(key, []).append(np.cumsum(record.rounds["regret"]))
            cost, paid = record.rounds["cost"], record.paid
            costs.setdefault(key, []).append(np.cumsum([cost, paid, record.asked], axis=1))
    return Digest(pd.DataFrame(runs), _regret_curves(curves), _f1_curves(scores), _cost_curves(costs))


def _met(record: Record) -> dict[str, str]:
    """The classes, and how often which action met which of them: triples of action, outcome and number."""
    counts = np.array(record.counts)
    met = [[int(action), int(outcome), int(counts[action, outcome])] for action, outcome in np.argwhere(counts)]
    classes = record.classes or tuple(map(str, range(record.n_classes)))
    return {"classes": json.dumps(classes), "counts": json.dumps(met)}


def _cost_curves(curves: dict[tuple[str, ...], list[Any]]) -> Any:
    import pandas as pd

    rows = []
    for key, sums in curves.items():
        length = min(curve.shape[1] for curve in sums)
        for t in np.unique(np.linspace(1, length, POINTS).round().astype(int)):
            cost, paid, questions = np.mean([curve[:, t - 1] for curve in sums], axis=0)
            rows.append((*key, t, cost, paid, questions))
    return pd.DataFrame(rows, columns=[*KEY, "t", "cost", "paid", "questions"])


def _regret_curves(curves: dict[tuple[str, ...], list[Any]]) -> Any:
    import pandas as pd

    rows = []
    for key, sums in curves.items():
        length = min(len(curve) for curve in sums)
        for t in np.unique(np.linspace(1, length, POINTS).round().astype(int)):
            values = np.array([curve[t - 1] for curve in sums])
            rows.append(dict(zip(KEY, key, strict=True)) | {"t": t} | _spread(values))
    return pd.DataFrame(rows)


def _f1_curves(scores: list[dict[str, Any]]) -> Any:
    import pandas as pd

    frame = pd.DataFrame(scores, columns=[*KEY, "labels", "f1"])
    rows = [
        dict(zip([*KEY, "labels"], key, strict=True)) | _spread(part["f1"].to_numpy()) | {"seeds": len(part)}
        for key, part in frame.groupby([*KEY, "labels"], sort=False)
    ]
    return pd.DataFrame(rows, columns=[*KEY, "labels", "mean", "lower", "upper", "seeds"])


def _spread(values: Any) -> dict[str, float]:
    lower, upper = np.percentile(values, [25, 75])
    return {"mean": float(np.mean(values)), "lower": float(lower), "upper": float(upper)}
