"""CBPside and RandCBPside: the published numbers, both links against other implementations, and that they learn."""

import math

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import sparingly as sp
from sparingly.strategies import CBPside, RandCBPside
from sparingly.strategies.families.side_information import Linear, Logistic


def played(strategy, X, outcomes):
    rounds = sp.play(strategy, strategy.game, zip(X, outcomes, strict=True))
    return [(r.action, r.prediction, r.cost) for r in rounds]


def noisy_stream(n, d=3, seed=0):
    """Two classes whose log-odds are linear in the features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    return X, (rng.random(n) < 1 / (1 + np.exp(-3 * X[:, 0]))).astype(int)


def test_one_hot_observations_count_their_cell():
    strategy = CBPside(sp.label_efficient(2), 3, penalty=0.05)
    cells = np.random.default_rng(0).integers(3, size=60)
    told = np.zeros((3, 2))
    for t, cell in enumerate(cells):
        x = np.eye(3, dtype=np.float32)[cell]
        decision = strategy.decide(strategy.assess(x[None]), 0)
        if decision.asks:
            told[cell, t % 2] += 1
            strategy.learn(x, decision.action, strategy.game.feedback[2][t % 2])
    assert told.sum() > 30
    for cell in range(3):
        x = torch.eye(3, dtype=torch.float64)[cell]
        pi, length = strategy.estimates[2].distribution(x)
        n = told[cell].sum()
        assert 1 / length**2 == pytest.approx(0.05 + n, rel=1e-6)
        assert pi == pytest.approx(told[cell] / (0.05 + n), rel=1e-6)
        assert strategy._times_played(strategy.assess(x[None]), 0, 2) == pytest.approx(0.05 + n, rel=1e-6)


def test_the_width_is_the_published_one():
    strategy = CBPside(sp.label_efficient(2), 3, penalty=0.05)
    X, y = noisy_stream(50)
    played(strategy, X, y)
    x = torch.from_numpy(X[0]).double()
    comparison, place = strategy._compare(strategy.assess(x[None]), 0)
    _, length = strategy.estimates[2].distribution(x)
    root = math.sqrt(3 * math.log(51) + 2 * math.log(51**2))
    width = 2 * (root + math.sqrt(0.05) * 2) * length
    assert comparison.left.width[place] == pytest.approx(math.sqrt(2) * width)
    assert comparison.weighted[place, 2] == pytest.approx(math.sqrt(2) * width)


def test_linear_estimates_are_ridge_regression():
    X, y = noisy_stream(300, d=4)
    estimate = Linear(4, 2, penalty=0.3)
    for x, symbol in zip(torch.from_numpy(X).double(), y, strict=True):
        estimate.add(x, int(symbol))
    G = 0.3 * np.eye(4) + X.T @ X
    theta = np.linalg.solve(G, X.T @ np.eye(2)[y]).T
    for x in X[:10]:
        pi, length = estimate.distribution(torch.from_numpy(x).double())
        assert pi == pytest.approx(theta @ x, abs=1e-5)
        assert length**2 == pytest.approx(x @ np.linalg.solve(G, x), rel=1e-3)


def test_logistic_estimates_are_those_of_scikit_learn():
    X, y = noisy_stream(300, d=4)
    estimate = Logistic(4, 2, penalty=0.3)
    for x, symbol in zip(torch.from_numpy(X).double(), y, strict=True):
        estimate.add(x, int(symbol))
    estimate.refit()
    # Two rows of weights under one penalty are one row under half of it.
    theirs = LogisticRegression(C=2 / 0.3, fit_intercept=False, tol=1e-10).fit(X, y).predict_proba(X[:10])
    ours = [estimate.distribution(torch.from_numpy(x).double())[0] for x in X[:10]]
    assert np.array(ours) == pytest.approx(theirs, abs=1e-3)


@pytest.mark.parametrize("link", ["linear", "logistic"])
@pytest.mark.parametrize(
    "game", [sp.label_efficient(2), sp.bandit(2), sp.apple_tasting()], ids=["hard", "bandit", "easy"]
)
def test_eps_1_is_cbp_side_move_for_move(game, link):
    X, y = noisy_stream(90)
    one, other = CBPside(game, 3, link=link), RandCBPside(game, 3, link=link, eps=1.0, seed=7)
    assert played(one, X, y) == played(other, X, y)


@pytest.mark.parametrize("link", ["linear", "logistic"])
def test_it_learns_and_asks_at_the_rate(link):
    game, (X, y) = sp.label_efficient(2), noisy_stream(1200, d=2)
    strategy = RandCBPside(game, 2, link=link, seed=0)
    moves = played(strategy, X, y)
    late = np.array([move[1] for move in moves[900:]])
    best = (X[900:, 0] > 0).astype(int)
    assert (late == best).mean() > 0.85
    cost = np.array([move[2] for move in moves])
    assert cost[900:].mean() < 0.75 * cost[:200].mean()


@pytest.mark.parametrize("d", [1, 2, 3])
def test_few_features_are_no_trouble(d):
    strategy, (X, y) = CBPside(sp.label_efficient(2), d), noisy_stream(40, d=d)
    widths = [r.why.get("width") for r in sp.play(strategy, strategy.game, zip(X, y, strict=True))]
    assert all(np.isfinite(width) for width in widths[3:])


def test_options_that_make_no_sense_are_named():
    for options, message in [({"link": "probit"}, "link is 'probit'"), ({"penalty": 0.0}, "penalty is 0.0")]:
        with pytest.raises(ValueError, match=message):
            CBPside(sp.label_efficient(2), 3, **options)
