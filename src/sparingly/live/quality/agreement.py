"""How far people agree beyond chance: Cohen's and Fleiss' kappa, and Krippendorff's alpha."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Rating(NamedTuple):
    """What one person says of one item: numbers of the item and of the class."""

    item: int
    expert: str
    label: int


class PairAgreement(NamedTuple):
    """Two people: how many items both have answered, how often they agreed, and Cohen's kappa."""

    first: str
    second: str
    items: int
    agreed: int
    kappa: float | None


class Agreement(NamedTuple):
    """How far everyone agrees: on items with two or more answers; None where there is too little to tell."""

    items: int
    alpha: float | None
    """Krippendorff's, of all answers."""
    fleiss: float | None
    """Fleiss' kappa, of the first two answers to each item."""
    pairs: tuple[PairAgreement, ...]


def agreement(ratings: Sequence[Rating]) -> Agreement:
    """How far people agree, from all they said of items that two or more of them have answered.

    >>> said = [(0, "Ada", 1), (0, "Ben", 1), (1, "Ada", 0), (1, "Ben", 0), (2, "Ada", 1), (2, "Ben", 0)]
    >>> found = agreement([Rating(*one) for one in said])
    >>> found.items, round(found.alpha, 2), round(found.fleiss, 2), round(found.pairs[0].kappa, 2)
    (3, 0.44, 0.33, 0.4)
    """
    by_item: dict[int, dict[str, int]] = defaultdict(dict)
    for one in ratings:
        by_item[one.item][one.expert] = one.label
    items = [said for said in by_item.values() if len(said) > 1]
    two = [dict(list(said.items())[:2]) for said in items]
    return Agreement(len(items), _alpha(_places(items)), _fleiss(two), tuple(_pairs(items)))


def _places(items: Sequence[dict[str, int]]) -> NDArray[np.float64]:
    """Answers by place, `[place, item]`, NaN where an item has fewer: who gave them does not matter to alpha."""
    most = max((len(said) for said in items), default=0)
    table = np.full((most, len(items)), np.nan)
    for i, said in enumerate(items):
        table[: len(said), i] = list(said.values())
    return table


def _alpha(table: NDArray[np.float64]) -> float | None:
    import krippendorff

    if table.size == 0 or len(np.unique(table[~np.isnan(table)])) < 2:
        return None
    return float(krippendorff.alpha(reliability_data=table, level_of_measurement="nominal"))


def _fleiss(items: Sequence[dict[str, int]]) -> float | None:
    labels = sorted({label for said in items for label in said.values()})
    counts = np.array([[list(said.values()).count(label) for label in labels] for said in items])
    return fleiss_kappa(counts) if len(labels) > 1 else None


def fleiss_kappa(counts: NDArray[np.int64]) -> float:
    """Fleiss' kappa of how many answers named each class, `[item, class]`, as many for each item.

    J. L. Fleiss (1971), "Measuring nominal scale agreement among many raters", equations 1 to 7.

    >>> round(fleiss_kappa(np.array([[2, 0], [0, 2], [1, 1]])), 2)
    0.33
    """
    answers = counts.sum(axis=1)[0]
    agreed = float(((counts * (counts - 1)).sum(axis=1) / (answers * (answers - 1))).mean())
    by_chance = float(((counts.sum(axis=0) / counts.sum()) ** 2).sum())
    return (agreed - by_chance) / (1 - by_chance)


def _pairs(items: Sequence[dict[str, int]]) -> list[PairAgreement]:
    shared: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for said in items:
        for one, other in combinations(sorted(said), 2):
            shared[one, other].append((said[one], said[other]))
    return [
        PairAgreement(one, other, len(both), sum(a == b for a, b in both), _cohen(both))
        for (one, other), both in sorted(shared.items())
    ]


def _cohen(both: Sequence[tuple[int, int]]) -> float | None:
    from sklearn.metrics import cohen_kappa_score

    if len({label for pair in both for label in pair}) < 2:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = float(cohen_kappa_score([a for a, _ in both], [b for _, b in both]))
    return value if np.isfinite(value) else None
