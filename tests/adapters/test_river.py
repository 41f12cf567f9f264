"""The river adapter passes river's own checks and runs in its evaluation loops."""

import copy
import datetime as dt
import itertools

import numpy as np
import pytest
from river import (
    checks,
    compose,
    datasets,
    ensemble,
    evaluate,
    feature_extraction,
    linear_model,
    metrics,
    naive_bayes,
    preprocessing,
    stream,
    tree,
)

import sparingly as sp
from sparingly.adapters.river import ActiveClassifier
from sparingly.adapters.river_ensemble import RiverEnsemble


def easy(n, seed=0, classes=("cat", "dog")):
    rng = np.random.default_rng(seed)
    for x in rng.normal(size=(n, 4)):
        yield dict(zip("abcd", x.tolist(), strict=True)), classes[int(x[0] > 0)]


MODELS = {
    "Sparing": lambda: ActiveClassifier(options={"width": 4, "members": 2}),
    "a small network": lambda: ActiveClassifier(strategy="margin", options={"width": 4, "epochs": 2}),
    "a river classifier inside": lambda: ActiveClassifier(linear_model.LogisticRegression(), options={"members": 2}),
}
STREAMS = 3
"""That river has for a classifier: two classes, the same with numpy's truth values, and seven classes."""


KEPT = ("check_bounded_memory_growth", "check_pickling")
"""Of what a strategy keeps of its labels; the other checks are of what the adapter does, whatever the strategy."""


def river_checks():
    """Every check that river has, on every one of its streams: the one with seven classes for our own networks.

    Those with two classes are for a classifier inside, without the check that learns 2000 labels to look at memory.
    """
    for name, make in MODELS.items():
        named = [check.__name__ for check in checks.yield_checks(make())]
        for place, check in enumerate(named):
            seven, once = named[: place + 1].count(check) == STREAMS, named.count(check) == 1
            chosen = {
                "Sparing": check in KEPT and (seven or once),
                "a small network": check not in KEPT and (seven or once),
                "a river classifier inside": once or (not seven and check != "check_bounded_memory_growth"),
            }
            if chosen[name]:
                yield pytest.param(name, place, id=f"{name}-{place}-{check}")


def test_every_check_of_river_is_made_and_its_streams_are_divided_among_the_models():
    named = [check.__name__ for check in checks.yield_checks(MODELS["Sparing"]())]
    made = {param.id.rpartition("-")[2] for param in river_checks() if param.values[0] != "a river classifier inside"}
    assert made == set(named)
    assert {named.count(check) for check in named} == {1, STREAMS}


@pytest.mark.parametrize(("name", "place"), list(river_checks()))
def test_river_checks(name, place):
    model = MODELS[name]()
    check = next(itertools.islice(checks.yield_checks(model), place, None))
    assert check.__name__ not in model._unit_test_skips()
    check(model.clone())


def test_progressive_validation_counts_labels_and_learns():
    model = ActiveClassifier(preprocessing.StandardScaler(), options={"width": 20, "members": 3})
    last = list(evaluate.iter_progressive_val_score(easy(400), model, metrics.Accuracy(), step=100))[-1]
    assert 60 <= last["Samples used"] < 250
    assert last["Accuracy"].get() > 0.85
    assert (
        evaluate.progressive_val_score(easy(200, classes=(False, True)), model.clone(), metrics.LogLoss()).get() < 0.7
    )


@pytest.mark.parametrize("delay", [30, dt.timedelta(minutes=30)])
def test_labels_may_be_late(delay):
    moments = dt.datetime(2026, 1, 1)
    late = (({**x, "at": i}, y) for i, (x, y) in enumerate(easy(500)))
    moment = (lambda x: moments + dt.timedelta(minutes=x["at"])) if isinstance(delay, dt.timedelta) else None
    model = ActiveClassifier(compose.Select("a", "b", "c", "d"), options={"width": 20, "members": 3})
    score = evaluate.progressive_val_score(late, model, metrics.Accuracy(), moment=moment, delay=delay)
    assert score.get() > 0.8
    assert not model._asked  # every answer found its question


def test_an_answer_is_learned_for_the_observation_as_it_was_seen():
    model = ActiveClassifier(preprocessing.StandardScaler(), strategy="always_ask")
    first = {"a": 1.0}
    model.predict_one(first)
    for value in range(50):
        model.predict_one({"a": float(value)})
    as_seen = copy.deepcopy(next(iter(model._asked.values()))[0][0])
    model.learn_one(first, "cat")
    assert model._play._labels[0][0] == as_seen == {"a": 0.0}


