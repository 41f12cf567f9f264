"""Small ensembles whose members are trained side by side, each without its own fold of the labels."""

from __future__ import annotations

import abc
import copy
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sparingly.learning.determinism import COLUMNS
from sparingly.learning.networks import with_output
from sparingly.learning.tensor_cache import TensorCache
from sparingly.learning.training import Adam, Autograd, descend

LEARNING_RATE = 1e-2
WEIGHT_DECAY = 0.7
WARM_UP = 10
BATCH = 32
DROPOUT = 0.3
LONGER = 3
"""A module, which is trained alone, takes this many times the steps."""
NO_VALUE = torch.zeros(())
"""Nobody looks at the ensemble's objective, so it is not computed."""
UNHEARD_OF = -100.0
"""The logit of a class that no label has named yet."""
MASKS = 4
"""Dropout masks are windows at random places of one random sequence this many times as long as a mask."""


def learning_rate(step: int, steps: int, peak: float = LEARNING_RATE) -> float:
    """A short warm-up, then half a cosine down to 0.

    >>> [round(learning_rate(k, 100), 4) for k in (0, 9, 50, 99)]
    [0.001, 0.0098, 0.005, 0.0]
    """
    return peak * min(1.0, (step + 1) / WARM_UP) * (1 + math.cos(math.pi * step / steps)) / 2


class Ensemble(abc.ABC):
    """Members that see the same labels, except that member k never sees fold k.

    So every label has a member that did not see it, and with it an honest prediction (`held_out`).
    """

    members: int

    @abc.abstractmethod
    def fit(self, X: Tensor, y: Tensor, folds: Tensor, steps: int, generator: torch.Generator) -> None:
        """Draw new members and train them on inputs `[n, *shape]` and classes `[n]`."""

    @abc.abstractmethod
    def logits(self, X: Tensor) -> Tensor:
        """`[member, block, class]`."""

    def held_out(self, X: Tensor, folds: Tensor) -> Tensor:
        """For each row the logits of the member that did not train on its fold, `[n, class]`."""
        return self.logits(X)[folds, torch.arange(len(X))]

    def add_class(self) -> None:
        """Take on one more class, the last; it is held very unlikely until the next `fit`."""
        raise ValueError(f"{type(self).__name__} cannot take on a class: it has no `add_class`")

    @abc.abstractmethod
    def state_dict(self) -> dict[str, Any]: ...

    @abc.abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


