"""The paper's networks: f1, an MLP or a LeNet, and f2, the exploration head. Any nn.Module is welcome as f1."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool2d, relu

from sparingly.learning.determinism import RowIndependentLinear

Network = str | nn.Module | Callable[[tuple[int, ...], int], nn.Module]
"""A name ("mlp", "lenet"), a module, or a function of the input shape and the number of outputs that makes one."""


class MLP(nn.Module):
    """A fully connected network with ReLU between its `depth` layers.

    >>> MLP((784,), 10)
    MLP(
      (layers): ModuleList(
        (0): RowIndependentLinear(in_features=784, out_features=100, bias=True)
        (1): RowIndependentLinear(in_features=100, out_features=10, bias=True)
      )
    )
    """

    def __init__(self, shape: tuple[int, ...], n_outputs: int, *, width: int = 100, depth: int = 2) -> None:
        super().__init__()
        if depth < 2:
            raise ValueError(f"depth is {depth}: a network needs a hidden layer, so at least 2")
        sizes = [math.prod(shape), *[width] * (depth - 1), n_outputs]
        self.layers = nn.ModuleList(RowIndependentLinear(a, b) for a, b in itertools.pairwise(sizes))

    @property
    def linear(self) -> list[nn.Linear]:
        """The layers, from the input to the output."""
        return [cast(nn.Linear, layer) for layer in self.layers]

    def forward(self, x: Tensor) -> Tensor:
        x = x.flatten(1)
        *hidden, last = self.linear
        for layer in hidden:
            x = relu(layer(x))
        return cast(Tensor, last(x))


class OneLogit(nn.Module):
    """Two classes by one logit: the outputs are 0 and f(x), so that softmax of them is the sigmoid of f(x).

    >>> OneLogit(MLP((3,), 1))(torch.zeros(2, 3)).shape
    torch.Size([2, 2])
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        logit: Tensor = self.network(x)
        return torch.cat([torch.zeros_like(logit), logit], 1)


def normal_mlp(shape: tuple[int, ...], n_outputs: int, *, width: int = 100, deviation: float = 0.1) -> nn.Module:
    """An MLP with normal weights and zero biases; for two classes it has one logit."""
    network = MLP(shape, 1 if n_outputs == 2 else n_outputs, width=width)
    for layer in network.linear:
        nn.init.normal_(layer.weight, std=deviation)
        nn.init.zeros_(layer.bias)
    return OneLogit(network) if n_outputs == 2 else network


class LeNet(nn.Module):
    """LeNet-5 with ReLU and max pooling; every size follows from the input, every width from its number of channels.

    >>> sum(p.numel() for p in LeNet((1, 28, 28), 10).parameters())
    44426
    >>> sum(p.numel() for p in LeNet((3, 32, 32), 10).parameters())
    548878
    """

    def __init__(self, shape: tuple[int, ...], n_outputs: int) -> None:
        super().__init__()
        if len(shape) != 3:
            raise ValueError(f"a LeNet needs images of shape (channels, height, width), not {shape}")
        channels, height, width = shape
        rows, columns = (((size - 4) // 2 - 4) // 2 for size in (height, width))
        if rows < 1 or columns < 1:
            raise ValueError(f"images of {height} x {width} are too small for a LeNet, which needs 16 x 16")
        self.conv1 = nn.Conv2d(channels, 6 * channels, 5)
        self.conv2 = nn.Conv2d(6 * channels, 16 * channels, 5)
        self.fc1 = nn.Linear(16 * channels * rows * columns, 120 * channels)
        self.fc2 = nn.Linear(120 * channels, 84 * channels)
        self.fc3 = RowIndependentLinear(84 * channels, n_outputs)
        # In memory, not in shape: convolutions are faster with channels last.
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, x: Tensor) -> Tensor:
        x = relu(max_pool2d(self.conv1(x), 2))
        x = relu(max_pool2d(self.conv2(x), 2))
        x = relu(self.fc2(relu(self.fc1(x.flatten(1)))))
        return cast(Tensor, self.fc3(x))


def build(network: Network, shape: tuple[int, ...], n_outputs: int, *, seed: int, width: int, depth: int) -> nn.Module:
    """The network by name, as given, or from its factory, with the initial weights of `seed`.

    The global generator is left as it was.

    >>> build("mlp", (4,), 2, seed=0, width=8, depth=3)(torch.zeros(5, 4)).shape
    torch.Size([5, 2])
    """
    if isinstance(network, nn.Module):
        module = network
    else:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            module = _make(network, shape, n_outputs, width, depth)
    _check(module, shape, n_outputs)
    return module.eval()


def with_output(module: nn.Module, n_outputs: int, *, bias: float = 0.0) -> nn.Module:
    """A module with one more output than `n_outputs`, of which nothing is known: no weights, and this bias.

    The module itself is changed, where it can be; its outputs must be those of its last fully connected layer.

    >>> module = with_output(MLP((3,), 2, width=4), 2, bias=-1.0)
    >>> module(torch.zeros(1, 3))[0, 2].item()
    -1.0
    """
    places = [name for name, layer in module.named_modules() if type(layer) in (nn.Linear, RowIndependentLinear)]
    last = cast(nn.Linear, module.get_submodule(places[-1])) if places else None
    if last is None or last.out_features != n_outputs:
        raise ValueError(f"{type(module).__name__} cannot take on a class: its outputs are not those of a linear layer")
    grown = type(last)(last.in_features, n_outputs + 1, last.bias is not None, last.weight.device)
    with torch.no_grad():
        grown.weight.copy_(nn.functional.pad(last.weight, (0, 0, 0, 1)))
        if last.bias is not None:
            grown.bias.copy_(nn.functional.pad(last.bias, (0, 1), value=bias))
    grown.requires_grad_(last.weight.requires_grad)
    if not places[-1]:
        return grown
    parent, _, name = places[-1].rpartition(".")
    setattr(module.get_submodule(parent), name, grown)
    return module.eval()


def _make(network: Network, shape: tuple[int, ...], n_outputs: int, width: int, depth: int) -> nn.Module:
    if network == "mlp":
        return MLP(shape, n_outputs, width=width, depth=depth)
    if network == "lenet":
        return LeNet(shape, n_outputs)
    if callable(network):
        return network(shape, n_outputs)
    raise ValueError(f"network {network!r} is not known: give 'mlp', 'lenet', a module or a function that makes one")


def _check(module: nn.Module, shape: tuple[int, ...], n_outputs: int) -> None:
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        parameter = next(module.parameters(), torch.zeros(0))
        out = module.eval()(torch.zeros(2, *shape, device=parameter.device))
    if out.shape != (2, n_outputs):
        raise ValueError(f"the network maps 2 observations to {tuple(out.shape)}, not to (2, {n_outputs})")
