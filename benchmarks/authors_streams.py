"""Our strategies on the streams behind the paper's tables, run beside run.

The code behind the tables shuffles the rows of a set of images by its seed, so that these streams can be played again:
how often the commonest class comes, which the authors' records have of each run, says that they are the same.
Strategies begin with the weights of the authors' runs, as far as the order of their draws is known (`WEIGHTS`).

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
from scipy.stats import pearsonr
from torch import nn

import sparingly as sp
from benchmarks.ineural import authors_weights
from sparingly.experiments.dataset import Dataset
from sparingly.experiments.datasets import load
from sparingly.experiments.reports.paper_runs import STOPPED
from sparingly.experiments.reports.statistical_tests import summarise
from sparingly.experiments.runs.experiment_settings import Run
from sparingly.experiments.runs.many_runs import begun_within
from sparingly.experiments.runs.paper_studies import study
from sparingly.experiments.runs.single_run import make_strategy
from sparingly.experiments.streams import Stream

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


def second_network(strategy: sp.NeuralCBP) -> None:
    """NeuralCBP's f2 as the authors' seed draws it after f1, whose weights are theirs already."""
    network, seed = strategy.network, strategy.seed
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        for net in (network.f1, network.f2):
            drawn = [nn.Linear(layer.in_features, layer.out_features) for layer in net.linear]
            if net is network.f2:
                for here, there in zip(net.linear, drawn, strict=True):
                    here.load_state_dict(there.state_dict())


WEIGHTS: dict[str, Callable[[Any], None]] = {"neural_cbp": second_network, "ineural": authors_weights}
"""How weights become the authors'; those of Cesa and Margin are drawn as theirs, Neuronal's are our own."""


def play(name: str, row: Any, seed: int) -> list[Any]:
    """One run; a line of the file."""
    source = authors_stream(_data(name), seed)
    game = sp.label_efficient(source.dataset.n_classes)
    strategy = make_strategy(Run(task=row.task, player=row.player, seed=seed), game, source)
    WEIGHTS.get(row.player.strategy, lambda _: None)(strategy)
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
    strategies = ["margin", "cesa", "neural_cbp", "neuronal", "ineural"]
    parser.add_argument("--strategy", nargs="+", default=strategies, choices=strategies)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--minutes", type=float, help="begin no run after so many")
    torch.set_num_threads(1)
    play_missing(parser.parse_args())


if __name__ == "__main__":
    study_streams()
