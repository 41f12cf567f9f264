"""Our strategies on the streams behind the paper's tables, run beside run.

The code behind the tables shuffles the rows of a set of images by its seed, so that these streams can be played again:
how often the commonest class comes, which the authors' records have of each run, says that they are the same.
Strategies begin with the weights of the authors' runs and learn from the same batches: both come from one generator,
in an order that the released code shows (`begin`). What is left is rounding, on another device.

`python -m benchmarks.authors_streams [--data NAME ...] [--strategy NAME ...] [--seeds N] [--minutes N]` plays what is
missing, one line a run in docs/results/authors_streams.csv; `python -m benchmarks.rivals_table` shows the runs beside
the authors'.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.stats import pearsonr
from torch import Tensor, nn

import sparingly as sp
from benchmarks.ineural import draw_weights
from sparingly.experiments.dataset import Dataset
from sparingly.experiments.datasets import load
from sparingly.experiments.reports.paper_runs import STOPPED
from sparingly.experiments.reports.statistical_tests import summarise
from sparingly.experiments.runs.experiment_settings import Run
from sparingly.experiments.runs.many_runs import begun_within
from sparingly.experiments.runs.paper_studies import study
from sparingly.experiments.runs.single_run import make_strategy
from sparingly.experiments.streams import Stream
from sparingly.learning.networks import normal_mlp
from sparingly.strategies.published.selective_sampling.margin import Margin
from sparingly.strategies.published.selective_sampling.neuronal import Neuronal

RUNS = Path("docs/results/authors_streams.csv")
COLUMNS = ["dataset", "label", "seed", "commonest", "regret", "questions"]
ROUNDS = 9999
"""Of the authors' runs."""
SEEDS = 25
STUDIES = {"mnist_binary": "q1", "mnist": "q2", "fashion_mnist": "q2"}


def authors_stream(data: Dataset, seed: int) -> Stream:
    """The stream of a run behind the tables: the training set's rows in the order that its seed gives them."""
    index = np.random.RandomState(seed).permutation(len(data))[:ROUNDS]
    y = data.y[index]
    return Stream(data, index, y, y, np.arange(0))


def commonest(y: Any) -> int:
    """How often the commonest class comes."""
    return int(np.bincount(y).max())


class BatchOrder:
    """Orders of rows as torch's loader of shuffled batches draws them from the global generator, here from a state.

    An epoch draws two numbers: one for the loader's workers, and one that the order comes from.
    """

    def __init__(self, state: Tensor) -> None:
        self.generator = torch.Generator()
        self.generator.set_state(state)

    def permutation(self, n: int) -> NDArray[np.int64]:
        _, seed = (int(torch.empty((), dtype=torch.int64).random_(generator=self.generator)) for _ in range(2))
        order: NDArray[np.int64] = torch.randperm(n, generator=torch.Generator().manual_seed(seed)).numpy()
        return order


def one_network(strategy: Margin) -> None:
    """The weights of Margin's classifier, from the global generator."""
    drawn = normal_mlp(strategy.shape, strategy.game.n_outcomes)
    strategy.classifier.load_state_dict(drawn.state_dict())


def two_networks(strategy: sp.NeuralCBP | Neuronal) -> None:
    """The weights of NeuralCBP or Neuronal, f1's and then f2's, from the global generator."""
    for net in (strategy.network.f1, strategy.network.f2):
        for layer in net.linear:
            layer.load_state_dict(nn.Linear(layer.in_features, layer.out_features).state_dict())


DRAWS: dict[str, Callable[[Any], None]] = {
    "margin": one_network,
    "neural_cbp": two_networks,
    "neuronal": two_networks,
    "ineural": draw_weights,
}
"""How the authors' code draws the weights of a strategy. Cesa, too, is seeded but for the coin by which it asks."""


