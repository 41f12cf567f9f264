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
    lines += _speed(found, list(dict.fromkeys(data for data, _ in streams)), names)
    lines += _settings(found)
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


def _speed(found: dict[tuple[str, str, str], list[Record]], data: list[str], names: list[str]) -> list[str]:
    """Observations a second, with every error at 1."""
    lines = ["## Observations a second", "", *_head(["stream", *names])]
    for one in data:
        runs = [found.get((one, "uniform", name), []) for name in names]
        if any(runs):
            lines.append(f"| {one} | " + " | ".join(_rate(some) for some in runs) + " |")
    return [*lines, ""]


def _rate(runs: list[Record]) -> str:
    seconds = sum(run["seconds"] for run in runs)
    return f"{sum(run['rounds'] for run in runs) / seconds:,.0f}" if seconds else "-"


def _settings(found: dict[tuple[str, str, str], list[Record]]) -> list[str]:
    """What each peer was reported with."""
    lines = ["## Settings that were chosen", "", *_head(["stream", "costs", "peer", "setting"])]
    for (data, costs, name), runs in found.items():
        if runs[0]["settings"].keys() - {"preprocessing"}:
            settings = ", ".join(f"{key} {value}" for key, value in runs[0]["settings"].items())
            lines.append(f"| {data} | {costs} | {name} | {settings} |")
    return lines


def _head(names: list[str]) -> list[str]:
    return [MARKER, "", f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
