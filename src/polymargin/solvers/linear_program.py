r"""Row and column generation for the linear programming machine, on HiGHS.

With :math:`\sigma_{ij}(m) = 1` if :math:`y_m = y_i`, -1 if :math:`y_m = j` and 0 otherwise, the machine is

.. math:: \min_{a \ge 0,\, \xi \ge 0,\, b} \; \sum_m a_m + \sum_i C_i \sum_{j \ne y_i} \xi_{ij}
    \quad \text{subject to} \quad
    \sum_m \sigma_{ij}(m) K_{im} a_m + b_{y_i} - b_j + \xi_{ij} \ge 2 \quad (j \ne y_i),

n (k - 1) constraints on n coefficients. Its dual has a multiplier u for each of the constraints. Put
:math:`B_{ij} = -u_{ij}` for :math:`j \ne y_i` and :math:`B_{i, y_i} = \sum_j u_{ij}`, so that rows of B sum to zero:

.. math:: \max_u \; 2 \sum_i \sum_{j \ne y_i} u_{ij} \quad \text{subject to} \quad
    (K'B)_{m, y_m} \le 1, \quad \sum_i B_{in} = 0, \quad 0 \le u_{ij} \le C_i .

HiGHS is given this dual, on some multipliers and some coefficients. The slacks are then mere bounds, and its basis has
a row for each coefficient instead of one for each constraint: that is several times faster than the primal. The duals
of its rows are a and b. At its solution, whatever was left out,

- the hinges :math:`\xi_{ij} = \max(0, 2 - (f_{y_i}(x_i) - f_j(x_i)))` of *all* constraints give a primal objective. The
  most violated constraints join;
- with :math:`v = \max(1, \max_m (K'B)_{m, y_m})` over *all* coefficients, u / v is feasible for the whole dual, and
  gives a lower bound. The coefficients whose constraint is violated most join.

So there is a certificate in every round. Both sets end far smaller than the whole: a coefficient or a multiplier that
is zero in the solution is mostly never looked at.

A hard margin, or a C that is large against the kernel, starts with a lower limit to the multipliers. It is raised as
long as a multiplier rests there: a hard margin, where there is one, is the soft one from some finite C on, and for a
finite limit the program always has a solution. At ever higher limits the lower bound of inseparable data grows without
end.

Where the classes overlap, most constraints are active: generation does not pay, and the simplex method takes long for
so many. If there is room for its matrices, an interior point method then goes on with the whole program, see
``polymargin.solvers.interior_point``.

The solution may leave the intercepts some play, most often when C is small. :func:`_middle_intercept` then takes the
middle, so that what is predicted does not depend on the order of the examples.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from polymargin.formulations.solution import Floats, Ints, Solution, TrainingSet, relative_gap
from polymargin.kernels import KernelSession
from polymargin.solvers.interior_point import MARGIN, InteriorPoint
from polymargin.solvers.linear_program_master import Master

# Up to so many examples the last rounds cost little, and the exact answer does not depend on the order of the rows. Who
# sets a looser tolerance wants none of them.
_SMALL, _LOOSE = 1024, 1e-3
_EXACT = 1e-10  # relative gap that then ends it, if constraints to add do not run out before
_VIOLATION = 1e-9  # what counts as a violated constraint, of either program
_FIRST = 5  # examples of each class to begin with
_MOST_PAIRS = 400  # that join in a round, besides a fifth of the number of examples
_MOST_COLUMNS = 100  # likewise, besides a twenty-fifth
_FIRST_LIMIT = 10.0  # to multipliers, in units of the inverse of a kernel value
_NEARLY = 1e-2  # relative gap at which the limit is raised
_HIGHEST_LIMIT = 1e10
_OVERLAPPING = 1.5  # pairs for each example, from which on the interior point method is the faster one
MATRICES = 4  # of n^2 numbers, that it needs at a time
_MOST_STEPS = 200  # of the interior point method, which takes some dozens
_ROUNDED_OFF = 1e-9  # what rounding leaves of the equations of the intercepts, relative to the multipliers
_LEEWAY = 1e-6  # what the primal objective may lose, relatively, for coefficients that are zero
HOPELESS = 1e8  # sum of coefficients, times a kernel value, from which a hard margin is taken not to exist


@dataclass(frozen=True)
class LinearProgramSolution(Solution):
    """The solved linear program."""

    coefficients: Floats  # a, of each example
    intercept: Floats
    multipliers: sp.csr_array  # u, examples x classes
    solver: str


@dataclass(frozen=True)
class Start:
    """What the solution is expected to be made of, by numbers of examples."""

    columns: Ints  # coefficients
    examples: Ints  # of constraints
    rivals: Ints  # their other classes


class _Program:
    """The whole program: what a point is worth, and what it violates."""

    def __init__(self, gram: KernelSession, training: TrainingSet) -> None:
        self.gram = gram
        self.bounds = training.bounds
        self.upper = training.upper
        self.hard = bool(np.isinf(training.upper[0]))
        n = len(training.order)
        self.codes = training.class_of(np.arange(n))
        self.own = np.arange(n), self.codes
        self.shape = n, training.n_classes

    def shortfall(self, coefficients: Floats) -> Floats:
        """Return what each margin lacks at intercepts zero, -inf for the own class."""
        used = np.flatnonzero(coefficients)
        spread = np.zeros((len(used), self.shape[1]))
        spread[np.arange(len(used)), self.codes[used]] = coefficients[used]
        scores = self.gram.product(used, spread)
        short = MARGIN - (scores[self.own][:, None] - scores)
        short[self.own] = -np.inf
        return short

    def lack(self, short: Floats, intercept: Floats) -> Floats:
        """Return what each margin lacks."""
        return short - (intercept[self.codes][:, None] - intercept)

    def primal(self, coefficients: Floats, lack: Floats, upper: Floats) -> float:
        """Return the primal objective for the costs ``upper``, infinite where a hard margin is missed."""
        hinges = np.maximum(lack, 0.0).sum(axis=1)
        missed = hinges > 0
        return float(coefficients.sum() + upper[missed] @ hinges[missed])

    def prices(self, multipliers: sp.csr_array) -> Floats:
        """Return the left sides of the dual's constraints, one for each coefficient."""
        B = -multipliers.toarray()
        B[self.own] = -B.sum(axis=1)
        used = np.flatnonzero(B.any(axis=1))
        return self.gram.transposed_product(used, B[used])[self.own]

    def spread(self, examples: Ints, rivals: Ints, multipliers: Floats) -> sp.csr_array:
        """Return the multipliers of pairs as a matrix."""
        used = multipliers > 0
        return sp.csr_array((multipliers[used], (examples[used], rivals[used])), shape=self.shape)


