"""Agreement beyond chance, held against published examples."""

from __future__ import annotations

import numpy as np
import pytest

from sparingly.live.quality.agreement import Rating, _alpha, agreement, fleiss_kappa


def test_fleiss_kappa_is_that_of_the_textbook():
    """Fourteen people, ten patients, five categories: the example of Fleiss' method in the encyclopedias, 0.210."""
    counts = np.array(
        [
            [0, 0, 0, 0, 14],
            [0, 2, 6, 4, 2],
            [0, 0, 3, 5, 6],
            [0, 3, 9, 2, 0],
            [2, 2, 8, 1, 1],
            [7, 7, 0, 0, 0],
            [3, 2, 6, 3, 0],
            [2, 5, 3, 2, 2],
            [6, 5, 2, 1, 0],
            [0, 2, 2, 3, 7],
        ]
    )
    assert fleiss_kappa(counts) == pytest.approx(0.210, abs=5e-4)


def test_alpha_is_that_of_its_author():
    """Krippendorff's example of two observers and ten items with two categories: 0.095."""
    a = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    b = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    assert _alpha(np.array([a, b], dtype=float)) == pytest.approx(0.095, abs=1e-3)


def test_items_with_one_answer_or_one_class_tell_nothing():
    found = agreement([Rating(0, "Ada", 1), Rating(1, "Ada", 1), Rating(1, "Ben", 1)])
    assert (found.items, found.alpha, found.fleiss) == (1, None, None)
    assert found.pairs == (("Ada", "Ben", 1, 1, None),)
    assert agreement([]) == (0, None, None, ())


def test_the_last_word_of_a_person_counts():
    found = agreement(
        [Rating(0, "Ada", 1), Rating(0, "Ada", 0), Rating(0, "Ben", 0), Rating(1, "Ada", 1), Rating(1, "Ben", 1)]
    )
    assert found.pairs[0].agreed == 2
    assert found.pairs[0].kappa == 1.0
