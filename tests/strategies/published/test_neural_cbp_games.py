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