def test_features_and_classes_come_and_go():
    model = ActiveClassifier(strategy="always_ask")
    assert model.predict_one({"a": 1.0}) == (None, True)
    assert model.predict_proba_one({}) == ({}, True)
    for k in range(40):
        model.learn_one({f"feature {k}": 1.0, "word": f"w{k}", "nothing": None}, f"class {k % 5}")
    probability, asks = model.predict_proba_one({"feature 7": 1.0, "never seen": 2.0})
    assert set(probability) == {f"class {k}" for k in range(5)}
    assert sum(probability.values()) == pytest.approx(1)
    assert asks


def test_growing_keeps_what_was_learned():
    model = ActiveClassifier(options={"width": 20, "members": 3})
    for x, y in easy(300):
        if model.predict_one(x)[1]:
            model.learn_one(x, y)
    right = [model.predict_one({**x, **{f"new {i}": 0.0 for i in range(20)}})[0] == y for x, y in easy(200, seed=1)]
    assert np.mean(right) > 0.9


def test_features_beyond_the_most_share_places():
    model = ActiveClassifier(strategy="always_ask", max_features=16)
    for k in range(100):
        model.learn_one({f"word {k}": 1.0}, k % 2)
    assert model._play._strategy.n_features == 16


def test_one_class_for_long_does_not_mean_asking_for_ever():
    model = ActiveClassifier(options={"width": 20, "members": 2})
    asked = 0
    for x, _ in easy(300):
        label, ask = model.predict_one(x)
        asked += ask
        assert label in (None, "only")
        if ask:
            model.learn_one(x, "only")
    assert asked < 100


def test_costs_steer_what_is_announced():
    costs = [{"announced": "cat", "true": "dog", "cost": 20.0}]
    model = ActiveClassifier(classes=["cat", "dog"], costs=costs, options={"width": 20, "members": 3})
    rng = np.random.default_rng(0)
    for _ in range(150):
        x = {"a": rng.normal()}
        model.predict_one(x)
        model.learn_one(x, "dog" if rng.random() < 0.2 else "cat")
    assert {model.predict_one({"a": rng.normal()})[0] for _ in range(20)} == {"dog"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strategy": "clairvoyant"}, "there is no strategy 'clairvoyant'"),
        ({"costs": [[0, 1], [1, 0]]}, "costs are given but not the classes"),
        ({"classes": ["one"]}, r"classes is \['one'\]"),
        ({"classifier": tree.HoeffdingTreeClassifier(), "strategy": "margin"}, "not inside 'margin'"),
        ({"classifier": linear_model.LinearRegression()}, "neither a classifier nor a transformer"),
    ],
)
def test_what_makes_no_sense_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        ActiveClassifier(**arguments).predict_one({"a": 1.0})


def test_a_binary_classifier_is_refused_where_there_are_more_classes():
    with pytest.raises(ValueError, match="LogisticRegression knows two classes, not 3"):
        RiverEnsemble(linear_model.LogisticRegression(), 3)


def test_an_unknown_label_is_named():
    model = ActiveClassifier(classes=["cat", "dog"])
    with pytest.raises(ValueError, match="label 'cow' is none of the classes 'cat', 'dog'"):
        model.learn_one({"a": 1.0}, "cow")
    assert model.predict_one({"a": 2.0})[1]
    with pytest.raises(ValueError, match="label 'cow'"):
        model.learn_one({"a": 2.0}, "cow")
    assert len(model._asked) == 1
    with pytest.raises(ValueError, match="feature 'a' is inf"):
        model.predict_one({"a": float("inf")})


def test_text_through_a_pipeline_with_a_classifier_at_its_end():
    words = {"spam": ["win", "money", "now"], "ham": ["meet", "for", "lunch"]}
    rng = np.random.default_rng(0)
    texts = [(y, " ".join(rng.choice(words[y] + ["the", "a", "we"], size=5))) for y in rng.choice(list(words), 120)]
    model = ActiveClassifier(feature_extraction.BagOfWords(on="text") | naive_bayes.MultinomialNB())
    right = []
    for y, text in texts:
        label, ask = model.predict_one({"text": text})
        right.append(label == y)
        if ask:
            model.learn_one({"text": text}, y)
    assert np.mean(right[60:]) > 0.9


def test_at_the_end_of_a_pipeline():
    model = preprocessing.StandardScaler() | ActiveClassifier(options={"width": 20, "members": 3})
    asked = 0
    for x, y in easy(300):
        _, ask = model.predict_one(x)
        asked += ask
        if ask:
            model.learn_one(x, y)
    assert 40 <= asked < 200


