"""Streams: a data set in random order, with a held-out test set, and label noise and drift where wanted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sparingly.experiments.csv_files import DataError
from sparingly.experiments.dataset import Dataset

HELD_OUT = 0.15
HORIZON = 10_000
LARGEST = 10.0
"""A standardised feature is cut off here: a rare category would be a huge number when it first comes."""


@dataclass(frozen=True)
class Drift:
    """Concept drift: two classes swap their names on the way.

    Attributes
    ----------
    start, end
        When the swap begins and when it is complete, as shares of the stream; between them a growing share of the
        rounds is swapped. `start == end` is an abrupt swap.
    classes
        The two classes.
    """

    start: float = 0.5
    end: float = 0.5
    classes: tuple[int, int] = (0, 1)

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end <= 1:
            raise DataError(f"a drift from {self.start} to {self.end}: both are shares of the stream, in this order")

    def swaps(self, y: NDArray[np.int64]) -> NDArray[np.int64]:
        """The classes with the two swapped."""
        one, other = self.classes
        return np.where(y == one, other, np.where(y == other, one, y))

    def share(self, at: NDArray[np.float64]) -> NDArray[np.float64]:
        """How likely a round at this share of the stream is swapped.

        >>> Drift(0.25, 0.75).share(np.array([0.0, 0.25, 0.5, 0.75])).tolist()
        [0.0, 0.0, 0.5, 1.0]
        """
        if self.start == self.end:
            return (at >= self.start).astype(np.float64)
        return np.clip((at - self.start) / (self.end - self.start), 0, 1)


@dataclass(frozen=True)
class Stream:
    """Observations in their order; iterating gives pairs of an observation and the class an expert would name.

    Attributes
    ----------
    dataset
        Where the observations come from.
    index
        Their places in the data set, in order, `[horizon]`.
    y
        The true class of each, `[horizon]`: what costs are counted by.
    answers
        The class an expert would name, `[horizon]`: the true one but for label noise.
    held_out
        Places of the test set, in the data set's own test set if it has one.
    before
        Features that were known before the stream, `[rows, *shape]`: running means and deviations begin with them.
    """

    dataset: Dataset
    index: NDArray[np.int64]
    y: NDArray[np.int64]
    answers: NDArray[np.int64]
    held_out: NDArray[np.int64]
    drift: Drift | None = None
    before: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.index)

    def __iter__(self) -> Iterator[tuple[NDArray[np.float32], int]]:
        return zip(self.X, self.answers.tolist(), strict=True)

    @cached_property
    def X(self) -> NDArray[np.float32]:
        """The observations as the strategy sees them, `[horizon, *shape]`."""
        rows = self.dataset.rows(self.index)
        if self._moments is None:
            return rows
        return self._scaled(rows, np.arange(1, len(rows) + 1))

    @property
    def X_before(self) -> NDArray[np.float32]:
        """What was known before, as the strategy sees it, `[rows, *shape]`."""
        rows = self.dataset.rows(slice(0, 0)) if self.before is None else self.before
        return rows if self._moments is None or not len(rows) else self._scaled(rows, np.array([0]))

    def _scaled(self, rows: NDArray[np.float32], rounds: NDArray[np.int64]) -> NDArray[np.float32]:
        """Rows as they are seen after so many rounds."""
        assert self._moments is not None
        fill, deviation = self._moments.after(rounds + (0 if self.before is None else len(self.before)))
        return _standardised(rows, fill, deviation if self.dataset.preprocessing == "streaming" else None)

    @cached_property
    def _raw_test(self) -> NDArray[np.float32]:
        return self.dataset.rows(self.held_out, test=self.dataset.raw_test is not None)

    @cached_property
    def _moments(self) -> Moments | None:
        """What a stream must learn on the way: nothing if the preprocessing is fixed and nothing is missing."""
        if self.dataset.preprocessing == "paper":
            return None
        rows = self.dataset.rows(self.index)
        if self.before is not None:
            rows = np.concatenate([self.before, rows])
        if self.dataset.preprocessing == "encoded" and not np.isnan(rows).any() and not np.isnan(self._raw_test).any():
            return None
        return Moments(rows, together=self.dataset.image)

    def test(self, t: int | None = None) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The held-out observations as a strategy would see them after round t (or at the end), and their classes."""
        t = len(self) if t is None else t
        known = self.dataset.y if self.dataset.y_test is None else self.dataset.y_test
        y = known[self.held_out]
        if self.drift is not None and self.drift.share(np.array([t / len(self)]))[0] > 0.5:
            y = self.drift.swaps(y)
        if self._moments is None:
            return self._raw_test, y
        return self._scaled(self._raw_test, np.array([max(t, 1)])), y


