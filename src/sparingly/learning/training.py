"""The only training loop, and the schedule of updates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from sparingly.learning.adam import Adam

Objective = Callable[[Tensor, Tensor], Tensor]


def mean_squared(outputs: Tensor, targets: Tensor) -> Tensor:
    """Mean over batch and outputs of the squared error; targets that are nan do not count."""
    error = torch.where(torch.isnan(targets), 0.0, outputs - targets)
    return error.square().mean()


def half_squared(outputs: Tensor, targets: Tensor) -> Tensor:
    """Half the squared error, summed over batch and outputs (the paper's L1 and L2); nan targets do not count."""
    error = torch.where(torch.isnan(targets), 0.0, outputs - targets)
    return error.square().sum() / 2


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """Softmax cross-entropy against one-hot rows."""
    return nn.functional.cross_entropy(outputs, targets)


def binary_cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of a single logit against 0 or 1."""
    return nn.functional.binary_cross_entropy_with_logits(outputs, targets)


_OBJECTIVES: dict[str, Objective] = {
    function.__name__: function for function in (mean_squared, half_squared, cross_entropy, binary_cross_entropy)
}


def objective(name: str) -> Objective:
    """An objective by name."""
    if name not in _OBJECTIVES:
        raise ValueError(f"objective {name!r} is not known: give one of {', '.join(_OBJECTIVES)}")
    return _OBJECTIVES[name]


@dataclass(frozen=True)
class Training:
    """How a network is fitted: Adam, warm from where it stands, a new optimiser each time.

    Attributes
    ----------
    epochs, batch, learning_rate
        As in the paper: 40, 64, 1e-3.
    stop
        With a number, stop after an epoch whose sum of batch values of the objective, over `divisor`, is at most that.
    objective
        What is lowered.
    """

    epochs: int = 40
    batch: int = 64
    learning_rate: float = 1e-3
    stop: float | None = None
    objective: Objective = half_squared

    def fit(
        self,
        module: nn.Module,
        inputs: Tensor,
        targets: Tensor,
        rng: np.random.Generator,
        *,
        divisor: float = 1.0,
        prepare: Callable[[Tensor], Tensor] | None = None,
    ) -> int:
        """Fit in place; returns the epochs made. `prepare` maps a batch of stored inputs to what the module takes.

        >>> net = nn.Linear(1, 1)
        >>> x = torch.linspace(-1, 1, 64)[:, None]
        >>> Training(epochs=400, learning_rate=0.05).fit(net, x, 3 * x + 1, np.random.default_rng(0))
        400
        >>> round(net.weight.item(), 2), round(net.bias.item(), 2)
        (3.0, 1.0)
        """
        if not len(inputs):
            return 0
        parameters = [p for p in module.parameters() if p.requires_grad]
        adam = Adam(parameters, self.learning_rate)
        module.train()
        with torch.enable_grad():
            for made in range(1, self.epochs + 1):  # noqa: B007
                total = 0.0
                for rows in torch.from_numpy(rng.permutation(len(inputs))).split(self.batch):
                    batch = inputs[rows] if prepare is None else prepare(inputs[rows])
                    value = self.objective(module(batch), targets[rows])
                    adam.step(value)
                    total += value.item() if self.stop is not None else 0.0
                if self.stop is not None and total / divisor <= self.stop:
                    break
        module.eval()
        return made


class Schedule(Protocol):
    """When updates are due."""

    def due(self, t: int) -> bool:
        """Whether an update follows round t, counted from 1."""

    def next(self, t: int) -> int:
        """The first round after t, both counted from 1, that an update follows."""


@dataclass(frozen=True)
class PaperSchedule:
    """After each round up to 50, every 50 rounds below 1000, every 500 after.

    >>> schedule = PaperSchedule()
    >>> [schedule.next(t) for t in (0, 49, 50, 949, 950, 1000, 1001)]
    [1, 50, 100, 950, 1000, 1500, 1500]
    """

    def due(self, t: int) -> bool:
        return t <= 50 or (t < 1000 and t % 50 == 0) or t % 500 == 0

    def next(self, t: int) -> int:
        if t < 50:
            return t + 1
        step = 50 if t < 1000 else 500
        return t - t % step + step


@dataclass(frozen=True)
class Every:
    """After every k rounds.

    >>> [Every(5).next(t) for t in (0, 4, 5)]
    [5, 5, 10]
    """

    k: int

    def due(self, t: int) -> bool:
        return t % self.k == 0

    def next(self, t: int) -> int:
        return t - t % self.k + self.k


@dataclass(frozen=True)
class Geometric:
    """After round 1, then each time the rounds have grown by `factor`.

    >>> schedule, t, rounds = Geometric(1.5), 0, []
    >>> while t < 60:
    ...     t = schedule.next(t)
    ...     rounds.append(t)
    >>> rounds
    [1, 2, 3, 4, 6, 9, 14, 21, 32, 48, 72]
    """

    factor: float = 1.2

    def due(self, t: int) -> bool:
        return self.next(t - 1) == t

    def next(self, t: int) -> int:
        due = 1
        while due <= t:
            due = max(due + 1, int(due * self.factor + 0.5))
        return due


def schedule(name: str | Schedule) -> Schedule:
    """A schedule by name: "paper", "every K", "geometric" or "geometric F"; or the object itself.

    >>> schedule("every 10")
    Every(k=10)
    """
    if not isinstance(name, str):
        return name
    word, _, number = name.partition(" ")
    try:
        if word == "paper" and not number:
            return PaperSchedule()
        if word == "every" and int(number) >= 1:
            return Every(int(number))
        if word == "geometric" and (not number or float(number) > 1):
            return Geometric(float(number)) if number else Geometric()
    except ValueError:
        pass
    raise ValueError(f"schedule {name!r} is not known: give 'paper', 'every K', 'geometric' or 'geometric F'")
