"""The tables of docs/comparison.md, from the records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.peers.runs import Record, Records
from benchmarks.peers.trial import Peer

PAGE = Path("docs/comparison.md")
RESULT = Path("docs/results/peers/tables.md")
MARKER = f"<!-- figures: python -m benchmarks.peers tables -> {RESULT} -->"
OWN = ("neural_cbp", "sparing")
"""What this library plays; the others are its peers."""
TITLES = {"uniform": "Every error costs 1", "fp": "Announcing 1 when 0 is true costs half"}


def write(records: Records, streams: Sequence[tuple[str, str]], peers: Sequence[Peer], reported: Sequence[int]) -> None:
    """Write the tables, and replace what is between the marks of the page; its words are left alone."""
    found = {
        (data, costs, peer.name): runs
        for data, costs in streams
        for peer in peers
        if (runs := _latest([run for run in records.of(data, costs, peer.name) if run["seed"] in reported]))
    }
    done = {key[:2] for key in found if key[2] == peers[-1].name}  # peers are played in order
    found = {key: runs for key, runs in found.items() if key[:2] in done}
    names = [peer.name for peer in peers if any(key[2] == peer.name for key in found)]
    lines = [line for costs in TITLES for line in _costs(found, [d for d, c in streams if c == costs], costs, names)]
    lines = [*_in_short(found, [data for data, costs in streams if costs == "uniform"]), *lines, *_all(found)]
    RESULT.write_text("# Peers\n\n" + "\n".join(line for line in lines if line != MARKER) + "\n")
    head, mark, rest = PAGE.read_text().partition("<!-- peers -->\n")
    _, end, tail = rest.partition("<!-- end of peers -->")
    PAGE.write_text(head + mark + "\n" + "\n".join(lines) + "\n" + end + tail)


def _latest(runs: list[Record]) -> list[Record]:
    """The runs with the setting that was reported last: a grid that changed leaves others behind."""
    return [run for run in runs if run["settings"] == runs[-1]["settings"]]


def _costs(found: dict[tuple[str, str, str], list[Record]], data: list[str], costs: str, names: list[str]) -> list[str]:
    """Total cost, with its standard error and the questions; the lowest is bold."""
    lines = [f"## {TITLES[costs]}", "", "Mean total cost ± standard error (questions).", ""]
    lines += _head(["stream", "rounds", "seeds", *names])
    for one in data:
        rows = {name: found[one, costs, name] for name in names if (one, costs, name) in found}
        if not rows:
            continue
        lowest = min(rows, key=lambda name: float(np.mean([run["cost"] for run in rows[name]])))
        cells = [_cost(rows.get(name, []), name == lowest) for name in names]
        some = next(iter(rows.values()))
        seeds = sorted({len(runs) for runs in rows.values()})
        lines.append(f"| {one} | {some[0]['rounds']} | {' to '.join(map(str, seeds))} | {' | '.join(cells)} |")
    return [*lines, ""]


def _cost(runs: list[Record], lowest: bool) -> str:
    if not runs:
        return "-"
    cost = np.array([run["cost"] for run in runs])
    error = f" ± {cost.std(ddof=1) / math.sqrt(len(cost)):.0f}" if len(cost) > 1 else ""
    mean = f"**{cost.mean():.0f}**" if lowest else f"{cost.mean():.0f}"
    return f"{mean}{error} ({np.mean([run['asked'] for run in runs]):.0f})"


def _in_short(found: dict[tuple[str, str, str], list[Record]], data: list[str]) -> list[str]:
    """With every error at 1: Sparing beside the other library that costs least on that stream; the lower is bold."""
    others = [name for name in dict.fromkeys(key[2] for key in found) if name not in OWN]
    means = {key: float(np.mean([run["cost"] for run in runs])) for key, runs in found.items()}
    best = {one: [means[one, "uniform", name] for name in others if (one, "uniform", name) in means] for one in data}
    shown = [one for one in data if best[one] and (one, "uniform", OWN[-1]) in means]
    if not shown:
        return []
    costs = [(means[one, "uniform", OWN[-1]], min(best[one])) for one in shown]
    lines = ["## In short", "", "Mean total cost where every error costs 1.", "", *_head(["", *shown])]
    for place, name in enumerate(("Sparing", "the best of the other libraries")):
        cells = [f"**{pair[place]:.0f}**" if pair[place] == min(pair) else f"{pair[place]:.0f}" for pair in costs]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return [*lines, ""]


def _all(found: dict[tuple[str, str, str], list[Record]]) -> list[str]:
    """A line for each peer on each stream: cost, questions, speed, and the setting that was chosen."""
    names = ["stream", "costs", "peer", "seeds", "total cost", "questions", "observations a second", "setting"]
    lines = ["## All of it", "", *_head(names)]
    for (data, costs, name), runs in found.items():
        cost, questions = _cost(runs, lowest=False).removesuffix(")").split(" (")
        settings = ", ".join(f"{key} {value}" for key, value in runs[0]["settings"].items() if name not in OWN)
        cells = [data, costs, name, len(runs), cost, questions, _rate(runs), settings or "-"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def _rate(runs: list[Record]) -> str:
    seconds = sum(run["seconds"] for run in runs)
    return f"{sum(run['rounds'] for run in runs) / seconds:,.0f}" if seconds else "-"


def _head(names: list[str]) -> list[str]:
    return [MARKER, "", f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
