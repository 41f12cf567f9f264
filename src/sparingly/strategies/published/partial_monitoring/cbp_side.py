"""CBPside: confidence bounds that look at the observation, linear or logistic."""

from __future__ import annotations

from sparingly.strategies.families.confidence_bounds import Floats
from sparingly.strategies.families.side_information_strategy import SideInformationStrategy


class CBPside(SideInformationStrategy):
    """Eliminates actions by the confidence bounds of a linear or logistic model for each informative action.

    The estimates and the shape of the widths are published; delta_t = t^-2 and the logistic width's constant are our
    reading, for which there was no code to compare with. The widths are honest and wide: below thousands of rounds it
    asks about nearly everything, so that it is not held to beat random asking.

    Parameters are those of `SideInformationStrategy`.

    >>> import numpy as np
    >>> from sparingly import label_efficient
    >>> game = label_efficient(2)
    >>> strategy = CBPside(game, n_features=2)
    >>> for x in np.eye(2)[[0, 1] * 50]:
    ...     decision = strategy.decide(strategy.assess([x]), 0)
    ...     if decision.asks:
    ...         strategy.learn(x, decision.action, game.feedback[decision.action][int(x[0])])
    >>> strategy.scores(np.eye(2)).round(1).tolist()
    [[0.0, 1.0], [1.0, 0.0]]

    References
    ----------
    Bartok, Szepesvari (2012). Partial monitoring with side information. ALT.
    Lienert (2013). Exploiting side information in partial monitoring games. Master's thesis, ETH Zurich.
    Heuillet, Ahmad, Durand (2024). Randomized confidence bounds for stochastic partial monitoring. ICML.
    """

    name = "cbp_side"
    summary = "eliminates actions by confidence bounds of linear or logistic models"
    reference = "Bartok, Szepesvari 2012; Lienert 2013"
    beats_random = False

    def _factor(self, root: float) -> Floats | None:
        return None
