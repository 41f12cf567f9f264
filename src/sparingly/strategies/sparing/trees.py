"""Extremely randomised trees in copies that are each blind to one fold of the labels, as arrays that can be saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

TREES = 8
"""A member."""
COMPACT = 4
"""After so many levels the trees whose leaf is reached are taken out of the walk."""


class TreeMembers:
    """Extremely randomised trees: those of member k never see fold k, as in `Ensemble`.

    They take the features as they are, learn what is not smooth, and go on learning where a network of fixed size has
    learned what it can. A probability is the mean of the leaves and of one leaf more that has the classes' shares.

    >>> rng = np.random.default_rng(0)
    >>> X = torch.from_numpy(rng.normal(size=(300, 3)).astype(np.float32))
    >>> y, folds = (X[:, 0] * X[:, 1] > 0).long(), torch.arange(300) % 3
    >>> trees = TreeMembers(2, members=3)
    >>> trees.fit(X, y, folds, seed=0)
    >>> trees.probabilities(X).shape
    torch.Size([3, 300, 2])
    >>> bool((trees.held_out(X, folds).argmax(1) == y).float().mean() > 0.8)
    True

    References
    ----------
    Geurts, Ernst, Wehenkel (2006). Extremely randomized trees. Machine Learning.
    """

    def __init__(self, n_classes: int, *, members: int) -> None:
        self.n_classes = n_classes
        self.members = members
        self._roots = torch.zeros(0, dtype=torch.int32)
        """`[member * trees]`: where each tree begins among the nodes."""
        self._feature = self._left = torch.zeros(0, dtype=torch.int32)
        """Of every node; its right child is the node after its left one, and a leaf is its own left child."""
        self._threshold = torch.zeros(0)
        """Up to which a value goes to the left: infinite in a leaf."""
        self._leaf = torch.zeros(0, 0)
        """Of every node the share of each class, `[node, class]`."""
        self._shares = torch.zeros(0)
        self._depth = 0

    def fit(self, X: Tensor, y: Tensor, folds: Tensor, seed: int) -> None:
        """Train on inputs `[n, feature]` and classes `[n]`."""
        from sklearn.ensemble import ExtraTreesClassifier

        counts = torch.bincount(y, minlength=self.n_classes) + 1 / self.n_classes
        self._shares = (counts / counts.sum()).float()
        parts: list[dict[str, Any]] = []
        for k in range(self.members):
            seen = (folds != k).numpy()
            forest = ExtraTreesClassifier(TREES, n_jobs=1, random_state=(seed + k) % 2**32)
            forest.fit(X.numpy()[seen], y.numpy()[seen])
            parts += [_nodes(one.tree_, forest.classes_.astype(int), self.n_classes) for one in forest.estimators_]
        self._join(parts)

    def _join(self, parts: list[dict[str, Any]]) -> None:
        """All trees in one row of arrays, so that they can be walked down together."""
        starts = np.cumsum([0, *(len(one["feature"]) for one in parts)])
        for one, start in zip(parts, starts[:-1], strict=True):
            one["left"] = one["left"] + start
        joined = {name: np.concatenate([one[name] for one in parts]) for name in parts[0] if name != "depth"}
        self._roots = torch.from_numpy(starts[:-1].astype(np.int32))
        self._feature, self._left = (torch.from_numpy(joined[name].astype(np.int32)) for name in ("feature", "left"))
        self._threshold, self._leaf = torch.from_numpy(joined["threshold"]), torch.from_numpy(joined["leaf"])
        self._depth = max(one["depth"] for one in parts)

    def probabilities(self, X: Tensor) -> Tensor:
        """`[member, block, class]`."""
        node = self._walk(X.numpy())
        leaves: NDArray[np.float32] = self._leaf.numpy()[node]
        found = torch.from_numpy(leaves).view(len(X), self.members, -1, self.n_classes)
        total = self._shares.expand(len(X), self.members, -1)
        for tree in range(found.shape[2]):
            total = total + found[:, :, tree]
        return (total / (found.shape[2] + 1)).transpose(0, 1)

    def _walk(self, rows: NDArray[np.float32]) -> NDArray[np.int32]:
        """The leaf that each row reaches in each tree, `[row, tree]`."""
        feature, threshold, left = (one.numpy() for one in (self._feature, self._threshold, self._left))
        node = np.tile(self._roots.numpy(), len(rows))
        row = np.repeat(np.arange(len(rows)), len(self._roots))
        walking, at = np.arange(len(node)), node
        for level in range(1, self._depth + 1):
            at = left[at] + (rows[row, feature[at]] > threshold[at])
            if level % COMPACT == 0:
                node[walking] = at
                inside = threshold[at] < np.inf
                walking, at, row = walking[inside], at[inside], row[inside]
        node[walking] = at
        return node.reshape(len(rows), -1)

    def held_out(self, X: Tensor, folds: Tensor) -> Tensor:
        """For each row the probabilities of the member that did not train on its fold, `[n, class]`."""
        return self.probabilities(X)[folds, torch.arange(len(X))]

    def add_class(self) -> None:
        """Take on one more class, the last, which no leaf has met."""
        self.n_classes += 1
        self._leaf, self._shares = (nn.functional.pad(one, (0, 1)) for one in (self._leaf, self._shares))

    def state_dict(self) -> dict[str, Any]:
        nodes = {"feature": self._feature, "left": self._left, "threshold": self._threshold}
        return {"roots": self._roots, **nodes, "leaf": self._leaf, "shares": self._shares, "depth": self._depth}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._roots, self._feature, self._left = state["roots"], state["feature"], state["left"]
        self._threshold, self._leaf = state["threshold"], state["leaf"]
        self._shares, self._depth = state["shares"], int(state["depth"])


def _nodes(tree: Any, classes: NDArray[np.int64], n_classes: int) -> dict[str, Any]:
    """One tree of scikit-learn's as arrays, its nodes in another order: brothers stand side by side."""
    inner = np.flatnonzero(tree.children_left >= 0)
    place = np.zeros(tree.node_count, dtype=np.int64)
    place[tree.children_left[inner]] = 1 + 2 * np.arange(len(inner))
    place[tree.children_right[inner]] = 2 + 2 * np.arange(len(inner))
    order = np.argsort(place)
    left, feature = np.arange(tree.node_count), np.zeros(tree.node_count, dtype=np.int64)
    left[place[inner]], feature[place[inner]] = 1 + 2 * np.arange(len(inner)), tree.feature[inner]
    threshold = np.full(tree.node_count, np.inf, dtype=np.float32)
    threshold[place[inner]] = _rounded_down(tree.threshold[inner])
    leaf = np.zeros((tree.node_count, n_classes), dtype=np.float32)
    leaf[:, classes] = (tree.value[:, 0, :] / tree.value[:, 0, :].sum(1, keepdims=True))[order]
    return {"feature": feature, "left": left, "threshold": threshold, "leaf": leaf, "depth": tree.max_depth}


def _rounded_down(threshold: NDArray[np.float64]) -> NDArray[np.float32]:
    """Numbers of single precision that divide those of single precision as the thresholds do."""
    single = threshold.astype(np.float32)
    return np.where(single > threshold, np.nextafter(single, np.float32(-np.inf)), single)