class _Best:
    """The best point of either program so far."""

    def __init__(self, program: _Program) -> None:
        n, k = program.shape
        self.program = program
        self.coefficients, self.intercept = np.zeros(n), np.zeros(k)
        self.multipliers = sp.csr_array((n, k))
        self.primal = program.primal(self.coefficients, program.shortfall(self.coefficients), program.upper)
        self.dual = 0.0

    @property
    def gap(self) -> float:
        """The relative gap."""
        return relative_gap(self.primal, self.dual)

    def offer_primal(self, coefficients: Floats, intercept: Floats, lack: Floats, leeway: float = 0.0) -> bool:
        """Take a point, or its multiple that has every margin, if it is better, or worse by no more than ``leeway``.

        Returns whether it was taken.
        """
        factor, value = 1.0, self.program.primal(coefficients, lack, self.program.upper)
        smallest = MARGIN - float(lack.max())
        if smallest > 0:
            scaled = MARGIN / smallest
            if scaled * float(coefficients.sum()) < value:
                factor, value = scaled, scaled * float(coefficients.sum())
        if value > self.primal * (1.0 + leeway):
            return False
        self.primal, self.coefficients, self.intercept = value, factor * coefficients, factor * intercept
        return True

    def offer_dual(self, multipliers: sp.csr_array, largest_price: float) -> None:
        """Take a point, scaled until it is feasible, if it is better."""
        feasible = multipliers / max(1.0, largest_price)
        value = MARGIN * float(feasible.sum())
        if value >= self.dual:
            self.dual, self.multipliers = value, feasible

    def centre(self) -> None:
        """Move the intercepts to the middle of those that are as good."""
        short = self.program.shortfall(self.coefficients)
        intercept = _middle_intercept(self.program, short, self.intercept, self.multipliers.toarray())
        lack = self.program.lack(short, intercept)
        self.offer_primal(self.coefficients, intercept, lack, leeway=_EXACT)


