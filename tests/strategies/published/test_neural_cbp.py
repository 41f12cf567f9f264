"""NeuralCBP: what it decides, on which games, and that saving, blocks and late answers change nothing."""

from __future__ import annotations

import copy
import functools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import sparingly as sp
from sparingly.games import Game
from sparingly.learning import state_files as state_file
from sparingly.strategies import StateError
from sparingly.strategies.families.confidence_bounds import Bounds
from sparingly.strategies.published.partial_monitoring.neural_cbp_presets import PRESETS


def blobs(
    n: int, n_classes: int = 3, n_features: int = 5, seed: int = 0
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes, n_features)) * 2
    y = rng.integers(n_classes, size=n)
    return (centres[y] + rng.normal(size=(n, n_features))).astype(np.float32), y


def rounds(strategy: Any, game: Game, X: Any, y: Any, **options: Any) -> list[tuple[Any, ...]]:
    return [
        (r.t, r.action, r.prediction, r.symbol, r.cost, dict(r.why.values))
        for r in sp.play(strategy, game, zip(X, y, strict=True), **options)
    ]


def test_plays_each_action_once_then_asks_where_it_is_undecided() -> None:
    game, (X, y) = sp.label_efficient(3), blobs(300)
    played = list(sp.play(sp.NeuralCBP(game, 5, seed=0), game, zip(X, y, strict=True)))
    assert [r.action for r in played[:4]] == [3, 0, 1, 2]
    asked = [r for r in played[4:] if r.action == 3]
    assert asked
    for r in asked:
        assert len(r.why["survivors"]) >= 2
        assert r.why["gap"] <= r.why["width"]
        assert r.why["pseudo_count"] < r.why["rate"]
        assert "too little was learned near here" in str(r.why)
    for r in played[4:]:
        if len(r.why["survivors"]) == 1:
            assert (r.action,) == r.why["survivors"]


def test_cost_falls_as_it_learns() -> None:
    game, (X, y) = sp.label_efficient(3), blobs(2000)
    cost = [r.cost for r in sp.play(sp.NeuralCBP(game, 5, seed=0, widths="absolute"), game, zip(X, y, strict=True))]
    assert np.mean(cost[-500:]) < 0.5 * np.mean(cost[:200])


@pytest.mark.parametrize("preset", ["paper", "released"])
@pytest.mark.parametrize("costs", [None, [[0, 1, 1], [0.5, 0, 0.5], [1, 1, 0]], [[0, 1, 1], [2, 0, 1], [3, 1, 0]]])
def test_blocks_of_one_and_of_many_decide_alike(preset: str, costs: Any) -> None:
    game = sp.label_efficient(3) if costs is None else sp.label_efficient(costs=costs)
    X, y = blobs(160)
    alone, together = (
        rounds(sp.NeuralCBP(game, 5, preset=preset, seed=1, epochs=3), game, X, y, block=block) for block in (1, 500)
    )
    assert alone == together


def test_the_closed_form_and_the_linear_programs_decide_alike() -> None:
    game, rng = sp.label_efficient(costs=[[0, 1, 0.3], [0.5, 0, 0.3], [0.5, 1, 0]]), np.random.default_rng(0)
    bounds = Bounds(game)
    pi, w = rng.dirichlet(np.ones(3), 400), rng.normal(0.1, 0.15, (400, 1))
    closed = bounds.compare(pi, w)
    general = bounds.compare(pi, np.maximum(w, 0), factor=np.ones((400, len(bounds.geometry.neighbors))))
    for row in range(400):
        assert closed.left.candidates(row) == general.left.candidates(row)
        assert closed.left.cheapest[row] == general.left.cheapest[row]


GAMES = {
    "apple tasting": sp.apple_tasting(),
    "bandit": sp.bandit(),
    "dynamic pricing": sp.dynamic_pricing(3),
    "two experts": sp.label_efficient(2, experts=[1.0, 0.6]),
    "false positives cost more": sp.label_efficient(costs=[[0, 1], [0.5, 0]]),
    "cheap questions": sp.label_efficient(3, query_cost=0.3),
}


@pytest.mark.parametrize("preset", list(PRESETS))
@pytest.mark.parametrize("game", GAMES.values(), ids=list(GAMES))
def test_plays_any_game(game: Game, preset: str) -> None:
    X, y = blobs(60, game.n_outcomes)
    strategy = sp.NeuralCBP(game, 5, preset=preset, seed=0, epochs=5, widths="absolute")
    played = list(sp.play(strategy, game, zip(X, y, strict=True)))
    assert strategy.n_labels == sum(game.informative_mask[r.action] for r in played)
    assert strategy.n_labels > 0
    assert strategy.scores(X).shape == (60, game.n_outcomes)
    assert all(str(r.why) for r in played)


