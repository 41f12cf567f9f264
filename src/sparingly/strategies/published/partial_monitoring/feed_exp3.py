"""FeedExp3: exponential weights on costs that are estimated from symbols, against any sequence of outcomes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from sparingly.games import Game
from sparingly.strategies.families.confidence_bound_strategy import announced
from sparingly.strategies.families.confidence_bounds import Bounds, Floats
from sparingly.strategies.families.featureless_strategy import FeaturelessStrategy
from sparingly.strategies.strategy import Assessment, Why


class FeedExp3(FeaturelessStrategy):
    """Plays an action with probability exponential in its estimated cost so far, mixed with uniform exploration.

    Regret of order T^(2/3) on every globally observable game, whatever the outcomes; looks at no feature. Vectors k
    with c_i - c_ref = sum_a S_a' k_ia turn the symbol of the action a that was played into k_ia[symbol] / p(a), an
    unbiased estimate of what action i costs more than a reference. Where the costs themselves are observable, as in
    label-efficient games, the reference costs nothing. A dominated action whose costs are not observable counts as
    always costing its most.

    Parameters
    ----------
    horizon
        With a number, the rates of 2001 for a known horizon; without, those of 2006, which need none.

    >>> from sparingly import label_efficient
    >>> strategy = FeedExp3(label_efficient(2), n_features=1)
    >>> strategy.k[:, :].tolist(), round(strategy.rates(1000)[1], 3)
    ([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], 0.192)

    References
    ----------
    Piccolboni, Schindelhauer (2001). Discrete prediction games with arbitrary feedback and loss. COLT.
    Cesa-Bianchi, Lugosi, Stoltz (2006). Regret minimization under partial monitoring. Mathematics of OR 31.
    """

    name = "feed_exp3"
    summary = "exponential weights on estimated costs, against any sequence of outcomes, without features"
    reference = "Piccolboni, Schindelhauer 2001; Cesa-Bianchi, Lugosi, Stoltz 2006"
    most_waiting = 10_000

    def __init__(
        self, game: Game, n_features: int | tuple[int, ...], *, horizon: int | None = None, seed: int = 0
    ) -> None:
        super().__init__(game, n_features, seed=seed)
        if horizon is not None and horizon < 1:
            raise ValueError(f"horizon is {horizon}: it must be at least 1")
        self.horizon = horizon
        self.k, self.reference_costs = cost_vectors(self.bounds, self.signals)
        """`[action, symbol]` over all informative actions' symbols, and c_ref, `[outcome]`."""
        self.estimated = np.zeros(game.n_actions)
        self._waiting: dict[str, float] = {}

    def rates(self, t: int) -> tuple[float, float]:
        """eta and gamma in round t, counted from 1."""
        n = self.game.n_actions
        if self.horizon is not None:
            gamma = n**0.5 * math.log(n) ** 0.25 * self.horizon**-0.25
            return math.sqrt(math.log(n) / self.horizon), min(1.0, gamma)
        scale = (max(1.0, float(np.abs(self.k).max(initial=0.0))) * math.sqrt(math.e - 2)) ** (2 / 3)
        eta = (math.log(n) / n) ** (2 / 3) * t ** (-2 / 3) / scale
        return eta, min(1.0, scale * (n**2 * math.log(n)) ** (1 / 3) * t ** (-1 / 3))

    def action_probabilities(self, t: int) -> Floats:
        """p, `[action]`, in round t, counted from 1."""
        eta, gamma = self.rates(t)
        weight = np.exp(-eta * (self.estimated - self.estimated.min()))
        return np.asarray((1 - gamma) * weight / weight.sum() + gamma / len(weight))

    def _choose(self, assessment: Assessment, row: int) -> tuple[int, int, Why]:
        p = self.action_probabilities(self.clock + 1)
        action = int(self.rng.choice(len(p), p=p / p.sum()))
        if self.game.informative_mask[action]:
            if len(self._waiting) >= self.most_waiting:
                del self._waiting[next(iter(self._waiting))]
            self._waiting[_ticket(assessment.X[row], action)] = float(p[action])
        best = self.estimated[: self.game.n_outcomes] if self.game.is_label_efficient else self.estimated
        why = Why("drawn with probability {probability:.3g}", {"probability": float(p[action])})
        return action, announced(self.game, action, int(best.argmin())), why

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        # The symbol counts by the probability with which it was drawn, even if it comes late.
        p = self._waiting.pop(_ticket(x, action), None) or float(self.action_probabilities(self.clock + 1)[action])
        self.estimated += self.k[:, self.bounds.slices[action].start + symbol] / p
        self.counts.add(action, symbol)

    def _teach(self, X: Tensor, action: int, outcomes: Sequence[int]) -> None:
        raise ValueError(
            f"{self.name} weighs a symbol by the chance of its question: a label nobody asked for has none"
        )

    def _state(self) -> dict[str, Any]:
        waiting = dict(self._waiting)
        return {"estimated": self.estimated.tolist(), "tallies": self.counts.state_dict(), "waiting": waiting}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.estimated = np.array(state["estimated"], dtype=float)
        self.counts.load_state_dict(state["tallies"])
        self._waiting = {str(ticket): float(p) for ticket, p in state["waiting"].items()}


def cost_vectors(bounds: Bounds, signals: Floats) -> tuple[Floats, Floats]:
    """k, `[action, symbol]`, and the reference costs: k pi = costs - reference for every outcome distribution."""
    game = bounds.game
    for reference in (np.zeros(game.n_outcomes), game.costs[bounds.geometry.pareto[0]]):
        target = game.costs - reference
        k = np.linalg.lstsq(signals.T, target.T, rcond=None)[0].T if len(signals) else np.zeros((game.n_actions, 0))
        unseen = np.abs(k @ signals - target).max(1) > 1e-9 * max(1.0, np.abs(game.costs).max())
        if not unseen[list(bounds.geometry.pareto)].any():
            break
    # One informative action's symbols have probabilities that sum to 1: a constant row is its constant vector.
    constant = np.zeros(len(signals))
    constant[bounds.slices[bounds.informative[0]] if bounds.informative else slice(0)] = 1.0
    k[unseen] = target[unseen].max(1)[:, None] * constant
    return np.where(np.abs(k) < 1e-12, 0.0, k), reference


def _ticket(x: Tensor, action: int) -> str:
    return f"{action}:{hashlib.sha1(x.contiguous().numpy().tobytes()).hexdigest()}"
