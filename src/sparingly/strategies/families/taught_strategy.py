"""Strategies that learn one classifier from whatever experts say, right or wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from sparingly.games import Game
from sparingly.learning.determinism import pad_block
from sparingly.learning.label_memory import Memory
from sparingly.strategies.families.expert_strategy import ExpertStrategy, keep_answer
from sparingly.strategies.families.network_options import check_choice
from sparingly.strategies.sparing.beliefs import Beliefs
from sparingly.strategies.strategy import NEVER, Shape

FIRST = 20
"""Labels before there is a classifier."""
GROWTH = 1.3
"""An update is due once the labels have grown by this factor."""
FEATURES_A_PENALTY = 25
"""The penalty on squared weights is one for so many features: close to the best on short texts and tables."""
STEPS = 40


class LogisticRegression:
    """Multinomial, on standardised features, by L-BFGS from where it was.

    >>> generator = torch.Generator().manual_seed(0)
    >>> X = torch.randn(80, 2, generator=generator)
    >>> model = LogisticRegression(2, 2)
    >>> model.fit(X, (X[:, 0] > 0).long())
    >>> bool(((model(X)[:, 1] > 0.5) == (X[:, 0] > 0)).float().mean() > 0.95)
    True
    """

    def __init__(self, n_features: int, n_classes: int) -> None:
        self.weight = torch.zeros(n_classes, n_features + 1)
        self.centre, self.scale = torch.zeros(n_features), torch.ones(n_features)
        self._penalty = n_features / FEATURES_A_PENALTY

    def fit(self, X: Tensor, y: Tensor, rng: np.random.Generator | None = None) -> None:
        """From labels; nothing is drawn."""
        X = X.flatten(1)
        self.centre, self.scale = X.mean(0), X.std(0, correction=0).clamp(min=1e-6)
        rows, weight = self._rows(X), self.weight.clone().requires_grad_()
        optimiser = torch.optim.LBFGS([weight], max_iter=STEPS, line_search_fn="strong_wolfe")

        def closure() -> Tensor:
            optimiser.zero_grad()
            fit = nn.functional.cross_entropy(rows @ weight.T, y, reduction="sum")
            value = (fit + self._penalty / 2 * weight[:, :-1].square().sum()) / len(y)
            value.backward()  # type: ignore[no-untyped-call]
            return value

        with torch.enable_grad():
            optimiser.step(closure)  # type: ignore[no-untyped-call]
        self.weight = weight.detach()

    def __call__(self, X: Tensor) -> Tensor:
        """Probabilities `[block, class]`."""
        return (pad_block(self._rows(X.flatten(1))) @ self.weight.T)[: len(X)].softmax(1)

    def _rows(self, X: Tensor) -> Tensor:
        return torch.cat([(X - self.centre) / self.scale, X.new_ones(len(X), 1)], 1)

    def state_dict(self) -> dict[str, Any]:
        return {"weight": self.weight, "centre": self.centre, "scale": self.scale}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.weight, self.centre, self.scale = (state[name] for name in ("weight", "centre", "scale"))


class BeliefsClassifier:
    """Sparing's ensemble as one classifier: the mean of its members, each trained without one fold of the labels."""

    def __init__(self, n_classes: int, shape: tuple[int, ...], seed: int) -> None:
        self._beliefs = Beliefs(n_classes, shape, seed=seed)

    def fit(self, X: Tensor, y: Tensor, rng: np.random.Generator) -> None:
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        self._beliefs.fit(X, X, y, torch.arange(len(y)) % self._beliefs.members, generator)

    def __call__(self, X: Tensor) -> Tensor:
        """Probabilities `[block, class]`."""
        return self._beliefs(X).mean(0)

    def state_dict(self) -> dict[str, Any]:
        return self._beliefs.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._beliefs.load_state_dict(state)


class TaughtStrategy(ExpertStrategy):
    """Learns one classifier and takes every answer for a label; a subclass says whom to ask (`_whom`).

    A truth replaces what another expert said of the same observation.

    Parameters
    ----------
    learner
        "logistic" regression, or the "ensemble" of networks and kernels that Sparing learns with, so that only the
        rules differ.
    """

    rule_state: ClassVar[tuple[str, ...]] = ()
    """Numbers, tensors and models of the rule that belong to the state."""

    def __init__(self, game: Game, n_features: Shape, *, learner: str = "logistic", seed: int = 0) -> None:
        super().__init__(game, n_features, seed=seed)
        check_choice(("logistic", "ensemble"), learner=learner)
        self.learner = learner
        self.model = self._model()
        self.memory, self.trained_on = Memory(), 0

    def _answered(self, x: Tensor, y: int) -> None:
        """Called with each answer before it is kept, for a rule that learns from it, too."""

    def _trained(self) -> None:
        """Called after each training, for a rule that has models of its own."""

    def _lessons(self) -> Tensor:
        """Which rows of the memory the classifier learns from, as a mask: all of them."""
        return torch.ones(len(self.memory), dtype=torch.bool)

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        y = self.experts.class_at(action, symbol)
        self._answered(x, y)
        keep_answer(self.memory, x, y, is_truth=action not in self.experts.noisy)

    def _due_after_label(self) -> bool:
        return int(self._lessons().sum()) >= FIRST and len(self.memory) >= math.ceil(GROWTH * self.trained_on)

    def _due_in(self) -> int:
        return NEVER

    def _train(self) -> None:
        self.trained_on = len(self.memory)
        lessons = self._lessons()
        self.model.fit(self.memory["x"][lessons], self.memory["y"][lessons], self.rng)
        self._trained()

    def _scores(self, X: Tensor) -> Tensor:
        if not self.trained_on:
            return torch.full((len(X), self.game.n_outcomes), 1 / self.game.n_outcomes)
        return self.model(X)

    def _model(self) -> LogisticRegression | BeliefsClassifier:
        if self.learner == "ensemble":
            return BeliefsClassifier(self.game.n_outcomes, self.shape, self.seed)
        return LogisticRegression(self.n_features, self.game.n_outcomes)

    def _identity(self) -> dict[str, Any]:
        return {"learner": self.learner}

    def _state(self) -> dict[str, Any]:
        parts = {"memory": self.memory.state_dict(), "trained_on": self.trained_on}
        parts["model"] = self.model.state_dict() if self.trained_on else None
        rule = {name: getattr(self, name) for name in self.rule_state}
        return parts | {name: part.state_dict() if hasattr(part, "state_dict") else part for name, part in rule.items()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.memory.load_state_dict(state["memory"])
        self.trained_on, saved = int(state["trained_on"]), state["model"]
        self.model = self._model()
        if saved is not None:
            self.model.load_state_dict(saved)
        for name in self.rule_state:
            ours = getattr(self, name)
            if hasattr(ours, "load_state_dict"):
                ours.load_state_dict(state[name])
            else:
                setattr(self, name, state[name].clone() if isinstance(ours, Tensor) else type(ours)(state[name]))
