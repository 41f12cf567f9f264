"""Copies of any river classifier as the model inside a strategy of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sparingly.strategies.sparing.models.ensemble import Ensemble

try:
    from river import base
except ImportError:
    raise ImportError("this needs river: pip install 'sparingly[adapters]'") from None

LEAST = 1e-4
"""The smallest probability that is believed: a tree's leaf that saw one class says 0 for the others."""


class RiverEnsemble(Ensemble):
    """Copies of a river classifier, each blind to one fold of the labels.

    At an update the copies begin anew and see the labels in their order, once. Features are numbered from 0.

    Parameters
    ----------
    classifier
        Any river classifier that gives probabilities, or a pipeline that ends in one.
    n_classes
        The classes are numbered from 0 too.
    members
        How many copies.

    Examples
    --------
    >>> from river import naive_bayes
    >>> import sparingly as sp
    >>> game = sp.label_efficient(2)
    >>> ensemble = RiverEnsemble(naive_bayes.GaussianNB(), n_classes=2)
    >>> strategy = sp.Sparing(game, n_features=3, network=ensemble, seed=0)
    >>> X = torch.randn(400, 3, generator=torch.Generator().manual_seed(0))
    >>> rounds = list(sp.play(strategy, game, zip(X, (X[:, 0] > 0).long().tolist())))
    >>> sum(r.cost for r in rounds) < 120
    True
    """

    def __init__(self, classifier: base.Estimator, n_classes: int, *, members: int = 3) -> None:
        if n_classes > 2 and not getattr(classifier, "_multiclass", True):
            raise ValueError(f"{classifier} knows two classes, not {n_classes}: put it into an OneVsRestClassifier")
        self.classifier = classifier
        self.n_classes = n_classes
        self.members = members
        self._models: list[Any] = []
        self._seen: dict[str, Any] = {}

    def fit(self, X: Tensor, y: Tensor, folds: Tensor, steps: int, generator: torch.Generator) -> None:
        seed = int(torch.randint(2**31, (1,), generator=generator))
        self._learn({"X": X.clone(), "y": y.clone(), "folds": folds.clone(), "seed": seed})

    def _learn(self, seen: dict[str, Any]) -> None:
        rows = [dict(enumerate(row)) for row in seen["X"].flatten(1).tolist()]
        labels, folds = seen["y"].tolist(), seen["folds"].tolist()
        self._models = [_seeded(self.classifier, seen["seed"] + k) for k in range(self.members)]
        for k, model in enumerate(self._models):
            for x, label, fold in zip(rows, labels, folds, strict=True):
                if fold != k:
                    model.learn_one(dict(x), label)
        self._seen = seen

    def logits(self, X: Tensor) -> Tensor:
        rows = [dict(enumerate(row)) for row in X.flatten(1).tolist()]
        probabilities = [
            [self._probabilities(model.predict_proba_one(dict(x))) for x in rows] for model in self._models
        ]
        return torch.tensor(probabilities).reshape(self.members, len(X), self.n_classes).clamp(min=LEAST).log()

    def _probabilities(self, probability: Mapping[Any, float]) -> list[float]:
        """A binary classifier speaks of True and False, which are 1 and 0."""
        found = [float(probability.get(label, 0.0)) for label in range(self.n_classes)]
        return found if sum(found) > 0 else [1 / self.n_classes] * self.n_classes

    def state_dict(self) -> dict[str, Any]:
        """The labels that the copies have seen, from which they are fitted again."""
        return dict(self._seen)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._learn({**state, "seed": int(state["seed"])})


def _seeded(model: base.Estimator, seed: int) -> Any:
    """A fresh copy of a model whose every seed is given, so that the same labels make the same model."""
    return model.clone(_with_seed(model._get_params(), seed))


def _with_seed(params: Any, seed: int) -> Any:
    if isinstance(params, tuple) and len(params) == 2 and isinstance(params[1], dict):
        return params[0], _with_seed(params[1], seed)
    if not isinstance(params, dict):
        return params
    return {name: seed if name == "seed" else _with_seed(value, seed) for name, value in params.items()}
