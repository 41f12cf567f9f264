"""Neuronal: f1 values the classes, f2 corrects f1, and a small lead of the best class asks."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.learning.eenet import EENet
from sparingly.learning.networks import Network
from sparingly.learning.schedules import UpdateSchedule
from sparingly.strategies.families.classifier_strategy import outcome_distribution
from sparingly.strategies.families.gap_strategy import GapStrategy
from sparingly.strategies.families.network_options import BEGINNINGS, NetworkOptions, check_choice, preset_options
from sparingly.strategies.strategy import Shape

PRESETS: dict[str, dict[str, Any]] = {
    "published": {"gamma": 1.0, "threshold": "shrinking", "pseudo_labels": True, "discount": False},
    "authors": {"gamma": 6.0, "threshold": "constant", "pseudo_labels": False, "discount": True},
    "released": {"gamma": 6.0, "threshold": "constant", "pseudo_labels": False, "discount": False},
}
"""The publication's text, its authors' own code, and the code behind the tables of the NeuralCBP paper."""


class Neuronal(GapStrategy):
    """Announces the class with the highest u = f1 + f2, and asks when the two highest are too close.

    From the publication: the two networks, the gap rule, its threshold 2 gamma beta_t with
    beta_t = sqrt(K S^2 / t) + sqrt(2 log(3 T / delta) / t), and learning from its own announcements as if they were
    labels. Our reading: the networks estimate the chance of each class instead of the cost of announcing it, for
    uniform costs the same up to a sign; the text's draw of the parameters among all past ones, a device of the
    analysis, is left out; networks, embedding and updates are those of NeuralCBP.

    Parameters
    ----------
    preset
        "published", "authors" (their own code) or "released" (the code behind the tables of the NeuralCBP paper);
        a keyword that is given wins over the preset.
    gamma
        Scales the threshold; for the constant one 6 is the authors' choice, and 3 explores less.
    threshold
        "constant", 0.1 gamma, or "shrinking", 2 gamma beta_t.
    pseudo_labels
        Whether it learns from its announcements as if they were labels.
    discount
        Whether f2 is divided by the questions so far plus one.
    horizon, delta, norm
        T, delta and S in beta_t.
    start, schedule
        Which action comes first, "each" announcement or the question ("question_first"), and when it learns: by
        default the released code's for "released", and each announcement first and the paper's schedule otherwise.
    network, width, depth, epochs, batch, learning_rate, stop, wait, device
        Of the networks and their updates, as every neural strategy has them (see `NetworkOptions`).

    >>> from sparingly import label_efficient
    >>> strategy = Neuronal(label_efficient(3), 4, gamma=3)
    >>> rounds = [strategy.decide(strategy.assess(torch.ones(1, 4)), 0) for _ in range(5)]
    >>> [decision.action for decision in rounds], str(rounds[4].why)
    ([3, 0, 1, 2, 3], 'the best class leads by 0.0153, less than 0.3')

    References
    ----------
    Ban, Agarwal, Wu, Zhu, Weldemariam, Tong, He (2024). Neural active learning beyond bandits. ICLR.
    """

    name = "neuronal"
    summary = "asks when two networks together value the two best classes alike"
    reference = "Ban, Agarwal, Wu, Zhu, Weldemariam, Tong, He 2024"

    def __init__(
        self,
        game: Game,
        n_features: Shape,
        *,
        preset: str = "released",
        gamma: float | None = None,
        threshold: str | None = None,
        pseudo_labels: bool | None = None,
        discount: bool | None = None,
        horizon: int = 10_000,
        delta: float = 0.1,
        norm: float = 1.0,
        start: str | None = None,
        network: Network = "mlp",
        width: int = 100,
        depth: int = 2,
        epochs: int = 40,
        batch: int = 64,
        learning_rate: float = 1e-3,
        schedule: str | UpdateSchedule | None = None,
        stop: float | None = 1e-3,
        wait: int = 2,
        device: str = "cpu",
        seed: int = 0,
    ) -> None:
        chosen = preset_options(
            PRESETS, preset, gamma=gamma, threshold=threshold, pseudo_labels=pseudo_labels, discount=discount
        )
        beginning = preset_options(BEGINNINGS, preset, start=start, schedule=schedule)
        networks = NetworkOptions(
            network=network,
            width=width,
            depth=depth,
            epochs=epochs,
            batch=batch,
            learning_rate=learning_rate,
            schedule=beginning["schedule"],
            stop=stop,
            wait=wait,
            device=device,
        )
        options = {**chosen, "horizon": horizon, "delta": delta, "norm": norm}
        super().__init__(game, n_features, options=options, networks=networks, start=beginning["start"], seed=seed)
        check_choice(("constant", "shrinking"), threshold=options["threshold"])
        self._slack = math.sqrt(game.n_outcomes) * norm + math.sqrt(2 * math.log(3 * horizon / delta))
        self.network: EENet = networks.eenet(self.shape, game.n_outcomes, seed)

    def _estimates(self, X: Tensor) -> dict[str, Tensor]:
        outputs, compact = self.network.exploit(X)
        return {"f1": outputs, "f2": self.network.explore(compact), "compact": compact}

    def _scores(self, X: Tensor) -> Tensor:
        return self.network.estimate(X)

    def _weight(self) -> float:
        return 1 / (self.n_labels + 1) if self.options["discount"] else 1.0

    def _threshold(self) -> float:
        gamma = float(self.options["gamma"])
        if self.options["threshold"] == "constant":
            return 0.1 * gamma
        return float(2 * gamma * self._slack / math.sqrt(self.clock + 1))

    def _not_asked(self, x: Tensor, announced: int) -> None:
        if self.options["pseudo_labels"]:
            self._remember(x, torch.eye(self.game.n_outcomes)[announced])

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        self._remember(x, outcome_distribution(self.game, action, symbol))

    def _remember(self, x: Tensor, target: Tensor) -> None:
        then = self._estimated(x)
        self.network.remember(x, target, (then["f1"], then["compact"]))
