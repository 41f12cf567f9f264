"""Strategies that learn one classifier from whatever experts say, right or wrong."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from sparingly.games import Game
from sparingly.learning.determinism import pad_block
from sparingly.learning.label_memory import Memory
from sparingly.strategies.families.classifier_strategy import full_expert
from sparingly.strategies.families.network_options import check_choice
from sparingly.strategies.sparing.beliefs import Beliefs
from sparingly.strategies.strategy import NEVER, Assessment, Heard, Shape, Strategy, Why

FIRST = 20
"""Labels before there is a classifier."""
GROWTH = 1.3
"""An update is due once the labels have grown by this factor."""
FEATURES_A_PENALTY = 25
"""The penalty on squared weights is one for so many features: close to the best on short texts and tables."""
STEPS = 40

Said = Mapping[int, int]
"""The class that each action's expert named, in the order asked; who did not answer is not in it."""


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

    def fit(self, X: Tensor, y: Tensor) -> None:
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


class TaughtStrategy(Strategy):
    """Takes every answer for a label; a subclass says whom to ask (`_whom`), and what answers mean (`_belief`).

    A truth replaces what another expert said of the same observation.

    Parameters
    ----------
    game
        Label-efficient, with any experts who name a class, whether or not they may be wrong.
    learner
        "logistic" regression, or the "ensemble" of networks and kernels that Sparing learns with, so that only the
        rules differ.
    """

    playable = "label-efficient games, also with experts who may be wrong"
    noisy_experts = True
    scales = True
    rule_state: ClassVar[tuple[str, ...]] = ()
    """Numbers and tensors of the rule that belong to the state."""

    def __init__(self, game: Game, n_features: Shape, *, learner: str = "logistic", seed: int = 0) -> None:
        super().__init__(game, n_features, seed=seed)
        check_choice(("logistic", "ensemble"), learner=learner)
        cheapest = full_expert(game, self.name)
        asks = range(game.n_outcomes, game.n_actions)
        named = sorted((a for a in asks if game.expert(a) is not None), key=lambda a: float(game.costs[a].mean()))
        self.careless = [a for a in named if not game.experts[a - game.n_outcomes].gold]
        """Who may be wrong, the cheapest first."""
        gold = [a for a in named if a not in self.careless] if named else [cheapest]
        self.gold = gold[0] if gold else None
        """The cheapest who tells the truth, if there is one."""
        self.learner = learner
        self.costs = torch.from_numpy(game.costs[: game.n_outcomes].astype(np.float32))
        self.model = self._model()
        self.memory, self.trained_on = Memory(), 0

    @property
    def teacher(self) -> int:
        """The cheapest of all experts."""
        return self.careless[0] if self.careless or self.gold is None else self.gold

    def named(self, expert: str | None) -> int:
        """The action that asks an expert, the cheapest of all if no name is given."""
        if expert is None:
            return self.teacher
        names = [one.name for one in self.game.experts]
        if expert not in names:
            raise ValueError(f"expert is {expert!r}: the experts are {', '.join(names) or 'without names'}")
        return self.game.n_outcomes + names.index(expert)

    @abc.abstractmethod
    def _whom(self, x: Tensor, probability: Tensor, said: Said, asked: Sequence[int]) -> tuple[int | None, Why]:
        """Whom to ask next, None to announce, and why; by the own probabilities `[class]` and what was heard."""

    def _belief(self, probability: Tensor, said: Said) -> Tensor:
        """What is held of the classes, `[class]`, once experts were heard: the last of them is believed."""
        return nn.functional.one_hot(torch.tensor(list(said.values())[-1]), len(probability)) if said else probability

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        return {"probability": self._scores(X)}

    def _choose(self, assessment: Assessment, row: int) -> tuple[int, int, Why]:
        return self._choose_again(assessment, row, ())

    def _choose_again(self, assessment: Assessment, row: int, heard: Heard) -> tuple[int, int, Why]:
        x, probability = assessment.X[row], assessment.values["probability"][row]
        said = {action: self._class(action, symbol) for action, symbol in heard if symbol is not None}
        asked = [action for action, _ in heard]
        cheapest = int((self.costs @ self._belief(probability, said).float()).argmin())
        action, why = self._whom(x, probability, said, asked)
        return (cheapest if action is None or action in asked else action), cheapest, why

    def _class(self, action: int, symbol: Any) -> int:
        return list(self.game.feedback[action]).index(symbol)

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        y = self._class(action, self.game.symbols(action)[symbol])
        if action in self.careless:
            self.memory.append(x=x, y=torch.tensor(y), said=torch.tensor(y), truth=torch.tensor(False))
            return
        same = (self.memory["x"] == x).flatten(1).all(1).nonzero().flatten().tolist() if len(self.memory) else []
        for place in same[-1:]:
            self.memory["y"][place], self.memory["truth"][place] = y, True
        if not same:
            self.memory.append(x=x, y=torch.tensor(y), said=torch.tensor(-1), truth=torch.tensor(True))

    def _lessons(self) -> Tensor:
        """Which rows of the memory the classifier learns from, as a mask."""
        return torch.ones(len(self.memory), dtype=torch.bool)

    def _due_after_label(self) -> bool:
        return int(self._lessons().sum()) >= FIRST and len(self.memory) >= math.ceil(GROWTH * self.trained_on)

    def _due_in(self) -> int:
        return NEVER

    def _train(self) -> None:
        self.trained_on = len(self.memory)
        lessons = self._lessons()
        X, y = self.memory["x"][lessons], self.memory["y"][lessons]
        if isinstance(self.model, Beliefs):
            generator = torch.Generator().manual_seed(int(self.rng.integers(2**62)))
            self.model.fit(X, X, y, torch.arange(len(y)) % self.model.members, generator)
        else:
            self.model.fit(X, y)

    def _scores(self, X: Tensor) -> Tensor:
        if not self.trained_on:
            return torch.full((len(X), self.game.n_outcomes), 1 / self.game.n_outcomes)
        return self.model(X).mean(0) if isinstance(self.model, Beliefs) else self.model(X)

    def _model(self) -> LogisticRegression | Beliefs:
        if self.learner == "ensemble":
            return Beliefs(self.game.n_outcomes, self.shape, seed=self.seed)
        return LogisticRegression(self.n_features, self.game.n_outcomes)

    def _identity(self) -> dict[str, Any]:
        return {"learner": self.learner}

    def _state(self) -> dict[str, Any]:
        parts = {"memory": self.memory.state_dict(), "trained_on": self.trained_on}
        parts["model"] = self.model.state_dict() if self.trained_on else None
        return parts | {name: getattr(self, name) for name in self.rule_state}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.memory.load_state_dict(state["memory"])
        self.trained_on, saved = int(state["trained_on"]), state["model"]
        self.model = self._model()
        if saved is not None:
            self.model.load_state_dict(saved)
        for name in self.rule_state:
            ours = getattr(self, name)
            setattr(self, name, state[name].clone() if isinstance(ours, Tensor) else type(ours)(state[name]))
