"""A cache of what depends on a model's parameters alone: computed once for each model, not for each observation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from torch import Tensor

T = TypeVar("T")


class TensorCache(Generic[T]):
    """What was last computed from a tensor; computed again for another one, or once that one was written to.

    Copies begin empty, and so does one that is pickled: the value is no part of any state.

    >>> import torch
    >>> parameters, lengths = torch.tensor([[3.0, 4.0]]), TensorCache()
    >>> def compute(rows):
    ...     print("computed")
    ...     return rows.square().sum(1)
    >>> [lengths.of(parameters, compute).tolist() for _ in range(2)]
    computed
    [[25.0], [25.0]]
    >>> lengths.of(parameters.mul_(2), compute).tolist()
    computed
    [100.0]
    """

    def __init__(self) -> None:
        self._kept: tuple[Tensor, int, T] | None = None

    def of(self, source: Tensor, compute: Callable[[Tensor], T]) -> T:
        """The value for this tensor as it is now."""
        version = -1 if source.is_inference() else source._version
        kept = self._kept
        if kept is None or kept[0] is not source or kept[1] != version:
            kept = self._kept = (source, version, compute(source))
        return kept[2]

    def __reduce__(self) -> tuple[type[TensorCache[T]], tuple[()]]:
        return type(self), ()
