"""Cesa: ask with a probability that falls with the margin and rises with the mistakes seen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from torch import Tensor

from sparingly.games import Game
from sparingly.learning.networks import Network, normal_mlp
from sparingly.learning.schedules import UpdateSchedule
from sparingly.strategies.families.classifier_strategy import ClassifierStrategy, Floats
from sparingly.strategies.families.network_options import NetworkOptions, check_choice, preset_options
from sparingly.strategies.strategy import Shape, Why

CLASSIFIERS: dict[str, dict[str, Any]] = {
    "published": {"network": "mlp", "divisor": "features", "start": "none", "schedule": "paper"},
    "released": {"network": normal_mlp, "divisor": "labels", "start": "question_first", "schedule": "released"},
}
"""What the released code has beside its rule: one logit and normal weights, an early stop by the number of labels, the
question and then each announcement once at first. For the publication, the network that all strategies share."""


class Cesa(ClassifierStrategy):
    """Selective sampling: asks with a probability that depends on the margin and on the answers so far.

    From the publication: it asks with probability b / (b + |m|), where m is the margin and b = beta sqrt(K + 1), with K
    the questions whose prediction was wrong. Our reading: the margin is the lead of the best logit over the second, on
    the network that all strategies share instead of a perceptron (that is `SelectivePerceptron`); the length of an
    observation, X' in b, is 1, as in the released code. With a late answer, the prediction is that of the day it comes.
    The released code asks with probability 1 - b / (b + q), where q is the probability of the `positive` class (of the
    likeliest, for more than two), and its K counts the questions whose prediction was *right*.

    Parameters
    ----------
    rule
        "published" or "released".
    beta
        Scales b.
    positive
        Of two classes, the one whose probability is q.
    network, start, divisor, schedule
        Of the classifier (see `ClassifierStrategy`); by default as the rule's publication or code has them.
    width, depth, epochs, batch, learning_rate, stop, wait, device
        Of the classifier and its updates, as every neural strategy has them (see `NetworkOptions`).

    >>> from sparingly import label_efficient
    >>> strategy = Cesa(label_efficient(2), 3, rule="published")
    >>> [round(strategy.probability_to_ask(np.array(p)), 3) for p in ([0.5, 0.5], [0.1, 0.9])]
    [1.0, 0.313]

    References
    ----------
    Cesa-Bianchi, Gentile, Zaniboni (2006). Worst-case analysis of selective sampling for linear classification. JMLR.
    """

    name = "cesa"
    summary = "asks at random, the less the larger the margin"
    reference = "Cesa-Bianchi, Gentile, Zaniboni 2006"
    rule_options = ("rule",)
    rule_state = ("counted",)

    def __init__(
        self,
        game: Game,
        n_features: Shape,
        *,
        rule: str = "released",
        beta: float = 1.0,
        positive: int = 1,
        network: Network | None = None,
        width: int = 100,
        depth: int = 2,
        epochs: int = 40,
        batch: int = 64,
        learning_rate: float = 1e-3,
        schedule: str | UpdateSchedule | None = None,
        stop: float | None = 1e-3,
        wait: int = 2,
        device: str = "cpu",
        start: str | None = None,
        divisor: str | None = None,
        seed: int = 0,
    ) -> None:
        check_choice(("published", "released"), rule=rule)
        chosen = preset_options(CLASSIFIERS, rule, network=network, start=start, divisor=divisor, schedule=schedule)
        networks = NetworkOptions(
            network=chosen["network"],
            width=width,
            depth=depth,
            epochs=epochs,
            batch=batch,
            learning_rate=learning_rate,
            schedule=chosen["schedule"],
            stop=stop,
            wait=wait,
            device=device,
        )
        super().__init__(
            game, n_features, networks=networks, start=chosen["start"], divisor=chosen["divisor"], seed=seed
        )
        self.rule, self.beta, self.positive = rule, beta, int(positive)
        self.counted = 0
        """K: the questions whose prediction was wrong (published) or right (released)."""

    def probability_to_ask(self, probability: Floats) -> float:
        """Given the classes' probabilities."""
        b = self.beta * math.sqrt(self.counted + 1)
        if self.rule == "released":
            q = float(probability[self.positive] if len(probability) == 2 else probability.max())
            return 1 - b / (b + q)
        second, best = np.log(np.maximum(np.sort(probability)[-2:], 1e-300))
        return float(b / (b + best - second))

    def _rule(self, probability: Floats) -> tuple[bool, Why]:
        chance = self.probability_to_ask(probability)
        asks = bool(self.rng.random() < chance)
        sentence = "drawn to ask, with probability {chance:.3g}" if asks else "not drawn, with probability {chance:.3g}"
        return asks, Why(sentence, {"chance": chance})

    def _answered(self, x: Tensor, distribution: Tensor) -> None:
        right = bool(distribution[int(self._scores(x[None]).argmax())] > 0)
        self.counted += right == (self.rule == "released")