class MLPEnsemble(Ensemble):
    """MLPs with one hidden layer, as one computation: their first layers are one matrix, their batches are shared.

    Training is AdamW on the cross-entropy by hand-written gradients, with dropout on hidden units and, the wider the
    input the more, on inputs.

    >>> generator = torch.Generator().manual_seed(0)
    >>> X = torch.randn(120, 3, generator=generator)
    >>> y = (X[:, 0] > 0).long()
    >>> ensemble = MLPEnsemble(2, members=3)
    >>> ensemble.fit(X, y, torch.arange(120) % 3, steps=150, generator=generator)
    >>> bool((ensemble.held_out(X, torch.arange(120) % 3).argmax(1) == y).float().mean() > 0.9)
    True
    """

    def __init__(self, n_classes: int, *, members: int = 6, width: int = 100) -> None:
        self.n_classes = n_classes
        self.members = members
        self.width = width
        self.parameters = torch.zeros(0)
        self._n_inputs = 0
        self._widened: TensorCache[tuple[Tensor, ...]] = TensorCache()

    def views(self, flat: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """W1 `[input, member * width]`, b1, W2 `[member, width, class]` and b2 in a flat vector."""
        k, h, m, d = self.members, self.width, self.n_classes, self._n_inputs
        w1, b1, w2, b2 = torch.split(flat, [d * k * h, k * h, k * h * m, k * m])
        return w1.view(d, k * h), b1, w2.view(k, h, m), b2.view(k, 1, m)

    def _draw(self, n_inputs: int, generator: torch.Generator) -> None:
        """PyTorch's initialisation; the last biases are 0."""
        self._n_inputs = n_inputs
        n_hidden = self.members * self.width
        self.parameters = torch.empty((n_inputs + 1 + self.n_classes) * n_hidden + self.members * self.n_classes)
        self.parameters.uniform_(-1, 1, generator=generator)
        w1, b1, w2, b2 = self.views(self.parameters)
        w1.mul_(n_inputs**-0.5)
        b1.mul_(n_inputs**-0.5)
        w2.mul_(self.width**-0.5)
        b2.zero_()

    def fit(self, X: Tensor, y: Tensor, folds: Tensor, steps: int, generator: torch.Generator) -> None:
        self._draw(X.shape[1], generator)
        n = len(X)
        order = torch.cat([torch.randperm(n, generator=generator) for _ in range(steps * BATCH // n + 1)])
        gradients = EnsembleGradients(self, X, y, folds, steps, generator)
        adam = Adam(
            gradients.parameters,
            lambda step: learning_rate(step, steps),
            weight_decay=WEIGHT_DECAY,
            beta2=0.99,
            decoupled=True,
        )
        descend(gradients, adam, enumerate(torch.split(order[: steps * BATCH], BATCH)))

    def logits(self, X: Tensor) -> Tensor:
        w1, b1, w2, b2 = self._widened.of(self.parameters, self._widened_views)
        entering = torch.addmm(b1, X, w1)
        hidden = entering.numpy()
        np.maximum(hidden, 0, out=hidden)
        found = torch.bmm(entering.view(-1, self.members, self.width).transpose(0, 1), w2).numpy()
        return torch.from_numpy(found[..., : self.n_classes] + b2.numpy())

    def _widened_views(self, flat: Tensor) -> tuple[Tensor, ...]:
        """The same views, the last layer as wide as products must be to be the same in every block."""
        w1, b1, w2, b2 = self.views(flat)
        return w1, b1, nn.functional.pad(w2, (0, max(0, COLUMNS - self.n_classes))), b2

    def add_class(self) -> None:
        if len(self.parameters):
            w1, b1, w2, b2 = self.views(self.parameters)
            w2, b2 = nn.functional.pad(w2, (0, 1)), nn.functional.pad(b2, (0, 1), value=UNHEARD_OF)
            self.parameters = torch.cat([part.flatten() for part in (w1, b1, w2, b2)])
        self.n_classes += 1

    def state_dict(self) -> dict[str, Any]:
        return {"parameters": self.parameters, "n_inputs": self._n_inputs}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._n_inputs = int(state["n_inputs"])
        self.parameters = state["parameters"]
        self.views(self.parameters)


class EnsembleGradients:
    """Gradients by hand of an ensemble's cross-entropy; a batch is the number of the step and its row numbers.

    1.3 to 1.5 times as fast as autograd (`python -m benchmarks training` measures it). Other gradients by hand must
    gain more; these stay because training is most of Sparing's time, and so that its decisions stay the same.
    """

    def __init__(
        self, ensemble: MLPEnsemble, X: Tensor, y: Tensor, folds: Tensor, steps: int, generator: torch.Generator
    ) -> None:
        self._ensemble, self._inputs = ensemble, X
        members = ensemble.members
        self._targets = nn.functional.one_hot(y, ensemble.n_classes).float()
        self._weights = (folds[:, None] != torch.arange(members)).float() * (members / (members - 1) / BATCH)
        input_rate = (1 - min(1.0, math.sqrt(10 / X.shape[1]))) / 2
        self._input_masks = _Masks(input_rate, (BATCH, X.shape[1]), steps, generator)
        self._hidden_masks = _Masks(DROPOUT, (BATCH, members * ensemble.width), steps, generator)
        self.parameters, self.gradients = [ensemble.parameters], [torch.empty_like(ensemble.parameters)]
        self._weight_views, self._gradient_views = ensemble.views(self.parameters[0]), ensemble.views(self.gradients[0])

    def gather(self, batch: tuple[int, Tensor]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """A batch's inputs with dropout, the mask of its hidden units, its targets and its weights."""
        step, rows = batch
        x, target, weight = (one.index_select(0, rows) for one in (self._inputs, self._targets, self._weights))
        return x.mul_(self._input_masks(step)), self._hidden_masks(step), target, weight

    def differentiate(self, batch: tuple[int, Tensor]) -> Tensor:
        x, mask, target, weight = self.gather(batch)
        members, width = self._ensemble.members, self._ensemble.width
        (w1, b1, w2, b2), (g1, h1, g2, h2) = self._weight_views, self._gradient_views
        entering = torch.addmm(b1, x, w1)
        active = mask * (entering > 0)
        hidden = entering.mul_(active).view(BATCH, members, width).transpose(0, 1)
        error = torch.baddbmm(b2, hidden, w2).softmax(2).sub_(target).mul_(weight.T[:, :, None])
        torch.bmm(hidden.transpose(1, 2), error, out=g2)
        torch.sum(error, 1, keepdim=True, out=h2)
        back = torch.bmm(error, w2.transpose(1, 2)).transpose(0, 1).reshape(BATCH, -1).mul_(active)
        torch.mm(x.T, back, out=g1)
        torch.sum(back, 0, out=h1)
        return NO_VALUE


class _Masks:
    """Inverted-dropout masks, one for each step, cheap to draw."""

    def __init__(self, rate: float, shape: tuple[int, int], steps: int, generator: torch.Generator) -> None:
        size = math.prod(shape)
        self._shape = shape
        self._pool = (torch.rand((MASKS + 1) * size, generator=generator) >= rate).float().div_(1 - rate)
        self._starts = torch.randint(MASKS * size, (steps,), generator=generator).tolist()

    def __call__(self, step: int) -> Tensor:
        start = self._starts[step]
        return self._pool[start : start + math.prod(self._shape)].view(self._shape)


class ModuleEnsemble(Ensemble):
    """Copies of any module, trained one after the other by differentiation; images are shifted by up to two pixels.

    Parameters
    ----------
    module
        Maps `[block, *shape]` to logits `[block, class]`; each member starts from its weights, spread a little.
    n_classes
        How many classes that are.
    """

    def __init__(self, module: nn.Module, n_classes: int, *, members: int = 3) -> None:
        self.members, self.n_classes = members, n_classes
        self._origin = module
        self.modules = [copy.deepcopy(module) for _ in range(members)]

    def fit(self, X: Tensor, y: Tensor, folds: Tensor, steps: int, generator: torch.Generator) -> None:
        self.modules = [copy.deepcopy(self._origin) for _ in range(self.members)]
        for k, module in enumerate(self.modules):
            seen = (folds != k).nonzero().flatten()
            _spread(module, generator)
            _fit_module(module, X[seen], y[seen], LONGER * steps, generator)

    def logits(self, X: Tensor) -> Tensor:
        return torch.stack([module(X) for module in self.modules])

    def add_class(self) -> None:
        self._origin = with_output(self._origin, self.n_classes)
        self.modules = [with_output(module, self.n_classes, bias=UNHEARD_OF) for module in self.modules]
        self.n_classes += 1

    def state_dict(self) -> dict[str, Any]:
        return {"modules": [module.state_dict() for module in self.modules]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for module, weights in zip(self.modules, state["modules"], strict=True):
            module.load_state_dict(weights)


def _spread(module: nn.Module, generator: torch.Generator) -> None:
    """Permute the entries of each weight, so that members start alike in scale and different in direction."""
    with torch.no_grad():
        for parameter in module.parameters():
            order = torch.randperm(parameter.numel(), generator=generator)
            parameter.copy_(parameter.flatten()[order].view_as(parameter))


def _fit_module(module: nn.Module, X: Tensor, y: Tensor, steps: int, generator: torch.Generator) -> None:
    model = Autograd(module, X, y, nn.functional.cross_entropy)
    adam = Adam(model.parameters, lambda step: learning_rate(step, steps, LEARNING_RATE / 2), beta2=0.99)
    drawn = (torch.randint(len(X), (BATCH,), generator=generator) for _ in range(steps))
    descend(model, adam, ((_shifted(X[rows], generator), y[rows]) for rows in drawn))
    model.finish()


def _shifted(X: Tensor, generator: torch.Generator) -> Tensor:
    """A batch of images moved together by up to two pixels; anything else unchanged."""
    if X.dim() != 4:
        return X
    down, right = torch.randint(-2, 3, (2,), generator=generator).tolist()
    return torch.roll(X, (down, right), (2, 3))


def temperature(logits: Tensor, y: Tensor) -> float:
    """The temperature under which honest logits `[n, class]` make the classes likeliest, held near 1 by a weak prior.

    >>> logits = torch.tensor([[4.0, 0.0]] * 10)
    >>> temperature(logits, torch.tensor([0] * 7 + [1] * 3)) > 2
    True
    """
    candidates = np.geomspace(0.1, 5, 25)
    prior = 0.02 * np.log(candidates) ** 2
    values = [float(nn.functional.cross_entropy(logits / t, y)) for t in candidates]
    return float(candidates[int(np.argmin(values + prior))])
