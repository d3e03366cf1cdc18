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

from polymargin.solvers.linear_program_problem import MARGIN
from polymargin.support.factorisation import factorise
from polymargin.support.numeric import Bools, Floats, Ints
from polymargin.support.threads import for_each

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
    refinements: int = 2  # of the solution of a linear system, at most,
    residual: float = 1e-12  # unless what is left of the right side is so small
    first_sum: float = 100.0  # of the coefficients; with multipliers of root C it took a third of the steps away
    # Correctors after Mehrotra's, each of one more solution of the same system, as Gondzio's: they are to lengthen the
    # step by ``reach``, and bring products back that leave ``spread`` times the target, either way. Two took a third
    # of the steps away.
    correctors: int = 2
    reach: float = 0.3
    spread: float = 10.0
    worthwhile: float = 0.01  # share of the reach that a corrector must win
    # A coefficient is idle when it is below the first share of the mean and the slack of its constraint above the
    # second. Idle ones are left out as soon as they are the third share of all.
    idle_coefficient: float = 3e-3
    idle_slack: float = 0.05
    idle_share: float = 0.05
    idle_residual: float = 1.0  # as long as equations miss by more, slacks do not tell what will be zero


class _Constraints:
    """Products with the matrix of the constraints; pairs (i, j) are matrices of examples x classes, zero if j = y_i.

    ``columns`` are the examples whose coefficients take part, ascending.
    """

    def __init__(self, K: Floats, class_starts: Ints) -> None:
        n, k = len(K), len(class_starts) - 1
        starts, ends = class_starts[:-1], class_starts[1:]
        self.rows = [slice(starts[c], ends[c]) for c in range(k)]
        labels = np.repeat(np.arange(k), np.diff(class_starts))
        self._labels, self._own = labels, (np.arange(n), labels)
        self.pairs: Bools = np.ones((n, k), dtype=bool)
        self.pairs[self._own] = False
        self._take(np.arange(n), [np.column_stack([K[:, rows], np.ones(n)]) for rows in self.rows])

    def _take(self, columns: Ints, parts: list[Floats]) -> None:
        """Take a part of the matrix for each class, whose last column is that of the intercept."""
        ends = np.cumsum([part.shape[1] for part in parts])
        self._parts, self.columns = parts, columns
        self.size = int(ends[-1])
        self.groups = [slice(end - part.shape[1], end) for end, part in zip(ends, parts, strict=True)]
        self.intercepts: Ints = ends - 1
        self.coefficients: Ints = np.delete(np.arange(self.size), self.intercepts)

    def keep(self, kept: Bools) -> None:
        """Forget some of the coefficients."""
        with_intercept = np.ones(self.size, dtype=bool)
        with_intercept[self.coefficients] = kept
        parts = [part[:, with_intercept[group]] for part, group in zip(self._parts, self.groups, strict=True)]
        self._take(self.columns[kept], parts)

    def add(self, columns: Ints, values: Floats) -> None:
        """Take coefficients of further examples, with their kernel values (n x columns)."""
        every = np.concatenate([self.columns, columns])
        parts = []
        for c, part in enumerate(self._parts):
            mine = self._labels[columns] == c
            coefficients = np.column_stack([part[:, :-1], values[:, mine]])
            old = self.columns[self._labels[self.columns] == c]
            order = np.argsort(np.concatenate([old, columns[mine]]))
            parts.append(np.column_stack([coefficients[:, order], part[:, -1]]))
        self._take(np.sort(every), parts)

    def transposed(self, y: Floats) -> Floats:
        """Return A'y, a value for every pair."""
        scores = np.column_stack([part @ y[group] for part, group in zip(self._parts, self.groups, strict=True)])
        return scores[self._own][:, None] - scores

    def times(self, u: Floats) -> Floats:
        """Return A u."""
        B = -u
        B[self._own] = u.sum(axis=1)
        return np.concatenate([B[:, c] @ part for c, part in enumerate(self._parts)])

    def normal(self, D: Floats, threads: int, go_on: Callable[[], bool]) -> Floats | None:
        """Return the lower part of A diag(D) A', or None if asked not to go on."""
        M = np.zeros((self.size, self.size))
        total = D.sum(axis=1)

        def fill(block: tuple[int, int]) -> None:
            c, e = block
            mine, own, other, theirs = self._parts[c], self.rows[c], self._parts[e], self.rows[e]
            if not go_on():
                return
            if c == e:
                weight = D[:, c].copy()
                weight[own] = total[own]
                rooted = mine * np.sqrt(weight)[:, None]
                M[self.groups[c], self.groups[c]] = rooted.T @ rooted  # one factor twice: BLAS forms half of it
            else:
                cross = (mine[own] * D[own, e, None]).T @ other[own]
                cross += (mine[theirs] * D[theirs, c, None]).T @ other[theirs]
                M[self.groups[c], self.groups[e]] = -cross

        blocks = [(c, e) for c in range(len(self.groups)) for e in range(c + 1)]
        for_each(fill, blocks, threads)
        return M if go_on() else None


