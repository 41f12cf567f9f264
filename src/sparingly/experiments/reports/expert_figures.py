"""Figures of runs with several experts: what was paid and what mistakes cost, who decided, how far each is trusted."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from sparingly.experiments.reports.figures import COLOURS, HATCHES, panels_by_dataset, with_legend


def draw_cost_split(runs: Any) -> Any:
    """Mean cost of each strategy in two parts: prices of questions, and mistakes."""
    figure, panels, _ = panels_by_dataset(runs)
    for axes, (dataset, part) in zip(panels, runs.groupby("dataset", sort=False), strict=False):
        means = part.groupby("label", sort=False)[["paid", "mistakes"]].mean()
        places, below = np.arange(len(means)), np.zeros(len(means))
        for k, column in enumerate(("paid", "mistakes")):
            bars = axes.barh(places, means[column], left=below, color=COLOURS[k] + "99", hatch=HATCHES[k])
            bars.set_label({"paid": "prices", "mistakes": "mistakes"}[column])
            below = below + means[column].to_numpy()
        axes.set(title=dataset, xlabel="cost")
        axes.set_yticks(places, means.index, fontsize=8)
        axes.invert_yaxis()
    return with_legend(figure, panels)


def draw_deciders(runs: Any) -> Any:
    """The share of rounds that each expert, or the own model, decided."""
    figure, panels, _ = panels_by_dataset(runs)
    decided = [json.loads(one) for one in runs["decided"]]
    names = list(dict.fromkeys(name for one in decided for name in one))
    runs = runs.assign(**{name: [one.get(name, 0) / sum(one.values()) for one in decided] for name in names})
    for axes, (dataset, part) in zip(panels, runs.groupby("dataset", sort=False), strict=False):
        means = part.groupby("label", sort=False)[names].mean()
        places, below = np.arange(len(means)), np.zeros(len(means))
        for k, name in enumerate(names):
            style = {"color": COLOURS[k % len(COLOURS)] + "99", "hatch": HATCHES[k % len(HATCHES)]}
            axes.barh(places, means[name], left=below, **style).set_label(name)
            below = below + means[name].to_numpy()
        axes.set(title=dataset, xlabel="share of rounds decided", xlim=(0, 1))
        axes.set_yticks(places, means.index, fontsize=8)
        axes.invert_yaxis()
    return with_legend(figure, panels)


def draw_reliability(runs: Any) -> Any:
    """How often each expert is right, learned with its interval against true; on the diagonal they are the same."""
    figure, panels, _ = panels_by_dataset(runs)
    for axes, (dataset, part) in zip(panels, runs.groupby("dataset", sort=False), strict=False):
        axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
        learned = [one for text in part["experts"] for one in json.loads(text) if "learned" in one]
        for k, name in enumerate(dict.fromkeys(one["name"] for one in learned)):
            rows = [one for one in learned if one["name"] == name]
            middle = np.array([one["learned"] for one in rows])
            ends = np.array([one["interval"] for one in rows]).T
            spread = np.clip([middle - ends[0], ends[1] - middle], 0, None)
            style = {"fmt": "o", "markersize": 4, "linewidth": 1, "color": COLOURS[k % len(COLOURS)]}
            axes.errorbar([one["accuracy"] for one in rows], middle, spread, label=name, **style)
        axes.set(title=dataset, xlabel="right, in truth", ylabel="right, as learned", xlim=(0, 1), ylim=(0, 1))
    return with_legend(figure, panels)


def has_learned(runs: Any) -> bool:
    """Whether any run learned how far an expert can be trusted."""
    return any('"learned"' in text for text in runs["experts"])
