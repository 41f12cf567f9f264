"""What a peer is given: a stream, its costs, an expert who notes every question, and a clock for the peer alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Settings = dict[str, Any]
BLOCK = 500
"""Observations are converted so many at a time: looking at the clock takes longer than some tools."""


class Expert:
    """Knows the classes, and notes which observations it was asked about.

    >>> expert = Expert(np.array([1, 0]))
    >>> expert.ask(0), expert.asked.tolist()
    (1, [True, False])
    """

    def __init__(self, y: NDArray[np.int64]) -> None:
        self.asked = np.zeros(len(y), dtype=bool)
        self._y = y

    def ask(self, t: int) -> int:
        """The class of observation t, for the price of a question."""
        self.asked[t] = True
        return int(self._y[t])

    def reveal(self, t: int) -> int:
        """The class, for a tool that takes every label and decides inside whether to look; if it did, `ask` too."""
        return int(self._y[t])


class Clock:
    """Processor seconds spent inside `with clock:`, so that turning arrays into a tool's own input is free."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> None:
        self._began = time.process_time()

    def __exit__(self, *error: object) -> None:
        self.seconds += time.process_time() - self._began


@dataclass
class Trial:
    """One stream, played once.

    Attributes
    ----------
    X
        The observations in order, `[rounds, features]`, standardised by what was seen so far (or raw, where asked for).
    costs
        `[announced, true]`.
    announced
        To be filled by the peer: what it announces, or would have announced where it asks, `[rounds]`.
    """

    X: NDArray[np.float32]
    costs: NDArray[np.float64]
    expert: Expert
    seed: int
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.announced = np.zeros(len(self.X), dtype=np.int64)

    @property
    def n_classes(self) -> int:
        return len(self.costs)

    def each(self, convert: Callable[[int], Any]) -> Iterator[tuple[int, Any]]:
        """Every round with its observation in a tool's own form; the clock runs while the tool has it, not before."""
        for start in range(0, len(self.X), BLOCK):
            ready = [convert(t) for t in range(start, min(start + BLOCK, len(self.X)))]
            with self.clock:
                yield from enumerate(ready, start)

    def cheapest(self, probabilities: ArrayLike) -> NDArray[np.int64]:
        """The class to announce by probabilities `[..., classes]`: the one with the smallest expected cost."""
        found: NDArray[np.int64] = (np.asarray(probabilities) @ self.costs.T).argmin(axis=-1)
        return found


@dataclass(frozen=True)
class Peer:
    """A tool to compare with.

    Attributes
    ----------
    name
        As the tables have it.
    packages
        What must be importable.
    grid
        The settings to choose from, by the number of features and classes; none where the tool does not apply.
        `preprocessing` among them says what is done to the features.
    play
        Plays a trial with settings: fills `trial.announced` and asks `trial.expert`.
    """

    name: str
    packages: tuple[str, ...]
    grid: Callable[[int, int], list[Settings]]
    play: Callable[..., None]
