"""ALPS follows its pairs of models and requesters."""

import numpy as np
import pytest
import torch

from sparingly import label_efficient
from sparingly.strategies import ALPS
from sparingly.strategies.published.selective_sampling.alps import SCALES

GAME = label_efficient(2)


def trained(n_models=3, **options):
    strategy = ALPS(GAME, 2, start=4, n_models=n_models, seed=0, **options)
    for t in range(4):
        x = torch.tensor([1.0 if t % 2 else -1.0, 0.0])
        decision = strategy.decide(strategy.assess(x[None]), 0)
        strategy.learn(x, decision.action, GAME.feedback[2][t % 2])
    assert strategy.models.trained
    return strategy


def test_one_pair_left_means_no_draw_and_only_its_requester_asks():
    strategy = trained(slack=-1e-9)
    strategy.pair_loss[:] = 1.0
    strategy.pair_loss[0, 2] = -1.0
    strategy.options["slack"] = 0.5 / strategy.n_labels * 0
    sure, unsure = np.tile([0.1, 0.9], (3, 1)), np.tile([0.45, 0.55], (3, 1))
    assert all(strategy.chance(strategy.charged(p[None])[0]) == 0 for p in (sure, unsure))
    x = torch.zeros(1, 2)
    for probability, asks in ((sure, False), (unsure, True)):
        assessment = strategy.assess(x)
        assessment.values["probability"][0] = probability
        assessment.values["charged"][0] = strategy.charged(probability[None])[0]
        assert strategy.decide(assessment, 0).asks is asks
    assert SCALES[2] == 0.5


def test_pairs_that_would_be_charged_differently_bring_a_question():
    strategy = trained()
    apart = np.array([[[0.05, 0.95], [0.5, 0.5], [0.5, 0.5]]])
    assert strategy.chance(strategy.charged(apart)[0]) == pytest.approx(0.95)


def test_a_label_is_weighted_by_one_over_its_chance():
    strategy = trained()
    x = torch.tensor([0.3, 0.1])
    probability = strategy.models.probability(x[None])
    strategy._last = (x, probability[0], strategy.charged(probability)[0], 4.0)
    before = strategy.model_loss.copy()
    strategy.learn(x, 2, GAME.feedback[2][1])
    assert strategy.model_loss - before == pytest.approx(4 * (1 - probability[0, :, 1]))


def test_models_that_contradict_a_weak_label_are_no_longer_followed():
    strategy = trained()
    strategy.agrees[:] = [True, False, True]
    strategy.model_loss[:] = [2.0, 0.0, 1.0]
    assert strategy._followed(np.array([1, 1, 1])) == 2
    strategy.agrees[:] = False
    assert strategy._followed(np.array([1, 1, 1])) == 1


def test_no_model_is_followed_while_another_class_has_one_as_good():
    strategy = trained()
    strategy.model_loss[:] = [0.0, 0.1, 5.0]
    assert strategy._followed(np.array([0, 1, 1])) is None
    strategy.options["lead"] = 0.0
    assert strategy._followed(np.array([0, 1, 1])) == 0
