"""Numbers that come out the same, to the last bit, whatever is computed beside them and on however many threads.

A matrix product is summed in another order, and so rounds differently, with the shape of its operands. An observation
that is assessed alone must get the same numbers as in a block, to the bit, so shapes are padded to sizes where it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor, cat, nn

ROWS = 16
"""Blocks are padded to a multiple of this: with 8, some processors sum the products of wide rows in another order."""
COLUMNS = 12
"""Narrower products are widened to this."""


def pad_block(X: Tensor, rows: int = ROWS) -> Tensor:
    """The block with rows of zeros added, up to a multiple of `rows`.

    >>> import torch
    >>> pad_block(torch.ones(3, 2)).shape
    torch.Size([16, 2])
    """
    missing = -X.shape[0] % rows
    return X if not missing else cat([X, X.new_zeros(missing, *X.shape[1:])])


def row_independent_product(X: Tensor, W: Tensor) -> Tensor:
    """X @ W for a padded block X: products of few columns are computed with more of them.

    >>> import torch
    >>> row_independent_product(torch.ones(8, 2), torch.ones(2, 5)).shape
    torch.Size([8, 5])
    """
    return X @ W if W.shape[1] >= COLUMNS else (X @ widened(W))[:, : W.shape[1]]


def widened(W: Tensor) -> Tensor:
    """W with columns of zeros added, up to as many as such a product has; for a factor that is used again and again.

    >>> widened(torch.ones(2, 5)).shape
    torch.Size([2, 12])
    """
    return nn.functional.pad(W, (0, COLUMNS - W.shape[1])) if W.shape[1] < COLUMNS else W


class RowIndependentLinear(nn.Linear):
    """A fully connected layer for padded blocks: a narrow one is computed as if it were wider.

    >>> import torch
    >>> layer, X = RowIndependentLinear(10, 2), torch.ones(8, 10)
    >>> torch.allclose(layer(X), nn.functional.linear(X, layer.weight, layer.bias))
    True
    """

    def forward(self, X: Tensor) -> Tensor:
        if self.out_features >= COLUMNS:
            return super().forward(X)
        product = row_independent_product(X, self.weight.T)
        return product if self.bias is None else product + self.bias


def one_thread(wanted: bool = True) -> AbstractContextManager[None]:
    """Compute on one thread, and leave the user's number of threads as it was.

    Networks as small as ours spend more on waking threads than on arithmetic, and sums come out the same, to the last
    bit, however many threads the process may use elsewhere.

    Parameters
    ----------
    wanted
        False changes nothing.

    >>> before = torch.get_num_threads()
    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    >>> torch.get_num_threads() == before
    True
    """
    threads = torch.get_num_threads() if wanted else 1
    return _AS_IT_IS if threads == 1 else _one_thread_of(threads)


_AS_IT_IS = nullcontext()


@contextmanager
def _one_thread_of(threads: int) -> Iterator[None]:
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def without_gradients() -> AbstractContextManager[None]:
    """As `torch.no_grad()`, which costs as much as a small computation.

    >>> with without_gradients(), without_gradients():
    ...     torch.is_grad_enabled()
    False
    >>> torch.is_grad_enabled()
    True
    """
    return _GRADIENTS_OFF if torch.is_grad_enabled() else _AS_IT_IS


class _GradientsOff(AbstractContextManager[None]):
    """Gradients off, and on again; it has no state, so one serves all threads."""

    def __enter__(self) -> None:
        torch.set_grad_enabled(False)

    def __exit__(self, *_: object) -> None:
        torch.set_grad_enabled(True)


_GRADIENTS_OFF = _GradientsOff()
