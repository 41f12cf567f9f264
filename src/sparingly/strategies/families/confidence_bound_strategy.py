"""What every confidence-bound strategy shares: a start, Algorithm 1, and what it says about its choice."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from sparingly.games import Game
from sparingly.strategies.families.confidence_bounds import Bounds, PairComparison, explain
from sparingly.strategies.families.network_options import check_choice, first_actions
from sparingly.strategies.strategy import Assessment, Strategy, Why


class ConfidenceBoundStrategy(Strategy):
    """Plays every action once, then what Algorithm 1 leaves; a subclass writes its estimates and widths.

    Parameters
    ----------
    norm
        Of the observer vectors: infinity or 2.
    alpha
        In the exploration rate f(t).
    ties
        Among equal W_a w_a the "cheapest" candidate, or the "lowest" action.
    rate_offset
        Added to the round, counted from 1, in f(t).
    start
        "each": every action once, in order. "question_first": the questions of a label-efficient game before its
        announcements. "informative": only those that tell something.
    confident, contradiction
        When a pair is, and what is kept where the signs exclude everything (see `Bounds`).
    """

    def __init__(
        self,
        game: Game,
        n_features: int | tuple[int, ...],
        *,
        norm: float = math.inf,
        alpha: float = 1.01,
        ties: str = "cheapest",
        rate_offset: int = 0,
        start: str = "each",
        confident: str = "above",
        contradiction: str = "pareto",
        seed: int = 0,
    ) -> None:
        super().__init__(game, n_features, seed=seed)
        check_choice(("each", "question_first", "informative"), start=start)
        if not alpha > 0:
            raise ValueError(f"alpha is {alpha}: it must be positive")
        self.bounds = Bounds(game, norm=norm, alpha=alpha, ties=ties, confident=confident, contradiction=contradiction)
        self._starts_with = start
        self._start = self._first_actions(game)
        self._rate_offset = rate_offset
        self.contradictions = 0
        """How often the confident signs excluded every distribution, so that everything was kept."""

    @abc.abstractmethod
    def _compare(self, assessment: Assessment, row: int) -> tuple[PairComparison, int]:
        """Estimates and widths after elimination, and the place of the row in them."""

    @abc.abstractmethod
    def _times_played(self, assessment: Assessment, row: int, action: int) -> float:
        """How often an informative action was played at observations like this one."""

    @abc.abstractmethod
    def _count(self, assessment: Assessment, row: int, action: int) -> None:
        """Count one more play of an informative action."""

    @property
    def observers(self) -> tuple[int, ...]:
        """The informative actions that tell the costs of some neighbor pair apart."""
        return tuple(a for a in self.bounds.informative if self.bounds.W[a] > 0)

    def _choose(self, assessment: Assessment, row: int) -> tuple[int, int, Why]:
        comparison, place = self._compare(assessment, row)
        if self.clock < len(self._start):
            action = self._start[self.clock]
            why = Why("{action}: every action is played once at the start", {"action": self.game.actions[action]})
        else:
            action, why = self._play(assessment, row, comparison, place)
        if self.game.informative_mask[action]:
            self._count(assessment, row, action)
        return action, announced(self.game, action, int(comparison.left.cheapest[place])), why

    def _teach(self, X: Tensor, action: int, outcomes: Sequence[int]) -> None:
        """A label that was taught counts like a question asked there."""
        assessment = Assessment(X, self.generation, self._assess(X))
        super()._teach(X, action, outcomes)
        for row in range(len(X)):
            self._count(assessment, row, action)

    def _first_actions(self, game: Game) -> tuple[int, ...]:
        if self._starts_with == "informative":
            return self.bounds.informative
        announcements = game.n_outcomes if game.is_label_efficient else game.n_actions
        return first_actions(self._starts_with, range(announcements), range(announcements, game.n_actions))

    def _play(self, assessment: Assessment, row: int, comparison: PairComparison, place: int) -> tuple[int, Why]:
        rate = self.bounds.rate(self.clock + 1 + self._rate_offset)
        seen: dict[str, float] = {}

        def underplayed(action: int) -> bool:
            if comparison.weighted[place, action] <= 0:
                return False
            seen["pseudo_count"] = self._times_played(assessment, row, action)
            seen["rate"] = float(self.bounds.rate_weight[action] * rate)
            return seen["pseudo_count"] < seen["rate"]

        action, left = self.bounds.choose(comparison, place, underplayed)
        self.contradictions += left.contradiction
        return action, explain(action, self.game, comparison, place, left, **seen)

    def _add_class(self, game: Game) -> None:
        old = self.bounds
        self.bounds = old.of(game)
        self._start = self._first_actions(game)
        self._add_output(old)

    def _add_output(self, old: Bounds) -> None:
        """Go on with the bounds of a game with one more class: each informative action has one more symbol."""
        raise ValueError(f"strategy {self.name} cannot take on a class: make it anew with all classes")

    def _state(self) -> dict[str, Any]:
        return {"contradictions": self.contradictions, "learned": self._learned()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.contradictions = int(state["contradictions"])
        self._relearn(state["learned"])

    @abc.abstractmethod
    def _learned(self) -> dict[str, Any]:
        """What the subclass has to add to the state."""

    @abc.abstractmethod
    def _relearn(self, learned: Mapping[str, Any]) -> None:
        """The inverse of `_learned`."""


def announced(game: Game, action: int, cheapest: int) -> int:
    """What an action announces: itself, or the cheapest announcement if it is a question."""
    return cheapest if game.is_label_efficient and game.informative_mask[action] else action
