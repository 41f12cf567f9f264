"""A finite partial monitoring game: what every action costs and what it shows, for every outcome."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparingly.experts import Expert
from sparingly.experts.expert import check_experts
from sparingly.games.matrices import SymbolMatrix, checked_names, cost_matrix, symbol_matrix

if TYPE_CHECKING:
    from rich.table import Table

Symbol = Hashable


class Game:
    """Costs and feedback symbols of N actions under M outcomes, checked and named.

    Parameters
    ----------
    costs
        [action, outcome], any finite numbers.
    feedback
        [action, outcome], any hashable symbols. Symbols of different actions never count as equal.
    actions, outcomes
        Names; numbered from 0 when left out.
    experts
        Who is asked by actions M, M+1, ..., in this order, if it matters who they are (see `Expert`). The feedback of
        one that is not gold is the classes it may name, whatever the outcome.

    Examples
    --------
    >>> game = Game(costs=[[0, 1], [1, 0], [1, 1]], feedback=[["-", "-"], ["-", "-"], ["A", "B"]])
    >>> game
    Game(3 actions, 2 outcomes)
    >>> game.symbols(2), game.symbol_index(2, "B"), game.informative_mask
    (('A', 'B'), 1, (False, False, True))
    >>> Game([[0, float("nan")]], [["-", "-"]])
    Traceback (most recent call last):
    ...
    ValueError: costs[0, 1] is nan: every cost must be finite
    """

    def __init__(
        self,
        costs: ArrayLike | Sequence[Sequence[float]],
        feedback: Sequence[Sequence[Symbol]] | NDArray[Any],
        actions: Sequence[str] | None = None,
        outcomes: Sequence[str] | None = None,
        experts: Sequence[Expert] = (),
    ) -> None:
        self._costs = cost_matrix(costs)
        self._costs.setflags(write=False)
        n_actions, n_outcomes = self._costs.shape
        self._feedback = symbol_matrix(feedback, (n_actions, n_outcomes))
        self._actions = checked_names(actions, "action", n_actions, n_outcomes)
        self._outcomes = checked_names(outcomes, "outcome", n_outcomes, n_actions)
        self._symbols = tuple(tuple(dict.fromkeys(row)) for row in self._feedback)
        self._experts = check_experts(experts)
        self._check_experts()

    @property
    def costs(self) -> NDArray[np.float64]:
        """[action, outcome], read-only."""
        return self._costs

    @property
    def feedback(self) -> SymbolMatrix:
        """[action, outcome], the symbol shown."""
        return self._feedback

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of the actions."""
        return self._actions

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The names of the outcomes."""
        return self._outcomes

    @property
    def experts(self) -> tuple[Expert, ...]:
        """Who is asked by actions M, M+1, ...; empty where the game does not say."""
        return self._experts

    def expert(self, action: int) -> Expert | None:
        """Return the expert whom an action asks, if the game says who that is."""
        place = self._checked_action(action) - self.n_outcomes
        return self._experts[place] if 0 <= place < len(self._experts) else None

    @cached_property
    def noisy_experts(self) -> tuple[Expert, ...]:
        """The experts whose answers may be wrong."""
        return tuple(expert for expert in self._experts if not expert.gold)

    def without_noisy_experts(self) -> Game:
        """The game without the experts whose answers may be wrong: what is left can be known for certain."""
        if not self.noisy_experts:
            return self
        noisy = [self.n_outcomes + e for e, expert in enumerate(self._experts) if not expert.gold]
        keep = [a for a in range(self.n_actions) if a not in noisy]
        feedback, actions = [self._feedback[a] for a in keep], [self._actions[a] for a in keep]
        gold = [expert for expert in self._experts if expert.gold]
        return Game(self._costs[keep], feedback, actions, self._outcomes, gold)

    def with_class(self, name: str, cost: float | None = None) -> Game:
        """This label-efficient game with one more class, the last; whoever is asked tells it from the others.

        `cost` is that of every mistake about it, the largest that there is if left out.

        >>> from sparingly.games import label_efficient
        >>> game = label_efficient(classes=["cat", "dog"]).with_class("cow", cost=2.0)
        >>> game.costs.tolist(), game.symbols(3)
        ([[0.0, 1.0, 2.0], [1.0, 0.0, 2.0], [2.0, 2.0, 0.0], [1.0, 1.0, 1.0]], ('cat', 'dog', 'cow'))
        """
        n = self.n_outcomes
        if not self.is_label_efficient or any(len(self._symbols[a]) != n for a in range(n, self.n_actions)):
            raise ValueError(f"{self!r} cannot take on class {name!r}: each of its questions must tell every class")
        announce, ask = self._costs[:n], self._costs[n:]
        mistake = float(announce.max()) if cost is None else float(cost)
        own = float(announce.diagonal().min())
        costs = np.block([[announce, np.full((n, 1), mistake)], [np.full((1, n), mistake), np.full((1, 1), own)]])
        silent = self._feedback[0][0]
        return Game(
            np.vstack([costs, np.hstack([ask, ask.max(axis=1, keepdims=True)])]),
            [[silent] * (n + 1)] * (n + 1) + [[*row, name] for row in self._feedback[n:]],
            [*self._actions[:n], f"announce {name}", *self._actions[n:]],
            [*self._outcomes, name],
            self._experts,
        )

    def with_costs(self, costs: ArrayLike) -> Game:
        """This game with other costs, [action, outcome]: what is shown, and the names, stay.

        >>> from sparingly.games import label_efficient
        >>> game = label_efficient(2, costs=[[0, 5], [1, 0]], query_cost=0.5)
        >>> label_efficient(2).with_costs([[0, 5], [1, 0], [0.5, 0.5]]) == game
        True
        """
        changed = cost_matrix(costs)
        if changed.shape != self._costs.shape:
            raise ValueError(f"costs have the shape {changed.shape}, not {self._costs.shape}: one row an action")
        return Game(changed, self._feedback, self._actions, self._outcomes, self._experts)

    def of_first_classes(self, n: int) -> Game:
        """This label-efficient game with only its first n classes.

        >>> from sparingly.games import label_efficient
        >>> label_efficient(3).of_first_classes(2) == label_efficient(2)
        True
        """
        rows = [*range(n), *range(self.n_outcomes, self.n_actions)]
        feedback = [self._feedback[row][:n] for row in rows]
        actions = [self._actions[row] for row in rows]
        return Game(self._costs[rows, :n], feedback, actions, self._outcomes[:n], self._experts)

    @property
    def n_actions(self) -> int:
        """N, the number of actions."""
        return len(self._actions)

    @property
    def n_outcomes(self) -> int:
        """M, the number of outcomes."""
        return len(self._outcomes)

    def symbols(self, action: int) -> tuple[Symbol, ...]:
        """Return the distinct symbols of an action, in order of appearance."""
        return self._symbols[self._checked_action(action)]

    def symbol_index(self, action: int, symbol: Symbol) -> int:
        """Return the place of a symbol among those of an action."""
        places = self._symbol_places[self._checked_action(action)]
        try:
            return places[symbol]
        except (KeyError, TypeError):
            raise ValueError(f"action {action} ({self._actions[action]}) has no symbol {symbol!r}") from None

    @cached_property
    def informative_mask(self) -> tuple[bool, ...]:
        """Whether each action has two or more symbols."""
        return tuple(len(symbols) > 1 for symbols in self._symbols)

    @cached_property
    def labelling_action(self) -> int | None:
        """The cheapest action that tells every outcome from every other, for certain; None if there is none.

        >>> Game(costs=[[0, 1], [1, 0], [1, 1]], feedback=[["-", "-"], ["-", "-"], ["A", "B"]]).labelling_action
        2
        """
        noisy = {self.n_outcomes + e for e, expert in enumerate(self._experts) if not expert.gold}
        every = self.n_outcomes
        telling = [a for a, seen in enumerate(self._symbols) if len(seen) == every > 1 and a not in noisy]
        return min(telling, key=lambda a: (float(self._costs[a].max()), a), default=None)

    @cached_property
    def is_label_efficient(self) -> bool:
        """Whether the first M actions announce a class (one symbol each) and all later ones ask."""
        announce, ask = self.informative_mask[: self.n_outcomes], self.informative_mask[self.n_outcomes :]
        return bool(ask) and all(ask) and not any(announce)

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of costs, feedback partition and names, the same in every process."""
        rows = zip(self._feedback, self._symbol_places, strict=True)
        partition = np.array([[places[symbol] for symbol in row] for row, places in rows], dtype="<i4")
        digest = hashlib.sha256(json.dumps([self._actions, self._outcomes]).encode())
        # Adding zero makes -0.0 and 0.0, which are equal costs, the same bytes.
        digest.update((self._costs + 0.0).astype("<f8").tobytes())
        digest.update(partition.tobytes())
        if self._experts:
            digest.update(json.dumps([(one.name, one.gold, one.accuracy) for one in self._experts]).encode())
        return digest.hexdigest()[:16]

    @cached_property
    def _symbol_places(self) -> tuple[dict[Symbol, int], ...]:
        return tuple({symbol: place for place, symbol in enumerate(symbols)} for symbols in self._symbols)

    def _check_experts(self) -> None:
        for e, expert in enumerate(self._experts):
            action = self.n_outcomes + e
            if action >= self.n_actions or len(self._symbols[action]) != self.n_outcomes:
                raise ValueError(f"no action asks {expert.name}: action {action} must show each class by a symbol")
            if (self._costs[action] != expert.price).any():
                raise ValueError(f"action {action} asks {expert.name}: it must cost {expert.price:g}, whatever is true")

    def _checked_action(self, action: int) -> int:
        if isinstance(action, bool) or not isinstance(action, int | np.integer):
            raise TypeError(f"action {action!r} is not a whole number")
        if not 0 <= action < self.n_actions:
            raise IndexError(f"the game has no action {action}: its {self.n_actions} actions are numbered from 0")
        return int(action)

    def __repr__(self) -> str:
        return f"Game({_count(self.n_actions, 'action')}, {_count(self.n_outcomes, 'outcome')})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Game):
            return NotImplemented
        return (
            self._actions == other._actions
            and self._outcomes == other._outcomes
            and self._feedback == other._feedback
            and self._experts == other._experts
            and np.array_equal(self._costs, other._costs)
        )

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        return Game, (np.array(self._costs), self._feedback, self._actions, self._outcomes, self._experts)

    def __rich__(self) -> Table:
        from sparingly.games.game_files import game_table

        return game_table(self)

    @classmethod
    def read(cls, path: str | Path) -> Game:
        """Read a game from a TOML or JSON file (see `sparingly.games.game_files`)."""
        from sparingly.games.game_files import read_game

        return read_game(path)

    def write(self, path: str | Path) -> None:
        """Write the game to a TOML or JSON file, by the name's ending."""
        from sparingly.games.game_files import write_game

        write_game(self, path)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