def _middle_intercept(program: _Program, short: Floats, intercept: Floats, multipliers: Floats) -> Floats:
    r"""Return the middle of the intercepts that are optimal for the coefficients, with sum zero.

    By complementary slackness those are the b for which :math:`b_{y_i} - b_j` is at least the shortfall of the pair
    (i, j) where :math:`u_{ij} < C_i`, and at most that where :math:`u_{ij} > 0`: upper bounds :math:`D_{nj}` of
    :math:`b_n - b_j`. Tightened along all ways from n to j, every column of D is such a b, and so is every row of -D.
    Their mean is returned. With two classes it is the middle of the interval.
    """
    first = program.bounds[:-1]
    small = 1e-9 * multipliers.max(initial=0.0)
    movable = multipliers < program.upper[:, None] - small
    lower = np.maximum.reduceat(np.where(movable, short, -np.inf), first, axis=0)
    upper = np.minimum.reduceat(np.where(multipliers > small, short, np.inf), first, axis=0)
    here = intercept[:, None] - intercept
    D = np.maximum(np.minimum(upper, -lower.T), here)  # not past the point we have, which rounding may have put outside
    np.fill_diagonal(D, 0.0)
    for via in range(len(D)):
        D = np.minimum(D, D[:, [via]] + D[[via]])
    if not np.all(np.isfinite(D)):  # the multipliers are not optimal
        D = here
    return (D.mean(axis=1) - D.mean(axis=0)) / 2.0


