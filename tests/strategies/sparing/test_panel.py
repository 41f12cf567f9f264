"""Several experts who may be wrong: reliability, posterior, whom to ask, and experts who change."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import sparingly as sp
from sparingly.strategies.sparing.consulting.answer_model import AnswerModel
from sparingly.strategies.sparing.consulting.panel import Panel
from sparingly.strategies.sparing.consulting.reliability import Reliability
from sparingly.strategies.sparing.knowledge import USUAL_SLOPE
from sparingly.strategies.sparing.models.kernel import KernelMembers
from sparingly.strategies.sparing.open_questions import OpenQuestion
from sparingly.strategies.sparing.purchase import FIRST, Offer, PurchaseRule
from sparingly.strategies.sparing.worth import Worth

GPT, LLAMA, HUMAN = sp.Expert("gpt", 0.01), sp.Expert("llama", 0.01), sp.Expert("human", 1.0, gold=True)


NARROW = {"width": 24}
"""Networks that learn these streams as well."""


def _said(truth, accuracy, n_classes, rng):
    wrong = (truth + rng.integers(1, n_classes, size=len(truth))) % n_classes
    return np.where(rng.random(len(truth)) < accuracy, truth, wrong)


def _stream(n, accuracy, seed=0, n_classes=3, spread=1.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    X = rng.normal(size=(n, 5)).astype(np.float32) * spread
    X[np.arange(n), y] += 3
    return X, y, _said(y, accuracy, n_classes, rng)


def _play(experts, X, y, answers, seed=0, **options):
    game = sp.label_efficient(int(y.max()) + 1, experts=experts)
    strategy = sp.Sparing(game, X.shape[1], seed=seed, **{**NARROW, **options})
    items = [
        (x, int(c), {name: said[t] for name, said in answers.items()})
        for t, (x, c) in enumerate(zip(X, y, strict=True))
    ]
    return list(sp.play(strategy, game, items)), strategy


def test_reliability_is_within_five_points_after_a_hundred_truths_and_its_interval_holds():
    rng = np.random.default_rng(1)
    flat, near, covered = torch.full((4,), 0.25), [], []
    for accuracy in rng.uniform(0.5, 0.95, size=60):
        one, truth = Reliability(GPT, 4), rng.integers(4, size=100)
        for y, said in zip(truth.tolist(), _said(truth, accuracy, 4, rng).tolist(), strict=True):
            one.hear(flat, said, clock=0)
            one.check(y, said, flat, clock=0)
        low, high = one.interval()
        near.append(abs(one.accuracy - accuracy))
        covered.append(low <= accuracy <= high)
    assert np.mean(near) < 0.05
    assert np.mean(covered) >= 0.85


def test_truths_bought_where_answers_are_doubtful_do_not_make_an_expert_look_bad():
    rng = np.random.default_rng(2)
    one, flat = Reliability(GPT, 4), torch.full((4,), 0.25)
    counts = torch.zeros(4, 4)
    for t in range(3000):
        y, doubtful = int(rng.integers(4)), rng.random() < 0.2
        said = y if rng.random() < (0.3 if doubtful else 0.9) else (y + 1) % 4
        one.hear(flat, said, clock=t)
        believed = torch.full((4,), 0.1).index_fill_(0, torch.tensor(said), 0.7)
        if not doubtful:
            one.leave(0.7)
        if doubtful or t % 30 == 0:
            one.check(y, said, believed, clock=t, random=None if doubtful else 0.7)
        else:
            counts[:, said] += believed
    one.believe(counts)
    low, high = one.interval()
    assert one.accuracy == pytest.approx(0.78, abs=0.05)
    assert low < 0.78 < high
    assert high - low < 0.15


def test_an_expert_who_becomes_worse_is_noticed_and_one_who_stays_is_not():
    rng = np.random.default_rng(2)
    truth = rng.integers(4, size=3300)
    said = np.r_[_said(truth[:3000], 0.9, 4, rng), _said(truth[3000:], 0.5, 4, rng)]
    one = Reliability(GPT, 4)
    noticed = None
    for t, (y, answer) in enumerate(zip(truth, said, strict=True)):
        believed = one.matrix[:, int(answer)] / one.matrix[:, int(answer)].sum()
        one.check(int(y), int(answer), believed, clock=t)
        if noticed is None and one.change_noticed(t):
            noticed = t
    assert noticed is not None
    assert 3000 < noticed < 3070


def test_experts_who_err_together_do_not_count_twice():
    rng = np.random.default_rng(3)
    truth = rng.integers(3, size=400)
    first = _said(truth, 0.7, 3, rng)
    weights = {}
    for name, second in (("copy", first), ("other", _said(truth, 0.7, 3, rng))):
        panel = Panel(sp.label_efficient(3, experts=[GPT, LLAMA, HUMAN]))
        answers = torch.tensor(np.stack([first, second], 1))
        for row, y in zip(answers.tolist(), truth.tolist(), strict=True):
            for one, said in zip(panel.reliability, row, strict=True):
                one.check(y, said, torch.full((3,), 1 / 3), clock=0)
        labels = {"y": torch.tensor(truth), "answers": answers, "fold": torch.arange(400) % 6}
        panel.fit(torch.full((400, 3), 1 / 3), labels)
        weights[name] = float(panel.pool.weights[2, 1:].sum())
        assert panel.pool.weights[1, 1:].tolist() == pytest.approx([1.0, 1.0], abs=0.2)
    assert weights["copy"] < weights["other"] - 0.4
    assert weights["copy"] == pytest.approx(1.0, abs=0.3)


def test_a_cheap_expert_who_is_nearly_always_right_leaves_hardly_anything_to_ask():
    X, y, said = _stream(200, 0.97, spread=2.5)
    rounds, strategy = _play([GPT, HUMAN], X, y, {"gpt": said})
    humans = sum("human" in one.asked for one in rounds)
    assert humans < 35
    assert sum(one.cost for one in rounds) < (said != y).sum() + 0.01 * len(y) + 30
    assert strategy.panel.reliability[0].accuracy == pytest.approx(0.97, abs=0.05)
    words = [str(one.why) for one in rounds]
    assert any(" says " in one and "times in 10; human would cost 1 and save" in one for one in words)


def test_an_expert_who_guesses_does_little_harm():
    X, y, said = _stream(240, 1 / 3, seed=4)
    costs = {}
    for name, experts in (("alone", [HUMAN]), ("beside", [GPT, HUMAN])):
        answers = {"gpt": said} if len(experts) == 2 else {}
        costs[name] = sum(one.cost for one in _play(experts, X, y, answers)[0])
    assert costs["beside"] < 1.1 * costs["alone"] + 8


def test_an_expert_who_never_answers_is_soon_left_alone():
    X, y, _ = _stream(140, 1.0, seed=5)
    rounds, _ = _play([sp.Expert("gpt", 0.05), HUMAN], X, y, {})
    calls = [one.t for one in rounds if "gpt" in one.asked]
    assert 0 < len(calls) < 30


def test_without_anyone_who_knows_it_decides_by_agreement_and_says_so():
    X, y, said = _stream(130, 0.8, seed=6)
    other = _said(y, 0.8, 3, np.random.default_rng(7))
    third = _said(y, 0.8, 3, np.random.default_rng(8))
    experts = [GPT, LLAMA, sp.Expert("claude", 0.01)]
    rounds, _ = _play(experts, X, y, {"gpt": said, "llama": other, "claude": third})
    assert np.mean([one.prediction == one.outcome for one in rounds]) > 0.83
    assert "nobody who knows can be asked" in str(rounds[-1].why)


def test_the_cheapest_of_those_who_know_is_asked():
    X, y, _ = _stream(150, 1.0, seed=9)
    game = sp.label_efficient(3, experts=[HUMAN, sp.Expert("nurse", 0.4, gold=True)])
    rounds = list(sp.play(sp.Sparing(game, 5, **NARROW), game, zip(X, y, strict=True)))
    assert {name for one in rounds for name in one.asked} == {"nurse"}


def test_embeddings_of_texts_are_played_with_experts_who_may_be_wrong():
    """Their kernels' learning curve is measured, on rows whose answers were heard."""
    rng = np.random.default_rng(0)
    y = rng.integers(12, size=160)
    X = rng.normal(size=(12, 24))[y] + rng.normal(size=(160, 24))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    said = np.where(rng.random(160) < 0.6, y, rng.integers(12, size=160))
    game = sp.label_efficient(12, experts=[sp.Expert("gpt", 0.01), sp.Expert("human", 0.3, gold=True)])
    strategy = sp.Sparing(game, 24, seed=0, **NARROW)
    items = [(x, int(truth), {"gpt": int(one)}) for x, truth, one in zip(X.astype(np.float32), y, said, strict=True)]
    rounds = list(sp.play(strategy, game, items))
    assert strategy.n_labels >= 40
    assert strategy.knowledge.beliefs.halves is not None
    assert len(rounds) == 160


