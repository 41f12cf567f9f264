"""scikit-activeml: its stream strategies over a scikit-learn model that is fitted again as labels come.

Between two fits the model stands still, so a block of observations is put to the strategy in one call, and taken back
to the question after which a fit is due: the decisions are those of single calls, and the tool is not slowed by them.
StreamProbabilisticAL is left out: in trials on MAGIC (seed 1000) it cost more than Split, and it takes longer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers.trial import Peer, Settings, Trial

BLOCK = 100
WIDE = 200
GROWTH = 1.1
"""A fit is due when the labels have grown by this."""


def _grid(n_features: int, n_classes: int) -> list[Settings]:
    pairs = (("Split", "forest"), ("VariableUncertainty", "logistic"))
    budgets = (0.02, 0.05, 0.1) if n_features > WIDE else (0.005, 0.02, 0.05)
    return [{"strategy": strategy, "model": model, "budget": budget} for strategy, model in pairs for budget in budgets]


def _strategy(trial: Trial, strategy: str, budget: float) -> Any:
    from skactiveml import stream

    return getattr(stream, strategy)(budget=budget, random_state=trial.seed)


def _model(trial: Trial, model: str, strength: float) -> Any:
    from skactiveml.classifier import SklearnClassifier
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    learner = (
        RandomForestClassifier(50, random_state=trial.seed) if model == "forest" else LogisticRegression(C=strength)
    )
    return SklearnClassifier(learner, classes=list(range(trial.n_classes)), random_state=trial.seed)


def _play(trial: Trial, *, strategy: str, model: str, budget: float, strength: float = 0.1, warm: int = 50) -> None:
    query, classifier = _strategy(trial, strategy, budget), _model(trial, model, strength)
    places = list(range(min(warm, len(trial.X))))
    labels = [trial.expert.ask(t) for t in places]
    t = len(places)
    with trial.clock:
        while t < len(trial.X):
            classifier.fit(trial.X[places], labels)
            due = int(np.ceil(GROWTH * len(labels)))
            while t < len(trial.X) and len(labels) < due:
                block = trial.X[t : t + BLOCK]
                asked, utilities = query.query(
                    block, classifier, trial.X[places], np.array(labels), return_utilities=True
                )
                asked = np.sort(asked).astype(int)[: due - len(labels)]
                end = int(asked[-1]) + 1 if len(labels) + len(asked) == due else len(block)
                query.update(block[:end], asked, budget_manager_param_dict={"utilities": utilities[:end]})
                trial.announced[t : t + end] = trial.cheapest(classifier.predict_proba(block[:end]))
                places += [t + int(row) for row in asked]
                labels += [trial.expert.ask(t + int(row)) for row in asked]
                t += end


PEER = Peer("scikit-activeml", ("skactiveml", "sklearn"), _grid, _play)