class _System:
    """A positive definite system, scaled to a unit diagonal and factorised; refinement undoes rounding.

    Raises LinAlgError if it is not positive definite.
    """

    def __init__(
        self,
        lower: Floats,
        extra: Floats,
        times: Callable[[Floats], Floats],
        threads: int,
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
        factorise(lower, threads)
        self._factor = lower

    def solve(self, right: Floats) -> Floats:
        """Return the solution."""
        solution = np.zeros_like(right)
        residual, wanted = right, self._settings.residual * float(np.linalg.norm(self._scale * right))
        for _ in range(self._settings.refinements + 1):
            scaled = cho_solve((self._factor, True), self._scale * residual, check_finite=False)
            solution += self._scale * scaled
            residual = right - self._times(solution)
            if not np.linalg.norm(self._scale * residual) > wanted:
                break
        return solution


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
        first = np.minimum(cost_bounds / 2.0, np.sqrt(cost_bounds))
        # What belongs to no pair is 1, so that it can be divided by, and its changes are 0.
        self._u = np.where(self._pairs, first[:, None], 1.0)
        self._v = np.where(self._pairs, cost_bounds[:, None] - self._u, 1.0)
        self._y = np.zeros(size)
        self._y[self._A.coefficients] = settings.first_sum / n
        self._s = np.ones(n)
        self._ridges = list(settings.ridges)
        self._may_leave: Bools = np.ones(n, dtype=bool)
        self._largest_residual = np.inf  # of the constraints of coefficients, at the last step
        margin = self._A.transposed(self._y)
        self._z = np.where(self._pairs, np.maximum(1.0, margin - MARGIN + 1.0), 1.0)
        self._xi = np.where(self._pairs, np.maximum(1.0, MARGIN - margin + 1.0), 1.0)

    @property
    def columns(self) -> Ints:
        """The examples whose coefficients take part."""
        return self._A.columns

    @property
    def coefficients(self) -> Floats:
        """The coefficients a of all examples: positive where they take part."""
        a = np.zeros(len(self._u))
        a[self._A.columns] = self._taken
        return a

    @property
    def _taken(self) -> Floats:
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
        u, v, s, z, xi, a = self._u, self._v, self._s, self._z, self._xi, self._taken
        if ahead is not None:
            u, v, s = u + primal * ahead.u, v - primal * ahead.u, s + primal * ahead.s
            z, xi, a = z + dual * ahead.z, xi + dual * ahead.xi, a + dual * ahead.y[self._A.coefficients]
        total = np.sum((u * z + v * xi)[self._pairs]) + s @ a
        return float(total) / (2 * np.count_nonzero(self._pairs) + len(s))

    def leave_out_idle(self) -> None:
        """Leave out coefficients that are on their way to zero; what has come back stays."""
        a, settings = self._taken, self._settings
        if self._largest_residual > settings.idle_residual:
            return
        idle = (a <= settings.idle_coefficient * a.mean()) & (self._s >= settings.idle_slack)
        idle &= self._may_leave[self._A.columns]
        if np.count_nonzero(idle) >= settings.idle_share * len(a):
            b = self.intercept
            self._A.keep(~idle)
            self._s = self._s[~idle]
            self._join(a[~idle], b)

    def take(self, columns: Ints, values: Floats, slacks: Floats) -> None:
        """Let coefficients of further examples take part, with their kernel values (n x columns)."""
        every, order = self.coefficients, np.argsort(np.concatenate([self._A.columns, columns]))
        b, slacks = self.intercept, np.maximum(slacks, self._settings.idle_slack)
        every[columns] = self._complementarity() / slacks
        self._s = np.concatenate([self._s, slacks])[order]
        self._A.add(columns, values)
        self._may_leave[columns] = False
        self._join(every[self._A.columns], b)

    def _join(self, a: Floats, b: Floats) -> None:
        self._y = np.zeros(self._A.size)
        self._y[self._A.coefficients], self._y[self._A.intercepts] = a, b

    def step(self) -> bool:
        """Take one step; False if it could not be taken."""
        newton = self._linearized()
        if newton is None:
            return False
        u, v, s, z, xi, a = self._u, self._v, self._s, self._z, self._xi, self._taken
        mean = self._complementarity()
        predicted = newton(-u * z, -v * xi, -s * a)
        target = (self._complementarity(predicted, *self._max_steps(predicted)) / mean) ** 3 * mean
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
                return _System(M, extra, times, self._threads, self._ridges[0], self._settings)
            except np.linalg.LinAlgError:
                del self._ridges[0]
        return None

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