def test_labels_teach_less_where_an_expert_would_have_known():
    X, y, said = _stream(120, 1.0)
    _, strategy = _play([GPT, HUMAN], X, y, {"gpt": said})
    knowledge, panel = strategy.knowledge, strategy.knowledge.panel
    labels = knowledge.bought["y"]
    unsure, sure = torch.full((len(labels), 3), 1 / 3), torch.nn.functional.one_hot(labels, 3).float()
    knowledge.beliefs.halves = unsure, sure
    given = knowledge.bought["x"], torch.full((len(labels),), 0.3), torch.full((len(labels),), 0.3)
    beside_experts, knowledge.panel = knowledge._slope(*given), None
    assert panel is not None
    assert beside_experts < 0.2 * knowledge._slope(*given)


def test_with_many_classes_a_learning_curve_counts_by_how_sure_it_is():
    """Few labels of many classes: a curve that shows no gain by chance does not end the purchases, one that is sure
    does; each is what an e-fold of labels is held to save, as a share of what announcing costs."""
    rng = np.random.default_rng(0)
    y = rng.integers(12, size=120)
    X = (rng.normal(size=(12, 5))[y] + rng.normal(size=(120, 5))).astype(np.float32)
    _, strategy = _play([GPT, HUMAN], X, y, {"gpt": _said(y, 0.7, 12, rng)})
    knowledge = strategy.knowledge
    labels = knowledge.bought["y"]
    knowledge.bought["answers"].fill_(-1)
    cost = torch.full((len(labels),), 0.5)
    by_chance = torch.nn.functional.one_hot(torch.from_numpy(rng.integers(12, size=(2, len(labels)))), 12).float()
    right = torch.nn.functional.one_hot(labels, 12).float()
    wrong = torch.nn.functional.one_hot((labels + 1) % 12, 12).float()
    half_right = torch.where(torch.arange(len(labels))[:, None] % 2 == 0, right, wrong)
    slopes = []
    for halves in ((half_right, half_right), tuple(by_chance), (half_right, right)):
        knowledge.beliefs.halves = halves
        slopes.append(knowledge._slope(knowledge.bought["x"], cost, cost) / 0.5)
    nothing, noise, learns = slopes
    assert nothing < 0.01
    assert 0.02 < noise < USUAL_SLOPE < learns
    knowledge.beliefs.halves = None
    assert knowledge._prior_slope(0.5) == pytest.approx(USUAL_SLOPE * 0.5)


