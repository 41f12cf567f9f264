"""Statistics held against scipy and against what they promise."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sparingly.experiments.reports.statistical_tests import bootstrap, holm, paired, summarise, welch, win_counts

rng = np.random.default_rng(0)
ONE, TWO = rng.normal(100, 20, size=25), rng.normal(110, 40, size=25)


def test_welch_is_scipys():
    assert welch(ONE, TWO) == pytest.approx(stats.ttest_ind(ONE, TWO, equal_var=False, alternative="less").pvalue)
    assert welch(TWO, ONE) == pytest.approx(1 - welch(ONE, TWO))


def test_paired_is_scipys():
    comparison = paired(ONE, TWO)
    assert comparison.p_value == pytest.approx(stats.ttest_rel(TWO, ONE).pvalue)
    assert comparison.difference == pytest.approx((TWO - ONE).mean())
    assert comparison.interval[0] < comparison.difference < comparison.interval[1]
    with pytest.raises(ValueError, match="25 and 24 values"):
        paired(ONE, TWO[:-1])


def test_the_bootstrap_interval_covers_the_mean_as_often_as_it_says():
    draws = np.random.default_rng(1)
    hits = 0
    for seed in range(200):
        low, high = bootstrap(draws.normal(5, 2, size=40), draws=1000, seed=seed)
        hits += low <= 5 <= high
    assert 180 <= hits <= 198


def test_the_bootstrap_has_its_own_seed():
    assert bootstrap(ONE) == bootstrap(ONE)
    assert bootstrap(ONE) != bootstrap(ONE, seed=1)


def test_summary():
    summary = summarise(ONE)
    assert summary.error == pytest.approx(stats.sem(ONE))
    assert summary.lower <= summary.median <= summary.upper
    assert np.isnan(summarise([3.0]).error)


@given(st.dictionaries(st.text(min_size=1), st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_lowers_a_p_value_and_keeps_their_order(p_values):
    corrected = holm(p_values)
    assert list(corrected) == list(p_values)
    for name, p in p_values.items():
        assert p <= corrected[name] <= 1
    order = sorted(p_values, key=p_values.__getitem__)
    assert all(corrected[a] <= corrected[b] for a, b in pairwise(order))


def test_holm_by_hand():
    assert holm({"a": 0.01, "b": 0.02, "c": 0.04, "d": 0.5}) == pytest.approx(
        {"a": 0.04, "b": 0.06, "c": 0.08, "d": 0.5}
    )
    assert np.isnan(holm({"a": float("nan")})["a"])


@given(st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=1, max_size=20))
def test_every_seed_has_a_winner(rows):
    wins = win_counts(dict(zip("abc", np.array(rows, dtype=float).T, strict=True)))
    assert sum(w.total for w in wins.values()) >= len(rows)
    assert sum(w.total - w.shared for w in wins.values()) <= len(rows)
    if not any(w.shared for w in wins.values()):
        assert sum(w.total for w in wins.values()) == len(rows)


@pytest.mark.parametrize("bad", [[], [[1.0]], [1.0, float("nan")]])
def test_a_sample_is_a_list_of_numbers(bad):
    with pytest.raises(ValueError, match="sample"):
        summarise(bad)
