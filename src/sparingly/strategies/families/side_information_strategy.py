"""What CBPside and RandCBPside share: estimates from the observation, linear or logistic, and their widths."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.learning.pseudo_counts import PseudoCounts
from sparingly.strategies.families.confidence_bound_strategy import ConfidenceBoundStrategy
from sparingly.strategies.families.confidence_bounds import Floats, PairComparison
from sparingly.strategies.families.side_information import symbol_estimate
from sparingly.strategies.strategy import NEVER, Assessment


class SideInformationStrategy(ConfidenceBoundStrategy):
    """Confidence bounds with side information; a subclass says by what the widths are multiplied.

    The width of action a at x is sigma_a (U + sqrt(penalty) sigma_a) |x| in the norm of G_a^-1, with sigma_a symbols
    and U = sqrt(d log t + 2 log(1 / delta_t)), delta_t = t^-2. For a logistic link it is multiplied by the link's
    steepest slope over its least one, which is taken at a logit of `reach`: the bound holds while no logit is larger.
    An action is underplayed where its pseudo-count 1 / |x|^2 is below its rate; the pseudo-count is of the rounds in
    which it was played, answered or not.

    Parameters
    ----------
    game
        Any game that is not hopeless.
    n_features
        A number, or a shape; an image is taken as a row of numbers.
    link
        "linear" or "logistic".
    penalty
        G starts at penalty I.
    alpha
        In the exploration rate f(t).
    reach
        The largest logit that the logistic link's width allows for.
    ties
        Among equal W_a w_a the "cheapest" candidate, or the "lowest" action.
    """

    def __init__(
        self,
        game: Game,
        n_features: int | tuple[int, ...],
        *,
        link: str = "linear",
        penalty: float = 0.05,
        alpha: float = 1.01,
        reach: float = 2.0,
        ties: str = "cheapest",
        seed: int = 0,
    ) -> None:
        super().__init__(game, n_features, norm=2, alpha=alpha, ties=ties, seed=seed)
        if not penalty > 0:
            raise ValueError(f"penalty is {penalty}: it must be positive")
        self.link, self.penalty = link, penalty
        self.slack = 1.0 if link == "linear" else 0.25 * (2 + 2 * math.cosh(reach))
        self._sizes = np.array([len(game.symbols(a)) for a in self.bounds.informative], dtype=float)
        self.estimates = {
            a: symbol_estimate(link, self.n_features, len(game.symbols(a)), penalty) for a in self.bounds.informative
        }
        self.counts = {a: PseudoCounts(self.n_features, penalty=penalty) for a in self.observers}

    @abc.abstractmethod
    def _factor(self, root: float) -> Floats | None:
        """The factor of each informative action's root U, as a share of it, `[informative]`; None for 1."""

    def _compare(self, assessment: Assessment, row: int) -> tuple[PairComparison, int]:
        pi, length = self._distributions(_flat(assessment, row))
        root = math.sqrt((self.n_features + 4) * math.log(self.clock + 1))
        margin = math.sqrt(self.penalty) * self._sizes
        width = self.slack * self._sizes * (root + margin) * length
        share = self._factor(root)
        drawn = None if share is None else ((share * root + margin) / (root + margin))[None]
        return self.bounds.compare(pi[None], width[None], action_factor=drawn), 0

    def _distributions(self, x: Tensor) -> tuple[Floats, Floats]:
        """The symbols' estimated distributions side by side, and |x| for each informative action."""
        found = [estimate.distribution(x) for estimate in self.estimates.values()]
        return np.concatenate([np.zeros(0), *(pi for pi, _ in found)]), np.array([length for _, length in found])

    def _times_played(self, assessment: Assessment, row: int, action: int) -> float:
        x = _flat(assessment, row)
        return 1 / max(float(x @ self.counts[action].solve(x)), 1e-30)

    def _count(self, assessment: Assessment, row: int, action: int) -> None:
        if action in self.counts:
            self.counts[action].add(_flat(assessment, row))

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        self.estimates[action].add(x.flatten().double(), symbol)

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        return {}

    def _train(self) -> None:
        for estimate in self.estimates.values():
            if estimate.stale():
                estimate.refit()

    def _due_in(self) -> int:
        return NEVER

    def _due_after_label(self) -> bool:
        return any(estimate.stale() for estimate in self.estimates.values())

    def _scores(self, X: Tensor) -> Tensor:
        pi = np.array([self._distributions(x)[0] for x in X.flatten(1).double()]).reshape(len(X), self.bounds.n_symbols)
        return torch.from_numpy(self.bounds.outcomes(pi))

    def _identity(self) -> dict[str, Any]:
        return {"link": self.link}

    def _learned(self) -> dict[str, Any]:
        return {
            "estimates": {str(a): estimate.state_dict() for a, estimate in self.estimates.items()},
            "counts": {str(a): counts.state_dict() for a, counts in self.counts.items()},
        }

    def _relearn(self, learned: Mapping[str, Any]) -> None:
        for action, estimate in self.estimates.items():
            estimate.load_state_dict(learned["estimates"][str(action)])
        for action, counts in self.counts.items():
            counts.load_state_dict(learned["counts"][str(action)])


def _flat(assessment: Assessment, row: int) -> Tensor:
    """One observation as a row of numbers of its own: sums round differently with where a row lies in memory."""
    return assessment.X[row].flatten().double()
