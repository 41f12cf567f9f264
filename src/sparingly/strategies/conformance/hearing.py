"""Checks of rounds with several answers, some of which may be wrong, late, or never come."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.experts import Expert
from sparingly.games import Game, label_efficient
from sparingly.learning import state_files
from sparingly.strategies.conformance.case import (
    Case,
    CaseStream,
    ConformanceError,
    Move,
    easy_stream,
    expect,
    expect_same,
    expect_scores,
    move,
)
from sparingly.strategies.strategy import Decision, Strategy

CARELESS, SILENT, HUMAN = (
    Expert("careless", 0.05),
    Expert("silent", 0.01, accuracy=0.9),
    Expert("human", 1.0, gold=True),
)


def experts_who_may_err_are_played_or_refused(case: Case) -> None:
    """A game with such experts is refused with the expert's name, or every round of it ends, the truth known or not."""
    for experts in ([CARELESS, HUMAN], [HUMAN, SILENT], [CARELESS, SILENT]):
        game = _game(experts)
        try:
            strategy = case.make(game)
        except ValueError as error:
            noisy = [expert.name for expert in experts if not expert.gold]
            named = any(name in str(error) for name in noisy)
            expect(named, f"experts {', '.join(noisy)} are refused, but the reason names none of them: {error}")
            continue
        table = _Rounds(strategy, _stream(case, game), _careless(case))
        table.play()
        expect(strategy.clock == table.played, f"the clock is {strategy.clock} after {table.played} rounds")
        expect_scores(strategy, table.stream.X[:5], f"after rounds with {', '.join(one.name for one in experts)}")


def rounds_with_several_answers_can_be_repeated(case: Case) -> None:
    """Blocks equal single rounds, and a state saved while an answer is to come, or just came, continues the round."""
    game = _game([CARELESS, HUMAN])
    if not case.accepts(game):
        return
    stream, said = _stream(case, game), _careless(case)
    first = _Rounds(case.make(game), stream, said).play()
    for block in (7, 500):
        expect_same(first, _Rounds(case.make(game), stream, said).play(block), f"in blocks of {block} with experts")

    def reload(strategy: Strategy) -> Strategy:
        written = state_files.dump(strategy.state_dict())
        return case.make(game, seed=case.seed + 1).load_state_dict(state_files.load(written))

    for when in ("asked", "heard"):
        again = _Rounds(case.make(game), stream, said, interrupt=when, change=reload).play()
        expect_same(first, again, f"saved and loaded in the middle of a round, after an expert was {when}")


def answers_of_experts_may_be_late_or_missing(case: Case) -> None:
    """One expert answers at once and another much later, about the same item; one never answers; twice is the same."""
    game = _game([CARELESS, SILENT, HUMAN])
    if not case.accepts(game):
        return
    stream, said = _stream(case, game), _careless(case)
    runs = [_Rounds(case.make(game), stream, said, late={"human": 9, "careless": 3 * k}).play(10) for k in (0, 0, 1)]
    expect_same(runs[0], runs[1], "the second time with late answers")
    table = _Rounds(case.make(game), stream, {})
    table.play()
    expect(table.played == len(stream), f"{table.played} of {len(stream)} rounds ended where nobody answers")
    strategy = table.strategy
    assessment = strategy.assess(stream.X[:1])
    for symbol in ("no such class", ("a", 1)):
        try:
            strategy.decide(assessment, 0, ((game.n_outcomes, symbol),))
        except (ValueError, TypeError):
            continue
        raise ConformanceError(f"an answer {symbol!r}, which is no class, was heard without complaint")


def _game(experts: list[Expert]) -> Game:
    return label_efficient(3, experts=experts)


def _stream(case: Case, game: Game) -> CaseStream:
    return easy_stream(game, case.n_features, case.rounds, seed=7, share=0.5)


def _careless(case: Case) -> Mapping[str, NDArray[np.int64]]:
    """What the careless expert says: the truth three times out of four."""
    rng = np.random.default_rng(8)
    stream = _stream(case, _game([HUMAN]))
    wrong = rng.integers(3, size=len(stream))
    return {"careless": np.where(rng.random(len(stream)) < 0.75, stream.outcomes, wrong)}


@dataclass
class _Rounds:
    """Plays rounds in which a strategy asks, hears and decides again; everyone but those in `said` is silent or gold.

    Attributes
    ----------
    said
        Answers by expert, one a round.
    late
        By expert: rounds until the answer comes.
    interrupt, change
        In the middle of a round, once someone was "asked" or was "heard", what becomes of the strategy.
    """

    strategy: Strategy
    stream: CaseStream
    said: Mapping[str, NDArray[np.int64]]
    late: Mapping[str, int] | None = None
    interrupt: str = ""
    change: Callable[[Strategy], Strategy] | None = None
    played: int = 0

    def play(self, block: int = 1) -> list[Move]:
        moves: list[Move] = []
        waiting: list[tuple[int, Callable[[], Any]]] = []
        t = 0
        while t < len(self.stream):
            assessment = self.strategy.assess(self.stream.X[t : t + min(block, self.strategy.rounds_to_update())])
            for row in range(len(assessment)):
                if not self.strategy.valid(assessment):
                    break
                self._step(self.strategy.decide(assessment, row), t, (), moves, waiting)
                due = [answer for when, answer in waiting if when <= t]
                waiting[:] = [one for one in waiting if one[0] > t]
                for answer in due:
                    answer()
                t += 1
        while waiting:
            waiting.pop(0)[1]()
        return moves

    def _step(self, decision: Decision, t: int, heard: tuple[Any, ...], moves: list[Move], waiting: list[Any]) -> None:
        """Follow one round as far as its answers are there."""
        moves.append(move(decision))
        expert = self.strategy.game.expert(decision.action)
        if expert is None:
            expect(not decision.asks, f"round {t + 1} asks nobody the game has")
            self.played += 1
            return
        expect(decision.action not in [action for action, _ in heard], f"{expert.name} is asked twice in one round")
        answer = partial(self._hear, decision.action, t, heard, moves, waiting)
        if self.late and self.late.get(expert.name):
            waiting.append((t + self.late[expert.name], answer))
        else:
            answer()

    def _hear(self, action: int, t: int, heard: tuple[Any, ...], moves: list[Move], waiting: list[Any]) -> None:
        game, outcome = self.strategy.game, int(self.stream.outcomes[t])
        expert = game.expert(action)
        assert expert is not None
        self._change_after("asked")
        silent = not expert.gold and expert.name not in self.said
        symbol = None
        if not silent:
            label = outcome if expert.gold else int(self.said[expert.name][t])
            symbol = game.feedback[action][label]
            self.strategy.learn(self.stream.X[t], action, symbol)
        if expert.gold:
            self.played += 1
            return
        self._change_after("heard")
        clock = self.strategy.clock
        heard = (*heard, (action, symbol))
        decision = self.strategy.decide(self.strategy.assess(self.stream.X[t : t + 1]), 0, heard)
        expect(self.strategy.clock == clock, f"the clock moved from {clock} to {self.strategy.clock} within a round")
        self._step(decision, t, heard, moves, waiting)

    def _change_after(self, what: str) -> None:
        if what == self.interrupt and self.change is not None and self.played > 10:
            self.strategy, self.interrupt = self.change(self.strategy), ""
