"""Beliefs: members blind to a fold, calibrated, mixed by what unseen labels make likely."""

import copy

import numpy as np
import pytest
import torch

import sparingly as sp
from sparingly.strategies.sparing.beliefs import SHARES, Beliefs, share_of
from sparingly.strategies.sparing.models.kernel import KernelMembers, _blind_weights
from sparingly.strategies.sparing.training_data import Bought


def labelled(n, *, seed=0, n_features=4, noise=0.0):
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(n, n_features, generator=generator)
    flipped = torch.rand(n, generator=generator) < noise
    return X, ((X[:, 0] > 0) ^ flipped).long(), generator


def believe(n=150, noise=0.0, **options):
    X, y, generator = labelled(n, noise=noise)
    beliefs = Beliefs(2, (4,), **options)
    folds = torch.arange(n) % beliefs.members
    with torch.no_grad():
        unseen = beliefs.fit(X, X, y, folds, generator)
    return beliefs, X, y, folds, unseen


def test_a_kernel_member_never_sees_its_fold():
    """Whatever the classes of fold k are, member k says the same; the others do not."""
    X, y, _ = labelled(90)
    folds = torch.arange(90) % 3
    changed = torch.where(folds == 1, 1 - y, y)
    before, after = KernelMembers(2, members=3), KernelMembers(2, members=3)
    before.fit(X, X, y, folds)
    after.fit(X, X, changed, folds)
    assert torch.equal(before._weights.view(90, 3, 2)[folds == 1, 1], torch.zeros(30, 2))
    assert not torch.allclose(before.scores(X)[0], after.scores(X)[0])


def test_leaving_one_out_in_closed_form_is_leaving_one_out():
    """The reach and the ridge that are chosen are those that do best when each label is really left out."""
    X, y, _ = labelled(40, noise=0.2)
    kernel = KernelMembers(2, members=40)
    kernel.fit(X, X, y, torch.arange(40))
    chosen = kernel.held_out(X, torch.arange(40))
    target = torch.nn.functional.one_hot(y, 2).float()
    assert float((chosen - target).square().mean()) < float((target.mean(0) - target).square().mean())


def test_each_member_gives_probabilities_and_unseen_labels_are_predicted():
    beliefs, X, y, _, unseen = believe()
    with torch.no_grad():
        p = beliefs(X)
    assert p.shape == (6, 150, 2)
    assert torch.allclose(p.sum(2), torch.ones(6, 150), atol=1e-5)
    assert float((unseen.argmax(1) == y).float().mean()) > 0.9


def test_the_share_is_as_good_as_the_best_on_unseen_labels():
    beliefs, X, y, folds, unseen = believe(noise=0.1)
    rows = torch.arange(len(X))
    with torch.no_grad():
        found = {}
        for share in SHARES.tolist():
            beliefs.share_of = share
            found[share] = float(-beliefs(X)[folds, rows][rows, y].log().mean())
    assert float(-unseen[rows, y].log().mean()) < min(found.values()) + 2 / len(X)


def test_the_share_follows_whoever_predicts_unseen_labels():
    y = torch.arange(200) % 2
    right = torch.where(torch.nn.functional.one_hot(y, 2) == 1, 0.9, 0.1)
    coin = torch.full((200, 2), 0.5)
    assert share_of(right, coin, y) < 0.05
    assert share_of(coin, right, y) > 0.95
    assert 0.2 < share_of(coin, coin, y) < 0.4
    assert 0 <= share_of(1 - torch.eye(2)[y], 1 - torch.eye(2)[y], y) <= 1, "even where both are sure and wrong"


