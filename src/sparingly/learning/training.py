"""The only training loop, and the schedule of updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from sparingly.learning.adam import Adam
from sparingly.learning.block_layers import BlockLayers
from sparingly.learning.block_networks import BlockNet
from sparingly.learning.networks import MLP
from sparingly.learning.two_layers import LARGEST, SLOPES, FlatAdam, TwoLayers


@dataclass(frozen=True)
class Objective:
    """What training lowers: its value for a batch, and its slope at the outputs, `[batch, outputs]`."""

    value: Callable[[Tensor, Tensor], Tensor]
    slope: Callable[[Tensor, Tensor], Tensor]


def _error(outputs: Tensor, targets: Tensor) -> Tensor:
    """The error; 0 where the target is nan, since nothing is known there."""
    return torch.nan_to_num(outputs - targets, nan=0.0)


OBJECTIVES = {
    "mean_squared": Objective(
        lambda out, target: _error(out, target).square().mean(),
        lambda out, target: _error(out, target) * (2 / out.numel()),
    ),
    "half_squared": Objective(lambda out, target: _error(out, target).square().sum() / 2, _error),
    "cross_entropy": Objective(
        lambda out, target: nn.functional.cross_entropy(out, target),
        lambda out, target: (out.softmax(1) * target.sum(1, keepdim=True) - target) / len(out),
    ),
    "binary_cross_entropy": Objective(
        lambda out, target: nn.functional.binary_cross_entropy_with_logits(out, target),
        lambda out, target: (out.sigmoid() - target) / out.numel(),
    ),
}
"""By name: the squared error averaged over batch and outputs, or halved and summed as in the paper (both leave out
targets that are nan); softmax cross-entropy against distributions; cross-entropy of logits against 0 or 1."""


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
        What is lowered, one of `OBJECTIVES`.
    """

    epochs: int = 40
    batch: int = 64
    learning_rate: float = 1e-3
    stop: float | None = None
    objective: str = "half_squared"

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise ValueError(f"objective {self.objective!r} is not known: give one of {', '.join(OBJECTIVES)}")

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
        quick = self._quick(module, inputs, targets, prepare)
        if quick is not None:
            return self._fit_quickly(*quick, targets, rng, divisor)
        parameters = [p for p in module.parameters() if p.requires_grad]
        adam = Adam(parameters, self.learning_rate)
        module.train()
        made = 0
        while made < self.epochs:
            made += 1
            total = self._epoch(module, adam, inputs, targets, rng, prepare)
            if self.stop is not None and total / divisor <= self.stop:
                break
        module.eval()
        return made

    def _quick(
        self, module: nn.Module, inputs: Tensor, targets: Tensor, prepare: Callable[[Tensor], Tensor] | None
    ) -> tuple[TwoLayers | BlockLayers, Tensor] | None:
        """The module as few tensors and its inputs, if a quick loop can take them."""
        if self.objective not in SLOPES or bool(torch.isnan(targets).any()):
            return None
        view: TwoLayers | BlockLayers | None = TwoLayers.of(module)
        if view is not None and len(inputs) * view.parameters[0].shape[1] > LARGEST:
            view = None
        if view is None and type(module) is BlockNet and all(p.requires_grad for p in module.parameters()):
            view = BlockLayers(module)
        return None if view is None else (view, view.rows(inputs if prepare is None else prepare(inputs)))

    def _fit_quickly(
        self, view: TwoLayers | BlockLayers, rows: Tensor, targets: Tensor, rng: np.random.Generator, divisor: float
    ) -> int:
        with torch.no_grad():
            adam = FlatAdam(view.parameters, self.learning_rate)
            made, slope = 0, SLOPES[self.objective]
            while made < self.epochs:
                made += 1
                total = view.epoch(adam, rows, targets, rng, self.batch, slope)
                if self.stop is not None and total / divisor <= self.stop:
                    break
            view.put_back(adam.views)
        return made

    def _epoch(
        self,
        module: nn.Module,
        adam: Adam,
        inputs: Tensor,
        targets: Tensor,
        rng: np.random.Generator,
        prepare: Callable[[Tensor], Tensor] | None,
    ) -> float:
        """One pass in random order; the sum of the batches' values, if anyone looks at it."""
        objective = OBJECTIVES[self.objective]
        order = torch.from_numpy(rng.permutation(len(inputs))).to(inputs.device)
        total = torch.zeros((), device=inputs.device)
        for x, y in zip(torch.split(inputs[order], self.batch), torch.split(targets[order], self.batch), strict=True):
            outputs, gradients = _gradients(module, adam.parameters, x if prepare is None else prepare(x), y, objective)
            if self.stop is not None:
                total += objective.value(outputs, y)
            adam.step(gradients)
        return float(total)


def _gradients(
    module: nn.Module, parameters: list[Tensor], x: Tensor, y: Tensor, objective: Objective
) -> tuple[Tensor, Sequence[Tensor]]:
    """The outputs for a batch and the gradients of the objective: by hand if it can, else by differentiation."""
    whole = len(parameters) == len(list(module.parameters()))
    if whole and type(module) is MLP:
        with torch.no_grad():
            return module.gradients(x, lambda outputs: objective.slope(outputs, y))
    with torch.enable_grad():
        outputs = module(x)
        value = objective.value(outputs, y)
        gradients = torch.autograd.grad(value, parameters, allow_unused=True, materialize_grads=True)
    return outputs.detach(), gradients


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
    [1, 2, 3, 5, 8, 12, 18, 27, 41, 62]
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
