"""The loop: a strategy plays a game on a stream, round by round."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Hashable, Iterable, Iterator, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sparingly.games import Game
from sparingly.strategies.strategy import Strategy, Why


@dataclass(frozen=True, slots=True)
class Round:
    """One round as the environment saw it.

    Attributes
    ----------
    t
        The round, counted from 1.
    action, prediction, why
        Of the decision.
    outcome
        The true class; no strategy sees it.
    symbol
        The feedback that the action brought.
    cost
        Of the action under the outcome.
    regret
        The cost less that of the cheapest action under the outcome.
    """

    t: int
    action: int
    prediction: int
    outcome: int
    symbol: Hashable
    cost: float
    regret: float
    why: Why


def play(
    strategy: Strategy,
    game: Game,
    stream: Iterable[tuple[Any, int]],
    *,
    delay: int = 0,
    block: int = 500,
    progress: bool = False,
) -> Iterator[Round]:
    """Play a stream of (observation, outcome), and give each round as it is played.

    Observations are assessed in blocks up to the next update; the decisions are those of blocks of one.

    Parameters
    ----------
    delay
        Answers reach the strategy this many rounds later; those still on the way at the end are delivered then.
    block
        The most observations to assess at once.
    progress
        Show a progress bar.

    Examples
    --------
    >>> from sparingly import NeuralCBP, label_efficient
    >>> game = label_efficient(2)
    >>> x = np.random.default_rng(0).normal(size=(200, 4))
    >>> rounds = list(play(NeuralCBP(game, 4, seed=0), game, zip(x, (x[:, 0] > 0).astype(int))))
    >>> len(rounds), rounds[2].action, rounds[2].cost
    (200, 2, 1.0)
    """
    if delay < 0:
        raise ValueError(f"delay is {delay}: answers cannot come before they are asked for")
    cheapest = game.costs.min(0)
    late: list[tuple[int, int, Any, int, Hashable]] = []
    for t, (x, outcome), decision in _decisions(strategy, stream, block, progress):
        outcome = _checked(outcome, game)
        symbol = game.feedback[decision.action][outcome]
        if decision.asks:
            heapq.heappush(late, (t + delay, t, x, decision.action, symbol))
        while late and late[0][0] <= t:
            strategy.learn(*heapq.heappop(late)[2:])
        cost = float(game.costs[decision.action, outcome])
        regret = cost - float(cheapest[outcome])
        yield Round(t, decision.action, decision.prediction, outcome, symbol, cost, regret, decision.why)
    while late:
        strategy.learn(*heapq.heappop(late)[2:])


def _decisions(strategy: Strategy, stream: Iterable[tuple[Any, int]], block: int, progress: bool) -> Iterator[Any]:
    """(round, (observation, outcome), decision), with one assessment for as many rounds as it stays valid."""
    source = iter(_bar(stream) if progress else stream)
    waiting: list[tuple[Any, int]] = []
    t = 0
    while True:
        n = min(block, strategy.rounds_to_update())
        waiting += itertools.islice(source, max(0, n - len(waiting)))
        if not waiting:
            return
        ahead, row = waiting[:n], 0
        assessment = strategy.assess(_stack([x for x, _ in ahead]))
        while row < len(ahead) and strategy.valid(assessment):
            t += 1
            yield t, ahead[row], strategy.decide(assessment, row)
            row += 1
        waiting = waiting[row:]


def _stack(xs: list[Any]) -> Any:
    if isinstance(xs[0], torch.Tensor):
        return torch.stack(xs)
    return np.stack([np.asarray(x) for x in xs])


def _checked(outcome: Any, game: Game) -> int:
    number = int(outcome)
    if number != outcome or not 0 <= number < game.n_outcomes:
        raise ValueError(f"outcome {outcome!r} is not one of 0 to {game.n_outcomes - 1}")
    return number


def _bar(stream: Iterable[Any]) -> Iterator[Any]:
    from rich.progress import track

    total = len(stream) if isinstance(stream, Sized) else None
    return iter(track(stream, total=total, description="playing"))
