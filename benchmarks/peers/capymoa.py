"""CapyMOA: MOA's ALUncertainty over an adaptive random forest or naive Bayes.

MOA is handed each label and decides inside whether to look; `getLastLabelAcqReport` says whether it did. From the first
`warm` it always learns, without saying so: they are questions too. On images the forest is left out: in trials on MNIST
it took 30 s a run and was wrong about two thirds.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from benchmarks.peers.trial import Peer, Settings, Trial

os.environ.setdefault("CAPYMOA_JVM_ARGS", "-Xmx4g -XX:+UseSerialGC")
FOREST, BAYES = "(meta.AdaptiveRandomForest -s 10)", "bayes.NaiveBayes"
WIDE = 200


def _grid(n_features: int, n_classes: int) -> list[Settings]:
    budgets = (0.02, 0.05, 0.1) if n_features > WIDE else (0.005, 0.02, 0.05)
    models = (BAYES,) if n_features > WIDE else (BAYES, FOREST)
    return [{"model": model, "strategy": "VarUncertainty", "budget": budget} for model in models for budget in budgets]


def _learner(trial: Trial, model: str, strategy: str, budget: float, warm: int, header: Any) -> Any:
    import capymoa  # noqa: F401 (starts the Java machine)
    from moa.classifiers.active import ALUncertainty

    learner = ALUncertainty()
    learner.getOptions().setViaCLIString(f"-l {model} -d {strategy} -b {budget} -n {warm}")
    learner.setRandomSeed(trial.seed + 1)
    learner.prepareForUse()
    learner.setModelContext(header)
    return learner


def _play(trial: Trial, *, model: str, strategy: str, budget: float, warm: int = 50) -> None:
    from capymoa.stream import NumpyStream

    labels = np.array([trial.expert.reveal(t) for t in range(len(trial.X))])
    source = NumpyStream(trial.X.astype(np.float64), labels, target_type="categorical")
    learner = _learner(trial, model, strategy, budget, warm, source.get_schema().get_moa_header())
    names = [int(name) for name in source.get_schema().get_label_values()]
    votes = np.zeros((len(trial.X), trial.n_classes))
    for t, instance in trial.each(lambda t: source.next_instance().java_instance):
        found = learner.getVotesForInstance(instance)
        learner.trainOnInstance(instance)
        if learner.getLastLabelAcqReport() or t < warm:
            trial.expert.ask(t)
        votes[t, names[: len(found)]] = found
    votes = np.nan_to_num(votes)
    votes /= votes.max(axis=1, keepdims=True).clip(1e-300)  # densities of many features are so large that sums overflow
    trial.announced[:] = trial.cheapest(votes / votes.sum(axis=1, keepdims=True).clip(1e-12))


PEER = Peer("CapyMOA", ("capymoa",), _grid, _play)
