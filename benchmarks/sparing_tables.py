"""The tables of docs/sparing.md, made of the runs (`python -m benchmarks.sparing tables`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

Run = dict[str, Any]
GOALS = {
    "mnist_binary": (1352, 860),
    "magic_telescope": (3246, 1800),
    "adult": (2524, 1880),
    "mnist": (1812, 1220),
    "fashion_mnist": (2898, 2250),
    "covertype": (5060, 3300),
    "shuttle": (908, 180),
}
"""By data set: the paper's best row, which was given to us, and the goal."""


def page(runs: list[Run]) -> str:
    """All tables, each with the command that makes its runs."""
    parts = {
        "10 000 rounds (`python -m benchmarks.sparing table line`)": _main(runs),
        "Other lengths and prices (`told horizons long table_prices`)": _cases(runs),
        "Two classes swapped (`drift`)": _drift(runs),
        "Late answers (`late live`)": _late(runs),
        "Processor time (`time`)": _times(runs),
    }
    return "# Runs of Sparing\n" + "".join(f"\n## {name}\n\n{table}\n" for name, table in parts.items() if table)


def _table(heads: Iterable[str], rows: list[list[str]]) -> str:
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) if rows else ""


def _of(runs: list[Run], *groups: str) -> list[Run]:
    return [one for one in runs if one["group"] in groups]


def _case(run: Run) -> tuple[Any, ...]:
    return run["data"], run.get("horizon", 10_000), run.get("price", 1.0), run["seed"]


def _lines(runs: list[Run]) -> dict[tuple[Any, ...], Run]:
    return {_case(one): one for one in runs if one.get("who") == "line"}


def _mean_ratio(ratios: list[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


def _main(runs: list[Run]) -> str:
    """Only seeds that all data sets have, so that the rows are of the same seeds."""
    lines, table = _lines(runs), _of(runs, "table")
    seeds = set.intersection(*({one["seed"] for one in table if one["data"] == data} for data in GOALS))
    rows, ratios = [], []
    for data, (paper, goal) in GOALS.items():
        ours = [one for one in table if one["data"] == data and one["seed"] in seeds]
        if not ours:
            return ""
        cost = np.array([one["cost"] for one in ours])
        line = np.array([min(lines[_case(one)]["cost"], one["majority"]) for one in ours])
        ratios.append(_mean_ratio((cost / line).tolist()))
        error = cost.std(ddof=1) / len(cost) ** 0.5 if len(cost) > 1 else 0.0
        asked = np.mean([one["asked"] for one in ours])
        figures = [f"**{cost.mean():.0f}** +- {error:.0f}", f"{asked:.0f}", f"{cost.max():.0f}", f"{line.mean():.0f}"]
        rows.append([data, str(len(ours)), str(paper), str(goal), *figures, f"{ratios[-1]:.2f}"])
    rows.append(["geometric mean", *[""] * 7, f"{_mean_ratio(ratios):.3f}"])
    heads = (
        "data set",
        "seeds",
        "paper's best row",
        "goal",
        "sparing",
        "questions",
        "worst seed",
        "line",
        "over the line",
    )
    return _table(heads, rows)


def _cases(runs: list[Run]) -> str:
    lines, rows, told_or_long = _lines(runs), [], []
    for one in sorted(_of(runs, "told", "horizons", "long", "whole", "table_prices"), key=_case):
        if one.get("who") == "line":
            continue
        line = lines.get(_case(one))
        over = "" if line is None else f"{one['cost'] / line['cost']:.2f}"
        if line is not None and one["group"] != "horizons":
            told_or_long.append(one["cost"] / line["cost"])
        data, horizon, price, seed = _case(one)
        told = "told" if one.get("told") else "untold"
        best = "" if line is None else f"{line['cost']:.0f} ({line['learner']}, {line['asked']})"
        costs = [f"{one['cost']:.0f}", str(one["asked"]), f"{one['majority']:.0f}", best, over]
        rows.append([data, str(horizon), told, f"{price:g}", str(seed), *costs])
    if told_or_long:
        rows.append(["geometric mean without untold 1000 and 3000", *[""] * 8, f"{_mean_ratio(told_or_long):.2f}"])
    heads = (
        "data set",
        "rounds",
        "length",
        "price",
        "seed",
        "sparing",
        "questions",
        "commonest class",
        "line",
        "over the line",
    )
    return _table(heads, rows)


def _drift(runs: list[Run]) -> str:
    rows = []
    for one in sorted(_of(runs, "drift"), key=_case):
        before, after, changes = one["before"], one["after"], ", ".join(map(str, one["changes"]))
        figures = [f"{before:.0f}", f"{after:.0f}", f"{after / before:.2f}"]
        rows.append([one["data"], str(one["seed"]), changes, *figures])
    return _table(("data set", "seed", "noticed in round", "rounds 3000 to 5000", "last 2000 rounds", "ratio"), rows)


def _late(runs: list[Run]) -> str:
    rows: list[list[str]] = []
    at_once: dict[tuple[Any, ...], float] = {}
    for one in sorted(
        _of(runs, "late", "live"), key=lambda run: (*_case(run), run.get("delay", 0), run.get("seconds_late", 0))
    ):
        by, seconds = one.get("delay", 0), one.get("seconds_late")
        at_once.setdefault((one["group"], *_case(one)), one["cost"])
        when = f"{by} rounds" if seconds is None else f"{seconds} s"
        ratio = one["cost"] / at_once[one["group"], *_case(one)]
        rows.append([one["data"], str(one["seed"]), when, f"{one['cost']:.0f}", str(one["asked"]), f"{ratio:.2f}"])
    return _table(("data set", "seed", "late by", "sparing", "questions", "over at once"), rows)


def _times(runs: list[Run]) -> str:
    found = {(_case(one), one["who"]): one["seconds"] for one in _of(runs, "time")}
    rows = []
    for case, who in sorted(found):
        if who == "sparing" and (case, "neural_cbp") in found:
            ours, theirs = found[case, who], found[case, "neural_cbp"]
            rows.append([case[0], str(case[3]), f"{ours:.1f}", f"{theirs:.1f}", f"{ours / theirs:.2f}"])
    return _table(("data set", "seed", "sparing", "NeuralCBP", "ratio"), rows)
