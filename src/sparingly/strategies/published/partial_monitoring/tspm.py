"""TSPM: draw an outcome distribution from the posterior, play what is cheapest under it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtri_exp, rel_entr
from torch import Tensor

from sparingly.games import Game
from sparingly.games.geometry import is_observable, row_basis
from sparingly.strategies.families.confidence_bound_strategy import announced
from sparingly.strategies.families.confidence_bounds import Bounds, Floats
from sparingly.strategies.families.featureless_strategy import FeaturelessStrategy
from sparingly.strategies.strategy import Assessment, Why


class TSPM(FeaturelessStrategy):
    """Thompson sampling for partial monitoring; looks at no feature.

    The posterior F(p) is the prior N(0, I / penalty) on the simplex times exp(-sum_a n_a KL(q_a || S_a p)), q_a the
    frequencies of action a's symbols. Draws come from a Gaussian G >= F, exp(-sum_a n_a |q_a - S_a p|^2 / 2), and are
    accepted with probability F / (R G). It only ever plays actions that are cheapest somewhere: a game that these
    cannot observe, such as a label-efficient one with an expert who is never cheapest, is refused. Where hundreds of
    draws are rejected, as with many outcomes, a random walk with the posterior as its limit makes one instead.

    Parameters
    ----------
    game
        A game whose actions that are cheapest somewhere tell every pair of neighbors apart.
    penalty
        Of the prior.
    R
        1: exact. 0: every draw from G is taken. Between: some of both.

    >>> from sparingly import bandit, label_efficient
    >>> strategy = TSPM(bandit(2), n_features=1, seed=0)
    >>> for t in range(200):
    ...     decision = strategy.decide(strategy.assess([[0.0]]), 0)
    ...     strategy.learn([0.0], decision.action, "pays" if decision.action == 1 else "fails")
    >>> int(strategy.counts.answers().argmax())
    1
    >>> TSPM(label_efficient(2), n_features=1)
    Traceback (most recent call last):
        ...
    ValueError: tspm never plays ask the expert, which is nowhere the cheapest, and nothing else tells ...

    References
    ----------
    Tsuchiya, Honda, Sugiyama (2020). Analysis and design of Thompson sampling for stochastic partial monitoring.
    """

    name = "tspm"
    summary = "Thompson sampling over outcome distributions, without features"
    reference = "Tsuchiya, Honda, Sugiyama 2020"
    playable = "games observable by actions that are cheapest somewhere"
    batch, most_batches = 64, 8

    def __init__(
        self, game: Game, n_features: int | tuple[int, ...], *, penalty: float = 0.001, R: float = 1.0, seed: int = 0
    ) -> None:
        super().__init__(game, n_features, seed=seed)
        if not 0 <= R <= 1:
            raise ValueError(f"R is {R}: it must be between 0 (no rejection) and 1 (exact)")
        if not penalty > 0:
            raise ValueError(f"penalty is {penalty}: it must be positive")
        self.penalty, self.R = penalty, R
        _refuse_unseen(self.bounds, self.name)
        self.walks = 0
        """How often no draw was accepted in time, so that a random walk made one."""

    def log_ratio(self, p: Floats) -> Floats:
        """log F(p) - log G(p), `[block]`, for distributions `[block, outcome]`: never positive."""
        n, q, pi = self.counts.answers_by_symbol(), self.counts.frequencies(), p @ self.signals.T
        return np.asarray((n * ((q - pi) ** 2 / 2 - rel_entr(q, pi))).sum(1))

    def draw(self) -> Floats:
        """An outcome distribution from the posterior."""
        S = self.signals
        B = self.penalty * np.eye(self.game.n_outcomes) + S.T @ (self.counts.answers_by_symbol()[:, None] * S)
        gaussian = SimplexGaussian(B, S.T @ self.counts.symbols)
        for _ in range(self.most_batches):
            p = gaussian.propose(self.batch, self.rng)
            accepted = self.R * self.rng.random(len(p)) < np.exp(self.log_ratio(p))
            if accepted.any():
                return np.asarray(p[accepted.argmax()])
        self.walks += 1
        least = np.log(self.R) if self.R else -np.inf
        return gaussian.walk(self.rng, lambda p: min(0.0, float(self.log_ratio(p[None])[0]) - least))

    def _choose(self, assessment: Assessment, row: int) -> tuple[int, int, Why]:
        cost = self.game.costs @ self.draw()
        action = int(cost.argmin())
        best = cost[: self.game.n_outcomes] if self.game.is_label_efficient else cost
        why = Why("cheapest, at {cost:.3g}, under a draw from the posterior", {"cost": float(cost[action])})
        return action, announced(self.game, action, int(best.argmin())), why

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        self.counts.add(action, symbol)

    def _state(self) -> dict[str, Any]:
        return {"tallies": self.counts.state_dict(), "walks": self.walks}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.counts.load_state_dict(state["tallies"])
        self.walks = int(state["walks"])


def _refuse_unseen(bounds: Bounds, name: str) -> None:
    """A ValueError for a game in which the actions that are cheapest somewhere do not observe a pair of neighbors."""
    game, geometry = bounds.game, bounds.geometry
    never = [a for a in bounds.informative if a in geometry.dominated]
    if not never or not len(geometry.neighbors):
        return
    basis = row_basis([geometry.signal[a] for a in range(game.n_actions) if a not in geometry.dominated])
    for i, j in geometry.neighbors:
        if not is_observable((game.costs[i] - game.costs[j])[None], basis):
            raise ValueError(
                f"{name} never plays {game.actions[never[0]]}, which is nowhere the cheapest, and nothing else tells "
                f"{game.actions[i]} from {game.actions[j]}"
            )


class SimplexGaussian:
    """Density proportional to exp(-p'Bp / 2 + b'p) on distributions p.

    The last coordinate is what the others leave, B = [[Q, r], [r', f]]: the others have precision
    Q - r1' - 1r' + f11' and linear term f1 - r + b_head - b_last 1.

    >>> gaussian = SimplexGaussian(100 * np.eye(3), 100 * np.array([0.5, 0.3, 0.2]))
    >>> gaussian.propose(2000, np.random.default_rng(0)).mean(0).round(2).tolist()
    [0.5, 0.3, 0.2]
    """

    sweeps = 10

    def __init__(self, B: Floats, b: Floats) -> None:
        Q, r, f = B[:-1, :-1], B[:-1, -1], B[-1, -1]
        self.precision = Q - r[:, None] - r[None, :] + f
        self.linear = f - r + b[:-1] - b[-1]
        self._root = np.linalg.cholesky(self.precision).T
        self.mean = np.linalg.solve(self.precision, self.linear)

    def propose(self, n: int, rng: np.random.Generator) -> Floats:
        """Those of n draws of the unrestricted Gaussian that are distributions, `[at most n, outcome]`."""
        z = rng.standard_normal((n, len(self.mean)))
        head = self.mean + np.linalg.solve(self._root, z.T).T
        p = np.c_[head, 1 - head.sum(1)]
        return np.asarray(p[(p >= 0).all(1)])

    def walk(self, rng: np.random.Generator, log_weight: Callable[[Floats], float]) -> Floats:
        """One distribution from this density times a weight, where almost no unrestricted draw would be one.

        Sweeps over the coordinates from the middle of the simplex: each is drawn anew given the others, and the draw
        is taken with probability weight / old weight, at most 1 (Metropolis within Gibbs).
        """
        p = np.full(len(self.mean) + 1, 1 / (len(self.mean) + 1))
        weight = log_weight(p)
        for i in np.tile(np.arange(len(self.mean)), self.sweeps):
            room, moved = p[i] + p[-1], p.copy()
            sd = self.precision[i, i] ** -0.5
            mean = p[i] + (self.linear[i] - self.precision[i] @ p[:-1]) * sd**2
            moved[i] = min(max(_truncated_normal(mean, sd, room, rng.random()), 0.0), room)
            moved[-1] = room - moved[i]
            new_weight = log_weight(moved)
            if rng.random() < np.exp(min(0.0, new_weight - weight)):
                p, weight = moved, new_weight
        return p


def _truncated_normal(mean: float, sd: float, room: float, u: float) -> float:
    """A draw, made from a uniform u, of a normal restricted to [0, room], by logarithms so that tails do not vanish.

    scipy.stats.truncnorm takes about fifty times as long for one number, and would change the draws.
    """
    low, high = -mean / sd, (room - mean) / sd
    flip = low > 0
    if flip:
        low, high = -high, -low
    below, above = log_ndtr(low), log_ndtr(high)
    z = float(ndtri_exp(np.logaddexp(np.log1p(-u) + below, np.log(max(u, 1e-300)) + above)))
    return mean + sd * (-z if flip else z)
