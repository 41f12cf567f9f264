"""A network on block-one-hot inputs: x placed in the k-th of K blocks of zeros, one scalar output.

The first layer's weights are then K separate matrices W_k, and only the k-th meets x: the K-times-wider input is never
built.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class BlockNet(nn.Module):
    """A network with one hidden layer of ReLU and one output, on block-one-hot inputs.

    A row of an input holds x and, in its last column, the class whose block x is in; before x may stand `n_dense` more
    inputs that belong to no block.

    >>> net = BlockNet(n_classes=3, n_features=2, width=4)
    >>> wide = torch.cat(list(net.blocks), 1)
    >>> in_block_1 = torch.tensor([[0.0, 0.0, 1.0, 2.0, 0.0, 0.0]])
    >>> hidden = (in_block_1 @ wide.T + net.bias).relu()
    >>> torch.allclose(net(torch.tensor([[1.0, 2.0, 1.0]])), net.head(hidden))
    True
    """

    def __init__(self, n_classes: int, n_features: int, width: int, n_dense: int = 0) -> None:
        super().__init__()
        bound = 1 / math.sqrt(n_classes * n_features + n_dense)
        matrices = torch.empty(n_classes, width, n_features).uniform_(-bound, bound)
        self.blocks = nn.ParameterList(nn.Parameter(matrix.clone()) for matrix in matrices)
        """W_k for each class, `[width, features]`."""
        self.bias = nn.Parameter(torch.empty(width).uniform_(-bound, bound))
        self.n_dense = n_dense
        self.dense = nn.Parameter(torch.empty(width, n_dense).uniform_(-bound, bound))
        self.head = nn.Linear(width, 1)

    @property
    def side_by_side(self) -> list[Tensor]:
        """The first layer's weights: for the dense inputs, then for each block."""
        return [self.dense, *self.blocks]

    def forward(self, rows: Tensor) -> Tensor:
        order, dense, pieces = self._by_class(rows)
        out: Tensor = self.head(self._hidden(dense, pieces))
        return torch.empty_like(out).index_copy(0, order, out)

    def _by_class(self, rows: Tensor) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """The order that sorts the rows by class, the dense inputs in that order, and the x of each class."""
        k = rows[:, -1].long()
        order = torch.argsort(k, stable=True)
        sizes = torch.bincount(k, minlength=len(self.blocks)).tolist()
        ordered = rows[order]
        return order, ordered[:, : self.n_dense], torch.split(ordered[:, self.n_dense : -1], sizes)

    def _hidden(self, dense: Tensor, pieces: tuple[Tensor, ...]) -> Tensor:
        parts = [torch.addmm(self.bias, x, w.T) for x, w in zip(pieces, self.blocks, strict=True) if x.shape[0]]
        hidden = torch.cat(parts)
        return (torch.addmm(hidden, dense, self.dense.T) if self.n_dense else hidden).relu_()
