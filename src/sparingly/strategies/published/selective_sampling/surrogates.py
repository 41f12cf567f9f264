"""Surrogates of the number of errors, and how much each has to spare: the gap that pays for exploring."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Surrogate:
    """A surrogate of the errors: its value for a class, and how often to announce at random, given the scores `[K]`."""

    value: Callable[[Tensor, int], Tensor]
    gap_map: Callable[[Tensor], float]


def margin(scores: Tensor, y: int) -> Tensor:
    """How far the score of a class is above the best of the others."""
    others = torch.cat([scores[:y], scores[y + 1 :]])
    return scores[y] - others.max()


def _lead(scores: Tensor) -> float:
    return float(margin(scores, int(scores.argmax())))


def _logistic(scores: Tensor, y: int) -> Tensor:
    return -scores.log_softmax(0)[y] / math.log(2)


def _hinge(scores: Tensor, y: int) -> Tensor:
    m = margin(scores, y)
    return (1 - m).clamp_min(0.0) * bool(m <= 0.5)


def _smooth_hinge(scores: Tensor, y: int) -> Tensor:
    m = margin(scores, y)
    return 1 - 2 * m if m <= 0 else (1 - m).clamp_min(0.0).square()


def _half(scores: Tensor) -> float:
    largest = float(scores.softmax(0).max())
    return 1 - largest if largest >= 0.5 else 1.0


SURROGATES = {
    "logistic": Surrogate(_logistic, _half),
    "hinge": Surrogate(_hinge, lambda scores: 1 - max(float(_lead(scores) > 0.5), min(1.0, _lead(scores)))),
    "smooth_hinge": Surrogate(_smooth_hinge, lambda scores: (1 - min(1.0, _lead(scores))) ** 2),
}
"""Base-2 logistic loss, hinge loss that is 0 above a margin of 1/2, and smooth hinge loss, with their gap maps."""
