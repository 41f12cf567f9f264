"""What asking on would save: honest None, more with more questions, and the right size on a stream."""

from __future__ import annotations

import numpy as np
import pytest

import sparingly as sp
from sparingly.strategies.forecast import Forecast


@pytest.fixture(scope="module")
def played():
    """Sparing after a stream that can be learned, and the forecasts that it made under way."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(700, 4)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] ** 2 > 0.7).astype(int)
    strategy = sp.Sparing(sp.label_efficient(2, query_cost=0.5), 4, seed=3)
    first, found = strategy.forecast(), {}
    for _ in sp.play(strategy, strategy.game, zip(X, y, strict=True)):
        if strategy.forecast() is not None:
            found.setdefault(strategy.n_labels, strategy.forecast())
    return strategy, first, found


def test_it_says_nothing_before_there_is_a_model(played):
    _, first, found = played
    assert first is None
    assert min(found) >= 20


def test_what_a_label_saves_falls_with_their_number_and_has_an_interval(played):
    strategy, _, found = played
    early, late = found[min(found)], found[max(found)]
    for forecast in (early, late):
        mean, low, high = forecast.saving(100)
        assert low < mean < high
        assert forecast.saving(200)[0] > mean > 0
        assert forecast.total(100)[0] > 100 * forecast.risk
    assert late.saving(100)[0] < early.saving(100)[0]
    assert (late.labels, late.price) == (strategy.n_labels, 0.5)
    assert late.rounds > 700


def test_it_survives_saving_and_loading_and_moves_with_the_costs(played):
    strategy, _, _ = played
    again = sp.Sparing(strategy.game, 4, seed=9).load_state_dict(strategy.state_dict())
    assert again.forecast() == strategy.forecast()
    before = again.forecast()
    again.freeze().set_costs(3 * strategy.game.costs)
    after = again.forecast()
    assert after.slope == pytest.approx(3 * before.slope)
    assert after.price == pytest.approx(1.5)


def test_strategies_that_cannot_tell_say_none():
    for name in ("neural_cbp", "always_ask", "margin"):
        assert sp.strategies()[name](sp.label_efficient(2), n_features=3, seed=0).forecast() is None


def test_questions_spread_over_time_save_less_than_those_asked_at_once():
    forecast = Forecast(labels=100, slope=0.02, error=0.004, spread=0.001, risk=0.3, price=0.5, rounds=1000)
    assert forecast.while_asking(50, 1000)[0] < forecast.total(50, 1000)[0]
    assert forecast.while_asking(0, 1000)[0] == 0.0
