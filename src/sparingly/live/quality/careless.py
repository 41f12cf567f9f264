"""Who is careless: an e-process for each person, a bet that the person is right too seldom.

It is settled by answers whose truth is known, and by what the model held likely of the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

ALARM = 40.0
"""Twice the wealth of a bet against a person at which they are found careless. Of two bets, by truths alone and by
truths and the model, the mean counts, and someone who is right as often as asked for brings it to 20 with a probability
of at most one in twenty, however often one looks."""

GRID = (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85)
"""Shares of right answers, as parts of the one that is asked for, that a careless person may have."""

DOUBT = 0.3
"""The share of what the model holds likely that is given to chance where an answer is held against it."""

DOUBTS = tuple(i / 10 for i in range(11))
"""Such shares that are tried where the answers of other people tell how far the model can be trusted."""

PRIOR_RIGHT, PRIOR_WRONG = 19.0, 1.0
"""What is taken to be known of a person before the first check."""


def evidence(right: int, wrong: int, below: float) -> float:
    """How much a bet that a person is right less often than `below` has won, from answers whose truth is known.

    It is a mixture of bets, each of which is fair to someone who is right just so often, and loses against better ones.

    >>> [round(evidence(right, wrong, 0.8), 1) for right, wrong in [(0, 0), (19, 1), (12, 8), (8, 12)]]
    [1.0, 0.0, 2.7, 763.3]
    """
    if not 0 < below < 1:
        return 0.0
    bets = [math.exp(right * math.log(part) + wrong * math.log((1 - part * below) / (1 - below))) for part in GRID]
    return sum(bets) / len(bets)


def model_evidence(held: NDArray[np.float64], others: NDArray[np.float64], n_classes: int, below: float) -> float:
    """Evidence that someone is careless, from how likely the model held what they said before they said it, `[answer]`.

    Someone who is right with probability a, and else names any class, says it with probability a p + (1 - a) / K. The
    model may be wrong itself, most of all on the questions that people are asked: how much of p is given to chance is
    what makes the answers of the others likeliest. These are few, too, so against the person speaks only what no such
    share explains that fits the person and the others together.

    >>> careful, careless = np.tile([0.9, 0.05], 20), np.tile([0.9, 0.001, 0.001, 0.001], 10)
    >>> model_evidence(careful, careful, 10, 0.8) < 1, model_evidence(careless, careful, 10, 0.8) > 20
    (True, True)
    >>> model_evidence(careless, careful[:4], 10, 0.8) < 5
    True
    >>> model_evidence(careless, careless, 10, 0.8) < 1.5, model_evidence(careless, careful[:0], 10, 0.8)
    (True, 0.0)
    """
    if not 0 < below < 1 or not len(held) or not len(others):
        return 0.0
    by_others = [float(np.log(_said(others, doubt, below, n_classes)).sum()) for doubt in DOUBTS]
    best = int(np.argmax(by_others))
    together = [
        fit + float(np.log(_said(held, doubt, below, n_classes)).sum())
        for fit, doubt in zip(by_others, DOUBTS, strict=True)
    ]
    careless = [float(np.log(_said(held, DOUBTS[best], part * below, n_classes)).sum()) for part in GRID]
    return sum(math.exp(min(by_others[best] + one - max(together), 500.0)) for one in careless) / len(GRID)


def _said(held: NDArray[np.float64], doubt: float, accuracy: float, n_classes: int) -> NDArray[np.float64]:
    """How likely someone of this accuracy says what the model held to be so likely."""
    p = (1 - doubt) * held + doubt / n_classes
    return accuracy * p + (1 - accuracy) / n_classes


def is_careless(truth: float, model: float) -> bool:
    """Whether the bets have won enough: by truths alone, or by the model beside them, which they must not contradict.

    >>> is_careless(50.0, 0.0), is_careless(1.0, 40.0), is_careless(0.1, 100.0)
    (True, True, False)
    """
    return truth * (1 + model) >= ALARM


def accuracy_by_model(held: Sequence[float], best: Sequence[float], n_classes: int) -> tuple[float, float, float]:
    """How often a person is right by what the model held likely before each answer, and a 95 % interval.

    `held` is the probability of what was said, `best` the sum of the squares of all probabilities: that is what someone
    who is always right would be held to on average, if the model is calibrated; someone who guesses, 1 / K.

    >>> [round(value, 2) for value in accuracy_by_model([0.9, 0.9, 0.1, 0.9] * 25, [0.82] * 100, 2)]
    [0.63, 0.41, 0.84]
    """
    said, right, chance = np.asarray(held), np.asarray(best), 1 / n_classes
    scale = float((right - chance).sum())
    if scale <= 1e-9:
        return 0.5, 0.0, 1.0
    share = float((said - chance).sum()) / scale
    spread = 1.96 * math.sqrt(float(((said - chance - share * (right - chance)) ** 2).sum())) / scale
    return tuple(min(1.0, max(0.0, value)) for value in (share, share - spread, share + spread))  # type: ignore[return-value]


def chance_wrong(accuracy: float, held: float, n_classes: int) -> float:
    """How likely an answer is wrong that the model held to be so likely, from someone of this accuracy.

    >>> round(chance_wrong(0.95, 0.5, 10), 3), round(chance_wrong(0.95, 0.001, 10), 2)
    (0.009, 0.16)
    """
    held = (1 - DOUBT) * held + DOUBT / n_classes
    wrong = (1 - accuracy) * (1 - held) / (n_classes - 1)
    total = accuracy * held + wrong
    return wrong / total if total > 0 else 1 - accuracy


def expected_accuracy(right: int, wrong: int) -> float:
    """A person's accuracy by their checks so far.

    >>> round(expected_accuracy(0, 0), 2), round(expected_accuracy(2, 8), 2)
    (0.95, 0.7)
    """
    return (PRIOR_RIGHT + right) / (PRIOR_RIGHT + PRIOR_WRONG + right + wrong)
