"""The demo: real streams that come with the dependencies, costs a practitioner would set, and what asking is worth."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import sparingly.strategies
from sparingly.experiments.datasets import load, suited
from sparingly.experiments.play import play
from sparingly.experiments.streams import Stream, stream
from sparingly.games import Game, label_efficient


@dataclass(frozen=True)
class Scene:
    """A stream, and what its mistakes and questions cost."""

    dataset: str
    story: str
    costs: tuple[tuple[float, ...], ...] | None = None
    query_cost: float = 1.0
    horizon: int | None = None

    def game(self, n_classes: int) -> Game:
        if self.costs is None:
            return label_efficient(n_classes, query_cost=self.query_cost)
        return label_efficient(costs=self.costs, query_cost=self.query_cost)


SCENES = (
    Scene(
        "river_shuttle",
        "space shuttle telemetry: a missed anomaly costs 10, a false alarm 1, an engineer's look 2",
        costs=((0.0, 10.0), (1.0, 0.0)),
        query_cost=2.0,
        horizon=20_000,
    ),
    Scene("digits", "handwritten digits: a wrong digit costs 1, and so does asking"),
)

PLAYERS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("sparing", "Sparing", {}),
    ("neural_cbp", "NeuralCBP", {}),
    ("random", "ask 5 % at random", {"p": 0.05}),
    ("never_ask", "never ask (after 20)", {}),
    ("always_ask", "always ask", {"epochs": 0}),
)
"""Name, label and options; a strategy that is not registered is left out. Who always asks need not train."""


@dataclass(frozen=True)
class SceneResult:
    """How one strategy did on one scene."""

    label: str
    cost: NDArray[np.float64]
    questions: int
    mistakes: int
    seconds: float


def demo(
    picture: Path | None = Path("demo.png"), *, seed: int = 0, horizon: int | None = None
) -> list[list[SceneResult]]:
    """Play every scene with every player, show progress and a table for each, and draw the cumulative costs."""
    console = Console()
    shown: list[list[SceneResult]] = []
    for scene in SCENES:
        sources = {how: _source(scene, how, seed, horizon) for how in ("streaming", "encoded")}
        first = sources["streaming"]
        console.print(f"\n[bold]{scene.story}[/bold] ({len(first):,} observations)")
        results = list(_play_all(scene.game(first.dataset.n_classes), sources, seed, console))
        console.print(_table(results))
        console.print(_in_words(results))
        shown.append(results)
    if picture is not None:
        _draw(shown, picture)
        console.print(f"\nThe cost as it grew: [bold]{picture}[/bold]")
    return shown


def _source(scene: Scene, preprocessing: Any, seed: int, horizon: int | None) -> Stream:
    data = load(scene.dataset, preprocessing)
    return stream(data, seed=seed, horizon=horizon or scene.horizon or len(data))


def _play_all(game: Game, sources: dict[str, Stream], seed: int, console: Console) -> Iterator[SceneResult]:
    known = sparingly.strategies.registered()
    players = [player for player in PLAYERS if player[0] in known]
    columns = (TextColumn("{task.description:<22}"), BarColumn(), TextColumn("cost {task.fields[cost]:>8,.0f}"))
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        for name, label, options in players:
            source = sources[suited(known[name])]
            task = progress.add_task(label, total=len(source), cost=0.0)
            strategy = known[name](game, source.X.shape[1], seed=seed, **options)
            began, costs, asked, wrong = time.perf_counter(), [], 0, 0
            for r in play(strategy, game, source):
                costs.append(r.cost)
                asked += game.informative_mask[r.action]
                wrong += not game.informative_mask[r.action] and r.action != r.outcome
                if r.t % 200 == 0:
                    progress.update(task, completed=r.t, cost=float(np.sum(costs)))
            yield SceneResult(label, np.cumsum(costs), asked, wrong, time.perf_counter() - began)


def _table(results: Sequence[SceneResult]) -> Table:
    table = Table()
    table.add_column("strategy")
    for heading in ("total cost", "questions", "mistakes", "seconds"):
        table.add_column(heading, justify="right")
    best = min(result.cost[-1] for result in results)
    for result in results:
        style = "bold green" if result.cost[-1] == best else ""
        numbers = (f"{result.cost[-1]:,.0f}", f"{result.questions:,}", f"{result.mistakes:,}", f"{result.seconds:.1f}")
        table.add_row(result.label, *numbers, style=style)
    return table


def _in_words(results: Sequence[SceneResult]) -> str:
    best = min(results, key=lambda result: result.cost[-1])
    always = max(results, key=lambda result: result.questions)
    share = best.questions / len(best.cost)
    paid = best.cost[-1] / always.cost[-1]
    return f"{best.label} asked about {share:.1%} and paid {paid:.1%} of what it costs to {always.label}."


def _draw(shown: Sequence[Sequence[SceneResult]], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(shown), figsize=(5.5 * len(shown), 4), layout="constrained")
    styles = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1))]
    for axis, scene, results in zip(np.atleast_1d(axes), SCENES, shown, strict=True):
        for result, style in zip(results, styles, strict=False):
            axis.plot(np.arange(1, len(result.cost) + 1), result.cost, linestyle=style, linewidth=2, label=result.label)
        axis.set(
            title=scene.dataset.replace("_", " "),
            xlabel="observations",
            ylabel="total cost",
            yscale="log",
            ylim=(1, None),
        )
        axis.grid(alpha=0.3)
    np.atleast_1d(axes)[0].legend(loc="lower right")
    figure.savefig(path, dpi=130)
    plt.close(figure)
