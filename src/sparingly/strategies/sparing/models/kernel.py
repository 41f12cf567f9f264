"""Kernel ridge regression on the classes, in copies that are each blind to one fold of the labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from sparingly.learning.determinism import row_independent_product
from sparingly.learning.tensor_cache import TensorCache

POWERS = (0.0, 0.25)
"""Of the components' shares of the variance, that they may be weighted by."""
UNHEARD_OF = -20.0
"""The score of a class that no label has named yet."""
REACHES = (0.3, 1.0, 3.0)
"""Rates at which the kernel falls with the squared distance over its median."""
RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
TRIED_ON = 200
"""The reach and the ridge are chosen on at most this many labels, the newest ones, ..."""
TRIED_FOR_EACH = 4
"""... or on this many for each class, if that is more."""
MOST_COMPONENTS = 100
"""Directions that are kept."""
LEAST_SHARE = 1e-6
"""Share of the variance below which a direction is one that does not vary."""
SOFT_RIDGE = 3.0
"""How many times the ridge of labels that of rows is of which only probabilities are known, ..."""
LEAST_SOFT_RIDGE = 0.1
"""... and the least ridge of labels beside such rows."""
SUBSPACE_ROUNDS = 2
"""Of subspace iteration; the leading directions are exact to a few digits after two."""


class Components:
    """Principal components of a sample; an observation becomes a unit vector of them.

    No label is needed for that, so a sample of the stream says which differences are common and which are noise.
    Components may be weighted by a power of their share of the variance: with 0 they count as they are, the larger
    the power the more the leading ones count. `torch.pca_lowrank` draws its first basis from the global generator;
    here it is made of the first rows, so that the same sample always gives the same components.

    Examples
    --------
    >>> sample = torch.randn(200, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([5.0, 1.0, 0.0])
    >>> components = Components().fit(sample)
    >>> [round(share, 2) for share in components.share.tolist()]
    [0.96, 0.04]
    >>> components(torch.tensor([[1.0, 1.0, 9.0]])).abs().mul(10).round().tolist()
    [[7.0, 7.0]]
    """

    def __init__(self, most: int = MOST_COMPONENTS) -> None:
        self.most = most
        self.mean = torch.zeros(0)
        self.directions = torch.zeros(0)
        """`[input, component]`, from the most to the least of the variance."""
        self.share = torch.zeros(0)
        """Of the variance kept, for each component."""
        self._weights: TensorCache[dict[float, Tensor]] = TensorCache()

    def fit(self, sample: Tensor) -> Components:
        """Take the components of a sample `[rows, input]`."""
        self.mean = sample.mean(0)
        sample = sample - self.mean
        basis = sample[: self.most].T
        for _ in range(SUBSPACE_ROUNDS):
            basis = torch.linalg.qr(sample.T @ (sample @ basis)).Q
        projected = sample @ basis
        variance, turn = torch.linalg.eigh(projected.T @ projected)
        share = variance.flip(0) / variance.sum().clamp(min=1e-30)
        kept = share > LEAST_SHARE
        self.directions, self.share = (basis @ turn).flip(1)[:, kept], share[kept]
        return self

    def __call__(self, X: Tensor, power: float = 0.0) -> Tensor:
        """Unit vectors `[block, component]`; the power is one of `POWERS`."""
        turned = row_independent_product(torch.from_numpy(X.numpy() - self.mean.numpy()), self.directions)
        if power:
            weights = self._weights.of(self.share, lambda share: {one: share**one for one in POWERS})[power]
            turned = torch.from_numpy(turned.numpy() * weights.numpy())
        length = torch.linalg.vector_norm(turned, dim=1, keepdim=True).numpy()
        return torch.from_numpy(turned.numpy() / np.maximum(length, np.float32(1e-6)))

    def state_dict(self) -> dict[str, Any]:
        return {"mean": self.mean, "directions": self.directions, "share": self.share}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.mean, self.directions, self.share = state["mean"], state["directions"], state["share"]


