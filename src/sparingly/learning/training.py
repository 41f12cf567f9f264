"""The training loop, its optimiser, and how a network is fitted with them.

`descend` is the only loop over batches: one step of Adam for each. What it trains says how to differentiate a batch:
any module by autograd (`Autograd`), small networks by hand (`fast_gradients`), Sparing's ensemble by hand as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from sparingly.learning.fast_gradients import StackedGradients, fast_gradients

Value = Callable[[Tensor, Tensor], Tensor]
"""An objective's value, given outputs and targets of a batch."""


def _error(outputs: Tensor, targets: Tensor) -> Tensor:
    """The error; 0 where the target is nan, since nothing is known there."""
    return torch.nan_to_num(outputs - targets, nan=0.0)


OBJECTIVES: dict[str, Value] = {
    "mean_squared": lambda outputs, targets: _error(outputs, targets).square().mean(),
    "half_squared": lambda outputs, targets: _error(outputs, targets).square().sum() / 2,
    "cross_entropy": nn.functional.cross_entropy,
}
"""By name: the squared error averaged over batch and outputs, or halved and summed as in the paper (both leave out
targets that are nan); softmax cross-entropy against distributions."""


class Adam:
    """Adam (Kingma, Ba 2015) with torch's defaults; or AdamW (Loshchilov, Hutter 2019), with `decoupled` decay.

    On torch's fused kernel: `torch.optim` loads the compiler when its first optimiser is made, two seconds in every
    process, and its step spends more time in Python than in the kernel on networks this small. This is the same update,
    and a test holds the two equal.

    Parameters
    ----------
    parameters
        Changed in place.
    learning_rate
        A number, or a function of the steps made so far.

    >>> parameter = torch.tensor([1.0], requires_grad=True)
    >>> adam = Adam([parameter], learning_rate=0.1)
    >>> for _ in range(3):
    ...     adam.step([2 * parameter.detach()])
    >>> round(parameter.item(), 3)
    0.702
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        learning_rate: float | Callable[[int], float] = 1e-3,
        weight_decay: float = 0.0,
        *,
        beta2: float = 0.999,
        decoupled: bool = False,
    ) -> None:
        self.parameters = list(parameters)
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.beta2 = beta2
        self._made = 0
        self._strides = [p.stride() for p in self.parameters]
        self._update = torch._fused_adamw_ if decoupled else torch._fused_adam_
        self._mean = [torch.zeros_like(p) for p in self.parameters]
        self._square = [torch.zeros_like(p) for p in self.parameters]
        self._steps = [torch.zeros((), device=p.device) for p in self.parameters]

    def step(self, gradients: Sequence[Tensor]) -> None:
        """One step against the gradients, one a parameter.

        The kernel goes through memory, not through indices, so a gradient that lies there otherwise than its parameter,
        as that of a weight that a module transposes, is laid out anew.
        """
        if torch.is_grad_enabled():
            with torch.no_grad():
                return self.step(gradients)
        rate = self.learning_rate(self._made) if callable(self.learning_rate) else self.learning_rate
        self._made += 1
        laid_out = list(gradients)
        if [one.stride() for one in laid_out] != self._strides:
            pairs = zip(self.parameters, laid_out, strict=True)
            laid_out = [torch.empty_like(p).copy_(gradient) for p, gradient in pairs]
        torch._foreach_add_(self._steps, 1)
        self._update(
            self.parameters,
            laid_out,
            self._mean,
            self._square,
            [],
            self._steps,
            lr=rate,
            beta1=0.9,
            beta2=self.beta2,
            weight_decay=self.weight_decay,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )


Batch = TypeVar("Batch")
BatchTaken = TypeVar("BatchTaken", contravariant=True)


class Differentiable(Protocol[BatchTaken]):
    """What the training loop trains.

    Attributes
    ----------
    parameters, gradients
        What Adam changes, in place, and the gradients of the last batch, as many.
    """

    @property
    def parameters(self) -> Sequence[Tensor]: ...

    @property
    def gradients(self) -> Sequence[Tensor]: ...

    def differentiate(self, batch: BatchTaken) -> Tensor:
        """Compute the gradients of the objective for a batch; returns the objective's value."""


