"""NeuralCBP: confidence bounds that two neural networks learn, on any partial monitoring game."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.learning import schedules
from sparingly.strategies.families.action_counts import Plays
from sparingly.strategies.families.confidence_bound_strategy import ConfidenceBoundStrategy
from sparingly.strategies.families.confidence_bounds import Comparison
from sparingly.strategies.published.partial_monitoring.neural_cbp_presets import differences
from sparingly.strategies.strategy import Assessment


class NeuralCBP(ConfidenceBoundStrategy):
    """Eliminate actions by confidence bounds that two networks learn.

    f1 estimates the feedback distributions of the informative actions, f2 how far f1 is off; Algorithm 1 does the rest.

    Parameters
    ----------
    game, n_features
        Any game that is not hopeless; a number, or a shape such as (1, 28, 28).
    preset
        "paper" (the text) or "released" (the code behind the paper's tables); it sets every point on which they differ
        (`embedding`, `pseudo_count`, `widths`, `ties`, `rate_offset`, `stop`, `objective`, `residuals`: see
        `Differences`), and each of these is a keyword that wins over it.
    block_size
        How many entries of the gradient the released embedding averages; None: 51 for each channel.
    penalty, alpha
        G starts at penalty I; alpha is in the exploration rate f(t).
    start
        "each": every action once, in order; "informative": only those that tell something.
    options
        The differences above, and `network`, `width`, `depth`, `epochs`, `batch`, `learning_rate`, `schedule`,
        `device` as every neural strategy has them (see `Settings`).

    Examples
    --------
    >>> from sparingly import label_efficient
    >>> strategy = NeuralCBP(label_efficient(2), n_features=3, seed=0)
    >>> for x in np.random.default_rng(0).normal(size=(40, 3)):
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
        block_size: int | None = None,
        penalty: float = 1.0,
        alpha: float = 1.01,
        start: str = "each",
        seed: int = 0,
        **options: Any,
    ) -> None:
        chosen, settings = differences(preset, options)
        rule: dict[str, Any] = {"alpha": alpha, "ties": chosen.ties, "rate_offset": chosen.rate_offset, "start": start}
        super().__init__(game, n_features, seed=seed, **rule)
        self.differences = chosen
        self.schedule = schedules.update_schedule(settings.schedule)
        self.network = settings.eenet(
            self.shape,
            max(1, self.bounds.n_symbols),
            seed,
            training=settings.training(chosen.objective),
            **{"kind": chosen.embedding, "block_size": block_size, "residuals": chosen.residuals},
        )
        self.plays_of = Plays(self.observers, self.network.embedding, penalty=penalty, kind=chosen.pseudo_count)
        self._last: tuple[int, Tensor, tuple[Tensor, Tensor]] | None = None

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        outputs, compact = self.network.exploit(X)
        comparison = self.bounds.compare(_numpy(outputs), self._widths(self.network.explore(compact)))
        prepared = self.plays_of.prepare(compact, comparison.undecided.nonzero()[0])
        return {"comparison": comparison, "outputs": outputs, **prepared}

    def _widths(self, errors: Tensor) -> np.ndarray[Any, np.dtype[np.float64]]:
        if not self.bounds.informative:
            return np.zeros((len(errors), 0))
        sizes = _numpy(errors.abs() if self.differences.widths == "absolute" else errors)
        return np.maximum.reduceat(sizes, self.bounds.starts, axis=1)

    def _compare(self, assessment: Assessment, row: int) -> tuple[Comparison, int]:
        values = assessment.values
        self._last = self.generation, assessment.X[row], (values["outputs"][row], values["compact"][row])
        return values["comparison"], row

    def _plays(self, assessment: Assessment, row: int, action: int) -> float:
        return self.plays_of.pseudo_count(assessment.values, row, action)

    def _count(self, assessment: Assessment, row: int, action: int) -> None:
        self.plays_of.count(assessment.values, row, action)

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        target = torch.full((self.bounds.n_symbols,), math.nan)
        target[self.bounds.slices[action]] = 0.0
        target[self.bounds.slices[action].start + symbol] = 1.0
        last = self._last
        same = last is not None and last[0] == self.generation and torch.equal(last[1], x)
        self.network.remember(x, target, last[2] if last is not None and same else None)

    def _train(self) -> None:
        self.network.train(self.rng)
        self.plays_of.settle()

    def _due_in(self) -> int:
        return max(self.schedule.next(self.clock), len(self._start)) - self.clock

    def _scores(self, X: Tensor) -> Tensor:
        return torch.from_numpy(self.bounds.outcomes(_numpy(self.network.estimate(X))))

    def _identity(self) -> dict[str, Any]:
        return {"options": self.differences.as_dict(), "network": self.network.sizes()}

    def _learned(self) -> dict[str, Any]:
        return {"network": self.network.state_dict(), "counts": self.plays_of.state_dict()}

    def _relearn(self, learned: Mapping[str, Any]) -> None:
        self.network.load_state_dict(learned["network"])
        self.plays_of.load_state_dict(learned["counts"])
        self._last = None


def _numpy(block: Tensor) -> np.ndarray[Any, np.dtype[np.float64]]:
    return block.double().cpu().numpy()
