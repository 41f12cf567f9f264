"""The pictures of docs/idea.md, design.md and experts.md: `python -m docs._build.pictures` draws them, in a minute.

`python -m docs._build.pictures rooms` draws only the one that is named.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import sparingly as sp
from sparingly.games.picture import cell_corners

FOLDER = Path(__file__).parents[1] / "images"
SOURCE = Path(sp.__file__).parent
SKY, ORANGE, GREEN, GREY = "#56B4E9", "#E69F00", "#009E73", "#666666"
COLOURS = (SKY, ORANGE, "#CC79A7", GREEN)
ASK = GREEN
_LIGHT = "#eef6f4"


def game_as_tables() -> Figure:
    """Costs and feedback of the smallest game with a question, as two tables."""
    figure = Figure(figsize=(9, 2.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    rows, columns = ["announce cat", "announce dog", "ask a person"], ["it is a cat", "it is a dog"]
    _table(left, "what it costs", rows, columns, [["0", "1"], ["1", "0"], ["1", "1"]])
    _table(right, "what is seen afterwards", rows, columns, [["nothing", "nothing"], ["nothing"] * 2, ["cat", "dog"]])
    return figure


def _table(axes: Any, title: str, rows: list[str], columns: list[str], cells: list[list[str]]) -> None:
    axes.axis("off")
    axes.set_title(title)
    table = axes.table(
        cells, rowLabels=rows, colLabels=columns, loc="center", cellLoc="center", bbox=[0.3, 0, 0.7, 0.9]
    )
    table.set_fontsize(11)
    for (row, _), cell in table.get_celld().items():
        cell.set_edgecolor(GREY)
        if row == len(rows):
            cell.set_facecolor("#d9f0e8")


def cells_of_two() -> Figure:
    """Expected costs of announcing either class and of asking, for three cost matrices."""
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    games = {
        "a question costs as much as an error": sp.label_efficient(2),
        "a question costs 0.3": sp.label_efficient(2, query_cost=0.3),
        "a missed dog costs half": sp.label_efficient(costs=[[0, 0.5], [1, 0]], query_cost=1.0),
    }
    p = np.linspace(0, 1, 201)
    mixtures = np.stack([1 - p, p])
    for axes, (title, game) in zip(panels, games.items(), strict=True):
        expected = game.costs @ mixtures
        for action, (name, style) in enumerate((("announce cat", "-"), ("announce dog", "-"), ("ask", "--"))):
            axes.plot(p, expected[action], style, color=(SKY, ORANGE, ASK)[action], linewidth=2, label=name)
        best = expected.argmin(axis=0)
        for action in range(3):
            axes.fill_between(p, -0.08, -0.02, where=best == action, color=(SKY, ORANGE, ASK)[action], linewidth=0)
        axes.set(title=title, xlabel="how likely it is a dog", xlim=(0, 1), ylim=(-0.08, 1.1))
    panels[0].set_ylabel("expected cost")
    panels[2].legend(loc="center right", bbox_to_anchor=(1.0, 0.72))
    return figure


def cells_of_three() -> Figure:
    """The cells of three classes in the triangle of their probabilities, for a dear and for a cheap question."""
    figure = Figure(figsize=(9, 3.9), layout="constrained")
    triangle = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])
    for axes, price in zip(figure.subplots(1, 2), (1.0, 0.5), strict=True):
        geometry = sp.analyze(sp.label_efficient(3, query_cost=price))
        for action in range(4):
            corners = cell_corners(geometry, action)
            if len(corners) > 2:
                axes.fill(*(corners @ triangle).T, color=COLOURS[action], alpha=0.85, edgecolor="white", linewidth=2)
                middle = (corners @ triangle).mean(axis=0)
                name = ("announce\ncat", "announce\ndog", "announce\nfox", "ask")[action]
                axes.text(*middle, name, ha="center", va="center")
        for corner, name, side in zip(
            triangle, ("surely a cat", "surely a dog", "surely a fox"), (-1, -1, 1), strict=True
        ):
            axes.text(corner[0], corner[1] + 0.06 * side, name, ha="center", va="center", color=GREY)
        axes.set(title=f"a question costs {price:g}", xlim=(-0.15, 1.15), ylim=(-0.14, 0.98), aspect="equal")
        axes.axis("off")
    return figure


def _stream(seed: int, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Two moons, their points in random order."""
    from sklearn.datasets import make_moons

    X, y = make_moons(rounds, noise=0.2, random_state=seed)
    return X.astype(np.float32), y


