"""The training loop for many networks of two layers at once, each on rows of its own.

Twenty small networks that are trained one after the other take twenty times as many calls. Here their parameters stand
on top of each other, a step is taken in all of them, and each meets the batches that it would meet alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sparingly.learning.training import Training
from sparingly.learning.two_layers import FlatAdam, TwoLayers


@dataclass(frozen=True)
class Stacked:
    """Networks of two layers and of one shape.

    >>> from sparingly.learning.networks import MLP
    >>> models = [MLP((1,), 2, width=8) for _ in range(3)]
    >>> X = torch.linspace(-1, 1, 20)[:, None]
    >>> targets = nn.functional.one_hot((X[:, 0] > 0).long()).float()
    >>> orders, training = torch.arange(20).expand(3, 60, 20), Training(batch=10, learning_rate=0.05)
    >>> Stacked.of(models).fit(X, targets, orders, training)
    >>> [bool((model(X).argmax(1) == targets.argmax(1)).all()) for model in models]
    [True, True, True]
    """

    views: list[TwoLayers]

    @classmethod
    def of(cls, models: Sequence[nn.Module]) -> Stacked | None:
        """The models as one, or None if they are of other kinds or shapes."""
        views = [view for view in map(TwoLayers.of, models) if view is not None]
        shapes = {tuple(parameter.shape for parameter in view.parameters) for view in views}
        return cls(views) if len(views) == len(models) and len(shapes) == 1 else None

    def fit(self, X: Tensor, targets: Tensor, orders: Tensor, training: Training) -> None:
        """Lower each network's cross-entropy on rows in the order `[network, epoch, row]`, until it may stop."""
        inputs, going = X.flatten(1), torch.ones(len(self.views), dtype=torch.bool)
        stacks = [torch.stack(parts) for parts in zip(*(view.parameters for view in self.views), strict=True)]
        with torch.no_grad():
            adam = FlatAdam(stacks, training.learning_rate)
            for epoch in orders.unbind(1):
                batches = torch.split(epoch, training.batch, 1)
                value = sum((_step(adam, inputs[rows], targets[rows]) for rows in batches), torch.zeros(()))
                for k in going.nonzero().flatten().tolist():
                    self.views[k].put_back([parameter[k] for parameter in adam.views])
                going &= torch.ones_like(going) if training.stop is None else value / len(X) > training.stop
                if not going.any():
                    return


def _step(adam: FlatAdam, x: Tensor, y: Tensor) -> Tensor:
    """One step in every network, on batches `[network, row, ...]`; their values before it."""
    w1, b1, w2, b2 = adam.views
    hidden = torch.baddbmm(b1[:, None], x, w1.mT).relu_()
    logs = torch.baddbmm(b2[:, None], hidden, w2.mT).log_softmax(2)
    value = (logs * y).sum((1, 2)).div_(-x.shape[1])
    adam.descend(x, hidden, logs.exp_().sub_(y).div_(x.shape[1]))
    return value