def test_an_expert_who_costs_much_beside_the_truth_has_to_show_what_answers_save():
    """At half of the truth's price an answer is bought only if twice that is expected; at a tenth of it as expected."""
    belief = torch.tensor([0.8, 0.1, 0.1])
    for price, asked in ((0.01, True), (0.05, False)):
        experts = [sp.Expert("gpt", price, accuracy=0.9), sp.Expert("human", 0.1, gold=True)]
        panel = Panel(sp.label_efficient(3, experts=experts))
        risk, after = panel.outlook([(0,)], belief, truth=0.1)
        assert 0.05 < risk - after < 0.1
        assert (panel.best_offer(belief, [], truth=0.1) is not None) == asked
    alone = Panel(sp.label_efficient(3, experts=[sp.Expert("gpt", 0.05, accuracy=0.9)]))
    assert alone.best_offer(belief, []) is not None


@pytest.mark.parametrize("n_classes", [8, 12])
def test_there_is_a_model_soon_however_many_classes_there_are(n_classes):
    """With 12 classes the start once ended after 12 truths; a model, which needs 20, came hundreds of rounds later."""
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=40)
    X = (3 * rng.normal(size=(n_classes, 5))[y] + rng.normal(size=(40, 5))).astype(np.float32)
    _, strategy = _play([GPT, HUMAN], X, y, {"gpt": _said(y, 0.9, n_classes, rng)}, horizon=900)
    assert strategy.n_labels >= FIRST
    assert strategy.knowledge.worth is not None


