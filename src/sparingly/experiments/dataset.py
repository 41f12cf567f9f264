"""A data set: observations and their classes, and what is done to the features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparingly.encoders import RowSchema
from sparingly.experiments import openml
from sparingly.experiments.csv_files import DataError
from sparingly.experiments.table_encoding import encode_target

Preprocessing = Literal["paper", "streaming", "encoded"]
PREPROCESSINGS: tuple[str, ...] = get_args(Preprocessing)


@dataclass(frozen=True)
class Dataset:
    """Observations and their classes.

    Attributes
    ----------
    name
        The name, or the file's name.
    raw
        The features before any scaling, `[n, *shape]`; images are bytes.
    y
        The classes by number, `[n]`.
    classes
        The classes, sorted.
    preprocessing
        What `rows` does to the features. `streaming` is done by the stream, which knows the order.
    image
        Whether the observations are images.
    raw_test, y_test
        The data set's own test set, if it has one.
    schema
        What the columns of a file are, and so how an agent would read its rows: `Agent(schema=data.schema)`.
    texts
        The texts that `raw` encodes, if the observations are texts.
    answers
        What experts other than the truth have said: by name, `[n]` of class numbers, -1 where one gave no answer.
    notes
        How a file was read where that is not obvious, and what looks wrong in it.
    unlabelled
        The features of a file's rows without a label, if they are kept: they only serve to scale the features.
    """

    name: str
    raw: NDArray[Any]
    y: NDArray[np.int64]
    classes: tuple[str, ...]
    preprocessing: Preprocessing = "paper"
    image: bool = False
    raw_test: NDArray[Any] | None = None
    y_test: NDArray[np.int64] | None = None
    schema: RowSchema | None = None
    texts: tuple[str, ...] | None = None
    answers: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unlabelled: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.y)

    def rows(self, index: NDArray[np.int64] | slice, *, test: bool = False) -> NDArray[np.float32]:
        """The features of some observations, preprocessed, `[rows, *shape]`."""
        source = self.raw_test if test else self.raw
        if source is None:
            raise DataError(f"{self.name} has no test set of its own")
        rows = np.asarray(source[index])
        return _paper(self.name, rows, self.image) if self.preprocessing == "paper" else rows.astype(np.float32)

    @cached_property
    def X(self) -> NDArray[np.float32]:
        """All features, preprocessed, `[n, *shape]`."""
        return self.rows(slice(None))

    @cached_property
    def X_test(self) -> NDArray[np.float32] | None:
        """The data set's own test set, preprocessed."""
        return None if self.raw_test is None else self.rows(slice(None), test=True)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one observation, after preprocessing."""
        return self.rows(slice(0, 1)).shape[1:]

    @property
    def n_features(self) -> int:
        return int(np.prod(self.shape))

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def flattened(self) -> Dataset:
        """The same with every observation as a vector."""
        if self.raw.ndim == 2:
            return self
        test = None if self.raw_test is None else self.raw_test.reshape(len(self.raw_test), -1)
        return replace(self, raw=self.raw.reshape(len(self.raw), -1), raw_test=test)

    def renumbered(self, numbers: NDArray[np.int64]) -> Dataset:
        """The same with other numbers for its classes: class i becomes class `numbers[i]`.

        >>> from sparingly.experiments.datasets import load
        >>> digits = load("digits")
        >>> turned = digits.renumbered(np.arange(10)[::-1])
        >>> digits.classes[digits.y[3]], turned.classes[turned.y[3]], turned.y[3] == 9 - digits.y[3]
        ('3', '3', np.True_)
        """
        classes = tuple(self.classes[i] for i in np.argsort(numbers))
        answers = {name: np.where(said < 0, said, numbers[said]) for name, said in self.answers.items()}
        y_test = None if self.y_test is None else numbers[self.y_test]
        return replace(self, y=numbers[self.y], y_test=y_test, classes=classes, answers=answers)


def from_arrays(
    X: ArrayLike, y: ArrayLike, *, name: str = "arrays", preprocessing: Preprocessing = "encoded"
) -> Dataset:
    """A data set from arrays: `X [n, *shape]` of numbers (nan: missing), `y [n]` of classes.

    >>> from_arrays([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]], ["a", "b", "a", "b"]).classes
    ('a', 'b')
    """
    features = np.asarray(X, dtype=np.float32)
    labels, classes = encode_target(y, "y")
    if features.ndim < 2 or len(features) != len(labels):
        raise DataError(f"X has shape {features.shape} and y has {len(labels)} rows: they must go together")
    if np.isinf(features).any():
        raise DataError(f"X is infinite in row {int(np.argwhere(np.isinf(features))[0][0])}")
    return Dataset(name, features, labels, classes, preprocessing)


def _paper(name: str, rows: NDArray[Any], image: bool) -> NDArray[np.float32]:
    if image:
        mean, deviation = (0.1307, 0.3081) if name.startswith("mnist") else (0.5, 0.5)
        return ((rows.astype(np.float32) / np.float32(255) - np.float32(mean)) / np.float32(deviation)).astype(
            np.float32
        )
    if name == "covertype":
        rows = _covertype_of_openml(rows)
    rows = np.where(np.isnan(rows), np.float32(-1), rows).astype(np.float64)
    length = np.sqrt((rows**2).sum(axis=tuple(range(1, rows.ndim)), keepdims=True))
    return (rows / np.where(length > 0, length, 1)).astype(np.float32)


def _covertype_of_openml(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Version 3 on OpenML: ten numbers scaled to [0, 1], 44 nominal columns that one-hot coding doubles to 88."""
    low, high = np.array(openml.COVERTYPE_RANGES, dtype=np.float64).T
    scaled = ((rows[:, :10].astype(np.float64) - low) / (high - low)).round(6)
    nominal = rows[:, 10:].astype(np.float64)
    return np.concatenate([scaled, np.stack([1 - nominal, nominal], axis=2).reshape(len(rows), -1)], axis=1)
