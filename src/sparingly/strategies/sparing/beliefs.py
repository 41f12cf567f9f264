"""Calibrated probabilities from a small ensemble, each member blind to one fold of the labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from sparingly.learning.networks import Network, build
from sparingly.learning.row_independence import pad_block
from sparingly.learning.scaling import ImageScaling, QuantileScaling, Unscaled
from sparingly.strategies.sparing.ensemble import Ensemble, MLPEnsemble, ModuleEnsemble, temperature
from sparingly.strategies.sparing.kernel import KernelMembers, squared_distances

MOST_FOR_KERNEL = 1500
"""Labels beyond which the kernel would take longer than the networks, and is left out."""
SHARES = torch.linspace(0, 1, 5)
"""Of the kernels, that are weighed against each other."""
NETWORK_PRIOR = 2.0
"""How much likelier, in nats, all of the networks are taken to be than all of the kernels before any label."""
CONTRAST = 8.0
"""What a score between 0 and 1 is multiplied by to be a logit, before it is calibrated."""


class Beliefs:
    """Members' probabilities: networks, and beside each one kernel regression that is blind to the same labels.

    Both are calibrated by their predictions of unseen labels, and mixed by the share that these make likely.

    Parameters
    ----------
    n_classes, shape
        How many classes there are, and the shape of an observation.
    network, width, members
        As in `Sparing`. An `Ensemble` of models of any kind stands alone, without kernels.
    intervals
        Of the quantile encoding.
    kernel, crossfit
        For ablations: without them there are only networks, or every member sees every label.
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
        crossfit: bool = True,
        seed: int = 0,
    ) -> None:
        self.crossfit = crossfit
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
        self._temperature, self._contrast, self._share, self._typical = 1.0, 1.0, 0.0, 1.0
        self._labelled = torch.zeros(0)

    @property
    def members(self) -> int:
        return self.ensemble.members

    def fit(self, sample: Tensor, X: Tensor, y: Tensor, folds: Tensor, generator: torch.Generator) -> Tensor:
        """Train anew on classes `[n]`, scaled by a sample of the stream; for each label what was held of it unseen."""
        rows = self._scaling.fit(sample)(X)
        self._labelled = rows.flatten(1)
        self._typical = _typical(self._scaling(sample).flatten(1), self._labelled)
        hidden = folds if self.crossfit else torch.full_like(folds, -1)
        self.ensemble.fit(rows, y, hidden, min(1000, 125 + len(X) // 5), generator)
        logits = self.ensemble.held_out(rows, folds)
        self._temperature, self._share = temperature(logits, y), 0.0
        networks = (logits / self._temperature).softmax(1)
        if self._kernel is None or len(X) > MOST_FOR_KERNEL:
            return networks
        self._kernel.fit(self._scaling(sample).flatten(1), self._labelled, y, hidden)
        scores = self._kernel.held_out(self._labelled, folds)
        self._contrast = CONTRAST / temperature(CONTRAST * scores, y)
        kernels = (self._contrast * scores).softmax(1)
        self._share = _share(networks, kernels, y)
        return _mix(networks, kernels, self._share)

    def novelty(self, X: Tensor) -> Tensor:
        """Squared distances to the nearest label, over their mean on the stream."""
        rows = pad_block(self._scaling(X)).flatten(1)
        return squared_distances(rows, self._labelled)[: len(X)].amin(1) / self._typical

    def __call__(self, X: Tensor) -> Tensor:
        """The members' probabilities, `[member, block, class]`."""
        rows = pad_block(self._scaling(X))
        networks = (self.ensemble.logits(rows)[:, : len(X)] / self._temperature).softmax(2)
        if self._kernel is None or self._share == 0:
            return networks
        scores = self._kernel.scores(rows.flatten(1))[:, : len(X)]
        return _mix(networks, (self._contrast * scores).softmax(2), self._share)

    def add_class(self) -> None:
        """Take on one more class, the last."""
        self.ensemble.add_class()
        if self._kernel is not None:
            self._kernel.add_class()

    def state_dict(self) -> dict[str, Any]:
        return {
            "scaling": self._scaling.state_dict(),
            "ensemble": self.ensemble.state_dict(),
            "kernel": None if self._kernel is None or self._share == 0 else self._kernel.state_dict(),
            "labelled": self._labelled,
            "calibration": [self._temperature, self._contrast, self._share, self._typical],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._scaling.load_state_dict(state["scaling"])
        self.ensemble.load_state_dict(state["ensemble"])
        if self._kernel is not None and state["kernel"] is not None:
            self._kernel.load_state_dict(state["kernel"])
        self._labelled = state["labelled"]
        self._temperature, self._contrast, self._share, self._typical = (float(value) for value in state["calibration"])


def _typical(sample: Tensor, labelled: Tensor) -> float:
    """The mean squared distance on the stream to the nearest label that is not the observation itself."""
    least = 1e-3 * float(labelled.square().sum(1).mean()) + 1e-12
    distances = squared_distances(sample, labelled)
    nearest = torch.where(distances > least, distances, torch.inf).amin(1)
    others = nearest[nearest.isfinite()]
    return float(others.mean()) if len(others) else least


def _share(networks: Tensor, kernels: Tensor, y: Tensor) -> float:
    """The mean share of the kernels, given the labels they did not see."""
    mixed = (_mix(networks, kernels, float(share)).clamp(min=1e-12).log() for share in SHARES)
    likely = torch.stack([-nn.functional.nll_loss(one, y, reduction="sum") for one in mixed])
    return round(float(SHARES @ (likely - NETWORK_PRIOR * SHARES).softmax(0)), 2)


def _mix(networks: Tensor, kernels: Tensor, share: float) -> Tensor:
    return networks + share * (kernels - networks)
