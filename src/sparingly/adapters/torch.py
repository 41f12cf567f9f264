"""At home in PyTorch: one's own module as the network inside, and a frozen pretrained one in front."""

from __future__ import annotations

import copy
import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from sparingly.games import Game
from sparingly.learning.determinism import pad_block
from sparingly.strategies.sparing.sparing import Sparing
from sparingly.strategies.strategy import Assessment, Shape, Strategy, Why

ROWS = 32
"""Observations that go through a frozen module together; always this many, so that a row does not feel the others."""


@dataclass(frozen=True)
class ModuleOf:
    """Makes a network for any strategy's `network=`: from a module's class, an instance or a function.

    A class is called with the options, and with the observation's `shape` and the number of outputs, `n_outputs`,
    where its constructor has parameters of these names. An instance is copied, so that the caller's stays as it is.

    >>> class Net(nn.Sequential):
    ...     def __init__(self, shape, n_outputs, hidden=8):
    ...         super().__init__(nn.Linear(shape[0], hidden), nn.Tanh(), nn.Linear(hidden, n_outputs))
    >>> ModuleOf(Net, {"hidden": 5})((3,), 2)[0]
    Linear(in_features=3, out_features=5, bias=True)
    """

    module: type[nn.Module] | nn.Module | Callable[..., nn.Module]
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, shape: tuple[int, ...], n_outputs: int) -> nn.Module:
        if isinstance(self.module, nn.Module):
            if self.options:
                raise ValueError(f"module is an instance: it takes no {next(iter(self.options))!r} any more")
            return copy.deepcopy(self.module)
        if not isinstance(self.module, type):
            return self.module(shape, n_outputs, **self.options)
        sizes = {"shape": shape, "n_outputs": n_outputs}
        taken = inspect.signature(self.module).parameters
        made: nn.Module = self.module(**{name: sizes[name] for name in sizes if name in taken}, **self.options)
        return made


class Extractor:
    """A pretrained module that turns observations into features and is never trained.

    It is a function of a block of arrays, so that scikit-learn's `FunctionTransformer` takes it as it is.

    Parameters
    ----------
    module
        Maps `[block, *shape]` to anything with one row an observation; it is copied and frozen.
    shape
        Of one observation, if blocks come flat.

    Examples
    --------
    >>> Extractor(nn.Conv2d(1, 4, 3), shape=(1, 8, 8))(np.zeros((5, 64))).shape
    (5, 144)
    """

    def __init__(self, module: nn.Module, shape: tuple[int, ...] | None = None) -> None:
        self.module = copy.deepcopy(module).eval().requires_grad_(False)
        self.shape = shape

    def __call__(self, X: ArrayLike | Tensor) -> NDArray[np.float32]:
        """Features `[block, n_features]`; a row's do not depend on the rows beside it."""
        block = X if isinstance(X, Tensor) else torch.as_tensor(np.asarray(X))
        return self.features(block.float()).numpy()

    def features(self, block: Tensor) -> Tensor:
        if self.shape is not None:
            block = block.reshape(len(block), *self.shape)
        with torch.no_grad():
            parts = [self.module(pad_block(part, ROWS))[: len(part)].flatten(1) for part in torch.split(block, ROWS)]
        return torch.cat(parts) if parts else torch.zeros(0, self.n_features(tuple(block.shape[1:])))

    def n_features(self, shape: tuple[int, ...]) -> int:
        """How many features an observation of this shape has."""
        return self.features(torch.zeros(1, *shape)).shape[1]

    @property
    def fingerprint(self) -> str:
        """Tells this module's weights from any others."""
        digest = hashlib.blake2b(digest_size=8)
        for name, value in self.module.state_dict().items():
            digest.update(name.encode() + value.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()


class FrozenFeatures(Strategy):
    """A strategy that sees what a frozen module makes of the observations, wherever a strategy is taken.

    Parameters
    ----------
    game, n_features
        The game, and the shape of an observation before it goes through the module.
    extractor
        The module, or an `Extractor`.
    of
        The strategy's class, or a function of (game, n_features, seed=..., **options).
    options
        Its keyword arguments.

    Examples
    --------
    >>> import sparingly as sp
    >>> strategy = FrozenFeatures(sp.label_efficient(2), (1, 8, 8), extractor=nn.Conv2d(1, 4, 3), seed=0)
    >>> strategy.inner.n_features
    144
    """

    name = "frozen_features"
    summary = "another strategy behind a pretrained module"
    reference = "sparingly"
    playable = "what the strategy plays"

    def __init__(
        self,
        game: Game,
        n_features: Shape,
        *,
        extractor: nn.Module | Extractor,
        of: Callable[..., Strategy] = Sparing,
        options: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(game, n_features, seed=seed)
        self.extractor = extractor if isinstance(extractor, Extractor) else Extractor(extractor)
        self.inner = of(game, self.extractor.n_features(self.shape), seed=seed, **(options or {}))

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        return {"inner": self.inner.assess(self.extractor.features(X))}

    def _choose(self, assessment: Assessment, row: int) -> tuple[int, int, Why]:
        before = self.inner.generation
        decision = self.inner.decide(assessment.values["inner"], row)
        self.generation += self.inner.generation - before
        return decision.action, decision.prediction, decision.why

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        before = self.inner.generation
        self.inner.learn(self.extractor.features(x[None])[0], action, self.game.symbols(action)[symbol])
        self.generation += self.inner.generation - before

    def _teach(self, X: Tensor, action: int, outcomes: Sequence[int]) -> None:
        self.inner.teach(self.extractor.features(X), list(outcomes))

    def _add_class(self, game: Game) -> None:
        self.inner.add_class(game.outcomes[-1], float(game.costs[game.n_outcomes - 1, 0]))

    def _train(self) -> None:
        """The inner strategy trains itself."""

    def _due_in(self) -> int:
        return self.inner.rounds_to_update()

    def _scores(self, X: Tensor) -> Tensor:
        return torch.from_numpy(self.inner.scores(self.extractor.features(X)))

    def _identity(self) -> dict[str, Any]:
        return {"of": self.inner.name, "extractor": self.extractor.fingerprint}

    def _state(self) -> dict[str, Any]:
        return {"inner": self.inner.state_dict()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.inner.load_state_dict(state["inner"])
