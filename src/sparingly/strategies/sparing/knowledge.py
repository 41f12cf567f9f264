"""What a strategy knows: the labels it bought, the models trained on them, and what another label is worth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparingly.learning.scaling import Reservoir
from sparingly.strategies.sparing.beliefs import Beliefs
from sparingly.strategies.sparing.bought import Bought
from sparingly.strategies.sparing.expected_costs import Expectation
from sparingly.strategies.sparing.open_questions import Question
from sparingly.strategies.sparing.refit_schedule import FIRST, Schedule
from sparingly.strategies.sparing.worth import Worth


class Knowledge:
    """Labels in, probabilities out; trained anew as they grow, and measured each time on labels not seen.

    Parameters
    ----------
    expects
        The costs of the game.
    beliefs
        The models.
    learnability
        Without it, what labels have taught is not measured: `Worth` keeps its prior.
    """

    def __init__(self, expects: Expectation, beliefs: Beliefs, *, learnability: bool = True) -> None:
        self.expects, self.beliefs, self.learnability = expects, beliefs, learnability
        self.bought = Bought(beliefs.members)
        self.schedule = Schedule()
        self.worth: Worth | None = None
        """None as long as there is no model."""
        self._stream = Reservoir(1000)

    def meet(self, x: Tensor, rng: np.random.Generator) -> None:
        """See an observation of the stream, whether or not it is asked about."""
        self._stream.add(x, rng)

    def add(self, x: Tensor, y: int, question: Question | None, clock: int) -> None:
        """Keep a label, with what was believed when it was asked for."""
        self.bought.add(x, y, question, clock=clock - 1, costs=self.expects.costs)

    def forget(self, classes: list[int], since: int, clock: int) -> None:
        """Keep no label of some classes from before a round; the next label brings an update."""
        self.bought.forget(classes, since)
        self._stream.renew()
        self.schedule = Schedule(0, clock)

    def members(self, X: Tensor) -> Tensor:
        """The members' calibrated probabilities, `[member, block, class]`; the labels' shares before there are any."""
        if self.worth is not None:
            return self.beliefs(X)
        return self.bought.shares(len(self.expects.costs)).expand(1, len(X), -1)

    def novelty(self, X: Tensor) -> Tensor:
        """How far off the nearest label is, 1 on average; 1 before there is a model."""
        return self.beliefs.novelty(X) if self.worth is not None else torch.ones(len(X))

    def train(self, clock: int, rng: np.random.Generator) -> None:
        """Draw and train new models, and compare what they hold of labels not seen with what was held before."""
        n = len(self.bought)
        if n < FIRST:
            self.worth = None
            return
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        X, y, folds = (self.bought[name] for name in ("x", "y", "fold"))
        sample = self._stream.rows if self._stream.seen else X
        with torch.no_grad():
            unseen = self.beliefs.fit(sample, X, y, folds, generator)
            seen = self.expects(self.beliefs(sample))
        now = (unseen * self.expects.costs[:, y].T).sum(1)
        bought = {name: self.bought[name] for name in ("value", "soft", "labels")}
        stream = {"value": torch.tensor(seen["value"]), "risk": torch.tensor(seen["risk"]), "x": sample}
        unit = self.expects.unit or 1.0
        self.worth = Worth.measure(bought, now, stream, unit=unit, learnability=self.learnability)
        self.schedule = Schedule(n, clock)

    def state_dict(self) -> dict[str, Any]:
        return {
            "bought": self.bought.state_dict(),
            "schedule": self.schedule.state_dict(),
            "stream": self._stream.state_dict(),
            "beliefs": None if self.worth is None else self.beliefs.state_dict(),
            "worth": None if self.worth is None else self.worth.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.bought.load_state_dict(state["bought"])
        self.schedule = Schedule(**state["schedule"])
        self._stream.load_state_dict(state["stream"])
        self.worth = None if state["worth"] is None else Worth(**state["worth"])
        if self.worth is not None:
            self.beliefs.load_state_dict(state["beliefs"])
