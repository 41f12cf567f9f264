"""Ours runs in the loops that scikit-activeml's own stream strategies run in."""

from collections import deque

import numpy as np
from skactiveml.base import SingleAnnotatorStreamQueryStrategy
from skactiveml.classifier import ParzenWindowClassifier, SklearnClassifier
from skactiveml.stream import StreamProbabilisticAL
from skactiveml.utils import call_func
from sklearn.base import clone

from sparingly.adapters.skactiveml import SparingQueryStrategy
from sparingly.adapters.sklearn import SparingClassifier


def data(n, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, (X[:, 0] > 0).astype(float)


def loop(query_strategy, n, window=1000):
    """The loop of scikit-activeml's tutorial on streams, the same for every strategy."""
    X, y = data(n)
    clf = ParzenWindowClassifier(classes=[0, 1], random_state=0)
    X_train, y_train = deque(maxlen=window), deque(maxlen=window)
    asked, right = 0, []
    for x_t, y_t in zip(X, y, strict=True):
        candidates = x_t.reshape(1, -1)
        if len(X_train):
            clf.fit(np.array(X_train), np.array(y_train))
        else:
            clf.fit(np.zeros((1, 3)), np.array([np.nan]))
        right.append(clf.predict(candidates)[0] == y_t)
        queried, utilities = call_func(
            query_strategy.query,
            candidates=candidates,
            clf=clf,
            X=np.array(X_train) if len(X_train) else None,
            y=np.array(y_train) if len(X_train) else None,
            return_utilities=True,
        )
        assert utilities.shape == (1,)
        call_func(
            query_strategy.update,
            candidates=candidates,
            queried_indices=queried,
            budget_manager_param_dict={"utilities": utilities},
        )
        asked += len(queried)
        X_train.append(x_t)
        y_train.append(y_t if len(queried) else clf.missing_label)
    return asked, np.mean(right[100:] or [0])


def test_the_same_loop_as_theirs():
    theirs, _ = loop(StreamProbabilisticAL(budget=0.4, random_state=0), n=40)
    assert theirs > 0
    asked, right = loop(SparingQueryStrategy(classes=[0, 1], random_state=0), n=140)
    assert 60 <= asked < 120
    assert right > 0.8


def test_labels_that_leave_the_window_of_the_loop_stay_learned():
    strategy = SparingQueryStrategy(classes=[0, 1], random_state=0)
    asked, _ = loop(strategy, n=50, window=20)
    assert asked == 50 == strategy._known[0]._strategy.n_labels + 1, "the last one is learned with the next query"


def test_it_is_one_of_theirs_and_can_be_cloned():
    strategy = SparingQueryStrategy(classes=["a", "b"], query_cost=0.5)
    assert isinstance(strategy, SingleAnnotatorStreamQueryStrategy)
    assert clone(strategy).get_params() == strategy.get_params()


def test_a_query_changes_nothing():
    X, y = data(80)
    strategy = SparingQueryStrategy(classes=[0, 1], strategy="always_ask")
    for t in range(0, 80, 20):
        labels = y[:t].copy()
        once = strategy.query(X[t : t + 20], X=X[:t], y=labels)
        twice = strategy.query(X[t : t + 20], X=X[:t], y=labels)
        assert np.array_equal(once, twice)
        strategy.update(X[t : t + 20], twice)
    model, learned = strategy._with_labels(X, y)
    assert learned.total() == 80
    assert model._strategy.n_labels == 80
    assert strategy._known[0]._strategy.n_labels == 60


def test_our_classifier_is_both_in_one():
    X, y = data(200)
    both = SparingClassifier(classes=[0, 1], strategy__width=20, strategy__members=3)
    for start in range(0, 200, 50):
        rows = slice(start, start + 50)
        queried = call_func(both.query, candidates=X[rows], clf=both)
        call_func(both.update, candidates=X[rows], queried_indices=queried, budget_manager_param_dict={})
        if len(queried):
            both.partial_fit(X[rows][queried], y[rows][queried])
    assert both.score(X, y) > 0.85


def test_our_classifier_inside_theirs():
    X, y = data(100)
    y[50:] = np.nan
    inside = SklearnClassifier(SparingClassifier(strategy__width=20, strategy__members=3), classes=[0, 1])
    assert np.mean(inside.fit(X, y).predict(X) == data(100)[1]) > 0.8
