"""What every strategy refuses, with an error that names the value."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor


def check_finite(block: Tensor) -> None:
    """Name the first value that is not finite, if there is one: a sum of finite numbers may be too large, too."""
    for where in (~torch.isfinite(block)).nonzero().tolist()[:1]:
        value = block[tuple(where)].item()
        raise ValueError(f"X[{', '.join(map(str, where))}] is {value}: every feature must be finite")


def checked_shape(n_features: int | tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an observation, or an error.

    >>> checked_shape(3), checked_shape((1, 28, 28))
    ((3,), (1, 28, 28))
    """
    shape = (n_features,) if isinstance(n_features, int) else tuple(n_features)
    if not shape or any(not isinstance(size, int) or size < 1 for size in shape):
        raise ValueError(f"n_features is {n_features!r}: it must be a positive number or a shape of positive numbers")
    return shape


def checked_outcomes(y: ArrayLike | Tensor, rows: int, n_outcomes: int) -> list[int]:
    """Outcomes by number, one a row, or an error that names the one that is none.

    >>> checked_outcomes([0, 2.0], 2, 3)
    [0, 2]
    """
    given = np.asarray(y).tolist() if np.ndim(y) == 1 else None
    if given is None or len(given) != rows:
        raise ValueError(f"y has shape {np.shape(y)}, not ({rows},): one outcome for each observation")
    for i, outcome in enumerate(given):
        if isinstance(outcome, bool) or outcome not in range(n_outcomes):
            raise ValueError(f"y[{i}] is {outcome!r}: the outcomes are numbered 0 to {n_outcomes - 1}")
    return [int(outcome) for outcome in given]
