"""Checks on whole streams: odd ones do not break a strategy, labels come late or never, and it is worth its price."""

from __future__ import annotations

import numpy as np

from sparingly.games import (
    Game,
    apple_tasting,
    bandit,
    dynamic_pricing,
    full_information,
    label_efficient,
    no_information,
)
from sparingly.strategies.conformance.case import (
    Case,
    CaseStream,
    answer,
    decisions,
    easy_stream,
    expect,
    expect_scores,
    play,
)
from sparingly.strategies.strategy import Decision, Strategy

HANDFUL = 10
"""Labels that are too few to stop at."""


def decisions_are_well_formed(case: Case) -> None:
    """Every action and prediction is one of the game's, `asks` says whether it tells something, `why` can be read."""
    strategy, game = case.make(), case.game
    for t, decision in decisions(strategy, case.stream):
        expect(strategy.clock == t + 1, f"the clock is {strategy.clock} after {t + 1} rounds")
        _well_formed(decision, game, t)
        if decision.asks:
            answer(strategy, case.stream, t, decision.action)


def _well_formed(decision: Decision, game: Game, t: int) -> None:
    where = f"in round {t + 1}"
    expect(0 <= decision.action < game.n_actions, f"action {decision.action} is not one of the game's {where}")
    tells = game.informative_mask[decision.action]
    expect(decision.asks == tells, f"asks is {decision.asks} for action {decision.action} {where}")
    said = decision.prediction
    expect(0 <= said < game.n_actions, f"prediction {said} is not one of the game's actions {where}")
    announces = not game.is_label_efficient or said < game.n_outcomes
    expect(announces, f"prediction {said} is a question {where}: it must be what is announced if one may not ask")
    expect(bool(str(decision.why)), f"the reason is empty {where}")


