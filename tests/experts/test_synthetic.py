"""Synthetic experts err as often, and in the way, that they are said to."""

from __future__ import annotations

import numpy as np
import pytest

from sparingly.experts.synthetic import SyntheticExpert, described_expert

RNG = np.random.default_rng(0)
Y = RNG.integers(4, size=8000)
X = RNG.normal(size=(8000, 3))


def right(said, where=slice(None)):
    return float((said == Y)[where].mean())


def said(seed=1, others=None, **options):
    return SyntheticExpert(**options).answers(X, Y, 4, seed=seed, others=others)


def test_chance_class_silence_and_change():
    assert right(said(accuracy=0.7)) == pytest.approx(0.7, abs=0.02)
    weak = said(accuracy=0.9, weak_class=1, there=0.3)
    assert [right(weak, k == Y) for k in (0, 1)] == pytest.approx([0.9, 0.3], abs=0.03)
    quiet = said(accuracy=1.0, silent=0.25)
    assert (quiet < 0).mean() == pytest.approx(0.25, abs=0.02)
    assert right(quiet, quiet >= 0) == 1
    worse = said(accuracy=0.9, after=5000, then=0.5)
    assert [right(worse, slice(5000)), right(worse, slice(5000, None))] == pytest.approx([0.9, 0.5], abs=0.03)


def test_a_weak_region_is_a_side_of_a_plane():
    answers = said(accuracy=1.0, weak_region=0.3, there=0.0)
    assert right(answers) == pytest.approx(0.7, abs=0.001)
    weights = np.linalg.lstsq(np.c_[X, np.ones(8000)], 1.0 * (answers == Y), rcond=None)[0]
    guessed = np.c_[X, np.ones(8000)] @ weights > 0.5
    assert (guessed == (answers == Y)).mean() > 0.9


def test_a_follower_errs_with_whom_it_follows():
    first = said(seed=2, accuracy=0.6)
    second = said(seed=3, accuracy=0.6, follows="gpt", together=0.9, others={"gpt": first})
    wrong = first != Y
    assert (second == first)[wrong].mean() > 0.9
    assert right(second) == pytest.approx(0.6, abs=0.03)
    with pytest.raises(ValueError, match="follows is 'llama': there is no such synthetic expert"):
        said(follows="llama")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpt", "the expert 'gpt' must be name:price"),
        ("gpt:-1", "the price of gpt is -1"),
        ("gpt:0.1:silver", "'silver' in the expert 'gpt:0.1:silver' is none of gold, accuracy"),
        ("gpt:0.1:accuracy=high", "accuracy is 'high' in the expert"),
        ("gpt:0.1:accuracy=2", "accuracy is 2.0: it must be from 0 to 1"),
    ],
)
def test_words_that_make_no_sense_are_refused_with_the_word(text, message):
    with pytest.raises(ValueError, match=message):
        described_expert(text)


def test_a_weak_class_must_exist():
    with pytest.raises(ValueError, match="weak_class is 9: the classes are 0 to 3"):
        said(weak_class=9)
