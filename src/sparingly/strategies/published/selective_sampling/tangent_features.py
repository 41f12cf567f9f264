"""Ridge regression on the gradients of a network: its neural tangent features, with a diagonal Gram matrix.

The network is a `BlockNet`, so the gradient at x in block k is zero in the weights of all other blocks, and in those of
block k an outer product of x and of what flows back: no gradient is ever written out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sparingly.learning.block_networks import BlockNet
from sparingly.learning.row_independence import pad_block

PARTS = ("blocks", "bias", "head", "last")


class Tangent:
    """Z = I + sum of squared gradients, and theta = Z^-1 sum of gradients times targets, both by coordinate.

    Gradients are divided by the square root of the network's width.

    >>> net = BlockNet(2, 3, 4)
    >>> tangent = Tangent(net)
    >>> x = torch.ones(1, 3)
    >>> before = tangent(x)
    >>> tangent.add(x, torch.tensor([0]), torch.tensor([1.0]))
    >>> after = tangent(x)
    >>> bool(after["norm"][0, 0] < before["norm"][0, 0]), bool(after["linear"][0, 0] > 0)
    (True, True)
    """

    def __init__(self, network: BlockNet) -> None:
        self.network = network
        zeros = {
            "blocks": torch.zeros(len(network.blocks), *network.blocks[0].shape),
            "bias": torch.zeros_like(network.bias.data),
            "head": torch.zeros_like(network.bias.data),
            "last": torch.zeros(1),
        }
        self.Z = {name: torch.ones_like(part) for name, part in zeros.items()}
        self.b = zeros

    def __call__(self, X: Tensor) -> dict[str, Tensor]:
        """For each class, `[rows, class]`: the network's "output", theta's "linear" one, and the gradient's "norm".

        The norm is that of Z^-1. A row does not depend on the rows beside it.
        """
        rows = pad_block(X.flatten(1))
        hidden, back = self._pieces(rows)
        scale = 1 / math.sqrt(len(self.network.bias))
        output = hidden @ self.network.head.weight[0] + self.network.head.bias
        inverse = {name: 1 / part for name, part in self.Z.items()}
        theta = {name: self.b[name] * inverse[name] for name in PARTS}
        linear = scale * self._product(rows, hidden, back, theta)
        squares = scale**2 * self._product(rows.square(), hidden.square(), back.square(), inverse)
        named = {"output": output, "linear": linear, "norm": squares.sqrt()}
        return {name: value.T[: len(X)] for name, value in named.items()}

    def log_determinant(self) -> float:
        """Of Z."""
        return sum(float(part.log().sum()) for part in self.Z.values())

    def add(self, X: Tensor, classes: Tensor, targets: Tensor) -> None:
        """Learn that x in the block of its class has this target, for each row."""
        rows, scale = X.flatten(1), 1 / math.sqrt(len(self.network.bias))
        hidden, back = self._pieces(rows)
        at = torch.arange(len(rows))
        hidden, back = scale * hidden[classes, at], scale * back[classes, at]
        for k in set(classes.tolist()):
            these = classes == k
            self.Z["blocks"][k] += back[these].square().T @ rows[these].square()
            self.b["blocks"][k] += (back[these] * targets[these, None]).T @ rows[these]
        flat = {"bias": back, "head": hidden, "last": torch.full_like(hidden[:, :1], scale)}
        for name, part in flat.items():
            self.Z[name] += part.square().sum(0)
            self.b[name] += (part * targets[:, None]).sum(0)

    def _pieces(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The hidden layer and what flows back to it, `[class, rows, width]`."""
        weight = torch.stack(list(self.network.blocks)).detach()
        hidden = (torch.matmul(rows, weight.transpose(1, 2)) + self.network.bias.detach()).relu()
        return hidden, (hidden > 0) * self.network.head.weight[0].detach()

    def _product(self, rows: Tensor, hidden: Tensor, back: Tensor, parts: Mapping[str, Tensor]) -> Tensor:
        """The inner product of each gradient with coordinates `parts`, `[class, rows]`."""
        first = torch.matmul(rows, parts["blocks"].transpose(1, 2)) + parts["bias"]
        return (first * back).sum(2) + hidden @ parts["head"] + parts["last"]

    def state_dict(self) -> dict[str, Any]:
        return {"Z": self.Z, "b": self.b}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.Z = {name: state["Z"][name].reshape(self.Z[name].shape) for name in PARTS}
        self.b = {name: state["b"][name].reshape(self.b[name].shape) for name in PARTS}
