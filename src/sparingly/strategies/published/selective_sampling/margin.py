"""Margin: ask when the two likeliest classes are too close."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparingly.games import Game
from sparingly.strategies.families.classifier_strategy import ClassifierStrategy, Floats
from sparingly.strategies.families.network_options import one_of
from sparingly.strategies.published.selective_sampling.cesa import RELEASED
from sparingly.strategies.strategy import Shape, Why


class Margin(ClassifierStrategy):
    """Asks when the margin is below a fixed threshold.

    From the publication: it asks when |f(x)| < theta, where f(x) is the score of a binary classifier; the paper on
    NeuralCBP sets theta = 1. The released code asks when |sigmoid(f(x)) - 1/2| < 0.05, that is when the probabilities
    are less than 0.1 apart. Our reading: for more than two classes, the two likeliest are compared, by their logits
    (published) or their probabilities (released), and the classifier is the network that all strategies share.

    Parameters
    ----------
    rule
        "published" or "released".
    theta
        The threshold; by default 1 for logits and 0.1 for probabilities.
    options
        `network`, `width`, `depth`, `epochs`, `batch`, `learning_rate`, `schedule`, `stop`, `start`, `device`.

    >>> from sparingly import label_efficient
    >>> strategy = Margin(label_efficient(3), 2)
    >>> round(strategy.margin(np.array([0.5, 0.2, 0.3])), 3)
    0.2

    References
    ----------
    Sculley (2007). Practical learning from one-sided feedback. KDD.
    """

    name = "margin"
    summary = "asks when the two likeliest classes are closer than a fixed threshold"
    reference = "Sculley 2007"
    stops_asking = True

    def __init__(
        self, game: Game, n_features: Shape, *, rule: str = "released", theta: float | None = None, **options: Any
    ) -> None:
        one_of(("published", "released"), rule=rule)
        super().__init__(game, n_features, **((RELEASED if rule == "released" else {"start": "each"}) | options))
        self.rule = rule
        self.theta = theta if theta is not None else 0.1 if rule == "released" else 1.0

    def margin(self, probability: Floats) -> float:
        """How far the two likeliest classes are apart, given the classes' probabilities."""
        second, best = np.sort(probability)[-2:]
        return float(best - second if self.rule == "released" else np.log(best) - np.log(max(second, 1e-300)))

    def _rule(self, probability: Floats) -> tuple[bool, Why]:
        numbers = {"margin": self.margin(probability), "theta": self.theta}
        asks = numbers["margin"] < self.theta
        return asks, Why("the margin {margin:.3g} is " + ("" if asks else "not ") + "below {theta:.3g}", numbers)

    def _identity(self) -> dict[str, Any]:
        return super()._identity() | {"rule": self.rule}
