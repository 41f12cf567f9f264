"""At home in scikit-activeml: a stream query strategy with `query` and `update`, for its loops."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np

from sparingly.adapters.sklearn import SparingClassifier
from sparingly.adapters.strategy_factory import StrategyOrName

try:
    from skactiveml.base import SingleAnnotatorStreamQueryStrategy
    from skactiveml.utils import MISSING_LABEL, is_labeled
except ImportError:
    raise ImportError("this adapter needs scikit-activeml: pip install 'sparingly[adapters]'") from None


class SparingQueryStrategy(SingleAnnotatorStreamQueryStrategy):  # type: ignore[misc]
    """Asks when a label is worth its price, whatever classifier announces.

    A loop gives it the labels as it gives them to scikit-activeml's own strategies: by `X` and `y` of `query`, with
    missing labels where nobody was asked. Rows are only ever added to them. There is no budget: the price decides.

    Parameters
    ----------
    classes
        The labels.
    strategy
        A strategy's name.
    costs, query_cost
        What mistakes cost, [announced, true], which is the transpose of scikit-activeml's `cost_matrix`; and a
        question's price.
    missing_label, random_state
        As everywhere in scikit-activeml.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> y = (X[:, 0] > 0).astype(float)
    >>> query_strategy = SparingQueryStrategy(classes=[0, 1])
    >>> labels = np.full(300, np.nan)
    >>> for t in range(300):
    ...     asked = query_strategy.query(X[t : t + 1], X=X[:t], y=labels[:t])
    ...     query_strategy = query_strategy.update(X[t : t + 1], asked)
    ...     if len(asked):
    ...         labels[t] = y[t]
    >>> 60 <= int(np.isfinite(labels).sum()) <= 160
    True
    """

    def __init__(
        self,
        classes: Sequence[Hashable],
        strategy: StrategyOrName = "sparing",
        costs: Any = None,
        query_cost: float = 1.0,
        missing_label: Any = MISSING_LABEL,
        random_state: int | None = None,
    ) -> None:
        super().__init__(budget=None, random_state=random_state)
        self.classes = classes
        self.strategy = strategy
        self.costs = costs
        self.query_cost = query_cost
        self.missing_label = missing_label

    def query(
        self, candidates: Any, clf: Any = None, X: Any = None, y: Any = None, return_utilities: bool = False
    ) -> Any:
        """The places of the candidates worth asking about, and with `return_utilities` what announcing each may cost.

        Parameters
        ----------
        clf
            Not needed: the strategy has a model of its own.
        X, y
            Everything seen so far with its labels, as the classifier is trained on it.
        """
        self._taught = self._with_labels(X, y)
        return self._taught[0].query(candidates, return_utilities=return_utilities)

    def update(self, candidates: Any, queried_indices: Any, budget_manager_param_dict: Any = None) -> Self:
        """These candidates went by, and the labels of these places were asked for."""
        if not hasattr(self, "_taught"):
            self._taught = self._with_labels(None, None)
        model, learned = self._taught
        self._known = model.update(candidates, queried_indices), learned
        del self._taught
        return self

    def _with_labels(self, X: Any, y: Any) -> tuple[SparingClassifier, Counter[Any]]:
        """The model once it knows these labels, and all that it knows; a copy if any are new.

        So a query by itself changes nothing. Labels are told apart by their content, for loops keep windows of them.
        """
        known: tuple[SparingClassifier, Counter[Any]] = getattr(self, "_known", None) or (self._fresh(), Counter())
        model, learned = known
        if y is None or not len(y):
            return model, learned
        rows, labels = np.asarray(X, dtype=np.float32), np.asarray(y)
        left, learned = learned.copy(), learned.copy()
        new: list[int] = []
        for place in np.flatnonzero(is_labeled(labels, self.missing_label)).tolist():
            example = rows[place].tobytes(), labels[place].item()
            left[example] -= 1
            if left[example] < 0:
                new.append(place)
                learned[example] += 1
        if not new:
            return known
        model = copy.deepcopy(model)
        for place in new:
            model.partial_fit(rows[place : place + 1], labels[place : place + 1], classes=self.classes)
        return model, learned

    def _fresh(self) -> SparingClassifier:
        return SparingClassifier(
            self.strategy,
            classes=self.classes,
            costs=self.costs,
            query_cost=self.query_cost,
            random_state=self.random_state,
        )
