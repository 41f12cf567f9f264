"""Linear programs over the probability simplex that look for the point of largest slack."""

from __future__ import annotations

from typing import Any, NamedTuple

import highspy
import numpy as np
from numpy.typing import NDArray

TOLERANCE = 1e-9
"""The one tolerance: what is smaller, relative to the scale of the costs, counts as zero."""

Matrix = NDArray[np.float64]


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
    >>> largest_slack(np.array([[4.0, -4.0]]), nothing, nothing).value
    1.0
    >>> largest_slack(np.array([[2.0, -1.0], [-1.0, 2.0]]), nothing, nothing).value
    0.25
    """
    n_strict, n_outcomes = strict.shape
    if interior:
        strict = np.vstack([strict, np.eye(n_outcomes)])
    rows = np.zeros((len(strict) + len(weak) + len(equal) + 1, n_outcomes + 1))
    rows[:-1, :-1] = _scaled(np.vstack([strict, weak, equal]))
    rows[-1, :-1] = 1.0
    rows[: len(strict), -1] = -1.0
    lower = np.zeros(len(rows))
    upper = np.full(len(rows), np.inf)
    lower[-1] = upper[-1] = 1.0
    upper[len(strict) + len(weak) : -1] = 0.0
    bounds = np.zeros(n_outcomes + 1), np.ones(n_outcomes + 1)
    bounds[0][-1] = -2.0
    solution = maximise(np.r_[np.zeros(n_outcomes), 1.0], rows, (lower, upper), bounds)
    if solution is None:
        return Slack(-np.inf, np.full(n_outcomes, np.nan), tuple(range(n_strict)))
    point, duals = solution
    return Slack(float(point[-1]), point[:-1], tuple(np.flatnonzero(duals[:n_strict]).tolist()))


def largest_minimum(costs: Matrix) -> float:
    """Return max over distributions p of min over rows of costs p: what the worst distribution costs at best.

    >>> round(largest_minimum(np.array([[0.0, 1.0], [0.5, 0.0]])), 6)
    0.333333
    """
    n_rows, n_outcomes = costs.shape
    rows = np.vstack([np.c_[costs, np.full(n_rows, -1.0)], np.r_[np.ones(n_outcomes), 0.0]])
    limits = np.r_[np.zeros(n_rows), 1.0], np.r_[np.full(n_rows, np.inf), 1.0]
    bounds = np.r_[np.zeros(n_outcomes), -np.inf], np.full(n_outcomes + 1, np.inf)
    solution = maximise(np.r_[np.zeros(n_outcomes), 1.0], rows, limits, bounds)
    if solution is None:
        raise RuntimeError("the value of a matrix game was not found")
    return float(solution[0][-1])


def maximise(
    objective: Matrix, rows: Matrix, limits: tuple[Matrix, Matrix], bounds: tuple[Matrix, Matrix]
) -> tuple[Matrix, Matrix] | None:
    """Maximise objective x with limits on rows x and bounds on x: the solution and its duals, None if infeasible."""
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = rows.shape
    program.sense_ = highspy.ObjSense.kMaximize
    program.col_cost_ = objective
    program.col_lower_, program.col_upper_ = bounds
    program.row_lower_, program.row_upper_ = limits
    at, column = np.nonzero(rows)
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = np.searchsorted(at, np.arange(len(rows) + 1))
    program.a_matrix_.index_ = column
    program.a_matrix_.value_ = rows[at, column]
    for options in _OPTIONS:
        solver = _solver(options)
        solver.passModel(program)
        solver.run()
        status = solver.getModelStatus()
        if status == highspy.HighsModelStatus.kOptimal:
            solution = solver.getSolution()
            return np.array(solution.col_value), np.array(solution.row_dual)
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
    raise RuntimeError(f"a linear program of {len(rows)} rows ended with {status}")


# The tightest tolerances HiGHS allows, so that its own stay well below ours; its defaults if it cannot keep them.
_TIGHT: dict[str, Any] = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_OPTIONS: tuple[dict[str, Any], ...] = ({**_TIGHT, "presolve": "off"}, {**_TIGHT, "presolve": "on"}, {})


def _solver(options: dict[str, Any]) -> highspy.Highs:
    solver: highspy.Highs = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in {"output_flag": False, "solver": "simplex", "parallel": "off", **options}.items():
        solver.setOptionValue(name, value)
    return solver


def _scaled(rows: Matrix) -> Matrix:
    size = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    scaled: Matrix = rows / np.where(size > 0, size, 1.0)
    return scaled
