"""Named features that come and go, as vectors of one length."""

from __future__ import annotations

import math
import zlib
from collections.abc import Hashable, Iterator, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALLEST = 8


class FeatureVectorizer:
    """Turns observations with named features into vectors; each feature gets a place when it first appears.

    A number goes to the place of its name; a word is a feature of its own, there or not; what is absent, None or nan
    is 0. The vectors' length doubles when the places run out. Beyond `most` places features share them by their hash.

    >>> vectorizer = FeatureVectorizer()
    >>> vectorizer.see({"width": 2.0, "colour": "red"})
    >>> vectorizer.see({"colour": "blue"})
    >>> vectorizer.vector({"width": 3, "colour": "blue"}).tolist()
    [3.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """

    def __init__(self, most: int = 4096) -> None:
        if most < 1:
            raise ValueError(f"max_features is {most}: it must be at least 1")
        self.most = most
        self._places: dict[Hashable, int] = {}

    @property
    def size(self) -> int:
        """The vectors' length."""
        return min(self.most, max(SMALLEST, 1 << math.ceil(math.log2(max(1, len(self._places))))))

    def see(self, x: Mapping[Any, Any]) -> None:
        """Give places to the features that have none; the order within an observation does not matter."""
        for name in sorted((name for name, _ in _features(x) if name not in self._places), key=repr):
            if len(self._places) < self.most:
                self._places[name] = len(self._places)

    def vector(self, x: Mapping[Any, Any]) -> NDArray[np.float32]:
        """An observation as `[size]`."""
        filled = np.zeros(self.size, dtype=np.float32)
        for name, value in _features(x):
            place = self._places.get(name)
            if place is None and len(self._places) == self.most:
                place = zlib.crc32(repr(name).encode()) % self.most
            if place is not None:
                filled[place] += value
        return filled


def _features(x: Mapping[Any, Any]) -> Iterator[tuple[Hashable, float]]:
    for name, value in x.items():
        if isinstance(value, str):
            yield (name, value), 1.0
        elif value is None or value is np.nan:
            continue
        elif not isinstance(value, Real | np.bool_):
            raise ValueError(f"feature {name!r} is {value!r}: it must be a number or a word")
        elif not math.isnan(value):
            if math.isinf(value):
                raise ValueError(f"feature {name!r} is {value!r}: it must be finite")
            yield name, float(value)
