"""scikit-activeml: its stream strategies over a scikit-learn model that is fitted again as labels come.

Between two fits the model stands still, so a block of observations is put to the strategy in one call, and taken back
to the question after which a fit is due: the decisions are those of single calls, and the tool is not slowed by them.
StreamProbabilisticAL takes the model's probabilities, and how many labels are near by its own Parzen windows, which
stand still as long. A run of it on MNIST takes more than a minute, so on images it has the forest and one budget only.
VariableUncertainty counts the questions of a block after all of its rows, so it is told of them row by row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers.trial import Peer, Settings, Trial

BLOCK = 100
WIDE = 200
PROBABILISTIC = "StreamProbabilisticAL"
GROWTH = 1.1
"""A fit is due when the labels have grown by this."""


def _grid(n_features: int, n_classes: int) -> list[Settings]:
    wide = n_features > WIDE
    budgets = (0.02, 0.05, 0.1) if wide else (0.005, 0.02, 0.05)
    tried = [("Split", "forest", budgets), ("VariableUncertainty", "logistic", budgets)]
    tried += [(PROBABILISTIC, "forest", (0.05,) if wide else budgets)]
    tried += [] if wide else [(PROBABILISTIC, "logistic", budgets)]
    return [{"strategy": s, "model": model, "budget": budget} for s, model, some in tried for budget in some]


def _strategy(trial: Trial, strategy: str, budget: float) -> Any:
    from skactiveml import stream

    options = {"metric": "rbf"} if strategy == PROBABILISTIC else {}
    return getattr(stream, strategy)(budget=budget, random_state=trial.seed, **options)


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
    t, step = len(places), 1 if strategy == "VariableUncertainty" else None
    with trial.clock:
        while t < len(trial.X):
            known = trial.X[places], np.array(labels)
            classifier.fit(*known)
            due = int(np.ceil(GROWTH * len(labels)))
            while t < len(trial.X) and len(labels) < due:
                block = trial.X[t : t + BLOCK]
                asked, utilities = query.query(block, classifier, *known, return_utilities=True)
                asked = np.sort(asked).astype(int)[: due - len(labels)]
                end = int(asked[-1]) + 1 if len(labels) + len(asked) == due else len(block)
                for first in range(0, end, step or end):
                    part = slice(first, first + (step or end))
                    told = asked[(asked >= first) & (asked < part.stop)] - first
                    query.update(
                        block[:end][part], told, budget_manager_param_dict={"utilities": utilities[:end][part]}
                    )
                trial.announced[t : t + end] = trial.cheapest(classifier.predict_proba(block[:end]))
                places += [t + int(row) for row in asked]
                labels += [trial.expert.ask(t + int(row)) for row in asked]
                t += end


PEER = Peer("scikit-activeml", ("skactiveml", "sklearn"), _grid, _play)
