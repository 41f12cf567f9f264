"""Figures: what the paper's Fig. 1 to 4 show, drawn to be read without colour."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

HATCHES = ("", "//", "..", "xx", "\\\\", "oo", "++", "--")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (5, 5)))
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
"""Okabe and Ito's, safe for the colour-blind; hatches, markers and line styles tell as much."""


def draw_all(digest: Any) -> Iterator[tuple[str, str, bytes]]:
    """Every figure that the runs allow: its name, what it shows, and the PNG."""
    for table, runs in digest.runs.groupby("table", sort=False):
        regret = digest.regret[digest.regret["table"] == table]
        f1 = digest.f1[digest.f1["table"] == table]
        name = str(table).lower()
        if runs["costs"].nunique() > 1 and "FP" in runs:
            yield f"{name}_counts", f"{table}: questions and right and wrong announcements", _png(draw_counts, runs)
            continue
        yield f"{name}_regret", f"{table}: final regret (lower is better)", _png(draw_final_regret, runs)
        yield f"{name}_time", f"{table}: regret over time, mean and quartiles", _png(draw_regret_over_time, regret)
        if len(f1):
            yield f"{name}_f1", f"{table}: weighted F1 on held-out data by labels, mean", _png(draw_f1, f1)
        yield f"{name}_queries", f"{table}: questions asked", _png(draw_queries, runs)
        if "experts" in runs and runs["experts"].notna().all():
            yield from _with_experts(name, str(table), runs)


def _with_experts(name: str, table: str, runs: Any) -> Iterator[tuple[str, str, bytes]]:
    """The figures of runs whose experts have names."""
    from sparingly.experiments.reports import expert_figures

    yield f"{name}_split", f"{table}: cost, as prices and mistakes", _png(expert_figures.draw_cost_split, runs)
    yield f"{name}_deciders", f"{table}: who decided", _png(expert_figures.draw_deciders, runs)
    if expert_figures.has_learned(runs):
        draw = expert_figures.draw_reliability
        yield f"{name}_reliability", f"{table}: how often experts are right, as learned", _png(draw, runs)


