"""NeuralCBP learns the classic games of partial monitoring, not only label-efficient ones."""

import numpy as np
import pytest

import sparingly as sp
from sparingly.strategies.conformance.case import easy_stream

GAMES = {
    "apple tasting": sp.apple_tasting(),
    "bandit": sp.bandit(2),
    "dynamic pricing": sp.dynamic_pricing(3),
    "two experts": sp.label_efficient(2, experts=[1.0, 0.6]),
}


@pytest.mark.parametrize("game", GAMES.values(), ids=GAMES)
def test_its_regret_grows_ever_more_slowly(game):
    stream = easy_stream(game, 4, 800, seed=1, share=1 / game.n_outcomes)
    strategy = sp.NeuralCBP(game, 4, seed=0, widths="absolute", schedule="geometric 1.3")
    rounds = sp.play(strategy, game, zip(stream.X, stream.outcomes, strict=True))
    regret = np.cumsum([r.regret for r in rounds])
    clueless = (game.costs - game.costs.min(0)).mean()
    assert regret[799] - regret[399] < 0.1 * 400 * clueless
    assert regret[799] - regret[399] < 0.5 * regret[399] + 2
    predicted = strategy.scores(stream.X).argmax(1)
    if strategy.bounds.geometry.observability != "easy" or game.n_outcomes == 2:
        assert (predicted == stream.outcomes).mean() > 0.9


@pytest.mark.parametrize("strategy", ["neural_cbp", "cbp", "cbp_side"])
@pytest.mark.parametrize("prices", [(1.0, 0.2), (1.0, 0.7)])
def test_of_two_experts_who_know_the_same_the_cheaper_one_is_asked(strategy, prices):
    game = sp.label_efficient(2, experts=list(prices))
    stream = easy_stream(game, 4, 300, seed=1)
    player = sp.strategies()[strategy](game, 4, seed=0)
    actions = [r.action for r in sp.play(player, game, zip(stream.X, stream.outcomes, strict=True))]
    assert actions.count(2) == 1, "every action is played once at the start"
    assert actions.count(3) >= 10


def test_a_cheap_coarse_question_is_asked_where_it_is_enough():
    """In all of five streams, since single runs differ much: some stop asking early."""
    game = sp.label_efficient(3, experts=[1.0], questions=[[(0,), (1, 2)]], question_costs=[0.3])
    actions = []
    for seed in range(5):
        stream = easy_stream(game, 4, 250, seed=1 + seed)
        strategy = sp.NeuralCBP(game, 4, seed=seed)
        actions += [r.action for r in sp.play(strategy, game, zip(stream.X, stream.outcomes, strict=True))]
    assert actions.count(4) > actions.count(3) > 5
