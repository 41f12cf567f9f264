"""Always ask: no mistake is ever made, and every observation is paid for."""

from __future__ import annotations

from sparingly.strategies.families.classifier_strategy import ClassifierStrategy, Floats
from sparingly.strategies.strategy import Why


class AlwaysAsk(ClassifierStrategy):
    """Asks about every observation: the upper bound on what one should pay.

    >>> from sparingly import label_efficient
    >>> strategy = AlwaysAsk(label_efficient(2), 3)
    >>> str(strategy.decide(strategy.assess([[0.0, 1.0, 2.0]]), 0).why)
    'it asks about everything'
    """

    name = "always_ask"
    summary = "asks about every observation"
    reference = "baseline"
    beats_random = False

    def _rule(self, probability: Floats) -> tuple[bool, Why]:
        return True, Why("it asks about everything")
