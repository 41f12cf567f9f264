"""Trees beside the networks: blind to a fold, the same as scikit-learn's, saved whole, and worth their labels."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import ExtraTreesClassifier

from sparingly.learning import state_files
from sparingly.strategies.sparing.beliefs import Beliefs
from sparingly.strategies.sparing.models.trees import TREES, TreeMembers, grow_checked, grow_compiled


def checkers(n, *, seed=0):
    """Classes by a chessboard in two of four features: hard for a small network, easy for trees with many labels."""
    X = np.random.default_rng(seed).uniform(0, 4, size=(n, 4)).astype(np.float32)
    return torch.from_numpy(X), torch.from_numpy((X[:, 0].astype(int) + X[:, 1].astype(int)) % 2).long()


def fitted(n=300):
    X, y = checkers(n)
    trees, folds = TreeMembers(3, members=3), torch.arange(n) % 3
    trees.fit(X, y, folds, seed=5)
    return trees, X, y, folds


def test_the_arrays_say_what_the_trees_of_scikit_learn_say():
    """Class 2 is in no label: it has only its part of the leaf that holds the classes' shares."""
    trees, X, y, folds = fitted()
    fresh, _ = checkers(200, seed=1)
    for k in range(3):
        seen = (folds != k).numpy()
        forest = ExtraTreesClassifier(TREES, max_features=None, random_state=5 + k).fit(
            X.numpy()[seen], y.numpy()[seen]
        )
        expected = (TREES * np.pad(forest.predict_proba(fresh.numpy()), ((0, 0), (0, 1))) + trees._shares.numpy()) / 9
        assert np.allclose(trees.probabilities(fresh)[k].numpy(), expected, atol=1e-6)


def test_nothing_is_said_of_classes_with_hardly_a_label_each(recwarn):
    X, _ = checkers(100)
    TreeMembers(100, members=2).fit(X, torch.arange(100), torch.arange(100) % 2, seed=0)
    assert not recwarn.list


def test_a_tree_never_sees_its_fold():
    trees, X, y, folds = fitted()
    other = TreeMembers(3, members=3)
    other.fit(X, torch.where(folds == 1, 1 - y, y), folds, seed=5)
    trees._shares = other._shares = torch.ones(3) / 3
    assert torch.equal(trees.probabilities(X)[1], other.probabilities(X)[1])
    assert not torch.equal(trees.probabilities(X)[0], other.probabilities(X)[0])


def test_trees_are_saved_whole_and_say_the_same_of_a_row_in_any_block():
    trees, X, _, _ = fitted()
    loaded = TreeMembers(3, members=3)
    loaded.load_state_dict(state_files.load(state_files.dump(trees.state_dict())))
    assert torch.equal(loaded.probabilities(X), trees.probabilities(X))
    assert torch.equal(trees.probabilities(X[7:8])[:, 0], trees.probabilities(X)[:, 7])


def test_unseen_labels_decide_how_much_trees_count():
    """They count most where the networks are too small for what there is to learn, and halve the errors."""
    X, y = checkers(900)
    fresh, truth = checkers(1000, seed=1)
    errors = []
    for trees in (True, False):
        beliefs = Beliefs(2, (4,), trees=trees, kernel=False, width=3)
        with torch.no_grad():
            beliefs.fit(X, X, y, torch.arange(900) % 6, torch.Generator().manual_seed(0))
            errors.append(float((beliefs(fresh).mean(0).argmax(1) != truth).float().mean()))
        if trees:
            assert beliefs._tree_share > 0.5
            assert beliefs.halves is not None
    assert errors[0] < 0.7 * errors[1]


@pytest.mark.parametrize(("width", "length", "grown"), [(80, 1, False), (80, None, True), (20, 1, True)])
def test_no_tree_is_grown_on_wide_embeddings(width, length, grown):
    """Of an embedding of a text no single number says anything, and trees that look at each take long."""
    X = torch.randn(120, width, generator=torch.Generator().manual_seed(0))
    X = torch.nn.functional.normalize(X) if length else X
    beliefs = Beliefs(2, (width,), kernel=False, width=4)
    with torch.no_grad():
        beliefs.fit(X, X, (X[:, 0] > 0).long(), torch.arange(120) % 6, torch.Generator().manual_seed(0))
    assert (len(beliefs._trees._roots) > 0) is grown


def test_a_state_without_trees_is_taken_over():
    """Files of release 0.1 know of none: the networks and kernels go on until the next training."""
    X, y = checkers(150)
    beliefs = Beliefs(2, (4,), trees=False)
    with torch.no_grad():
        beliefs.fit(X, X, y, torch.arange(150) % 6, torch.Generator().manual_seed(0))
        state = {name: one for name, one in beliefs.state_dict().items() if "tree" not in name}
        heir = Beliefs(2, (4,))
        heir.load_state_dict(state)
        assert torch.equal(heir(X), beliefs(X))


def test_the_trees_are_those_of_scikit_learn_node_by_node():
    X, y = checkers(200)
    for ours, theirs in zip(
        grow_compiled(X.numpy(), y.numpy(), 2, 3), grow_checked(X.numpy(), y.numpy(), 3), strict=True
    ):
        for name in ("feature", "threshold", "children_left", "value"):
            assert np.array_equal(getattr(ours, name), getattr(theirs, name))


def test_a_scikit_learn_that_has_changed_inside_makes_no_difference(monkeypatch):
    X, y = checkers(200)
    folds = torch.arange(200) % 6
    usual, changed = TreeMembers(2, members=6), TreeMembers(2, members=6)
    usual.fit(X, y, folds, 3)
    expected = usual.probabilities(X)
    monkeypatch.setattr(TreeMembers, "_joined", lambda self, n_features: None)
    monkeypatch.delattr("sklearn.tree._criterion.Gini")
    changed.fit(X, y, folds, 3)
    assert torch.equal(changed.probabilities(X), expected)
    assert torch.equal(changed.held_out(X, folds), usual.held_out(X, folds))
