"""The whole program of the linear programming machine: an interior point method, and the vertex that it points at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular

from polymargin.solvers.interior_point import InteriorPoint, InteriorPointSettings
from polymargin.solvers.limits import Limits, Status
from polymargin.solvers.linear_program_problem import MARGIN, BestPoints, LinearProgram, signs
from polymargin.support.blocks import interruptible
from polymargin.support.numeric import Floats, Ints


@dataclass(frozen=True)
class WholeProgramSettings:
    """When the interior point method ends."""

    max_steps: int = 100  # it takes 10 to 30
    patience: int = 4  # steps that do not make the gap smaller, after which rounding is to blame
    max_imbalance: float = 1e-9  # what rounding leaves of the equations of the intercepts, relative to the multipliers
    sparsity_loss: float = 1e-6  # what the primal objective may lose, relatively, for coefficients that are zero
    vertex_gap: float = 1e-3  # from which on the vertex is computed, if there are as many equations as unknowns
    interior_point: InteriorPointSettings = field(default_factory=InteriorPointSettings)


class WholeProgram:
    """The interior point method on all pairs, with the same interface as the generation.

    Coefficients on their way to zero are left out, so that steps become cheap; what is left out and violates its
    constraint, over all examples, is taken again.
    """

    name = "interior-point"

    def __init__(
        self,
        best: BestPoints,
        iterations: int,
        limits: Limits[Any],
        go_on: Callable[[], bool],
        settings: WholeProgramSettings,
    ) -> None:
        self._best, self._program, self._settings = best, best.program, settings
        self._every: Ints = np.arange(self._program.shape[0])
        K = self._program.kernel_values.block(self._every, self._every)
        self._scale = float(np.abs(K).max()) or 1.0
        K /= self._scale
        cost_bounds = self._scale * self._program.cost_bounds
        self._method = InteriorPoint(
            K, self._program.class_starts, cost_bounds, limits.threads, go_on, settings.interior_point
        )
        self._go_on = go_on
        self._max_iterations = limits.max_iterations
        self._steps = 0
        self._smallest_gap, self._since = np.inf, 0  # steps since the gap was that small
        self.iterations = iterations  # of both methods

    def advance(self, target: float) -> Status | None:
        """Take one step; return why there is no further one, None if there is."""
        method, best, settings = self._method, self._best, self._settings
        if self.iterations == self._max_iterations:
            return "max_iter"
        if self._steps == settings.max_steps or not method.step():
            return self._last_resort(target) if self._go_on() else None
        self._steps += 1
        self.iterations += 1
        coefficients = method.coefficients
        self._update_primal(coefficients, method.intercept, 0.0)
        self._update_dual()
        method.leave_out_idle()
        if best.gap > target:
            if best.gap <= settings.vertex_gap and self._vertex(square=True, target=target):
                return "converged"
            return self._last_resort(target) if self._stuck() else None
        for share in (1.0, 0.1, 0.01, 0.001):
            few = np.where(coefficients > share * method.negligible, coefficients, 0.0)
            if self._update_primal(few, method.intercept, settings.sparsity_loss):
                break
        return "converged"

    def _stuck(self) -> bool:
        """Return whether the gap has been close for some steps, and does not get smaller."""
        if self._best.gap < 0.9 * self._smallest_gap:
            self._smallest_gap, self._since = self._best.gap, 0
        self._since += 1
        return self._since > self._settings.patience and self._best.gap < self._settings.vertex_gap

    def _last_resort(self, target: float) -> Status:
        """Try the vertex whatever the number of equations, as rounding allows no further steps."""
        return "converged" if self._vertex(square=False, target=target) else "precision"

    def _update_primal(self, coefficients: Floats, intercept: Floats, allowed_loss: float) -> bool:
        """Take coefficients with the intercepts if they are good enough; return whether they were."""
        coefficients = coefficients / self._scale
        shortfalls = self._program.shortfalls(coefficients, intercept)
        return self._best.update_primal(coefficients, intercept, shortfalls, allowed_loss)

    def _update_dual(self) -> None:
        """Take the multipliers, if they are balanced, and the coefficients that they show to be missing."""
        method = self._method
        if not method.imbalance <= self._settings.max_imbalance * float(method.multipliers.sum()):
            return
        multipliers = sp.csr_array(method.multipliers / self._scale)
        activities = self._program.dual_activities(multipliers)
        self._best.update_dual(multipliers, float(activities.max()))
        activities[method.columns] = 0.0
        missing = np.flatnonzero(activities > 1.0)
        if len(missing):
            values = self._program.kernel_values.block(self._every, missing) / self._scale
            method.take(missing, values, 1.0 - activities[missing])

    def _vertex(self, square: bool, target: float) -> bool:
        """Take the vertex that the iterates point at, if it is better; return whether its gap is the target."""
        method = self._method
        found = vertex(
            self._program,
            method.coefficients / self._scale,
            method.intercept,
            method.multipliers / self._scale,
            method.negligible / self._scale,
            square,
        )
        if found is None:
            return False
        coefficients, intercept, multipliers = found
        shortfalls = self._program.shortfalls(coefficients, intercept)
        sparse = sp.csr_array(multipliers)
        activities = self._program.dual_activities(sparse)
        self._best.update_primal(coefficients, intercept, shortfalls)
        self._best.update_dual(sparse, float(activities.max()))
        return self._best.gap <= target


def vertex(
    program: LinearProgram,
    coefficients: Floats,
    intercept: Floats,
    multipliers: Floats,
    negligible: float,
    square: bool,
) -> tuple[Floats, Floats, Floats] | None:
    r"""Return coefficients, intercepts and multipliers at the vertex that an interior point is near to.

    Coefficients above ``negligible`` are taken for positive, so their constraints hold with equality, and multipliers
    that are as far from 0 and from C for free, so their pairs have the margin exactly:

    .. math:: \sum_m \sigma_{ij}(m) K_{im} a_m + b_{y_i} - b_j = 2, \qquad \hat A u = (1, 0) .

    Both are one matrix and its transpose. The smallest changes that fulfil them are taken, by a factorisation QR; a
    vertex that is no degenerate one has as many equations as unknowns, and ``square`` asks for that. Returns None if
    there is nothing to solve. What is returned need be neither optimal nor feasible: whoever asks looks at the gap.
    """
    k, costs = program.shape[1], program.cost_bounds[:, None]
    columns = np.flatnonzero(coefficients > negligible)
    near = np.minimum(negligible, 0.01 * costs)  # a small C leaves no room for more
    examples, rivals = np.nonzero((multipliers > near) & (multipliers < costs - near))
    unknowns = len(columns) + k - 1  # the last intercept is 0
    if not len(columns) or not len(examples) or (square and len(examples) != unknowns):
        return None
    owner = program.labels[examples]
    own = signs(owner, rivals, program.labels[columns])
    equations = np.hstack(
        [own * program.kernel_values.block(examples, columns), signs(owner, rivals, np.arange(k - 1))]
    )
    a, b, u = coefficients.copy(), intercept - intercept[-1], multipliers.copy()
    u[multipliers <= near] = 0.0
    u[multipliers >= costs - near] = np.broadcast_to(costs, u.shape)[multipliers >= costs - near]
    a[coefficients <= negligible] = 0.0
    solved = _Equations(equations)
    u[examples, rivals] = 0.0
    sparse = sp.csr_array(u)
    missing = 1.0 - program.dual_activities(sparse)[columns]
    balance = -_balances(program, u)
    u[examples, rivals] = solved.transposed_solution(np.concatenate([missing, balance]), multipliers[examples, rivals])
    y = solved.solution(np.full(len(examples), MARGIN), np.concatenate([a[columns], b[:-1]]))
    if not (np.all(np.isfinite(y)) and np.all(np.isfinite(u))):
        return None
    a[columns], b[:-1] = np.maximum(y[: len(columns)], 0.0), y[len(columns) :]
    return a, b - b.mean(), np.clip(u, 0.0, costs)


def _balances(program: LinearProgram, u: Floats) -> Floats:
    """Return the left sides of the equations of the intercepts but the last."""
    balances: Floats = (np.bincount(program.labels, weights=u.sum(axis=1), minlength=u.shape[1]) - u.sum(axis=0))[:-1]
    return balances


class _Equations:
    """E y = r, and E'u = r, solved with the smallest change of a guess, by one factorisation."""

    def __init__(self, E: Floats) -> None:
        self._E, self._tall = E, E.shape[0] >= E.shape[1]
        # NumPy's lets other threads run meanwhile
        self._Q, self._R = interruptible(np.linalg.qr, E if self._tall else E.T)

    def solution(self, right: Floats, guess: Floats) -> Floats:
        """Return y: least squares."""
        return self._refined(self._E, self._tall, right, guess)

    def transposed_solution(self, right: Floats, guess: Floats) -> Floats:
        """Return u: least squares."""
        return self._refined(self._E.T, not self._tall, right, guess)

    def _refined(self, matrix: Floats, tall: bool, right: Floats, guess: Floats) -> Floats:
        solution = guess
        for _ in range(3):
            residual = right - matrix @ solution
            if tall:  # matrix = QR
                change = solve_triangular(self._R, self._Q.T @ residual, check_finite=False)
            else:  # matrix = R'Q'
                change = self._Q @ solve_triangular(self._R, residual, trans="T", check_finite=False)
            solution = solution + change
        return solution
