"""What classes are called is knowledge, which fades as labels come; names that say nothing do no harm."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import sparingly as sp
from sparingly.strategies.sparing.beliefs import sharpness
from sparingly.strategies.sparing.class_names import ClassNames

CLASSES, WIDTH = 12, 40


def sparing(game, **options):
    """With narrow networks, which learn this stream as well."""
    return sp.Sparing(game, WIDTH, width=24, **options)


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def stream():
    """Embeddings around a direction a class, and names near these directions."""
    rng = np.random.default_rng(7)
    centres = rng.normal(size=(CLASSES, WIDTH))
    y = rng.integers(CLASSES, size=450)
    X = unit(centres[y] + 1.2 * rng.normal(size=(len(y), WIDTH)) + 2.0)
    names = unit(centres + 0.8 * rng.normal(size=centres.shape) - 1.0)
    return X, y, names


def played(stream, names, rounds=450, seed=3):
    X, y, _ = stream
    game = sp.label_efficient(CLASSES)
    strategy = sparing(game, class_vectors=names, seed=seed)
    found = list(sp.play(strategy, game, zip(X[:rounds], y[:rounds].tolist(), strict=True)))
    return strategy, sum(one.cost for one in found)


@pytest.fixture(scope="module")
def named(stream):
    return played(stream, stream[2])


def test_names_save_and_names_of_other_classes_do_no_harm(stream, named):
    cost = played(stream, None)[1]
    assert named[1] < 0.97 * cost
    assert played(stream, np.roll(stream[2], 1, axis=0))[1] <= 1.05 * cost


def test_a_state_with_names_goes_on_to_the_bit(stream, named):
    X, y, names = stream
    game, strategy = sp.label_efficient(CLASSES), played(stream, names, rounds=100)[0]
    assert strategy.knowledge.beliefs._names.share > 0.1
    other = sparing(game, class_vectors=names, seed=3).load_state_dict(strategy.state_dict())
    np.testing.assert_array_equal(strategy.scores(X), other.scores(X))
    later = [list(sp.play(one, game, zip(X[100:200], y[100:200].tolist(), strict=True))) for one in (strategy, other)]
    assert [one.action for one in later[0]] == [one.action for one in later[1]]


def test_a_state_without_names_is_taken_over_by_a_strategy_with_names(stream):
    X, y, names = stream
    game, before = sp.label_efficient(CLASSES), played(stream, None, rounds=150)[0]
    after = sparing(game, class_vectors=names, seed=3).load_state_dict(before.state_dict())
    np.testing.assert_allclose(after.scores(X[:20]), before.scores(X[:20]), atol=1e-6)
    assert len(list(sp.play(after, game, zip(X[150:250], y[150:250].tolist(), strict=True)))) == 100


def test_a_class_that_is_added_has_a_name_too():
    game = sp.label_efficient(2, classes=["lost_card", "lateTransfer"])
    strategy = sp.Sparing(game, 256, class_vectors="static", seed=0)
    strategy.add_class("exchange rates")
    names = strategy.knowledge.beliefs._names
    vectors = names.vectors
    assert len(vectors) == 3
    expected = sp.encoders.text_encoder("static")(["lost card", "late Transfer", "exchange rates"])
    np.testing.assert_array_equal(vectors.numpy(), expected)


@pytest.mark.parametrize("wrong", [np.ones((2, WIDTH)), np.full((CLASSES, WIDTH), np.nan)])
def test_names_of_another_shape_are_refused(wrong):
    with pytest.raises(ValueError, match=r"give finite numbers of shape \(12, 40\)"):
        sparing(sp.label_efficient(CLASSES), class_vectors=wrong)


def test_names_that_say_nothing_are_spread_evenly():
    generator = torch.Generator().manual_seed(0)
    names = ClassNames(torch.randn(5, 30, generator=generator))
    rows, y = torch.randn(400, 30, generator=generator), torch.randint(5, (400,), generator=generator)
    assert float(names.calibrate(rows, y).amax(1).mean()) < 0.4


def test_a_model_judged_by_hard_labels_is_held_surer_on_an_easy_stream():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(6000, 3, generator=generator) * 3
    y = torch.multinomial(logits.softmax(1), 1, generator=generator)[:, 0]
    dull = (logits / 2).softmax(1)
    hard = (dull.amax(1) < 0.8) | (torch.arange(6000) % 10 == 0)
    assert sharpness(dull[hard], y[hard], dull) > 1.5
    assert 0.8 < sharpness(logits.softmax(1), y, logits.softmax(1)) < 1.25


def test_names_are_known_too_where_a_text_may_be_missing(tmp_path):
    schema = sp.encoders.learn_columns({"message": ["a new card please", None]}, text=["message"], encoder="hashing")
    agent = sp.Agent(["lost_card", "late transfer"], path=tmp_path / "a.db", schema=schema, encoder="hashing")
    assert agent.observe({"message": None}).asks
    game = sp.label_efficient(2, classes=["lost_card", "late transfer"])
    vectors = sp.Sparing(game, 513, class_vectors="hashing").knowledge.beliefs._names.vectors.numpy()
    np.testing.assert_array_equal(vectors[:, :512], sp.encoders.text_encoder("hashing")(["lost card", "late transfer"]))
    assert not vectors[:, 512].any()


def test_beside_experts_who_may_be_wrong_names_change_nothing(stream):
    X, y, names = stream
    experts = [sp.Expert("model", 0.01), sp.Expert("human", 1.0, gold=True)]
    game = sp.label_efficient(CLASSES, experts=experts)
    items = [
        (x, c, {"model": (c + (t % 4 == 0)) % CLASSES}) for t, (x, c) in enumerate(zip(X, y.tolist(), strict=True))
    ]
    with_names, without = (
        [one.action for one in sp.play(sparing(game, class_vectors=one, seed=3), game, items[:60])]
        for one in (names, None)
    )
    assert with_names == without


def test_before_any_label_an_announcement_goes_by_names(stream):
    """Where a question is too dear to be asked, only names are left to go by; a block is decided like single rounds."""
    X, y, names = stream
    game = sp.label_efficient(CLASSES, query_cost=500.0)
    mistakes = {}
    for what, vectors in (("names", names), ("no names", None)):
        strategy = sparing(game, class_vectors=vectors, horizon=len(y))
        rounds = list(sp.play(strategy, game, zip(X, y.tolist(), strict=True)))
        mistakes[what] = sum(one.prediction != one.outcome for one in rounds)
    assert mistakes["names"] < 0.7 * mistakes["no names"]
    alone = sparing(game, class_vectors=names, horizon=len(y))
    alone_said = [alone.assess(x[None]).values["probability"][0] for x in X[:20]]
    np.testing.assert_array_equal(torch.stack(alone_said), alone.assess(X[:20]).values["probability"])


def test_before_there_is_a_model_a_common_class_speaks_against_a_name(stream):
    X, _, names = stream
    strategy = sparing(sp.label_efficient(CLASSES), class_vectors=names)
    before = strategy.scores(X[:1])[0]
    rare = int(before.argmax())
    for x in X[1:19]:
        strategy.learn(x, CLASSES, strategy.game.feedback[CLASSES][(rare + 1) % CLASSES])
    assert strategy.scores(X[:1])[0, rare] < before[rare]
