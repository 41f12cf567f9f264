"""The paper's rows for every strategy, beside what ours gives: `python -m benchmarks.rivals_table` writes the page.

The rows are those of `sparingly reproduce all`, from what is kept of its runs in docs/results/summary, each beside the
authors' own runs, which must be at hand (see `sparingly.experiments.reports.paper_runs`).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import fisher_exact

from benchmarks import authors_streams, ineural
from sparingly.experiments.reports.comparison import KEY, Digest
from sparingly.experiments.reports.paper_runs import (
    COSTS,
    LEVEL,
    STOPPED,
    RowBesidePaper,
    beside_the_paper,
    paper_runs,
    two_sample,
)
from sparingly.experiments.reports.statistical_tests import Summary, summarise
from sparingly.experiments.runs.experiment_settings import SettingsError
from sparingly.experiments.runs.paper_studies import TABLES, PrintedRow, printed
from sparingly.experiments.runs.paper_studies import study as study_of_paper

FIRST, WHOLE = 400, 10_000
SHUFFLES = 100
"""Of the runs of each row, to see what chance does."""
INEURAL = {6: "IneurAL (official)", 3: "IneurAL (less exploration)"}
"""How the tables call INeural, by gamma."""
FIRST_LABELS = 3
"""Of INeural, before its first update."""
STREAMS = {
    "seeds 0 to 24": range(25),
    "seeds 100 to 119": range(100, 120),
    "seeds 25 to 49": range(25, 50),
    "all but the first 25": range(25, 120),
    "all": range(120),
}
"""The streams of covertype on which INeural was played, in the order in which they were."""
PAPER_LABELS = (10, 25, 50, 100, 150, 250)
PAPER_SCORES = {
    6: ((0.3925, 0.0570), (0.4422, 0.0293), (0.4309, 0.0447), (0.3119, 0.0799), (0.4161, 0.0812), (0.5082, 0.0442)),
    3: ((0.3643, 0.0491), (0.4074, 0.0346), (0.3197, 0.0792), (0.3136, 0.0621), (0.4048, 0.0648), (0.5377, 0.0396)),
}
"""F1 of INeural on covertype at so many labels, by gamma: mean and half the width of its 99 % interval, from the figure
in the notebook of the runs behind the tables that the authors published with their code."""
WIDTH_99 = 2.575
FEWEST = 3
"""So many runs at least are behind a mean that is shown."""
TWO_CLASSES = ("mnist_binary", "magic_telescope", "adult")
"""The data sets of Q1."""
SUMMARY = Path("docs/results/summary")
PAGE = Path("docs/results/rivals.md")
COLUMNS = (
    "table",
    "data set",
    "strategy",
    "seeds",
    "regret",
    "paper's regret",
    "apart",
    "questions",
    "paper's questions",
    "apart in questions",
    "stopped asking",
    "paper's stopped",
    "agrees at 1 %",
    "code",
)


def table(runs: Any, rows: list[RowBesidePaper]) -> list[str]:
    """A line for each row that the paper has, with the code its runs were made by."""
    earlier = {} if "earlier" not in runs else runs.groupby(["table", "dataset", "label"])["earlier"].any().to_dict()
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    for row in rows:
        code = "earlier" if earlier.get((row.table, row.dataset, row.label)) else "now"
        lines.append("| " + " | ".join([*cells(row), code]) + " |")
    return lines


def agreement(runs: Any, rows: list[RowBesidePaper]) -> list[str]:
    """How many rows agree, by the code their runs were made by, with the fewest and the most seeds.

    Of the tables Q1 to Q3, by code and of all the rows that the paper has; the rows of Q4, with other costs, apart.
    """
    lines = ["| tables | code | rows | agree at 1 % | seeds |", "|---|---|---|---|---|"]
    old = (
        set() if "earlier" not in runs else set(runs[runs["earlier"]][["table", "dataset", "label"]].itertuples(False))
    )
    tables = [row for row in rows if row.table != "Q4"]
    by_code: dict[str, list[RowBesidePaper]] = {"now": [], "earlier": []}
    for row in tables:
        by_code["earlier" if (row.table, row.dataset, row.label) in old else "now"].append(row)
    groups = [("Q1 to Q3", code, some) for code, some in by_code.items()]
    costs = [row for row in rows if row.table == "Q4"]
    for name, code, some in [*groups, ("Q1 to Q3", f"all, of {len(paper_rows())}", tables), ("Q4", "now", costs)]:
        if some:
            n = [row.regret[0].n for row in some]
            agree = sum(row.agrees for row in some)
            lines.append(f"| {name} | {code} | {len(some)} | {agree} | {min(n)} to {max(n)} |")
    return lines


def by_chance(runs: Any, theirs: Any, rows: list[RowBesidePaper]) -> list[str]:
    """How many rows would differ if our runs and theirs were of one kind: each row's runs are shuffled and split."""
    rng, differ = np.random.default_rng(0), np.zeros(SHUFFLES, dtype=int)
    for row in rows:
        ours = runs[(runs["table"] == row.table) & (runs["dataset"] == row.dataset) & (runs["label"] == row.label)]
        named = (theirs["dataset"] == row.dataset) & (theirs["strategy"] == COSTS.get(row.label, row.label))
        other = theirs[named & (theirs["table"] == row.table)]
        both = np.concatenate([ours[["regret", "queries"]].to_numpy(), other[["regret", "questions"]].to_numpy()])
        for k in range(SHUFFLES):
            mixed = rng.permutation(both)
            tests = [two_sample(*np.split(mixed[:, column], [len(ours)])) for column in (0, 1)]
            differ[k] += min(tests[0] + tests[1]) < LEVEL
    here = sum(not row.agrees for row in rows)
    told = [f"| {len(rows)} | {here} | {differ.mean():.1f} | {(differ >= here).mean():.0%} |"]
    return ["| rows | differ | would differ by chance | so many or more |", "|---|---|---|---|", *told]