def questions_fall() -> Figure:
    """Where and when `sparing` asks on two moons."""
    X, y = _stream(0, 2000)
    game = sp.label_efficient(2)
    strategy = sp.Sparing(game, n_features=2, seed=0)
    asked = np.array([one.action == 2 for one in sp.play(strategy, game, zip(X, y, strict=True))])
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    panels = figure.subplots(1, 3)
    for axes, (start, end) in zip(panels[:2], ((0, 300), (300, 2000)), strict=True):
        part = slice(start, end)
        for k, mark in ((0, "o"), (1, "s")):
            rows = (y[part] == k) & ~asked[part]
            axes.scatter(*X[part][rows].T, s=7, marker=mark, color=(SKY, ORANGE)[k], alpha=0.5, linewidths=0)
        axes.scatter(*X[part][asked[part]].T, s=26, marker="x", color="black", linewidths=1.2, label="asked")
        axes.set(title=f"rounds {start + 1} to {end}: {asked[part].sum()} questions", xticks=[], yticks=[])
    panels[0].legend(loc="upper right")
    panels[2].plot(asked.cumsum(), color="black")
    panels[2].set(title="questions so far", xlabel="round", ylim=(0, None))
    return figure


def asking_pays() -> Figure:
    """What it costs to label the first n digits, learn once and announce ever after, by n."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order] / 16, y[order]
    numbers = [15, 20, 30, 40, 60, 80, 100, 130, 160, 200, 250, 300, 400, 600, 900, 1300, len(y)]
    errors = []
    for n in numbers:
        right = LogisticRegression(max_iter=300).fit(X[:n], y[:n]).predict(X[n:]) == y[n:] if n < len(y) else np.ones(1)
        errors.append(int((~right.astype(bool)).sum()))
    total = np.array(numbers) + errors
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(numbers, numbers, "--", color=ASK, label="paid for questions")
    axes.plot(numbers, errors, ":", color=ORANGE, linewidth=2, label="paid for errors")
    axes.plot(numbers, total, "o-", color="black", markersize=4, label="together")
    best = int(total.argmin())
    axes.annotate(f"{total[best]} with {numbers[best]} questions", (numbers[best], total[best]), (120, 750),
                  arrowprops={"arrowstyle": "->", "color": GREY})  # fmt: skip
    axes.set(xscale="log", xlabel="labels bought at the start", ylabel="total cost", ylim=(0, None))
    axes.set_title(f"{len(y)} handwritten digits, a question and an error cost 1 each")
    axes.set_xticks([20, 50, 100, 200, 500, 1000], ["20", "50", "100", "200", "500", "1000"])
    axes.minorticks_off()
    axes.legend()
    return figure


def who_is_asked() -> Figure:
    """Of three ways to decide about one of two classes, which is the cheapest at which belief."""
    p, accuracy, price, human = np.linspace(0, 1, 401), 0.85, 0.03, 0.3
    said = np.stack([p * accuracy + (1 - p) * (1 - accuracy), p * (1 - accuracy) + (1 - p) * accuracy])
    after = np.stack([p * accuracy, p * (1 - accuracy)]) / said
    ways = {
        "announce": np.minimum(p, 1 - p),
        "ask the model, then announce": price + (said * np.minimum(after, 1 - after)).sum(0),
        "ask the model, then the human if in doubt": price + (said * np.minimum(np.minimum(after, 1 - after), human)).sum(0),
        "ask the human": np.full_like(p, human),
    }
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axes = figure.subplots()
    best = np.stack(list(ways.values())).argmin(0)
    for k, (name, cost) in enumerate(ways.items()):
        axes.plot(p, cost, ("-", "--", "-.", ":")[k], color=COLOURS[k], linewidth=2, label=name)
        axes.fill_between(p, 0, 0.02, where=best == k, color=COLOURS[k], linewidth=0)
    axes.set(xlabel="belief that it is a dog", ylabel="expected cost", xlim=(0, 1), ylim=(0, 0.52))
    axes.set_title("a mistake costs 1, a model that is right 85 times in 100 costs 0.03, a human 0.3", fontsize=11)
    axes.legend(fontsize=9, loc="upper right")
    return figure


LAYERS = (
    (("commands", "the command line"),),
    (("adapters", "river, scikit-learn, Gymnasium, ..."),),
    (("live", "one strategy serves real people"), ("experiments", "strategies are compared")),
    (("strategies", "who decides whether to ask"),),
    (("encoders", "rows and texts as numbers"),),
    (("games", "what is played; no torch"), ("learning", "what is learned; torch")),
    (("experts", "who is asked: prices and answers; no torch"),),
)
"""The rooms of the source from top to bottom: each may import from those below it, and none from those beside it."""


def rooms() -> Figure:
    """The folders of the source as layers, each with the folders in it, read from the tree."""
    figure = Figure(figsize=(8.8, 7.0), layout="constrained")
    axes = figure.subplots()
    top = 0.0
    for layer in LAYERS:
        tallest = max(len(_folders(SOURCE / name)) for name, _ in layer)
        height = 1.05 + 0.48 * tallest
        for place, (name, meaning) in enumerate(layer):
            left, width = place * 12 / len(layer), 12 / len(layer) - 0.15
            axes.add_patch(Rectangle((left, top), width, height, facecolor=_LIGHT, edgecolor=GREY, linewidth=1.2))
            axes.text(left + 0.2, top + 0.55, f"{name}/", weight="bold", va="center", fontsize=12)
            axes.text(left + width - 0.2, top + 0.55, meaning, va="center", ha="right", color=GREY, fontsize=10)
            for row, (folder, inside) in enumerate(_folders(SOURCE / name)):
                y = top + 1.15 + 0.48 * row
                axes.text(left + 0.45, y, f"{folder}/", va="center", fontsize=10)
                axes.text(left + 2.1, y, inside, va="center", fontsize=9, color=GREY)
        top += height + 0.45
        if layer is not LAYERS[-1]:
            axes.annotate("", (6, top - 0.02), (6, top - 0.43), arrowprops={"arrowstyle": "-|>", "color": GREY})
    axes.set(xlim=(-0.1, 12), ylim=(top, -0.1))
    axes.axis("off")
    return figure


def _folders(room: Path) -> list[tuple[str, str]]:
    """The packages in a room, and what is in each: its own packages."""
    packages = sorted(path.parent for path in room.glob("*/__init__.py"))
    return [
        (package.name, "  ".join(f"{path.parent.name}/" for path in sorted(package.glob("*/__init__.py"))))
        for package in packages
    ]


PICTURES = {
    "rooms": rooms,
    "game": game_as_tables,
    "cells-of-two": cells_of_two,
    "cells-of-three": cells_of_three,
    "asking-pays": asking_pays,
    "questions-fall": questions_fall,
    "who-is-asked": who_is_asked,
}


def main(names: list[str]) -> None:
    for name in names or PICTURES:
        PICTURES[name]().savefig(FOLDER / f"{name}.png", dpi=110)


if __name__ == "__main__":
    main(sys.argv[1:])
