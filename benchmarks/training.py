"""Gradients by hand against autograd in the training loop, as ratios taken in one run."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from sparingly.learning.block_networks import BlockNet
from sparingly.learning.fast_gradients import StackedGradients, fast_gradients
from sparingly.learning.networks import MLP
from sparingly.learning.training import OBJECTIVES, Adam, Autograd, Trainable, Training, descend
from sparingly.strategies.sparing.models.ensemble import BATCH, EnsembleGradients, MLPEnsemble

ROWS = 640
EPOCHS = 5
TARGET = "target: 1.5 or more"


class EnsembleModule(nn.Module):
    """Sparing's ensemble as a module: inputs and dropout masks side by side, logits of every member."""

    def __init__(self, ensemble: MLPEnsemble) -> None:
        super().__init__()
        views = ensemble.views(ensemble.parameters)
        self.w1, self.b1, self.w2, self.b2 = (nn.Parameter(view.clone()) for view in views)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        hidden = torch.addmm(self.b1, x, self.w1).relu() * mask
        members, width, _ = self.w2.shape
        return torch.baddbmm(self.b2, hidden.view(len(x), members, width).transpose(0, 1), self.w2)


class EnsembleAutograd:
    """The gradients of the ensemble by autograd, on the batches, masks and weights of those by hand."""

    def __init__(self, module: EnsembleModule, by_hand: EnsembleGradients) -> None:
        self._module, self._by_hand = module, by_hand
        self.parameters: list[Tensor] = list(module.parameters())
        self.gradients: tuple[Tensor, ...] = ()

    def differentiate(self, batch: tuple[int, Tensor]) -> Tensor:
        x, mask, target, weight = self._by_hand.gather(batch)
        with torch.enable_grad():
            logs = self._module(x, mask).log_softmax(2)
            value = -((logs * target).sum(2) * weight.T).sum()
            self.gradients = torch.autograd.grad(value, self.parameters)
        return value.detach()


def ratio(slow: Callable[[], object], fast: Callable[[], object]) -> float:
    """The least time of the one over that of the other, taken in turns so that a busy machine is busy for both."""
    taken = []
    for _ in range(8):
        for once in (slow, fast):
            began = time.perf_counter()
            once()
            taken.append(time.perf_counter() - began)
    return min(taken[2::2]) / min(taken[3::2])


def epochs(model: Trainable) -> Callable[[], object]:
    order, adam = torch.randperm(ROWS), Adam(model.parameters)
    return lambda: [descend(model, adam, model.batches(order, 64)) for _ in range(EPOCHS)]


def fast_path(module: nn.Module, inputs: Tensor, targets: Tensor) -> float:
    """How many times as fast the gradients by hand of one module are."""

    by_hand = fast_gradients(copy.deepcopy(module), inputs, targets, "mean_squared", None)
    assert by_hand is not None
    by_autograd = Autograd(module, inputs, targets, OBJECTIVES["mean_squared"])
    return ratio(epochs(by_autograd), epochs(by_hand))


def stack(n_features: int, n_classes: int, count: int = 20, n_rows: int = 100) -> float:
    """How many times as fast a committee is trained as one than one by one by autograd."""
    X = torch.randn(n_rows, n_features)
    y = torch.eye(n_classes)[torch.randint(n_classes, (n_rows,))]
    models, how = [MLP((n_features,), n_classes) for _ in range(count)], Training(epochs=10, objective="cross_entropy")
    orders = torch.stack([torch.stack([torch.randperm(n_rows) for _ in range(10)]) for _ in models])

    def one_by_one() -> None:
        for model, each in zip(models, orders, strict=True):
            by_autograd = Autograd(model, X, y, OBJECTIVES["cross_entropy"])
            adam = Adam(by_autograd.parameters)
            for order in each:
                descend(by_autograd, adam, by_autograd.batches(order, how.batch))

    def as_one() -> None:
        stacked = StackedGradients.of(models, X, y)
        assert stacked is not None
        how.fit_stacked(stacked, orders)

    return ratio(one_by_one, as_one)


def ensemble(n_features: int, n_classes: int, steps: int = 150) -> float:
    """How many times as fast the gradients by hand of Sparing's ensemble are."""
    generator = torch.Generator().manual_seed(0)
    X, y, folds = torch.randn(200, n_features), torch.randint(n_classes, (200,)), torch.arange(200) % 6
    model = MLPEnsemble(n_classes)
    model.fit(X, y, folds, 1, generator)
    by_hand = EnsembleGradients(model, X, y, folds, steps, generator)
    by_autograd = EnsembleAutograd(EnsembleModule(model), by_hand)
    batches = list(enumerate(torch.randint(200, (steps, BATCH))))
    autograd_adam, adam = Adam(by_autograd.parameters), Adam(by_hand.parameters)
    return ratio(lambda: descend(by_autograd, autograd_adam, batches), lambda: descend(by_hand, adam, batches))


def blocks(n_classes: int, n_features: int, n_dense: int = 0) -> float:
    classes = torch.from_numpy(np.random.default_rng(0).integers(n_classes, size=(ROWS, 1))).float()
    inputs = torch.cat([torch.randn(ROWS, n_dense + n_features), classes], 1)
    return fast_path(BlockNet(n_classes, n_features, 100, n_dense), inputs, torch.randn(ROWS, 1))


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"times as fast as autograd, hidden layers of 100, one thread ({TARGET})")
    for n_features, n_outputs in ((30, 2), (54, 7), (784, 10)):
        found = fast_path(MLP((n_features,), n_outputs), torch.randn(ROWS, n_features), torch.randn(ROWS, n_outputs))
        row(f"TwoLayerGradients, MLP {n_features} -> {n_outputs}", found)
    row("TwoLayerGradients, 2 blocks of 30", blocks(2, 30))
    row("TwoLayerGradients, 7 blocks of 54", blocks(7, 54))
    row("BlockGradients, 10 blocks of 784", blocks(10, 784))
    row("BlockGradients, 7 blocks of 108, 378 dense", blocks(7, 108, 378))
    for n_features, n_classes in ((30, 2), (784, 10)):
        row(f"StackedGradients, 20 MLPs {n_features} -> {n_classes}", stack(n_features, n_classes))
    for n_features, n_classes in ((64, 10), (240, 2), (512, 10)):
        row(f"Sparing's ensemble, {n_features} -> {n_classes}", ensemble(n_features, n_classes))


def row(what: str, found: float) -> None:
    print(f"{what:<46}{found:6.2f}", flush=True)


if __name__ == "__main__":
    main()
