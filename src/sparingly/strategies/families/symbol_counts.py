"""Tallies: how often each action was played, and how often it brought each of its symbols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Tallies:
    """Plays and symbols of some actions, the symbols of all of them side by side.

    Parameters
    ----------
    n_symbols
        How many symbols each action has.

    >>> tallies = Tallies([2, 3])
    >>> for symbol in (0, 2, 2):
    ...     tallies.tell(1, symbol)
    >>> tallies.frequencies().round(2).tolist(), tallies.told().tolist()
    ([0.5, 0.5, 0.33, 0.0, 0.67], [0.0, 3.0])
    """

    def __init__(self, n_symbols: list[int]) -> None:
        self._owner = np.repeat(np.arange(len(n_symbols)), n_symbols)
        self._starts = np.concatenate([[0], np.cumsum(n_symbols)]).astype(int)
        self.plays = np.zeros(len(n_symbols))
        self.symbols = np.zeros(len(self._owner))

    def tell(self, place: int, symbol: int) -> None:
        """Note a symbol of an action, by their places."""
        self.symbols[self._starts[place] + symbol] += 1

    def told(self) -> Floats:
        """How many symbols each action has brought."""
        return np.bincount(self._owner, self.symbols, minlength=len(self.plays)).astype(np.float64)

    def told_each(self) -> Floats:
        """The same for each symbol: how many its action has brought."""
        return self.told()[self._owner]

    def frequencies(self) -> Floats:
        """The frequency of each symbol among those of its action; equal while there are none."""
        told = self.told_each()
        share = np.bincount(self._owner, minlength=len(self.plays))[self._owner]
        return np.where(told > 0, self.symbols / np.maximum(told, 1), 1 / np.maximum(share, 1))

    def state_dict(self) -> dict[str, Any]:
        return {"plays": self.plays.tolist(), "symbols": self.symbols.tolist()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        plays, symbols = np.array(state["plays"], dtype=float), np.array(state["symbols"], dtype=float)
        if plays.shape != self.plays.shape or symbols.shape != self.symbols.shape:
            raise ValueError(f"tallies of {len(symbols)} symbols do not fit {len(self.symbols)}")
        self.plays, self.symbols = plays, symbols
