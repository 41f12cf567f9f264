"""NeuralCBP: confidence bounds that two neural networks learn, on any partial monitoring game."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.learning.networks import Network
from sparingly.learning.schedules import AfterAnswers, UpdateSchedule, update_schedule
from sparingly.strategies.families.confidence_bound_strategy import ConfidenceBoundStrategy
from sparingly.strategies.families.confidence_bounds import Bounds, PairComparison
from sparingly.strategies.families.network_options import NetworkOptions
from sparingly.strategies.published.partial_monitoring.action_counts import ActionCounts
from sparingly.strategies.published.partial_monitoring.neural_cbp_presets import PRESETS, differences
from sparingly.strategies.strategy import Assessment


class NeuralCBP(ConfidenceBoundStrategy):
    """Eliminate actions by confidence bounds that two networks learn.

    f1 estimates the feedback distributions of the informative actions, f2 how far f1 is off; Algorithm 1 does the rest.

    Parameters
    ----------
    game, n_features
        Any game that is not hopeless; a number, or a shape such as (1, 28, 28).
    preset
        "paper" (the text) or "released" (the code behind the paper's tables): every point on which they differ.
    embedding, pseudo_count, widths, ties, rate_offset, stop, objective, residuals,
    start, wait, schedule, confident, contradiction
        One of these points each (see `Differences`); what is given wins over the preset.
    block_size
        How many entries of the gradient the released embedding averages; None: 51 for each channel.
    penalty, alpha
        G starts at penalty I; alpha is in the exploration rate f(t).
    network, width, depth, epochs, batch, learning_rate, device
        Of the networks and their updates, as every neural strategy has them (see `NetworkOptions`).

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
        embedding: str | None = None,
        pseudo_count: str | None = None,
        widths: str | None = None,
        ties: str | None = None,
        rate_offset: int | None = None,
        stop: float | Literal["preset"] | None = "preset",
        objective: str | None = None,
        residuals: str | None = None,
        start: str | None = None,
        wait: int | None = None,
        schedule: str | UpdateSchedule | None = None,
        confident: str | None = None,
        contradiction: str | None = None,
        block_size: int | None = None,
        penalty: float = 1.0,
        alpha: float = 1.01,
        network: Network = "mlp",
        width: int = 100,
        depth: int = 2,
        epochs: int = 40,
        batch: int = 64,
        learning_rate: float = 1e-3,
        device: str = "cpu",
        seed: int = 0,
    ) -> None:
        given = {name: value for name, value in locals().items() if name in vars(PRESETS["paper"])}
        chosen = differences(preset, **given)
        super().__init__(
            game,
            n_features,
            alpha=alpha,
            ties=chosen.ties,
            rate_offset=chosen.rate_offset,
            start=chosen.start,
            confident=chosen.confident,
            contradiction=chosen.contradiction,
            seed=seed,
        )
        self.differences = chosen
        self.schedule = update_schedule(chosen.schedule)
        networks = NetworkOptions(network, width, depth, epochs, batch, learning_rate, stop=chosen.stop, device=device)
        self.network = networks.eenet(
            self.shape,
            max(1, self.bounds.n_symbols),
            seed,
            objective=chosen.objective,
            kind=chosen.embedding,
            block_size=block_size,
            residuals=chosen.residuals,
        )
        self.action_counts = ActionCounts(
            self.observers, self.network.embedding, penalty=penalty, kind=chosen.pseudo_count
        )
        self._last: tuple[int, Tensor, tuple[Tensor, Tensor]] | None = None

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        outputs, compact = self.network.exploit(X)
        comparison = self.bounds.compare(_numpy(outputs), self._widths(self.network.explore(compact)))
        prepared = self.action_counts.prepare(compact, comparison.left.undecided.nonzero()[0])
        return {"comparison": comparison, "outputs": outputs, **prepared}

    def _widths(self, errors: Tensor) -> np.ndarray[Any, np.dtype[np.float64]]:
        if not self.bounds.informative:
            return np.zeros((len(errors), 0))
        sizes = _numpy(errors.abs() if self.differences.widths == "absolute" else errors)
        return np.maximum.reduceat(sizes, self.bounds.elimination.starts, axis=1)

    def _compare(self, assessment: Assessment, row: int) -> tuple[PairComparison, int]:
        values = assessment.values
        self._last = self.generation, assessment.X[row], (values["outputs"][row], values["compact"][row])
        return values["comparison"], row

    def _times_played(self, assessment: Assessment, row: int, action: int) -> float:
        return self.action_counts.pseudo_count(assessment.values, row, action)

    def _count(self, assessment: Assessment, row: int, action: int) -> None:
        self.action_counts.count(assessment.values, row, action)

    def _add_output(self, old: Bounds) -> None:
        if len(self.bounds.informative) != 1:
            raise ValueError("neural_cbp can only take on a class where there is one question to ask")
        network, (asks,) = self.network, self.observers
        kept = network.memory["target"] if len(network.memory) else torch.zeros(0, old.n_symbols)
        network.add_output(torch.nn.functional.pad(kept, (0, 1)), self.rng)
        self.action_counts = self.action_counts.renewed([asks], network.embedding)
        if len(kept):
            self.action_counts.count_all(asks, network.exploit(network.memory["x"])[1])
        self._last = None

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        target = torch.full((self.bounds.n_symbols,), math.nan)
        target[self.bounds.slices[action]] = 0.0
        target[self.bounds.slices[action].start + symbol] = 1.0
        last = self._last
        same = last is not None and last[0] == self.generation and torch.equal(last[1], x)
        self.network.remember(x, target, last[2] if last is not None and same else None)

    def _train(self) -> None:
        self.network.train(self.rng)
        self.action_counts.settle()

    def _due_in(self) -> int:
        return max(self.schedule.next(self.clock), len(self._start) + self.differences.wait) - self.clock

    def _due_after_label(self) -> bool:
        return isinstance(self.schedule, AfterAnswers) and self.clock >= len(self._start) + self.differences.wait

    def _probabilities(self, assessment: Assessment) -> Tensor:
        return torch.from_numpy(self.bounds.outcomes(_numpy(assessment.values["outputs"])))

    def _scores(self, X: Tensor) -> Tensor:
        return torch.from_numpy(self.bounds.outcomes(_numpy(self.network.estimate(X))))

    def _identity(self) -> dict[str, Any]:
        return {"options": self.differences.of_state(), "network": self.network.sizes()}

    def _learned(self) -> dict[str, Any]:
        return {"network": self.network.state_dict(), "counts": self.action_counts.state_dict()}

    def _relearn(self, learned: Mapping[str, Any]) -> None:
        self.network.load_state_dict(learned["network"])
        self.action_counts.load_state_dict(learned["counts"])
        self._last = None


def _numpy(block: Tensor) -> np.ndarray[Any, np.dtype[np.float64]]:
    return block.double().cpu().numpy()
