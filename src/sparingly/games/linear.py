"""Linear programs over the probability simplex that look for the point of largest slack."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

TOLERANCE = 1e-9
"""The one tolerance: what is smaller, relative to the scale of the costs, counts as zero."""

Matrix = NDArray[np.float64]

# Its stubs know neither all options nor that a solved program has a solution.
_solve: Any = linprog

# The tightest HiGHS allows, so that its own slack stays well below ours.
_OPTIONS: dict[str, Any] = {
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
    "presolve": False,
}


class Slack(NamedTuple):
    """The largest slack (-inf if nothing is feasible), a distribution that has it, and the strict rows that bind.

    With the binding rows alone the largest slack would be the same: they carry the dual solution.
    """

    value: float
    point: Matrix
    binding: tuple[int, ...]


def largest_slack(strict: Matrix, weak: Matrix, equal: Matrix, *, interior: bool = False) -> Slack:
    """Maximise t over distributions p with strict p >= t, weak p >= 0, equal p = 0 (and p >= t if `interior`).

    Rows are scaled to largest entry 1 first, so that t means the same whatever the costs are measured in.

    >>> nothing = np.empty((0, 2))
    >>> float(largest_slack(np.array([[4.0, -4.0]]), nothing, nothing).value)
    1.0
    >>> float(largest_slack(np.array([[2.0, -1.0], [-1.0, 2.0]]), nothing, nothing).value)
    0.25
    """
    n_strict, n_outcomes = strict.shape
    if interior:
        strict = np.vstack([strict, np.eye(n_outcomes)])
    upper = np.vstack([np.c_[-scaled(strict), np.ones(len(strict))], np.c_[-scaled(weak), np.zeros(len(weak))]])
    equality = np.vstack([np.c_[scaled(equal), np.zeros(len(equal))], np.r_[np.ones(n_outcomes), 0.0]])
    result = _solve(
        np.r_[np.zeros(n_outcomes), -1.0],
        A_ub=upper,
        b_ub=np.zeros(len(upper)),
        A_eq=equality,
        b_eq=np.r_[np.zeros(len(equal)), 1.0],
        bounds=[(0, 1)] * n_outcomes + [(-2, 1)],
        method="highs-ds",
        options=_OPTIONS,
    )
    if result.x is None:
        return Slack(-np.inf, np.full(n_outcomes, np.nan), tuple(range(n_strict)))
    binding = np.flatnonzero(result.ineqlin.marginals[:n_strict])
    return Slack(float(result.x[-1]), np.asarray(result.x[:-1]), tuple(binding.tolist()))


def scaled(rows: Matrix) -> Matrix:
    """Return the rows, each divided by its largest entry's size; rows of zeros stay."""
    size = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    scaled_rows: Matrix = rows / np.where(size > 0, size, 1.0)
    return scaled_rows


def largest_minimum(costs: Matrix) -> float:
    """Return max over distributions p of min over rows of costs p: what the worst distribution costs at best.

    >>> round(largest_minimum(np.array([[0.0, 1.0], [0.5, 0.0]])), 6)
    0.333333
    """
    n_rows, n_outcomes = costs.shape
    result = _solve(
        np.r_[np.zeros(n_outcomes), -1.0],
        A_ub=np.c_[-costs, np.ones(n_rows)],
        b_ub=np.zeros(n_rows),
        A_eq=np.r_[np.ones(n_outcomes), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, 1)] * n_outcomes + [(None, None)],
    )
    return float(result.x[-1])
