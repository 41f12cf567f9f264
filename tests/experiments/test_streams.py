"""Streams: the split is by seed, the scaling never looks ahead, noise and drift do what they say."""

from __future__ import annotations

import numpy as np
import pytest

from sparingly.experiments.csv_files import DataError
from sparingly.experiments.datasets import Dataset, from_arrays, load
from sparingly.experiments.streams import Drift, stream


def test_the_split_follows_the_permutation():
    digits = load("digits")
    order = np.random.default_rng(3).permutation(len(digits))
    one = stream(digits, 3, horizon=100)
    cut = int(0.15 * len(digits))
    np.testing.assert_array_equal(one.held_out, order[:cut])
    np.testing.assert_array_equal(one.index, order[cut : cut + 100])
    np.testing.assert_array_equal(one.X, digits.X[one.index])
    assert not set(one.index) & set(one.held_out)
    assert len(stream(digits, 3)) == len(digits) - cut, "the stream ends with the data"
    assert not np.array_equal(stream(digits, 4, horizon=100).index, one.index)


def test_an_own_test_set_is_kept():
    rng = np.random.default_rng(0)
    images = rng.integers(256, size=(40, 1, 2, 2)).astype(np.uint8)
    dataset = Dataset("tiny", images[:30], np.arange(30) % 2, ("a", "b"), "paper", True, images[30:], np.arange(10) % 2)
    one = stream(dataset, 0)
    assert sorted(one.index) == list(range(30))
    X, y = one.test()
    assert X.shape == (10, 1, 2, 2)
    np.testing.assert_array_equal(y, np.arange(10) % 2)


def hard_table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(5, 3, size=(n, 4)).astype(np.float32)
    X[:, 1] = 7.0
    X[rng.random(n) < 0.2, 2] = np.nan
    X[:, 3] = rng.random(n) < 0.01
    return X, np.arange(n) % 2


def test_streaming_is_the_definition_and_never_looks_ahead():
    X, y = hard_table()
    one = stream(from_arrays(X, y, preprocessing="streaming"), 0)
    raw = X[one.index].astype(float)
    for t in (0, 1, 7, 100, 300):
        seen = raw[: t + 1]
        mean, deviation = np.nanmean(seen, axis=0), np.nanstd(seen, axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = np.where((deviation > 0) & ~np.isnan(raw[t]), (raw[t] - mean) / deviation, 0)
        np.testing.assert_allclose(one.X[t], np.clip(expected, -10, 10), atol=1e-4)
    later = X.copy()
    later[one.index[200:]] *= 100
    other = stream(from_arrays(later, y, preprocessing="streaming"), 0)
    np.testing.assert_array_equal(one.X[:200], other.X[:200])


def test_the_held_out_set_is_scaled_by_what_was_known_then():
    X, y = hard_table()
    one = stream(from_arrays(X, y, preprocessing="streaming"), 0)
    early, late = one.test(10)[0], one.test(300)[0]
    assert np.isfinite(early).all()
    assert not np.array_equal(early, late)
    column = X[one.held_out, 0]
    seen = X[one.index[:10], 0].astype(float)
    np.testing.assert_allclose(early[:, 0], np.clip((column - seen.mean()) / seen.std(), -10, 10), rtol=1e-4, atol=1e-4)


def test_encoded_fills_what_is_missing_by_the_mean_so_far_and_scales_nothing():
    X, y = hard_table()
    one = stream(from_arrays(X, y), 0)
    raw = X[one.index]
    known = ~np.isnan(raw)
    np.testing.assert_array_equal(one.X[known], raw[known])
    t = int(np.argwhere(~known[50:, 2])[0][0]) + 50
    assert one.X[t, 2] == pytest.approx(np.nanmean(raw[:t, 2]), rel=1e-4)


def test_noise_changes_the_answers_and_not_the_truth():
    digits = load("digits")
    clean, noisy = stream(digits, 0), stream(digits, 0, noise=0.5)
    np.testing.assert_array_equal(clean.y, noisy.y)
    np.testing.assert_array_equal(clean.answers, clean.y)
    assert 0.38 < (noisy.answers != noisy.y).mean() < 0.52
    assert [outcome for _, outcome in noisy] == noisy.answers.tolist()


def test_drift_swaps_two_classes():
    digits = load("digits")
    clean, abrupt = stream(digits, 0), stream(digits, 0, drift=Drift(0.5, 0.5, (3, 8)))
    half = len(clean) // 2
    np.testing.assert_array_equal(clean.y[:half], abrupt.y[:half])
    np.testing.assert_array_equal(Drift(classes=(3, 8)).swaps(clean.y[half:]), abrupt.y[half:])
    np.testing.assert_array_equal(abrupt.test(0)[1], clean.test(0)[1])
    assert (abrupt.test()[1] != clean.test()[1]).any()
    gradual = stream(digits, 0, drift=Drift(0.25, 0.75, (3, 8)))
    touched = np.isin(clean.y, (3, 8)) & (np.arange(len(clean)) > half * 0.8) & (np.arange(len(clean)) < half * 1.2)
    assert 0.2 < (gradual.y != clean.y)[touched].mean() < 0.8


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"noise": 2.0}, "noise is 2.0"), ({"horizon": 0}, "horizon is 0")],
)
def test_bad_settings(settings, message):
    with pytest.raises(DataError, match=message):
        stream(load("digits"), 0, **settings)


def test_a_drift_has_an_order():
    with pytest.raises(DataError, match=r"a drift from 0\.7 to 0\.2"):
        Drift(0.7, 0.2)


def test_drawn_class_numbers_rename_nothing():
    digits = load("digits")
    plain, drawn = (stream(digits, seed=3, horizon=500, class_order=order) for order in ("sorted", "drawn"))
    assert np.array_equal(plain.index, drawn.index)
    assert not np.array_equal(plain.y, drawn.y)
    for one, other in ((plain.y, drawn.y), (plain.answers, drawn.answers), (plain.test()[1], drawn.test()[1])):
        assert [plain.dataset.classes[i] for i in one] == [drawn.dataset.classes[i] for i in other]
    again = stream(digits, seed=4, horizon=500, class_order="drawn")
    assert again.dataset.classes != drawn.dataset.classes
    with pytest.raises(DataError, match="class_order is 'hashed'"):
        stream(digits, seed=0, class_order="hashed")
