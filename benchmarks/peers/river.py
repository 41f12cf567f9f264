"""river: EntropySampler over an adaptive random forest or logistic regression.

It asks nothing before its model has seen two classes, so the first `warm` observations are labelled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers.trial import Peer, Settings, Trial

WIDE = 200


def _grid(n_features: int, n_classes: int) -> list[Settings]:
    many = n_features > WIDE and n_classes > 2
    linear = [
        {"model": "logistic", "rate": rate, "discount": discount}
        for rate in (0.01, 0.1)
        for discount in ((3, 10, 100, 1000) if many else (10, 100, 1000, 10_000))
    ]
    discounts = (3, 10, 30) if many else (10, 30, 100, 1000)
    return linear + [{"model": "forest", "discount": discount} for discount in discounts]


def _model(trial: Trial, model: str, rate: float) -> Any:
    from river import forest, linear_model, multiclass, optim

    if model == "forest":
        return forest.ARFClassifier(seed=trial.seed)
    logistic = linear_model.LogisticRegression(optimizer=optim.SGD(rate))
    return logistic if trial.n_classes == 2 else multiclass.OneVsRestClassifier(logistic)


def _play(trial: Trial, *, model: str, discount: float, rate: float = 0.01, warm: int = 50) -> None:
    from river import active

    sampler = active.EntropySampler(_model(trial, model, rate), discount_factor=discount, seed=trial.seed)
    probabilities = np.zeros((len(trial.X), trial.n_classes))
    for t, observation in trial.each(lambda t: dict(enumerate(trial.X[t].tolist()))):
        p, asks = sampler.predict_proba_one(observation)
        probabilities[t] = [p.get(k, 0.0) for k in range(trial.n_classes)]
        if asks or t < warm:
            sampler.learn_one(observation, trial.expert.ask(t))
    trial.announced[:] = trial.cheapest(probabilities)


PEER = Peer("river", ("river",), _grid, _play)
