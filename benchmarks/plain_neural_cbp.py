"""NeuralCBP, line by line as Algorithm 1 prints it: what a straightforward implementation costs.

One observation at a time, automatic differentiation each round, a DataLoader for each update, an inverse Gram matrix
for each action, and linear programs for the survivors of each new pattern of confident signs. The options are those of
the preset `released`, so that it makes the same decisions as the product; `benchmarks.neural_cbp` holds the two against
each other. Nothing here is used by the product.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Tensor, nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

BLOCK = 51


class Order(Sampler[int]):
    """A random order drawn from the same generator as the product's."""

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        self.n, self.rng = n, rng

    def __iter__(self) -> Iterator[int]:
        return iter(self.rng.permutation(self.n).tolist())

    def __len__(self) -> int:
        return self.n


def network(n_inputs: int, n_outputs: int, seed: int) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(n_inputs, 100), nn.ReLU(), nn.Linear(100, n_outputs))


class PlainNeuralCBP:
    """Algorithm 1 for the label-efficient game with uniform costs."""

    def __init__(self, n_features: int, n_classes: int, seed: int) -> None:
        self.n_classes = n_classes
        self.n_actions = n_classes + 1
        self.costs = np.vstack([1 - np.eye(n_classes), np.ones(n_classes)])
        self.pairs = [(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]
        self.f1 = network(n_features, n_classes, seed)
        size = math.ceil(sum(p.numel() for p in self.f1.parameters()) / BLOCK) + 100
        self.f2 = network(size, n_classes, seed + 1)
        self.inverse = [torch.eye(size) for _ in range(self.n_actions)]
        self.rng = np.random.default_rng(seed)
        self.t = 0
        self.history: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
        self.known: dict[tuple[int, ...], tuple[list[int], list[tuple[int, int]]]] = {}

    def embedding(self, x: Tensor) -> tuple[Tensor, Tensor]:
        outputs = self.f1(x[None])[0]
        gradients = torch.autograd.grad(outputs.sum(), list(self.f1.parameters()))
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        flat = torch.cat([flat, torch.zeros(-len(flat) % BLOCK)])
        hidden = torch.relu(self.f1[0](x[None]))[0].detach()
        phi = torch.cat([flat.reshape(-1, BLOCK).mean(1), hidden])
        return outputs.detach(), phi / phi.norm()

    def act(self, x: Tensor) -> int:
        self.x = x
        self.outputs, self.phi = self.embedding(x)
        with torch.no_grad():
            width = float(self.f2(self.phi[None])[0].max())
        self.t += 1
        if self.t <= self.n_actions:
            return self.t - 1
        confident = {}
        for i, j in self.pairs:
            gap = float(self.outputs[j] - self.outputs[i])
            if abs(gap) > width:
                confident[i, j] = 1 if gap > 0 else -1
        survivors, pairs = self.survivors(confident)
        candidates = set(survivors) | {action for pair in pairs for action in pair}
        if pairs and self.underplayed(self.n_classes):
            candidates.add(self.n_classes)
        value = {action: width if action == self.n_classes else 0.0 for action in candidates}
        return min(candidates, key=lambda action: (-value[action], action))

    def underplayed(self, action: int) -> bool:
        solved = self.inverse[action] @ self.phi
        t = self.t + 1
        rate = 1.01 ** (1 / 3) * t ** (2 / 3) * math.log(t) ** (1 / 3)
        return 1 / float(solved @ solved) < rate

    def survivors(self, confident: dict[tuple[int, int], int]) -> tuple[list[int], list[tuple[int, int]]]:
        key = tuple(confident.get(pair, 0) for pair in self.pairs)
        if key not in self.known:
            actions = [i for i in range(self.n_classes) if self.meets(confident, [i])]
            pairs = [pair for pair in self.pairs if self.meets(confident, list(pair))]
            empty = not actions
            self.known[key] = (list(range(self.n_classes)), self.pairs) if empty else (actions, pairs)
        return self.known[key]

    def meets(self, confident: dict[tuple[int, int], int], together: list[int]) -> bool:
        """Whether the cells of these actions meet the confident half-spaces: the largest slack is positive."""
        rows = [np.append(-sign * (self.costs[i] - self.costs[j]), 1.0) for (i, j), sign in confident.items()]
        for i in together:
            rows += [np.append(self.costs[i] - self.costs[j], 0.0) for j in range(self.n_actions) if j != i]
        objective = np.append(np.zeros(self.n_classes), -1.0)
        simplex = np.append(np.ones(self.n_classes), 0.0)[None]
        bounds = [(0, 1)] * self.n_classes + [(None, 1)]
        solved = linprog(objective, np.array(rows), np.zeros(len(rows)), simplex, [1.0], bounds)
        return bool(solved.status == 0 and -solved.fun > 1e-9)

    def learn(self, action: int, outcome: int | None) -> None:
        if outcome is not None:
            target = torch.eye(self.n_classes)[outcome]
            self.history.append((self.x, target, self.phi, target - self.outputs))
        solved = self.inverse[action] @ self.phi
        self.inverse[action] -= torch.outer(solved, solved) / (1 + self.phi @ solved)
        if self.t >= self.n_actions and (self.t <= 50 or (self.t < 1000 and self.t % 50 == 0) or self.t % 500 == 0):
            x, target, phi, residual = (torch.stack(column) for column in zip(*self.history, strict=True))
            self.fit(self.f1, x, target)
            self.fit(self.f2, phi, residual)

    def fit(self, module: nn.Module, inputs: Tensor, targets: Tensor) -> None:
        optimiser = torch.optim.Adam(module.parameters(), lr=1e-3)
        loader = DataLoader(TensorDataset(inputs, targets), batch_size=64, sampler=Order(len(inputs), self.rng))
        for _ in range(40):
            total = 0.0
            for x, y in loader:
                value = (module(x) - y).square().mean()
                optimiser.zero_grad()
                value.backward()
                optimiser.step()
                total += value.item()
            if total / inputs.shape[1] <= 1e-3:
                break