def test_after_a_scaler_that_moves_on_an_answer_still_finds_its_question():
    model = preprocessing.StandardScaler() | ActiveClassifier(options={"width": 20, "members": 3})
    active = model["ActiveClassifier"]
    for x, y in easy(60):
        _, ask = model.predict_one(x)
        if ask:
            model.learn_one(x, y)
    assert not active._asked
    assert active._play._strategy.clock == 60, "an answer is not a round of its own"


def test_a_scaler_inside_does_not_blur_what_a_strategy_scales_by_itself():
    plain, scaled = (
        ActiveClassifier(step, options={"width": 20, "members": 3}) for step in (None, preprocessing.StandardScaler())
    )
    for x, y in easy(150):
        for model in (plain, scaled):
            model.last = model.predict_one(x)
            if model.last[1]:
                model.learn_one(x, y)
        assert plain.last == scaled.last
    other = ActiveClassifier(preprocessing.StandardScaler(), strategy="margin")
    assert len(other._transformers) == 1, "a strategy that does not scale needs the scaler"


CLASSIFIERS = [
    tree.HoeffdingTreeClassifier(),
    preprocessing.StandardScaler() | linear_model.LogisticRegression(),
    ensemble.BaggingClassifier(linear_model.LogisticRegression(), n_models=2),
]


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=str)
def test_any_river_classifier_is_the_model_inside(classifier):
    game = sp.label_efficient(2)
    X = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    strategy = sp.Sparing(game, 3, network=RiverEnsemble(classifier, 2), seed=0)
    rounds = list(sp.play(strategy, game, zip(X, y, strict=True)))
    assert sum(r.cost for r in rounds) < 150
    assert np.mean(strategy.scores(X).argmax(1) == y) > 0.85


def test_a_strategy_with_a_river_tree_inside_keeps_the_contract():
    def make(game, n_features, *, seed=0):
        ensemble_ = RiverEnsemble(tree.HoeffdingTreeClassifier(leaf_prediction="mc"), game.n_outcomes, members=2)
        return sp.Sparing(game, n_features, network=ensemble_, seed=seed)

    sp.strategies.check(make, short=True)


def test_river_data_with_many_classes():
    model = ActiveClassifier(preprocessing.StandardScaler(), options={"width": 20, "members": 3})
    score = evaluate.progressive_val_score(datasets.ImageSegments().take(300), model, metrics.Accuracy())
    assert score.get() > 0.5


def test_a_stream_from_scikit_learn():
    from sklearn.datasets import load_iris

    model = ActiveClassifier(options={"width": 20, "members": 3})
    rows = stream.iter_sklearn_dataset(load_iris(), shuffle=True, seed=1)
    assert evaluate.progressive_val_score(rows, model, metrics.Accuracy()).get() > 0.5


def test_a_scaler_before_it_in_a_pipeline_changes_next_to_nothing():
    rows = [({"a": x[0] * 100, "b": 7 + x[1], "c": float(x[2] > 0)}, bool(x[0] > 0)) for x in _normal(200)]
    asked: dict[bool, list[int]] = {}
    for scaled in (True, False):
        alone = ActiveClassifier(options={"width": 20, "members": 3}, seed=0)
        model = preprocessing.StandardScaler() | alone if scaled else alone
        asked[scaled] = []
        for t, (x, label) in enumerate(rows):
            if model.predict_one(x)[1]:
                asked[scaled].append(t)
                model.learn_one(x, label)
        assert alone._scaling.holds is scaled
        assert not alone._asked
    assert len(set(asked[True]) ^ set(asked[False])) <= 0.2 * len(asked[False])


@pytest.mark.parametrize("before", [preprocessing.MinMaxScaler, preprocessing.Normalizer, preprocessing.MaxAbsScaler])
def test_what_no_standardisation_makes_is_left_as_it_is(before):
    alone = ActiveClassifier(seed=0)
    model = before() | alone
    for x in _normal(12):
        row = {"a": x[0] * 100, "b": 7 + x[1]}
        model.predict_one(row)
        model.learn_one(row, bool(x[0] > 0))
    assert not alone._scaling.holds


def test_zeros_and_words_are_no_sign_of_a_scaler():
    words, sparse = ActiveClassifier(seed=0), ActiveClassifier(seed=0)
    words.predict_one({"a": "red", "b": 0.0})
    assert not words._scaling.holds
    for row in ({"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 0.0}):
        sparse.predict_one(row)
    assert not sparse._scaling.holds
    assert [seen["a"] for ((seen, _),) in sparse._asked.values()] == [0.0, 1.0]


def _normal(n: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, 3))