def test_the_kernel_takes_the_common_differences_for_the_ones_that_matter():
    """Classes told by two directions of large variance among forty noisy ones: unlabelled rows show which they are."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(600) % 2
    X = torch.randn(600, 42, generator=generator)
    X[:, :2] = 4 * torch.randn(600, 2, generator=generator) + 6 * y[:, None]
    X -= X.mean(0)
    kernel = KernelMembers(2, members=3)
    kernel.fit(X, X[:60], y[:60], torch.arange(60) % 3)
    assert kernel._power == 0.25
    assert float((kernel.scores(X[60:]).mean(0).argmax(1) == y[60:]).float().mean()) > 0.75


def test_an_observation_far_from_labels_is_novel():
    X, y, generator = labelled(300)
    X[290:] = 3.0
    beliefs = Beliefs(2, (4,))
    with torch.no_grad():
        beliefs.fit(X, X[:150], y[:150], torch.arange(150) % 6, generator)
        novelty = beliefs.novelty(X)
        assert float(novelty[:150].max()) < 1e-3
        assert float(novelty[290:].min()) > 2 * float(novelty[150:290].mean())
        assert torch.equal(novelty[200:201], beliefs.novelty(X[200:201]))


def test_noise_makes_beliefs_modest():
    sure, *_ = believe(300)
    unsure, X, *_ = believe(300, noise=0.3)
    with torch.no_grad():
        assert float(sure(X).mean(0).amax(1).mean()) > 0.9
        assert float(unsure(X).mean(0).amax(1).mean()) < 0.8


def test_a_row_is_believed_the_same_alone_and_in_a_block():
    beliefs, X, *_ = believe()
    with torch.no_grad():
        assert torch.equal(beliefs(X)[:, 17], beliefs(X[17:18])[:, 0])


def test_without_the_kernel_only_networks_speak():
    beliefs, *_ = believe(kernel=False)
    assert beliefs.state_dict()["kernel"] is None


def test_one_member_is_no_ensemble():
    with pytest.raises(ValueError, match="members is 1: an ensemble has at least 2"):
        Beliefs(2, (4,), members=1)


def clusters(n, n_classes, *, seed=0, width=24, spread=0.12):
    """Directions of length 1 around one for each class, as embeddings of texts are."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.nn.functional.normalize(
        torch.randn(n_classes, width, generator=torch.Generator().manual_seed(9)), dim=1
    )
    y = torch.randint(n_classes, (n,), generator=generator)
    X = torch.nn.functional.normalize(centres[y] + spread * torch.randn(n, width, generator=generator), dim=1)
    return X, y, generator


def test_taking_a_fold_out_of_the_whole_is_solving_without_it():
    X, y, _ = labelled(60, noise=0.1)
    folds = torch.arange(60) % 3
    near = torch.exp(-torch.cdist(X, X).square()).double()
    targets = torch.nn.functional.one_hot(y, 2).double()
    weights = _blind_weights(near, 0.1, targets, folds, 3)
    for k in range(3):
        seen = (folds != k).nonzero().flatten()
        alone = torch.linalg.solve(near[seen][:, seen] + 0.1 * torch.eye(len(seen)).double(), targets[seen])
        assert torch.allclose(weights[seen, k].double(), alone, atol=1e-4)


def test_classes_that_no_label_has_named_are_as_likely_as_new_ones_were():
    """40 labels of 30 equally common classes leave many out; 600 leave out none."""
    for n, least, most in ((40, 0.2, 0.7), (600, 0.0, 0.0)):
        X, y, generator = clusters(n, 30)
        beliefs = Beliefs(30, (24,))
        with torch.no_grad():
            beliefs.fit(X, X, y, torch.arange(n) % 6, generator)
            later, truth, _ = clusters(500, 30, seed=1)
            p = beliefs(later).mean(0)
        missing = torch.bincount(y, minlength=30) == 0
        believed = float(p[:, missing].sum(1).mean()) if missing.any() else 0.0
        assert least <= believed <= most
        assert abs(believed - float(missing[truth].float().mean())) < 0.2
        assert torch.allclose(p.sum(1), torch.ones(500), atol=1e-5)


def test_half_of_the_labels_of_embeddings_know_less_than_all():
    X, y, generator = clusters(120, 30)
    beliefs = Beliefs(30, (24,))
    with torch.no_grad():
        beliefs.fit(X, X, y, torch.arange(120) % 6, generator)
    assert beliefs.halves is not None
    half, all_ = (float((held.argmax(1) != y).float().mean()) for held in beliefs.halves)
    assert half > all_ + 0.05


