"""Explore-exploit networks: f1 estimates, f2 learns how far f1 is off, from f1's own embedding of the observation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparingly.learning.determinism import pad_block
from sparingly.learning.embedding import embedding
from sparingly.learning.label_memory import Memory
from sparingly.learning.networks import Network, build, with_output
from sparingly.learning.training import Training


class EENet:
    """The two networks, the answers they learn from, and how they are trained (Algorithm 2).

    Parameters
    ----------
    shape, n_outputs
        Of an observation, and of what is estimated for it.
    network
        f1: "mlp", "lenet", a module, or a function of (shape, n_outputs).
    width, depth
        Of the MLPs.
    kind, block_size
        The embedding, "paper" or "released", and how many entries of the gradient the released one averages;
        without a number, 51 for each channel.
    residuals
        f2's inputs and targets: "fresh" from today's f1 at every update, or "kept" as they were when the answer came.
    training
        For both networks.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        n_outputs: int,
        *,
        network: Network = "mlp",
        width: int = 100,
        depth: int = 2,
        kind: str = "released",
        block_size: int | None = None,
        residuals: str = "kept",
        training: Training | None = None,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        if residuals not in ("fresh", "kept"):
            raise ValueError(f"residuals is {residuals!r}: give 'fresh' or 'kept'")
        self.device = device
        self._shape, self._seed, self._sizes = shape, seed, {"width": width, "depth": depth}
        self.training = training or Training()
        self.residuals = residuals
        self.f1 = build(network, shape, n_outputs, seed=seed, width=width, depth=depth).to(device)
        channels = shape[0] if len(shape) == 3 else 1
        self._kind, self._block_size = kind, block_size or 51 * channels
        self._embed(n_outputs)
        self.memory = Memory(device)
        self._divisor = shape[0]

    def _embed(self, n_outputs: int) -> None:
        """The embedding of f1 as it is now, and a new f2 on top of it."""
        options: dict[str, Any] = {"kind": self._kind, "block_size": self._block_size, "device": self.device}
        self.embedding = embedding(self.f1, self._shape, **options)
        f2 = build("mlp", (self.embedding.size,), n_outputs, seed=self._seed + 1, **self._sizes)
        self.f2 = f2.to(self.device)

    def exploit(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """f1's estimates `[block, outputs]` and the compact embeddings `[block, compact]`."""
        return self.embedding(X.to(self.device))

    def estimate(self, X: Tensor) -> Tensor:
        """f1's estimates alone, for those who need no embedding."""
        outputs: Tensor = self.f1(pad_block(X.to(self.device)))
        return outputs[: len(X)]

    def explore(self, compact: Tensor) -> Tensor:
        """f2's estimates of how far f1 is off, `[block, outputs]`."""
        out: Tensor = self.f2(self.embedding.expand(pad_block(compact)))
        return out[: len(compact)]

    def remember(self, x: Tensor, target: Tensor, exploited: tuple[Tensor, Tensor] | None = None) -> None:
        """Keep an answer: the target of f1's outputs at x, nan where the answer says nothing.

        `exploited` is `exploit` of x, if it is known.
        """
        row = {"x": x.to(self.device), "target": target.to(self.device)}
        if self.residuals == "kept":
            outputs, compact = exploited or tuple(part[0] for part in self.exploit(x[None]))
            row |= {"compact": compact, "residual": row["target"] - outputs}
        self.memory.append(**row)

    def train(self, rng: np.random.Generator) -> None:
        """One update of both networks from everything kept."""
        if not len(self.memory):
            return
        x, target = self.memory["x"], self.memory["target"]
        self.training.fit(self.f1, x, target, rng, divisor=self._divisor)
        if self.residuals == "kept":
            compact, residual = self.memory["compact"], self.memory["residual"]
        else:
            with torch.no_grad():
                outputs, compact = self.exploit(x)
            residual = target - outputs
        self._train_f2(compact, residual, rng)

    def add_output(self, targets: Tensor, rng: np.random.Generator) -> None:
        """Estimate one more output, the last; `targets` are those of everything kept, with a place for it.

        f1 keeps what it has learned. Its embedding is another, so that f2 is learned anew, from f1 as it is now.
        """
        n_outputs = targets.shape[1]
        self.f1 = with_output(self.f1, n_outputs - 1).to(self.device)
        self._embed(n_outputs)
        X, self.memory = self.memory["x"] if len(self.memory) else targets[:0], Memory(self.device)
        if not len(X):
            return
        outputs, compact = self.exploit(X)
        kept = {"compact": compact, "residual": targets - outputs} if self.residuals == "kept" else {}
        self.memory.extend(x=X, target=targets, **kept)
        self._train_f2(compact, targets - outputs, rng)

    def _train_f2(self, compact: Tensor, residual: Tensor, rng: np.random.Generator) -> None:
        self.training.fit(self.f2, compact, residual, rng, divisor=self.embedding.size, prepare=self.embedding.expand)

    def sizes(self) -> list[list[int]]:
        """The shapes of f1's parameters."""
        return [list(p.shape) for p in self.f1.parameters()]

    def state_dict(self) -> dict[str, Any]:
        return {"f1": self.f1.state_dict(), "f2": self.f2.state_dict(), "memory": self.memory.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.f1.load_state_dict(state["f1"])
        self.f2.load_state_dict(state["f2"])
        self.memory.load_state_dict(state["memory"])