def test_a_hopeless_game_is_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match=r"hopeless.*linearly"):
        sp.NeuralCBP(Game([[0, 1], [1, 0]], [["a", "a"], ["b", "b"]]), 3)


def test_every_difference_is_a_keyword_that_wins_over_the_preset() -> None:
    game, (X, y) = sp.label_efficient(3), blobs(110)
    made = functools.partial(sp.NeuralCBP, game, 5, seed=0, epochs=6)
    base = rounds(made(preset="released"), game, X, y)
    never = ("ties", "confident", "contradiction")  # no change where no two numbers are equal and no signs contradict
    for name, value in vars(PRESETS["paper"]).items():
        assert getattr(PRESETS["released"], name) != value
        changed = made(preset="released", **{name: value})
        assert (rounds(changed, game, X, y) != base) or name in never, name
    all_of_them = made(preset="released", **vars(PRESETS["paper"]))
    assert rounds(all_of_them, game, X, y) == rounds(made(preset="paper"), game, X, y)


@pytest.mark.parametrize("ties", ["lowest", "cheapest"])
def test_ties_decide_what_is_announced_when_the_expert_is_not_underplayed(ties: str) -> None:
    bounds = Bounds(sp.label_efficient(3), ties=ties)
    comparison = bounds.compare(np.array([[0.3, 0.2, 0.5]]), np.array([[0.4]]))
    action, field = bounds.choose(comparison, 0, lambda _action: False)
    assert field.survivors == (0, 1, 2)
    assert action == {"lowest": 0, "cheapest": 2}[ties]
    assert bounds.choose(comparison, 0, lambda _action: True)[0] == 3


