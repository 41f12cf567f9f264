"""Margin: ask when the two likeliest classes are too close."""

from __future__ import annotations

import numpy as np

from sparingly.games import Game
from sparingly.learning.networks import Network
from sparingly.learning.schedules import UpdateSchedule
from sparingly.strategies.families.classifier_strategy import ClassifierStrategy, Floats
from sparingly.strategies.families.network_options import NetworkOptions, check_choice, preset_options
from sparingly.strategies.published.selective_sampling.cesa import CLASSIFIERS
from sparingly.strategies.strategy import Shape, Why

_CLASSIFIERS = {**CLASSIFIERS, "published": {**CLASSIFIERS["published"], "start": "each"}}


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
    network, start, divisor, schedule
        Of the classifier (see `ClassifierStrategy`); by default as the rule's publication or code has them.
    width, depth, epochs, batch, learning_rate, stop, wait, device
        Of the classifier and its updates, as every neural strategy has them (see `NetworkOptions`).

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
    rule_options = ("rule",)

    def __init__(
        self,
        game: Game,
        n_features: Shape,
        *,
        rule: str = "released",
        theta: float | None = None,
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
        chosen = preset_options(_CLASSIFIERS, rule, network=network, start=start, divisor=divisor, schedule=schedule)
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
