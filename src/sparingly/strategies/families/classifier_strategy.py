"""What every strategy that asks by looking at one classifier shares: the network, its training, what to announce."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparingly.games import Game
from sparingly.learning import schedules
from sparingly.learning.label_memory import Memory
from sparingly.learning.row_independence import pad_block
from sparingly.strategies.families.network_options import Settings, one_of
from sparingly.strategies.strategy import Assessment, Shape, Strategy, Why

Floats = NDArray[np.float64]


class ClassifierStrategy(Strategy):
    """Announces the class of least expected cost under one classifier, or asks; a subclass says when (`_rule`).

    The classifier is a network with softmax outputs, trained by cross-entropy on all labels at the updates of the
    schedule. The expert is the cheapest action that tells every class from every other.

    Parameters
    ----------
    game
        A label-efficient game with an expert who gives the full label.
    n_features
        A number, or a shape such as (1, 28, 28).
    network, width, depth, epochs, batch, learning_rate, schedule
        Of the classifier and its updates, as for every neural strategy.
    stop, divisor
        Stop an update early once an epoch's sum of batch values, over the size of an observation's first dimension
        ("features", as NeuralCBP's released form does) or over the number of labels ("labels"), is this low.
    start
        "each": every announcement once and one question first. "none": its rule decides from the beginning.
    """

    plays = "label-efficient games"

    def __init__(self, game: Game, n_features: Shape, *, start: str = "none", seed: int = 0, **settings: Any) -> None:
        super().__init__(game, n_features, seed=seed)
        self._divisor = settings.pop("divisor", "features")
        one_of(("each", "none"), start=start)
        one_of(("features", "labels"), divisor=self._divisor)
        self.expert = full_expert(game, self.name)
        chosen = Settings(**settings)
        self.device = chosen.device
        self.classifier = chosen.classifier(self.shape, game.n_outcomes, seed)
        self.training = chosen.training("cross_entropy")
        self.schedule = schedules.update_schedule(chosen.schedule)
        self.memory = Memory(chosen.device)
        self._start = start == "each"
        self._first = chosen.first_update(game) if self._start else 0

    @abc.abstractmethod
    def _rule(self, probability: Floats) -> tuple[bool, Why]:
        """Whether to ask, given the classes' probabilities, and why; may draw from `self.rng`."""

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        probability = self._scores(X).double().cpu().numpy()
        costs = probability @ self.game.costs[: self.game.n_outcomes].T
        return {"probability": probability, "cheapest": costs.argmin(1)}

    def _choose(self, assessment: Assessment, row: int) -> tuple[int, int, Why]:
        cheapest = int(assessment.values["cheapest"][row])
        if self._start and self.clock <= self.game.n_outcomes:
            action = self.clock if self.clock < self.game.n_outcomes else self.expert
            return action, cheapest, Why("each action is played once at the start")
        asks, why = self._rule(assessment.values["probability"][row])
        return (self.expert if asks else cheapest), cheapest, why

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        self.memory.append(x=x.to(self.device), target=told(self.game, action, symbol).to(self.device))

    def _train(self) -> None:
        if len(self.memory):
            x, target = self.memory["x"], self.memory["target"]
            divisor = len(x) if self._divisor == "labels" else self.shape[0]
            self.training.fit(self.classifier, x, target, self.rng, divisor=divisor)

    def _due_in(self) -> int:
        return max(self.schedule.next(self.clock), self._first) - self.clock

    def _scores(self, X: Tensor) -> Tensor:
        logits: Tensor = self.classifier(pad_block(X.to(self.device)))
        return logits[: len(X)].double().softmax(1)

    def _identity(self) -> dict[str, Any]:
        return {"network": [list(p.shape) for p in self.classifier.parameters()]}

    def _state(self) -> dict[str, Any]:
        return {"classifier": self.classifier.state_dict(), "memory": self.memory.state_dict()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.classifier.load_state_dict(state["classifier"])
        self.memory.load_state_dict(state["memory"])


def told(game: Game, action: int, symbol: int) -> Tensor:
    """`[outcome]`: the classes that a symbol (an index among the action's) leaves possible, as a distribution.

    >>> from sparingly.games import label_efficient
    >>> told(label_efficient(3), 3, 1)
    tensor([0., 1., 0.])
    """
    seen = game.symbols(action)[symbol]
    possible = [s == seen for s in game.feedback[action]]
    share = 1 / sum(possible)
    return torch.tensor([share if one else 0.0 for one in possible])


def full_expert(game: Game, name: str) -> int:
    """The cheapest action that gives the full label, or an error that says what the game lacks.

    >>> from sparingly.games import label_efficient
    >>> full_expert(label_efficient(3), "random")
    3
    """
    n = game.n_outcomes
    experts = [a for a in range(n, game.n_actions) if len(game.symbols(a)) == n]
    if not game.is_label_efficient or not experts:
        raise ValueError(f"{name} plays label-efficient games with an expert who gives the full label, not {game!r}")
    return min(experts, key=lambda a: float(game.costs[a].max()))