def test_save_and_load_in_a_new_process_goes_on_to_the_last_bit(tmp_path: Path) -> None:
    game, (X, y) = sp.label_efficient(3), blobs(170)
    strategy = sp.NeuralCBP(game, 5, seed=3, epochs=3)
    whole = rounds(copy.deepcopy(strategy), game, X, y)
    first = rounds(strategy, game, X[:98], y[:98])
    strategy.save(tmp_path / "state")
    np.savez(tmp_path / "rest.npz", X=X[98:], y=y[98:])
    program = (
        "import sys, numpy as np, torch, sparingly as sp\n"
        "torch.set_num_threads(1); rest = np.load(sys.argv[2]); game = sp.label_efficient(3)\n"
        "strategy = sp.NeuralCBP(game, 5, seed=99, epochs=3).load(sys.argv[1])\n"
        "for r in sp.play(strategy, game, zip(rest['X'], rest['y'])):\n"
        "    print(r.action, r.prediction, *(repr(r.why.get(name)) for name in ('gap', 'width', 'pseudo_count')))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "state"), str(tmp_path / "rest.npz")]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
    expected = [
        f"{a} {p} {w.get('gap')!r} {w.get('width')!r} {w.get('pseudo_count')!r}" for _, a, p, _, _, w in whole[98:]
    ]
    assert first == whole[:98]
    assert out == expected


def test_late_and_shuffled_answers_are_all_learned() -> None:
    game, (X, y) = sp.label_efficient(3), blobs(300)
    strategy = sp.NeuralCBP(game, 5, seed=0, widths="absolute")
    rng, waiting, asked = np.random.default_rng(0), [], 0
    for t, (x, outcome) in enumerate(zip(X, y, strict=True)):
        decision = strategy.decide(strategy.assess(x[None]), 0)
        if decision.asks:
            asked += 1
            waiting.append((t + 60, x, decision.action, game.feedback[decision.action][outcome]))
        ready = [item for item in waiting if item[0] <= t]
        waiting = [item for item in waiting if item[0] > t]
        for k in rng.permutation(len(ready)):
            strategy.learn(*ready[k][1:])
    for item in reversed(waiting):
        strategy.learn(*item[1:])
    assert strategy.n_labels == asked == len(strategy.network.memory)
    assert float(np.mean(strategy.scores(X).argmax(1) == y)) > 0.8


def bad_inputs(game: Game) -> list[tuple[str, Any]]:
    x = np.zeros(5, dtype=np.float32)
    nan, infinite = x.copy(), x.copy()
    nan[3], infinite[1] = np.nan, np.inf
    return [
        (r"X\[0, 3\] is nan", lambda s: s.assess(nan[None])),
        (r"X\[0, 1\] is inf", lambda s: s.learn(infinite, 3, game.feedback[3][0])),
        (r"shape \(4,\), not \(5,\)", lambda s: s.assess(np.zeros((2, 4)))),
        (r"7", lambda s: s.learn(x, 7, game.feedback[3][0])),
        (r"'nothing'", lambda s: s.learn(x, 3, "nothing")),
        (r"row 5", lambda s: s.decide(s.assess(x[None]), 5)),
        (r"must be numbers", lambda s: s.assess([["a", "b", "c", "d", "e"]])),
    ]


def test_numbers_whose_sum_is_too_large_are_still_numbers() -> None:
    huge = np.full((1, 5), 3e38, dtype=np.float32)
    assert len(sp.strategies()["never_ask"](sp.label_efficient(3), 5).assess(huge)) == 1


def test_bad_input_is_named_and_changes_nothing() -> None:
    game, (X, y) = sp.label_efficient(3), blobs(120)
    strategy = sp.NeuralCBP(game, 5, seed=0)
    rounds(strategy, game, X[:60], y[:60])
    untouched, before = copy.deepcopy(strategy), state_file.dump(strategy.state_dict())
    for message, call in bad_inputs(game):
        with pytest.raises((ValueError, IndexError, KeyError), match=message):
            call(strategy)
        assert state_file.dump(strategy.state_dict()) == before, message
    assert rounds(strategy, game, X[60:], y[60:]) == rounds(untouched, game, X[60:], y[60:])


def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    game, (X, y) = sp.label_efficient(3), blobs(120)
    strategy = sp.NeuralCBP(game, 5, seed=0)
    rounds(strategy, game, X[:60], y[:60])
    good = strategy.state_dict()
    others = {
        "game": sp.NeuralCBP(sp.label_efficient(3, query_cost=2.0), 5).state_dict(),
        "network": sp.NeuralCBP(game, 5, width=50).state_dict(),
        "shape": sp.NeuralCBP(game, 6).state_dict(),
        "options": sp.NeuralCBP(game, 5, preset="paper").state_dict(),
        "version 99": good | {"version": 99},
        "does not fit": good | {"own": {}},
    }
    untouched = copy.deepcopy(strategy)
    for message, state in others.items():
        with pytest.raises(StateError, match=message):
            strategy.load_state_dict(state)
    (tmp_path / "cut").write_bytes(state_file.dump(good)[:-10])
    with pytest.raises(ValueError, match="cut is not a whole state file"):
        strategy.load(tmp_path / "cut")
    assert rounds(strategy, game, X[60:], y[60:]) == rounds(untouched, game, X[60:], y[60:])


def test_any_module_is_welcome_as_f1() -> None:
    class Wide(nn.Module):
        def __init__(self, shape: tuple[int, ...], outputs: int) -> None:
            super().__init__()
            self.stem = nn.Linear(shape[0], 32)
            self.norm = nn.LayerNorm(32)
            self.head = nn.Linear(32, outputs)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.head(torch.tanh(self.norm(self.stem(x))))
            return out

    game, (X, y) = sp.label_efficient(3), blobs(70)
    for network in (Wide, Wide((5,), 3), nn.Linear(5, 3)):
        played = list(sp.play(sp.NeuralCBP(game, 5, network=network, seed=0, epochs=2), game, zip(X, y, strict=True)))
        assert len(played) == 70
    with pytest.raises(ValueError, match=r"\(2, 4\), not to \(2, 3\)"):
        sp.NeuralCBP(game, 5, network=nn.Linear(5, 4))


def test_a_lenet_plays_images() -> None:
    game, rng = sp.label_efficient(2), np.random.default_rng(0)
    y = rng.integers(2, size=45)
    X = (rng.normal(size=(45, 1, 20, 20)) * 0.1 + y[:, None, None, None]).astype(np.float32)
    made = functools.partial(sp.NeuralCBP, game, (1, 20, 20), network="lenet", seed=0, epochs=5)
    played = rounds(made(), game, X, y)
    again = rounds(made(), game, X.reshape(45, -1), y, block=1)
    assert played == again


def test_many_classes_need_no_pairs() -> None:
    game = sp.label_efficient(1000)
    strategy = sp.NeuralCBP(game, 20, seed=0, start="informative", epochs=1)
    X, y = blobs(300, 1000, 20)
    assert len(list(sp.play(strategy, game, zip(X, y, strict=True)))) == 300
    assert len(strategy.network.embedding.repeats) < 400


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "papper"}, "preset 'papper'"),
        ({"widths": "big"}, "widths is 'big'"),
        ({"network": "resnet"}, "network 'resnet'"),
        ({"start": "late"}, "start is 'late'"),
        ({"depth": 1}, "depth is 1"),
        ({"n_features": 0}, "n_features is 0"),
        ({"n_features": (1, 8, 8), "network": "lenet"}, "too small for a LeNet"),
    ],
)
def test_options_that_make_no_sense_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sp.NeuralCBP(sp.label_efficient(2), **({"n_features": 4} | options))
    with pytest.raises(TypeError, match="'colour'"):
        sp.NeuralCBP(sp.label_efficient(2), 4, colour="red")
