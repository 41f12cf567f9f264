"""A picture of the cells: expected costs along a line for two outcomes, a coloured triangle for three."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sparingly.games.geometry import Geometry
from sparingly.games.linear_programs import TOLERANCE, Matrix

# Okabe and Ito's colours, told apart by colour-blind readers too; further actions repeat them.
_COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#F0E442", "#CC79A7", "#D55E00", "#0072B2", "#999999")

# The corners of an equilateral triangle, one for each of three outcomes.
_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])


def save_picture(geometry: Geometry, path: str | Path) -> None:
    """Draw the cells of a game with 2 or 3 outcomes and save them as PNG or SVG, by the name's ending."""
    path = Path(path)
    if path.suffix not in (".png", ".svg"):
        raise ValueError(f"{path} ends in neither .png nor .svg")
    n_outcomes = geometry.game.n_outcomes
    if n_outcomes not in (2, 3):
        raise ValueError(f"cells can be drawn for 2 or 3 outcomes, and this game has {n_outcomes}")
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("a picture needs matplotlib: pip install 'sparingly[figures]'") from None
    figure = Figure(figsize=(6, 4.5), layout="constrained")
    axes = figure.add_subplot()
    (_draw_line if n_outcomes == 2 else _draw_triangle)(axes, geometry)
    axes.set_title(f"{geometry.observability} game: where each action is the cheapest")
    with rc_context({"svg.hashsalt": "sparingly"}):
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)


def cell_corners(geometry: Geometry, action: int) -> Matrix:
    """Return the corners of an action's cell as distributions, [corner, outcome], in order around it.

    >>> from sparingly.games import analyze, label_efficient
    >>> cell_corners(analyze(label_efficient(2)), 0).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    costs = geometry.game.costs
    scale = np.ptp(costs, axis=0).max() or 1.0
    corners = np.eye(costs.shape[1])
    for gap in (costs - costs[action]) / scale:
        corners = _clip(corners, gap)
    return corners


def _clip(corners: Matrix, normal: Matrix) -> Matrix:
    """Keep the part of a convex polygon (or segment) where normal . p >= 0, as Sutherland and Hodgman do."""
    heights = corners @ normal
    heights[np.abs(heights) <= TOLERANCE] = 0.0
    kept = []
    for k in range(len(corners)):
        here, there = heights[k], heights[(k + 1) % len(corners)]
        if here >= 0:
            kept.append(corners[k])
        if here * there < 0 and not (len(corners) == 2 and k == 1):
            share = here / (here - there)
            kept.append(corners[k] + share * (corners[(k + 1) % len(corners)] - corners[k]))
    return np.array(kept).reshape(-1, corners.shape[1])


def _draw_line(axes: Any, geometry: Geometry) -> None:
    game = geometry.game
    for action, (name, costs) in enumerate(zip(game.actions, game.costs, strict=True)):
        colour = _COLOURS[action % len(_COLOURS)]
        best = action in geometry.pareto
        axes.plot(
            [0, 1], costs, color=colour, linewidth=2.5 if best else 1.2, linestyle="-" if best else "--", label=name
        )
        span = cell_corners(geometry, action)[:, 1]
        if best:
            axes.axvspan(span.min(), span.max(), color=colour, alpha=0.18, linewidth=0)
        elif len(span):
            axes.axvline(span.min(), color=colour, linewidth=1.2)
    axes.set_xlim(0, 1)
    axes.set_xlabel(f'probability of "{game.outcomes[1]}" (else "{game.outcomes[0]}")')
    axes.set_ylabel("expected cost")
    axes.legend(loc="best", fontsize=8)


def _draw_triangle(axes: Any, geometry: Geometry) -> None:
    game = geometry.game
    for action, name in enumerate(game.actions):
        corners = cell_corners(geometry, action) @ _CORNERS
        colour = _COLOURS[action % len(_COLOURS)]
        if action in geometry.pareto:
            axes.fill(*corners.T, color=colour, alpha=0.6, linewidth=0)
            axes.plot(*np.vstack([corners, corners[:1]]).T, color="black", linewidth=1)
            axes.text(*corners.mean(axis=0), name, ha="center", va="center", fontsize=8)
        elif len(corners):
            axes.plot(*corners.T, color=colour, linewidth=3, marker="o", markersize=5, label=f"{name} (degenerate)")
    for corner, name, place in zip(_CORNERS, game.outcomes, ("top", "top", "bottom"), strict=True):
        axes.text(*corner, name, ha="center", va=place, fontsize=10, fontweight="bold")
    if geometry.dominated:
        never = ", ".join(game.actions[a] for a in geometry.dominated)
        axes.text(0.5, -0.12, f"never the cheapest: {never}", ha="center", fontsize=8, style="italic")
    if geometry.degenerate:
        axes.legend(loc="upper right", fontsize=8)
    axes.set_aspect("equal")
    axes.set_axis_off()
