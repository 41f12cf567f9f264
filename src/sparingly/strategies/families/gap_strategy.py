"""Strategies that ask when the two best classes are too close."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.learning.schedules import AfterAnswers, update_schedule
from sparingly.strategies.families.classifier_strategy import Floats, full_expert
from sparingly.strategies.families.network_options import NetworkOptions, first_actions
from sparingly.strategies.strategy import Assessment, Shape, Strategy, Why


class TwoNetworks(Protocol):
    """f1 and f2 with the labels they learn from."""

    def train(self, rng: np.random.Generator) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


class GapStrategy(Strategy):
    """Values every class by u = f1 + weight f2, announces the best, and asks while its lead is below a threshold.

    A subclass has the two networks (`_estimates`), the weight of f2 (`_weight`) and the threshold (`_threshold`).
    Where errors differ in cost, the class announced is the one of least cost by the values; with uniform costs that is
    the one of highest value.

    Parameters
    ----------
    options
        What distinguishes the forms of the strategy; a state is only taken by one with the same options.
    networks
        Of the two networks and their updates.
    start
        "each": every announcement once and then a question; "question_first": the question before them.
    """

    playable = "label-efficient games"
    stops_asking = True

    network: TwoNetworks

    def __init__(
        self,
        game: Game,
        n_features: Shape,
        *,
        options: Mapping[str, Any],
        networks: NetworkOptions,
        start: str = "each",
        seed: int = 0,
    ) -> None:
        super().__init__(game, n_features, seed=seed)
        self.expert = full_expert(game, self.name)
        self.options, self.networks = options, networks
        self._start = first_actions(start, range(game.n_outcomes), [self.expert])
        self.schedule = update_schedule(networks.schedule)
        self._last: tuple[int, Tensor, dict[str, Any]] | None = None

    @abc.abstractmethod
    def _estimates(self, X: Tensor) -> dict[str, Tensor]:
        """f1 (1 for the right class, 0 for the others) and f2 (how far that is off), `[block, class]`, by these names.

        Whatever else is to be kept with a label has another name.
        """

    @abc.abstractmethod
    def _weight(self) -> float:
        """The weight of f2 at round `self.clock`, counted from 0."""

    @abc.abstractmethod
    def _threshold(self) -> float:
        """The lead, at round `self.clock`, below which it asks."""

    def _not_asked(self, x: Tensor, announced: int) -> None:
        """Called at every announcement, for a strategy that learns from its own."""

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        estimates = self._estimates(X)
        both = {name: estimates[name].double().cpu().numpy() for name in ("f1", "f2")}
        return {"estimates": estimates, **both}

    def _choose(self, assessment: Assessment, row: int) -> tuple[int, int, Why]:
        values = assessment.values
        self._last = (self.generation, assessment.X[row], {k: v[row] for k, v in values["estimates"].items()})
        u = values["f1"][row] + self._weight() * values["f2"][row]
        cheapest = int((self.game.costs[: len(u)] @ u).argmin())
        if self.clock < len(self._start):
            action, why = self._start[self.clock], Why("it plays each action once at the start")
        else:
            action, why = self._ask_or_announce(u, cheapest)
        if action != self.expert:
            self._not_asked(assessment.X[row], cheapest)
        return action, cheapest, why

    def _ask_or_announce(self, u: Floats, cheapest: int) -> tuple[int, Why]:
        second, best = np.sort(u)[-2:].tolist()
        numbers = {"gap": best - second, "threshold": self._threshold()}
        if numbers["gap"] < numbers["threshold"]:
            return self.expert, Why("the best class leads by {gap:.3g}, less than {threshold:.3g}", numbers)
        return cheapest, Why("the best class leads by {gap:.3g}, not less than {threshold:.3g}", numbers)

    def _estimated(self, x: Tensor) -> dict[str, Tensor]:
        """The estimates for one observation: those it was decided by, or today's if that was long ago."""
        if self._last is not None and self._last[0] == self.generation and torch.equal(self._last[1], x):
            return self._last[2]
        return {name: value[0] for name, value in self._estimates(x[None]).items()}

    def _due_in(self) -> int:
        return max(self.schedule.next(self.clock), self.networks.first_update(self.game)) - self.clock

    def _due_after_label(self) -> bool:
        return isinstance(self.schedule, AfterAnswers) and self.clock >= self.networks.first_update(self.game)

    def _train(self) -> None:
        self.network.train(self.rng)

    def _identity(self) -> dict[str, Any]:
        return {"options": dict(self.options), "width": self.networks.width, "depth": self.networks.depth}

    def _state(self) -> dict[str, Any]:
        return {"network": self.network.state_dict()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.network.load_state_dict(state["network"])
        self._last = None
