"""Statistics of final regrets and questions: plain functions of arrays over seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Sample = NDArray[np.float64]


@dataclass(frozen=True)
class Summary:
    """A sample in a few numbers."""

    n: int
    mean: float
    error: float
    """Standard error of the mean; nan for a single value."""
    median: float
    lower: float
    """First quartile."""
    upper: float
    """Third quartile."""
    interval: tuple[float, float]
    """95 % bootstrap interval of the mean."""


def summarise(values: ArrayLike) -> Summary:
    """Mean and standard error, median and quartiles, bootstrap interval.

    >>> summary = summarise([1.0, 2.0, 3.0, 4.0])
    >>> summary.n, summary.mean, round(summary.error, 3), summary.median, (summary.lower, summary.upper)
    (4, 2.5, 0.645, 2.5, (1.75, 3.25))
    """
    sample = _sample(values)
    lower, median, upper = np.percentile(sample, [25, 50, 75])
    error = sample.std(ddof=1) / np.sqrt(len(sample)) if len(sample) > 1 else float("nan")
    return Summary(
        len(sample), float(sample.mean()), float(error), float(median), float(lower), float(upper), bootstrap(sample)
    )


def bootstrap(values: ArrayLike, *, level: float = 0.95, draws: int = 10_000, seed: int = 0) -> tuple[float, float]:
    """A percentile bootstrap interval of the mean.

    >>> low, high = bootstrap(np.arange(100.0))
    >>> 43 < low < 45 and 54 < high < 56
    True
    """
    sample = _sample(values)
    rng = np.random.default_rng(seed)
    # scipy.stats.bootstrap draws the same, but takes five times as long and refuses a single value.
    means = rng.choice(sample, size=(draws, len(sample))).mean(axis=1)
    low, high = np.percentile(means, [50 * (1 - level), 50 * (1 + level)])
    return float(low), float(high)


@dataclass(frozen=True)
class Wins:
    """On how many seeds a strategy was best, and on how many of these another was as good."""

    total: int
    shared: int


def win_counts(regrets: Mapping[str, ArrayLike], *, tolerance: float = 1e-9) -> dict[str, Wins]:
    """Wins by seed: the lowest value wins, and ties win for all of them.

    >>> win_counts({"a": [1, 2, 3], "b": [1, 5, 2]})
    {'a': Wins(total=2, shared=1), 'b': Wins(total=2, shared=1)}
    """
    if not all(np.size(values) for values in regrets.values()):
        return {name: Wins(0, 0) for name in regrets}
    table = np.stack([_sample(values) for values in regrets.values()])
    best = table <= table.min(axis=0) + tolerance
    shared = best & (best.sum(axis=0) > 1)
    totals, ties = best.sum(axis=1).tolist(), shared.sum(axis=1).tolist()
    return {name: Wins(total, tied) for name, total, tied in zip(regrets, totals, ties, strict=True)}


def welch(reference: ArrayLike, other: ArrayLike) -> float:
    """One-sided Welch test: the probability of such a lead of the reference (lower is better) if there were none.

    >>> round(welch([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]), 4)
    0.1104
    >>> welch([1.0, 1.0], [1.0, 1.0])
    1.0
    """
    from scipy import stats

    one, two = _sample(reference), _sample(other)
    if len(one) < 2 or len(two) < 2:
        return float("nan")
    if one.std() == 0 and two.std() == 0:
        return 0.0 if one.mean() < two.mean() else 1.0
    (a, b), (c, d) = ((float(sample.mean()), float(sample.std(ddof=1))) for sample in (one, two))
    test = stats.ttest_ind_from_stats(a, b, len(one), c, d, len(two), equal_var=False, alternative="less")
    return float(test.pvalue)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's correction: the chance of any false alarm in the family stays below the level; nan stays nan.

    >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
    {'a': 0.03, 'b': 0.06, 'c': 0.06}
    """
    order = sorted((p, name) for name, p in p_values.items() if not np.isnan(p))
    corrected: dict[str, float] = {}
    largest = 0.0
    for place, (p, name) in enumerate(order):
        largest = max(largest, min(1.0, p * (len(order) - place)))
        corrected[name] = largest
    return {name: corrected.get(name, float("nan")) for name in p_values}


@dataclass(frozen=True)
class Paired:
    """Two strategies on the same seeds: other minus reference, so a positive difference is a lead of the reference."""

    difference: float
    interval: tuple[float, float]
    better: int
    worse: int
    p_value: float
    """Two-sided, of the paired t-test."""


def paired(reference: ArrayLike, other: ArrayLike) -> Paired:
    """Compare by seed: the streams are the same, so their difficulty cancels out.

    >>> comparison = paired([10.0, 20.0, 30.0, 41.0], [11.0, 22.0, 33.0, 41.0])
    >>> comparison.difference, comparison.better, comparison.worse, round(comparison.p_value, 3)
    (1.5, 3, 0, 0.103)
    """
    from scipy import stats

    one, two = _sample(reference), _sample(other)
    if len(one) != len(two):
        raise ValueError(f"{len(one)} and {len(two)} values: a paired comparison needs the same seeds")
    difference = two - one
    p_value = float("nan")
    if len(difference) > 1 and difference.std() > 0:
        p_value = float(stats.ttest_rel(two, one).pvalue)
    better, worse = int((difference > 0).sum()), int((difference < 0).sum())
    return Paired(float(difference.mean()), bootstrap(difference), better, worse, p_value)


def _sample(values: ArrayLike) -> Sample:
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or not len(sample):
        raise ValueError(f"a sample has shape {sample.shape}: it must be a list of at least one value")
    if not np.isfinite(sample).all():
        raise ValueError(
            f"value {int(np.argmin(np.isfinite(sample)))} of the sample is {sample[~np.isfinite(sample)][0]}"
        )
    return sample
