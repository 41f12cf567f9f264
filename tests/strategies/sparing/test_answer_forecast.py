"""What an expert would say is learned from its answers: what is foreseen need not be paid for."""

from __future__ import annotations

from collections import Counter

import numpy as np
import torch

import sparingly as sp
from sparingly.strategies.sparing.consulting.answer_forecast import FIRST_FOR_FORECAST, AnswerForecasts
from sparingly.strategies.sparing.consulting.panel import NO_ANSWER
from sparingly.strategies.sparing.consulting.reliability import Reliability

GPT, HUMAN = sp.Expert("gpt", 0.05), sp.Expert("human", 1.0, gold=True)


def _topics(n, seed, accuracy=0.97, width=48, topics=24):
    """Embeddings of many topics, of which a few are one class: few truths do not show them all, many answers do."""
    rng = np.random.default_rng(seed)
    centres, topic = rng.normal(size=(topics, width)), rng.integers(topics, size=n)
    y = (topic < topics // 4).astype(int)
    X = centres[topic] + 0.7 * rng.normal(size=(n, width))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X.astype(np.float32), y, np.where(rng.random(n) < accuracy, y, 1 - y)


def _played(X, y, said, strategy=None, seed=0):
    game = sp.label_efficient(2, experts=[GPT, HUMAN])
    strategy = strategy or sp.Sparing(game, X.shape[1], seed=seed)
    items = [(x, int(c), {"gpt": int(a)}) for x, c, a in zip(X, y, said, strict=True)]
    return list(sp.play(strategy, strategy.game, items)), strategy


def test_what_is_foreseen_is_no_longer_asked():
    X, y, said = _topics(1500, seed=1)
    rounds, strategy = _played(X, y, said)
    assert strategy.knowledge.forecasts.used
    early, late = (Counter(one for r in part for one in r.asked)["gpt"] for part in (rounds[:400], rounds[-400:]))
    wrong = sum(r.prediction != c for r, c in zip(rounds[-400:], y[-400:], strict=True))
    assert late < 0.5 * early
    assert "nobody was asked: gpt would say" in str(next(r.why for r in reversed(rounds) if not r.asked))
    assert wrong <= 30


def test_where_nobody_was_asked_the_stream_is_judged_by_what_is_foreseen():
    X, y, said = _topics(900, seed=5)
    _, strategy = _played(X[:700], y[:700], said[:700])
    knowledge, panel, rows = strategy.knowledge, strategy.panel, torch.from_numpy(X[700:])
    assert knowledge.forecasts.used
    own, nothing_said = knowledge.beliefs(rows), torch.full((200, 1), NO_ANSWER)
    answered = torch.from_numpy(said[700:])[:, None]
    held = knowledge._believed(panel, rows, own, nothing_said)
    assert torch.allclose(held.sum(2), torch.ones(held.shape[:2]), atol=1e-4)
    right = [int((one.mean(0).argmax(1).numpy() == y[700:]).sum()) for one in (held, own)]
    assert right[0] > right[1]
    assert torch.equal(knowledge._believed(panel, rows, own, answered), knowledge.posterior(panel, rows, own, answered))


def test_forecasts_are_part_of_the_state():
    X, y, said = _topics(700, seed=2)
    _, strategy = _played(X[:600], y[:600], said[:600])
    again = sp.Sparing(strategy.game, X.shape[1], seed=9)
    again.load_state_dict(strategy.state_dict())
    rest = X[600:], y[600:], said[600:]
    (here, _), (there, _) = _played(*rest, strategy), _played(*rest, again)
    assert [(r.asked, r.prediction, str(r.why)) for r in here] == [(r.asked, r.prediction, str(r.why)) for r in there]


def test_a_state_from_before_there_were_forecasts_is_taken_over():
    X, y, said = _topics(700, seed=3)
    _, strategy = _played(X[:400], y[:400], said[:400])
    state = strategy.state_dict()
    known = state["own"]["knows"]
    del known["forecasts"], known["answered"]
    again = sp.Sparing(strategy.game, X.shape[1])
    again.load_state_dict(state)
    assert again.knowledge.forecasts is None
    rounds, _ = _played(X[400:], y[400:], said[400:], again)
    assert len(rounds) == 300


def test_what_an_expert_who_has_changed_would_say_is_learned_anew():
    X, y, said = _topics(700, seed=4)
    _, strategy = _played(X[:600], y[:600], said[:600])
    knowledge = strategy.knowledge
    knowledge.disregard(0, since=600)
    assert not knowledge.forecasts.used
    assert int((knowledge._answered.rows[:, -1] >= 0).sum()) == 0
    rounds, _ = _played(X[600:], y[600:], said[600:], strategy)
    assert len(rounds) == 100


def test_a_forecast_waits_for_answers_and_grows_with_them():
    forecasts, generator = AnswerForecasts(2, (3,), 2), torch.Generator().manual_seed(0)
    assert not forecasts.due(0, FIRST_FOR_FORECAST - 1, 1000)
    assert forecasts.due(0, FIRST_FOR_FORECAST, 1000)
    X = torch.randn(200, 3, generator=generator)
    said = (X[:, 1] > 0).long()
    forecasts.fit(0, X, (X, said, torch.full((200, 2), 0.5)), 1000, generator)
    assert [forecasts.due(0, 200, seen) for seen in (1299, 1300)] == [False, True]
    held = forecasts(X)
    assert held.shape == (200, 2, 2)
    assert float((held[:, 0].argmax(1) == said).float().mean()) > 0.9
    assert bool(held[:, 1].isnan().all())


def test_a_bet_against_an_expert_is_held_against_what_says_most_of_its_answer():
    belief, foreseen = torch.tensor([0.95, 0.05]), torch.tensor([0.5, 0.5])
    alone, told = Reliability(GPT, 2), Reliability(GPT, 2)
    for clock in range(60):
        alone.hear(belief, clock % 2, clock)
        told.hear(belief, clock % 2, clock, foreseen)
    assert told.wealth < alone.wealth