def _judged(seed):
    """The accuracy learned of an expert right in 70 %: wrong answers were bought beside the truth, a tenth checked."""
    rng = np.random.default_rng(seed)
    truth, held = torch.tensor(rng.integers(3, size=1500)), torch.full((1500, 3), 1 / 3)
    said = torch.tensor(_said(truth.numpy(), 0.7, 3, rng))[:, None]
    panel = Panel(sp.label_efficient(3, experts=[GPT, HUMAN]))
    doubtful = torch.zeros(1500, dtype=torch.bool)
    doubtful[torch.nonzero(said[:, 0] != truth)[-60:, 0]] = True
    checked = ~doubtful & (torch.arange(1500) < 150)
    for k in range(1500):
        if not doubtful[k]:
            panel.reliability[0].leave(0.8)
        if doubtful[k] or checked[k]:
            trust = None if doubtful[k] else 0.8
            panel.reliability[0].check(int(truth[k]), int(said[k]), held[k], clock=k, random=trust)
    left = ~doubtful & ~checked
    folds = torch.arange(int(checked.sum())) % 6
    panel.recount(held[left], said[left], (held[checked], said[checked], truth[checked], folds))
    return panel.reliability[0].accuracy


def test_an_expert_is_judged_by_truths_bought_whatever_was_believed():
    assert np.mean([_judged(seed) for seed in range(12, 18)]) == pytest.approx(0.7, abs=0.04)


def test_with_many_classes_a_truth_does_not_speak_for_itself_when_an_expert_is_judged():
    """One truth a class, and an expert with systematic mistakes: what is held of it must not have seen that truth."""
    n_classes, found = 60, []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        truth = torch.tensor(np.concatenate([rng.permutation(n_classes), rng.integers(n_classes, size=600)]))
        instead = torch.tensor(np.where(rng.random(n_classes) < 0.4, rng.permutation(n_classes), np.arange(n_classes)))
        said, held = instead[truth][:, None], torch.full((len(truth), n_classes), 1 / n_classes)
        panel = Panel(sp.label_efficient(n_classes, experts=[GPT, HUMAN]))
        for k in range(len(truth)):
            panel.reliability[0].leave(0.8)
            if k < n_classes:
                panel.reliability[0].check(int(truth[k]), int(said[k]), held[k], clock=k, random=0.8)
        checked = held[:n_classes], said[:n_classes], truth[:n_classes], torch.arange(n_classes) % 6
        panel.recount(held[n_classes:], said[n_classes:], checked)
        found.append(panel.reliability[0].accuracy - float((instead[truth] == truth).float().mean()))
    assert abs(np.mean(found)) < 0.06


