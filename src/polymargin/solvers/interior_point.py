r"""A primal-dual interior point method for the dual of the linear programming machine, with all of its constraints.

With the rows of :math:`\hat A` for the coefficients, :math:`\sigma_{ij}(m) K_{im}`, and for the intercepts, the same
with ones in place of kernel values, and slacks s of the coefficients' constraints,

.. math:: \max_u \; 2 \sum_{ij} u_{ij} \quad \text{subject to} \quad \hat A u + (s, 0) = (1, 0), \quad s \ge 0, \quad
    0 \le u_{ij} \le C_i ,

whose multipliers are :math:`y = (a, b)`, z for :math:`u \ge 0` and :math:`\xi` for :math:`u \le C`. A step of Newton's
method is a positive definite system in y, of size n + k,

.. math:: (\hat A D \hat A' + \mathrm{diag}(s / a, 0)) \, dy = \ldots, \quad D = (z / u + \xi / (C - u))^{-1} ,

and :math:`\hat A D \hat A'` has a block for every two classes, each a product of kernel values: 4 n^3 / k operations.
Predictor and corrector are Mehrotra's; both use one factorisation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from polymargin.solvers.linear_program_problem import MARGIN
from polymargin.support.numeric import Bools, Floats, Ints
from polymargin.support.threads import for_each

MATRICES_NEEDED = 4  # of n^2 numbers, at a time


@dataclass(frozen=True)
class InteriorPointSettings:
    """How steps are taken."""

    step_share: float = 0.9995  # of the step after which a variable would be zero
    ridge: float = 1e-13  # relative to the diagonal: intercepts may all be shifted, which leaves the system singular
    refinements: int = 2  # of the solution of a linear system
    first_multiplier: float = 1.0  # at most, in units of the inverse of a kernel value


class _Constraints:
    """Products with the matrix of the constraints; pairs (i, j) are matrices of examples x classes, zero if j = y_i."""

    def __init__(self, K: Floats, class_starts: Ints) -> None:
        n, k = len(K), len(class_starts) - 1
        starts, ends = class_starts[:-1], class_starts[1:]
        self.rows = [slice(starts[c], ends[c]) for c in range(k)]
        self.groups = [slice(starts[c] + c, ends[c] + c + 1) for c in range(k)]  # its coefficients and intercept
        self.intercepts: Ints = np.array([group.stop - 1 for group in self.groups])
        self.coefficients: Ints = np.delete(np.arange(n + k), self.intercepts)
        self._K = np.ones((n, n + k))
        self._K[:, self.coefficients] = K
        self._own = np.arange(n), np.repeat(np.arange(k), np.diff(class_starts))
        self.pairs: Bools = np.ones((n, k), dtype=bool)
        self.pairs[self._own] = False

    def transposed(self, y: Floats) -> Floats:
        """Return A'y, a value for every pair."""
        scores = np.column_stack([self._K[:, group] @ y[group] for group in self.groups])
        return scores[self._own][:, None] - scores

    def times(self, u: Floats) -> Floats:
        """Return A u."""
        B = -u
        B[self._own] = u.sum(axis=1)
        return np.concatenate([B[:, c] @ self._K[:, group] for c, group in enumerate(self.groups)])

    def normal(self, D: Floats, threads: int, go_on: Callable[[], bool]) -> Floats | None:
        """Return the lower part of A diag(D) A', or None if asked not to go on."""
        M = np.zeros((self._K.shape[1],) * 2)
        total = D.sum(axis=1)

        def fill(block: tuple[int, int]) -> None:
            c, e = block
            group, own, other, theirs = self.groups[c], self.rows[c], self.groups[e], self.rows[e]
            if not go_on():
                return
            if c == e:
                weight = D[:, c].copy()
                weight[own] = total[own]
                rooted = self._K[:, group] * np.sqrt(weight)[:, None]
                M[group, group] = rooted.T @ rooted  # one factor twice: BLAS forms half of it
            else:
                M[group, other] = -(self._K[own, group] * D[own, e, None]).T @ self._K[own, other]
                M[group, other] -= (self._K[theirs, group] * D[theirs, c, None]).T @ self._K[theirs, other]

        blocks = [(c, e) for c in range(len(self.groups)) for e in range(c + 1)]
        for_each(fill, blocks, threads)
        return M if go_on() else None


class _System:
    """A positive definite system, scaled to a unit diagonal and factorised; refinement undoes rounding.

    Raises LinAlgError if it is not positive definite.
    """

    def __init__(
        self, lower: Floats, extra: Floats, times: Callable[[Floats], Floats], settings: InteriorPointSettings
    ) -> None:
        diagonal = lower.diagonal() + extra
        if not (np.all(diagonal > 0) and np.all(np.isfinite(diagonal))):
            raise np.linalg.LinAlgError("the diagonal is not positive and finite")
        self._times, self._scale = times, 1.0 / np.sqrt(diagonal)
        self._refinements = settings.refinements
        lower *= self._scale
        lower *= self._scale[:, None]
        np.fill_diagonal(lower, 1.0 + settings.ridge)
        self._factor = cho_factor(lower, lower=True, overwrite_a=True, check_finite=False)

    def solve(self, right: Floats) -> Floats:
        """Return the solution."""
        solution = np.zeros_like(right)
        residual = right
        for _ in range(self._refinements + 1):
            solution += self._scale * cho_solve(self._factor, self._scale * residual, check_finite=False)
            residual = right - self._times(solution)
        return solution


class _Direction(NamedTuple):
    """Changes of all variables."""

    y: Floats
    u: Floats
    s: Floats
    z: Floats
    xi: Floats


