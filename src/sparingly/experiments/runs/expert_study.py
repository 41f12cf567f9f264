"""The study of several experts: streams with recorded and with synthetic ones, and every way to use them."""

from __future__ import annotations

from typing import Any

from sparingly.experiments.dataset_sources import RECORDED
from sparingly.experiments.runs.experiment_settings import Option, Player, Row, Study, Task

NAME = "experts"
SYNTHETIC = ("gpt:0.01:accuracy=0.8", "junior:0.05:accuracy=0.9,weak_region=0.3,there=0.4")
"""Beside the human, on data sets without recorded answers."""
THRESHOLDS = (0.5, 0.7, 0.9)
"""The thresholds at which the confidence dial is played."""
_ENSEMBLE: dict[str, Option] = {"learner": "ensemble"}

PLAYERS = (
    Player(strategy="sparing", label="sparing"),
    Player(strategy="answer_as_feature", label="answers as features"),
    *(
        Player(strategy="confidence_dial", options={"threshold": one, **_ENSEMBLE}, label=f"dial at {one}")
        for one in THRESHOLDS
    ),
    Player(strategy="explore_then_trust", options=_ENSEMBLE, label="explore then trust"),
    Player(strategy="online_cascade", options=_ENSEMBLE, label="online cascade"),
    Player(strategy="always_expert", label="always the cheapest"),
    Player(strategy="majority", label="majority"),
)


def tasks(human: float, price: float, horizon: int) -> dict[str, Task]:
    """By data set: a human who knows, and language models, recorded or synthetic, at a price.

    >>> tasks(1, 0.01, 10_000)["isear"].expert
    ('gpt35:0.01', 'llama2_70b:0.01', 'human:1:gold')
    """
    truth = f"human:{human:g}:gold"
    made: dict[str, Task] = {}
    for name in ("isear", "banking77"):
        models = tuple(f"{model}:{price:g}" for model in RECORDED[name])
        settings: dict[str, Any] = {"preprocessing": "encoded", "encoder": "static", "horizon": horizon}
        made[name] = Task(dataset=name, expert=(*models, truth), **settings)
    for name in ("mnist", "adult", "shuttle"):
        made[name] = Task(dataset=name, preprocessing="auto", expert=(*SYNTHETIC, truth), horizon=horizon)
    return made


def study(*, seeds: int | None = None, horizon: int = 13_083, first_seed: int = 0) -> Study:
    """Every strategy on every stream, the human at 1, 0.3 and 0.1; and Sparing with the human alone.

    >>> len(study().rows), study().seeds
    (150, 5)
    """
    rows = []
    for human in (1.0, 0.3, 0.1):
        for task in tasks(human, 0.01, horizon).values():
            alone = task.model_copy(update={"expert": task.expert[-1:]})
            table = f"human at {human:g}"
            rows.append(Row(table=table, task=alone, player=Player(strategy="sparing", label="sparing, human alone")))
            rows += [Row(table=table, task=task, player=player) for player in PLAYERS]
    return Study(name=NAME, rows=tuple(rows), seeds=seeds or 5, first_seed=first_seed)
