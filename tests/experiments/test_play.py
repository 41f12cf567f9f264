"""The loop: costs, regret, delays, and what a stream may not contain."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import sparingly as sp
from sparingly.strategies import AlwaysAsk, RandomAsks


def test_costs_and_regret_are_those_of_the_game() -> None:
    game = sp.label_efficient(costs=[[0, 3], [2, 0.5]], query_cost=1.0)
    stream = [(np.zeros(2), 0), (np.zeros(2), 1)] * 30
    for r in sp.play(RandomAsks(game, 2, p=0.5, seed=0), game, stream):
        assert r.cost == game.costs[r.action, r.outcome]
        assert r.regret == r.cost - {0: 0.0, 1: 0.5}[r.outcome]
        assert r.symbol == game.feedback[r.action][r.outcome]


@pytest.mark.parametrize("delay", [0, 1, 7, 1000])
def test_answers_come_after_the_delay_and_none_is_lost(delay: int) -> None:
    game, learned = sp.label_efficient(2), []

    class Noting(AlwaysAsk):
        def _take(self, x: torch.Tensor, action: int, symbol: int) -> None:
            learned.append((self.clock, int(x[0])))
            super()._take(x, action, symbol)

    played = list(sp.play(Noting(game, 1, epochs=0), game, [(np.array([t]), t % 2) for t in range(1, 41)], delay=delay))
    assert len(played) == 40
    assert [t for _, t in learned] == list(range(1, 41))
    assert all(clock == min(t + delay, 40) for clock, t in learned)


def test_streams_may_be_any_iterable_of_arrays_or_tensors() -> None:
    game = sp.label_efficient(2)
    rows = [([float(t), 1.0], t % 2) for t in range(60)]
    played = [
        [r.action for r in sp.play(sp.NeuralCBP(game, 2, seed=0), game, source)]
        for source in (rows, iter(rows), [(np.array(x), y) for x, y in rows], [(torch.tensor(x), y) for x, y in rows])
    ]
    assert all(actions == played[0] for actions in played)


def test_bad_streams_are_named() -> None:
    game = sp.label_efficient(2)
    with pytest.raises(ValueError, match="outcome 5 is not one of 0 to 1"):
        list(sp.play(AlwaysAsk(game, 1), game, [([0.0], 5)]))
    with pytest.raises(ValueError, match="delay is -1"):
        list(sp.play(AlwaysAsk(game, 1), game, [([0.0], 0)], delay=-1))


def test_named_labels_object_rows_and_read_only_arrays_are_played(recwarn):
    game = sp.label_efficient(2, classes=["cat", "dog"])
    X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    names = ["dog" if x[0] > 0 else "cat" for x in X]
    fixed = X.copy()
    fixed.setflags(write=False)
    plain = [one.action for one in sp.play(sp.Sparing(game, 3), game, zip(X, (X[:, 0] > 0).astype(int), strict=True))]
    for rows in (X.astype(object), fixed):
        assert [one.action for one in sp.play(sp.Sparing(game, 3), game, zip(rows, names, strict=True))] == plain
    assert not [one for one in recwarn if "writable" in str(one.message)]
    with pytest.raises(ValueError, match="outcome 'cow' is not one of cat, dog"):
        list(sp.play(sp.Sparing(game, 3), game, [(X[0], "cow")]))
    with pytest.raises(ValueError, match="'much'"):
        list(sp.play(sp.Sparing(game, 3), game, [(np.array([1, "much", 2], dtype=object), 0)]))