class _Rounds:
    """The rounds: solve the master, see what it is worth, let join what it violates."""

    name = "highs"

    def __init__(
        self,
        gram: KernelSession,
        training: TrainingSet,
        start: Start | None,
        interrupt: Callable[[], bool],
        max_iterations: int,
    ) -> None:
        self._program = _Program(gram, training)
        n, k = self._program.shape
        columns, pairs = self._first(start)
        self._scale = float(np.abs(gram.block(np.arange(n), columns)).max()) or 1.0
        self._upper = self._scale * self._program.upper  # in the units of the master
        self._limit = _FIRST_LIMIT
        self.max_iterations = max_iterations
        self._has_pair, self._has_column = np.zeros(n * k, dtype=bool), np.zeros(n, dtype=bool)
        self.master = Master(gram, self._program.codes, k, self._scale, interrupt)
        self.best = _Best(self._program)
        self._join(pairs, columns)

    def _first(self, start: Start | None) -> tuple[Ints, Ints]:
        """Return the columns and pairs to begin with."""
        k = self._program.shape[1]
        ranges = zip(self._program.bounds[:-1], self._program.bounds[1:] - 1, strict=True)
        columns = np.concatenate([np.linspace(*ends, _FIRST) for ends in ranges]).astype(np.int64)
        examples, rivals = np.repeat(columns, k), np.tile(np.arange(k), len(columns))
        if start is not None:
            columns = np.concatenate([columns, start.columns])
            examples, rivals = np.concatenate([examples, start.examples]), np.concatenate([rivals, start.rivals])
        others = rivals != self._program.codes[examples]
        return np.unique(columns), np.unique((examples * k + rivals)[others])

    def _join(self, pairs: Ints, columns: Ints) -> None:
        examples, rivals = np.divmod(pairs, self._program.shape[1])
        if len(pairs):
            self.master.add_pairs(examples, rivals, np.minimum(self._upper[examples], self._limit))
            self._has_pair[pairs] = True
        if len(columns):
            self.master.add_columns(columns)
            self._has_column[columns] = True

    @property
    def iterations(self) -> int:
        """Iterations of the simplex method."""
        return self.master.iterations

    @property
    def overlapping(self) -> bool:
        """Whether so many constraints are active that generating them does not pay."""
        n = self._program.shape[0]
        return not self._program.hard and n > _SMALL and len(self.master.examples) > _OVERLAPPING * n

    def next(self, target: float) -> str:
        """Do one round; return why there is no further one, or nothing."""
        program, best = self._program, self.best
        status = self.master.solve(self.max_iterations)
        if status:
            return status
        multipliers, joined, intercept = self.master.solution()
        coefficients = np.zeros(program.shape[0])
        coefficients[self.master.columns] = joined / self._scale
        lack = program.lack(program.shortfall(coefficients), intercept)
        best.offer_primal(coefficients, intercept, lack)
        spread = program.spread(self.master.examples, self.master.rivals, multipliers / self._scale)
        price = program.prices(spread)
        best.offer_dual(spread, float(price.max()))
        if best.gap <= target:
            return "converged"
        rests = self._rests_at_limit(multipliers)
        pairs = _largest(np.where(self._has_pair, 0.0, lack.ravel()), _VIOLATION, _MOST_PAIRS + len(price) // 5)
        columns = _largest(np.where(self._has_column, 0.0, price), 1.0 + _VIOLATION, _MOST_COLUMNS + len(price) // 25)
        self._join(pairs, columns)
        settled = len(pairs) + len(columns) == 0
        if rests:
            limited = program.primal(coefficients, lack, np.minimum(program.upper, self._limit / self._scale))
            if settled or relative_gap(limited, best.dual) <= _NEARLY:
                return self._raise_limit()
        return "precision" if settled and not rests else ""

    def _rests_at_limit(self, multipliers: Floats) -> bool:
        """Tell whether a multiplier is at the limit, and might go beyond."""
        higher = self._upper[self.master.examples] > self._limit
        return bool(np.any(multipliers[higher] >= self._limit * (1 - 1e-9)))

    def _raise_limit(self) -> str:
        if self._program.hard and self._scale * self.best.dual > HOPELESS:
            return "unbounded"
        if self._limit >= _HIGHEST_LIMIT:
            return "precision"
        self._limit *= 10.0
        self.master.limit(np.minimum(self._upper[self.master.examples], self._limit))
        return ""


class _WholeProgram:
    """The interior point method on all pairs and coefficients, with the same interface as the rounds."""

    name = "interior-point"

    def __init__(
        self, gram: KernelSession, training: TrainingSet, before: _Rounds, threads: int, go_on: Callable[[], bool]
    ) -> None:
        self._program, self.best = before.best.program, before.best
        every = np.arange(len(training.order))
        K = gram.block(every, every)
        self._scale = float(np.abs(K).max()) or 1.0
        K /= self._scale
        self._method = InteriorPoint(K, training.bounds, self._scale * training.upper, threads, go_on)
        self._go_on = go_on
        self._max_iterations = before.max_iterations
        self._steps = 0
        self.iterations = before.iterations  # of both methods

    def next(self, target: float) -> str:
        """Take one step; return why there is no further one, or nothing."""
        method, program, best = self._method, self._program, self.best
        if self.iterations == self._max_iterations:
            return "max_iter"
        if self._steps == _MOST_STEPS or not method.step():
            return "precision" if self._go_on() else ""
        self._steps += 1
        self.iterations += 1
        multipliers = method.multipliers / self._scale
        if method.imbalance <= _ROUNDED_OFF * float(method.multipliers.sum()):
            spread = sp.csr_array(multipliers)
            best.offer_dual(spread, float(program.prices(spread).max()))
        coefficients = method.coefficients
        self._offer(coefficients, 0.0)
        if best.gap > target:
            return ""
        for share in (1.0, 0.1, 0.01, 0.001):
            few = np.where(coefficients > share * method.negligible, coefficients, 0.0)
            if self._offer(few, _LEEWAY):
                break
        return "converged"

    def _offer(self, coefficients: Floats, leeway: float) -> bool:
        """Offer coefficients with their intercepts; whether they were taken."""
        coefficients, intercept = coefficients / self._scale, self._method.intercept
        lack = self._program.lack(self._program.shortfall(coefficients), intercept)
        return self.best.offer_primal(coefficients, intercept, lack, leeway)


def solve_linear_program(
    gram: KernelSession,
    training: TrainingSet,
    start: Start | None,
    *,
    budget_bytes: int,
    threads: int,
    tolerance: float,
    max_iterations: int,
    time_limit: float,
    progress: Callable[..., bool] | None,
) -> dict[str, Any]:
    """Solve the linear program by row and column generation.

    Parameters
    ----------
    gram : KernelSession
        Kernel values between the examples.
    training : TrainingSet
        The examples, sorted by class, with their costs, all finite or all infinite.
    start : Start or None
        Coefficients and constraints to begin with, besides a few of each class.
    budget_bytes : int
        Memory for kernel values, and for the matrices of the interior point method.
    threads : int
        Threads of the interior point method; the result does not depend on them.
    tolerance : float
        Relative gap to stop at. If it is at most 1e-3, problems of up to 1,024 examples are solved exactly.
    max_iterations : int
        Most iterations of the simplex method in all; -1 for no limit.
    time_limit : float
        Seconds after which to stop.
    progress : callable or None
        Called as ``progress(0, 1, iterations, gap, answer)`` in every round, ``answer()`` being what would be returned
        now; returns False to stop.

    Returns
    -------
    dict
        ``coefficients`` (n,), ``intercept`` (k,) and their objective ``primal``; ``multipliers`` (CSR, (n, k)) and
        theirs, ``dual``; the relative gap ``violation``; ``iterations``; ``status``: "converged", "max_iter",
        "time_limit", "stopped", "precision" or, for a hard margin that does not exist, "unbounded"; ``evaluations`` of
        the kernel; the ``solver`` that ended it, "highs" or "interior-point".
    """
    deadline = time.perf_counter() + time_limit

    def late() -> bool:
        return time.perf_counter() > deadline

    generation = _Rounds(gram, training, start, late, max_iterations)
    rounds: _Rounds | _WholeProgram = generation
    best = generation.best

    def go_on() -> bool:
        return not late() and (progress is None or progress(0, 1, rounds.iterations, best.gap))

    def answer(status: str = "stopped") -> dict[str, Any]:
        return {
            "coefficients": best.coefficients,
            "intercept": best.intercept - best.intercept.mean(),
            "multipliers": best.multipliers,
            "primal": best.primal,
            "dual": min(best.dual, best.primal),  # rounding may have put it above
            "violation": max(best.gap, 0.0),
            "iterations": rounds.iterations,
            "status": status,
            "evaluations": gram.evaluations,
            "solver": rounds.name,
        }

    room = budget_bytes >= 8 * MATRICES * len(training.order) ** 2
    exactly = len(training.order) <= _SMALL and tolerance <= _LOOSE
    target = min(tolerance, _EXACT) if exactly else tolerance
    status = ""
    while not status:
        status = rounds.next(target)
        if not status and late():
            status = "time_limit"
        if not status and progress is not None and not progress(0, 1, rounds.iterations, best.gap, answer):
            status = "stopped"
        if not status and room and rounds is generation and generation.overlapping:
            rounds = _WholeProgram(gram, training, generation, threads, go_on)
            target = min(target, _LEEWAY)
        if status == "precision" and rounds is not generation and best.gap > tolerance:
            rounds, room, status = generation, False, ""  # what rounding ended, the simplex method may bring to an end
    if best.gap <= tolerance:
        best.centre()
        status = "converged"
    return answer(status)


def _largest(values: Floats, least: float, count: int) -> Ints:
    """Return the places of the largest values above ``least``, at most ``count`` of them."""
    places = np.flatnonzero(values > least)
    if len(places) > count:
        places = places[np.argpartition(-values[places], count)[:count]]
    return np.sort(places)
