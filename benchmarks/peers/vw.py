"""Vowpal Wabbit: `--active` for two classes, and `--cs_active --simulation` for any classes and costs.

Both are run in simulation, where the tool is handed each label and decides inside whether to look. `--active` tells it
by forgetting the label of an example that it did not ask about. `--cs_active` tells nothing, so a question is taken to
have been asked where the predicted costs of that very observation moved. A question tells all costs of an observation.
Unequal costs: `--active` learns from examples weighed by the cost of their error, `--cs_active` from the costs.
VW scales features by itself, so that raw ones are tried too.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.trial import Peer, Settings, Trial

NO_LABEL = 1e30
TRACE = 1e-3
"""The smallest cost given to VW: its predictions begin at 0, and a cost of 0 would leave no trace of the question."""
FEW, WIDE = 60, 200
"""Up to few features, products of two features are tried too; wide ones are images, whose zeros VW leaves out."""


def _grid(n_features: int, **axes: tuple[Any, ...]) -> list[Settings]:
    axes["products"] = (False, True) if n_features <= FEW else (False,)
    axes["preprocessing"] = ("encoded",) if n_features > WIDE else ("encoded", "streaming")
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def _active_grid(n_features: int, n_classes: int) -> list[Settings]:
    losses = ("logistic", "squared")
    return _grid(n_features, mellowness=(1e-4, 1e-3, 1e-2), loss=losses, rate=(0.5,)) if n_classes == 2 else []


def _cs_active_grid(n_features: int, n_classes: int) -> list[Settings]:
    return _grid(n_features, mellowness=(3e-4, 1e-3, 3e-3), rate=(0.5,))


def _workspace(trial: Trial, mellowness: float, rate: float, products: bool, *more: str) -> Any:
    from vowpalwabbit import Workspace

    squares = ["--interactions", "xx"] if products else []
    words = ["--simulation", "--mellowness", mellowness, "-l", rate, "--random_seed", trial.seed, "--quiet"]
    return Workspace(" ".join(map(str, [*more, *words, *squares])))


def _line(x: NDArray[np.float32]) -> str:
    return "|x " + " ".join(f"{place}:{x[place]:.6g}" for place in np.flatnonzero(x))


def _active(trial: Trial, *, mellowness: float, loss: str, rate: float, products: bool) -> None:
    tool = _workspace(trial, mellowness, rate, products, "--active", "--loss_function", loss)
    weight = trial.costs.max(axis=0)

    def labelled(t: int) -> str:
        outcome = trial.expert.reveal(t)
        return f"{2 * outcome - 1} {weight[outcome]} {_line(trial.X[t])}"

    for t, line in trial.each(labelled):
        example = tool.example(line)
        trial.announced[t] = tool.predict(example) > 0
        tool.learn(example)
        if example.get_simplelabel_label() < NO_LABEL:
            trial.expert.ask(t)
        tool.finish_example(example)
    tool.finish()


def _cs_active(trial: Trial, *, mellowness: float, rate: float, products: bool) -> None:
    tool = _workspace(trial, mellowness, rate, products, f"--cs_active {trial.n_classes}", "--cost_max 1")

    def labelled(t: int) -> str:
        costs = trial.costs[:, trial.expert.reveal(t)].clip(TRACE)
        return " ".join(f"{k}:{cost}" for k, cost in enumerate(costs, 1)) + " " + _line(trial.X[t])

    for t, line in trial.each(labelled):
        example = tool.example(line)
        tool.predict(example)
        trial.announced[t] = example.get_active_multiclass()[0] - 1
        before = _predicted(example)
        tool.learn(example)
        tool.predict(example)
        if _predicted(example) != before:
            trial.expert.ask(t)
        tool.finish_example(example)
    tool.finish()


def _predicted(example: Any) -> list[float]:
    return [example.get_costsensitive_partial_prediction(k) for k in range(example.get_costsensitive_num_costs())]


ACTIVE = Peer("VW --active", ("vowpalwabbit",), _active_grid, _active)
CS_ACTIVE = Peer("VW --cs_active", ("vowpalwabbit",), _cs_active_grid, _cs_active)
