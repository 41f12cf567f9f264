"""Copies of any scikit-learn classifier as the model inside a strategy of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparingly.strategies.sparing.models.ensemble import Ensemble

try:
    from sklearn.base import clone
except ImportError:
    raise ImportError("this needs scikit-learn: pip install 'sparingly[adapters]'") from None

LEAST = 1e-4
"""The smallest probability that is believed: a leaf that saw one class says 0 for the others."""


class SklearnEnsemble(Ensemble):
    """Copies of a scikit-learn classifier, each blind to one fold of the labels; at an update they are fitted anew.

    Parameters
    ----------
    classifier
        Any scikit-learn classifier that gives probabilities (`predict_proba`), or a pipeline that ends in one.
    n_classes
        The classes are numbered from 0.
    members
        How many copies.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> import sparingly as sp
    >>> game = sp.label_efficient(2)
    >>> ensemble = SklearnEnsemble(RandomForestClassifier(20), n_classes=2)
    >>> strategy = sp.Sparing(game, n_features=3, network=ensemble, seed=0)
    >>> X = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    >>> rounds = list(sp.play(strategy, game, zip(X, (X[:, 0] > 0).long().tolist())))
    >>> sum(r.cost for r in rounds) < 90
    True
    """

    def __init__(self, classifier: Any, n_classes: int, *, members: int = 3) -> None:
        if not hasattr(classifier, "predict_proba"):
            raise ValueError(f"{classifier} gives no probabilities: it must have predict_proba")
        self.classifier = classifier
        self.n_classes = n_classes
        self.members = members
        self._models: list[Any] = []
        self._seen: dict[str, Any] = {}

    def fit(self, X: Tensor, y: Tensor, folds: Tensor, steps: int, generator: torch.Generator) -> None:
        seed = int(torch.randint(2**31 - self.members, (1,), generator=generator))
        self._learn({"X": X.clone(), "y": y.clone(), "folds": folds.clone(), "seed": seed})

    def _learn(self, seen: dict[str, Any]) -> None:
        X, y, folds = (seen[name].numpy() for name in ("X", "y", "folds"))
        rows = X.reshape(len(X), -1)
        self._models = []
        for k in range(self.members):
            mine = folds != k
            known = np.unique(y[mine]).tolist()
            # most classifiers refuse to learn one class, or none
            one_or_none = known[0] if known else None
            several = len(known) > 1
            self._models.append(self._fresh(seen["seed"] + k).fit(rows[mine], y[mine]) if several else one_or_none)
        self._seen = seen

    def _fresh(self, seed: int) -> Any:
        """A copy whose every random state is given, so that the same labels make the same model."""
        model = clone(self.classifier)
        states = [name for name in model.get_params() if name == "random_state" or name.endswith("__random_state")]
        return model.set_params(**dict.fromkeys(states, seed))

    def logits(self, X: Tensor) -> Tensor:
        rows = X.numpy().reshape(len(X), -1)
        found = np.full((self.members, len(rows), self.n_classes), 1 / self.n_classes)
        for k, model in enumerate(self._models):
            if model is None or not len(rows):
                continue
            found[k] = 0.0
            if isinstance(model, int):
                found[k, :, model] = 1.0
            else:
                found[k][:, model.classes_] = model.predict_proba(rows)
        return torch.from_numpy(np.log(np.clip(found, LEAST, None))).float()

    def add_class(self) -> None:
        self.n_classes += 1

    def state_dict(self) -> dict[str, Any]:
        """The labels that the copies have seen, from which they are fitted again."""
        return dict(self._seen)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if state:
            self._learn({**state, "seed": int(state["seed"])})
