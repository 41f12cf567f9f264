"""Feature scaling that learns from the stream: quantile encoding for tables, one shift and scale for images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparingly.learning.tensor_cache import TensorCache

FARTHEST = 1.0
"""How far beyond the smallest and the largest value seen an encoded feature may go, in widths of the end interval."""

LENGTH_TOLERANCE = 1e-3
"""How far the squared length of a row may be from 1 in embeddings of length 1."""


class QuantileScaling:
    """Piecewise-linear encoding by the quantiles of a sample.

    A column with distinct quantiles q_0 < ... < q_B becomes B features; the b-th rises from 0 to 1 between q_(b-1)
    and q_b. A linear function of them is any piecewise-linear function of the column, whatever units it came in.
    Constant columns are dropped. Wide observations get fewer intervals, at the end one: the range as 0 to 1.
    Where every row has the length 1, as embeddings of texts have, all columns share one unit: they are centred, and
    divided by one deviation.

    Parameters
    ----------
    intervals
        At most this many a column.
    width
        Halve the intervals while the encoding would be wider than this.

    Examples
    --------
    >>> sample = torch.tensor([[0.0, 7.0], [1.0, 7.0], [10.0, 7.0], [100.0, 7.0], [1000.0, 7.0]])
    >>> scaling = QuantileScaling(intervals=2).fit(sample)
    >>> (scaling(torch.tensor([[5.0, 7.0], [505.0, 7.0], [1e9, 0.0]])) + scaling.mean).tolist()
    [[0.5, 0.0], [1.0, 0.5], [1.0, 2.0]]
    >>> QuantileScaling().fit(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))(torch.tensor([[0.6, 0.8]]))
    tensor([[0.2000, 0.6000]])

    References
    ----------
    Gorishniy, Rubachev, Babenko (2022). On embeddings for numerical features in tabular deep learning. NeurIPS.
    """

    _PARTS = ("column", "low", "rate", "floor", "ceiling", "mean")

    def __init__(self, intervals: int = 8, width: int = 512) -> None:
        self.intervals = intervals
        self.width = width
        self.directions = False
        """Whether every row of the sample had the length 1."""
        self._arrays: TensorCache[tuple[NDArray[Any], ...]] = TensorCache()

    @property
    def n_features(self) -> int:
        """The width of the encoding."""
        return len(self.column)

    def fit(self, sample: Tensor) -> QuantileScaling:
        """Take the quantiles of a sample `[rows, *shape]`."""
        self.directions = _of_one_length(sample.flatten(1))
        if self.directions:
            return self._centre(sample.flatten(1).double())
        ordered = sample.flatten(1).T.contiguous().sort(1).values.double()
        edges = self._edges(ordered)
        column, place = (edges[:, 1:] > edges[:, :-1]).nonzero(as_tuple=True)
        if not len(column):
            column, place, edges = torch.tensor([0]), torch.tensor([0]), torch.stack([edges[:, 0], edges[:, 0] + 1], 1)
        self.column, self.low = column, edges[column, place]
        self.rate = 1 / (edges[column, place + 1] - self.low)
        beside = torch.nn.functional.pad(column, (1, 1), value=-1)
        self.floor = torch.where(column != beside[:-2], -FARTHEST, 0.0)
        self.ceiling = torch.where(column != beside[2:], 1 + FARTHEST, 1.0)
        self.mean = torch.zeros(len(column))
        self.mean = self(sample).mean(0)
        return self

    def _centre(self, sample: Tensor) -> QuantileScaling:
        """All columns as one unbounded interval, with one rate."""
        width = sample.shape[1]
        self.column, self.low, self.mean = torch.arange(width), sample.mean(0), torch.zeros(width)
        self.rate = torch.full((width,), 1.0, dtype=torch.float64) / (sample - self.low).square().mean().sqrt()
        self.floor, self.ceiling = torch.full((width,), -torch.inf), torch.full((width,), torch.inf)
        return self

    def _edges(self, ordered: Tensor) -> Tensor:
        """The quantiles that the widest affordable encoding uses, `[column, intervals + 1]`, repeated ones included."""
        intervals = self.intervals
        while True:
            places = torch.linspace(0, ordered.shape[1] - 1, intervals + 1, dtype=torch.float64).round().long()
            edges = ordered[:, places]
            if intervals == 1 or int((edges[:, 1:] > edges[:, :-1]).sum()) <= self.width:
                return edges
            intervals //= 2

    def __call__(self, X: Tensor) -> Tensor:
        """Encode a block `[block, *shape]` as `[block, n_features]`, centred on the sample."""
        # numpy's calls cost less than torch's, and an observation is mostly seen alone.
        column, low, rate, floor, ceiling, mean = self._arrays.of(self.mean, lambda _: self._as_arrays())
        flat = X.flatten(1).numpy().take(column, axis=1).astype(np.float64)
        flat -= low
        flat *= rate
        risen = np.maximum(flat.astype(np.float32), floor)
        np.minimum(risen, ceiling, out=risen)
        risen -= mean
        return torch.from_numpy(risen)

    def _as_arrays(self) -> tuple[NDArray[Any], ...]:
        return tuple(getattr(self, name).numpy() for name in self._PARTS)

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._PARTS}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name in self._PARTS:
            setattr(self, name, state[name])
        self.directions = bool(self.floor.isinf().all())


def _of_one_length(rows: Tensor) -> bool:
    """Whether rows `[n, column]` all have the length 1, and are not all the same."""
    far = (rows.square().sum(1) - 1).abs().max()
    return rows.shape[1] > 1 and bool(far < LENGTH_TOLERANCE) and bool((rows != rows[0]).any())


class Unscaled:
    """For models that take features as they are.

    >>> Unscaled().fit(torch.tensor([[3.0]]))(torch.tensor([[7.0]]))
    tensor([[7.]])
    """

    def fit(self, sample: Tensor) -> Unscaled:
        return self

    def __call__(self, X: Tensor) -> Tensor:
        return X

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """There is nothing to take over."""


class ImageScaling:
    """One shift and one scale for all entries, so that the shape survives.

    >>> ImageScaling().fit(torch.tensor([[[0.0, 255.0]]]))(torch.tensor([[[127.5, 255.0]]]))
    tensor([[[0., 1.]]])
    """

    def fit(self, sample: Tensor) -> ImageScaling:
        """Take the mean and the deviation of all entries of a sample `[rows, *shape]`."""
        wide = sample.double()
        self.shift = float(wide.mean())
        self.scale = float(wide.std(correction=0)) or 1.0
        return self

    def __call__(self, X: Tensor) -> Tensor:
        return (X - self.shift) / self.scale

    def state_dict(self) -> dict[str, Any]:
        return {"shift": self.shift, "scale": self.scale}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.shift, self.scale = float(state["shift"]), float(state["scale"])
