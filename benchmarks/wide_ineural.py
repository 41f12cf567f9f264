"""INeural as the released code has it: f2 sees the gradient with respect to the whole K-times-wider input.

Slow and large on purpose; it is here to see what the library's form, which leaves out the gradient with respect to the
zeros around x, does to the results.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.learning.block_eenet import BlockEENet
from sparingly.learning.counts import padded
from sparingly.learning.networks import MLP, build
from sparingly.strategies import INeural


class WideEENet(BlockEENet):
    """f1 as in the library; f2 an MLP on [gradient with respect to the wide input, wide input], normalised."""

    def __init__(self, n_classes: int, n_features: int, width: int, **options: Any) -> None:
        super().__init__(n_classes, n_features, width, **options)
        self.n_classes = n_classes
        size = (2 * n_classes * n_features,)
        self.f2 = build("mlp", size, 1, seed=options["seed"] + 1, width=width, depth=2)  # type: ignore[assignment]

    def estimates(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        rows, f2 = padded(X.flatten(1)), self.f2
        assert isinstance(f2, MLP)
        first, second = f2.linear
        wide = torch.cat(list(self.f1.blocks), 1)
        for_gradient, for_x = first.weight.split(wide.shape[1], 1)
        stacked = torch.stack(list(self.f1.blocks)).transpose(1, 2)
        hidden = torch.matmul(rows, stacked) + self.f1.bias
        back = (hidden > 0) * self.f1.head.weight[0]
        length = ((back @ (wide @ wide.T)) * back).sum(2) + rows.square().sum(1)
        placed = for_x.view(len(for_x), self.n_classes, -1).permute(1, 2, 0)
        unscaled = back @ (wide @ for_gradient.T) + torch.matmul(rows, placed)
        explored = (unscaled / length.sqrt().clamp_min(1e-12)[..., None] + first.bias).relu() @ second.weight[0]
        outputs = hidden.relu() @ self.f1.head.weight[0] + self.f1.head.bias
        n = len(X)
        return outputs.T[:n], (explored + second.bias).T[:n], (hidden > 0).transpose(0, 1)[:n]

    def remember(self, x: Tensor, k: int, target: float, residual: float, active: Tensor) -> None:
        flat = x.flatten()
        gradient = torch.cat([(active * self.f1.head.weight[0]) @ block for block in self.f1.blocks])
        placed = torch.zeros(self.n_classes, len(flat))
        placed[k] = flat
        both = torch.cat([gradient, placed.flatten()])
        self.memory.append(
            x=torch.cat([flat, flat.new_tensor([k])]),
            both=both / both.norm().clamp_min(1e-12),
            target=flat.new_tensor([target]),
            residual=flat.new_tensor([residual]),
        )


class WideINeural(INeural):
    """INeural on these networks."""

    name = "wide_ineural"

    def __init__(self, game: Game, n_features: int, **options: Any) -> None:
        super().__init__(game, n_features, **options)
        fit = self.settings.training()
        self.network = WideEENet(game.n_outcomes, self.n_features, self.settings.width, training=fit, seed=self.seed)
