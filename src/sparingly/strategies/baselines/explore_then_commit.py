"""Explore then commit: label the first n, train once, announce for ever after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.learning.determinism import pad_block
from sparingly.learning.label_memory import Memory
from sparingly.learning.networks import Network
from sparingly.strategies.families.classifier_strategy import Floats, full_expert, outcome_distribution
from sparingly.strategies.families.network_options import NetworkOptions, check_choice
from sparingly.strategies.strategy import NEVER, Assessment, Shape, Strategy, Why

LEARNERS = ("network", "forest", "boosting", "mlp")


class ExploreThenCommit(Strategy):
    """Asks about the first n observations, trains once on them, and then announces the class of least expected cost.

    Features are standardised by the labelled observations. If answers are late, it trains with those that are there
    after n rounds, and once more when the n-th has come.

    Parameters
    ----------
    n
        How many to label.
    learner
        "network", or scikit-learn's random "forest", histogram "boosting" or "mlp" with 100 units.
    network, width, depth, epochs, batch, learning_rate, device
        Of the network and its training, as every neural strategy has them (see `NetworkOptions`).

    >>> from sparingly import label_efficient
    >>> strategy = ExploreThenCommit(label_efficient(2), 1, n=20)
    >>> for x in np.linspace(-1, 1, 20):
    ...     decision = strategy.decide(strategy.assess([[x]]), 0)
    ...     strategy.learn([x], decision.action, strategy.game.feedback[decision.action][int(x > 0)])
    >>> [strategy.decide(strategy.assess([[x]]), 0).action for x in (-0.7, 0.7)]
    [0, 1]
    """

    name = "explore_then_commit"
    summary = "labels the first n observations, trains once, and announces"
    reference = "baseline"
    playable = "label-efficient games"
    stops_asking = True
    beats_random = False

    def __init__(
        self,
        game: Game,
        n_features: Shape,
        *,
        n: int = 200,
        learner: str = "network",
        network: Network = "mlp",
        width: int = 100,
        depth: int = 2,
        epochs: int = 40,
        batch: int = 64,
        learning_rate: float = 1e-3,
        device: str = "cpu",
        seed: int = 0,
    ) -> None:
        super().__init__(game, n_features, seed=seed)
        check_choice(LEARNERS, learner=learner)
        if n < 1:
            raise ValueError(f"n is {n}: at least one observation must be labelled")
        self.expert = full_expert(game, self.name)
        self.n, self.learner = n, learner
        self.networks = NetworkOptions(
            network=network,
            width=width,
            depth=depth,
            epochs=epochs,
            batch=batch,
            learning_rate=learning_rate,
            device=device,
            stop=None,
        )
        self.memory = Memory(device)
        self.trained_on = 0
        """How many labels the model has seen."""
        self._model: Any = None
        self._model_seed = seed
        """By which the model is fitted; also after the state was loaded into a strategy that was made with another."""

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        cost = self._probability(X) @ self.game.costs[: self.game.n_outcomes].T
        return {"cheapest": cost.argmin(1)}

    def _choose(self, assessment: Assessment, row: int) -> tuple[int, int, Why]:
        cheapest = int(assessment.values["cheapest"][row])
        if self.clock < self._to_ask:
            return self.expert, cheapest, Why("it asks about the first {n}", {"n": self._to_ask})
        return cheapest, cheapest, Why("committed after {n} labels", {"n": self.trained_on})

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        self.memory.append(x=x.flatten(), target=outcome_distribution(self.game, action, symbol))

    def _teach(self, X: Tensor, action: int, outcomes: Sequence[int]) -> None:
        """Each label that is taught saves a question; the model is fitted anew with all of them."""
        super()._teach(X, action, outcomes)
        self.trained_on = 0

    @property
    def _to_ask(self) -> int:
        return max(0, self.n - self.n_taught)

    def _due_after_label(self) -> bool:
        return self.n_labels == self._to_ask

    def _due_in(self) -> int:
        return self._to_ask - self.clock if self.clock < self._to_ask else NEVER

    def _train(self) -> None:
        if len(self.memory) and self.trained_on < self.n:
            self.trained_on = len(self.memory)
            self._fit()

    def _fit(self) -> None:
        x, target = (self.memory[name][: self.trained_on] for name in ("x", "target"))
        self._centre, self._scale = x.mean(0), x.std(0, unbiased=False).clamp_min(1e-6)
        X = (x - self._centre) / self._scale
        if self.learner == "network":
            self._model = self.networks.classifier((self.n_features,), target.shape[1], self._model_seed)
            training = self.networks.training("cross_entropy")
            training.fit(self._model, X, target, np.random.default_rng(self._model_seed))
        else:
            self._model = _estimator(self.learner, self._model_seed).fit(X.numpy(), target.argmax(1).numpy())

    def _probability(self, X: Tensor) -> Floats:
        """`[block, class]`; before there is a model, all classes alike."""
        if self._model is None:
            return np.full((len(X), self.game.n_outcomes), 1 / self.game.n_outcomes)
        rows = pad_block((X.flatten(1) - self._centre) / self._scale)
        if self.learner == "network":
            return self._model(rows)[: len(X)].double().softmax(1).numpy()  # type: ignore[no-any-return]
        known = np.zeros((len(rows), self.game.n_outcomes))
        known[:, self._model.classes_] = self._model.predict_proba(rows.numpy())
        return known[: len(X)]

    def _scores(self, X: Tensor) -> Tensor:
        return torch.from_numpy(self._probability(X))

    def _identity(self) -> dict[str, Any]:
        return {"n": self.n, "learner": self.learner}

    def _state(self) -> dict[str, Any]:
        return {"memory": self.memory.state_dict(), "model": [self.trained_on, self._model_seed]}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.memory.load_state_dict(state["memory"])
        # States of release 0.1 do not say by which seed the model was fitted.
        trained_on, seed = state["model"] if "model" in state else (state["trained_on"], self.seed)
        self.trained_on, self._model_seed = int(trained_on), int(seed)
        self._model = None
        if self.trained_on:
            self._fit()


def _estimator(learner: str, seed: int) -> Any:
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
        from sklearn.neural_network import MLPClassifier
    except ImportError as error:
        raise ImportError(
            f"the learner {learner!r} needs scikit-learn: pip install 'sparingly[experiments]'"
        ) from error
    if learner == "forest":
        return RandomForestClassifier(random_state=seed)
    return (
        HistGradientBoostingClassifier(random_state=seed) if learner == "boosting" else MLPClassifier(random_state=seed)
    )
