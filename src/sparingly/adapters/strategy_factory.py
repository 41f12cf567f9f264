"""How an adapter makes its strategy: from a name, options and costs, once the classes and the features are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.games import Game, label_efficient
from sparingly.games.costs import check_prices, read_costs
from sparingly.games.matrices import check_class
from sparingly.strategies import Sparing, registered
from sparingly.strategies.sparing.models.ensemble import Ensemble
from sparingly.strategies.strategy import Strategy

StrategyOrName = str | Callable[..., Strategy]
"""A strategy's name, its class, or a function of (game, n_features, seed=..., **options)."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class StrategyFactory:
    """Makes the strategy that an adapter was asked for.

    Attributes
    ----------
    strategy, options
        Which, and its keyword arguments.
    costs, query_cost
        What mistakes cost, in any form that an agent takes, and the price of a question.
    seed
        The strategy's.

    >>> strategy = StrategyFactory(query_cost=0.5).make(["ham", "spam"], n_features=3)
    >>> strategy.name, strategy.game.costs.tolist()
    ('sparing', [[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    """

    strategy: StrategyOrName = "sparing"
    options: Mapping[str, Any] = field(default_factory=dict)
    costs: Any = None
    query_cost: float = 1.0
    seed: int = 0

    def game(self, classes: Sequence[Any]) -> Game:
        """The game of these classes; of two if there are fewer, so that one can begin before any is known."""
        for name in classes:
            check_class(name)
        costs = read_costs(self.costs, classes) if len(classes) > 1 else None
        game = label_efficient(max(2, len(classes)), costs=costs, query_cost=self.query_cost)
        check_prices(game)
        return game

    def make(self, classes: Sequence[Any], n_features: int | tuple[int, ...]) -> Strategy:
        return self._maker()(self.game(classes), n_features, seed=self.seed, **self.options)

    def _maker(self) -> Callable[..., Strategy]:
        if not isinstance(self.strategy, str):
            return self.strategy
        known = registered()
        if self.strategy not in known:
            raise ValueError(f"there is no strategy {self.strategy!r}: there are {', '.join(known)}")
        return known[self.strategy]


class SparingAround:
    """Makes `Sparing` around copies of a classifier of another library; an object, so that it can be pickled.

    Parameters
    ----------
    ensemble
        What makes the copies: `RiverEnsemble` or `SklearnEnsemble`.
    classifier
        The other library's.
    """

    def __init__(self, ensemble: Callable[..., Ensemble], classifier: Any) -> None:
        self.ensemble, self.classifier = ensemble, classifier

    def __call__(self, game: Game, n_features: int, *, members: int = 3, **options: Any) -> Strategy:
        copies = self.ensemble(self.classifier, game.n_outcomes, members=members)
        return Sparing(game, n_features, network=copies, **options)


def probabilities(scores: Floats, n_classes: int) -> Floats:
    """Scores `[block, outcome]` of the classes that are known, as rows that sum to 1.

    >>> probabilities(np.array([[3.0, 1.0, 4.0], [-1.0, 0.0, 2.0]]), 2).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    """
    known = np.clip(scores[:, :n_classes], 0.0, None)
    total = known.sum(1, keepdims=True)
    return np.where(total > 0, known / np.where(total > 0, total, 1.0), 1 / max(n_classes, 1))