def paper_rows() -> list[PrintedRow]:
    """The rows of the paper's tables, each once: its appendix repeats all but Neuronal's."""
    return [row for row in printed() if not row.table.endswith("_app") or row.strategy.startswith("Neuronal")]


def missing(runs: Any) -> list[str]:
    """The rows with fewer seeds than `sparingly reproduce` plays, by data set, and what the missing runs would take.

    Runs of earlier code are to be made again. Hours are of processor time, by the mean of the runs that each row has.
    """
    names = ["table", "data set", "rows", "seeds", "wanted", "runs missing", "processor hours"]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    wanted = {(row.table, row.task.dataset): row.seeds or 0 for name in TABLES for row in study_of_paper(name).rows}
    known = {(row.table, row.dataset, row.strategy) for row in paper_rows()}
    rows = runs[[key in known or key[0] == "Q4" for key in runs[KEY].itertuples(index=False, name=None)]]
    for place, part in rows.assign(now=~rows["earlier"].astype(bool)).groupby(KEY[:2], sort=False):
        seeds = part.groupby("label").agg(size=("now", "sum"), mean=("cpu_seconds", "mean"))
        short = seeds[seeds["size"] < wanted[place]]
        if len(short):
            left = wanted[place] - short["size"]
            least, most = short["size"].min(), short["size"].max()
            told = f"{least}" if least == most else f"{least} to {most}"
            cells = [*place, len(short), told, wanted[place], left.sum(), f"{(left * short['mean']).sum() / 3600:.1f}"]
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines if len(lines) > 2 else ["No row is short of seeds."]


def single_runs(runs: Any, theirs: Any) -> list[str]:
    """Rows of one run, which no test can reject: it beside the least, the mean and the most of the authors' runs."""
    names = ["table", "data set", "strategy", "regret", "paper's regret", "questions", "paper's questions"]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    samples = dict(iter(theirs.groupby(["table", "dataset", "strategy"])))
    for key, ours in runs.groupby(["table", "dataset", "label"], sort=False):
        if len(ours) == 1 and key in samples:
            cells = [*key]
            for here, there in (("regret", "regret"), ("queries", "questions")):
                known = samples[key][there]
                cells += [f"{ours[here].iloc[0]:.0f}", f"{known.min():.0f} to {known.max():.0f}, {known.mean():.0f}"]
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines if len(lines) > 2 else ["There is none so far."]