class KernelMembers:
    """Kernel ridge regressions on one-hot classes: member k never sees fold k, as in `Ensemble`.

    The kernel is exp(-reach |x - z|^2 / median) on the stream's `Components`, as unit vectors. Their weighting, the
    reach and the ridge are those with the least squared error on the labels, each left out in turn, in closed form.

    >>> generator = torch.Generator().manual_seed(0)
    >>> X = torch.randn(120, 3, generator=generator)
    >>> y, folds = (X[:, 0] > 0).long(), torch.arange(120) % 3
    >>> kernel = KernelMembers(2, members=3)
    >>> kernel.fit(X, X, y, folds)
    >>> bool((kernel.held_out(X, folds).argmax(1) == y).float().mean() > 0.9)
    True
    """

    def __init__(self, n_classes: int, *, members: int) -> None:
        self.n_classes = n_classes
        self.members = members
        self._components = Components()
        self._power = 0.0
        self._rows = torch.zeros(0)
        self._weights = torch.zeros(0)
        self._mean = torch.zeros(0)
        self._rate = self._ridge = 1.0
        self._named = 0
        """How many rows, after those of the labels, are classes' names."""
        self._lengths: TensorCache[Tensor] = TensorCache()

    def fit(
        self,
        sample: Tensor,
        X: Tensor,
        y: Tensor,
        folds: Tensor,
        *,
        most: int = MOST_COMPONENTS,
        names: Tensor | None = None,
    ) -> None:
        """Train on inputs `[n, feature]` and classes `[n]`; the sample of the stream has no labels.

        What the classes are called, `[class, feature]`, is one more label each that every member sees, if labels that
        are left out are predicted better with them.
        """
        self._components = Components(most).fit(sample)
        newest = max(TRIED_ON, TRIED_FOR_EACH * self.n_classes)
        targets = self._centred(y, 0)
        tried = [_tried(power, self._components(X, power), targets, len(X), newest) for power in POWERS]
        best = min(tried, key=lambda one: one.error)
        if names is not None:
            rows = self._components(torch.cat([X, names]), best.power)
            named = _tried(best.power, rows, self._centred(y, len(names)), len(X), newest, (best.reach,))
            best = min(best, named, key=lambda one: one.error)
        self._power, self._rows, self._rate, self._ridge = best.power, best.rows, best.rate, best.ridge
        self._named = len(best.rows) - len(X)
        classes = self._with_names(y, self._named)
        self._mean = nn.functional.one_hot(classes, self.n_classes).double().mean(0).float()
        targets = self._centred(y, self._named)
        near = torch.exp(-best.rate * best.squared)
        self._weights = _blind_weights(near, best.ridge, targets, self._seen(folds), self.members).flatten(1)

    def _centred(self, y: Tensor, named: int) -> Tensor:
        """One-hot classes of labels and names, less their mean."""
        targets = nn.functional.one_hot(self._with_names(y, named), self.n_classes).double()
        return targets - targets.mean(0)

    def _with_names(self, y: Tensor, named: int) -> Tensor:
        """The classes of labels and of names after them."""
        return torch.cat([y, torch.arange(named)]) if named else y

    def _seen(self, folds: Tensor) -> Tensor:
        """The folds of labels and of names after them, which every member sees."""
        return torch.cat([folds, torch.full((self._named,), -1)]) if self._named else folds

    def fit_beside(self, gold: KernelMembers, y: Tensor, folds: Tensor, soft: tuple[Tensor, Tensor]) -> None:
        """Train like others on the same labels, and on rows `[m, feature]` with probabilities `[member, m, class]`.

        These rows are seen by every member, each with probabilities of its own, and count less than labels do.
        """
        rows, probabilities = soft
        self._components, self._power, self._rate = gold._components, gold._power, gold._rate
        y, folds = gold._with_names(y, gold._named), gold._seen(folds)
        self._rows = torch.cat([gold._rows, self._components(rows, self._power)])
        labels = nn.functional.one_hot(y, self.n_classes).float().expand(self.members, -1, -1)
        targets = torch.cat([labels, probabilities], 1)
        self._mean = targets.mean((0, 1))
        ridge = torch.full((len(self._rows),), max(gold._ridge, LEAST_SOFT_RIDGE))
        ridge[len(y) :] *= SOFT_RIDGE
        near = torch.exp(-self._rate * squared_distances(self._rows, self._rows))
        every = torch.cat([folds, torch.full((len(rows),), -1)])
        self._weights = _blind_weights(near, ridge, targets - self._mean, every, self.members).flatten(1)

    def held_out_by_half(self, y: Tensor, folds: Tensor) -> Tensor:
        """What the labels just trained on would have scored, held out, with every second label alone, `[n, class]`."""
        half = (torch.arange(len(y)) // self.members % 2 == 0).nonzero().flatten()
        count, y = len(y), self._with_names(y, self._named)
        half = torch.cat([half, torch.arange(count, len(y))]) if self._named else half
        targets = nn.functional.one_hot(y[half], self.n_classes).double()
        mean = targets.mean(0)
        near = torch.exp(-self._rate * squared_distances(self._rows, self._rows[half]).double())
        weights = _blind_weights(near[half], self._ridge, targets - mean, self._seen(folds)[half], self.members)
        scores = torch.empty(count, self.n_classes)
        near = near[:count]
        for k in range(self.members):
            scores[folds == k] = near[folds == k].float() @ weights[:, k] + mean.float()
        return scores

    def scores(self, X: Tensor) -> Tensor:
        """`[member, block, class]`: near 1 for the class, near 0 for the others."""
        lengths = self._lengths.of(self._rows, squared_lengths)
        squared = squared_distances(self._components(X, self._power), self._rows, lengths)
        exponent = squared.numpy()
        exponent *= -self._rate
        found = row_independent_product(squared.exp_(), self._weights).numpy()
        return torch.from_numpy(found.reshape(len(found), self.members, -1).swapaxes(0, 1) + self._mean.numpy())

    def held_out(self, X: Tensor, folds: Tensor) -> Tensor:
        """For each row the scores of the member that did not train on its fold, `[n, class]`."""
        return self.scores(X)[folds, torch.arange(len(X))]

    def add_class(self) -> None:
        """Take on one more class, the last; it is held very unlikely until the next `fit`."""
        if len(self._mean):
            weights = self._weights.view(len(self._weights), self.members, self.n_classes)
            self._weights = nn.functional.pad(weights, (0, 1)).flatten(1)
            self._mean = nn.functional.pad(self._mean, (0, 1), value=UNHEARD_OF)
        self.n_classes += 1

    def state_dict(self) -> dict[str, Any]:
        parts = {"rows": self._rows, "weights": self._weights, "mean": self._mean, "rate": self._rate}
        return {"components": self._components.state_dict(), "power": self._power, **parts}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._rows, self._weights, self._mean = state["rows"], state["weights"], state["mean"]
        self._rate, self._power = float(state["rate"]), float(state["power"])
        self._components.load_state_dict(state["components"])


def squared_lengths(Z: Tensor) -> Tensor:
    """Of each row."""
    return Z.square().sum(1)


def squared_distances(X: Tensor, Z: Tensor, lengths: Tensor | None = None) -> Tensor:
    """Squared distances `[X, Z]`, by a product, so that a row does not depend on the rows beside it.

    `lengths` are the squared lengths of Z, if they are known.
    """
    lengths = squared_lengths(Z) if lengths is None else lengths
    squared = torch.addmm(lengths, X, Z.T, alpha=-2)
    values = squared.numpy()
    values += squared_lengths(X).numpy()[:, None]
    np.maximum(values, 0, out=values)
    return squared


class _Tried(NamedTuple):
    """A kernel that has been tried: what it is, and its error on labels left out one by one."""

    error: float
    power: float
    rows: Tensor
    squared: Tensor
    rate: float
    ridge: float
    reach: float


def _blind_weights(near: Tensor, ridge: float | Tensor, targets: Tensor, folds: Tensor, members: int) -> Tensor:
    """The weights of regressions that are each blind to one fold, `[n, member, class]`, 0 where blind.

    Targets are those of all, `[n, class]`, or of each member, `[member, n, class]`. One inverse is enough for all:
    taking labels out of a regression is a system of as many unknowns as are taken out.
    """
    ridges = torch.as_tensor(ridge, dtype=near.dtype).expand(len(near))
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(near + torch.diag(ridges)))
    wholes = (inverse @ targets).expand(members, -1, -1)
    weights = torch.empty(len(near), members, targets.shape[-1])
    for k, whole in enumerate(wholes):
        blind = (folds == k).nonzero().flatten()
        without = torch.linalg.solve(inverse[blind][:, blind], whole[blind])
        weights[:, k] = (whole - inverse[:, blind] @ without).float()
        weights[blind, k] = 0.0
    return weights


def _tried(
    power: float, rows: Tensor, targets: Tensor, labels: int, newest: int, reaches: Sequence[float] = REACHES
) -> _Tried:
    """The best reach and ridge with one power, on the newest of the labels and on all names after them."""
    squared = squared_distances(rows, rows).double()
    median = max(float(squared.median()), 1e-12)
    first = max(0, labels - newest)
    error, reach, ridge = _best(squared[first:, first:] / median, targets[first:], labels - first, reaches)
    return _Tried(error, power, rows, squared, reach / median, ridge, reach)


def _best(squared: Tensor, targets: Tensor, labels: int, reaches: Sequence[float]) -> tuple[float, float, float]:
    """The least error on labels left out one by one, and the reach and the ridge that have it."""
    errors = {}
    for reach in reaches:
        values, vectors = torch.linalg.eigh(torch.exp(-reach * squared))
        turned = vectors.T @ targets
        for ridge in RIDGES:
            inverse = 1 / (values.clamp(min=0) + ridge)
            left_out = (vectors @ (inverse[:, None] * turned)) / (vectors.square() @ inverse)[:, None]
            errors[reach, ridge] = float(left_out[:labels].square().mean())
    return min((error, *pair) for pair, error in errors.items())
