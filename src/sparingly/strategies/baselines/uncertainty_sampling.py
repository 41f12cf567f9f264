"""Uncertainty sampling on a stream: ask about what the classifier is unsure of, within a budget."""

from __future__ import annotations

import abc
import math

import numpy as np

from sparingly.games import Game
from sparingly.learning.networks import Network
from sparingly.learning.schedules import UpdateSchedule
from sparingly.strategies.families.classifier_strategy import ClassifierStrategy, Floats
from sparingly.strategies.families.network_options import NetworkOptions, check_choice
from sparingly.strategies.strategy import Shape, Why


class UncertaintySampling(ClassifierStrategy):
    """Asks when the classifier's certainty c is below a threshold and the budget allows.

    From the publication: the budget, spent = spent (w - 1) / w + asked, may ask while spent / w < B; the fixed
    threshold 1/K + B (1 - 1/K); the variable one, which starts at 1, shrinks by the factor 1 - s at a question and
    grows by 1 + s at an announcement, while there is budget; the randomised one, the variable one times a normal
    number with mean and deviation 1, drawn anew for each observation; and splitting off a share of random questions.
    Our reading: entropy and margin are scaled to the range of the largest probability, from 1/K to 1, so that the
    same thresholds fit.

    Parameters
    ----------
    threshold
        "fixed", "variable", "randomised" or "split" (variable, with a tenth of the rounds for random questions).
    budget
        B: the share of the observations to ask about.
    window, step
        w and s.
    network, width, depth, epochs, batch, learning_rate, schedule, stop, wait, device
        Of the classifier and its updates, as every neural strategy has them (see `NetworkOptions`).
    start, divisor
        See `ClassifierStrategy`.

    References
    ----------
    Zliobaite, Bifet, Pfahringer, Holmes (2014). Active learning with drifting streaming data. IEEE TNNLS.
    """

    reference = "Zliobaite, Bifet, Pfahringer, Holmes 2014"
    rule_options = ("threshold",)
    rule_state = ("spent", "theta")

    def __init__(
        self,
        game: Game,
        n_features: Shape,
        *,
        threshold: str = "randomised",
        budget: float = 0.1,
        window: float = 100,
        step: float = 0.01,
        network: Network = "mlp",
        width: int = 100,
        depth: int = 2,
        epochs: int = 40,
        batch: int = 64,
        learning_rate: float = 1e-3,
        schedule: str | UpdateSchedule = "paper",
        stop: float | None = 1e-3,
        wait: int = 2,
        device: str = "cpu",
        start: str = "none",
        divisor: str = "features",
        seed: int = 0,
    ) -> None:
        networks = NetworkOptions(
            network=network,
            width=width,
            depth=depth,
            epochs=epochs,
            batch=batch,
            learning_rate=learning_rate,
            schedule=schedule,
            stop=stop,
            wait=wait,
            device=device,
        )
        super().__init__(game, n_features, networks=networks, start=start, divisor=divisor, seed=seed)
        check_choice(("fixed", "variable", "randomised", "split"), threshold=threshold)
        if not 0 < budget <= 1:
            raise ValueError(f"budget is {budget}: it is a share of the observations, above 0 and at most 1")
        self.threshold = threshold
        self.budget, self.window, self.step = float(budget), float(window), float(step)
        self.spent, self.theta = 0.0, 1.0
        self.stops_asking = threshold == "fixed"  # type: ignore[misc]

    @abc.abstractmethod
    def certainty(self, probability: Floats) -> float:
        """From 1/K, where all classes are as likely, to 1."""

    def _rule(self, probability: Floats) -> tuple[bool, Why]:
        certainty, has_budget = self.certainty(probability), self.spent / self.window < self.budget
        asks = has_budget and self._below(certainty, len(probability))
        self.spent = self.spent * (self.window - 1) / self.window + asks
        numbers = {"certainty": certainty, "theta": self.theta, "spent": self.spent / self.window}
        if not has_budget:
            return False, Why("the budget is spent: {spent:.3g} of the last questions", numbers)
        return asks, Why("certainty {certainty:.3g} against threshold {theta:.3g}", numbers)

    def _below(self, certainty: float, n_classes: int) -> bool:
        if self.threshold == "fixed":
            return certainty <= 1 / n_classes + self.budget * (1 - 1 / n_classes)
        if self.threshold == "split" and self.rng.random() < 0.1:
            return bool(self.rng.random() < self.budget)
        noise = float(self.rng.normal(1, 1)) if self.threshold == "randomised" else 1.0
        asks = certainty < self.theta * noise
        self.theta *= 1 - self.step if asks else 1 + self.step
        return asks


def _between(share: float, n_classes: int) -> float:
    """0 becomes 1/K, and 1 stays 1."""
    return 1 / n_classes + (1 - 1 / n_classes) * share


class LeastConfidence(UncertaintySampling):
    """Certainty is the largest probability.

    >>> from sparingly import label_efficient
    >>> LeastConfidence(label_efficient(2), 3).certainty(np.array([0.7, 0.3]))
    0.7
    """

    name = "least_confidence"
    summary = "asks within a budget where the likeliest class is not likely enough"

    def certainty(self, probability: Floats) -> float:
        return float(probability.max())


class Entropy(UncertaintySampling):
    """Certainty falls with the entropy of the classes' probabilities.

    >>> from sparingly import label_efficient
    >>> [round(Entropy(label_efficient(2), 3).certainty(np.array(p)), 3) for p in ([0.5, 0.5], [0.9, 0.1], [1.0, 0.0])]
    [0.5, 0.766, 1.0]
    """

    name = "entropy"
    summary = "asks within a budget where the classes' probabilities have high entropy"

    def certainty(self, probability: Floats) -> float:
        entropy = -float(np.sum(probability * np.log(np.maximum(probability, 1e-300))))
        return _between(1 - entropy / math.log(len(probability)), len(probability))


class SmallestMargin(UncertaintySampling):
    """Certainty is the lead of the likeliest class over the second.

    >>> from sparingly import label_efficient
    >>> round(SmallestMargin(label_efficient(2), 3).certainty(np.array([0.7, 0.3])), 3)
    0.7
    """

    name = "smallest_margin"
    summary = "asks within a budget where the two likeliest classes are close"

    def certainty(self, probability: Floats) -> float:
        second, best = np.sort(probability)[-2:]
        return _between(float(best - second), len(probability))
