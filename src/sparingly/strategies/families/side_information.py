"""Linear and logistic estimates of an action's symbols from side information, with the length that widths need."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax
from torch import Tensor

from sparingly.learning.label_memory import Memory
from sparingly.learning.pseudo_counts import PseudoCounts

Floats = NDArray[np.float64]


class SymbolEstimate(abc.ABC):
    """What the side information says about one action's symbols, from the observations with an answer."""

    @abc.abstractmethod
    def add(self, x: Tensor, symbol: int) -> None:
        """Learn one symbol."""

    @abc.abstractmethod
    def distribution(self, x: Tensor) -> tuple[Floats, float]:
        """The estimated distribution of the symbols at x, and |x| in the norm of G^-1."""

    @abc.abstractmethod
    def refit(self) -> None:
        """Bring the estimates up to date, where that takes more than a symbol's own update."""

    @abc.abstractmethod
    def stale(self) -> bool:
        """Whether there are enough new answers since the last fit to fit again."""

    @abc.abstractmethod
    def state_dict(self) -> dict[str, Any]: ...

    @abc.abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


class Linear(SymbolEstimate):
    """Ridge regression of one-hot symbols: Theta = (sum e(h) x') G^-1.

    With one-hot observations these are frequencies, shrunk by the penalty:

    >>> estimate, east = Linear(2, 2, penalty=0.05), torch.tensor([1.0, 0.0], dtype=torch.float64)
    >>> for symbol in (0, 0, 1):
    ...     estimate.add(east, symbol)
    >>> pi, length = estimate.distribution(east)
    >>> pi.round(3).tolist(), round(1 / length**2, 3)
    ([0.656, 0.328], 3.05)
    """

    def __init__(self, n_features: int, n_symbols: int, *, penalty: float) -> None:
        self.counts = PseudoCounts(n_features, penalty=penalty)
        self.sums = torch.zeros(n_symbols, n_features, dtype=torch.float64)

    def add(self, x: Tensor, symbol: int) -> None:
        self.counts.add(x)
        self.sums[symbol] += x

    def distribution(self, x: Tensor) -> tuple[Floats, float]:
        solved = self.counts.solve(x)
        return (self.sums @ solved).numpy(), max(float(x @ solved), 0.0) ** 0.5

    def refit(self) -> None:
        pass

    def stale(self) -> bool:
        return False

    def state_dict(self) -> dict[str, Any]:
        return {"counts": self.counts.state_dict(), "sums": self.sums}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.counts.load_state_dict(state["counts"])
        if state["sums"].shape != self.sums.shape:
            raise ValueError(f"sums have shape {tuple(state['sums'].shape)}, not {tuple(self.sums.shape)}")
        self.sums = state["sums"].clone()


class Logistic(SymbolEstimate):
    """Multinomial logistic regression, fitted anew whenever there are a tenth more answers.

    pi = softmax(Theta x), Theta the penalised maximum of the likelihood.

    >>> estimate = Logistic(1, 2, penalty=0.05)
    >>> for x in (-2.0, -1.0, 1.0, 2.0):
    ...     estimate.add(torch.tensor([x]).double(), int(x > 0))
    >>> estimate.refit()
    >>> estimate.distribution(torch.tensor([1.5]).double())[0].round(2).tolist()
    [0.01, 0.99]
    """

    def __init__(self, n_features: int, n_symbols: int, *, penalty: float) -> None:
        self.counts = PseudoCounts(n_features, penalty=penalty)
        self.penalty = penalty
        self.theta: Floats = np.zeros((n_symbols, n_features))
        self.memory = Memory()
        self.fitted = 0

    def add(self, x: Tensor, symbol: int) -> None:
        self.counts.add(x)
        self.memory.append(x=x, symbol=torch.tensor(symbol))

    def distribution(self, x: Tensor) -> tuple[Floats, float]:
        pi: Floats = softmax(self.theta @ x.numpy())
        return pi, max(float(x @ self.counts.solve(x)), 0.0) ** 0.5

    def stale(self) -> bool:
        return len(self.memory) >= self.fitted * 1.1 + 1

    def refit(self) -> None:
        from scipy.optimize import minimize  # slow to import, and needed by two strategies

        X, symbols = self.memory["x"].numpy(), self.memory["symbol"].numpy()
        one_hot = np.eye(len(self.theta))[symbols]

        def penalised(flat: Floats) -> tuple[float, Floats]:
            theta = flat.reshape(self.theta.shape)
            logits = X @ theta.T
            value = -(one_hot * log_softmax(logits, axis=1)).sum() + self.penalty / 2 * (flat @ flat)
            return float(value), ((softmax(logits, axis=1) - one_hot).T @ X + self.penalty * theta).ravel()

        found = minimize(penalised, self.theta.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 200})
        self.theta = found.x.reshape(self.theta.shape)
        self.fitted = len(self.memory)

    def state_dict(self) -> dict[str, Any]:
        memory = self.memory.state_dict()
        return {
            "counts": self.counts.state_dict(),
            "theta": torch.from_numpy(self.theta.copy()),
            "memory": memory,
            "fitted": self.fitted,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.counts.load_state_dict(state["counts"])
        theta = state["theta"].numpy().copy()
        if theta.shape != self.theta.shape:
            raise ValueError(f"theta has shape {theta.shape}, not {self.theta.shape}")
        self.theta = theta
        self.memory.load_state_dict(state["memory"])
        self.fitted = int(state["fitted"])


LINKS: dict[str, type[Linear] | type[Logistic]] = {"linear": Linear, "logistic": Logistic}


def symbol_estimate(link: str, n_features: int, n_symbols: int, penalty: float) -> SymbolEstimate:
    """An estimate by the name of its link."""
    if link not in LINKS:
        raise ValueError(f"link is {link!r}: give {' or '.join(map(repr, LINKS))}")
    return LINKS[link](n_features, n_symbols, penalty=penalty)
