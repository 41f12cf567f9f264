"""How many threads a call uses: one where the networks are small."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread(wanted: bool = True) -> Iterator[None]:
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
    if threads != 1:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if threads != 1:
            torch.set_num_threads(threads)
