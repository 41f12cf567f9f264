"""Feature scaling that learns from the stream: quantile encoding for tables, one shift and scale for images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparingly.learning.derived import Derived

FARTHEST = 1.0
"""How far beyond the smallest and the largest value seen an encoded feature may go, in widths of the end interval."""

MOST_DEFERRED = 4000
"""Rows after which a reservoir sees what was deferred."""
LENGTH_TOLERANCE = 1e-3
"""How far the squared length of a row may be from 1 in embeddings of length 1."""


class Reservoir:
    """A uniform sample of the stream so far, of bounded size, with the caller's generator.

    >>> reservoir, rng = Reservoir(4), np.random.default_rng(0)
    >>> for k in range(100):
    ...     reservoir.add(torch.tensor([float(k)]), rng)
    >>> reservoir.rows.shape
    torch.Size([4, 1])
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._seen = 0
        self._rows: Tensor | None = None
        self._deferred: list[tuple[Tensor, np.random.Generator]] = []
        self._deferred_rows = 0

    @property
    def seen(self) -> int:
        """How many observations it has seen."""
        return self._seen + self._deferred_rows

    @property
    def rows(self) -> Tensor:
        """The sample, `[at most size, *shape]`."""
        self.settle()
        if self._rows is None:
            raise ValueError("nothing has been seen yet")
        return self._rows[: min(self._seen, self.size)]

    def add(self, x: Tensor, rng: np.random.Generator) -> None:
        """See one more observation."""
        self.settle()
        if self._rows is None:
            self._rows = torch.empty(self.size, *x.shape)
        place = self._seen if self._seen < self.size else int(rng.integers(self._seen + 1))
        if place < self.size:
            self._rows[place] = x
        self._seen += 1

    def extend(self, X: Tensor, rng: np.random.Generator) -> None:
        """See a block of observations: the same, with the same random numbers, as one after the other.

        >>> one, all_, X = Reservoir(4), Reservoir(4), torch.arange(50.0)[:, None]
        >>> first, second = np.random.default_rng(0), np.random.default_rng(0)
        >>> for x in X:
        ...     one.add(x, first)
        >>> all_.extend(X, second)
        >>> one.rows.equal(all_.rows), first.random() == second.random()
        (True, True)
        """
        self.settle()
        if self._rows is None and len(X):
            self._rows = torch.empty(self.size, *X.shape[1:])
        room = min(len(X), max(0, self.size - self._seen))
        rows = self._rows
        if rows is None:
            return
        rows[self._seen : self._seen + room] = X[:room]
        places = rng.integers(np.arange(self._seen + room, self._seen + len(X)) + 1) if room < len(X) else np.zeros(0)
        for row in np.flatnonzero(places < self.size).tolist():
            rows[int(places[row])] = X[room + row]
        self._seen += len(X)

    def defer(self, X: Tensor, rng: np.random.Generator) -> None:
        """The same as `extend`, later: for a few rows at a time drawing costs more than all the rest.

        Whoever draws from the generator for something else must `settle` before, so that the numbers are the same.

        >>> now, later, X = Reservoir(4), Reservoir(4), torch.arange(50.0)[:, None]
        >>> first, second = np.random.default_rng(0), np.random.default_rng(0)
        >>> for few in X.split(3):
        ...     now.extend(few, first)
        ...     later.defer(few, second)
        >>> later.seen, now.rows.equal(later.rows), first.random() == second.random()
        (50, True, True)
        """
        self._deferred.append((X.clone(), rng))
        self._deferred_rows += len(X)
        if self._deferred_rows >= MOST_DEFERRED:
            self.settle()

    def settle(self) -> None:
        """See what was deferred."""
        if self._deferred:
            deferred, rng = [X for X, _ in self._deferred], self._deferred[0][1]
            self._deferred, self._deferred_rows = [], 0
            self.extend(torch.cat(deferred), rng)

    def renew(self) -> None:
        """Let what comes now replace the sample quickly: the stream has begun anew."""
        self.settle()
        self._seen = min(self._seen, self.size)

    def state_dict(self) -> dict[str, Any]:
        self.settle()
        return {"seen": self._seen, "rows": self.rows.clone() if self._rows is not None else None}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._seen, self._deferred, self._deferred_rows = int(state["seen"]), [], 0
        rows = state["rows"]
        self._rows = None
        if rows is not None:
            self._rows = torch.empty(self.size, *rows.shape[1:])
            self._rows[: len(rows)] = rows


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
        self._arrays: Derived[tuple[NDArray[Any], ...]] = Derived()

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