def draw_costs_over_time(curves: Any, best: str, names: dict[str, str]) -> bytes:
    """The cost of every strategy as it grew, and that of the best split into questions and mistakes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.2, 2.7), layout="constrained")
    left, right = figure.subplots(1, 2)
    labels = list(curves["label"].drop_duplicates())
    for label, curve in curves.groupby("label", sort=False):
        style = _style(labels.index(label), every=len(curve) // 6)
        left.plot(curve["t"], curve["cost"], label=names[str(label)], **style)
    mine = curves[curves["label"] == best]
    split = (mine["paid"], mine["cost"] - mine["paid"])
    areas = right.stackplot(mine["t"], *split, labels=("questions", "mistakes"), colors=[c + "99" for c in COLOURS[:2]])
    areas[1].set_hatch("//")
    left.set(title="cost so far", xlabel="rows")
    right.set(title=f"{names[best]}: what for", xlabel="rows")
    for axes in (left, right):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="upper left", frameon=False, fontsize=8)
    return saved(figure)


def draw_final_regret(runs: Any) -> Any:
    """Final regret as boxes, a panel for each data set; the diamond is the mean."""
    return _boxes(runs, "regret", "final regret")


def draw_queries(runs: Any) -> Any:
    """Questions as boxes, a panel for each data set; the diamond is the mean."""
    return _boxes(runs, "queries", "questions")


def draw_regret_over_time(curves: Any) -> Any:
    """Cumulative regret with the band between its quartiles."""
    figure, panels, labels = panels_by_dataset(curves)
    for axes, (dataset, part) in zip(panels, curves.groupby("dataset", sort=False), strict=False):
        for label, curve in part.groupby("label", sort=False):
            style = _style(labels.index(label), every=len(curve) // 6)
            axes.plot(curve["t"], curve["mean"], label=label, **style)
            axes.fill_between(curve["t"], curve["lower"], curve["upper"], color=style["color"], alpha=0.15, linewidth=0)
        axes.set(title=dataset, xlabel="round", ylabel="cumulative regret")
    return with_legend(figure, panels)


def draw_f1(curves: Any) -> Any:
    """Weighted F1 against labels; a curve ends where fewer than half of the seeds got so many labels."""
    figure, panels, labels = panels_by_dataset(curves)
    for axes, (dataset, part) in zip(panels, curves.groupby("dataset", sort=False), strict=False):
        for label, curve in part.groupby("label", sort=False):
            common = curve[curve["seeds"] >= part["seeds"].max() / 2]
            axes.plot(common["labels"], common["mean"], label=label, **_style(labels.index(label)))
        axes.set(title=dataset, xlabel="labels", ylabel="weighted F1", xscale="log")
    return with_legend(figure, panels)


def draw_counts(runs: Any) -> Any:
    """Questions, true and false positives and negatives, by cost structure (class 0 is positive)."""
    figure, panels, labels = panels_by_dataset(runs)
    names = ("queries", "TP", "TN", "FP", "FN")
    for axes, (dataset, part) in zip(panels, runs.groupby("dataset", sort=False), strict=False):
        for place, (label, rows) in enumerate(part.groupby("label", sort=False)):
            spots = [position + 0.4 * place - 0.2 for position in range(len(names))]
            boxes = axes.boxplot([rows[name] for name in names], positions=spots, widths=0.34, **box_style())
            fill_boxes(boxes["boxes"], labels.index(label), label)
        axes.set(title=dataset, ylabel="count", xlim=(-0.6, len(names) - 0.4))
        axes.set_xticks(range(len(names)), ("questions", *names[1:]))
        axes.tick_params(axis="x", rotation=30)
    return with_legend(figure, panels)


def _boxes(runs: Any, column: str, title: str) -> Any:
    figure, panels, labels = panels_by_dataset(runs)
    for axes, (dataset, part) in zip(panels, runs.groupby("dataset", sort=False), strict=False):
        for place, (label, rows) in enumerate(part.groupby("label", sort=False)):
            boxes = axes.boxplot([rows[column]], positions=[place], widths=0.7, **box_style())
            fill_boxes(boxes["boxes"], labels.index(label), label)
        axes.set(title=dataset, ylabel=title)
        axes.set_xticks([])
        axes.set_ylim(bottom=0)
    return with_legend(figure, panels)


def panels_by_dataset(frame: Any) -> tuple[Any, list[Any], list[str]]:
    """A figure with a panel for each data set, and the labels in their order."""
    from matplotlib.figure import Figure

    n = frame["dataset"].nunique()
    columns = min(n, 4)
    rows = -(-n // columns)
    figure = Figure(figsize=(3.6 * max(columns, 2), 3.1 * rows + 0.9), layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for spare in panels[n:]:
        spare.set_visible(False)
    for axes in panels:
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, panels[:n], list(frame["label"].drop_duplicates())


def with_legend(figure: Any, panels: list[Any]) -> Any:
    """The figure with one legend for all of its panels."""
    found: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        found = dict(zip(labels, handles, strict=True)) | found
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def _style(place: int, every: int = 1) -> dict[str, Any]:
    return {
        "color": COLOURS[place % len(COLOURS)],
        "linestyle": LINES[place % len(LINES)],
        "marker": MARKERS[place % len(MARKERS)],
        "markersize": 4,
        "markevery": max(1, every),
        "linewidth": 1.4,
    }


def box_style() -> dict[str, Any]:
    mean = {"marker": "D", "markerfacecolor": "white", "markeredgecolor": "black", "markersize": 4}
    return {
        "patch_artist": True,
        "showmeans": True,
        "meanprops": mean,
        "medianprops": {"color": "black"},
        "flierprops": {"markersize": 3},
        "manage_ticks": False,
    }


def fill_boxes(boxes: list[Any], place: int, label: Any) -> None:
    for number, box in enumerate(boxes):
        box.set(facecolor=COLOURS[place % len(COLOURS)] + "66", hatch=HATCHES[place % len(HATCHES)])
        box.set_label(str(label) if number == 0 else None)


def _png(draw: Callable[[Any], Any], frame: Any) -> bytes:
    return saved(draw(frame))


def saved(figure: Any) -> bytes:
    sink = io.BytesIO()
    figure.savefig(sink, format="png", dpi=110, metadata={"Software": None})
    return sink.getvalue()