class InteriorPoint:
    """The iterates.

    Parameters
    ----------
    K : array of shape (n, n)
        Kernel values, best of a size around 1; examples sorted by class.
    class_starts : array of shape (k + 1,)
        Class c has the examples from ``class_starts[c]`` to ``class_starts[c + 1]``.
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
        K: Floats,
        class_starts: Ints,
        cost_bounds: Floats,
        threads: int,
        go_on: Callable[[], bool],
        settings: InteriorPointSettings,
    ) -> None:
        self._A = _Constraints(K, class_starts)
        self._threads, self._go_on, self._settings = threads, go_on, settings
        n, size = len(K), len(K) + len(class_starts) - 1
        self._pairs = self._A.pairs
        first = np.minimum(cost_bounds / 2.0, settings.first_multiplier)
        # What belongs to no pair is 1, so that it can be divided by, and its changes are 0.
        self._u = np.where(self._pairs, first[:, None], 1.0)
        self._v = np.where(self._pairs, cost_bounds[:, None] - self._u, 1.0)
        self._y = np.zeros(size)
        self._y[self._A.coefficients] = 1.0 / n
        self._s = np.ones(n)
        margin = self._A.transposed(self._y)
        self._z = np.where(self._pairs, np.maximum(1.0, margin - MARGIN + 1.0), 1.0)
        self._xi = np.where(self._pairs, np.maximum(1.0, MARGIN - margin + 1.0), 1.0)

    @property
    def coefficients(self) -> Floats:
        """The coefficients a, all positive."""
        return self._y[self._A.coefficients]

    @property
    def negligible(self) -> float:
        """A coefficient below this is rather zero in the solution: its slack is larger."""
        return float(np.sqrt(self._complementarity()))

    @property
    def intercept(self) -> Floats:
        """The intercepts b."""
        return self._y[self._A.intercepts]

    @property
    def multipliers(self) -> Floats:
        """The multipliers u, examples x classes."""
        return np.where(self._pairs, self._u, 0.0)

    @property
    def imbalance(self) -> float:
        """By how much the multipliers miss the equations of the intercepts."""
        return float(np.abs(self._A.times(self.multipliers)[self._A.intercepts]).max())

    def _complementarity(self, ahead: _Direction | None = None, primal: float = 0.0, dual: float = 0.0) -> float:
        """Return the mean product of variables and their multipliers, here or some way ahead."""
        u, v, s, z, xi, a = self._u, self._v, self._s, self._z, self._xi, self.coefficients
        if ahead is not None:
            u, v, s = u + primal * ahead.u, v - primal * ahead.u, s + primal * ahead.s
            z, xi, a = z + dual * ahead.z, xi + dual * ahead.xi, a + dual * ahead.y[self._A.coefficients]
        total = np.sum((u * z + v * xi)[self._pairs]) + s @ a
        return float(total) / (2 * np.count_nonzero(self._pairs) + len(s))

    def step(self) -> bool:
        """Take one step; False if it could not be taken."""
        newton = self._linearized()
        if newton is None:
            return False
        u, v, s, z, xi, a = self._u, self._v, self._s, self._z, self._xi, self.coefficients
        mean = self._complementarity()
        predicted = newton(-u * z, -v * xi, -s * a)
        target = (self._complementarity(predicted, *self._max_steps(predicted)) / mean) ** 3 * mean
        corrected = newton(
            target - u * z - predicted.u * predicted.z,
            target - v * xi + predicted.u * predicted.xi,
            target - s * a - predicted.s * predicted.y[self._A.coefficients],
        )
        if not np.all(np.isfinite(corrected.y)):
            return False
        share = self._settings.step_share
        primal, dual = (step if step == 1.0 else share * step for step in self._max_steps(corrected))
        self._u, self._v, self._s = u + primal * corrected.u, v - primal * corrected.u, s + primal * corrected.s
        self._y, self._z, self._xi = self._y + dual * corrected.y, z + dual * corrected.z, xi + dual * corrected.xi
        return True

    def _linearized(self) -> Callable[[Floats, Floats, Floats], _Direction] | None:
        """Return Newton's equations here, as a function from changes of products to a direction; None if unsolvable.

        The direction makes the products u z, v xi and s a change as asked, and the equations hold.
        """
        A, places, pairs = self._A, self._A.coefficients, self._pairs
        u, v, s, z, xi, a = self._u, self._v, self._s, self._z, self._xi, self.coefficients
        residual = -A.times(self.multipliers)
        residual[places] += 1.0 - s
        shortfall = np.where(pairs, MARGIN - A.transposed(self._y) - xi + z, 0.0)
        D = np.where(pairs, 1.0 / (xi / v + z / u), 0.0)
        M = A.normal(D, self._threads, self._go_on)
        if M is None:
            return None
        extra = np.zeros(len(M))
        extra[places] = s / a
        try:
            system = _System(M, extra, lambda dy: A.times(D * A.transposed(dy)) + extra * dy, self._settings)
        except np.linalg.LinAlgError:
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

    def _max_steps(self, change: _Direction) -> tuple[float, float]:
        """Return how far u and s, and how far the multipliers can go, at most 1."""
        return (
            min(_max_step(self._u, change.u), _max_step(self._v, -change.u), _max_step(self._s, change.s)),
            min(
                _max_step(self._z, change.z),
                _max_step(self._xi, change.xi),
                _max_step(self.coefficients, change.y[self._A.coefficients]),
            ),
        )


def _max_step(values: Floats, change: Floats) -> float:
    """Return the share of a change, at most 1, after which a value is zero."""
    falling = change < 0
    return float(min(1.0, np.min(-values[falling] / change[falling], initial=np.inf)))