def collapses(runs: Any) -> list[str]:
    """Rows where some of our runs stopped asking: the regret of those, and of the others."""
    lines = [
        "| table | data set | strategy | stopped | their regret | the others' regret |",
        "|---|---|---|---|---|---|",
    ]
    for (name, data, label), part in runs.groupby(["table", "dataset", "label"], sort=False):
        stopped = part["queries"] <= STOPPED
        if stopped.any() and not stopped.all() and not name.endswith("_app"):
            few, rest = summarise(part[stopped]["regret"]), summarise(part[~stopped]["regret"])
            lines.append(f"| {name} | {data} | {label} | {few.n} of {len(part)} | {shown(few)} | {shown(rest)} |")
    return lines


def still_asking(runs: Any, theirs: Any) -> list[str]:
    """INeural on covertype without the runs that stopped asking, ours and theirs."""
    names = [*COLUMNS[:3], "runs", *COLUMNS[4:10], "least p"]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    ours = runs[(runs["dataset"] == "covertype") & runs["label"].isin(INEURAL.values())]
    for row in beside_the_paper(ours[ours["queries"] > STOPPED], theirs[theirs["questions"] > STOPPED]):
        told = cells(row)
        told[3] = f"{row.regret[0].n} and {row.regret[1].n}"
        lines.append("| " + " | ".join([*told[:10], f"{min(row.p_values):.2f}"]) + " |")
    return lines


