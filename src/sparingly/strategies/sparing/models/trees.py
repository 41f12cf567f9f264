"""Extremely randomised trees in copies that are each blind to one fold of the labels, as arrays that can be saved."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

TREES = 8
"""A member."""
LEAF = -1
"""What scikit-learn has for the children of a leaf."""
FEW_ROWS = 8
"""Rows up to which a block is walked down all trees at once."""
ANY_SEED = ANY_DEPTH = np.iinfo(np.int32).max
"""What scikit-learn draws the seeds of a forest's trees below, and how deep a tree may be that has no limit."""


class TreeMembers:
    """Extremely randomised trees: those of member k never see fold k, as in `Ensemble`.

    They take the features as they are, learn what is not smooth, and go on learning where a network of fixed size has
    learned what it can. A split is the best of one random threshold for every feature: where few features matter, a
    draw of some of them would often miss all of these. A probability is the mean of the leaves and of one leaf more
    that has the classes' shares.

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
        self._walked: Any = None

    def fit(self, X: Tensor, y: Tensor, folds: Tensor, seed: int) -> None:
        """Train on inputs `[n, feature]` and classes `[n]`."""
        counts = torch.bincount(y, minlength=self.n_classes) + 1 / self.n_classes
        self._shares = (counts / counts.sum()).float()
        rows, outcomes, parts = X.contiguous().numpy(), y.numpy(), []
        for k in range(self.members):
            seen = (folds != k).numpy()
            classes, numbers = np.unique(outcomes[seen], return_inverse=True)
            grown = grow(rows[seen], numbers, len(classes), (seed + k) % 2**32)
            parts += [_nodes(tree, classes, self.n_classes) for tree in grown]
        self._join(parts)

    def _join(self, parts: list[dict[str, Any]]) -> None:
        """All trees in one row of arrays."""
        starts = np.cumsum([0, *(len(one["feature"]) for one in parts)])
        for one, start in zip(parts, starts[:-1], strict=True):
            one["left"] = one["left"] + start
        joined = {name: np.concatenate([one[name] for one in parts]) for name in parts[0] if name != "depth"}
        self._roots = torch.from_numpy(starts[:-1].astype(np.int32))
        self._feature, self._left = (torch.from_numpy(joined[name].astype(np.int32)) for name in ("feature", "left"))
        self._threshold, self._leaf = torch.from_numpy(joined["threshold"]), torch.from_numpy(joined["leaf"])
        self._depth, self._walked = max(one["depth"] for one in parts), None

    def probabilities(self, X: Tensor) -> Tensor:
        """`[member, block, class]`."""
        rows = X.contiguous().numpy()
        node = self._reached(rows, range(len(self._roots))).reshape(self.members, -1, len(rows))
        return torch.from_numpy(self._averaged(node))

    def held_out(self, X: Tensor, folds: Tensor) -> Tensor:
        """For each row the probabilities of the member that did not train on its fold, `[n, class]`."""
        rows, trees = X.contiguous().numpy(), len(self._roots) // self.members
        unseen = np.empty((len(rows), self.n_classes), dtype=np.float32)
        for k in range(self.members):
            mine = (folds == k).numpy()
            node = self._reached(rows[mine], range(k * trees, (k + 1) * trees))
            unseen[mine] = self._averaged(node[None])[0]
        return torch.from_numpy(unseen)

    def _averaged(self, node: NDArray[np.int64]) -> NDArray[np.float32]:
        """The mean of leaves `[member, tree, block]` and of one more, `[member, block, class]`."""
        found = np.tile(self._shares.numpy(), (node.shape[0], node.shape[2], 1))
        for tree in range(node.shape[1]):
            found += self._leaf.numpy().take(node[:, tree], axis=0)
        found /= np.float32(node.shape[1] + 1)
        return found

    def _reached(self, rows: NDArray[np.float32], trees: range) -> NDArray[np.int64]:
        """The leaves that rows `[block, feature]` reach in some of the trees, `[tree, block]`.

        Few rows take one walk, each once for every tree; many are walked down tree by tree, which stays in the cache.
        Those that end side by side in the first tree go much the same ways in the others, so they go one after another.
        """
        joined = self._joined(rows.shape[1])
        if joined is None:
            return np.array([self.walk(rows, int(self._roots[tree])) for tree in trees])
        found = np.empty((len(trees), len(rows)), dtype=np.int64)
        if len(rows) <= FEW_ROWS:
            every = np.empty((len(trees), len(rows), rows.shape[1] + 1), dtype=np.float32)
            every[:, :, :-1], every[:, :, -1] = rows, np.array(trees)[:, None]
            found[:] = joined.apply(every.reshape(-1, every.shape[2])).reshape(found.shape)
        else:
            every = np.empty((len(rows), rows.shape[1] + 1), dtype=np.float32)
            every[:, :-1], every[:, -1] = rows, trees[0]
            found[0] = joined.apply(every)
            order = np.argsort(found[0])
            every = every[order]
            for place, tree in enumerate(trees[1:], start=1):
                every[:, -1] = tree
                found[place, order] = joined.apply(every)
        found -= len(self._roots) - 1
        return found

    def walk(self, rows: NDArray[np.float32], root: int) -> NDArray[np.int64]:
        """The leaves that rows reach in the tree with this root, `[block]`, level by level."""
        node, feature, left, threshold = (
            np.full(len(rows), root, dtype=np.int64),
            *(one.numpy() for one in (self._feature, self._left, self._threshold)),
        )
        for _ in range(self._depth):
            node = left[node] + (rows[np.arange(len(rows)), feature[node]] > threshold[node])
        return node

    def _joined(self, n_features: int) -> Any:
        """All trees as one of scikit-learn's, which walks down in compiled code; made of the arrays when first used.

        None where scikit-learn has changed inside, and cannot be given nodes.

        The nodes of one tree more come first: it leads to the tree whose number is in a column after the features. Only
        what a walk looks at is filled in: leaves have their classes here.
        """
        if self._walked is None or self._walked.n_features != n_features + 1:
            try:
                from sklearn.tree._tree import NODE_DTYPE, Tree
            except ImportError:
                return None
            first, left = len(self._roots) - 1, self._left.numpy()
            inner = self._threshold.numpy() < np.inf
            nodes = np.zeros(first + len(left), dtype=NODE_DTYPE)
            nodes["feature"][first:], nodes["threshold"][first:] = self._feature.numpy(), self._threshold.numpy()
            nodes["left_child"][first:] = np.where(inner, left + first, LEAF)
            nodes["right_child"][first:] = np.where(inner, left + first + 1, LEAF)
            for place, (middle, below, above) in enumerate(_ways(self._roots.tolist())):
                nodes[place]["feature"], nodes[place]["threshold"] = n_features, middle - 0.5
                nodes[place]["left_child"], nodes[place]["right_child"] = below, above
            self._walked = Tree(n_features + 1, np.ones(1, dtype=np.intp), 1)
            values = np.zeros((len(nodes), 1, 1))
            depth = self._depth + len(self._roots)
            self._walked.__setstate__({"max_depth": depth, "node_count": len(nodes), "nodes": nodes, "values": values})
        return self._walked

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
        self._shares, self._depth, self._walked = state["shares"], int(state["depth"]), None


def _ways(roots: list[int]) -> list[tuple[int, int, int]]:
    """The nodes, `len(roots) - 1` of them, of a tree that leads by a tree's number to its root, which comes after them.

    Of each the number from which on it is the right child, and both children.

    >>> _ways([0, 10, 20])
    [(1, 2, 1), (2, 12, 22)]
    """
    ways: list[tuple[int, int, int]] = []
    waiting = [(0, len(roots))]
    made = 1

    def child(first: int, last: int) -> int:
        nonlocal made
        if last - first == 1:
            return roots[first] + len(roots) - 1
        waiting.append((first, last))
        made += 1
        return made - 1

    while len(ways) < len(roots) - 1:
        first, last = waiting[len(ways)]
        middle = (first + last) // 2
        ways.append((middle, child(first, middle), child(middle, last)))
    return ways


def grow(X: NDArray[np.float32], y: NDArray[np.int64], n_classes: int, seed: int) -> list[Any]:
    """The trees of scikit-learn's extra-trees, by its compiled code alone, or whole where that has changed inside."""
    try:
        return grow_compiled(X, y, n_classes, seed)
    except (ImportError, TypeError):
        return grow_checked(X, y, seed)


