"""The steps of the training loop for networks of two layers, as few calls as they can be.

A small network's step is a few microseconds of arithmetic in ten times as many of calls. Here the four parameters are
views of one vector, so Adam is one call, gradients are written where Adam reads them, and one buffer holds the batch.
The steps are those of the general loop, and a test holds the two against each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from sparingly.learning.block_networks import BlockNet
from sparingly.learning.networks import MLP

WIDEST_BLOCKS = 800
"""Up to so many columns a block-one-hot input is cheaper to build than to avoid."""
LARGEST = 16_000_000
"""Entries of an input matrix that is built for training."""

Slope = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""An objective for a batch: its slope at the outputs, which it may write over, and its value; no target is nan."""


def half_squared(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    error = outputs.sub_(targets)
    flat = error.view(-1)
    return error, torch.dot(flat, flat) / 2


def mean_squared(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    error, value = half_squared(outputs, targets)
    return error.mul_(2 / error.numel()), value * (2 / error.numel())


def cross_entropy(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Of a softmax against distributions."""
    logs = torch.log_softmax(outputs, 1)
    value = torch.dot(logs.view(-1), targets.reshape(-1)) / -len(logs)
    return logs.exp_().sub_(targets).div_(len(logs)), value


SLOPES: dict[str, Slope] = {
    "half_squared": half_squared,
    "mean_squared": mean_squared,
    "cross_entropy": cross_entropy,
}
"""By the names of the training loop's objectives."""


@dataclass(frozen=True)
class TwoLayers:
    """A module seen as two layers.

    Attributes
    ----------
    parameters
        First weights and bias, last weights and bias; of a block network the first are all of its blocks, side by side.
    module
        Where they belong.
    """

    parameters: list[Tensor]
    module: nn.Module

    @classmethod
    def of(cls, module: nn.Module) -> TwoLayers | None:
        """The view of a module, or None if it has none, if part of it is frozen, or if another way is cheaper."""
        if not all(parameter.requires_grad for parameter in module.parameters()):
            return None
        if type(module) is MLP and len(module.linear) == 2:
            first, last = module.linear
            return cls([first.weight, first.bias, last.weight, last.bias], module)
        if type(module) is BlockNet and sum(block.shape[1] for block in module.side_by_side) <= WIDEST_BLOCKS:
            return cls([torch.cat(module.side_by_side, 1), module.bias, module.head.weight, module.head.bias], module)
        return None

    def rows(self, inputs: Tensor) -> Tensor:
        """Stored inputs as the first layer meets them."""
        if not isinstance(self.module, BlockNet):
            return inputs.flatten(1)
        dense, x, k = inputs[:, : self.module.n_dense], inputs[:, self.module.n_dense : -1], inputs[:, -1].long()
        wide = x.new_zeros(len(x), len(self.module.blocks), x.shape[1])
        wide[torch.arange(len(x)), k] = x
        return torch.cat([dense, wide.flatten(1)], 1)

    def epoch(
        self, adam: FlatAdam, rows: Tensor, targets: Tensor, rng: np.random.Generator, batch: int, slope: Slope
    ) -> float:
        """One pass in random order; the sum of the batches' values."""
        w1, b1, w2, b2 = adam.views
        t1, t2 = w1.T, w2.T
        order = torch.from_numpy(rng.permutation(len(rows))).to(rows.device)
        buffer = rows.new_empty(min(batch, len(rows)), rows.shape[1])
        total = torch.zeros((), device=rows.device)
        for at, y in zip(torch.split(order, batch), torch.split(targets[order], batch), strict=True):
            x = torch.index_select(rows, 0, at, out=buffer[: len(at)])
            hidden = torch.addmm(b1, x, t1).relu_()
            error, value = slope(torch.addmm(b2, hidden, t2), y)
            total += value
            adam.descend(x, hidden, error)
        return float(total)

    def put_back(self, parameters: list[Tensor]) -> None:
        """Give the module its new parameters."""
        if isinstance(self.module, BlockNet):
            first, *rest = parameters
            blocks = torch.split(first, [block.shape[1] for block in self.module.side_by_side], 1)
            targets = [*self.module.side_by_side, *self.parameters[1:]]
            parameters = [*blocks, *rest]
        else:
            targets = self.parameters
        for target, value in zip(targets, parameters, strict=True):
            target.copy_(value)


class FlatAdam:
    """Adam on one vector that holds all parameters, with the gradients in another."""

    def __init__(self, parameters: list[Tensor], learning_rate: float) -> None:
        self.vector = torch.cat([parameter.detach().flatten() for parameter in parameters])
        self.slopes = torch.zeros_like(self.vector)
        self.views = _views(self.vector, parameters)
        self.slope_views = _views(self.slopes, parameters)
        self.learning_rate = learning_rate
        self._state = ([self.vector], [self.slopes], [torch.zeros_like(self.vector)], [torch.zeros_like(self.vector)])
        self._steps = torch.zeros((), device=self.vector.device)

    def descend(self, x: Tensor, hidden: Tensor, error: Tensor) -> None:
        """A step for two layers, or a stack of them, given a batch at each layer, and the slope at the outputs."""
        w2, (g1, h1, g2, h2) = self.views[2], self.slope_views
        torch.matmul(error.mT, hidden, out=g2)
        torch.sum(error, -2, out=h2)
        back = torch.matmul(error, w2).mul_(hidden.sign_())
        torch.matmul(back.mT, x, out=g1)
        torch.sum(back, -2, out=h1)
        self.step()

    def step(self) -> None:
        self._steps += 1
        torch._fused_adam_(
            *self._state,
            [],
            [self._steps],
            lr=self.learning_rate,
            beta1=0.9,
            beta2=0.999,
            weight_decay=0.0,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )


def _views(vector: Tensor, parameters: list[Tensor]) -> list[Tensor]:
    parts = torch.split(vector, [parameter.numel() for parameter in parameters])
    return [part.view(parameter.shape) for part, parameter in zip(parts, parameters, strict=True)]
