"""How often someone may come: a bucket that fills steadily, from which every call takes one drop."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable


class Rates:
    """Buckets by name.

    >>> now = [0.0]
    >>> rates = Rates(per_second=1.0, burst=2, clock=lambda: now[0])
    >>> [rates.take("ada") for _ in range(3)]
    [0.0, 0.0, 1.0]
    >>> now[0] = 1.0
    >>> rates.take("ada")
    0.0
    """

    def __init__(
        self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic, most: int = 10_000
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._most = most
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, who: Hashable, drops: float = 1.0) -> float:
        """Take from the bucket: 0 if there was enough, otherwise the seconds to wait, and nothing taken."""
        left = self.left(who)
        if left < drops:
            return (drops - left) / self._per_second
        self._buckets[who] = (left - drops, self._clock())
        self._buckets.move_to_end(who)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return 0.0

    def left(self, who: Hashable) -> float:
        level, at = self._buckets.get(who, (self._burst, self._clock()))
        return min(self._burst, level + (self._clock() - at) * self._per_second)
