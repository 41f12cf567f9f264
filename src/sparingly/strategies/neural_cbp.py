"""NeuralCBP: confidence bounds that two neural networks learn, on any partial monitoring game."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.learning import training
from sparingly.learning.counts import Counts
from sparingly.learning.eenet import EENet
from sparingly.learning.networks import Network
from sparingly.strategies.bounds import Comparison
from sparingly.strategies.confidence import ConfidenceBoundStrategy
from sparingly.strategies.strategy import Assessment

PRESETS: dict[str, dict[str, Any]] = {
    "paper": {
        "embedding": "paper",
        "pseudo_count": "inverse",
        "widths": "absolute",
        "ties": "cheapest",
        "rate_offset": 0,
        "stop": None,
        "objective": "half_squared",
        "residuals": "fresh",
    },
    "released": {
        "embedding": "released",
        "pseudo_count": "squared",
        "widths": "signed",
        "ties": "lowest",
        "rate_offset": 1,
        "stop": 1e-3,
        "objective": "mean_squared",
        "residuals": "kept",
    },
}
"""Where the paper's text and its authors' released code differ."""


class NeuralCBP(ConfidenceBoundStrategy):
    """Eliminate actions by confidence bounds that two networks learn.

    f1 estimates the feedback distributions of the informative actions, f2 how far f1 is off; Algorithm 1 does the rest.
    Where the paper's text and the released code differ, each difference is a keyword, and a preset sets them all;
    a keyword that is given wins over the preset.

    Parameters
    ----------
    game
        Any game that is not hopeless.
    n_features
        A number, or a shape such as (1, 28, 28).
    preset
        "paper" (the text) or "released" (the code behind the paper's tables).
    network, width, depth
        f1: "mlp", "lenet", any module, or a function of (shape, outputs); the sizes of the MLPs.
    embedding, block_size
        "paper": the first layer's output and the last layer's gradient. "released": the full gradient, averaged over
        blocks of 51 entries for each channel, and the hidden output.
    pseudo_count
        "inverse": 1 / phi' G^-1 phi. "squared": 1 / phi' G^-2 phi.
    widths
        The width of an action is the largest of f2's outputs for its symbols: "absolute" values, or "signed".
    ties
        Among equal W_a w_a, as when the expert is not underplayed: the "cheapest" candidate, or the "lowest" action.
    rate_offset
        Added to the round, counted from 1, in the exploration rate f(t).
    stop
        Stop an update early once an epoch's objective is this low; None never stops.
    objective
        "half_squared" (summed) or "mean_squared".
    residuals
        What f2 learns from: "fresh" residuals and embeddings at each update, or "kept" as they were when learned.
    epochs, batch, learning_rate, schedule
        Of the updates: 40, 64, 1e-3, "paper".
    penalty, alpha
        G starts at penalty I; alpha is in f(t).
    start
        "each": every action once, in order. "informative": only those that tell something.

    Examples
    --------
    >>> from sparingly import label_efficient
    >>> strategy = NeuralCBP(label_efficient(2), n_features=3, seed=0)
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> for x in X:
    ...     decision = strategy.decide(strategy.assess(x[None]), 0)
    ...     if decision.asks:
    ...         strategy.learn(x, decision.action, strategy.game.feedback[decision.action][int(x[0] > 0)])
    >>> 1 <= strategy.n_labels <= 38
    True

    References
    ----------
    Heuillet, Ahmad, Durand (2024). Neural active learning meets the partial monitoring framework. UAI.
    """

    name = "neural_cbp"
    summary = "eliminates actions by confidence bounds that two neural networks learn"
    reference = "Heuillet, Ahmad, Durand 2024"
    stops_asking = True

    def __init__(
        self,
        game: Game,
        n_features: int | tuple[int, ...],
        *,
        preset: str = "released",
        network: Network = "mlp",
        width: int = 100,
        depth: int = 2,
        epochs: int = 40,
        batch: int = 64,
        learning_rate: float = 1e-3,
        schedule: str | training.Schedule = "paper",
        block_size: int | None = None,
        penalty: float = 1.0,
        alpha: float = 1.01,
        start: str = "each",
        seed: int = 0,
        device: str = "cpu",
        **differences: Any,
    ) -> None:
        options = _options(preset, differences)
        super().__init__(
            game,
            n_features,
            alpha=alpha,
            ties=options["ties"],
            rate_offset=options["rate_offset"],
            start=start,
            seed=seed,
        )
        self._options = options
        self.schedule = training.schedule(schedule)
        self.network = EENet(
            self.shape,
            max(1, self.bounds.n_symbols),
            network=network,
            width=width,
            depth=depth,
            kind=options["embedding"],
            block_size=block_size,
            residuals=options["residuals"],
            training=training.Training(epochs, batch, learning_rate, options["stop"], options["objective"]),
            seed=seed,
            device=device,
        )
        self.counts = {a: Counts(self.network.count_size, penalty=penalty, device=device) for a in self.observers}
        self._last: tuple[int, Tensor, tuple[Tensor, Tensor]] | None = None

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        outputs, compact = self.network.exploit(X)
        comparison = self.bounds.compare(_numpy(outputs), self._widths(self.network.explore(compact)))
        rows = comparison.undecided.nonzero()[0]
        phi = self.network.embedding.isometric(compact[torch.from_numpy(rows)])
        return {
            "comparison": comparison,
            "outputs": outputs,
            "compact": compact,
            "place": {int(row): k for k, row in enumerate(rows)},
            "phi": phi,
            "against_base": {a: (counts.version, counts.against_base(phi)) for a, counts in self.counts.items()},
        }

    def _widths(self, errors: Tensor) -> np.ndarray[Any, np.dtype[np.float64]]:
        if self._options["widths"] == "absolute":
            errors = errors.abs()
        if not self.bounds.informative:
            return np.zeros((len(errors), 0))
        return np.maximum.reduceat(_numpy(errors), self.bounds.starts, axis=1)

    def _compare(self, assessment: Assessment, row: int) -> tuple[Comparison, int]:
        values = assessment.values
        self._last = self.generation, assessment.X[row], (values["outputs"][row], values["compact"][row])
        return values["comparison"], row

    def _plays(self, assessment: Assessment, row: int, action: int) -> float:
        return self._solve(assessment.values, row, action)[1]

    def _count(self, assessment: Assessment, row: int, action: int) -> None:
        if action in self.counts:
            phi, _, solved = self._solve(assessment.values, row, action)
            self.counts[action].add(phi, solved)

    def _solve(self, values: Mapping[str, Any], row: int, action: int) -> tuple[Tensor, float, Tensor]:
        """phi, its pseudo-count for an action, and G^-1 phi."""
        counts, place = self.counts[action], values["place"].get(row)
        version, products = values["against_base"][action]
        if place is None:
            phi = self.network.embedding.isometric(values["compact"][row : row + 1])[0]
        else:
            phi = values["phi"][place].clone()
        known = products[place] if place is not None and version == counts.version else None
        solved = counts.solve(phi, known)
        with_itself = solved if self._options["pseudo_count"] == "squared" else phi
        return phi, 1 / max(float(with_itself @ solved), 1e-30), solved

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        target = torch.full((self.bounds.n_symbols,), math.nan)
        target[self.bounds.slices[action]] = 0.0
        target[self.bounds.slices[action].start + symbol] = 1.0
        last = self._last
        same = last is not None and last[0] == self.generation and torch.equal(last[1], x)
        self.network.remember(x, target, last[2] if last is not None and same else None)

    def _train(self) -> None:
        self.network.train(self.rng)
        for counts in self.counts.values():
            counts.settle()

    def _due_in(self) -> int:
        return max(self.schedule.next(self.clock), len(self._start)) - self.clock

    def _scores(self, X: Tensor) -> Tensor:
        outputs = _numpy(self.network.estimate(X))
        return torch.from_numpy(self.bounds.outcomes(outputs))

    def _identity(self) -> dict[str, Any]:
        return {"options": dict(self._options), "network": _shapes(self.network.f1)}

    def _learned(self) -> dict[str, Any]:
        counts = {str(a): counts.state_dict() for a, counts in self.counts.items()}
        return {"network": self.network.state_dict(), "counts": counts}

    def _relearn(self, learned: Mapping[str, Any]) -> None:
        self.network.load_state_dict(learned["network"])
        for action, counts in self.counts.items():
            counts.load_state_dict(learned["counts"][str(action)])
        self._last = None


def _options(preset: str, differences: Mapping[str, Any]) -> dict[str, Any]:
    if preset not in PRESETS:
        raise ValueError(f"preset {preset!r} is not known: give 'paper' or 'released'")
    unknown = set(differences) - set(PRESETS[preset])
    if unknown:
        raise TypeError(f"NeuralCBP has no option {sorted(unknown)[0]!r}")
    allowed = {"pseudo_count": ("inverse", "squared"), "widths": ("absolute", "signed")}
    for name, choices in allowed.items():
        if differences.get(name, choices[0]) not in choices:
            raise ValueError(f"{name} is {differences[name]!r}: give {choices[0]!r} or {choices[1]!r}")
    return PRESETS[preset] | dict(differences)


def _numpy(block: Tensor) -> np.ndarray[Any, np.dtype[np.float64]]:
    return block.double().cpu().numpy()


def _shapes(module: torch.nn.Module) -> list[list[int]]:
    return [list(p.shape) for p in module.parameters()]