def test_beliefs_of_before_have_no_mass_for_unnamed_classes():
    X, y, generator = clusters(40, 30)
    beliefs, restored = Beliefs(30, (24,)), Beliefs(30, (24,))
    with torch.no_grad():
        beliefs.fit(X, X, y, torch.arange(40) % 6, generator)
        state = beliefs.state_dict()
        restored.load_state_dict(state)
        assert torch.equal(restored(X), beliefs(X))
        restored.load_state_dict({name: part for name, part in state.items() if name != "unheard"})
        assert float(restored(X).sum(2).sub(1).abs().max()) < 1e-5
        assert not torch.equal(restored(X), beliefs(X))


def test_what_is_kept_of_a_model_changes_with_it():
    """After more labels, a training, and a new class: the same as in a copy that has kept nothing yet."""
    strategy, X = sp.Sparing(sp.label_efficient(2), 4, seed=0), np.random.default_rng(0).normal(size=(40, 4))
    looked_at = X[:5].astype(np.float32)
    for n, x in enumerate(X):
        strategy.assess(looked_at)
        strategy.learn(x, 2, strategy.game.symbols(2)[int(x[0] > 0)])
        if n % 7 == 0 or n > 37:
            _same_as_a_copy(strategy, looked_at)
    assert strategy.knowledge.worth is not None
    strategy.add_class("third")
    _same_as_a_copy(strategy, looked_at)


def _same_as_a_copy(strategy, X):
    ours, theirs = strategy.assess(X).values, copy.deepcopy(strategy).assess(X).values
    assert ours["probability"].equal(theirs["probability"])
    assert {name: ours[name] for name in ("risk", "value", "price", "novelty")} == {
        name: theirs[name] for name in ("risk", "value", "price", "novelty")
    }


def test_the_nearest_labels_are_those_of_now():
    bought, X = Bought(folds=2), torch.randn(30, 3, generator=torch.Generator().manual_seed(0))
    for k, x in enumerate(X):
        bought.add(x, k % 2, None, clock=k, costs=torch.eye(2))
        if k >= 20:
            assert bought.nearest(X, 2).equal(copy.deepcopy(bought).nearest(X, 2))
    bought.forget([1], since=25)
    assert bought.nearest(X, 2).equal(copy.deepcopy(bought).nearest(X, 2))


def test_with_many_labels_bought_where_it_is_unsure_a_model_is_held_as_sure_as_it_may_be_on_the_stream():
    X, y, generator = labelled(8000)
    hard = (X[:6000, 0].abs() < 0.3).nonzero().flatten()[:800]
    y[hard] ^= torch.rand(len(hard), generator=generator) < 0.3
    bought, stream = torch.cat([hard, torch.arange(6000, 6300)]), X[6300:]
    risk = {}
    for beside_experts in (False, True):
        beliefs = Beliefs(2, (4,), beside_experts=beside_experts)
        with torch.no_grad():
            folds = torch.arange(len(bought)) % beliefs.members
            beliefs.fit(stream[:1000], X[bought], y[bought], folds, torch.Generator().manual_seed(0))
            held = beliefs(stream).mean(0)
        risk[beside_experts] = float((1 - held.amax(1)).mean())
    errors = float((held.argmax(1) != y[6300:]).float().mean())
    assert errors < risk[False] < risk[True]


@pytest.mark.parametrize(
    ("network", "sharper"), [("mlp", False), (lambda shape, outputs: torch.nn.Linear(4, outputs), True)]
)
def test_a_module_may_be_as_sure_as_it_is_right_on_the_stream(network, sharper):
    """Of labels bought where it is unsure most are doubtful; on the stream, where few rows are, it may be surer."""
    X, y, generator = labelled(150, noise=0.4)
    X[:120, 0] *= 0.2
    y[120:] = (X[120:, 0] > 0).long()
    sample, _, _ = labelled(500, seed=1)
    beliefs = Beliefs(2, (4,), network=network, kernel=False, trees=False)
    with torch.no_grad():
        beliefs.fit(sample, X, y, torch.arange(150) % beliefs.members, generator)
    assert (beliefs._sharpness > 1) is sharper
