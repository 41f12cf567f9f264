"""A strategy whose classes and features become known on the way."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from sparingly.adapters.feature_vectorizer import FeatureVectorizer
from sparingly.adapters.strategy_factory import StrategyFactory, probabilities
from sparingly.games.matrices import check_class
from sparingly.strategies.strategy import Decision, Strategy

Features = Mapping[Any, Any]


class GrowingStrategy:
    """Plays on named features; classes and features may appear at any time.

    A strategy has so many inputs and so many classes. When there is no place left for a feature, or a class is new, it
    is made anew, a size larger, and taught the labels that are known: with doubling sizes this happens seldom.

    Parameters
    ----------
    factory
        How to make the strategy.
    classes
        Those known from the start; a label is then one of them, or an error.
    max_features
        The most inputs; beyond them features share inputs.

    Examples
    --------
    >>> growing = GrowingStrategy(StrategyFactory("always_ask"))
    >>> growing.decide({"width": 1.0}).asks, growing.classes
    (True, [])
    >>> growing.learn({"width": 1.0}, "cat")
    >>> growing.learn({"height": 1.0}, "dog")
    >>> growing.classes
    ['cat', 'dog']
    """

    def __init__(
        self, factory: StrategyFactory, classes: Sequence[Hashable] | None = None, *, max_features: int = 4096
    ) -> None:
        if classes is not None and len(classes) < 2:
            raise ValueError(f"classes is {list(classes)!r}: there must be two or more, or None if they are not known")
        if classes is None and factory.costs is not None:
            raise ValueError("costs are given but not the classes that they are the costs of")
        for name in classes or ():
            check_class(name)
        self.factory = factory
        self.classes = list(classes or [])
        self._may_grow = classes is None
        self._vectorizer = FeatureVectorizer(max_features)
        self._labels: list[tuple[dict[Any, Any], int]] = []
        self._strategy: Strategy | None = None

    def decide(self, x: Features) -> Decision:
        """Play one round."""
        strategy = self._fitting(x)
        return strategy.decide(strategy.assess(self._vectorizer.vector(x)[None]), 0)

    def learn(self, x: Features, label: Hashable, *, asked: bool = False, asked_as: Features | None = None) -> None:
        """Learn the class of an observation, whenever it was seen; one that was not asked about is a round too.

        `asked_as` is what it was when it was asked about, if that was something else.
        """
        self._vectorizer.see(x)
        y = self._class(label)
        strategy = self._fitting(x)
        strategy.advance(int(not asked))
        if asked_as is not None and asked_as != x:
            strategy.forgo(self._vectorizer.vector(asked_as))
        strategy.learn(self._vectorizer.vector(x), *_answer(strategy, y))
        self._labels.append((dict(x), y))

    def probabilities(self, x: Features) -> dict[Any, float]:
        """How likely each class is that is known by now; changes nothing but the places of new features."""
        scores = self._fitting(x).scores(self._vectorizer.vector(x)[None])
        return dict(zip(self.classes, probabilities(scores, len(self.classes))[0].tolist(), strict=True))

    def _class(self, label: Hashable) -> int:
        if label in self.classes:
            return self.classes.index(label)
        if not self._may_grow:
            raise ValueError(f"label {label!r} is none of the classes {', '.join(map(repr, self.classes))}")
        check_class(label)
        self.classes.append(label)
        return len(self.classes) - 1

    def _fitting(self, x: Features) -> Strategy:
        """The strategy, with a place for everything that is known."""
        self._vectorizer.see(x)
        there = self._strategy
        if there is None or there.n_features < self._vectorizer.size or there.game.n_outcomes < len(self.classes):
            self._strategy = there = self._renewed(there)
        return there

    def _renewed(self, old: Strategy | None) -> Strategy:
        fresh = self.factory.make(self.classes, self._vectorizer.size)
        if old is not None and self._labels:
            answers = [_answer(fresh, y) for _, y in self._labels]
            fresh.learn_many([self._vectorizer.vector(x) for x, _ in self._labels], answers)
        if old is not None:
            fresh.advance(old.clock)
        return fresh


def _answer(strategy: Strategy, y: int) -> tuple[int, Hashable]:
    """The expert's action, and the symbol that tells a class."""
    expert = strategy.game.n_outcomes
    return expert, strategy.game.feedback[expert][y]