def grow_checked(X: NDArray[np.float32], y: NDArray[np.int64], seed: int) -> list[Any]:
    """By scikit-learn's public classifier."""
    from sklearn.ensemble import ExtraTreesClassifier

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)  # many classes, few labels
        forest = ExtraTreesClassifier(TREES, max_features=None, random_state=seed).fit(X, y)
    return [one.tree_ for one in forest.estimators_]


def grow_compiled(X: NDArray[np.float32], y: NDArray[np.int64], n_classes: int, seed: int) -> list[Any]:
    """The trees of `grow_checked`, as scikit-learn keeps them inside its own.

    Grown by the same compiled code, without the checks of arguments and classes before every tree: with the few hundred
    labels of most streams those take ten times as long as the growing.
    """
    from sklearn.tree._criterion import Gini
    from sklearn.tree._splitter import RandomSplitter
    from sklearn.tree._tree import DepthFirstTreeBuilder, Tree

    forest, n_features = np.random.RandomState(seed), X.shape[1]
    sizes, targets, trees = np.array([n_classes], dtype=np.intp), y.astype(np.float64)[:, None], []
    for _ in range(TREES):
        drawn = np.random.RandomState(forest.randint(ANY_SEED))
        splitter = RandomSplitter(Gini(1, sizes), n_features, 1, 0.0, drawn, None)
        tree = Tree(n_features, sizes, 1)
        DepthFirstTreeBuilder(splitter, 2, 1, 0.0, ANY_DEPTH, 0.0).build(tree, X, targets)
        trees.append(tree)
    return trees


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
