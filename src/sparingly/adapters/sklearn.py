"""At home in scikit-learn: fit or partial_fit, predict, and query, which says whose labels are worth their price."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sparingly.adapters.prefixed_parameters import PrefixedParameters
from sparingly.adapters.raw_input import RawInput
from sparingly.adapters.sklearn_ensemble import SklearnEnsemble
from sparingly.adapters.strategy_factory import Floats, SparingAround, StrategyFactory, StrategyOrName, probabilities
from sparingly.adapters.torch import ModuleOf
from sparingly.encoders.learned_schema import EncoderChoice
from sparingly.strategies.decision import Decision
from sparingly.strategies.strategy import Strategy

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, clone
    from sklearn.pipeline import Pipeline
    from sklearn.utils import check_array
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise ImportError("the scikit-learn adapter needs it: pip install 'sparingly[adapters]'") from None


class SparingClassifier(ClassifierMixin, PrefixedParameters, BaseEstimator):  # type: ignore[misc]
    """A classifier that knows which labels are worth asking for.

    `query(X)` tells which rows to ask about and changes nothing. `update(X, queried)` says that these rows went by and
    which were asked, as scikit-activeml's stream strategies have it. `partial_fit(X, y)` teaches labels; rows that
    `update` was not told of count as rounds of their own. Without `update` the future is taken to be shorter than it
    is, and a little less is asked.

    `X` is a matrix of numbers, a DataFrame with words, dates, missing values and texts, a list of mappings, or a list
    of strings.

    `sklearn.utils.estimator_checks.check_estimator` passes; no check is left out.

    Parameters
    ----------
    strategy
        A strategy's name, or a function of (game, n_features).
    classes
        The labels, if some may be missing among the first; `classes_` has them sorted.
    costs, query_cost
        What mistakes cost: a matrix [announced, true] in the order of `classes_`, a DataFrame with axes so named, or
        records of the costs that are not 1; and a question's price. `predict` announces what costs least on average.
    module
        The network inside: None for the strategy's own, an `nn.Module` class, an instance, or a function of
        (shape, outputs).
    estimator
        A scikit-learn classifier with `predict_proba`, or a pipeline that ends in one: it is the model inside the
        strategy "sparing". It is fitted anew at every update, so it should be quick.
    encoder
        What turns texts into numbers, if `X` is a list of strings or has a column of texts: "minilm", "static",
        "hashing", a Hugging Face model, or a function of a list of strings. Where `X` is a list of strings and labels
        are words, Sparing also reads what the classes are called, unless the encoder is a function;
        `strategy__class_vectors=None` keeps it from that.
    random_state
        A number; the same one gives the same classifier.
    **prefixed
        `module__name=value` goes to the module when it is made, `strategy__name=value` to the strategy,
        `estimator__name=value` to the estimator.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> order = np.random.default_rng(0).permutation(len(X))
    >>> X, y = X[order], y[order]
    >>> model = SparingClassifier(classes=[0, 1, 2])
    >>> asked = model.query(X[:50])
    >>> len(asked)
    50
    >>> model = model.update(X[:50], asked).partial_fit(X[asked], y[asked])
    >>> len(model.query(X[50:])), model.score(X[50:], y[50:]) > 0.9
    (15, True)
    """

    def __init__(
        self,
        strategy: StrategyOrName = "sparing",
        *,
        classes: Sequence[Hashable] | None = None,
        costs: Any = None,
        query_cost: float = 1.0,
        module: Any = None,
        estimator: Any = None,
        encoder: EncoderChoice = None,
        random_state: int | None = 0,
        **prefixed: Any,
    ) -> None:
        self.strategy = strategy
        self.classes = classes
        self.costs = costs
        self.query_cost = query_cost
        self.module = module
        self.estimator = estimator
        self.encoder = encoder
        self.random_state = random_state
        for name, value in prefixed.items():
            setattr(self, name, value)

    # learning

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything, and learn these labels."""
        for name in ("_strategy", "_awaited", "_input", "classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                delattr(self, name)
        return self._learn(X, y, None, at_once=True)

    def partial_fit(self, X: Any, y: Any, classes: Iterable[Hashable] | None = None) -> Self:
        """Learn more labels; the classes must be known from the first call on, by `classes` or by y.

        A block of labels is trained on at once, a single one when the strategy finds that it is time.
        """
        return self._learn(X, y, classes, at_once=np.shape(X)[:1] != (1,))

    def _learn(self, given: Any, y: Any, classes: Iterable[Hashable] | None, *, at_once: bool) -> Self:
        X = self._reading(keeps=True).learned(given)
        X, y = validate_data(self, X, y, reset=not hasattr(self, "n_features_in_"), dtype=np.float32)
        check_classification_targets(y)
        known = self._known(y, classes)
        numbers = _places(y, known)
        strategy = self._begun(known, X.shape[1], given)
        expert = strategy.game.n_outcomes
        answers = [(expert, strategy.game.feedback[expert][k]) for k in numbers]
        self._strategy, self.classes_ = strategy, known
        strategy.advance(self._unannounced(X))
        if at_once:
            strategy.learn_many(X, answers)
        else:
            strategy.learn(X[0], *answers[0])
        return self

    def _reading(self, *, keeps: bool = False) -> RawInput:
        """What reads raw rows and texts; it is kept from the first rows that count."""
        there: RawInput = getattr(self, "_input", None) or RawInput(self.encoder)
        if keeps:
            self._input = there
        return there

    def _known(self, y: NDArray[Any], classes: Iterable[Hashable] | None) -> NDArray[Any]:
        if hasattr(self, "classes_"):
            return np.asarray(self.classes_)
        given = classes if classes is not None else self.classes
        return np.unique(y) if given is None else np.unique(np.asarray(list(given)))

    def _begun(self, known: Sequence[Any] | NDArray[Any], n_features: int, given: Any) -> Strategy:
        """The strategy there is; or one for these classes, which are two unknown ones before any label.

        If texts are given, Sparing is told what the classes are called.
        """
        there: Strategy | None = getattr(self, "_strategy", None)
        if there is not None and hasattr(self, "classes_"):
            return there
        factory = self._factory()
        if there is not None and there.game.fingerprint == factory.game(list(known)).fingerprint:
            return there
        if self.strategy == "sparing" and self.estimator is None and len(known) > 1:
            names = {"class_vectors": self._reading().class_vectors(given, list(known))}
            factory = replace(factory, options={**names, **factory.options})
        fresh = factory.make(list(known), n_features)
        if there is not None:
            fresh.advance(there.clock)
        return fresh

    def _unannounced(self, X: Floats) -> int:
        """How many rows `update` was not told of."""
        awaited: Counter[bytes] = self._awaited if hasattr(self, "_awaited") else Counter()
        rows = Counter(row.tobytes() for row in X)
        found = rows & awaited
        awaited.subtract(found)
        return rows.total() - found.total()

    def _factory(self) -> StrategyFactory:
        options = self._options_of("strategy")
        if self.module is not None:
            options["network"] = ModuleOf(self.module, self._options_of("module"))
        strategy = self.strategy
        if self.estimator is not None:
            if self.module is not None or strategy != "sparing":
                raise ValueError(f"an estimator can be the model inside 'sparing', not inside {strategy!r} or a module")
            inside = clone(self.estimator).set_params(**self._options_of("estimator"))
            strategy = SparingAround(SklearnEnsemble, inside)
        return StrategyFactory(strategy, options, self.costs, self.query_cost, self.random_state or 0)

    # asking

    def query(self, candidates: Any, *, return_utilities: bool = False, return_why: bool = False) -> Any:
        """Which of these rows, in this order, are worth asking about; changes nothing.

        Returns their places, and with `return_utilities` also what announcing each row is expected to cost, with
        `return_why` the reason for each row, asked about or not: `str(why)` in words, `why.values` in numbers.
        """
        X = self._rows(candidates)
        strategy = copy.deepcopy(self._begun(getattr(self, "classes_", self._named()), X.shape[1], candidates))
        utilities = _expected_cost(strategy, X) if return_utilities else None
        decisions = _decisions(strategy, X)
        found: list[Any] = [np.flatnonzero([decision.asks for decision in decisions])]
        found += [utilities] if return_utilities else []
        found += [[decision.why for decision in decisions]] if return_why else []
        return tuple(found) if len(found) > 1 else found[0]

    def update(self, candidates: Any, queried_indices: Any, budget_manager_param_dict: Any = None) -> Self:
        """These rows went by, and the labels of these places were asked for; they come by `partial_fit`."""
        X = self._rows(candidates, reset=not hasattr(self, "n_features_in_"), learns=True)
        self._strategy = self._begun(getattr(self, "classes_", self._named()), X.shape[1], candidates)
        _decisions(self._strategy, X)
        if not hasattr(self, "_awaited"):
            self._awaited = Counter[bytes]()
        self._awaited.update(X[place].tobytes() for place in np.asarray(queried_indices, dtype=int))
        return self

    def _named(self) -> list[Any]:
        return [] if self.classes is None else np.unique(np.asarray(list(self.classes))).tolist()

    def _rows(self, X: Any, *, reset: bool = False, learns: bool = False) -> Floats:
        X = self._reading(keeps=True).learned(X) if learns else self._reading().read(X)
        if not reset and not hasattr(self, "n_features_in_"):
            found: Floats = check_array(X, dtype=np.float32)
            return found
        rows: Floats = validate_data(self, X, reset=reset, dtype=np.float32)
        return rows

    # announcing

    def predict_proba(self, X: Any) -> Floats:
        """`[rows, class]`, in the order of `classes_`; the order of the rows does not matter, to the last bit."""
        check_is_fitted(self, "classes_")
        rows = self._rows(X)
        order = np.array(sorted(range(len(rows)), key=lambda row: rows[row].tobytes()))
        found = np.empty((len(rows), len(self.classes_)))
        found[order] = probabilities(self._strategy.scores(rows[order]), len(self.classes_))
        return found

    def predict(self, X: Any) -> NDArray[Any]:
        """The classes of least expected cost."""
        probability = self.predict_proba(X)
        n = len(self.classes_)
        announced: NDArray[Any] = self.classes_[(probability @ self._strategy.game.costs[:n, :n].T).argmin(1)]
        return announced


class ActivePipeline(Pipeline):  # type: ignore[misc]
    """A scikit-learn pipeline whose last step is a `SparingClassifier`, with its `query`, `update` and `partial_fit`.

    The transformers are fitted on the first rows that the pipeline learns or is told of, and stay as they are until
    `fit`: if they moved on, the labels that are known and the rows to come would be measured by two yardsticks.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.decomposition import PCA
    >>> X, y = load_iris(return_X_y=True)
    >>> order = np.random.default_rng(0).permutation(len(X))
    >>> X, y = X[order], y[order]
    >>> model = ActivePipeline([("pca", PCA(3)), ("classifier", SparingClassifier(classes=[0, 1, 2]))])
    >>> asked = model.query(X[:100])
    >>> model = model.update(X[:100], asked).partial_fit(X[asked], y[asked])
    >>> model.score(X[100:], y[100:]) > 0.9
    True
    """

    def query(self, candidates: Any, *, return_utilities: bool = False, return_why: bool = False) -> Any:
        """Which of these rows are worth asking about; changes nothing."""
        there = self if self._has_seen else copy.deepcopy(self)
        options = {"return_utilities": return_utilities, "return_why": return_why}
        return there.steps[-1][1].query(there._moved(candidates), **options)

    def update(self, candidates: Any, queried_indices: Any) -> Self:
        """These rows went by, and the labels of these places were asked for."""
        self.steps[-1][1].update(self._moved(candidates), queried_indices)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Iterable[Hashable] | None = None) -> Self:
        """Learn more labels."""
        self.steps[-1][1].partial_fit(self._moved(X), y, classes)
        return self

    @property
    def _has_seen(self) -> bool:
        return hasattr(self.steps[-1][1], "n_features_in_")

    def _moved(self, X: Any) -> Any:
        """The rows after the transformers, which are fitted to them if these rows are the first."""
        fitted = self._has_seen
        for _, _, step in self._iter(with_final=False):
            X = step.transform(X) if fitted else step.fit(X).transform(X)
        return X


def _places(y: NDArray[Any], known: NDArray[Any]) -> list[int]:
    """The number of each label's class, or an error that names the label."""
    places = {label: place for place, label in enumerate(known.tolist())}
    for row, label in enumerate(y.tolist()):
        if label not in places:
            raise ValueError(f"y[{row}] is {label!r}: it is none of the classes {', '.join(map(repr, places))}")
    return [places[label] for label in y.tolist()]


def _decisions(strategy: Strategy, X: Floats) -> list[Decision]:
    """Play the rows in their order."""
    decisions: list[Decision] = []
    while len(decisions) < len(X):
        start = len(decisions)
        block = X[start : start + strategy.rounds_to_update()]
        assessment = strategy.assess(block)
        decisions += [strategy.decide(assessment, row) for row in range(len(block))]
    return decisions


def _expected_cost(strategy: Strategy, X: Floats) -> Floats:
    n = strategy.game.n_outcomes
    costs: Floats = (probabilities(strategy.scores(X), n) @ strategy.game.costs[:n].T).min(1)
    return costs
