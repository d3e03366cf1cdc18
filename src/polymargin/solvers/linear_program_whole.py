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
from polymargin.solvers.linear_program_constraints import Constraints
from polymargin.solvers.linear_program_problem import MARGIN, BestPoints, LinearProgram, signs
from polymargin.support.blocks import interruptible
from polymargin.support.numeric import Bools, Floats


@dataclass(frozen=True)
class WholeProgramSettings:
    """When the interior point method ends."""

    max_steps: int = 100  # it takes 10 to 30
    patience: int = 4  # steps that do not make the gap smaller, after which rounding is to blame
    pricing_residual: float = 0.3  # as long as equations miss by more, nothing tells which coefficients are missing
    sparsity_loss: float = 1e-6  # what the primal objective may lose, relatively, for coefficients that are zero
    vertex_gap: float = 1e-3  # from which on the vertex is computed, if there are as many equations as unknowns
    # Products of variables and multipliers may run ahead of the gap as far as this share of it. (Without a limit they
    # fell to 10^-220 where C is 10^4, while rounding kept the equations from being fulfilled.)
    gap_share: float = 0.02
    # Coefficients below a share of their mean are left out, the first share for which the primal objective loses no
    # more than so many times the gap, if they are the least share of all. (Where C is 10^4 margins changed by up to 10
    # without this condition, and the equations could not be fulfilled any more. On 2,250 noisy rows with C = 100, 0.1
    # times keep all coefficients in 7.7 s, 3 times 1,955 in 7.0, 30 times 949 in 5.6; with C = 10^4 none leave.)
    idle_shares: tuple[float, ...] = (3e-3, 3e-4)
    idle_loss: float = 30.0
    idle_least: float = 0.05
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
        every = np.arange(self._program.shape[0])
        K = self._program.kernel_values.block(every, every)
        self._scale = _power_of_two(float(np.abs(K).max()) or 1.0)
        K /= self._scale
        self._constraints = Constraints(K, self._program.class_starts)
        self._method = InteriorPoint(
            self._constraints, self._scale * self._program.cost_bounds, limits.threads, go_on, settings.interior_point
        )
        self._go_on = go_on
        self._max_iterations = limits.max_iterations
        self._steps = 0
        self._smallest_gap, self._since = np.inf, 0  # steps since the gap was that small
        self.iterations: int = iterations  # of both methods

    def advance(self, target: float, enough: float) -> Status | None:
        """Take one step; return why there is no further one, None if there is."""
        method, best, settings = self._method, self._best, self._settings
        if self.iterations == self._max_iterations:
            return "max_iter"
        if self._steps == settings.max_steps or not method.step(self._floor()):
            return self._last_resort(target) if self._go_on() else None
        self._steps += 1
        self.iterations += 1
        self._update_primal(method.point, 0.0)
        self._update_dual()
        if best.gap <= target:
            self._drop_negligible()
            return "converged"
        if best.gap <= settings.vertex_gap and self._vertex(square=True, target=target):
            return "converged"
        self._leave_out_idle()
        return self._last_resort(target) if self._stuck(enough) else None

    def _drop_negligible(self) -> None:
        """Make coefficients zero that are negligible, as far as the primal objective allows."""
        for share in 10.0 ** -np.arange(6):
            small = self._taken <= share * self._method.negligible
            if self._update_primal(self._without(small), self._settings.sparsity_loss):
                return

    def _floor(self) -> float:
        """Return the mean product below which no step goes: that of a gap far smaller than the one reached."""
        gap = min(self._best.gap, 1.0) * self._scale * self._best.primal
        return self._settings.gap_share * gap / self._method.n_products

    @property
    def _taken(self) -> Floats:
        """The coefficients that take part."""
        return self._method.point[self._constraints.coefficients]

    def _leave_out_idle(self) -> None:
        """Leave out coefficients on their way to zero, if they are many and the primal objective hardly notices."""
        settings, method, best = self._settings, self._method, self._best
        allowed = settings.idle_loss * min(best.gap, 1.0) * best.primal
        value = self._primal(method.point)[0]
        for share in settings.idle_shares:
            idle = method.idle(share)
            if np.count_nonzero(idle) < settings.idle_least * len(idle):
                return
            if self._primal(self._without(idle))[0] <= value + allowed:
                method.leave_out(idle)
                return

    def _without(self, left_out: Bools) -> Floats:
        """Return the point with some of the coefficients zero."""
        y = self._method.point.copy()
        y[self._constraints.coefficients[left_out]] = 0.0
        return y

    def _stuck(self, enough: float) -> bool:
        """Return whether the gap does not get smaller, though it is enough or the iterates are where it should be."""
        gap, settings = self._best.gap, self._settings
        if gap < 0.9 * self._smallest_gap:
            self._smallest_gap, self._since = gap, 0
        self._since += 1
        if gap <= enough:
            return self._since > 2
        near = gap < settings.vertex_gap or self._method.mean_product <= 2.0 * self._floor()
        return near and self._since > settings.patience

    def _last_resort(self, target: float) -> Status:
        """Try the vertex whatever the number of equations, as rounding allows no further steps."""
        if self._vertex(square=False, target=target):
            return "converged"
        self._drop_negligible()
        return "precision"

    def _update_primal(self, y: Floats, allowed_loss: float) -> bool:
        """Take coefficients and intercepts if they are good enough; return whether they were."""
        _, coefficients, shortfalls = self._primal(y)
        return self._best.update_primal(coefficients, y[self._constraints.intercepts], shortfalls, allowed_loss)

    def _primal(self, y: Floats) -> tuple[float, Floats, Floats]:
        """Return the primal objective, the coefficients of all examples, and the shortfalls."""
        shortfalls = MARGIN - self._constraints.transposed(y)
        shortfalls[self._program.own] = -np.inf
        coefficients = self._everywhere(y[self._constraints.coefficients])
        return self._program.primal(coefficients, shortfalls, self._program.cost_bounds), coefficients, shortfalls

    def _everywhere(self, taken: Floats) -> Floats:
        """Return the coefficients of all examples, in the units of the program, from those that take part."""
        coefficients = np.zeros(self._program.shape[0])
        coefficients[self._constraints.columns] = taken / self._scale
        return coefficients

    def _update_dual(self) -> None:
        """Take the multipliers, balanced, and the coefficients that they show to be missing."""
        method, constraints = self._method, self._constraints
        multipliers = constraints.balanced(method.multipliers, method.room)
        costs = self._scale * self._program.cost_bounds[:, None]
        activities = constraints.activities(multipliers)
        if np.all(multipliers >= 0.0) and np.all(multipliers <= costs):
            self._best.update_dual(sp.csr_array(multipliers / self._scale), float(activities.max()))
        if method.residual > self._settings.pricing_residual:
            return
        activities[constraints.columns] = 0.0
        missing = np.flatnonzero(activities > 1.0)
        if len(missing):
            method.take(missing, 1.0 - activities[missing])
            self._since = 0  # the equations are missed anew, and until they are met the gap says little

    def _vertex(self, square: bool, target: float) -> bool:
        """Take the vertex that the iterates point at, if it is better; return whether its gap is the target."""
        method = self._method
        found = vertex(
            self._program,
            self._everywhere(self._taken),
            method.point[self._constraints.intercepts],
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


def _power_of_two(number: float) -> float:
    """Return a power of two near to a number: dividing by it rounds nothing."""
    return float(2.0 ** np.round(np.log2(number)))


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
