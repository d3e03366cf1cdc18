r"""A primal-dual interior point method for the dual of the linear programming machine, with all of its constraints.

With the rows of :math:`\hat A` for the coefficients, :math:`\sigma_{ij}(m) K_{im}`, and for the intercepts, the same
with ones in place of kernel values, and slacks s of the coefficients' constraints,

.. math:: \max_u \; 2 \sum_{ij} u_{ij} \quad \text{subject to} \quad \hat A u + (s, 0) = (1, 0), \quad s \ge 0, \quad
    0 \le u_{ij} \le C_i ,

whose multipliers are :math:`y = (a, b)`, z for :math:`u \ge 0` and :math:`\xi` for :math:`u \le C`. A step of Newton's
method is a positive definite system in y, of size n + k,

.. math:: (\hat A D \hat A' + \mathrm{diag}(s / a, 0)) \, dy = \ldots, \quad D = (z / u + \xi / (C - u))^{-1} ,

and :math:`\hat A D \hat A'` has a block for every two classes, each a product of kernel values: 3 n^3 / k operations.
Predictor and corrector are Mehrotra's, further correctors Gondzio's; all use one factorisation. Coefficients on their
way to zero can be left out, which makes the system smaller, and taken again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve

from polymargin.solvers.linear_program_constraints import Constraints
from polymargin.solvers.linear_program_problem import MARGIN
from polymargin.support.factorisation import factorise
from polymargin.support.numeric import Bools, Floats, Ints

MATRICES_NEEDED = 4  # of n^2 numbers, at a time


@dataclass(frozen=True)
class InteriorPointSettings:
    """How steps are taken."""

    step_share: float = 0.9995  # of the step after which a variable would be zero
    # Relative to the diagonal: intercepts may all be shifted, which leaves the system singular. The next one is taken
    # as soon as rounding makes it indefinite nevertheless.
    ridges: tuple[float, ...] = (1e-13, 1e-11, 1e-9)
    # Steps of multipliers u cost so much times their square, in units of the inverse of their mean: that changes
    # nothing at the optimum, and bounds D, whose rounding would otherwise leave the equations unfulfilled.
    proximal: float = 1e-9
    # Refinements of the solution of a linear system, at most, unless what is left of the right side is so small. Where
    # multipliers are 10^4, two leave the equations unfulfilled by more than their right side, which is 1.
    refinements: int = 8
    residual: float = 1e-12
    first_sum: float = 100.0  # of the coefficients; with multipliers of root C it took a third of the steps away
    # Correctors after Mehrotra's, each of one more solution of the same system, as Gondzio's: they are to lengthen the
    # step by ``reach``, and bring products back that leave ``spread`` times the target, either way. Two took a third
    # of the steps away.
    correctors: int = 2
    reach: float = 0.3
    spread: float = 10.0
    worthwhile: float = 0.01  # share of the reach that a corrector must win
    idle_slack: float = 0.05  # of the constraint of a coefficient that will be zero
    idle_residual: float = 1.0  # as long as equations miss by more, slacks do not tell what will be zero


class _System:
    """A positive definite system, scaled to a unit diagonal and factorised; refinement undoes rounding.

    ``finished`` tells whether it was factorised to the end. Raises LinAlgError if it is not positive definite.
    """

    def __init__(
        self,
        lower: Floats,
        extra: Floats,
        times: Callable[[Floats], Floats],
        factor: Callable[[Floats], bool],
        ridge: float,
        settings: InteriorPointSettings,
    ) -> None:
        diagonal = lower.diagonal() + extra
        if not (np.all(diagonal > 0) and np.all(np.isfinite(diagonal))):
            raise np.linalg.LinAlgError("the diagonal is not positive and finite")
        self._times, self._scale = times, 1.0 / np.sqrt(diagonal)
        self._settings = settings
        lower *= self._scale
        lower *= self._scale[:, None]
        np.fill_diagonal(lower, 1.0 + ridge)
        self.finished = factor(lower)
        self._factor = lower

    def solve(self, right: Floats) -> Floats:
        """Return the solution, refined as long as that makes what is left smaller."""
        solution, residual, norm = np.zeros_like(right), right, self._norm(right)
        wanted = self._settings.residual * norm
        for _ in range(self._settings.refinements + 1):
            candidate = solution + self._preconditioned(residual)
            left = right - self._times(candidate)
            if not self._norm(left) < norm:
                break
            solution, residual, norm = candidate, left, self._norm(left)
            if not norm > wanted:
                break
        return solution

    def _norm(self, right: Floats) -> float:
        return float(np.linalg.norm(self._scale * right))

    def _preconditioned(self, right: Floats) -> Floats:
        # the transpose is LAPACK's order: no copy
        solved: Floats = cho_solve((self._factor.T, False), self._scale * right, check_finite=False)
        return self._scale * solved


class _Direction(NamedTuple):
    """Changes of all variables."""

    y: Floats
    u: Floats
    s: Floats
    z: Floats
    xi: Floats


_Newton = Callable[[Floats, Floats, Floats], _Direction]  # from changes of products to a direction


class InteriorPoint:
    """The iterates.

    Parameters
    ----------
    constraints : Constraints
        Kernel values, best of a size around 1, and the coefficients to begin with.
    cost_bounds : array of shape (n,)
        The costs C_i, finite.
    threads : int
        How many blocks of the system are formed at a time.
    go_on : callable
        Asked now and then; when it says no, :meth:`step` returns early.
    settings : InteriorPointSettings
        How steps are taken.
    """

    def __init__(
        self,
        constraints: Constraints,
        cost_bounds: Floats,
        threads: int,
        go_on: Callable[[], bool],
        settings: InteriorPointSettings,
    ) -> None:
        self._A = constraints
        self._threads, self._go_on, self._settings = threads, go_on, settings
        n = len(cost_bounds)
        self._pairs = self._A.pairs
        first = np.minimum(cost_bounds / 2.0, np.sqrt(cost_bounds))
        # What belongs to no pair is 1, so that it can be divided by, and its changes are 0.
        self._u = np.where(self._pairs, first[:, None], 1.0)
        self._v = np.where(self._pairs, cost_bounds[:, None] - self._u, 1.0)
        self._y = np.zeros(self._A.size)
        self._y[self._A.coefficients] = settings.first_sum / n
        self._s = np.ones(n)
        self._ridges = list(settings.ridges)
        self._has_left: Bools = np.zeros(n, dtype=bool)
        self._largest_residual = np.inf  # of the constraints of coefficients, at the last step
        margin = self._A.transposed(self._y)
        self._z = np.where(self._pairs, np.maximum(1.0, margin - MARGIN + 1.0), 1.0)
        self._xi = np.where(self._pairs, np.maximum(1.0, MARGIN - margin + 1.0), 1.0)

    @property
    def _taken(self) -> Floats:
        return self._y[self._A.coefficients]

    @property
    def point(self) -> Floats:
        """The coefficients that take part, and the intercepts: y."""
        return self._y

    @property
    def negligible(self) -> float:
        """A coefficient below this is rather zero in the solution: its slack is larger."""
        return float(np.sqrt(self.mean_product))

    @property
    def multipliers(self) -> Floats:
        """The multipliers u, examples x classes."""
        return np.where(self._pairs, self._u, 0.0)

    @property
    def room(self) -> Floats:
        """How far multipliers are from their limits, examples x classes."""
        return np.where(self._pairs, np.minimum(self._u, self._v), 0.0)

    @property
    def residual(self) -> float:
        """By how much the constraints of coefficients were missed at the last step."""
        return self._largest_residual

    def _complementarity(self, ahead: _Direction | None = None, primal: float = 0.0, dual: float = 0.0) -> float:
        """Return the mean product of variables and their multipliers, here or some way ahead."""
        u, v, s, z, xi, a = self._u, self._v, self._s, self._z, self._xi, self._taken
        if ahead is not None:
            u, v, s = u + primal * ahead.u, v - primal * ahead.u, s + primal * ahead.s
            z, xi, a = z + dual * ahead.z, xi + dual * ahead.xi, a + dual * ahead.y[self._A.coefficients]
        total = np.sum((u * z + v * xi)[self._pairs]) + s @ a
        return float(total) / self.n_products

    def idle(self, share: float) -> Bools:
        """Return which coefficients are on their way to zero: below a share of the mean, at a constraint with room."""
        a, settings = self._taken, self._settings
        if self._largest_residual > settings.idle_residual:
            return np.zeros(len(a), dtype=bool)
        idle: Bools = (a <= share * a.mean()) & (self._s >= settings.idle_slack) & ~self._has_left[self._A.columns]
        return idle

    def leave_out(self, idle: Bools) -> None:
        """Leave out coefficients, which changes margins a little; what comes back stays."""
        a, b = self._taken[~idle], self._y[self._A.intercepts]
        self._has_left[self._A.columns[idle]] = True
        self._A.keep(~idle)
        self._s = self._s[~idle]
        self._join(a, b)

    def take(self, columns: Ints, slacks: Floats) -> None:
        """Let coefficients of further examples take part, with the slacks of their constraints."""
        order = np.argsort(np.concatenate([self._A.columns, columns]))
        b, slacks = self._y[self._A.intercepts], np.maximum(slacks, self._settings.idle_slack)
        a = np.concatenate([self._taken, self._complementarity() / slacks])[order]
        self._s = np.concatenate([self._s, slacks])[order]
        self._A.add(columns)
        self._join(a, b)

    def _join(self, a: Floats, b: Floats) -> None:
        self._y = np.zeros(self._A.size)
        self._y[self._A.coefficients], self._y[self._A.intercepts] = a, b

    @property
    def mean_product(self) -> float:
        """The mean product of a variable and its multiplier."""
        return self._complementarity()

    @property
    def n_products(self) -> int:
        """How many products of a variable and its multiplier make up the duality gap."""
        return 2 * int(np.count_nonzero(self._pairs)) + len(self._s)

    def step(self, floor: float = 0.0) -> bool:
        """Take one step, to products no smaller than ``floor``; False if it could not be taken."""
        newton = self._linearized()
        if newton is None:
            return False
        u, v, s, z, xi, a = self._u, self._v, self._s, self._z, self._xi, self._taken
        mean = self._complementarity()
        predicted = newton(-u * z, -v * xi, -s * a)
        target = (self._complementarity(predicted, *self._max_steps(predicted)) / mean) ** 3 * mean
        target = max(target, min(floor, mean))
        products = (
            target - u * z - predicted.u * predicted.z,
            target - v * xi + predicted.u * predicted.xi,
            target - s * a - predicted.s * predicted.y[self._A.coefficients],
        )
        corrected = self._centred(newton, newton(*products), products, target)
        if not np.all(np.isfinite(corrected.y)):
            return False
        share = self._settings.step_share
        primal, dual = (step if step == 1.0 else share * step for step in self._max_steps(corrected))
        self._u, self._v, self._s = u + primal * corrected.u, v - primal * corrected.u, s + primal * corrected.s
        self._y, self._z, self._xi = self._y + dual * corrected.y, z + dual * corrected.z, xi + dual * corrected.xi
        return True

    def _centred(
        self, newton: _Newton, direction: _Direction, products: tuple[Floats, Floats, Floats], target: float
    ) -> _Direction:
        """Return a direction with a longer step, if correctors find one."""
        settings = self._settings
        low, high = target / settings.spread, target * settings.spread

        def correction(ahead: Floats) -> Floats:
            return np.maximum(np.clip(ahead, low, high) - ahead, -high)

        length = self._max_steps(direction)
        for _ in range(settings.correctors):
            primal, dual = (min(1.0, step + settings.reach) for step in length)
            u, s = primal * direction.u, self._s + primal * direction.s
            a = self._taken + dual * direction.y[self._A.coefficients]
            ahead = (
                (self._u + u) * (self._z + dual * direction.z),
                (self._v - u) * (self._xi + dual * direction.xi),
                s * a,
            )
            uz, vxi, sa = (was + correction(there) for was, there in zip(products, ahead, strict=True))
            products = uz, vxi, sa
            candidate = newton(*products)
            reached = self._max_steps(candidate)
            if not sum(reached) >= sum(length) + 2 * settings.worthwhile * settings.reach:
                break
            direction, length = candidate, reached
        return direction

    def _linearized(self) -> _Newton | None:
        """Return Newton's equations here, as a function from changes of products to a direction; None if unsolvable.

        The direction makes the products u z, v xi and s a change as asked, and the equations hold.
        """
        A, places, pairs = self._A, self._A.coefficients, self._pairs
        u, v, s, z, xi, a = self._u, self._v, self._s, self._z, self._xi, self._taken
        residual = -A.times(self.multipliers)
        residual[places] += 1.0 - s
        self._largest_residual = float(np.abs(residual[places]).max(initial=0.0))
        shortfall = np.where(pairs, MARGIN - A.transposed(self._y) - xi + z, 0.0)
        proximal = self._settings.proximal / float(u[pairs].mean())
        D = np.where(pairs, 1.0 / (xi / v + z / u + proximal), 0.0)
        extra = np.zeros(A.size)
        extra[places] = s / a

        def times(dy: Floats) -> Floats:
            return A.times(D * A.transposed(dy)) + extra * dy

        system = self._factorised(D, extra, times)
        if system is None:
            return None

        def direction(uz: Floats, vxi: Floats, sa: Floats) -> _Direction:
            g = np.where(pairs, shortfall - vxi / v + uz / u, 0.0)
            right = A.times(D * g) - residual
            right[places] += sa / a
            dy = system.solve(right)
            du = D * (g - A.transposed(dy))
            dz = np.where(pairs, (uz - z * du) / u, 0.0)
            dxi = np.where(pairs, (vxi + xi * du) / v, 0.0)
            return _Direction(dy, du, (sa - s * dy[places]) / a, dz, dxi)

        return direction

    def _factorised(self, D: Floats, extra: Floats, times: Callable[[Floats], Floats]) -> _System | None:
        """Return the system of a step, with the least ridge that makes it definite; None if there is none."""
        while self._ridges:
            M = self._A.normal(D, self._threads, self._go_on)
            if M is None:
                return None
            try:
                system = _System(M, extra, times, self._factor, self._ridges[0], self._settings)
                return system if system.finished else None
            except np.linalg.LinAlgError:
                del self._ridges[0]
        return None

    def _factor(self, M: Floats) -> bool:
        return factorise(M, self._threads, self._go_on)

    def _max_steps(self, change: _Direction) -> tuple[float, float]:
        """Return how far u and s, and how far the multipliers can go, at most 1."""
        return (
            min(_max_step(self._u, change.u), _max_step(self._v, -change.u), _max_step(self._s, change.s)),
            min(
                _max_step(self._z, change.z),
                _max_step(self._xi, change.xi),
                _max_step(self._taken, change.y[self._A.coefficients]),
            ),
        )


def _max_step(values: Floats, change: Floats) -> float:
    """Return the share of a change, at most 1, after which a value is zero."""
    falling = change < 0
    return float(min(1.0, np.min(-values[falling] / change[falling], initial=np.inf)))
