r"""The quadratic program of the cutting-plane method: one variable for each plane, solved by HiGHS.

.. math:: \max_\lambda \; b'\lambda - \tfrac12 \lambda' G \lambda \quad \text{subject to} \quad
    \lambda \ge 0, \; \sum_t \lambda_t \le 1.

HiGHS' active-set method works with absolute tolerances, so the problem is put into units that make the Hessian's
diagonal 1 and the weights' norm about 1. Planes outnumber dimensions soon, and on a singular Hessian the method may
cycle or give up; its own remedy, a multiple of the unit matrix that is added and never taken away, costs accuracy.
Here the term is proximal, :math:`\delta/2 \|x - x_0\|^2` around the last solution, and the problem is solved again
around the new one until it is as accurate as the outer iteration needs.

What HiGHS returns is checked: it is made feasible, and has to beat the exact step from the last solution towards the
new plane. The method's rate of convergence depends on that step (Teo et al., 2007), so it is also what is taken when
HiGHS fails.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from polymargin.support.numeric import Floats

ROUNDING = float(4 * np.finfo(np.float64).eps)
_TINY = 1e-14  # a diagonal of G below this share of its largest entry is taken for this share


@dataclass(frozen=True)
class ReducedDualSettings:
    """How the reduced problem is solved."""

    proximity: float = 1e-6  # HiGHS cycles on singular problems from some 1e-8 down
    max_rounds: int = 5  # of proximal steps
    accuracy: float = 0.01  # of the solution, as a share of the gap that it is to close


class _Scaled:
    r"""The problem in units that make G's diagonal 1 and the norm of the weights about 1, with a proximal term.

    The term is :math:`\delta/2 \|x - x_0\|^2` around a point that each call of :meth:`solve` is given.
    """

    def __init__(self, gram: Floats, offsets: Floats, step: Floats, proximity: float) -> None:
        diagonal = gram.diagonal()
        smallest = _TINY * float(diagonal.max())
        self._unit = np.sqrt(np.maximum(diagonal, smallest))
        self._size = np.sqrt(max(float(step @ gram @ step), smallest))
        self._hessian = gram / np.outer(self._unit, self._unit)
        self._hessian[np.diag_indices_from(self._hessian)] += proximity
        self._cost = -offsets / (self._unit * self._size)
        self._row = self._unit.min() / self._unit
        self._limit = float(self._unit.min() / self._size)
        self._proximity = proximity

    def solve(self, centre: Floats, warm: bool, time_limit: float) -> Floats | None:
        """Return the feasible solution around a centre, from which HiGHS starts if ``warm``; None if it fails."""
        x = centre * self._unit / self._size
        cost = self._cost - self._proximity * x
        answer = solve_by_highs(self._hessian, cost, self._row, self._limit, x if warm else None, time_limit)
        if answer is None:
            return None
        answer[answer < 1e-12 * answer.max()] = 0.0
        weight: Floats = answer * self._size / self._unit
        weight /= max(1.0, weight.sum())
        return weight


def solve_reduced_dual(
    gram: Floats,
    offsets: Floats,
    start: Floats,
    *,
    gap: float,
    time_limit: float,
    settings: ReducedDualSettings,
) -> tuple[Floats, bool]:
    r"""Maximise ``b'l - 1/2 l'Gl`` over ``l >= 0``, ``sum l <= 1``; tell whether HiGHS found the solution.

    Parameters
    ----------
    gram, offsets : ndarray of shape (p, p) and (p,)
        G and b, the new plane last.
    start : ndarray of shape (p,)
        Feasible point, 0 for the new plane.
    gap : float
        What the outer iteration has still to close, the measure of accuracy.
    time_limit : float
        Seconds left.
    settings : ReducedDualSettings
        How it is solved.

    Returns
    -------
    weight : ndarray of shape (p,)
        The best feasible point found, at least as good as the exact step.
    solved : bool
        Whether it is HiGHS' solution.
    """
    step = step_towards_last(gram, offsets, start)
    largest = float(gram.diagonal().max())
    if len(start) == 1 or not 0 < largest < np.inf:
        return step, largest < np.inf  # one plane, or none with a slope: the step is the solution
    problem = _Scaled(gram, offsets, step, settings.proximity)
    centre = start
    best, best_value, solved = step, _value(gram, offsets, step), False
    deadline = time.perf_counter() + time_limit
    for attempt in range(settings.max_rounds):
        seconds = deadline - time.perf_counter()
        if seconds <= 0:
            break
        # HiGHS' makers do not trust its start from a given point (their issue 2521), hence only at first.
        candidate = problem.solve(centre, attempt == 0, seconds)
        if candidate is None:
            continue
        value = _value(gram, offsets, candidate)
        if value >= best_value - ROUNDING * abs(best_value):
            best, best_value, solved = candidate, max(value, best_value), True
            slope = offsets - gram @ candidate
            if max(0.0, slope.max()) - slope @ candidate <= settings.accuracy * gap:
                break
            centre = candidate
        elif solved:
            break
    return best, solved


def _value(gram: Floats, offsets: Floats, weight: Floats) -> float:
    return float(weight @ offsets - 0.5 * (weight @ gram @ weight))


def step_towards_last(gram: Floats, offsets: Floats, start: Floats) -> Floats:
    """Return the best point between ``start`` and all the weight on the last plane."""
    direction = -start
    direction[-1] += 1.0
    slope = float(direction @ (offsets - gram @ start))
    curvature = float(direction @ gram @ direction)
    if slope <= 0:
        return start
    return start + min(1.0, slope / curvature if curvature > 0 else 1.0) * direction


def solve_by_highs(
    hessian: Floats, cost: Floats, row: Floats, limit: float, start: Floats | None, time_limit: float
) -> Floats | None:
    """Minimise ``1/2 x'Hx + c'x`` over ``x >= 0``, ``row'x <= limit`` with HiGHS; return None if it fails."""
    import highspy  # not at the top: only the solvers that need it load it

    n = len(cost)
    highs = highspy.Highs()
    options: dict[str, bool | int | float | str] = {
        "output_flag": False,
        "parallel": "off",
        "qp_regularization_value": 0.0,
        "qp_iteration_limit": 1000 + 100 * n,  # a solution takes a few times n
        "qp_allow_hot_start": True,
        "time_limit": time_limit,
    }
    for option, value in options.items():
        highs.setOptionValue(option, value)
    columns, rows = np.triu_indices(n)  # the lower triangle, by columns
    status = highs.passModel(
        n,
        1,
        n,
        len(rows),
        int(highspy.MatrixFormat.kColwise),
        int(highspy.HessianFormat.kTriangular),
        int(highspy.ObjSense.kMinimize),
        0.0,
        cost,
        np.zeros(n),
        np.full(n, highspy.kHighsInf),
        np.array([-highspy.kHighsInf]),
        np.array([limit]),
        np.arange(n, dtype=np.int32),
        np.zeros(n, dtype=np.int32),
        row,
        np.searchsorted(columns, np.arange(n)).astype(np.int32),
        rows.astype(np.int32),
        hessian[rows, columns],
        np.zeros(n, dtype=np.int32),
    )
    if status == highspy.HighsStatus.kError:
        return None
    if start is not None:
        _set_start(highs, row, limit, start)
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    answer = np.maximum(np.array(highs.getSolution().col_value), 0.0)
    return answer if np.all(np.isfinite(answer)) else None


def _set_start(highs: Any, row: Floats, limit: float, start: Floats) -> None:
    """Let HiGHS start from a point, whose positive variables are free."""
    import highspy

    solution, basis = highspy.HighsSolution(), highspy.HighsBasis()
    used = float(row @ start)
    solution.col_value, solution.row_value = start.tolist(), [used]
    at_bound, free = highspy.HighsBasisStatus.kLower, highspy.HighsBasisStatus.kNonbasic
    basis.col_status = [free if value > 0 else at_bound for value in start]
    full = used >= limit * (1 - 1e-9)
    basis.row_status = [highspy.HighsBasisStatus.kUpper if full else highspy.HighsBasisStatus.kBasic]
    basis.valid = True
    highs.setSolution(solution)  # before the basis, which it would make invalid
    highs.setBasis(basis)