def test_what_announcing_costs_is_seen_on_rows_whose_label_is_not_known():
    """After 150 truths in 170 rounds, of classes that nothing tells apart, a model is sure of the rows it has seen."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(170, 30)).astype(np.float32), rng.integers(30, size=170)
    game = sp.label_efficient(30, experts=[GPT, HUMAN])
    strategy = sp.Sparing(game, 30, seed=0, **NARROW)
    knowledge, panel = strategy.knowledge, strategy.panel
    assert panel is not None
    for k, (x, truth) in enumerate(zip(torch.from_numpy(X), y.tolist(), strict=True)):
        said = (truth + int(rng.random() < 0.5)) % 30
        knowledge.observe(x, strategy.rng)
        knowledge.hear(x, [said], strategy.rng)
        panel.reliability[0].leave(0.5)
        if k < 150:
            believed = torch.full((30,), 1 / 30)
            question = OpenQuestion(x, k, 0, math.nan, math.nan, believed, k, (said,), True, None)
            panel.reliability[0].check(truth, said, believed, clock=k, random=0.5)
            knowledge.add(x, truth, question, k + 1, strategy.rng)
    knowledge.train(170, strategy.rng)
    assert knowledge.worth is not None
    assert knowledge.worth.risk > 0.3


def test_everyone_cheap_is_asked_beside_the_first_truths():
    X, y, said = _stream(60, 0.8, seed=13)
    dear = sp.Expert("dear", 0.9)
    answers = {"gpt": said, "llama": said, "dear": said}
    rounds, _ = _play([GPT, LLAMA, dear, HUMAN], X, y, answers)
    first = [one.asked for one in rounds if "human" in one.asked][:20]
    assert all({"gpt", "llama"} <= set(asked) for asked in first)
    assert not any("dear" in asked for asked in first)


def _heard_of_every_row(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=200)
    X = rng.normal(size=(200, 8)).astype(np.float32)
    X[np.arange(200), y] += 2
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    rounds, strategy = _play([GPT, HUMAN], X, y, {"gpt": _said(y, 0.85, 4, rng)})
    return X, y, rounds, strategy


def test_answers_about_other_rows_teach_the_own_model_and_are_kept_in_its_state():
    """Whether they do is measured on the truths bought; on the first of these streams they clearly do."""
    played = (_heard_of_every_row(seed) for seed in (16, 15, 20))
    found = next((one for one in played if one[3].knowledge.beliefs.taught), None)
    assert found is not None
    X, y, rounds, strategy = found
    beliefs = strategy.knowledge.beliefs
    rows = torch.from_numpy(X)
    taught, alone = beliefs(rows).mean(0), beliefs(rows, taught=False).mean(0)
    right = torch.from_numpy(y)
    assert (taught.argmax(1) == right).float().mean() >= (alone.argmax(1) == right).float().mean()
    again = sp.Sparing(strategy.game, 8, **NARROW)
    again.load_state_dict(strategy.state_dict())
    assert torch.equal(again.knowledge.beliefs(rows), beliefs(rows))
    assert sum(one.cost for one in rounds) < 90


def test_no_label_comes_back_to_a_member_that_is_blind_to_it():
    generator = torch.Generator().manual_seed(15)
    X, y, folds = torch.randn(60, 4, generator=generator), torch.arange(60) % 2, torch.arange(60) % 3
    rows, soft = torch.randn(40, 4, generator=generator), torch.full((3, 40, 2), 0.5)
    held = {}
    for name, labels in (("as it is", y), ("fold 0 turned", torch.where(folds == 0, 1 - y, y))):
        gold, student = KernelMembers(2, members=3), KernelMembers(2, members=3)
        gold.fit(X, X, y, folds)
        student.fit_beside(gold, labels, folds, (rows, soft))
        held[name] = student.scores(X)[0] - student._mean
    assert torch.allclose(held["as it is"], held["fold 0 turned"], atol=1e-4)


def test_a_state_that_does_not_say_which_truths_were_bought_blindly_is_taken_over():
    X, y, said = _stream(120, 0.8, seed=16)
    _, strategy = _play([GPT, HUMAN], X, y, {"gpt": said})
    state = strategy.state_dict()
    bought = state["own"]["knows"]["bought"]
    assert int(bought.pop("random").sum()) >= 20
    again = sp.Sparing(strategy.game, 5, **NARROW)
    again.load_state_dict(state)
    again.learn(X[0], strategy.game.n_outcomes + 1, strategy.game.symbols(strategy.game.n_outcomes + 1)[0])
    assert not again.knowledge.bought["random"].any()


@pytest.mark.parametrize(("accuracy", "first"), [(0.5, 40), (1.0, 20)])
def test_with_many_classes_the_start_is_one_truth_a_class_unless_the_answers_are_good_enough(accuracy, first):
    rng = np.random.default_rng(3)
    game = sp.label_efficient(40, experts=[sp.Expert("model", 0.01), sp.Expert("human", 1.0, gold=True)])
    X, y = rng.normal(size=(70, 6)).astype(np.float32), rng.integers(40, size=70)
    said = np.where(rng.random(70) < accuracy, y, (y + 1) % 40)
    stream = [(x, int(one), {"model": int(answer)}) for x, one, answer in zip(X, y, said, strict=True)]
    rounds = list(sp.play(sp.Sparing(game, 6, seed=0, **NARROW), game, stream))
    assert sum("one of the first" in str(one.why) for one in rounds if "human" in one.asked) == first


def test_with_few_classes_the_start_is_short_where_own_model_and_answers_are_good_enough():
    firsts = []
    for spread in (0.3, 3.0):
        X, y, said = _stream(80, 0.75, seed=5, spread=spread)
        rounds, _ = _play([GPT, HUMAN], X, y, {"gpt": said})
        firsts.append(sum("one of the first" in str(one.why) for one in rounds if "human" in one.asked))
    assert firsts[0] < 30 < firsts[1] <= 40


def test_a_class_that_no_truth_has_shown_is_checked_when_an_expert_first_names_it():
    X, y, said = _stream(80, 1.0, seed=6, spread=0.3)
    y = said = np.where(y == 2, 0, y)
    X[:, 2], y[60:], said[60:] = 0, 2, 2
    rounds, strategy = _play([GPT, HUMAN], X, y, {"gpt": said})
    assert "human" in rounds[60].asked
    assert str(rounds[60].why).endswith("2 is named, and no truth has shown it yet")
    assert not any("no truth has shown it" in str(one.why) for one in (*rounds[:60], *rounds[61:]))
    assert 2 in strategy.knowledge.bought["y"]


def test_beside_a_cheap_human_models_are_asked_only_where_they_spare_the_human():
    X, y, said = _stream(180, 0.6, seed=9, spread=6.0)
    experts = [sp.Expert("gpt", 0.05), sp.Expert("human", 0.1, gold=True)]
    rounds, _ = _play(experts, X, y, {"gpt": said})
    assert sum(one.cost for one in rounds) < 1.03 * 0.1 * len(y)
    assert sum("gpt" in one.asked for one in rounds) < 0.2 * len(y)


def test_the_second_answer_is_worth_asking_for_where_only_a_third_could_decide():
    panel = Panel(sp.label_efficient(3, experts=[GPT, LLAMA, sp.Expert("claude", 0.01)]))
    said = panel.posterior(torch.full((1, 1, 3), 1 / 3), torch.tensor([[0, -1, -1]]))[0, 0]
    risk, one, two = panel.outlook([(1,), (1, 2)], said)
    assert one == pytest.approx(risk, abs=1e-6)  # two who say different things: the first stands
    assert two < risk - 0.05
    offer = panel.best_offer(said, [panel.actions[0]])
    assert offer is not None
    assert panel.best_offer(said, [panel.actions[0]], truth=0.02) is None


def test_where_an_expert_is_right_is_learned_by_region():
    rng = np.random.default_rng(5)
    X, y = torch.from_numpy(rng.normal(size=(600, 2)).astype(np.float32)), torch.from_numpy(rng.integers(2, size=600))
    said = torch.where(X[:, 0] > 0, y, 1 - y)[:, None]  # always right on one side, always wrong on the other
    model = AnswerModel(2, 2, 1)
    labels = {"x": X[:300], "y": y[:300], "fold": torch.arange(300) % 6, "answers": said[:300]}
    model.fit((X[:300], said[:300]), labels, torch.full((300, 2), 0.5), torch.Generator().manual_seed(0))
    held = model(torch.full((6, 300, 2), 0.5), X[300:], said[300:]).mean(0)
    assert model.share > 0.8
    assert float((held.argmax(1) == y[300:]).float().mean()) > 0.9
    silent = torch.full((300, 1), -1)
    assert model(torch.full((6, 300, 2), 0.5), X[300:], silent).eq(0.5).all()


def test_a_strategy_with_a_model_of_answers_goes_on_bit_for_bit():
    X, y, _ = _stream(130, 0.7, spread=6.0)
    said = np.where(X[:, 4] > 0, y, (y + 1) % 3)
    experts = [sp.Expert("gpt", 0.01), sp.Expert("human", 0.7, gold=True)]
    _, strategy = _play(experts, X[:110], y[:110], {"gpt": said})
    assert strategy.knowledge.answer_model.share > 0
    again = sp.Sparing(strategy.game, 5, seed=1, **NARROW)
    again.load_state_dict(strategy.state_dict())
    items = [(x, int(c), {"gpt": int(a)}) for x, c, a in zip(X[110:], y[110:], said[110:], strict=True)]
    both = [
        [(one.asked, one.prediction, dict(one.why.values)) for one in sp.play(each, strategy.game, items)]
        for each in (strategy, again)
    ]
    assert both[0] == both[1]


def test_what_an_expert_said_before_it_changed_goes_on_teaching():
    X, y, said = _stream(160, 0.95)
    _, strategy = _play([GPT, HUMAN], X, y, {"gpt": said})
    one, panel, knowledge = strategy.panel.reliability[0], strategy.panel, strategy.knowledge
    before, own = one.matrix.clone(), torch.full((1, 1, 3), 1 / 3)
    one.wealth = 1e9
    assert one.change_noticed(160)
    knowledge.disregard(0, 160)
    kept = knowledge._heard.rows[:, -1].long()
    assert (kept < -1).any()
    assert not (kept >= 0).any()
    row = kept[kept < -1][:1, None]
    assert panel.posterior(own, row).equal(own)  # as an answer of today it counts for nothing
    taught = panel.posterior(own, row, former=True)[0, 0]
    assert taught.argmax() == -2 - row[0, 0]
    words = panel.pool.weights[1, 1] * before[:, -2 - row[0, 0]].log()
    assert taught.tolist() == pytest.approx(words.softmax(0).tolist(), rel=1e-5)
    knowledge.train(161, np.random.default_rng(0))


def test_weights_of_an_earlier_state_are_taken_over():
    panel = Panel(sp.label_efficient(3, experts=[GPT, LLAMA, HUMAN]))
    panel.pool.load([0.5, 0.7, 0.85])
    assert panel.pool.weights[2].tolist() == pytest.approx([0.5, 0.7, 0.85])
    assert panel.pool.weights[1].tolist() == pytest.approx([0.5, 0.7 * 2**0.5, 0.85 * 2**0.5])


def test_what_answers_have_made_certain_is_not_bought_because_an_average_label_pays():
    worth = Worth(gamma=4.0, average=0.02, each=0.0, risk=0.25, reach=1.0)
    certain = Offer(0.02, 0.0, 0.3, clock=999, known=400, waiting=0)
    for choosy, asked in ((False, True), (True, False)):
        rule = PurchaseRule(unit=1.0, audit=0.0, choosy=choosy)
        assert rule(certain, worth)[0] is asked
        assert rule(certain._replace(risk=0.25), worth)[0]


def test_an_expert_who_repeats_another_is_worth_less_after_it_than_before():
    panel = Panel(sp.label_efficient(3, experts=[GPT, sp.Expert("llama", 0.01, accuracy=0.95), HUMAN]))
    own = torch.full((6, 3), 1 / 3)
    one = panel.posterior(own[:, None], torch.tensor([[1, -1]])).mean(0)[0]
    assert panel.best_offer(one, [panel.actions[0]]) is not None
    for _ in range(200):
        panel.compare(1, own, [-1, -1], 1)
        panel.compare(1, own, [1, -1], 1)
    expected = torch.tensor([risk - after for risk, after in (panel.outlook([(1,)], p) for p in (own[0], one))])
    kept = [panel._kept(1, later, float(saving)) for later, saving in zip((False, True), expected, strict=True)]
    assert kept[0] > 0.8
    assert kept[1] < 0.2
    assert panel._kept(1, True, 0.01) == 1.0  # of answers from which less was expected nothing is known yet
    assert panel.best_offer(own[0], []) is not None
    assert panel.best_offer(one, [panel.actions[0]]) is None
    panel.load_state_dict({**panel.state_dict(), "saved": [[2.0, 1.0], [4.0, 1.0]]})  # as earlier states have it
    assert panel.saved.shape == (2, 2, 5, 2)
    assert panel.saved[1].flatten(0, 1).unique(dim=0).tolist() == [[4.0, 1.0]]


def test_an_expert_who_stops_agreeing_with_a_weak_model_is_checked_and_acquitted_by_truths():
    rng = np.random.default_rng(8)
    one = Reliability(GPT, 4)
    own = torch.tensor([0.4, 0.2, 0.2, 0.2])  # says next to nothing, and the same of everything
    for t in range(400):
        one.hear(own, int(rng.choice(4, p=[0.7, 0.1, 0.1, 0.1])), clock=t)
    assert not one.suspect
    suspected = None
    for t in range(400, 600):
        one.hear(own, int(rng.integers(4)), clock=t)
        suspected = t if one.suspect and suspected is None else suspected
    assert suspected is not None
    assert suspected < 480
    for t in range(600, 640):
        one.check(0, 0, torch.tensor([0.85, 0.05, 0.05, 0.05]), clock=t)
    assert not one.suspect
    again = Reliability(GPT, 4)
    again.load_state_dict(one.state_dict())
    assert again.agreement == one.agreement


def test_beside_experts_labels_of_many_classes_are_bought_for_a_longer_stream():
    few, many = (sp.Sparing(sp.label_efficient(n, experts=[GPT, HUMAN]), 5) for n in (5, 40))
    assert [one.purchase_rule.prior_horizon for one in (few, many)] == [2000, 7500]
    assert [one.purchase_rule.most_first for one in (few, many)] == [40, 40]
    assert sp.Sparing(many.game, 5, prior_horizon=9000).purchase_rule.prior_horizon == 9000
    told = sp.Sparing(many.game, 5, horizon=9000)
    assert [one.knowledge._discount() for one in (few, many, told)] == [0.9, 0.35, 0.9]


def _bought(strategy, X, y, said):
    """What a strategy knows that has bought truths, and heard of each what the one expert says."""
    rng, knowledge = np.random.default_rng(0), strategy.knowledge
    for t, (x, truth) in enumerate(zip(torch.from_numpy(X), y.tolist(), strict=True)):
        knowledge.hear(x, (int(said[t]),), rng)
        question = OpenQuestion(x, t, 0, math.nan, math.nan, torch.full((3,), 1 / 3), t, (int(said[t]),), True, None)
        knowledge.add(x, truth, question, t + 1, rng)
        knowledge.observe(x, rng)
    knowledge.train(len(y), rng)
    return knowledge


def test_labels_that_teach_nothing_beyond_what_experts_say_are_worth_nothing():
    X, y, said = _stream(100, 0.75, seed=4)
    knowledge = _bought(sp.Sparing(sp.label_efficient(3, experts=[GPT, HUMAN]), 5, seed=0, **NARROW), X, y, said)
    panel, bought = knowledge.panel, knowledge.bought
    alone, right = panel.unaided(bought.shares(3), bought), torch.nn.functional.one_hot(bought["y"], 3).float()
    assert knowledge._most_taught(panel, alone, 1.0) == 0.0
    missed = float((alone.argmax(1) != bought["y"]).float().mean())
    assert missed / math.log(100 / 5) < knowledge._most_taught(panel, right, 1.0) < 1.3 * missed / math.log(100 / 5)
    assert knowledge._most_taught(panel, right, 0.01) == 0.005
    labels = {name: bought[name] for name in ("value", "soft", "labels")}
    stream = {"value": torch.full((9,), 0.05), "risk": torch.full((9,), 0.2), "x": torch.zeros(9, 2)}
    for most in (math.inf, 0.01):
        worth = Worth.measure(labels, torch.full((100,), 0.2), stream, unit=1, discount=0.5, slope=0.1, most=most)
        assert worth.average == 0.5 * worth.slope
        assert (worth.slope <= 0.01) == (most == 0.01)


def test_an_answer_saves_nothing_where_the_truth_is_bought_for_its_label():
    X, y, said = _stream(200, 0.8)
    strategy = sp.Sparing(sp.label_efficient(3, experts=[GPT, HUMAN]), 5, seed=0, **NARROW)
    _bought(strategy, X, y, said)
    strategy.knowledge.worth = Worth(average=0.05, risk=0.2)
    assert strategy._truth_price(1.0) == pytest.approx(1 - 2001 * 0.05 / 200)
    strategy.knowledge.worth = Worth(average=1.0, risk=0.2)
    assert strategy._truth_price(1.0) == 0.0
    own = torch.full((3,), 1 / 3)
    assert strategy.panel.best_offer(own, [], truth=1.0) is not None
    assert strategy.panel.best_offer(own, [], truth=0.0) is None