def begin(strategy: Any, name: str) -> None:
    """Let a strategy begin as the authors' run of its seed: the weights, and then the batches, from one generator."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(strategy.seed)
        DRAWS[name](strategy)
        strategy.rng = BatchOrder(torch.get_rng_state())


def play(name: str, row: Any, seed: int) -> list[Any]:
    """One run; a line of the file."""
    source = authors_stream(_data(name), seed)
    game = sp.label_efficient(source.dataset.n_classes)
    strategy = make_strategy(Run(task=row.task, player=row.player, seed=seed), game, source)
    begin(strategy, row.player.strategy)
    played = list(sp.play(strategy, game, zip(source.X, source.y.tolist(), strict=True)))
    asked = sum(one.action >= game.n_outcomes for one in played)
    return [name, row.player.shown, seed, commonest(source.y), sum(one.cost for one in played), asked]


@lru_cache(maxsize=1)
def _data(name: str) -> Dataset:
    return load(name, "paper")


def play_missing(chosen: argparse.Namespace) -> None:
    if not RUNS.exists():
        RUNS.write_text(",".join(COLUMNS) + "\n")
    known = set(pd.read_csv(RUNS)[COLUMNS[:3]].itertuples(index=False, name=None))
    rows = [
        (name, row)
        for name in chosen.data
        for row in study(STUDIES[name]).rows
        if row.task.dataset == name and row.player.strategy in chosen.strategy
    ]
    todo = ((*one, seed) for one, seed in itertools.product(rows, range(chosen.seeds)))
    missing = (one for one in todo if (one[0], one[1].player.shown, one[2]) not in known)
    for one in begun_within(chosen.minutes, missing):
        line = ",".join(map(str, play(*one)))
        with RUNS.open("a") as file:
            file.write(line + "\n")
        print(line, flush=True)


def pairs(theirs: Any) -> Any:
    """Our runs beside the authors' on the same stream: those whose number of the commonest class no other has."""
    ours = pd.read_csv(RUNS)
    known = theirs[theirs["table"].isin(["Q1", "Q2"])].rename(
        columns={"strategy": "label", "majority_count": "commonest"}
    )
    key = ["dataset", "label", "commonest"]
    ours, known = (frame[~frame.duplicated(key, keep=False)] for frame in (ours, known))
    return ours.merge(known[[*key, "regret", "questions"]], on=key, suffixes=("", "_theirs"))


def table(theirs: Any) -> list[str]:
    """A line for each data set and strategy: what both have, how far apart single runs are, and which stop asking."""
    names = ["data set", "strategy", "runs", "regret", "paper's regret", "ours less theirs", "correlation", "questions"]
    names += [
        "paper's questions",
        "correlation of questions",
        "both stop",
        "only ours",
        "only theirs",
        "same to the end",
    ]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    for key, part in pairs(theirs).groupby(["dataset", "label"], sort=False):
        stop, stops = part["questions"] <= STOPPED, part["questions_theirs"] <= STOPPED
        same = (part["regret"] == part["regret_theirs"]) & (part["questions"] == part["questions_theirs"])
        cells = [*key, len(part)]
        cells += [_spread(part["regret"]), _spread(part["regret_theirs"])]
        cells += [_spread(part["regret"] - part["regret_theirs"], "+"), _correlation(part, "regret")]
        cells += [_spread(part["questions"]), _spread(part["questions_theirs"]), _correlation(part, "questions")]
        cells += [(stop & stops).sum(), (stop & ~stops).sum(), (~stop & stops).sum(), same.sum()]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def _spread(values: Any, sign: str = "") -> str:
    told = summarise(values)
    return f"{round(told.mean):{sign}} ± {told.error:.0f}"


def _correlation(part: Any, name: str) -> str:
    return f"{pearsonr(part[name], part[f'{name}_theirs']).statistic:.2f}" if len(part) > 2 else "-"


def study_streams() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=list(STUDIES), choices=list(STUDIES))
    parser.add_argument("--strategy", nargs="+", default=list(DRAWS), choices=list(DRAWS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--minutes", type=float, help="begin no run after so many")
    torch.set_num_threads(1)
    play_missing(parser.parse_args())


if __name__ == "__main__":
    study_streams()