class Trainable(Differentiable[Any], Protocol):
    """What is trained in epochs, on inputs and targets of its own."""

    def batches(self, order: Tensor, size: int) -> Iterable[Any]:
        """Batches of the rows in an order."""

    def finish(self) -> None:
        """Give the module what was learned."""


def descend(model: Differentiable[Batch], adam: Adam, batches: Iterable[Batch]) -> Tensor:
    """The training loop: one step of Adam for each batch; the sum of the batches' values."""
    total = torch.zeros((), device=adam.parameters[0].device)
    with torch.no_grad():
        for batch in batches:
            total = total + model.differentiate(batch)
            adam.step(model.gradients)
    return total


class Autograd:
    """Any module, by automatic differentiation; a batch is inputs and targets.

    `prepare` maps a batch of stored inputs to what the module takes. The module is in training mode until `finish`.
    """

    def __init__(
        self,
        module: nn.Module,
        inputs: Tensor,
        targets: Tensor,
        objective: Value,
        prepare: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        self._module, self._inputs, self._targets = module.train(), inputs, targets
        self._objective, self._prepare = objective, prepare
        self.parameters: list[Tensor] = [p for p in module.parameters() if p.requires_grad]
        self.gradients: Sequence[Tensor] = []

    def batches(self, order: Tensor, size: int) -> Iterable[tuple[Tensor, Tensor]]:
        return zip(torch.split(self._inputs[order], size), torch.split(self._targets[order], size), strict=True)

    def differentiate(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        x, y = batch
        if self._prepare is not None:
            x = self._prepare(x)
        with torch.enable_grad():
            value = self._objective(self._module(x), y)
            self.gradients = torch.autograd.grad(value, self.parameters, allow_unused=True, materialize_grads=True)
        return value.detach()

    def finish(self) -> None:
        self._module.eval()


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
        with torch.no_grad():
            model = self._trainable(module, inputs, targets, prepare)
            adam, made = Adam(model.parameters, self.learning_rate), 0
            while made < self.epochs:
                made += 1
                order = torch.from_numpy(rng.permutation(len(inputs))).to(inputs.device)
                total = descend(model, adam, model.batches(order, self.batch))
                if self.stop is not None and float(total) / divisor <= self.stop:
                    break
            model.finish()
        return made

    def _trainable(
        self, module: nn.Module, inputs: Tensor, targets: Tensor, prepare: Callable[[Tensor], Tensor] | None
    ) -> Trainable:
        fast = fast_gradients(module, inputs, targets, self.objective, prepare)
        return Autograd(module, inputs, targets, OBJECTIVES[self.objective], prepare) if fast is None else fast

    def fit_stacked(self, models: StackedGradients, orders: Tensor) -> None:
        """Lower each network's cross-entropy on rows in the order `[network, epoch, row]`, until it may stop.

        >>> from sparingly.learning.networks import MLP
        >>> models = [MLP((1,), 2, width=8) for _ in range(3)]
        >>> X = torch.linspace(-1, 1, 20)[:, None]
        >>> targets = nn.functional.one_hot((X[:, 0] > 0).long()).float()
        >>> orders, training = torch.arange(20).expand(3, 60, 20), Training(batch=10, learning_rate=0.05)
        >>> training.fit_stacked(StackedGradients.of(models, X, targets), orders)
        >>> [bool((model(X).argmax(1) == targets.argmax(1)).all()) for model in models]
        [True, True, True]
        """
        going, n_rows = torch.ones(len(models), dtype=torch.bool), orders.shape[2]
        with torch.no_grad():
            adam = Adam(models.parameters, self.learning_rate)
            for order in orders.unbind(1):
                value = descend(models, adam, torch.split(order, self.batch, 1))
                models.finish(going.nonzero().flatten().tolist())
                if self.stop is not None:
                    going &= value / n_rows > self.stop
                if not going.any():
                    return
