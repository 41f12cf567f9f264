"""This library, without a setting: `sparing` with its own scaling, `neural_cbp` with the stream's standardisation."""

from __future__ import annotations

import sparingly as sp
from benchmarks.peers.trial import Peer, Settings, Trial


def _play(trial: Trial, name: str) -> None:
    game = sp.label_efficient(costs=trial.costs, query_cost=1.0)
    strategy = sp.strategies()[name](game, n_features=trial.X.shape[1], seed=trial.seed)
    outcomes = (trial.expert.reveal(t) for t in range(len(trial.X)))
    with trial.clock:
        for t, one in enumerate(sp.play(strategy, game, zip(trial.X, outcomes, strict=True))):
            trial.announced[t] = one.prediction
            if one.action >= game.n_outcomes:
                trial.expert.ask(t)


def _sparing(trial: Trial) -> None:
    _play(trial, "sparing")


def _neural_cbp(trial: Trial) -> None:
    _play(trial, "neural_cbp")


def _no_choice(n_features: int, n_classes: int) -> list[Settings]:
    return [{}]


def _scales_itself(n_features: int, n_classes: int) -> list[Settings]:
    return [{"preprocessing": "encoded"}]


SPARING = Peer("sparing", (), _scales_itself, _sparing)
NEURAL_CBP = Peer("neural_cbp", (), _no_choice, _neural_cbp)
