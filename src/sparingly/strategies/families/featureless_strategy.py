"""Strategies that look at no feature: they count symbols, and have nothing to assess or to train."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.strategies.families.confidence_bounds import Bounds, Floats
from sparingly.strategies.strategy import NEVER, Shape, Strategy


class SymbolCounts:
    """How often each informative action was played, and how often it brought each of its symbols.

    The symbols of all informative actions stand side by side, in the order of `Bounds.slices`.

    >>> from sparingly.games import bandit
    >>> counts = SymbolCounts(Bounds(bandit(2)))
    >>> for symbol in (0, 1, 1):
    ...     counts.add(1, symbol)
    >>> counts.frequencies().round(2).tolist(), counts.answers().tolist()
    ([0.5, 0.5, 0.33, 0.67], [0.0, 3.0])
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        n_symbols = [len(bounds.game.symbols(a)) for a in bounds.informative]
        self._owner = np.repeat(np.arange(len(n_symbols)), n_symbols)
        self.play_counts = np.zeros(len(n_symbols))
        """Rounds in which each informative action was played, answered or not."""
        self.symbols = np.zeros(len(self._owner))

    def add(self, action: int, symbol: int) -> None:
        """Count a symbol of an action, as an index among its symbols."""
        self.symbols[self._bounds.slices[action].start + symbol] += 1

    def add_play(self, action: int) -> None:
        """Count a round in which an action was played."""
        self.play_counts[self._bounds.informative.index(action)] += 1

    def times_played(self, action: int) -> float:
        return float(self.play_counts[self._bounds.informative.index(action)])

    def answers(self) -> Floats:
        """How many symbols each action has brought."""
        return np.bincount(self._owner, self.symbols, minlength=len(self.play_counts)).astype(np.float64)

    def answers_by_symbol(self) -> Floats:
        """For each symbol, how many symbols its action has brought."""
        return self.answers()[self._owner]

    def frequencies(self) -> Floats:
        """The frequency of each symbol among those of its action; equal while there are none."""
        answers = self.answers_by_symbol()
        share = np.bincount(self._owner, minlength=len(self.play_counts))[self._owner]
        return np.where(answers > 0, self.symbols / np.maximum(answers, 1), 1 / np.maximum(share, 1))

    def scores(self, rows: int) -> Tensor:
        """`[rows, outcome]`: the same estimate of the outcomes for every row."""
        return torch.from_numpy(self._bounds.outcomes(self.frequencies()[None])).expand(rows, -1)

    def state_dict(self) -> dict[str, Any]:
        return {"plays": self.play_counts.tolist(), "symbols": self.symbols.tolist()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        play_counts, symbols = np.array(state["plays"], dtype=float), np.array(state["symbols"], dtype=float)
        if play_counts.shape != self.play_counts.shape or symbols.shape != self.symbols.shape:
            raise ValueError(f"counts of {len(symbols)} symbols do not fit {len(self.symbols)}")
        self.play_counts, self.symbols = play_counts, symbols


class FeaturelessStrategy(Strategy):
    """Estimates the same outcome distribution for every observation; `n_features` is only checked."""

    def __init__(self, game: Game, n_features: Shape, *, seed: int = 0) -> None:
        super().__init__(game, n_features, seed=seed)
        self.bounds = Bounds(game)
        self.counts = SymbolCounts(self.bounds)

    @property
    def signals(self) -> Floats:
        """`[symbol, outcome]`: the signal matrices of the informative actions, one below the other."""
        nothing = np.zeros((0, self.game.n_outcomes))
        return np.vstack([nothing, *(self.bounds.geometry.signal[a] for a in self.bounds.informative)])

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        return {}

    def _train(self) -> None:
        pass

    def _due_in(self) -> int:
        return NEVER

    def _scores(self, X: Tensor) -> Tensor:
        return self.counts.scores(len(X))
