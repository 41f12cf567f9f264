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
        "What the line owes to hindsight (`table line`)": _hindsight(runs),
        "Our own learner on the first n, n by hindsight (`table learner`)": _learner(runs, "table", "learner"),
        "Other lengths and prices (`told horizons long whole long_told table_prices dear`)": _cases(runs),
        "Other costs and prices beside other strategies (`prices`)": _prices(runs),
        "A LeNet (`lenet`)": _lenet(runs),
        "A LeNet on the first n, n by hindsight (`lenet lenet_learner`)": _learner(runs, "lenet", "lenet_learner"),
        "What each part brings (`ablation`)": _ablation(runs),
        "Data sets never seen before (`unseen`)": _unseen(runs, "unseen"),
        "The same, their length told (`unseen_told`)": _unseen(runs, "unseen_told"),
        "The same, our own learner on the first n (`unseen_told unseen_learner`)": _learner(
            runs, "unseen_told", "unseen_learner"
        ),
        "Boosted trees in the line of 10 000 rounds (`boosted`)": _boosted(runs),
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


def _hindsight(runs: list[Run]) -> str:
    """The number of labels and the learner that cost least on the other seeds, beside those that did on each seed."""
    rows = []
    for data in GOALS:
        lines = [one for one in _of(runs, "line") if one["data"] == data]
        ours = {one["seed"]: one["cost"] for one in _of(runs, "table") if one["data"] == data}
        if len(lines) < 2 or not all(one["seed"] in ours for one in lines):
            return ""
        foresight = [one["tried"][_best_elsewhere(lines, one)] for one in lines]
        hindsight = [cost / one["cost"] for cost, one in zip(foresight, lines, strict=True)]
        over = [ours[one["seed"]] / cost for cost, one in zip(foresight, lines, strict=True)]
        figures = [f"{_mean_ratio(hindsight):.3f}", f"{max(hindsight):.2f}", f"{_mean_ratio(over):.3f}"]
        rows.append([data, str(len(lines)), *figures])
    heads = ("data set", "seeds", "chosen on the other seeds, over the line", "worst seed", "sparing over that")
    return _table(heads, rows)


def _best_elsewhere(lines: list[Run], left_out: Run) -> str:
    others = [one["tried"] for one in lines if one is not left_out]
    names = set.intersection(*(set(one["tried"]) for one in lines))
    return min(sorted(names), key=lambda name: sum(tried[name] for tried in others))


def _cases(runs: list[Run]) -> str:
    lines, rows = _lines(runs), []
    cases: dict[tuple[Any, ...], list[float]] = {}
    for one in sorted(_of(runs, "told", "horizons", "long", "whole", "long_told", "table_prices", "dear"), key=_case):
        if one.get("who") == "line":
            continue
        line = lines.get(_case(one))
        over = "" if line is None else f"{one['cost'] / line['cost']:.2f}"
        if line is not None and one["group"] in ("told", "long", "table_prices", "dear"):
            cases.setdefault((*_case(one)[:3], one.get("told")), []).append(one["cost"] / line["cost"])
        data, horizon, price, seed = _case(one)
        told = "told" if one.get("told") else "untold"
        best = "" if line is None else f"{line['cost']:.0f} ({line['learner']}, {line['asked']})"
        costs = [f"{one['cost']:.0f}", str(one["asked"]), f"{one['majority']:.0f}", best, over]
        rows.append([data, str(horizon), told, f"{price:g}", str(seed), *costs])
    if cases:
        which = "geometric mean of 1000 and 3000 told, 30 000 and 100 000 untold, and other prices; the worst of them"
        means = [_mean_ratio(found) for found in cases.values()]
        rows.append([which, *[""] * 8, f"{_mean_ratio(means):.2f}; {max(means):.2f}"])
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


def _learner(runs: list[Run], group: str, learner: str) -> str:
    """What Sparing's own models cost, trained once on the first n labels, the best n of each seed chosen afterwards."""
    ours, rows, means = {_case(one): one for one in _of(runs, group)}, [], []
    known = [one for one in _of(runs, learner) if _case(one) in ours]
    for data in dict.fromkeys(one["data"] for one in known):
        found = [one for one in known if one["data"] == data]
        ratios = [ours[_case(one)]["cost"] / one["cost"] for one in found]
        means.append(_mean_ratio(ratios))
        best = ", ".join(f"{one['cost']:.0f} ({one['asked']})" for one in found)
        costs = ", ".join(f"{ours[_case(one)]['cost']:.0f} ({ours[_case(one)]['asked']})" for one in found)
        rows.append([data, best, costs, f"{means[-1]:.2f}"])
    if rows:
        rows.append(["geometric mean", "", "", f"{_mean_ratio(means):.2f}"])
    return _table(("data set", "first n (labels)", "sparing (labels)", "sparing over that"), rows)


def _unseen(runs: list[Run], group: str) -> str:
    """One row a data set; its last is the geometric mean over data sets."""
    lines, rows, means = _lines(runs), [], []
    ours = [one for one in _of(runs, group) if one["who"] == "sparing" and _case(one) in lines]
    for data in dict.fromkeys(one["data"] for one in ours):
        found = [one for one in ours if one["data"] == data]
        best = [lines[_case(one)] for one in found]
        ratios = [one["cost"] / line["cost"] for one, line in zip(found, best, strict=True)]
        means.append(_mean_ratio(ratios))
        costs, asked = (", ".join(f"{one[name]:.0f}" for one in found) for name in ("cost", "asked"))
        line = ", ".join(f"{one['cost']:.0f} ({one['learner']}, {one['asked']})" for one in best)
        over = ", ".join(f"{one:.2f}" for one in ratios)
        rows.append([data, str(found[0]["horizon"]), costs, asked, line, over])
    if rows:
        rows.append(["geometric mean", *[""] * 4, f"{_mean_ratio(means):.2f}"])
    return _table(("data set", "rounds", "sparing", "questions", "line", "over the line"), rows)


