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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from polymargin.support.threads import for_each

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MARGIN = 2.0
_SHORT_OF_BOUND = 0.9995  # of the way to where a variable would be zero
_RIDGE = 1e-13  # relative to the diagonal: intercepts may all be shifted, which leaves the system singular
_REFINEMENTS = 2
_FIRST_MULTIPLIER = 1.0  # at most, in units of the inverse of a kernel value


class _Constraints:
    """Products with the matrix of the constraints; pairs (i, j) are matrices of examples x classes, zero if j = y_i."""

    def __init__(self, K: Floats, bounds: Ints) -> None:
        n, k = len(K), len(bounds) - 1
        self.rows = [slice(bounds[c], bounds[c + 1]) for c in range(k)]
        self.groups = [slice(bounds[c] + c, bounds[c + 1] + c + 1) for c in range(k)]  # its coefficients and intercept
        self.intercepts = np.array([group.stop - 1 for group in self.groups])
        self.coefficients = np.delete(np.arange(n + k), self.intercepts)
        self._K = np.ones((n, n + k))
        self._K[:, self.coefficients] = K
        codes = np.repeat(np.arange(k), np.diff(bounds))
        self._own = np.arange(n), codes
        self.rivals = np.ones((n, k), dtype=bool)
        self.rivals[self._own] = False

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
                columns = self._K[:, group]
                M[group, group] = (columns * weight[:, None]).T @ columns
            else:
                M[group, other] = -(self._K[own, group] * D[own, e, None]).T @ self._K[own, other]
                M[group, other] -= (self._K[theirs, group] * D[theirs, c, None]).T @ self._K[theirs, other]

        blocks = [(c, e) for c in range(len(self.groups)) for e in range(c + 1)]
        for_each(fill, blocks, threads)
        return M if go_on() else None


class _System:
    """A positive definite system, scaled to a unit diagonal; what rounding took is given back by refinement."""

    def __init__(self, lower: Floats, extra: Floats, times: Callable[[Floats], Floats]) -> None:
        diagonal = lower.diagonal() + extra
        self.sound = bool(np.all(diagonal > 0) and np.all(np.isfinite(diagonal)))
        if not self.sound:
            return
        self._times, self._scale = times, 1.0 / np.sqrt(diagonal)
        lower *= self._scale
        lower *= self._scale[:, None]
        np.fill_diagonal(lower, 1.0 + _RIDGE)
        try:
            self._factor = cho_factor(lower, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            self.sound = False

    def solve(self, right: Floats) -> Floats:
        """Return the solution."""
        solution = np.zeros_like(right)
        left = right
        for _ in range(_REFINEMENTS + 1):
            solution += self._scale * cho_solve(self._factor, self._scale * left, check_finite=False)
            left = right - self._times(solution)
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
    bounds : array of shape (k + 1,)
        Where the classes begin and end.
    upper : array of shape (n,)
        The costs C_i, finite.
    threads : int
        How many blocks of the system are formed at a time.
    go_on : callable
        Asked now and then; when it says no, :meth:`step` returns early.
    """

    def __init__(self, K: Floats, bounds: Ints, upper: Floats, threads: int, go_on: Callable[[], bool]) -> None:
        self._A = _Constraints(K, bounds)
        self._threads, self._go_on = threads, go_on
        n, size = len(K), K.shape[0] + len(bounds) - 1
        self._pairs = self._A.rivals
        # What belongs to no pair is 1, so that it can be divided by, and its changes are 0.
        self._u = np.where(self._pairs, np.minimum(upper / 2.0, _FIRST_MULTIPLIER)[:, None], 1.0)
        self._v = np.where(self._pairs, upper[:, None] - self._u, 1.0)
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
        A, places = self._A, self._A.coefficients
        u, v, s, z, xi, a = self._u, self._v, self._s, self._z, self._xi, self.coefficients
        missing = -A.times(self.multipliers)
        missing[places] += 1.0 - s
        short = np.where(self._pairs, MARGIN - A.transposed(self._y) - xi + z, 0.0)
        D = np.where(self._pairs, 1.0 / (xi / v + z / u), 0.0)
        M = A.normal(D, self._threads, self._go_on)
        if M is None:
            return False
        extra = np.zeros(len(M))
        extra[places] = s / a
        system = _System(M, extra, lambda dy: A.times(D * A.transposed(dy)) + extra * dy)
        if not system.sound:
            return False

        def direction(uz: Floats, vxi: Floats, sa: Floats) -> _Direction:
            """Return the changes that make products change so, and equations hold."""
            g = np.where(self._pairs, short - vxi / v + uz / u, 0.0)
            right = A.times(D * g) - missing
            right[places] += sa / a
            dy = system.solve(right)
            du = D * (g - A.transposed(dy))
            dz = np.where(self._pairs, (uz - z * du) / u, 0.0)
            dxi = np.where(self._pairs, (vxi + xi * du) / v, 0.0)
            return _Direction(dy, du, (sa - s * dy[places]) / a, dz, dxi)

        mean = self._complementarity()
        predicted = direction(-u * z, -v * xi, -s * a)
        towards = (self._complementarity(predicted, *self._room(predicted)) / mean) ** 3 * mean
        corrected = direction(
            towards - u * z - predicted.u * predicted.z,
            towards - v * xi + predicted.u * predicted.xi,
            towards - s * a - predicted.s * predicted.y[places],
        )
        primal, dual = (length if length == 1.0 else _SHORT_OF_BOUND * length for length in self._room(corrected))
        if not np.all(np.isfinite(corrected.y)):
            return False
        self._u, self._v, self._s = u + primal * corrected.u, v - primal * corrected.u, s + primal * corrected.s
        self._y, self._z, self._xi = self._y + dual * corrected.y, z + dual * corrected.z, xi + dual * corrected.xi
        return True

    def _room(self, change: _Direction) -> tuple[float, float]:
        """Return how far u and s, and how far the multipliers can go, at most 1."""
        return (
            min(_way(self._u, change.u), _way(self._v, -change.u), _way(self._s, change.s)),
            min(
                _way(self._z, change.z),
                _way(self._xi, change.xi),
                _way(self.coefficients, change.y[self._A.coefficients]),
            ),
        )


def _way(values: Floats, change: Floats) -> float:
    """Return the share of a change, at most 1, after which a value is zero."""
    falling = change < 0
    return float(min(1.0, np.min(-values[falling] / change[falling], initial=np.inf)))
