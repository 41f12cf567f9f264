"""Neuronal asks by the gap of two networks, in three published forms."""

import math

import numpy as np
import pytest
import torch

from sparingly import label_efficient, play
from sparingly.strategies import Neuronal


def stream(n=300, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 5)).astype(np.float32)
    return [(x, int(x[0] + x[1] > 0)) for x in X]


def questions(**options):
    game = label_efficient(2)
    return sum(round_.action == 2 for round_ in play(Neuronal(game, 5, seed=0, **options), game, stream()))


def test_the_rule_is_the_gap_of_f1_plus_f2():
    strategy = Neuronal(label_efficient(3), 4, gamma=3, seed=1)
    strategy.advance(10)
    X = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        outputs, compact = strategy.network.exploit(X)
        u = (outputs + strategy.network.explore(compact)).sort(1).values
    assessment = strategy.assess(X)
    for row in range(6):
        gap = strategy._ask_or_announce(assessment.values["f1"][row] + assessment.values["f2"][row], 0)[1]["gap"]
        assert gap == pytest.approx(float(u[row, -1] - u[row, -2]), abs=1e-6)


@pytest.mark.parametrize(("network", "shape"), [("mlp", (5,)), ("lenet", (1, 16, 16))])
def test_the_scores_are_f1_without_the_embedding(network, shape, monkeypatch):
    strategy = Neuronal(label_efficient(3), shape, network=network, seed=1)
    X = torch.randn(40, *shape, generator=torch.Generator().manual_seed(0))
    f1 = strategy.assess(X).values["f1"]
    monkeypatch.delattr(type(strategy.network), "exploit")
    np.testing.assert_allclose(strategy.scores(X), f1, atol=1e-6)


def test_more_gamma_more_questions():
    assert questions(gamma=0.01) < questions(gamma=3) < questions(gamma=9)


def test_the_published_threshold_halves_when_rounds_grow_fourfold():
    strategy = Neuronal(label_efficient(3), 4, preset="published")
    strategy.advance(99)
    at_100 = strategy._threshold()
    strategy.advance(300)
    assert strategy._threshold() == pytest.approx(at_100 / 2)
    slack = math.sqrt(3) + math.sqrt(2 * math.log(3 * 10_000 / 0.1))
    assert at_100 == pytest.approx(2 * slack / 10)


def test_pseudo_labels_are_learned_from_announcements():
    strategy = Neuronal(label_efficient(2), 5, preset="published", gamma=0.0)
    for _ in range(5):
        strategy.decide(strategy.assess(torch.ones(1, 5)), 0)
    assert (
        len(strategy.network.memory) == 4
    )  # two announcements at the start, then two of its own; the question is open


def test_the_authors_form_discounts_f2_by_the_questions():
    strategy = Neuronal(label_efficient(2), 5, preset="authors")
    assert strategy._weight() == 1.0
    strategy.learn(torch.ones(5), 2, strategy.game.feedback[2][0])
    assert strategy._weight() == 0.5
    assert Neuronal(label_efficient(2), 5)._weight() == 1.0


def test_f2_keeps_the_residual_of_the_day_it_asked():
    strategy = Neuronal(label_efficient(2), 5)
    x = torch.ones(5)
    with torch.no_grad():
        f1 = strategy.network.exploit(x[None])[0][0]
    strategy.learn(x, 2, strategy.game.feedback[2][1])
    torch.testing.assert_close(strategy.network.memory["residual"][0], torch.tensor([0.0, 1.0]) - f1)


def test_options_that_do_not_exist_are_named():
    with pytest.raises(TypeError, match="'gama'"):
        Neuronal(label_efficient(2), 5, gama=3)
    with pytest.raises(ValueError, match="threshold is 'growing'"):
        Neuronal(label_efficient(2), 5, threshold="growing")
    with pytest.raises(ValueError, match="preset 'paper'"):
        Neuronal(label_efficient(2), 5, preset="paper")
