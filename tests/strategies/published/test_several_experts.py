"""Rivals that learn from experts who may be wrong do what their definitions say."""

from __future__ import annotations

import numpy as np
import pytest

import sparingly as sp

GPT, LLAMA, HUMAN = sp.Expert("gpt", 0.01), sp.Expert("llama", 0.02), sp.Expert("human", 1.0, gold=True)


def played(name, n=400, accuracy=0.9, spread=1.0, experts=(GPT, HUMAN), **options):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n)
    X = spread * rng.normal(size=(n, 5)).astype(np.float32)
    X[np.arange(n), y] += 4
    answers = [np.where(rng.random(n) < accuracy, y, (y + 1) % 3) for _ in experts]
    game = sp.label_efficient(3, experts=list(experts))
    strategy = sp.strategies()[name](game, 5, seed=0, **options)
    said = [{e.name: int(a[t]) for e, a in zip(experts, answers, strict=True) if not e.gold} for t in range(n)]
    rounds = list(sp.play(strategy, game, zip(X, y.tolist(), said, strict=True)))
    return rounds, y, answers[0], strategy


def calls(rounds, name="gpt"):
    return [one.t for one in rounds if name in one.asked]


@pytest.mark.parametrize("name", ["online_cascade", "ocats", "cache_and_distil", "confidence_dial", "several_teachers"])
def test_a_student_that_has_learned_calls_its_teacher_less(name):
    rounds, _, gpt, _ = played(name)
    early, late = (sum(start < t <= start + 100 for t in calls(rounds)) for start in (0, 300))
    assert late < 0.6 * early
    assert not any("human" in one.asked for one in rounds) or name == "several_teachers"
    wrong = np.mean([one.prediction != one.outcome for one in rounds[200:]])
    assert wrong < np.mean(gpt != [one.outcome for one in rounds]) + 0.02, "the student is as good as its teacher"


def test_a_committee_asks_within_its_budget():
    rounds, _, _, _ = played("cache_and_distil", criterion="committee", budget=0.2, spread=3.0)
    assert 40 <= len(calls(rounds)) <= 81


def test_the_dial_at_one_asks_always_and_at_zero_only_until_it_has_learned():
    assert len(calls(played("confidence_dial", n=100, threshold=1.0)[0])) == 100
    assert len(calls(played("confidence_dial", n=100, threshold=0.0)[0])) == 20
    with pytest.raises(ValueError, match="threshold is 2"):
        played("confidence_dial", threshold=2)
    with pytest.raises(ValueError, match="expert is 'claude': the experts are gpt, human"):
        played("confidence_dial", expert="claude")


def test_explore_then_trust_checks_the_first_answers_and_overrules_an_expert_who_is_always_wrong():
    rounds, _, _, _ = played("explore_then_trust", accuracy=0.0, n=300)
    assert calls(rounds, "human") == list(range(1, 61))
    assert np.mean([one.prediction == one.outcome for one in rounds[60:]]) > 0.9


def test_the_majority_outvotes_one_who_is_wrong():
    rounds, _, gpt, _ = played("majority", accuracy=0.8, experts=(GPT, LLAMA, sp.Expert("claude", 0.03)))
    right = np.mean([one.prediction == one.outcome for one in rounds])
    assert right > np.mean(gpt == [one.outcome for one in rounds]) + 0.05
    assert rounds[0].cost - (rounds[0].prediction != rounds[0].outcome) == pytest.approx(0.06)


def test_an_answer_as_a_feature_saves_truths():
    rounds, _, _, strategy = played("answer_as_feature", accuracy=0.97, spread=4.0, n=200)
    assert len(calls(rounds)) == 200
    assert len(calls(rounds, "human")) < 150
    assert np.mean([one.prediction == one.outcome for one in rounds[120:]]) > 0.85
    with pytest.raises(ValueError, match="gpt may be wrong"):
        played("answer_as_feature", experts=(GPT,))
    assert strategy.inner.n_features == 8


@pytest.mark.parametrize(("name", "most"), [("center_classifier", 14), ("hull_classifier", 150)])
def test_classifiers_by_centers_and_hulls_announce_what_is_near(name, most):
    rounds, _, _, _ = played(name, experts=(HUMAN,), spread=0.5)
    assert 3 <= len(calls(rounds, "human")) <= most
    assert np.mean([one.prediction == one.outcome for one in rounds]) > 0.97
    with pytest.raises(ValueError, match="gpt may be wrong"):
        played(name)


def test_a_hull_with_threshold_0_announces_only_inside():
    careful, bold = (
        len(calls(played("hull_classifier", n=80, experts=(HUMAN,), threshold=h)[0], "human")) for h in (0, 0.9)
    )
    assert careful > 50 > 20 > bold
