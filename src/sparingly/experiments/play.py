"""The loop: a strategy plays a game on a stream, round by round."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch

from sparingly.experts import Answers, check_answers
from sparingly.experts.expert import reply
from sparingly.games import Game
from sparingly.strategies.strategy import Assessment, Decision, Strategy, Why

FIRST_BLOCK = 500
"""At least so many observations are assessed at once, if there are as many up to the next update."""


class Round(NamedTuple):
    """One round as the environment saw it.

    Attributes
    ----------
    t
        The round, counted from 1.
    action, why
        Of the decision; the last one, where a round has several.
    prediction
        Of the decision. Where experts have names, what was announced in the end: the cheapest announcement once the
        truth is known.
    outcome
        The true class; no strategy sees it.
    symbol
        The feedback that the action brought.
    cost
        Of the action under the outcome. Where experts have names, all prices and the cost of the announcement.
    regret
        The cost less that of the cheapest action under the outcome.
    asked
        Who was asked, by name, in this order.
    paid
        The prices of what was asked, which are part of the cost.
    """

    t: int
    action: int
    prediction: int
    outcome: int
    symbol: Hashable
    cost: float
    regret: float
    why: Why
    asked: tuple[str, ...] = ()
    paid: float = 0.0


def play(
    strategy: Strategy,
    game: Game,
    stream: Iterable[tuple[Any, int] | tuple[Any, int, Answers | None]],
    *,
    delay: int | Mapping[str, int] = 0,
    block: int = 4000,
    progress: bool = False,
) -> Iterator[Round]:
    """Play a stream of (observation, outcome), and give each round as it is played; an outcome is its number or name.

    Where the game's experts have names, an item may be (observation, outcome, answers): what each expert that is not
    gold answers if asked, by name: a class, None (or nothing) for no answer, or a pair (class or None, price paid).
    A round goes on until the strategy announces, or hears the truth.

    Observations are assessed in blocks up to the next update, and decided in blocks as long as nothing is asked; the
    decisions are those of blocks of one. So while rounds are given, the strategy may be up to a block ahead of them.

    Parameters
    ----------
    delay
        Answers reach the strategy this many rounds later, or by expert: `{"human": 50}`; those still on the way at the
        end are delivered then. A round that waits for an answer that may be wrong is given once it has ended.
    block
        The most observations to assess at once; fewer in the first rounds, when updates are frequent.
    progress
        Show a progress bar.

    Examples
    --------
    >>> from sparingly import NeuralCBP, label_efficient
    >>> game = label_efficient(2)
    >>> x = np.random.default_rng(0).normal(size=(200, 4))
    >>> rounds = list(play(NeuralCBP(game, 4, seed=0), game, zip(x, (x[:, 0] > 0).astype(int))))
    >>> len(rounds), rounds[0].action, rounds[0].cost
    (200, 2, 1.0)
    """
    player, experts, t = _RoundPlayer(strategy, game, delay), game.experts, 0
    for ahead, assessment in _blocks(strategy, stream, block, progress):
        row = 0
        while row < len(ahead) and strategy.valid(assessment):
            # A round in which an answer arrives is the last before the strategy has learned it.
            last = row + player.late[0].when - t if player.late else None
            decisions = strategy.decide_block(assessment, row, last)
            # Only the last of a block may ask, or be in the round of an answer.
            quiet = 0 if experts else max(0, len(decisions) - 1)
            for item, decision in zip(ahead[row : row + quiet], decisions, strict=False):
                t += 1
                if len(item) == 3:
                    check_answers(item[2], experts)
                yield player.announced(t, _checked(item[1], game), decision)
            row += quiet
            for decision in decisions[quiet:]:
                t += 1
                item = ahead[row]
                _, outcome, answers = item if len(item) == 3 else (*item, None)
                said = {} if answers is None else check_answers(answers, experts)
                if not (decision.asks or experts or (player.late and player.late[0].when <= t)):
                    yield player.announced(t, _checked(outcome, game), decision)
                else:
                    played = _Observation(t, assessment.X[row], _checked(outcome, game), said, assessment, row)
                    player.take(played, decision, t)
                    yield from player.deliver(t)
                row += 1
        del ahead[:row]
    while player.late:
        yield from player.deliver(player.late[0].when)


@dataclass(slots=True, eq=False)
class _Observation:
    """One observation, with what was asked, heard and paid so far."""

    t: int
    x: Any
    outcome: int
    answers: Answers
    assessment: Assessment
    row: int
    asked: tuple[str, ...] = ()
    heard: tuple[tuple[int, Hashable], ...] = ()
    paid: float = 0.0


@dataclass(frozen=True, slots=True, order=True)
class _Answer:
    """An answer on its way, None for one that does not come; the round goes on with it unless it has ended."""

    when: int
    t: int
    played: _Observation = field(compare=False)
    action: int = field(compare=False)
    symbol: Hashable = field(compare=False)
    ended: bool = field(compare=False)


class _RoundPlayer:
    """A strategy at its game: decisions become rounds, or answers on their way."""

    def __init__(self, strategy: Strategy, game: Game, delay: int | Mapping[str, int]) -> None:
        self.strategy, self.game = strategy, game
        self.late: list[_Answer] = []
        self._delay = delay
        self._rounds: list[Round] = []
        self._symbols = tuple(game.feedback)
        cheapest = (game.costs[: game.n_outcomes] if game.experts else game.costs).min(0)
        self._cheapest = cheapest.tolist()
        self._costs, self._regrets = game.costs.tolist(), (game.costs - cheapest).tolist()
        _check_delay(delay, game)

    def announced(self, t: int, outcome: int, decision: Decision) -> Round:
        """A quiet round: nothing is asked, no answer comes, and experts have no names."""
        action, symbol = decision.action, self._symbols[decision.action][outcome]
        cost, regret = self._costs[action][outcome], self._regrets[action][outcome]
        return Round(t, action, decision.prediction, outcome, symbol, cost, regret, decision.why)

    def take(self, played: _Observation, decision: Decision, now: int) -> None:
        """One decision: the round ends with it, or waits for an answer."""
        if not decision.asks:
            return self._end(played, decision, decision.prediction if not self.game.experts else decision.action)
        expert, outcome = self.game.expert(decision.action), played.outcome
        name = self.game.actions[decision.action].removeprefix("ask ") if expert is None else expert.name
        if name in played.asked:
            raise ValueError(f"{self.strategy.name} asks {name} twice in round {played.t}")
        played.asked += (name,)
        when = now + (self._delay if isinstance(self._delay, int) else self._delay.get(name, 0))
        if expert is None:
            played.paid += self._costs[decision.action][outcome]
            symbol = self._symbols[decision.action][outcome]
            heapq.heappush(self.late, _Answer(when, played.t, played, decision.action, symbol, ended=True))
            return self._end(played, decision, decision.prediction)
        answer = reply(expert, played.answers, outcome, self.game.n_outcomes)
        played.paid += answer.price
        symbol = None if answer.label is None else self._symbols[decision.action][answer.label]
        ended = expert.gold and symbol is not None
        heapq.heappush(self.late, _Answer(when, played.t, played, decision.action, symbol, ended))
        if ended:
            self._end(played, decision, int(self.game.costs[: self.game.n_outcomes, outcome].argmin()))

    def deliver(self, now: int) -> Iterator[Round]:
        """Let the strategy learn every answer that is due by now and go on with its round; then give what has ended."""
        while self.late and self.late[0].when <= now:
            answer = heapq.heappop(self.late)
            if answer.symbol is not None:
                self.strategy.learn(answer.played.x, answer.action, answer.symbol)
            if not answer.ended:
                answer.played.heard += ((answer.action, answer.symbol),)
                played = answer.played
                self.take(played, self.strategy.decide(played.assessment, played.row, played.heard), now)
        ended, self._rounds = self._rounds, []
        yield from ended

    def _end(self, played: _Observation, decision: Decision, prediction: int) -> None:
        outcome, action = played.outcome, decision.action
        symbol = self._symbols[action][outcome]
        cost = self._costs[action][outcome]
        if self.game.experts:
            named = self.game.expert(action) is not None
            announced = float(self.game.costs[prediction, outcome]) if named or not decision.asks else 0.0
            cost = played.paid + announced
        regret = cost - self._cheapest[outcome]
        self._rounds.append(
            Round(
                played.t,
                action,
                prediction,
                outcome,
                symbol,
                cost,
                regret,
                decision.why,
                played.asked,
                played.paid,
            )
        )


def _blocks(strategy: Strategy, stream: Iterable[Any], block: int, progress: bool) -> Iterator[Any]:
    """(items, assessment), as many at once as the assessment stays valid; the caller takes out those it has played."""
    source = iter(_bar(stream) if progress else stream)
    waiting: list[Any] = []
    while True:
        n = min(block, strategy.rounds_to_update(), max(FIRST_BLOCK, strategy.clock // 8))
        waiting += itertools.islice(source, max(0, n - len(waiting)))
        if not waiting:
            return
        ahead = waiting[:n]
        waiting = waiting[n:]
        yield ahead, strategy.assess(_stack([item[0] for item in ahead]))
        waiting = ahead + waiting


def _check_delay(delay: int | Mapping[str, int], game: Game) -> None:
    names = [expert.name for expert in game.experts]
    for name, rounds in delay.items() if isinstance(delay, Mapping) else [(None, delay)]:
        if name is not None and name not in names:
            raise ValueError(f"there is a delay of {name!r}, who is no expert of the game")
        if rounds < 0:
            raise ValueError(f"delay is {rounds}: answers cannot come before they are asked for")


def _stack(xs: list[Any]) -> Any:
    if isinstance(xs[0], torch.Tensor):
        return torch.stack(xs)
    rows = [np.asarray(x) for x in xs]
    shapes = {row.shape for row in rows}
    return np.array(rows) if len(shapes) == 1 else np.stack(rows)


def _checked(outcome: Any, game: Game) -> int:
    if type(outcome) is int and 0 <= outcome < game.n_outcomes:
        return outcome
    if isinstance(outcome, str):
        if outcome not in game.outcomes:
            raise ValueError(f"outcome {outcome!r} is not one of {', '.join(game.outcomes)}")
        return game.outcomes.index(outcome)
    number = int(outcome)
    if number != outcome or not 0 <= number < game.n_outcomes:
        raise ValueError(f"outcome {outcome!r} is not one of 0 to {game.n_outcomes - 1}")
    return number


def _bar(stream: Iterable[Any]) -> Iterator[Any]:
    from rich.progress import track

    total = len(stream) if isinstance(stream, Sized) else None
    return iter(track(stream, total=total, description="playing"))
