"""TSPM: the proposal bounds the posterior, the draws have its moments, and what it cannot play it refuses."""

import numpy as np
import pytest

import sparingly as sp
from sparingly.strategies import TSPM
from sparingly.strategies.published.partial_monitoring.tspm import SimplexGaussian


def told(game, counts, **options):
    """A strategy that has been told each action's symbols so many times."""
    strategy = TSPM(game, 1, seed=0, **options)
    for (action, symbol), times in counts.items():
        for _ in range(times):
            strategy.learn([0.0], action, symbol)
    return strategy


def grid(step=0.01):
    a, b = np.meshgrid(np.arange(step / 2, 1, step), np.arange(step / 2, 1, step))
    p = np.c_[a.ravel(), b.ravel(), 1 - a.ravel() - b.ravel()]
    return p[p[:, 2] > 0]


PRICES = {(0, "bought"): 5, (1, "bought"): 7, (1, "refused"): 4, (2, "bought"): 3, (2, "refused"): 9}


@pytest.mark.parametrize("game", [sp.dynamic_pricing(3), sp.bandit(2), sp.full_information(3)])
def test_the_posterior_is_below_the_proposal_everywhere(game):
    rng = np.random.default_rng(0)
    strategy = TSPM(game, 1)
    for _ in range(60):
        a = int(rng.integers(game.n_actions))
        strategy.learn([0.0], a, game.feedback[a][int(rng.integers(game.n_outcomes))])
    ratio = strategy.log_ratio(rng.dirichlet(np.full(game.n_outcomes, 0.3), size=5000))
    assert (ratio <= 1e-9).all()
    assert ratio.min() < -0.1


def moments(weight, p):
    weight = weight / weight.sum()
    mean = weight @ p
    return mean, np.sqrt(weight @ (p - mean) ** 2)


@pytest.mark.parametrize("R", [0.0, 1.0])
def test_the_draws_have_the_posteriors_moments(R):
    game = sp.dynamic_pricing(3)
    strategy, p = told(game, PRICES, R=R), grid()
    n, q = strategy.counts.answers_by_symbol(), strategy.counts.frequencies()
    log_g = -0.0005 * (p**2).sum(1) - (n * (q - p @ strategy.signals.T) ** 2).sum(1) / 2
    expected = moments(np.exp(log_g + (strategy.log_ratio(p) if R else 0)), p)
    draws = np.array([strategy.draw() for _ in range(2000)])
    assert draws.mean(0) == pytest.approx(expected[0], abs=0.015)
    assert draws.std(0) == pytest.approx(expected[1], abs=0.015)
    assert draws.min() >= 0
    assert draws.sum(1) == pytest.approx(1)


def test_the_walk_has_the_same_limit_as_rejection():
    strategy, p = told(sp.dynamic_pricing(3), PRICES), grid()
    strategy.most_batches = 0
    n, q = strategy.counts.answers_by_symbol(), strategy.counts.frequencies()
    log_g = -0.0005 * (p**2).sum(1) - (n * (q - p @ strategy.signals.T) ** 2).sum(1) / 2
    expected = moments(np.exp(log_g + strategy.log_ratio(p)), p)
    draws = np.array([strategy.draw() for _ in range(500)])
    assert strategy.walks == 500
    assert draws.mean(0) == pytest.approx(expected[0], abs=0.03)
    assert draws.std(0) == pytest.approx(expected[1], abs=0.03)


def test_the_gaussian_on_the_simplex_is_that_of_the_full_coordinates():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    B, b = root @ root.T + np.eye(4), rng.normal(size=4)
    gaussian = SimplexGaussian(B, b)
    p = rng.dirichlet(np.ones(4), size=50)
    full = -np.einsum("ni,ij,nj->n", p, B, p) / 2 + p @ b
    head = p[:, :3] - gaussian.mean
    reduced = -np.einsum("ni,ij,nj->n", head, gaussian.precision, head) / 2
    assert full - reduced == pytest.approx(np.full(50, full[0] - reduced[0]))


@pytest.mark.parametrize(
    ("game", "p"),
    [
        (sp.apple_tasting(), [0.25, 0.75]),
        (sp.bandit(2), [0.2, 0.5, 0.2, 0.1]),
        (sp.dynamic_pricing(2), [0.2, 0.8]),
        (sp.label_efficient(2, query_cost=0.2), [0.5, 0.5]),
    ],
    ids=["apple tasting", "bandit", "pricing", "cheap question"],
)
def test_it_finds_the_best_action(game, p):
    rng = np.random.default_rng(4)
    outcomes = rng.choice(game.n_outcomes, size=500, p=p)
    stream = zip(np.zeros((500, 1)), outcomes, strict=True)
    played = np.array([r.action for r in sp.play(TSPM(game, 1, seed=0), game, stream)])
    assert (played[250:] == (game.costs @ p).argmin()).mean() > 0.9


def test_what_it_cannot_observe_it_refuses_with_the_reason():
    for game in (sp.label_efficient(2), sp.label_efficient(costs=[[0, 1], [0.5, 0]])):
        with pytest.raises(
            ValueError, match=r"tspm never plays ask .*nowhere the cheapest.*announce 0 from announce 1"
        ):
            TSPM(game, 1)
    with pytest.raises(ValueError, match="hopeless"):
        TSPM(sp.Game([[0, 1], [1, 0]], [["a", "a"], ["b", "b"]]), 1)
    for options, message in [({"R": 2.0}, "R is 2.0"), ({"penalty": 0.0}, "penalty is 0.0")]:
        with pytest.raises(ValueError, match=message):
            TSPM(sp.bandit(2), 1, **options)
