"""Undoes river's StandardScaler where it stands before a classifier that scales by itself."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

CLOSE = 1e-6
"""How far a value may be off what the scaler would have made of it."""


class UndoneScaling:
    """Brings back what a running standardisation moves, so that labels and coming rows are measured by one yardstick.

    In a pipeline a scaler learns with every label: it scales the same value differently before and after. What the n-th
    value has become when it is learned tells exactly how mean and deviation have moved by it: l is s (1 - 1/n) over the
    new deviation, for a value s deviations off the old mean. So all values can be told in the units of the first step
    between two different ones. It is given up for good with the first value that no such scaler would have made.

    Examples
    --------
    >>> from river import preprocessing
    >>> scaler, undone = preprocessing.StandardScaler(), UndoneScaling()
    >>> for value in (3.0, 5.0, 4.0, 9.0):
    ...     before = scaler.transform_one({"a": value})
    ...     scaler.learn_one({"a": value})
    ...     _ = undone.learn(scaler.transform_one({"a": value}), before)
    >>> [round(undone(scaler.transform_one({"a": value}))["a"], 6) for value in (3.0, 5.0, 4.0, 9.0)]
    [0.0, 1.0, 0.5, 3.0]
    """

    def __init__(self) -> None:
        self.holds = True
        self._moments: dict[Hashable, tuple[int, float, float]] = {}
        """Of every feature: how many values were learned, their mean and their deviation."""

    def __call__(self, x: Mapping[Any, Any]) -> dict[Any, Any]:
        """An observation in units that stay."""
        moments = {name: self._moments.get(name, (0, 0.0, 0.0)) for name in x}
        # Of a value that has not varied yet the scaler makes 0, and words it does not take.
        self.holds = self.holds and all(
            not isinstance(value, str) and (moments[name][2] > 0 or value == 0) for name, value in x.items()
        )
        if not self.holds:
            return dict(x)
        # Rounded, so that equal values come out equal: an interval between 0 and 1e-16 would be one like any other.
        return {name: round(value * moments[name][2] + moments[name][1], 9) + 0.0 for name, value in x.items()}

    def learn(self, x: Mapping[Any, Any], before: Mapping[Any, Any] | None) -> dict[Any, Any]:
        """See an observation as it is learned, and as it was when it was asked about; gives it in units that stay."""
        if self.holds:
            words = any(isinstance(value, str) for value in x.values())
            unmoved = words or (before is not None and dict(before) == dict(x) and any(x.values()))
            moved = {} if unmoved else {name: self._moved(name, value, before) for name, value in x.items()}
            self.holds = bool(moved) and all(one is not None for one in moved.values())
            self._moments |= {name: one for name, one in moved.items() if one is not None}
        return self(x)

    def _moved(self, name: Hashable, value: Any, before: Mapping[Any, Any] | None) -> tuple[int, float, float] | None:
        """The moments after one more value, None if no running standardisation would have made it."""
        count, mean, deviation = self._moments.get(name, (0, 0.0, 0.0))
        n = count + 1
        if not math.isfinite(value):
            return None
        if not deviation:
            if abs(value) < CLOSE:
                return n, mean, 0.0
            step = math.copysign(1.0, value)
            as_told = n > 1 and abs(abs(value) - math.sqrt(n - 1)) < CLOSE * n
            return (n, mean + step / n, math.sqrt(n - 1) / n) if as_told else None
        rest = n - 1 - value * value
        if rest <= 0:
            return None
        off = math.copysign(math.sqrt(n / rest) * abs(value), value)
        if before is not None and abs(off - before.get(name, math.inf)) > CLOSE * (1 + abs(off)) * n:
            return None
        return n, mean + off * deviation / n, deviation * math.sqrt((n - 1) / n + off * off * (n - 1) / n**2)