def stream(
    dataset: Dataset,
    seed: int,
    horizon: int = HORIZON,
    *,
    noise: float = 0.0,
    drift: Drift | None = None,
    shuffled: bool = True,
    class_order: str = "sorted",
) -> Stream:
    """A data set in the order that a seed gives it.

    The first 15 % of the order are held out; the rest is the stream, until the horizon or the end of the data.
    A data set with a test set of its own keeps it, and its whole training set is the stream.

    Parameters
    ----------
    noise
        The share of rounds in which the expert would name a class at random instead of the true one.
    drift
        Two classes that swap their names on the way.
    shuffled
        Whether the seed orders the stream; if not, the rows that it does not hold out come as they stand in the data.
    class_order
        "sorted": classes are numbered as the data set has them; "drawn": in an order that the seed draws, as the code
        behind the NeuralCBP paper's tables numbers the classes of a table anew in each run.

    Examples
    --------
    >>> from sparingly.experiments.datasets import load
    >>> digits = stream(load("digits"), seed=0, horizon=1000)
    >>> len(digits), digits.X.shape, digits.test()[0].shape
    (1000, (1000, 64), (269, 64))
    >>> x, outcome = next(iter(digits))
    >>> outcome
    2
    """
    if horizon < 1:
        raise DataError(f"horizon is {horizon}: a stream has at least one round")
    if not 0 <= noise <= 1:
        raise DataError(f"noise is {noise}: it is a share of the rounds, from 0 to 1")
    if class_order not in ("sorted", "drawn"):
        raise DataError(f"class_order is {class_order!r}: it is sorted or drawn")
    if class_order == "drawn":
        dataset = dataset.renumbered(np.random.default_rng([seed, 2]).permutation(dataset.n_classes))
    order = np.random.default_rng(seed).permutation(len(dataset))
    if dataset.y_test is None:
        cut = int(HELD_OUT * len(order))
        held_out, order = order[:cut], order[cut:]
    else:
        held_out = np.arange(len(dataset.y_test))
    index = (order if shuffled else np.sort(order))[:horizon]
    rng = np.random.default_rng([seed, 1])
    y = _drifted(dataset.y[index], drift, rng)
    return Stream(dataset, index, y, _noisy(y, noise, dataset.n_classes, rng), held_out, drift)


class Moments:
    """Running means and deviations, one for each feature or (for images) one for all of them together."""

    def __init__(self, rows: NDArray[np.float32], *, together: bool = False) -> None:
        flat = rows.reshape(len(rows), -1).astype(np.float64)
        known = ~np.isnan(flat)
        first = np.where(known.any(axis=0), flat[known.argmax(axis=0), np.arange(flat.shape[1])], 0.0)
        self.origin = np.zeros(1) if together else first
        """Sums are taken from the first value seen, so that a large offset costs no digits."""
        apart = np.where(known, flat - self.origin, 0.0)
        parts = [known.astype(np.float64), apart, apart**2]
        if together:
            parts = [part.sum(axis=1, keepdims=True) for part in parts]
        self.count, self.sum, self.squares = (part.cumsum(axis=0) for part in parts)

    def after(self, rounds: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and deviation after so many rounds, `[rounds, features]`; 0 where nothing or nothing else was seen."""
        count = np.maximum(self.count[rounds - 1], 1)
        mean = self.sum[rounds - 1] / count
        variance = np.maximum(self.squares[rounds - 1] / count - mean**2, 0)
        return mean + np.where(self.count[rounds - 1] > 0, self.origin, 0.0), np.sqrt(variance)


def _standardised(
    rows: NDArray[np.float32], mean: NDArray[np.float64], deviation: NDArray[np.float64] | None
) -> NDArray[np.float32]:
    """Missing values become the mean; with a deviation, the mean becomes 0 and the deviation 1, a constant 0."""
    flat = rows.reshape(len(rows), -1)
    if deviation is None:
        return np.where(np.isnan(flat), mean, flat).astype(np.float32).reshape(rows.shape)
    known = np.where(deviation > 1e-12 * (1 + np.abs(mean)), deviation, np.inf)
    apart = np.nan_to_num((flat - mean) / known, nan=0.0)
    return np.clip(apart, -LARGEST, LARGEST).astype(np.float32).reshape(rows.shape)


def _drifted(y: NDArray[np.int64], drift: Drift | None, rng: np.random.Generator) -> NDArray[np.int64]:
    if drift is None:
        return y
    swapped = rng.random(len(y)) < drift.share(np.arange(len(y)) / len(y))
    return np.where(swapped, drift.swaps(y), y)


def _noisy(y: NDArray[np.int64], noise: float, n_classes: int, rng: np.random.Generator) -> NDArray[np.int64]:
    if noise == 0:
        return y
    return np.where(rng.random(len(y)) < noise, rng.integers(n_classes, size=len(y)), y)
