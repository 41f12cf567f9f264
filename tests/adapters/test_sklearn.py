"""The scikit-learn adapter passes scikit-learn's own checks and asks as the strategy does."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import estimator_checks_generator
from torch import nn

import sparingly as sp
from sparingly.adapters.sklearn import ActivePipeline, SparingClassifier
from sparingly.adapters.sklearn_ensemble import SklearnEnsemble

SMALL = {"strategy__width": 20, "strategy__members": 3}


def data(n=400, seed=0, n_classes=3):
    return make_classification(
        n, 6, n_informative=4, n_classes=n_classes, class_sep=2.0, n_clusters_per_class=1, random_state=seed
    )


def checks():
    """Those of `check_estimator` but one, which scikit-learn itself leaves out unless SciPy's array API is on."""
    for estimator, check in estimator_checks_generator(SparingClassifier()):
        if check.func.__name__ != "check_array_api_input":
            yield pytest.param(estimator, check, id=check.func.__name__)


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_query_changes_nothing_and_update_goes_the_same_way():
    X, y = data()
    model = SparingClassifier(classes=[0, 1, 2], **SMALL)
    for start in range(0, 400, 50):
        block = X[start : start + 50]
        before = copy.deepcopy(vars(model))
        asked = model.query(block)
        assert set(vars(model)) == set(before)
        assert np.array_equal(asked, model.query(block))
        model.update(block, asked)
        if len(asked):
            model.partial_fit(block[asked], y[start : start + 50][asked])
    assert model._strategy.clock == 400
    assert 60 <= model._strategy.n_labels < 250
    assert model.score(*data()) > 0.85


def test_one_row_at_a_time_is_the_strategy_itself():
    X, y = data(150, n_classes=2)
    X = X.astype(np.float32)
    model, asked = SparingClassifier(classes=[0, 1], **SMALL), []
    for i, x in enumerate(X):
        queried = model.query(x[None])
        model.update(x[None], queried)
        if len(queried):
            asked.append(i)
            model.partial_fit(x[None], y[i : i + 1])
    game = sp.label_efficient(2)
    plain = sp.Sparing(game, 6, width=20, members=3, seed=0)
    assert asked == [r.t - 1 for r in sp.play(plain, game, zip(X, y, strict=True)) if r.action == 2]


def test_utilities_are_expected_costs():
    X, y = data()
    model = SparingClassifier(query_cost=0.3, **SMALL).fit(X, y)
    asked, utilities = model.query(X[:50], return_utilities=True)
    assert utilities == pytest.approx(1 - model.predict_proba(X[:50]).max(1), abs=1e-6)
    assert set(np.flatnonzero(utilities > 0.3)) <= set(asked)


def test_every_row_has_a_reason_in_words_and_numbers():
    X, y = load_iris(return_X_y=True)
    model = ActivePipeline([("scale", StandardScaler()), ("classifier", SparingClassifier())]).partial_fit(X, y)
    asked, utilities, whys = model.query(X[:30], return_utilities=True, return_why=True)
    assert len(utilities) == len(whys) == 30
    silent = [row for row in range(30) if row not in asked]
    assert all(whys[row]["worth"] < whys[row]["net"] for row in silent)
    assert all(f"{whys[row]['worth']:.2f}" in str(whys[row]) for row in silent)
    places, reasons = model.query(X[:30], return_why=True)
    assert places.tolist() == asked.tolist()
    assert [str(why) for why in reasons] == [str(why) for why in whys]


def test_costs_steer_the_announcement():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), np.where(rng.random(300) < 0.2, "dog", "cat")
    costs = [{"announced": "cat", "true": "dog", "cost": 100.0}]
    assert np.mean(SparingClassifier(costs=costs, **SMALL).fit(X, y).predict(X) == "dog") > 0.9
    assert np.mean(SparingClassifier(**SMALL).fit(X, y).predict(X) == "dog") < 0.2


def test_pandas_pipelines_and_searches():
    X, y = data()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), SparingClassifier(**SMALL))
    pipeline.fit(frame, pd.Series(y).map({0: "ant", 1: "bee", 2: "cow"}))
    assert set(pipeline.predict(frame)) == {"ant", "bee", "cow"}
    assert list(pipeline[-1].feature_names_in_) == list("abcdef")
    with pytest.raises(ValueError, match="feature names should match"):
        pipeline[-1].query(frame[list("fedcba")])
    search = GridSearchCV(SparingClassifier(**SMALL), {"strategy__width": [5, 20]}, cv=2).fit(X, y)
    assert search.best_params_["strategy__width"] in (5, 20)


class Net(nn.Sequential):
    def __init__(self, shape, n_outputs, hidden=10):
        super().__init__(nn.Linear(shape[0], hidden), nn.ReLU(), nn.Linear(hidden, n_outputs))


