"""CBP: confidence bounds on the frequencies of symbols, for any finite game."""

from __future__ import annotations

from sparingly.strategies.families.confidence_bounds import Floats
from sparingly.strategies.families.frequency_strategy import FrequencyStrategy


class CBP(FrequencyStrategy):
    """Eliminates actions by confidence bounds on symbol frequencies; looks at no feature.

    Regret of order T^(1/2) on easy games and T^(2/3) on hard ones, without knowing the horizon.

    Parameters
    ----------
    alpha
        Above 1: in the width sqrt(alpha log t / n_a), and in f(t) = alpha^(1/3) t^(2/3) log(t)^(1/3).
    ties
        Among equal W_a w_a the "cheapest" candidate, or the "lowest" action.

    Examples
    --------
    Answers that alternate never decide between two classes, so that the expert is asked at the rate f(t):

    >>> from sparingly import label_efficient
    >>> strategy = CBP(label_efficient(2), n_features=1)
    >>> for t in range(1000):
    ...     decision = strategy.decide(strategy.assess([[0.0]]), 0)
    ...     if decision.asks:
    ...         strategy.learn([0.0], decision.action, str(strategy.n_labels % 2))
    >>> strategy.n_labels, round(strategy.bounds.rate(1000), 2)
    (192, 191.08)

    References
    ----------
    Bartok, Zolghadr, Szepesvari (2012). An adaptive algorithm for finite stochastic partial monitoring. ICML.
    """

    name = "cbp"
    summary = "eliminates actions by confidence bounds on symbol frequencies, without features"
    reference = "Bartok, Zolghadr, Szepesvari 2012"

    def _factor(self, largest: float) -> Floats | None:
        return None