def first_rounds(theirs: Any) -> list[str]:
    """INeural's forms in the first rounds of covertype, and how many stop asking, beside the authors' whole runs.

    A run that asks more than `STOPPED` times in its first rounds has not stopped; where all others were played to the
    end it is known of all how many stopped, and where some were, of how many. Runs whose first three labels are equal
    are counted apart.
    """
    names = ["gamma", "form", "seeds", "asked by round 100", "three equal labels: silent", "others: silent"]
    names += ["others: stopped in the end", "paper's others: stopped", "p"]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    runs = pd.read_csv(ineural.RUNS)
    runs = runs[runs["data"] == "covertype"]
    for (gamma, form), part in runs[runs["rounds"] == FIRST].groupby(["gamma", "form"]):
        whole = runs[(runs["rounds"] == WHOLE) & (runs["gamma"] == gamma) & (runs["form"] == form)]
        equal, others = by_first_labels(part)
        silent = [int((some["asked_200_to_400"] == 0).sum()) for some in (equal, others)]
        ended, known, few = stopped_in_the_end(others, whole)
        told = str(ended)
        if known < few:
            ended, told = silent[1], f"{ended} of {known}" if known else "-"
        stopped, asking = unequal(theirs, gamma)
        p = fisher_exact([[ended, len(others) - ended], [stopped, asking]]).pvalue
        cells = [gamma, form, len(part), shown(summarise(part["asked_by_100"]))]
        cells += [f"{silent[0]} of {len(equal)}", f"{silent[1]} of {len(others)}", told]
        cells += [f"{stopped} of {stopped + asking}", f"{p:.2g}"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def by_first_labels(runs: Any) -> tuple[Any, Any]:
    """Runs of INeural's first rounds: those whose first three labels are equal, and the others."""
    alike = (runs["distinct"] == 1) & (runs["asked"] >= FIRST_LABELS)
    return runs[alike], runs[~alike]


def stopped_in_the_end(first: Any, whole: Any) -> tuple[int, int, int]:
    """Of runs of which the first rounds are known: how many stopped, of how many that is known, and should be."""
    few = first[first["asked"] <= STOPPED]
    known = whole[whole["seed"].isin(few["seed"])]["asked"]
    return int((known <= STOPPED).sum()), len(known), len(few)


def by_streams(theirs: Any, gamma: int = 3) -> list[str]:
    """How many runs of INeural on covertype stop asking, by the streams in the order in which they were played."""
    lines = ["| streams | runs | three equal labels | others | of these stop | p |", "|---|---|---|---|---|---|"]
    stopped, asking = unequal(theirs, gamma)
    all_theirs = int(((theirs["dataset"] == "covertype") & (theirs["strategy"] == INEURAL[gamma])).sum())
    others_there = stopped + asking
    lines.append(f"| the paper's | {all_theirs} | {all_theirs - others_there} | {others_there} | {stopped} | - |")
    runs = pd.read_csv(ineural.RUNS)
    runs = runs[(runs["data"] == "covertype") & (runs["gamma"] == gamma) & (runs["form"] == "released")]
    first, whole = (runs[runs["rounds"] == rounds] for rounds in (FIRST, WHOLE))
    for name, seeds in STREAMS.items():
        equal, others = by_first_labels(first[first["seed"].isin(seeds)])
        ended, known, few = stopped_in_the_end(others, whole)
        assert known == few, f"{name}: {few - known} runs that may have stopped were not played to the end"
        p = fisher_exact([[ended, len(others) - ended], [stopped, asking]]).pvalue
        lines.append(f"| {name} | {len(equal) + len(others)} | {len(equal)} | {len(others)} | {ended} | {p:.2g} |")
    return lines


def verdicts(theirs: Any, gamma: int = 3) -> list[str]:
    """What each form says of the runs of INeural on covertype, beside the authors' runs: three things that must fit.

    How many are silent of those whose first three labels are not all equal, with the p of `first_rounds`; the farthest
    of the means of F1, in standard errors; the questions of whole runs that go on asking.
    """
    names = ["form", "others: silent", "p", "F1, farthest", "questions of runs that go on asking"]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    known = theirs[(theirs["dataset"] == "covertype") & (theirs["strategy"] == INEURAL[gamma])]["questions"]
    asking = sorted(int(n) for n in known[known > STOPPED])
    stopped, going = unequal(theirs, gamma)
    lines.append(f"| the paper's | {stopped} of {stopped + going} | - | - | {asking[0]} to {asking[-1]} |")
    shares = {line[1]: (line[5], line[-1]) for line in map(_split, first_rounds(theirs)[2:]) if line[0] == str(gamma)}
    farthest = {line[1]: line[-1] for line in map(_split, scores_by_labels()[2:]) if line[0] == str(gamma)}
    runs = pd.read_csv(ineural.RUNS)
    whole = runs[(runs["data"] == "covertype") & (runs["gamma"] == gamma) & (runs["rounds"] == WHOLE)]
    for form in filter(shares.__contains__, ineural.FORMS):
        asked = sorted(whole[(whole["form"] == form) & (whole["asked"] > STOPPED)]["asked"])
        cells = [form, *shares[form], farthest.get(form, "-"), ", ".join(map(str, asked)) or "-"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _split(line: str) -> list[str]:
    """The cells of a table's line."""
    return [cell.strip() for cell in line.strip("|").split("|")]


def unequal(theirs: Any, gamma: int) -> tuple[int, int]:
    """The authors' runs of INeural on covertype that do not end with three questions: stopped, and still asking.

    With three questions end those whose first three labels, all there are before the first update, are equal.
    """
    questions = theirs[(theirs["dataset"] == "covertype") & (theirs["strategy"] == INEURAL[gamma])]["questions"]
    others = questions[questions != FIRST_LABELS]
    return int((others <= STOPPED).sum()), int((others > STOPPED).sum())


def scores_by_labels() -> list[str]:
    """F1 on the held-out rows by number of labels, of INeural's forms on covertype and of the authors' runs.

    The last column is the largest distance, in joint standard errors.
    """
    names = ["gamma", "runs", *(f"{labels} labels" for labels in PAPER_LABELS), "farthest"]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    scores = pd.read_csv(ineural.SCORES)
    scores = scores[(scores["data"] == "covertype") & (scores["rounds"] == FIRST)]
    for gamma, known in PAPER_SCORES.items():
        told = [f"{mean:.3f} ± {half / WIDTH_99:.3f}" for mean, half in known]
        lines.append("| " + " | ".join([str(gamma), "the paper's", *told, "-"]) + " |")
        for form, part in scores[scores["gamma"] == gamma].groupby("form"):
            values = [part[part["labels"] == labels]["f1"] for labels in PAPER_LABELS]
            here = [summarise(some) if len(some) >= FEWEST else None for some in values]
            apart = [
                (one.mean - mean) / math.hypot(one.error, half / WIDTH_99)
                for one, (mean, half) in zip(here, known, strict=True)
                if one is not None
            ]
            if apart:
                cells = [f"{one.mean:.3f} ± {one.error:.3f}" if one else "-" for one in here]
                lines.append("| " + " | ".join([str(gamma), form, *cells, f"{max(apart, key=abs):+.1f}"]) + " |")
    return lines


def older_ineural(theirs: Any) -> list[str]:
    """Whole runs of INeural's other forms, each row beside the authors' own runs.

    Of each, as many seeds as were played in turn: later ones may have been played because they had stopped asking.
    """
    runs = pd.read_csv(ineural.RUNS).rename(columns={"data": "dataset", "asked": "queries"})
    runs = runs[runs["rounds"] == WHOLE].sort_values("seed", kind="stable")
    runs = runs[runs["seed"] == runs.groupby(["dataset", "gamma", "form"]).cumcount()]
    runs["table"] = ["Q1" if name in TWO_CLASSES else "Q2" for name in runs["dataset"]]
    runs["label"] = runs["gamma"].map(INEURAL)
    lines = ["| form | " + " | ".join(COLUMNS[:-1]) + " |", "|" + "---|" * len(COLUMNS)]
    for form, part in runs.groupby("form", sort=False):
        lines += [f"| {form} | {' | '.join(cells(row))} |" for row in beside_the_paper(part, theirs)]
    return lines


def cells(row: RowBesidePaper) -> list[str]:
    """What a table shows of a row."""
    return [
        *(row.table, row.dataset, row.label, str(row.regret[0].n)),
        *(shown(row.regret[0]), shown(row.regret[1]), f"{row.apart[0]:+.1f}"),
        *(shown(row.questions[0]), shown(row.questions[1]), f"{row.apart[1]:+.1f}"),
        *(f"{row.stopped[0]:.0%}", f"{row.stopped[1]:.0%}", "yes" if row.agrees else "no"),
    ]


def shown(summary: Summary) -> str:
    return f"{summary.mean:.0f} ± {summary.error:.0f}" if summary.n > 1 else f"{summary.mean:.0f}"


def study() -> None:
    """Replace the tables of the page, and leave its words alone."""
    runs, theirs = Digest.read(SUMMARY).runs, paper_runs()
    if theirs is None:
        raise SettingsError(
            "the authors' own runs are not at hand: put paper/runs.csv beside the folder SPARINGLY_DATA"
        )
    rows = beside_the_paper(runs, theirs)
    tables = [row for row in rows if row.table != "Q4"]
    text = PAGE.read_text()
    for mark, lines in (
        ("rows", table(runs, rows)),
        ("agreement", agreement(runs, rows)),
        ("chance", by_chance(runs, theirs, tables)),
        ("missing", missing(runs)),
        ("single runs", single_runs(runs, theirs)),
        ("the authors' streams", authors_streams.table(theirs)),
        ("stopped", collapses(runs)),
        ("streams", by_streams(theirs)),
        ("still asking", still_asking(runs, theirs)),
        ("first rounds", first_rounds(theirs)),
        ("scores", scores_by_labels()),
        ("verdicts", verdicts(theirs)),
        ("older form", older_ineural(theirs)),
    ):
        head, _, rest = text.partition(f"<!-- {mark} -->\n")
        _, _, tail = rest.partition(f"<!-- end of {mark} -->")
        text = head + f"<!-- {mark} -->\n\n" + "\n".join(lines) + f"\n\n<!-- end of {mark} -->" + tail
    PAGE.write_text(text)


if __name__ == "__main__":
    study()
