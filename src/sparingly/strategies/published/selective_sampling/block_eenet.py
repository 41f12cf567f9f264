"""Explore-exploit networks on block-one-hot inputs: f1 values x in the block of each class, f2 corrects f1.

f2's input is the gradient of f1 with respect to its own input beside that input, normalised. The input is zero outside
the block of the class; the gradient is not, since a weight moves the output whether its input is zero or not. It has
K times the length of x, and only what is kept of a label holds it; `own` leaves out all but the block of the class.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparingly.learning.block_networks import BlockNet
from sparingly.learning.label_memory import Memory
from sparingly.learning.row_independence import pad_block
from sparingly.learning.training import Training


class BlockEENet:
    """f1 and f2 on block-one-hot inputs, what they have been told, and how they are trained.

    Between two updates the products of the two first layers stand still, so a block of observations needs no gradient
    of the inputs' size: f2's hidden layer and the gradient's length come from `[width, width]` matrices.
    """

    def __init__(
        self,
        n_classes: int,
        n_features: int,
        width: int,
        *,
        training: Training,
        own: bool = False,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.f1 = BlockNet(n_classes, n_features, width).to(device)
            dense = 0 if own else n_classes * n_features
            self.f2 = BlockNet(n_classes, (2 if own else 1) * n_features, width, dense).to(device)
        self.n_features, self.device, self.training, self.own = n_features, device, training, own
        self.memory = Memory(device)
        self._products: dict[str, Tensor] | None = None

    def estimates(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """f1 and f2 of x in the block of each class, `[rows, class]`, and which of f1's hidden units are active there.

        A row, `[class, width]` in the third, does not depend on the rows beside it.
        """
        rows = pad_block(X.to(self.device).flatten(1))
        first = self._first_layers()
        hidden = torch.matmul(rows, first["exploit"]) + self.f1.bias
        outputs = hidden.relu() @ self.f1.head.weight[0] + self.f1.head.bias
        active = hidden > 0
        back = active * self.f1.head.weight[0]
        length = ((back @ first["gram"]) * back).sum(2) + rows.square().sum(1)
        unscaled = back @ first["cross"] + torch.matmul(rows, first["explore"])
        explored = (unscaled / length.sqrt().clamp_min(1e-12)[..., None] + self.f2.bias).relu()
        second = explored @ self.f2.head.weight[0] + self.f2.head.bias
        return outputs.T[: len(X)], second.T[: len(X)], active.transpose(0, 1)[: len(X)]

    def _first_layers(self) -> dict[str, Tensor]:
        """f1's weights, f2's weights for x, f1's times themselves and times f2's for the gradient."""
        if self._products is None:
            weight = torch.stack(list(self.f1.blocks))
            for_x = torch.stack(list(self.f2.blocks)).transpose(1, 2)
            if self.own:
                for_gradient, for_x = torch.split(for_x, self.n_features, 1)
                gram, cross = torch.bmm(weight, weight.transpose(1, 2)), torch.bmm(weight, for_gradient)
            else:
                wide = torch.cat(list(self.f1.blocks), 1)
                gram, cross = wide @ wide.T, wide @ self.f2.dense.T
            self._products = {"exploit": weight.transpose(1, 2), "explore": for_x, "gram": gram, "cross": cross}
        return self._products

    def remember(self, x: Tensor, k: int, target: float, residual: float, active: Tensor) -> None:
        """Keep that f1 of x in block k should be `target` and f2 `residual`; `active`: of f1's hidden units there."""
        flat = x.to(self.device).flatten()
        blocks = [self.f1.blocks[k]] if self.own else self.f1.blocks
        back = active * self.f1.head.weight[0]
        gradient = torch.cat([back @ block for block in blocks])
        length = (gradient @ gradient + flat @ flat).sqrt().clamp_min(1e-12)
        block = flat.new_tensor([k])
        self.memory.append(
            x=torch.cat([flat, block]),
            both=torch.cat([gradient / length, flat / length, block]),
            target=flat.new_tensor([target]),
            residual=flat.new_tensor([residual]),
        )

    def train(self, rng: np.random.Generator) -> None:
        """One update of both networks from everything kept; the divisor of the early stop is the number of rows."""
        if len(self.memory):
            rows = len(self.memory)
            self.training.fit(self.f1, self.memory["x"], self.memory["target"], rng, divisor=rows)
            self.training.fit(self.f2, self.memory["both"], self.memory["residual"], rng, divisor=rows)
        self._products = None

    def state_dict(self) -> dict[str, Any]:
        return {"f1": self.f1.state_dict(), "f2": self.f2.state_dict(), "memory": self.memory.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.f1.load_state_dict(state["f1"])
        self.f2.load_state_dict(state["f2"])
        self.memory.load_state_dict(state["memory"])
        self._products = None
