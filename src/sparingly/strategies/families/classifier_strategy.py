"""Strategies that ask by looking at one classifier: the network, its training, what to announce."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparingly.games import Game
from sparingly.learning.determinism import pad_block
from sparingly.learning.label_memory import Memory
from sparingly.learning.schedules import AfterAnswers, update_schedule
from sparingly.strategies.families.network_options import NetworkOptions, check_choice, first_actions
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
    networks
        Of the classifier and its updates, as for every neural strategy.
    divisor
        An update stops early once an epoch's sum of batch values, over the size of an observation's first dimension
        ("features", as NeuralCBP's released form does) or over the number of labels ("labels"), is `networks.stop`.
    start
        "each": every announcement once, then a question. "question_first": the question before them. "none": its rule
        decides from the beginning.
    """

    playable = "label-efficient games"
    rule_options: ClassVar[tuple[str, ...]] = ()
    """The attributes of the rule on which a state must agree."""
    rule_state: ClassVar[tuple[str, ...]] = ()
    """The attributes of the rule that belong to the state."""

    def __init__(
        self,
        game: Game,
        n_features: Shape,
        *,
        networks: NetworkOptions,
        start: str = "none",
        divisor: str = "features",
        seed: int = 0,
    ) -> None:
        super().__init__(game, n_features, seed=seed)
        check_choice(("features", "labels"), divisor=divisor)
        self._divisor = divisor
        self.expert = full_expert(game, self.name)
        self.device = networks.device
        self.classifier = networks.classifier(self.shape, game.n_outcomes, seed)
        self.training = networks.training("cross_entropy")
        self.schedule = update_schedule(networks.schedule)
        self.memory = Memory(networks.device)
        self._start = first_actions(start, range(game.n_outcomes), [self.expert])
        self._first = networks.first_update(game) if self._start else 0

    @abc.abstractmethod
    def _rule(self, probability: Floats) -> tuple[bool, Why]:
        """Whether to ask, given the classes' probabilities, and why; may draw from `self.rng`."""

    def _answered(self, x: Tensor, distribution: Tensor) -> None:
        """Called with each answer before it is kept, for a rule that counts right or wrong predictions."""

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        probability = self._scores(X).double().cpu().numpy()
        costs = probability @ self.game.costs[: self.game.n_outcomes].T
        return {"probability": probability, "cheapest": costs.argmin(1)}

    def _choose(self, assessment: Assessment, row: int) -> tuple[int, int, Why]:
        cheapest = int(assessment.values["cheapest"][row])
        if self.clock < len(self._start):
            return self._start[self.clock], cheapest, Why("each action is played once at the start")
        asks, why = self._rule(assessment.values["probability"][row])
        return (self.expert if asks else cheapest), cheapest, why

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        self._answered(x, outcome_distribution(self.game, action, symbol))
        self._teach(x[None], action, [symbol])

    def _teach(self, X: Tensor, action: int, outcomes: Sequence[int]) -> None:
        """Keep labels; of those that were taught no prediction is counted right or wrong."""
        for x, outcome in zip(X, outcomes, strict=True):
            target = outcome_distribution(self.game, action, outcome)
            self.memory.append(x=x.to(self.device), target=target.to(self.device))

    def _train(self) -> None:
        if len(self.memory):
            x, target = self.memory["x"], self.memory["target"]
            divisor = len(x) if self._divisor == "labels" else self.shape[0]
            self.training.fit(self.classifier, x, target, self.rng, divisor=divisor)

    def _due_in(self) -> int:
        return max(self.schedule.next(self.clock), self._first) - self.clock

    def _due_after_label(self) -> bool:
        return isinstance(self.schedule, AfterAnswers) and self.clock >= self._first

    def _scores(self, X: Tensor) -> Tensor:
        logits: Tensor = self.classifier(pad_block(X.to(self.device)))
        return logits[: len(X)].double().softmax(1)

    def _identity(self) -> dict[str, Any]:
        network = {"network": [list(p.shape) for p in self.classifier.parameters()]}
        return network | {name: getattr(self, name) for name in self.rule_options}

    def _state(self) -> dict[str, Any]:
        parts = {"classifier": self.classifier.state_dict(), "memory": self.memory.state_dict()}
        return parts | {name: getattr(self, name) for name in self.rule_state}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.classifier.load_state_dict(state["classifier"])
        self.memory.load_state_dict(state["memory"])
        for name in self.rule_state:
            setattr(self, name, type(getattr(self, name))(state[name]))


def outcome_distribution(game: Game, action: int, symbol: int) -> Tensor:
    """`[outcome]`: the classes that a symbol (an index among the action's) leaves possible, as a distribution.

    >>> from sparingly.games import label_efficient
    >>> outcome_distribution(label_efficient(3), 3, 1)
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
