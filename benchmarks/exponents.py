"""How regret grows with the horizon: CBP and RandCBP on an easy and on a hard game, in the worst case.

On one problem the regret of CBP grows like log T, however hard the game is. What the rates T^(1/2) and T^(2/3) are
about is the worst problem for each horizon: the gap between the two classes that is just too small to be noticed in
time. So every gap of a grid is played, many times, and the curve is the largest mean regret over the grid at each
horizon.

    python -m benchmarks.exponents            # 2 strategies x 2 games, about 3 minutes on one core
    python -m benchmarks.exponents --jobs 2   # on two
    python -m benchmarks.exponents --quick    # a tenth of the horizon and of the runs

Writes docs/results/exponents.csv and docs/results/exponents.png.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.games import Game, apple_tasting, label_efficient
from sparingly.strategies.families.confidence_bounds import Bounds
from sparingly.strategies.families.random_widths import Draws

Floats = NDArray[np.float64]

RESULTS = Path(__file__).parents[1] / "docs" / "results"
ALPHA = 1.01
GAMES: dict[str, tuple[Game, float]] = {
    "apple tasting (easy)": (apple_tasting(), 1 / 2),
    "label-efficient (hard)": (label_efficient(2), 2 / 3),
}
"""Each with its rate; what comes with it is log(T)^(1 - rate)."""
RUNS = {"CBP": 400, "RandCBP": 1000}
"""Drawn widths leave a run in a few hundred with the wrong action for long: the mean needs more runs."""
STRATEGIES = {"CBP": None, "RandCBP": Draws(sigma=1.0, points=5, eps=1e-6)}


class ManyRuns:
    """CBP or RandCBP in many runs at once, on a game of two outcomes with one neighbor pair and one informative action.

    The moves are those of the strategies themselves, for which a test stands; only they are made for all runs in one
    product. In such a game the pair is confident or not, and then nothing is left to eliminate.
    """

    def __init__(self, game: Game, draws: Draws | None, p: Floats, rng: np.random.Generator) -> None:
        self.bounds = Bounds(game, alpha=ALPHA)
        ((self.i, self.j),) = self.bounds.geometry.neighbors
        (self.asks,) = self.bounds.informative
        self.v = self.bounds.geometry.observers[(self.i, self.j)][self.asks]
        self.hard = self.asks not in (self.i, self.j)
        self.draws, self.rng = draws, rng
        self.answers = np.zeros(len(p))
        self.second = np.zeros(len(p))
        self.p = p
        """The probability of outcome 1 in each run."""

    def actions(self, t: int) -> NDArray[np.int64]:
        """What each run plays in round t, counted from 1."""
        n = len(self.p)
        if t <= self.bounds.game.n_actions:
            return np.full(n, t - 1)
        share = self.second / self.answers
        gap = self.v[0] + (self.v[1] - self.v[0]) * share
        largest = math.sqrt(ALPHA * math.log(t))
        factor = 1.0 if self.draws is None else self.draws.shares(largest, n, self.rng)
        width = float(np.abs(self.v).max()) * largest * factor / np.sqrt(self.answers)
        cheaper = np.where(gap > 0, self.j, self.i)
        undecided = np.abs(gap) <= width
        if self.hard:
            undecided &= self.answers < self.bounds.rate_weight[self.asks] * self.bounds.rate(t)
        return np.where(undecided, self.asks, cheaper)

    def learn(self, actions: NDArray[np.int64], outcomes: NDArray[np.bool_]) -> None:
        asked = actions == self.asks
        self.answers += asked
        self.second += asked & outcomes


def regrets(
    game: Game, draws: Draws | None, p: Floats, checkpoints: NDArray[np.int64], rng: np.random.Generator
) -> Floats:
    """Expected regret so far of each run at each checkpoint, `[checkpoint, run]`."""
    runs = ManyRuns(game, draws, p, rng)
    expected = np.outer(game.costs[:, 0], 1 - p) + np.outer(game.costs[:, 1], p)
    extra = expected - expected.min(0)
    outcomes = np.zeros(len(p), dtype=bool)
    total, row, kept, stops = np.zeros(len(p)), np.arange(len(p)), [], set(checkpoints.tolist())
    for t in range(1, int(checkpoints[-1]) + 1):
        actions = runs.actions(t)
        seen = (actions == runs.asks).nonzero()[0]
        outcomes[seen] = rng.random(len(seen)) < p[seen]
        runs.learn(actions, outcomes)
        total += extra[actions, row]
        if t in stops:
            kept.append(total.copy())
    return np.array(kept)


@dataclass(frozen=True)
class Curve:
    """The worst case over the gaps at each horizon, and how fast it grows.

    Attributes
    ----------
    regret, error, gap
        The largest mean regret, its standard error over the runs, and the gap at which it is attained.
    exponent, spread
        The slope of log regret against log horizon, and its standard deviation over resampled runs.
    without_logarithm
        The slope once the regret is divided by the logarithm that comes with the rate.
    """

    game: str
    strategy: str
    horizons: NDArray[np.int64]
    regret: Floats
    error: Floats
    gap: Floats
    exponent: float
    spread: float
    without_logarithm: float


def curve(game: str, strategy: str, *, horizon: int, n_runs: int, seed: int = 0) -> Curve:
    """Play every gap of a grid `n_runs` times, with either class the likelier one."""
    rng = np.random.default_rng(seed)
    checkpoints = np.unique(np.geomspace(horizon / 100, horizon, 13).round().astype(int))
    gaps = np.geomspace(0.25 / math.sqrt(horizon), 0.7, 16)
    signed = np.concatenate([gaps, -gaps])
    p = np.repeat((1 + signed) / 2, n_runs)
    played_game, rate = GAMES[game]
    played = regrets(played_game, STRATEGIES[strategy], p, checkpoints, rng)
    by_gap = played.reshape(len(checkpoints), len(signed), n_runs)
    mean = by_gap.mean(2)
    worst = mean.argmax(1)
    here = np.arange(len(checkpoints))
    slopes = [_slope(checkpoints, _resampled(by_gap, rng).max(1)) for _ in range(200)]
    return Curve(
        game,
        strategy,
        checkpoints,
        mean[here, worst],
        by_gap.std(2)[here, worst] / math.sqrt(n_runs),
        signed[worst],
        _slope(checkpoints, mean.max(1)),
        float(np.std(slopes)),
        _slope(checkpoints, mean.max(1) / np.log(checkpoints) ** (1 - rate)),
    )


def _resampled(by_gap: Floats, rng: np.random.Generator) -> Floats:
    """Means over runs drawn with replacement, `[checkpoint, gap]`."""
    n_runs = by_gap.shape[2]
    weight = rng.multinomial(n_runs, np.full(n_runs, 1 / n_runs), size=by_gap.shape[1]) / n_runs
    return np.asarray(np.einsum("cgr,gr->cg", by_gap, weight))


def _slope(horizons: NDArray[np.int64], regret: Floats) -> float:
    return float(np.polyfit(np.log(horizons), np.log(regret), 1)[0])


def write(curves: list[Curve], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "exponents.csv").open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        what = ["game", "strategy", "rounds", "largest mean regret", "standard error", "gap"]
        table.writerow([*what, "exponent", "spread", "without the logarithm"])
        for one in curves:
            for k, horizon in enumerate(one.horizons):
                values = (one.regret[k], one.error[k], one.gap[k], one.exponent, one.spread, one.without_logarithm)
                table.writerow([one.game, one.strategy, int(horizon), *(f"{value:.4g}" for value in values)])
    draw(curves, folder / "exponents.png")


def draw(curves: list[Curve], path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (name, (_, exponent)) in zip(figure.subplots(1, 2), GAMES.items(), strict=True):
        _panel(axes, [one for one in curves if one.game == name], exponent)
        axes.set_title(name)
    figure.savefig(path, dpi=120)


def _panel(axes: Any, curves: list[Curve], exponent: float) -> None:
    for one, marker in zip(curves, "os", strict=False):
        label = f"{one.strategy}: exponent {one.exponent:.3f} ± {one.spread:.3f}"
        axes.errorbar(one.horizons, one.regret, 2 * one.error, marker=marker, markersize=4, capsize=2, label=label)
    horizons = curves[0].horizons
    guide = 0.6 * curves[-1].regret[0] * (horizons / horizons[0]) ** exponent
    axes.plot(horizons, guide, "k--", linewidth=1, label=f"slope {exponent:.3g}")
    axes.set(xscale="log", yscale="log", xlabel="horizon T", ylabel="largest mean regret over the gaps")
    axes.legend()


def study(say: Callable[[str], None] = print) -> None:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    arguments.add_argument("--quick", action="store_true")
    arguments.add_argument("--horizon", type=int, default=30_000)
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument("--to", type=Path, default=RESULTS)
    given = arguments.parse_args()
    part = 10 if given.quick else 1
    with ProcessPoolExecutor(given.jobs) as pool:
        waiting = [
            pool.submit(curve, game, strategy, horizon=given.horizon // part, n_runs=RUNS[strategy] // part)
            for game in GAMES
            for strategy in STRATEGIES
        ]
        curves = [one.result() for one in waiting]
    for one in curves:
        say(
            f"{one.game}, {one.strategy}: exponent {one.exponent:.3f} ± {one.spread:.3f}, "
            f"{one.without_logarithm:.3f} without the logarithm; at T the worst gap is {one.gap[-1]:.3g}"
        )
    write(curves, given.to)


if __name__ == "__main__":
    study()
