"""The steps of the training loop for a network on block-one-hot inputs, without the K-times-wider input.

A batch's rows are put in the order of their classes, so that each block of weights meets its rows in one product, and
every gradient is written where Adam reads it. One buffer holds the batch: the rows may have many thousands of columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sparingly.learning.block_networks import BlockNet
from sparingly.learning.two_layers import FlatAdam, Slope


@dataclass(frozen=True)
class BlockLayers:
    """A block network, seen as the tensors that are trained."""

    module: BlockNet

    @property
    def parameters(self) -> list[Tensor]:
        """Bias, dense weights, each block, last weights and bias."""
        head = self.module.head
        return [self.module.bias, self.module.dense, *self.module.blocks, head.weight, head.bias]

    def rows(self, inputs: Tensor) -> Tensor:
        return inputs

    def put_back(self, parameters: list[Tensor]) -> None:
        """Give the module its new parameters."""
        for target, value in zip(self.parameters, parameters, strict=True):
            target.copy_(value)

    def epoch(
        self, adam: FlatAdam, rows: Tensor, targets: Tensor, rng: np.random.Generator, batch: int, slope: Slope
    ) -> float:
        """One pass in random order; the sum of the batches' values."""
        order, sizes = self._order(rows, rng, batch)
        buffer = rows.new_empty(min(batch, len(rows)), rows.shape[1])
        total = torch.zeros((), device=rows.device)
        for at, counts in zip(torch.split(order, batch), sizes, strict=True):
            x = torch.index_select(rows, 0, at, out=buffer[: len(at)])
            total += self._step(adam, x, targets[at], counts, slope)
        return float(total)

    def _order(self, rows: Tensor, rng: np.random.Generator, batch: int) -> tuple[Tensor, list[list[int]]]:
        """The rows in random order, by class within each batch, and how many of each class every batch has."""
        n_classes = len(self.module.blocks)
        order = torch.from_numpy(rng.permutation(len(rows))).to(rows.device)
        first = torch.arange(len(rows), device=rows.device) // batch * n_classes
        key = first + rows[order, -1].long()
        sizes = torch.bincount(key, minlength=int(first[-1]) + n_classes).view(-1, n_classes).tolist()
        return order[torch.argsort(key, stable=True)], sizes

    def _step(self, adam: FlatAdam, x: Tensor, y: Tensor, counts: list[int], slope: Slope) -> Tensor:
        """One step on rows in the order of their classes, `counts` of each; the batch's value before it."""
        (bias, dense, *blocks, w2, b2), (bias_slope, dense_slope, *block_slopes, g2, h2) = adam.views, adam.slope_views
        n_dense = dense.shape[1]
        others, own = x[:, :n_dense], torch.split(x[:, n_dense:-1], counts)
        hidden = torch.addmm(bias, others, dense.T) if n_dense else bias.repeat(len(x), 1)
        for part, rows, block in zip(torch.split(hidden, counts), own, blocks, strict=True):
            if len(rows):
                part.addmm_(rows, block.T)
        hidden.relu_()
        error, value = slope(torch.addmm(b2, hidden, w2.T), y)
        torch.mm(error.T, hidden, out=g2)
        torch.sum(error, 0, out=h2)
        back = torch.mm(error, w2).mul_(hidden.sign_())
        torch.sum(back, 0, out=bias_slope)
        if n_dense:
            torch.mm(back.T, others, out=dense_slope)
        for part, rows, block_slope in zip(torch.split(back, counts), own, block_slopes, strict=True):
            torch.mm(part.T, rows, out=block_slope) if len(rows) else block_slope.zero_()
        adam.step()
        return value
