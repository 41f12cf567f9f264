"""At home in river: dict observations, `predict_one -> (label, ask)`, `learn_one` whenever the label comes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sparingly.adapters.growing_strategy import GrowingStrategy
from sparingly.adapters.river_ensemble import RiverEnsemble
from sparingly.adapters.strategy_factory import SparingAround, StrategyFactory
from sparingly.adapters.undone_scaling import UndoneScaling
from sparingly.strategies import registered

try:
    from river import base, compose, preprocessing
    from river.active.base import ActiveLearningClassifier
except ImportError:
    raise ImportError("the river adapter needs river: pip install 'sparingly[adapters]'") from None

PATIENCE = 10_000
"""Questions whose observations are kept as they were when asked; an answer to an older one is learned as it is."""
SCALERS = (
    preprocessing.StandardScaler,
    preprocessing.AdaptiveStandardScaler,
    preprocessing.MinMaxScaler,
    preprocessing.MaxAbsScaler,
    preprocessing.RobustScaler,
)
"""They move each feature and stretch it, from row to row a little differently."""


class ActiveClassifier(ActiveLearningClassifier):
    """Predicts a label and says whether the true one is worth its price, as river's active learners do.

    A call of `predict_one` or `predict_proba_one` is one round: the strategy counts it. `learn_one` may come much
    later, in any order, or never. Classes and features may appear at any time; a feature that is absent is 0, a word is
    a feature of its own. Transformers learn from every observation, asked or not.

    `river.checks.check_estimator` passes; no check is left out.

    Parameters
    ----------
    classifier
        None: the strategy's own networks. A river classifier: it is the model inside the strategy. A transformer, or a
        pipeline with or without a classifier at its end: the transformers come first. A scaler is left out where the
        strategy scales by itself (`sparing` does): the labels that a strategy keeps would be scaled by what was known
        when each was asked for, and the coming rows otherwise.
    strategy, options
        A strategy's name and its keyword arguments. With a river classifier inside it is "sparing".
    classes
        The labels, if they are known; costs need them.
    costs, query_cost
        What mistakes cost ([announced, true], or records of the costs that are not 1), and a question's price.
    max_features
        The most inputs; beyond them features share inputs.
    seed
        The strategy's.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> model = ActiveClassifier(preprocessing.StandardScaler(), seed=1)
    >>> steps = evaluate.iter_progressive_val_score(datasets.Phishing(), model, metrics.Accuracy(), step=1250)
    >>> last = list(steps)[-1]
    >>> last["Samples used"] < 400, last["Accuracy"].get() > 0.85
    (True, True)
    """

    def __init__(
        self,
        classifier: base.Estimator | None = None,
        strategy: str = "sparing",
        options: dict[str, Any] | None = None,
        classes: Sequence[base.typing.ClfTarget] | None = None,
        costs: Any = None,
        query_cost: float = 1.0,
        max_features: int = 4096,
        seed: int = 0,
    ) -> None:
        self.classifier = classifier  # type: ignore[assignment]
        self.strategy, self.options = strategy, options
        self.classes, self.costs, self.query_cost = classes, costs, query_cost
        self.max_features, self.seed = max_features, seed
        self._transformers, inside = _parts(classifier)
        maker: Any = strategy
        self._scaling = UndoneScaling()
        if inside is not None:
            if strategy != "sparing":
                raise ValueError(f"a river classifier can be the model inside 'sparing', not inside {strategy!r}")
            maker = SparingAround(RiverEnsemble, inside)
        elif getattr(registered().get(strategy), "scales", False):
            self._transformers = [step for step in self._transformers if not isinstance(step, SCALERS)]
        if self._transformers or not getattr(registered().get(strategy), "scales", False) or inside is not None:
            self._scaling.holds = False
        factory = StrategyFactory(maker, options or {}, costs, query_cost, seed or 0)
        self._play = GrowingStrategy(factory, classes, max_features=max_features)
        self._asked: dict[str, list[tuple[dict[Any, Any], dict[Any, Any]]]] = {}
        """Questions without an answer: what the strategy saw, and what had come in."""

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> tuple[Any, bool]:  # type: ignore[override]
        """The label to announce, None before any is known, and whether the true one is worth asking for."""
        return self._round(x)[1:]

    def predict_proba_one(  # type: ignore[override]
        self, x: dict[Any, Any], **kwargs: Any
    ) -> tuple[dict[Any, float], bool]:
        """The probability of each label known so far, and whether the true one is worth asking for."""
        seen, _, asks = self._round(x)
        return self._play.probabilities(seen), asks

    def learn_one(self, x: dict[Any, Any], y: base.typing.ClfTarget, **kwargs: Any) -> None:
        """Learn a label, of the observation as it was seen when it was asked about.

        After a transformer that stands before this in a pipeline, an observation is not what it was when it was asked
        about: it answers the latest question about the same features. A StandardScaler there is undone for a strategy
        that scales by itself (`UndoneScaling`); after other transformers it is learned as it is now.
        """
        key = _key(x)
        question = key if key in self._asked else self._latest(x)
        seen, entered = (None, None) if question is None else self._asked[question][0]
        undone = self._scaling.learn(x, entered)
        if seen is not None and (key == question or _alike(seen, undone)):
            learned = seen
        else:
            learned = undone if self._scaling.holds else self._transformed(x)
        self._play.learn(learned, y, asked=question is not None, asked_as=seen)
        if question is not None:
            del self._asked[question][0]
            if not self._asked[question]:
                del self._asked[question]
        for step, entering in self._steps(x):
            if step._supervised:
                step.learn_one(entering, y)

    def _latest(self, x: dict[Any, Any]) -> str | None:
        """The latest question, if it is about these features."""
        latest = next(reversed(self._asked), None)
        return latest if latest is not None and set(self._asked[latest][0][1]) == set(x) else None

    def _ask_for_label(self, x: dict[Any, Any], y_pred: Any) -> bool:
        return self._round(x)[2]

    def _round(self, x: dict[Any, Any]) -> tuple[dict[Any, Any], Any, bool]:
        seen = self._transformed(self._scaling(x))
        decision = self._play.decide(seen)
        known = self._play.classes
        asks = decision.asks or not known
        if asks:
            self._asked.setdefault(_key(x), []).append((seen, dict(x)))
            if len(self._asked) > PATIENCE:
                del self._asked[next(iter(self._asked))]
        # a second class that nobody has seen yet has no name to announce
        return seen, known[min(decision.prediction, len(known) - 1)] if known else None, asks

    def _transformed(self, x: dict[Any, Any]) -> dict[Any, Any]:
        for step in self._transformers:
            if not step._supervised:
                step.learn_one(x)
            x = step.transform_one(x)
        return dict(x)

    def _steps(self, x: dict[Any, Any]) -> Iterator[tuple[Any, dict[Any, Any]]]:
        for step in self._transformers:
            yield step, x
            x = step.transform_one(x)

    # what river asks of a wrapper, which this is only if there is something inside

    @property
    def _wrapped_model(self) -> Any:
        return self.classifier

    def _more_tags(self) -> set[str]:
        return set() if self.classifier is None else self.classifier._tags

    def __str__(self) -> str:
        return f"ActiveClassifier({'' if self.classifier is None else self.classifier})"

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def _supervised(self) -> bool:
        return True

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"strategy": "sparing"}


def _parts(given: base.Estimator | None) -> tuple[list[Any], base.Estimator | None]:
    """The transformers in their order, and the classifier if there is one."""
    steps = list(given.steps.values()) if isinstance(given, compose.Pipeline) else [] if given is None else [given]
    inside = steps.pop() if steps and isinstance(steps[-1], base.Classifier) else None
    for step in steps:
        if not isinstance(step, base.Transformer | base.SupervisedTransformer | compose.TransformerUnion):
            raise ValueError(f"{step} is neither a classifier nor a transformer")
    return steps, inside


def _alike(seen: Mapping[Any, Any], other: Mapping[Any, Any]) -> bool:
    """Whether two observations differ by rounding alone."""
    return seen.keys() == other.keys() and all(abs(seen[name] - other[name]) < 1e-9 for name in seen)


def _key(x: Mapping[Any, Any]) -> str:
    """The same for the same observation, in whatever order its features stand."""
    return repr(sorted(x.items(), key=lambda item: repr(item[0])))
