"""The step that all confidence-bound strategies share: estimates and widths in, an action out (Algorithm 1).

A strategy gives for each observation the feedback distributions pi of the informative actions and their widths w;
`sparingly.games.block_elimination` says what these leave. What may be played is P(t), N+(t) and the underplayed actions
of V(t); what is played has the largest W_a w_a.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.games import Game, analyze
from sparingly.games.block_elimination import BlockElimination, BlockSurvivors, Candidates
from sparingly.strategies.families.network_options import check_choice
from sparingly.strategies.strategy import Why

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PairComparison:
    """A block of observations after elimination."""

    left: BlockSurvivors
    weighted: Floats
    """`[block, action]`: W_a w_a; 0 for an action that tells nothing."""


class Bounds:
    """Elimination and the choice of an action for one game.

    Parameters
    ----------
    game
        Any game that is not hopeless.
    norm
        The norm of the observer vectors in z and W: infinity (Eq. 5 of the paper) or 2.
    alpha
        The exploration rate is f(t) = alpha^(1/3) t^(2/3) log(t)^(1/3).
    ties
        Among candidates with equal W_a w_a play the "cheapest" by the estimates, or the "lowest" action.
    confident, contradiction
        When a pair is, and what is kept where the signs exclude everything (see `BlockElimination`).
    """

    def __init__(
        self,
        game: Game,
        *,
        norm: float = math.inf,
        alpha: float = 1.01,
        ties: str = "cheapest",
        confident: str = "above",
        contradiction: str = "pareto",
    ) -> None:
        self.game = game
        self.geometry = analyze(game)
        if self.geometry.observability == "hopeless":
            raise ValueError(f"{_hopeless(game)}: no strategy can keep its regret from growing linearly")
        check_choice(("cheapest", "lowest"), ties=ties)
        check_choice(("above", "reaches"), confident=confident)
        check_choice(("pareto", "all"), contradiction=contradiction)
        self.alpha, self.ties = alpha, ties
        self.elimination = BlockElimination(self.geometry, norm=norm, confident=confident, contradiction=contradiction)
        self.informative = self.geometry.informative
        self.W = self.elimination.weights
        self.rate_weight = self.W ** (2 / 3)
        """eta_a."""

    def of(self, game: Game) -> Bounds:
        """Bounds by the same rules for another game."""
        rules = self.elimination
        return Bounds(
            game,
            norm=rules.norm,
            alpha=self.alpha,
            ties=self.ties,
            confident=rules.confident,
            contradiction=rules.contradiction,
        )

    @property
    def n_symbols(self) -> int:
        """The symbols of all informative actions."""
        return self.elimination.n_symbols

    @property
    def slices(self) -> dict[int, slice]:
        """The symbols of each informative action in the flattened distributions."""
        return self.elimination.slices

    def rate(self, t: int) -> float:
        """f(t) for t counted from 1.

        >>> from sparingly.games import label_efficient
        >>> [round(Bounds(label_efficient(2)).rate(t), 2) for t in (100, 1000, 10_000)]
        [35.96, 191.08, 976.19]
        """
        return float(self.alpha ** (1 / 3) * t ** (2 / 3) * math.log(max(t, 1)) ** (1 / 3))

    def outcomes(self, pi: Floats) -> Floats:
        """`[block, outcome]`: the outcome distributions that fit the flattened feedback distributions best."""
        return self.elimination.outcomes(pi)

    def compare(
        self, pi: Floats, w: Floats, factor: Floats | None = None, *, action_factor: Floats | None = None
    ) -> PairComparison:
        """Eliminate, for flattened feedback distributions `[block, symbols]` and widths `[block, informative]`.

        For randomised confidence bounds `factor`, `[block, pair]`, multiplies the width of each pair, `action_factor`,
        `[block, informative]`, that of each action; neither changes the choice among what survives.
        """
        weighted = np.zeros((len(pi), self.game.n_actions))
        weighted[:, self.informative] = self.W[list(self.informative)] * w
        w = w if action_factor is None else w * action_factor
        return PairComparison(self.elimination.restrict(pi, w, factor), weighted)

    def choose(
        self, comparison: PairComparison, row: int, underplayed: Callable[[int], bool]
    ) -> tuple[int, Candidates]:
        """The action to play at one row, and the candidates it was chosen from."""
        left = comparison.left.candidates(row)
        if len(left.allowed) == 1 and not left.observers:
            return left.allowed[0], left
        value = comparison.weighted[row]
        actions = [*left.allowed, *(a for a in left.observers if a not in left.allowed and underplayed(a))]
        largest = max(value[a] for a in actions)
        best = [a for a in actions if value[a] == largest]
        cheapest = int(comparison.left.cheapest[row])
        return (cheapest if self.ties == "cheapest" and cheapest in best else min(best)), left


def explain(action: int, game: Game, comparison: PairComparison, row: int, left: Candidates, **values: Any) -> Why:
    """The reason for an action, from the numbers that led to it."""
    block = comparison.left
    numbers = {"gap": float(block.gap[row]), "width": float(block.width[row]), "survivors": left.survivors}
    names = [game.actions[a] for a in left.survivors[:3]]
    numbers |= {"left": " and ".join(names) if len(left.survivors) < 4 else f"{len(left.survivors)} actions"}
    numbers |= {"action": game.actions[action], **values}
    if len(left.survivors) == 1:
        return Why(
            "{action}: nothing else is left, since it leads by {gap:.3g}, more than the width {width:.3g}", numbers
        )
    if values.get("pseudo_count") is None:
        return Why("{action}: {left} are within the width {width:.3g} (gap {gap:.3g})", numbers)
    if game.informative_mask[action]:
        return Why(
            "{action}: {left} are {gap:.3g} apart, within the width {width:.3g}, and too little was learned near here "
            "(pseudo-count {pseudo_count:.3g}, below the rate {rate:.3g})",
            numbers,
        )
    return Why(
        "{action}: {left} are {gap:.3g} apart, within the width {width:.3g}, but enough was learned near here "
        "(pseudo-count {pseudo_count:.3g}, rate {rate:.3g})",
        numbers,
    )


def _hopeless(game: Game) -> str:
    return f"the game with actions {', '.join(game.actions[:4])}{'...' if game.n_actions > 4 else ''} is hopeless"