def test_own_module_with_options_by_prefix():
    X, y = data(150)
    model = SparingClassifier(module=Net, module__hidden=7, strategy__members=2)
    assert clone(model).get_params() == model.get_params()
    assert model.get_params()["module__hidden"] == 7
    model.set_params(module__hidden=12, query_cost=0.5).fit(X, y)
    assert model._strategy.knowledge.beliefs.ensemble.modules[0][0].out_features == 12
    assert model.score(X, y) > 0.7
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    with pytest.raises(TypeError, match="there is no parameter 'hidden'"):
        SparingClassifier(hidden=7).fit(X, y)


def test_an_instance_stays_as_it_is():
    X, y = data(30, n_classes=2)
    net = Net((6,), 2)
    before = copy.deepcopy(net.state_dict())
    SparingClassifier("neural_cbp", module=net, strategy__epochs=1).fit(X, y)
    assert all((before[name] == value).all() for name, value in net.state_dict().items())


def test_mistakes_are_named():
    X, y = data(60)
    model = SparingClassifier(**SMALL)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"y\[1\] is 7: it is none of the classes 0, 1, 2"):
        model.partial_fit(X[:2], [1, 7])
    with pytest.raises(ValueError, match="features"):
        model.query(X[:, :3])


def test_a_cold_start_needs_no_classes():
    X, y = data(80)
    model = SparingClassifier(**SMALL)
    asked = model.query(X)
    model.update(X, asked).partial_fit(X[asked], y[asked])
    assert list(model.classes_) == [0, 1, 2]
    assert model._strategy.clock == 80


def test_costs_hold_from_the_first_label_on():
    X, y = data(80, n_classes=2)
    costs = [{"announced": 0, "true": 1, "cost": 5.0}]
    model = SparingClassifier(costs=costs, **SMALL)
    model.update(X, model.query(X)).partial_fit(X, y)
    assert model._strategy.game.costs[0, 1] == 5.0
    model.set_params(query_cost=0.1).partial_fit(X[:1], y[:1])
    assert model._strategy.n_labels == 81, "a parameter that is changed matters at the next fit"


@pytest.mark.parametrize(
    "classifier",
    [
        RandomForestClassifier(10),
        LogisticRegression(),
        make_pipeline(StandardScaler(), GaussianNB()),
    ],
    ids=lambda one: type(one).__name__,
)
def test_any_scikit_learn_classifier_is_the_model_inside(classifier):
    game = sp.label_efficient(3)
    X = np.random.default_rng(0).normal(size=(150, 3)).astype(np.float32)
    y = np.where(X[:, 0] > 0.3, 2, (X[:, 1] > 0).astype(int))
    strategy, again = (
        sp.Sparing(game, 3, network=SklearnEnsemble(classifier, 3), seed=0, horizon=150) for _ in range(2)
    )
    rounds = list(sp.play(strategy, game, zip(X, y, strict=True)))
    assert sum(r.action == 3 for r in rounds) < 140
    assert np.mean(strategy.scores(X).argmax(1) == y) > 0.8
    again.load_state_dict(strategy.state_dict())
    assert (again.scores(X) == strategy.scores(X)).all(), "what it has seen makes the same model again"


def test_an_estimator_inside_with_options_by_prefix():
    X, y = load_iris(return_X_y=True)
    model = SparingClassifier(estimator=RandomForestClassifier(5), estimator__max_depth=1).fit(X, y)
    inside = model._strategy.knowledge.beliefs.ensemble
    assert isinstance(inside, SklearnEnsemble)
    assert {one.max_depth for one in inside._models} == {1}
    assert clone(model).get_params()["estimator__max_depth"] == 1
    assert model.score(X, y) > 0.5
    with pytest.raises(ValueError, match="gives no probabilities"):
        SparingClassifier(estimator=LinearSVC()).fit(X, y)
    with pytest.raises(ValueError, match="inside 'sparing', not inside 'margin'"):
        SparingClassifier("margin", estimator=LogisticRegression()).fit(X, y)


def test_a_pipeline_asks_and_learns():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    X, y = X[order], y[order]
    model = ActivePipeline([("scale", StandardScaler()), ("classifier", SparingClassifier(classes=[0, 1, 2]))])
    asked, utilities = model.query(X[:50], return_utilities=True)
    assert len(utilities) == 50
    assert not hasattr(model[0], "mean_"), "query changes nothing"
    model.update(X[:50], asked).partial_fit(X[asked], y[asked])
    mean = model[0].mean_.copy()
    model.partial_fit(X[50:100], y[50:100])
    assert (model[0].mean_ == mean).all(), "the yardstick stays"
    assert model[-1]._strategy.clock == 100, "rows that update was told of are counted once"
    assert model.score(X[100:], y[100:]) > 0.85
    assert model.fit(X, y)[0].mean_.tolist() != mean.tolist()
