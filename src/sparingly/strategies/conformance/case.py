"""What the checks share: a strategy to build, a stream to play it on, and the moves it made."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sparingly.games import Game, apple_tasting, bandit, dynamic_pricing, full_information, label_efficient
from sparingly.strategies.strategy import Decision, Strategy


class Factory(Protocol):
    """Builds the strategy under test: a strategy class, or any function with these arguments."""

    def __call__(self, game: Game, n_features: int, *, seed: int) -> Strategy: ...


class ConformanceError(AssertionError):
    """A strategy breaks the contract; the message names the check and the numbers."""


@dataclass(frozen=True)
class CaseStream:
    """Observations `[round, feature]` and the outcomes that no strategy may see."""

    X: NDArray[np.float32]
    outcomes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.X)


def easy_stream(game: Game, n_features: int, rounds: int, *, seed: int = 0, share: float = 0.8) -> CaseStream:
    """Well separated outcomes, of which the one that tells the actions apart best has the given share.

    >>> stream = easy_stream(label_efficient(2), 4, 1000)
    >>> stream.X.shape, int((stream.outcomes == 0).sum())
    ((1000, 4), 788)
    """
    rng = np.random.default_rng(seed)
    common = int(np.ptp(game.costs, axis=0).argmax())
    rare = rng.integers(game.n_outcomes - 1, size=rounds) if game.n_outcomes > 1 else np.zeros(rounds, dtype=int)
    outcomes = np.where(rng.random(rounds) < share, common, rare + (rare >= common) * (game.n_outcomes > 1))
    return CaseStream(_around(outcomes, n_features, rng), outcomes.astype(np.int64))


def _around(outcomes: NDArray[Any], n_features: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Observations around one centre for each outcome, six deviations apart while there are features enough."""
    axis, lap = outcomes % n_features, outcomes // n_features
    X = rng.normal(size=(len(outcomes), n_features))
    X[np.arange(len(outcomes)), axis] += np.where(lap % 2 == 0, 5.0, -5.0) * (1 + lap // 2)
    return X.astype(np.float32)


Values = tuple[tuple[str, Any], ...]
Move = tuple[int, int, bool, Values]
"""Action, prediction, whether it asks, and the numbers of its reason."""


def move(decision: Decision) -> Move:
    values = tuple(sorted((name, repr(value)) for name, value in decision.why.values.items()))
    return decision.action, decision.prediction, decision.asks, values


def decisions(strategy: Strategy, stream: CaseStream, block: int = 1) -> Iterator[tuple[int, Decision]]:
    """Decide round by round on assessments of up to `block` observations, each used for as long as it is valid."""
    t = 0
    while t < len(stream):
        assessment = strategy.assess(stream.X[t : t + min(block, strategy.rounds_to_update())])
        for row in range(len(assessment)):
            if not strategy.valid(assessment):
                break
            yield t, strategy.decide(assessment, row)
            t += 1


def play(strategy: Strategy, stream: CaseStream, block: int = 1) -> list[Move]:
    """Play a stream, every symbol learned at once."""
    moves = []
    for t, decision in decisions(strategy, stream, block):
        if decision.asks:
            answer(strategy, stream, t, decision.action)
        moves.append(move(decision))
    return moves


def answer(strategy: Strategy, stream: CaseStream, t: int, action: int) -> None:
    """Let a strategy learn the symbol that an action brings in round t."""
    outcome = int(stream.outcomes[t])
    strategy.learn(stream.X[t], action, strategy.game.feedback[action][outcome])


class Case:
    """One factory under test, the games it can play, and the runs that several checks look at.

    Parameters
    ----------
    factory
        Builds the strategy.
    short
        Shorter streams, for quick tests.
    """

    seed = 3
    n_features = 4

    def __init__(self, factory: Factory, *, short: bool = False) -> None:
        self.factory = factory
        self.short = short
        self.rounds = 28 if short else 150
        self.long_rounds = 500 if short else 1000

    def make(self, game: Game | None = None, n_features: int | None = None, seed: int | None = None) -> Strategy:
        return self.factory(
            self.game if game is None else game,
            self.n_features if n_features is None else n_features,
            seed=self.seed if seed is None else seed,
        )

    def accepts(self, game: Game) -> bool:
        """Whether the strategy takes a game; refusing one is a ValueError at construction."""
        try:
            self.make(game)
        except ValueError:
            return False
        return True

    def first(self, *games: Game) -> Game:
        """The first of some games that the strategy can play."""
        for game in games:
            if self.accepts(game):
                return game
        raise ConformanceError(f"the strategy refuses every one of {', '.join(map(repr, games))}")

    @cached_property
    def game(self) -> Game:
        """The game that most checks play."""
        two = label_efficient(2), label_efficient(2, query_cost=0.4)
        return self.first(*two, apple_tasting(), full_information(2), bandit(2), dynamic_pricing(2))

    @cached_property
    def many_classes(self) -> Game:
        """Fifty classes or more, in the game whose structure is found quickest."""
        return self.first(label_efficient(50), bandit(6), full_information(50), label_efficient(50, query_cost=0.4))

    @cached_property
    def other_game(self) -> Game:
        """The same game but for its costs, so that only its numbers give it away."""
        game = self.game
        return Game(2 * game.costs, game.feedback, game.actions, game.outcomes)

    @cached_property
    def stream(self) -> CaseStream:
        return easy_stream(self.game, self.n_features, self.rounds, seed=1)

    @property
    def moves(self) -> list[Move]:
        """The run that the others are compared with: blocks of one, every symbol at once."""
        return self._run[1]

    @property
    def played(self) -> Strategy:
        """The strategy at the end of that run, for checks that leave it as it is."""
        return self._run[0]

    @cached_property
    def _run(self) -> tuple[Strategy, list[Move]]:
        strategy = self.make()
        return strategy, play(strategy, self.stream)

    @cached_property
    def long_stream(self) -> CaseStream:
        # So near to even that ten labels do not settle it, so uneven that a strategy without features can gain.
        return easy_stream(self.game, self.n_features, self.long_rounds, seed=2, share=0.65)

    @cached_property
    def long_moves(self) -> list[Move]:
        return play(self.make(), self.long_stream, block=500)


def expect(condition: bool, message: str) -> None:
    if not condition:
        raise ConformanceError(message)


def expect_same(ours: list[Move], theirs: list[Move], how: str) -> None:
    """Equal runs, or an error that names the first round in which they part."""
    for t, (one, other) in enumerate(itertools.zip_longest(ours, theirs)):
        expect(one == other, f"round {t + 1} is {other} {how}, not {one}")


def expect_scores(strategy: Strategy, X: NDArray[np.float32], how: str) -> None:
    """A finite score for every outcome."""
    scores = strategy.scores(X)
    expect(scores.shape == (len(X), strategy.game.n_outcomes), f"scores of {len(X)} have shape {scores.shape} {how}")
    bad = scores[~np.isfinite(scores)]
    expect(not len(bad), f"scores hold {bad[:1]} {how}")
