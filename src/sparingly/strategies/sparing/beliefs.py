"""Calibrated probabilities from a small ensemble, each member blind to one fold of the labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from sparingly.learning.determinism import pad_block
from sparingly.learning.networks import Network, build
from sparingly.learning.scaling import ImageScaling, QuantileScaling, Unscaled
from sparingly.learning.tensor_cache import TensorCache
from sparingly.strategies.sparing.class_names import ClassNames
from sparingly.strategies.sparing.models.ensemble import Ensemble, MLPEnsemble, ModuleEnsemble, temperature
from sparingly.strategies.sparing.models.kernel import (
    MOST_COMPONENTS,
    KernelMembers,
    squared_distances,
    squared_lengths,
)
from sparingly.strategies.sparing.models.trees import TreeMembers
from sparingly.strategies.sparing.purchase import MANY

MOST_FOR_KERNEL = 1500
"""Labels beyond which the kernel would take longer than the networks, and is left out, ..."""
KERNEL_FOR_EACH = 20
"""... or this many for each class, if that is more, ..."""
MOST_KERNEL_WEIGHTS = 450_000
"""... as long as there are no more weights than this, labels times classes."""
ALL_COMPONENTS = 256
"""Directions that the kernel keeps of embeddings of length 1, which have no noisy ones."""
FIRST_FOR_KERNEL_CURVE = 40
"""Labels from which on the learning curve of the kernels is measured on embeddings, whose classes are often many."""
LEAST_KERNEL_SHARE = 0.1
"""Of the kernels, for their learning curve to be looked at."""
SHARES = torch.linspace(0, 1, 5)
"""Of the kernels or the trees, that are weighed against each other."""
NETWORK_PRIOR = 2.0
"""How much likelier, in nats, none of the kernels or the trees is taken to be than all of them before any label."""
STUDENT_PRIOR = 6.0
"""The same for what was learned from rows without a label: it repeats what experts err about."""
CONTRAST = 8.0
"""What a score between 0 and 1 is multiplied by to be a logit, before it is calibrated."""
FIRST_FOR_TREES = 100
"""Labels from which on there are trees."""
MOST_FEATURES_FOR_TREES = 256
"""Of wider observations, such as images, a single feature says too little for a tree, ..."""
MOST_DIRECTIONS_FOR_TREES = 64
"""... and of wider embeddings of length 1: on texts trees took two thirds of the time and got no share."""
LEAST_TREE_SHARE = 0.1
"""Trees with a smaller share are left out: they would take longer than all the rest."""
FIRST_FOR_CURVE = 500
"""Labels from which on the learning curve of the trees is measured: with fewer it is mostly noise."""
FIRST_FOR_SHARPNESS = 1000
"""Labels from which on it is seen, on other observations than embeddings, how sure models may be on the stream, ..."""
FIRST_FOR_MODULE_SHARPNESS = 100
"""... and how sure modules may be, such as a LeNet: their few members are far from sure where labels are bought."""
BINS = 10
"""Of how sure a model is, by which labels are compared with the stream."""
POWERS = np.geomspace(0.5, 3, 19)
"""Of probabilities, that are tried."""
NEAREST_OF = 500
"""Labels among which the nearest is looked for."""


Likely = Callable[[Tensor], float]


class Beliefs:
    """Members' probabilities: networks, and beside each a kernel regression and trees, blind to the same labels.

    All are calibrated by their predictions of unseen labels, and mixed by the shares that these make likely.

    Parameters
    ----------
    n_classes, shape
        How many classes there are, and the shape of an observation.
    network, width, members
        As in `Sparing`. An `Ensemble` of models of any kind stands alone, without kernels and trees.
    intervals
        Of the quantile encoding.
    kernel, trees, crossfit
        For ablations: without them there are fewer kinds of models, or every member sees every label.
    class_vectors
        What the classes are called, `[class, feature]`, encoded as observations are, where these are embeddings.
    beside_experts
        Whether answers of experts who may be wrong are joined with these probabilities: then how sure they may be on
        the stream is seen after the answers (`Panel`), except on embeddings.
    """

    def __init__(
        self,
        n_classes: int,
        shape: tuple[int, ...],
        *,
        network: Network | Ensemble = "mlp",
        width: int = 100,
        members: int | None = None,
        intervals: int = 8,
        kernel: bool = True,
        trees: bool = True,
        crossfit: bool = True,
        class_vectors: Tensor | None = None,
        beside_experts: bool = False,
        seed: int = 0,
    ) -> None:
        self.crossfit, self._beside_experts = crossfit, beside_experts
        self._names = None if class_vectors is None else ClassNames(class_vectors)
        self._scaling: QuantileScaling | ImageScaling | Unscaled
        self.ensemble: Ensemble
        if network == "mlp":
            self._scaling = QuantileScaling(intervals)
            self.ensemble = MLPEnsemble(n_classes, members=members or 6, width=width)
        elif isinstance(network, Ensemble):
            self._scaling, self.ensemble = Unscaled(), network
        else:
            self._scaling = ImageScaling()
            module = build(network, shape, n_classes, seed=seed, width=width, depth=2)
            self.ensemble = ModuleEnsemble(module, n_classes, members=members or 3)
        if self.ensemble.members < 2:
            raise ValueError(f"members is {members}: an ensemble has at least 2")
        beside = kernel and not isinstance(network, Ensemble)
        self._kernel = KernelMembers(n_classes, members=self.members) if beside else None
        narrow = network == "mlp" and math.prod(shape) <= MOST_FEATURES_FOR_TREES
        self._trees = TreeMembers(n_classes, members=self.members) if trees and narrow else None
        self._temperature, self._contrast, self._share, self._typical = 1.0, 1.0, 0.0, 1.0
        self._tree_temperature, self._tree_share = 1.0, 0.0
        self._sharpness = 1.0
        self._student = KernelMembers(n_classes, members=self.members) if beside else None
        """Kernels that have seen rows beside the labels of which only probabilities are known; see `teach`."""
        self._student_contrast, self._student_share = 1.0, 0.0
        self.halves: tuple[Tensor, Tensor] | None = None
        """After a training: what trees or kernels held of each label unseen with half of the labels, and with all."""
        self.learned: Tensor | None = None
        """After a training: what was held of each label unseen by labels alone, where classes' names are known."""
        self._labelled = torch.zeros(0)
        self._lengths: TensorCache[Tensor] = TensorCache()
        self._unheard: Tensor | None = None
        """Of each class that no label has named, how likely it is; None where all have been."""

    @property
    def members(self) -> int:
        return self.ensemble.members

    @property
    def plain(self) -> bool:
        """Whether the networks are the usual ones, which take any number of features."""
        return isinstance(self.ensemble, MLPEnsemble)

    @property
    def taught(self) -> bool:
        """Whether rows without a label have a part in the probabilities."""
        return self._student_share > 0

    def fit(self, sample: Tensor, X: Tensor, y: Tensor, folds: Tensor, generator: torch.Generator) -> Tensor:
        """Train anew on classes `[n]`, scaled by a sample of the stream; for each label what was held of it unseen."""
        rows = self._scaling.fit(sample)(X)
        flat = rows.flatten(1)
        self._labelled = flat[torch.linspace(0, len(flat) - 1, min(len(flat), NEAREST_OF)).round().long()]
        self._typical = _typical(self._scaling(sample).flatten(1), self._labelled)
        hidden, self.halves = folds if self.crossfit else torch.full_like(folds, -1), None
        self.learned = None
        self.ensemble.fit(rows, y, hidden, min(1000, 125 + len(X) // 5), generator)
        logits = self.ensemble.held_out(rows, folds)
        known = _heard_elsewhere(y, folds) if logits.shape[1] > MANY else torch.ones_like(y, dtype=torch.bool)
        labels = _Labels(y, folds, hidden, known)
        self._temperature, self._share, self._tree_share = temperature(*labels.heard(logits)), 0.0, 0.0
        held = (logits / self._temperature).softmax(1)
        if self._kernel is not None and self._kernel_affordable(len(X)):
            held = self._fit_kernel(self._kernel, held, self._scaling(sample).flatten(1), flat, labels)
        if self._trees is not None and len(X) >= FIRST_FOR_TREES:
            held = self._fit_trees(self._trees, held, X.flatten(1), labels, generator)
        self._unheard, self._student_share = _unheard(labels, held.shape[1]), 0.0
        self._sharpness = 1.0
        if not self.directions and (self._beside_experts or len(X) < self._first_for_sharpness):
            return self._with_unheard(held)
        if self._names is None or not self.directions:
            held = self._with_unheard(held)
        else:
            named = self._names.calibrate(flat, y)
            self.learned = self._with_unheard(held, named)
            self._names.share = share_of(self.learned, named, y, prior=0.0)
            held = mix(self.learned, named, self._names.share)
        self._sharpness = sharpness(held, y, self(sample, taught=False).mean(0))
        self.learned = None if self.learned is None else self._sharpened(self.learned)
        return self._sharpened(held)

    def _sharpened(self, held: Tensor) -> Tensor:
        """Probabilities `[..., class]` to the power that makes them right on the stream."""
        return held if self._sharpness == 1 else (held.clamp(min=1e-12).log() * self._sharpness).softmax(-1)

    @property
    def _first_for_sharpness(self) -> int:
        module = isinstance(self.ensemble, ModuleEnsemble)
        return FIRST_FOR_MODULE_SHARPNESS if module else FIRST_FOR_SHARPNESS

    @property
    def directions(self) -> bool:
        """Whether observations are embeddings of length 1."""
        return isinstance(self._scaling, QuantileScaling) and self._scaling.directions

    def teach(
        self, labels: Mapping[str, Tensor], held: Tensor, rows: Tensor, probabilities: Tensor, likely: Likely
    ) -> Tensor:
        """Learn from rows of which only probabilities are known, after `fit` on labels; what is held of these then.

        Parameters
        ----------
        labels, held
            Observations `x`, classes `y` and folds `fold`, and what was held of each label unseen.
        rows, probabilities
            The probabilities `[member, m, class]` are those of each member, so that no label comes back to one that is
            blind to it.
        likely
            How likely the labels are, in nats, by what is held of them unseen: the share of what was learned follows.
        """
        self._student_share = 0.0
        if self._student is None or self._kernel is None or not self._share:
            return held
        y, folds = labels["y"], labels["fold"]
        hidden = folds if self.crossfit else torch.full_like(folds, -1)
        judged = _Labels(y, folds, hidden, _heard_elsewhere(y, folds))
        self._student.fit_beside(self._kernel, y, hidden, (self._scaling(rows).flatten(1), probabilities))
        scores = self._student.held_out(self._scaling(labels["x"]).flatten(1), folds)
        self._student_contrast = CONTRAST / temperature(*judged.heard(CONTRAST * scores))
        taught = (self._student_contrast * scores).softmax(1)
        nats = torch.tensor([likely(mix(held, taught, float(share))) for share in SHARES])
        share = round(float(SHARES @ (nats - STUDENT_PRIOR * SHARES).softmax(0)), 2)
        self._student_share = share if share >= LEAST_KERNEL_SHARE else 0.0
        return mix(held, taught, self._student_share)

    def _kernel_affordable(self, n: int) -> bool:
        n_classes = self._kernel.n_classes if self._kernel is not None else 1
        return n <= max(MOST_FOR_KERNEL, min(KERNEL_FOR_EACH * n_classes, MOST_KERNEL_WEIGHTS // n_classes))

    def _fit_kernel(self, kernel: KernelMembers, held: Tensor, sample: Tensor, X: Tensor, labels: _Labels) -> Tensor:
        """Train the kernels, and mix what they hold of labels unseen with what the networks hold."""
        y, folds, hidden, _ = labels
        most = ALL_COMPONENTS if self.directions else MOST_COMPONENTS
        names = self._names.moved(sample.mean(0)) if self._names is not None and self.directions else None
        kernel.fit(sample, X, y, hidden, most=most, names=names)
        scores = kernel.held_out(X, folds)
        self._contrast = CONTRAST / temperature(*labels.heard(CONTRAST * scores))
        kernels = (self._contrast * scores).softmax(1)
        self._share = share_of(*labels.heard(held, kernels))
        if self.directions and len(X) >= FIRST_FOR_KERNEL_CURVE and self.crossfit and self._share >= LEAST_KERNEL_SHARE:
            fewer = kernel.held_out_by_half(y, folds)
            contrast = CONTRAST / temperature(*labels.heard(CONTRAST * fewer))
            self.halves = (contrast * fewer).softmax(1), kernels
        return mix(held, kernels, self._share)

    def _with_unheard(self, held: Tensor, named: Tensor | None = None) -> Tensor:
        """The same probabilities with some for classes that no label has named yet, by their names if they tell."""
        if self._unheard is None:
            return held
        if named is None:
            return held * (1 - self._unheard.sum()) + self._unheard
        among = named * (self._unheard > 0)
        return held * (1 - self._unheard.sum()) + among / among.sum(1, keepdim=True) * self._unheard.sum()

    def _fit_trees(
        self,
        trees: TreeMembers,
        held: Tensor,
        X: Tensor,
        labels: _Labels,
        generator: torch.Generator,
    ) -> Tensor:
        """Train the trees, and mix what they hold of labels unseen with what the other models hold."""
        y, folds, hidden, _ = labels
        seed = int(torch.randint(2**31, (1,), generator=generator))
        if self.directions and X.shape[1] > MOST_DIRECTIONS_FOR_TREES:
            return held
        trees.fit(X, y, hidden, seed)
        unseen = trees.held_out(X, folds)
        self._tree_temperature = temperature(*labels.heard(unseen.log()))
        calibrated = (unseen.log() / self._tree_temperature).softmax(1)
        share = share_of(*labels.heard(held, calibrated))
        self._tree_share = share if share >= LEAST_TREE_SHARE else 0.0
        if self._tree_share and len(X) >= FIRST_FOR_CURVE:
            half = torch.arange(len(X)) // self.members % 2 == 0
            fewer = TreeMembers(trees.n_classes, members=self.members)
            fewer.fit(X[half], y[half], hidden[half], seed)
            self.halves = fewer.held_out(X, folds), unseen
        return mix(held, calibrated, self._tree_share)

    @property
    def named(self) -> bool:
        """Whether it is known what the classes are called."""
        return self._names is not None

    def by_names(self, X: Tensor) -> Tensor:
        """Probabilities `[block, class]` by what classes are called alone, without any model.

        Rows are not centred, as there may be no sample of the stream yet.
        """
        assert self._names is not None
        return self._names(pad_block(X.flatten(1)))[: len(X)]

    def scaled(self, X: Tensor) -> Tensor:
        """A block as the models see it, padded: what the two below share."""
        return pad_block(self._scaling(X))

    def novelty(self, X: Tensor, rows: Tensor | None = None) -> Tensor:
        """Squared distances to the nearest label, over their mean on the stream; `rows` is `scaled(X)`, if known."""
        rows = (self.scaled(X) if rows is None else rows).flatten(1)
        lengths = self._lengths.of(self._labelled, squared_lengths)
        nearest = squared_distances(rows, self._labelled, lengths).numpy()[: X.shape[0]].min(1)
        return torch.from_numpy(nearest / np.float32(self._typical))

    def __call__(self, X: Tensor, rows: Tensor | None = None, *, taught: bool = True) -> Tensor:
        """The members' probabilities, `[member, block, class]`; by labels and names alone if not `taught`."""
        return self.with_learned(X, rows, taught=taught)[0]

    def with_learned(
        self, X: Tensor, rows: Tensor | None = None, *, taught: bool = True
    ) -> tuple[Tensor, Tensor | None]:
        """The same, and the same by labels alone, where classes' names are known; None where they are not."""
        rows, count = self.scaled(X) if rows is None else rows, X.shape[0]
        held, learned = self._by_labels(X, rows), None
        if self._names is not None and self.directions:
            named = self._names(rows.flatten(1))[:count]
            learned = self._with_unheard(held, named)
            held, learned = self._sharpened(mix(learned, named, self._names.share)), self._sharpened(learned)
        else:
            held = self._sharpened(self._with_unheard(held))
        if taught and self._student is not None and self._student_share:
            scores = self._student.scores(rows.flatten(1))[:, : len(X)]
            held = mix(held, (self._student_contrast * scores).softmax(2), self._student_share)
        return held, learned

    def _by_labels(self, X: Tensor, rows: Tensor) -> Tensor:
        """The mixture of models that labels have trained."""
        count = X.shape[0]
        logits = self.ensemble.logits(rows).numpy()[:, :count]
        held = torch.from_numpy(logits / np.float32(self._temperature)).softmax(2)
        if self._kernel is not None and self._share:
            scores = self._kernel.scores(rows.flatten(1)).numpy()[:, :count]
            kernels = torch.from_numpy(scores * np.float32(self._contrast)).softmax(2)
            held = mix(held, kernels, self._share)
        if self._trees is not None and self._tree_share:
            logs = self._trees.probabilities(X.flatten(1)).log()
            held = mix(held, (logs / self._tree_temperature).softmax(2), self._tree_share)
        return held

    def add_class(self, vector: Tensor | None = None) -> None:
        """Take on one more class, the last, with what it is called, if that is known."""
        self.ensemble.add_class()
        if self._names is not None:
            self._names.add_class(vector)
        if self._kernel is not None:
            self._kernel.add_class()
        if self._trees is not None:
            self._trees.add_class()
        if self._student is not None:
            self._student.add_class()
        if self._unheard is not None:
            self._unheard = nn.functional.pad(self._unheard, (0, 1))

    def state_dict(self) -> dict[str, Any]:
        return {
            "scaling": self._scaling.state_dict(),
            "ensemble": self.ensemble.state_dict(),
            "kernel": None if self._kernel is None or self._share == 0 else self._kernel.state_dict(),
            "trees": None if self._trees is None or self._tree_share == 0 else self._trees.state_dict(),
            "tree_calibration": [self._tree_temperature, self._tree_share],
            "labelled": self._labelled,
            "unheard": self._unheard,
            "sharpness": self._sharpness,
            **({} if self._names is None else {"names": self._names.state_dict()}),
            "student": None if self._student is None or not self.taught else self._student.state_dict(),
            "student_calibration": [self._student_contrast, self._student_share],
            "calibration": [self._temperature, self._contrast, self._share, self._typical],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._scaling.load_state_dict(state["scaling"])
        self.ensemble.load_state_dict(state["ensemble"])
        if self._kernel is not None and state["kernel"] is not None:
            self._kernel.load_state_dict(state["kernel"])
        # States of release 0.1 have no trees, and go on without them until the next training.
        if self._trees is not None and state.get("trees") is not None:
            self._trees.load_state_dict(state["trees"])
        self._tree_temperature, self._tree_share = (float(one) for one in state.get("tree_calibration", (1.0, 0.0)))
        if self._student is not None and state.get("student") is not None:
            self._student.load_state_dict(state["student"])
        self._student_contrast, self._student_share = (
            float(one) for one in state.get("student_calibration", (1.0, 0.0))
        )
        self._labelled = state["labelled"]
        # Nor do they know of classes that no label has named.
        self._unheard = state.get("unheard")
        self._sharpness = float(state.get("sharpness", 1.0))
        if self._names is not None and "names" in state:
            self._names.load_state_dict(state["names"])
        self._temperature, self._contrast, self._share, self._typical = (float(value) for value in state["calibration"])


class _Labels(NamedTuple):
    """Classes and folds `[n]`, the folds that members are blind to, and which labels' classes other folds know."""

    y: Tensor
    folds: Tensor
    hidden: Tensor
    known: Tensor

    def heard(self, *held: Tensor) -> tuple[Any, ...]:
        """What is held of the labels by which models are judged, and these labels."""
        known = self.known if self.known.any() else torch.ones_like(self.known)
        return (*(one[known] for one in held), self.y[known])


def _heard_elsewhere(y: Tensor, folds: Tensor) -> Tensor:
    """Whether another fold has a label of the same class.

    No model can be right about a class it never met, so such labels say nothing about how sure it may be of others.
    """
    places = torch.zeros(int(y.max()) + 1, int(folds.max()) + 1)
    places[y, folds] = 1.0
    return places.sum(1)[y] > 1


def _unheard(labels: _Labels, n_classes: int) -> Tensor | None:
    """How likely each class without a label is: together as likely as classes were new among the labels.

    The estimate of Good and Turing, by folds instead of labels one by one.
    """
    missing = torch.bincount(labels.y, minlength=n_classes) == 0
    new = 1 - float(labels.known.float().mean())
    return None if not missing.any() or new == 0 else missing.float() * (new / float(missing.sum()))


def _typical(sample: Tensor, labelled: Tensor) -> float:
    """The mean squared distance on the stream to the nearest label that is not the observation itself."""
    least = 1e-3 * float(labelled.square().sum(1).mean()) + 1e-12
    distances = squared_distances(sample, labelled)
    nearest = torch.where(distances > least, distances, torch.inf).amin(1)
    others = nearest[nearest.isfinite()]
    return float(others.mean()) if len(others) else least


def share_of(held: Tensor, others: Tensor, y: Tensor, prior: float = NETWORK_PRIOR) -> float:
    """The mean share of other models beside those that are there, given the labels they did not see."""
    mixed = (mix(held, others, float(share)).clamp(min=1e-12).log() for share in SHARES)
    likely = torch.stack([-nn.functional.nll_loss(one, y, reduction="sum") for one in mixed])
    return round(float(SHARES @ (likely - prior * SHARES).softmax(0)), 2)


def sharpness(held: Tensor, y: Tensor, stream: Tensor) -> float:
    """The power of probabilities `[n, class]` under which labels are likeliest, were they as sure as the stream is.

    Labels are bought where a model is unsure, so by them alone it would be held less sure than it may be elsewhere.
    Each counts by how common observations are, on a sample of the stream, of which the model is as sure.
    """
    sure, labels_sure = stream.amax(1), held.amax(1)
    edges = sure.quantile(torch.linspace(0, 1, BINS + 1))[1:-1]
    places = torch.bucketize(labels_sure, edges)
    common = torch.bincount(torch.bucketize(sure, edges), minlength=BINS) / len(sure)
    bought = (torch.bincount(places, minlength=BINS) + 1) / (len(y) + BINS)
    weights = (common / bought)[places]
    weights = weights / weights.sum()
    logs = held.clamp(min=1e-12).log()
    losses = [float(weights @ nn.functional.cross_entropy(logs * one, y, reduction="none")) for one in POWERS]
    return float(POWERS[int(np.argmin(losses + 0.02 * np.log(POWERS) ** 2))])


def mix(held: Tensor, others: Tensor, share: float) -> Tensor:
    one = held.numpy()
    return torch.from_numpy(one + np.float32(share) * (others.numpy() - one))