def every_game_is_played_or_refused(case: Case) -> None:
    """A game is refused by a ValueError when the strategy is made, or it can be played; a hopeless one is refused."""
    expect(not case.accepts(no_information(3)), "a game that shows nothing is accepted, though nobody can learn it")
    for name, game in _games().items():
        if not case.accepts(game):
            continue
        stream = easy_stream(game, case.n_features, case.rounds // 2, seed=6)
        strategy = case.make(game)
        for t, decision in decisions(strategy, stream, block=10):
            _well_formed(decision, game, t)
            if decision.asks:
                answer(strategy, stream, t, decision.action)
        expect_scores(strategy, stream.X[:5], f"in the game with {name}")


def _games() -> dict[str, Game]:
    return {
        "unequal costs": label_efficient(costs=np.array([[0, 1], [0.5, 0]])),
        "costs by announced class": label_efficient(costs=np.array([[0, 1, 1], [1, 0, 1], [0.25, 0.25, 0]])),
        "a cheap question": label_efficient(3, query_cost=0.3),
        "two experts": label_efficient(2, experts=[1.0, 0.8]),
        "a coarse question": label_efficient(3, questions=[[(0, 1), (2,)]], question_costs=0.6),
        "apple tasting": apple_tasting(),
        "a bandit": bandit(2),
        "dynamic pricing": dynamic_pricing(3),
        "full information": full_information(3),
    }


def labels_may_be_late_reordered_or_missing(case: Case) -> None:
    """Symbols that come late and in any order are learned, those that never come are not missed, twice is the same."""
    runs = [_play_with_gaps(case) for _ in range(2)]
    expect(runs[0] == runs[1], f"the same late labels gave {runs[1]} the second time, not {runs[0]}")
    strategy = case.make()
    silent = [a for a, tells in enumerate(case.game.informative_mask) if not tells]
    for action in silent[:1]:
        strategy.learn(case.stream.X[0], action, case.game.feedback[action][0])
    expect(strategy.n_labels == 0, f"a symbol that tells nothing was counted as {strategy.n_labels} labels")


def _play_with_gaps(case: Case) -> tuple[int, list[int]]:
    """A third of the symbols is lost, the others come up to 20 rounds late, the rest of them backwards at the end."""
    strategy, stream = case.make(), case.stream
    rng = np.random.default_rng(5)
    waiting: list[tuple[int, int, int]] = []
    actions, delivered = [], 0
    for t, decision in decisions(strategy, stream, block=10):
        actions.append(decision.action)
        if decision.asks and rng.random() < 2 / 3:
            waiting.append((t + int(rng.integers(20)), t, decision.action))
        arrived = sorted((w for w in waiting if w[0] <= t), reverse=True)
        waiting = [w for w in waiting if w[0] > t]
        delivered += _deliver(strategy, stream, arrived)
    delivered += _deliver(strategy, stream, waiting[::-1])
    expect(strategy.n_labels == delivered, f"{delivered} symbols were learned, {strategy.n_labels} were counted")
    play(strategy, CaseStream(stream.X[:5], stream.outcomes[:5]))
    return strategy.n_labels, actions


def _deliver(strategy: Strategy, stream: CaseStream, arrived: list[tuple[int, int, int]]) -> int:
    for _, t, action in arrived:
        answer(strategy, stream, t, action)
    return len(arrived)


def odd_streams_do_not_break_it(case: Case) -> None:
    """One class only, constant features, huge features, one feature, fifty classes."""
    rounds = case.rounds // 2
    plain = easy_stream(case.game, case.n_features, rounds, seed=4)
    for outcome in (0, case.game.n_outcomes - 1):
        _survives(case.make(), CaseStream(plain.X, np.full(rounds, outcome)), f"a stream of outcome {outcome} only")
    constant = np.full_like(plain.X, 2.0)
    _survives(case.make(), CaseStream(constant, plain.outcomes), "constant features")
    _survives(case.make(), CaseStream(np.zeros_like(constant), plain.outcomes), "features that are all zero")
    _survives(case.make(), CaseStream(plain.X * 1e4, plain.outcomes), "features in the ten thousands")
    _survives(case.make(n_features=1), easy_stream(case.game, 1, rounds, seed=4), "a stream of one feature")
    many = case.many_classes
    stream = easy_stream(many, case.n_features, rounds + many.n_actions, seed=4, share=1 / many.n_outcomes)
    _survives(case.make(many), stream, f"a stream of {many.n_outcomes} classes")


def _survives(strategy: Strategy, stream: CaseStream, what: str) -> None:
    moves = play(strategy, stream, block=50)
    expect(len(moves) == len(stream), f"{what} ended after {len(moves)} of {len(stream)} rounds")
    expect_scores(strategy, stream.X[:5], f"after {what}")


def asking_does_not_die(case: Case) -> None:
    """On a learnable stream no strategy stops asking for ever after a handful of labels, still making mistakes.

    A strategy whose definition allows it says so: `stops_asking = True`.
    """
    moves, stream = case.long_moves, case.long_stream
    half = len(moves) // 2
    asked = sum(one[2] for one in moves)
    later = sum(one[2] for one in moves[half:])
    best = case.game.costs.min(0)
    wrong = [case.game.costs[one[1], y] > best[y] for one, y in zip(moves[half:], stream.outcomes[half:], strict=True)]
    share = float(np.mean(wrong))
    expect(
        later > 0 or asked > HANDFUL or share <= 0.1,
        f"it asked {asked} times in {len(moves)} rounds, never in the second half, where {share:.0%} of what it "
        "announced was wrong; set stops_asking = True if its definition allows that",
    )


def it_beats_asking_at_random(case: Case) -> None:
    """On an easy stream it costs less than someone who asks by the flip of a coin, else announces what is commonest.

    In a game whose announcements are not questions the opponent plays every action equally often. A strategy that by
    its definition cannot says so: `beats_random = False`.
    """
    game, outcomes = case.game, case.long_stream.outcomes
    played = [one[0] for one in case.long_moves]
    cost = float(game.costs[played, outcomes].sum())
    if game.is_label_efficient:
        asked, announced = game.costs[game.n_outcomes :, outcomes], game.costs[: game.n_outcomes, outcomes]
        coin = float(asked.sum(1).min() + announced.sum(1).min()) / 2
    else:
        coin = float(game.costs[:, outcomes].mean(0).sum())
    expect(cost < coin, f"it cost {cost:.6g} in {len(played)} rounds, random asking {coin:.6g}")
