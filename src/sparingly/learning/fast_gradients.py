"""Gradients by hand for networks of two layers, where they are at least 1.5 times as fast as autograd.

`python -m benchmarks training` measures each of them against autograd in one run. A small network's step is a few
microseconds of arithmetic in ten times as many of calls, so here the parameters are views of one vector, gradients are
written where Adam reads them, Adam is one call, and one buffer holds the batch. Tests hold them against autograd.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sparingly.learning.block_networks import BlockNet
from sparingly.learning.networks import MLP

WIDEST_BLOCKS = 800
"""Up to so many columns a block-one-hot input is cheaper to build than to avoid."""
LARGEST = 16_000_000
"""Entries of an input matrix that is built as a whole for training."""

Slope = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""An objective for a batch: its slope at the outputs, which it may write over, and its value; no target is nan."""


def _half_squared(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    error = outputs.sub_(targets)
    flat = error.view(-1)
    return error, torch.dot(flat, flat) / 2


def _mean_squared(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    error, value = _half_squared(outputs, targets)
    return error.mul_(2 / error.numel()), value * (2 / error.numel())


def _cross_entropy(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    logs = torch.log_softmax(outputs, 1)
    value = torch.dot(logs.view(-1), targets.reshape(-1)) / -len(logs)
    return logs.exp_().sub_(targets).div_(len(logs)), value


SLOPES: dict[str, Slope] = {
    "half_squared": _half_squared,
    "mean_squared": _mean_squared,
    "cross_entropy": _cross_entropy,
}
"""By the names of the training loop's objectives."""


class FlatParameters:
    """Copies of parameters as views of one vector, and their gradients as views of another."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.vector = torch.cat([tensor.detach().flatten() for tensor in tensors])
        self.gradient = torch.zeros_like(self.vector)
        self.views, self.gradient_views = (self._split(flat, tensors) for flat in (self.vector, self.gradient))

    @staticmethod
    def _split(flat: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
        parts = torch.split(flat, [tensor.numel() for tensor in like])
        return [part.view(tensor.shape) for part, tensor in zip(parts, like, strict=True)]

    def backward(self, x: Tensor, hidden: Tensor, error: Tensor) -> None:
        """Write the gradients of two layers, or a stack of them, given the batch at each and the slope at the outputs.

        `hidden` is written over.
        """
        w2, (g1, h1, g2, h2) = self.views[2], self.gradient_views
        torch.matmul(error.mT, hidden, out=g2)
        torch.sum(error, -2, out=h2)
        back = torch.matmul(error, w2).mul_(hidden.sign_())
        torch.matmul(back.mT, x, out=g1)
        torch.sum(back, -2, out=h1)


@dataclass(frozen=True)
class TwoLayers:
    """A module seen as two layers.

    Attributes
    ----------
    tensors
        First weights and bias, last weights and bias; of a block network the first are all of its blocks, side by side.
    module
        Where they belong.
    """

    tensors: list[Tensor]
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
        """Inputs as the first layer takes them."""
        if not isinstance(self.module, BlockNet):
            return inputs.flatten(1)
        dense, x, k = inputs[:, : self.module.n_dense], inputs[:, self.module.n_dense : -1], inputs[:, -1].long()
        wide = x.new_zeros(len(x), len(self.module.blocks), x.shape[1])
        wide[torch.arange(len(x)), k] = x
        return torch.cat([dense, wide.flatten(1)], 1)

    def assign(self, values: Sequence[Tensor]) -> None:
        """Give the module new parameters."""
        targets, values = list(self.tensors), list(values)
        if isinstance(self.module, BlockNet):
            blocks = self.module.side_by_side
            targets[:1], values[:1] = blocks, torch.split(values[0], [block.shape[1] for block in blocks], 1)
        for target, value in zip(targets, values, strict=True):
            target.copy_(value)


class TwoLayerGradients:
    """Gradients of a network of two layers; a batch is row numbers and their targets."""

    def __init__(self, view: TwoLayers, inputs: Tensor, targets: Tensor, slope: Slope) -> None:
        self._view, self._inputs, self._targets, self._slope = view, view.rows(inputs), targets, slope
        self._flat = FlatParameters(view.tensors)
        self.parameters, self.gradients = [self._flat.vector], [self._flat.gradient]
        self._buffer = self._inputs[:0]

    def batches(self, order: Tensor, size: int) -> Iterable[tuple[Tensor, Tensor]]:
        return zip(torch.split(order, size), torch.split(self._targets[order], size), strict=True)

    def differentiate(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        rows, y = batch
        w1, b1, w2, b2 = self._flat.views
        if len(self._buffer) < len(rows):
            self._buffer = self._inputs.new_empty(len(rows), self._inputs.shape[1])
        x = torch.index_select(self._inputs, 0, rows, out=self._buffer[: len(rows)])
        hidden = torch.addmm(b1, x, w1.T).relu_()
        error, value = self._slope(torch.addmm(b2, hidden, w2.T), y)
        self._flat.backward(x, hidden, error)
        return value

    def finish(self) -> None:
        self._view.assign(self._flat.views)


class BlockGradients:
    """Gradients of a network on block-one-hot inputs, without the K-times-wider input.

    A batch's rows are put in the order of their classes, so that each block of weights meets its rows in one product.
    A batch is row numbers in that order, and how many rows there are of each class.
    """

    def __init__(self, module: BlockNet, inputs: Tensor, targets: Tensor, slope: Slope) -> None:
        self._inputs, self._targets, self._slope = inputs, targets, slope
        self._tensors = [module.bias, module.dense, *module.blocks, module.head.weight, module.head.bias]
        self._n_classes = len(module.blocks)
        self._flat = FlatParameters(self._tensors)
        self.parameters, self.gradients = [self._flat.vector], [self._flat.gradient]
        self._buffer = inputs[:0]

    def batches(self, order: Tensor, size: int) -> Iterable[tuple[Tensor, list[int]]]:
        first = torch.arange(len(order), device=order.device) // size * self._n_classes
        key = first + self._inputs[order, -1].long()
        counts = torch.bincount(key, minlength=int(first[-1]) + self._n_classes).view(-1, self._n_classes).tolist()
        return zip(torch.split(order[torch.argsort(key, stable=True)], size), counts, strict=True)

    def differentiate(self, batch: tuple[Tensor, list[int]]) -> Tensor:
        rows, counts = batch
        if len(self._buffer) < len(rows):
            self._buffer = self._inputs.new_empty(len(rows), self._inputs.shape[1])
        x = torch.index_select(self._inputs, 0, rows, out=self._buffer[: len(rows)])
        bias, dense, *blocks, w2, b2 = self._flat.views
        n_dense = dense.shape[1]
        others, own = x[:, :n_dense], torch.split(x[:, n_dense:-1], counts)
        hidden = torch.addmm(bias, others, dense.T) if n_dense else bias.repeat(len(x), 1)
        for part, piece, block in zip(torch.split(hidden, counts), own, blocks, strict=True):
            if len(piece):
                part.addmm_(piece, block.T)
        hidden.relu_()
        error, value = self._slope(torch.addmm(b2, hidden, w2.T), self._targets[rows])
        self._backward(others, own, counts, hidden, error)
        return value

    def _backward(
        self, others: Tensor, own: Sequence[Tensor], counts: list[int], hidden: Tensor, error: Tensor
    ) -> None:
        bias, dense, *blocks, g2, h2 = self._flat.gradient_views
        torch.mm(error.T, hidden, out=g2)
        torch.sum(error, 0, out=h2)
        back = torch.mm(error, self._flat.views[-2]).mul_(hidden.sign_())
        torch.sum(back, 0, out=bias)
        if dense.shape[1]:
            torch.mm(back.T, others, out=dense)
        for part, piece, block in zip(torch.split(back, counts), own, blocks, strict=True):
            torch.mm(part.T, piece, out=block) if len(piece) else block.zero_()

    def finish(self) -> None:
        for target, value in zip(self._tensors, self._flat.views, strict=True):
            target.copy_(value)


class StackedGradients:
    """Gradients of the cross-entropy of many networks of two layers and of one shape, each on rows of its own.

    Their parameters stand on top of each other and each meets the batches that it would meet alone. A batch is row
    numbers `[network, row]`.
    """

    def __init__(self, views: Sequence[TwoLayers], inputs: Tensor, targets: Tensor) -> None:
        self._views, self._inputs, self._targets = list(views), inputs.flatten(1), targets
        tensors = zip(*(view.tensors for view in views), strict=True)
        self._flat = FlatParameters([torch.stack(parts) for parts in tensors])
        self.parameters, self.gradients = [self._flat.vector], [self._flat.gradient]

    @classmethod
    def of(cls, models: Sequence[nn.Module], inputs: Tensor, targets: Tensor) -> StackedGradients | None:
        """Those of the models, or None if they are of other kinds or shapes."""
        views = [view for view in map(TwoLayers.of, models) if view is not None]
        shapes = {tuple(tensor.shape for tensor in view.tensors) for view in views}
        return cls(views, inputs, targets) if len(views) == len(models) and len(shapes) == 1 else None

    def __len__(self) -> int:
        return len(self._views)

    def differentiate(self, batch: Tensor) -> Tensor:
        """Set the gradients of all networks on a batch; the value of each network's objective, `[network]`."""
        x, y = self._inputs[batch], self._targets[batch]
        w1, b1, w2, b2 = self._flat.views
        hidden = torch.baddbmm(b1[:, None], x, w1.mT).relu_()
        logs = torch.baddbmm(b2[:, None], hidden, w2.mT).log_softmax(2)
        value = (logs * y).sum((1, 2)).div_(-x.shape[1])
        self._flat.backward(x, hidden, logs.exp_().sub_(y).div_(x.shape[1]))
        return value

    def finish(self, which: Iterable[int]) -> None:
        """Give some of the networks their new parameters."""
        for k in which:
            self._views[k].assign([parameter[k] for parameter in self._flat.views])


def fast_gradients(
    module: nn.Module, inputs: Tensor, targets: Tensor, objective: str, prepare: Callable[[Tensor], Tensor] | None
) -> TwoLayerGradients | BlockGradients | None:
    """The gradients of a module by hand, if it has them, every target is known and the inputs are not too many."""
    if bool(torch.isnan(targets).any()):
        return None
    view, slope = TwoLayers.of(module), SLOPES[objective]
    if view is not None and len(inputs) * view.tensors[0].shape[1] <= LARGEST:
        return TwoLayerGradients(view, inputs if prepare is None else prepare(inputs), targets, slope)
    if type(module) is BlockNet and all(parameter.requires_grad for parameter in module.parameters()):
        return BlockGradients(module, inputs if prepare is None else prepare(inputs), targets, slope)
    return None
