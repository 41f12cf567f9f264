"""A label budget limits any strategy and leaves it otherwise as it is."""

import numpy as np
import pytest

from sparingly import label_efficient, play
from sparingly.games import apple_tasting
from sparingly.strategies import AlwaysAsk, LabelBudget, NeuralCBP, check

GAME = label_efficient(2)


def stream(n=400):
    X = np.random.default_rng(0).normal(size=(n, 3)).astype(np.float32)
    return [(x, int(x[0] > 0)) for x in X]


def actions(strategy):
    return [round_.action for round_ in play(strategy, GAME, stream())]


@pytest.mark.parametrize(
    ("limit", "most"), [({"number": 7}, 7), ({"share": 0.1}, 40), ({"share": 1.0, "number": 0}, 0)]
)
def test_it_never_asks_more_than_it_may(limit, most):
    asked = np.cumsum(np.array(actions(LabelBudget(GAME, 3, of=AlwaysAsk, **limit))) == 2)
    assert asked[-1] == most
    if "number" not in limit:
        assert (asked <= np.ceil(limit["share"] * np.arange(1, 401) - 1e-9)).all()


def test_a_budget_that_is_never_reached_changes_nothing():
    assert actions(LabelBudget(GAME, 3, number=10_000, seed=4)) == actions(NeuralCBP(GAME, 3, seed=4))


def test_it_goes_around_a_strategy_that_exists():
    inner = NeuralCBP(GAME, 3, seed=4)
    assert actions(LabelBudget.around(inner, number=10_000)) == actions(NeuralCBP(GAME, 3, seed=4))
    assert inner.clock == 400


def test_it_keeps_the_contract_around_a_strategy_that_trains():
    def factory(game, n_features, seed):
        return LabelBudget(game, n_features, share=0.3, seed=seed, options={"schedule": "geometric 1.5", "epochs": 5})

    checks = ["saving_changes_nothing", "copies_go_their_own_way", "blocks_of_one_equal_blocks_of_many"]
    assert set(check(factory, short=True, only=checks)) == set(checks)


def test_it_says_why_the_other_would_have_asked():
    strategy = LabelBudget(GAME, 3, of=AlwaysAsk, number=0)
    why = str(strategy.decide(strategy.assess(np.zeros((1, 3))), 0).why)
    assert why == "the budget is spent after 0 questions; it would ask because it asks about everything"


def test_a_share_that_is_none_and_a_game_without_announcements_are_refused():
    with pytest.raises(ValueError, match="share is 2"):
        LabelBudget(GAME, 3, share=2)
    with pytest.raises(ValueError, match="label-efficient"):
        LabelBudget(apple_tasting(), 3)