def _boosted(runs: list[Run]) -> str:
    """What the best number of labels costs with boosted trees, beside the line without them."""
    lines, rows = _lines(_of(runs, "line")), []
    for one in sorted(_of(runs, "boosted"), key=_case):
        tried = {name: cost for name, cost in one["tried"].items() if name.startswith("boosting")}
        best = min(tried, key=lambda name: tried[name])
        costs = [f"{tried[best]:.0f} ({best.split()[1]})", f"{lines[_case(one)]['cost']:.0f}"]
        rows.append([one["data"], str(one["seed"]), *costs, f"{tried[best] / lines[_case(one)]['cost']:.2f}"])
    return _table(("data set", "seed", "boosted trees (labels)", "line without them", "ratio"), rows)


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
    late = [{"who": "sparing", "delay": 0, "seconds_late": -1, **one} for one in _of(runs, "late", "live")]
    for one in sorted(late, key=lambda run: (*_case(run), run["who"] != "sparing", run["seconds_late"], run["delay"])):
        by, seconds, case = one["delay"], one["seconds_late"], (one["group"], one["who"], *_case(one))
        when = f"{by} rounds" if seconds < 0 else f"{seconds} s"
        ratio = one["cost"] / at_once.setdefault(case, one["cost"])
        who = "first m by hindsight" if one["who"] == "our learner" else one["who"]
        figures = [f"{one['cost']:.0f}", str(one["asked"]), f"{ratio:.2f}"]
        rows.append([one["data"], str(one["seed"]), when, who, *figures])
    return _table(("data set", "seed", "late by", "who asks", "cost", "questions", "over at once"), rows)


def _prices(runs: list[Run]) -> str:
    """Sparing beside the cheapest of the others that were played."""
    played: dict[tuple[str, str], dict[str, float]] = {}
    for one in _of(runs, "prices"):
        what = "costs [[0, 1], [0.5, 0]]" if one.get("costs") else f"a question costs {one['price']:g}"
        played.setdefault((one["data"], what), {})[one["who"]] = one["cost"]
    rows = []
    for (data, what), costs in sorted(played.items()):
        others = sorted((cost, who) for who, cost in costs.items() if who != "sparing")
        if "sparing" in costs and others:
            cost, who = others[0]
            ratio = f"{costs['sparing'] / cost:.2f}"
            rows.append([data, what, f"**{costs['sparing']:.0f}**", f"{who} {cost:.0f}", str(len(others)), ratio])
    return _table(("data set", "game", "sparing", "next", "others", "ratio"), rows)


def _mean_and_error(runs: list[Run]) -> str:
    cost = np.array([one["cost"] for one in runs])
    error = cost.std(ddof=1) / len(cost) ** 0.5 if len(cost) > 1 else 0.0
    return f"{cost.mean():.0f} +- {error:.0f}"


def _lenet(runs: list[Run]) -> str:
    rows = []
    for data, (paper, goal) in {"mnist": (954, 700), "fashion_mnist": (2750, 2200)}.items():
        ours = [one for one in _of(runs, "lenet") if one["data"] == data]
        if ours:
            each = ", ".join(f"{one['cost']:.0f}" for one in sorted(ours, key=_case))
            asked, seconds = (f"{np.mean([one[name] for one in ours]):.0f}" for name in ("asked", "seconds"))
            rows.append([data, str(paper), str(goal), f"**{_mean_and_error(ours)}**", each, asked, seconds])
    return _table(("data set", "paper", "goal", "sparing", "each seed", "questions", "seconds"), rows)


def _ablation(runs: list[Run]) -> str:
    found = _of(runs, "ablation")
    names = list(dict.fromkeys(one["data"] for one in found))
    rows = []
    for without in dict.fromkeys(one["without"] for one in found):
        row = []
        for data in names:
            ours = [one for one in found if (one["data"], one["without"]) == (data, without)]
            row += [_mean_and_error(ours), f"{np.mean([one['asked'] for one in ours]):.0f}"] if ours else ["", ""]
        rows.append([without, *row])
    return _table(("sparing", *(head for data in names for head in (data, f"{data}, questions"))), rows)


def _times(runs: list[Run]) -> str:
    found = {(_case(one), one["who"]): one["seconds"] for one in _of(runs, "time")}
    rows = []
    for case, who in sorted(found):
        if who == "sparing" and (case, "neural_cbp") in found:
            ours, theirs = found[case, who], found[case, "neural_cbp"]
            rows.append([case[0], str(case[3]), f"{ours:.1f}", f"{theirs:.1f}", f"{ours / theirs:.2f}"])
    for kind, names in (("images", ("fashion_mnist", "mnist")), ("tables", ("adult", "magic_telescope"))):
        ours, theirs = (
            float(np.median([seconds for (case, by), seconds in found.items() if case[0] in names and by == who]))
            for who in ("sparing", "neural_cbp")
        )
        rows.append([f"{kind}, medians", "", f"{ours:.1f}", f"{theirs:.1f}", f"{ours / theirs:.2f}"])
    return _table(("data set", "seed", "sparing", "NeuralCBP", "ratio"), rows)
