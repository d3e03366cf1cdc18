r"""Row and column generation for the linear programming machine, on HiGHS.

With :math:`\sigma_{ij}(m) = 1` if :math:`y_m = y_i`, -1 if :math:`y_m = j` and 0 otherwise, the machine is

.. math:: \min_{a \ge 0,\, \xi \ge 0,\, b} \; \sum_m a_m + \sum_i C_i \sum_{j \ne y_i} \xi_{ij}
    \quad \text{subject to} \quad
    \sum_m \sigma_{ij}(m) K_{im} a_m + b_{y_i} - b_j + \xi_{ij} \ge 2 \quad (j \ne y_i),

n (k - 1) constraints on n coefficients. Its dual has a multiplier u for each of the constraints. Put
:math:`B_{ij} = -u_{ij}` for :math:`j \ne y_i` and :math:`B_{i, y_i} = \sum_j u_{ij}`, so that rows of B sum to zero:

.. math:: \max_u \; 2 \sum_i \sum_{j \ne y_i} u_{ij} \quad \text{subject to} \quad
    (K'B)_{m, y_m} \le 1, \quad \sum_i B_{in} = 0, \quad 0 \le u_{ij} \le C_i .

HiGHS is given this dual on some multipliers and some coefficients: the *master* program. The slacks are then mere
bounds, and its basis has a row for each coefficient instead of one for each constraint: that is several times faster
than the primal. The duals of its rows are a and b. At its solution, whatever was left out,

- the hinges :math:`\xi_{ij} = \max(0, 2 - (f_{y_i}(x_i) - f_j(x_i)))` of *all* constraints give a primal objective. The
  most violated constraints are added;
- with :math:`v = \max(1, \max_m (K'B)_{m, y_m})` over *all* coefficients, u / v is feasible for the whole dual, and
  gives a lower bound. The coefficients whose constraint is violated most are added.

So there is a certificate in every round. Both sets end far smaller than the whole: a coefficient or a multiplier that
is zero in the solution is mostly never looked at.

A hard margin, or a C that is large against the kernel, starts with a lower limit to the multipliers. It is raised as
long as a multiplier is at it: a hard margin, where there is one, is the soft one from some finite C on, and for a
finite limit the program always has a solution. At ever higher limits the lower bound of inseparable data grows without
end.

Where the classes overlap, most constraints are active: generation does not pay, and the simplex method takes long for
so many. If there is memory for its matrices, an interior point method then goes on with the whole program, see
``polymargin.solvers.linear_program_whole``. How long either takes is counted in operations, never measured.

Several intercepts may be optimal, most often when C is small. The middle of them is taken, so that what is predicted
does not depend on the order of the examples.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from polymargin.solvers.interior_point import MATRICES_NEEDED
from polymargin.solvers.limits import Limits, Status
from polymargin.solvers.linear_program_master import Master, MasterSettings
from polymargin.solvers.linear_program_problem import BestPoints, KernelValues, LinearProgram
from polymargin.solvers.linear_program_whole import WholeProgram, WholeProgramSettings
from polymargin.support.numeric import Floats, Ints, relative_gap


@dataclass(frozen=True)
class LinearProgramSettings:
    """How the program is generated, and when the whole of it is solved."""

    # Up to so many examples the last rounds cost little, and the exact solution does not depend on the order of the
    # rows: the gap is then exact_gap, if violated constraints do not run out before. Who sets a tolerance looser than
    # exact_tolerance wants none of that.
    exact_examples: int = 1024
    exact_tolerance: float = 1e-3
    exact_gap: float = 1e-10
    violation: float = 1e-9  # what counts as a violated constraint, of either program
    first_examples: int = 5  # of each class, to begin with
    # Most constraints, and most coefficients, that are added in a round: so many, and one for so many examples.
    max_pairs: int = 400
    examples_per_pair: int = 5
    max_columns: int = 100
    examples_per_column: int = 25
    # The upper limit of multipliers, in units of the inverse of a kernel value, is raised by the factor when the
    # relative gap is small, up to the largest.
    first_limit: float = 10.0
    limit_factor: float = 10.0
    limit_gap: float = 1e-2
    largest_limit: float = 1e10
    inseparable_sum: float = (
        1e8  # sum of coefficients, times a kernel value, from which no hard margin is taken to exist
    )
    # Generation gives way when it has taken ``patience`` times as long as the interior point method will; much earlier
    # while as many constraints are violated in each round as may be added: then classes overlap, and most are active.
    patience: float = 1.0
    flood_patience: float = 0.15
    expected_steps: int = 15  # of the interior point method, whole ones
    least_work: float = 5e9  # operations of a matrix product, which are what it costs for small programs
    simplex_price: float = 8.0  # a number that the simplex method looks at costs as much as so many of these operations
    master: MasterSettings = field(default_factory=MasterSettings)
    whole: WholeProgramSettings = field(default_factory=WholeProgramSettings)


DEFAULT_SETTINGS = LinearProgramSettings()


@dataclass(frozen=True)
class LinearProgramResult:
    """The best points of both programs."""

    coefficients: Floats  # a, of each example
    intercept: Floats  # of the classes, with sum zero
    multipliers: sp.csr_array  # u, examples x classes
    primal: float
    dual: float
    gap: float  # relative
    iterations: int  # of the simplex method, and steps of the interior point method
    status: Status
    solver: str  # that ended it: "highs" or "interior-point"


@dataclass(frozen=True)
class Start:
    """What the solution is expected to be made of, by numbers of examples."""

    columns: Ints  # coefficients
    examples: Ints  # of constraints
    rivals: Ints  # their other classes


class _Generation:
    """Row and column generation: solve the master, see what its solution is worth, add what it violates."""

    name = "highs"

    def __init__(
        self,
        best: BestPoints,
        start: Start | None,
        interrupt: Callable[[], bool],
        max_iterations: int,
        max_work: float,
        done: int,
        settings: LinearProgramSettings,
    ) -> None:
        self._best, self._program, self._settings = best, best.program, settings
        n, k = self._program.shape
        kernel_values = self._program.kernel_values
        columns, pairs = self._first(start)
        self._scale = float(np.abs(kernel_values.block(np.arange(n), columns)).max()) or 1.0
        self._cost_bounds = self._scale * self._program.cost_bounds  # in the units of the master
        self._limit = settings.first_limit
        self._max_iterations = max_iterations if max_iterations < 0 else max_iterations - done
        self._max_work, self._done = max_work, done  # iterations before
        self._flooded = True
        self._has_pair, self._has_column = np.zeros(n * k, dtype=bool), np.zeros(n, dtype=bool)
        self._master = Master(kernel_values, self._program.labels, k, self._scale, interrupt, settings.master)
        self._add(pairs, columns)

    def _first(self, start: Start | None) -> tuple[Ints, Ints]:
        """Return the columns and pairs to begin with."""
        k = self._program.shape[1]
        starts = self._program.class_starts
        ranges = zip(starts[:-1], starts[1:] - 1, strict=True)
        chosen = [np.linspace(*ends, self._settings.first_examples) for ends in ranges]
        columns = np.concatenate(chosen).astype(np.int64)
        examples, rivals = np.repeat(columns, k), np.tile(np.arange(k), len(columns))
        if start is not None:
            columns = np.concatenate([columns, start.columns])
            examples, rivals = np.concatenate([examples, start.examples]), np.concatenate([rivals, start.rivals])
        others = rivals != self._program.labels[examples]
        return np.unique(columns), np.unique((examples * k + rivals)[others])

    def _add(self, pairs: Ints, columns: Ints) -> None:
        """Add constraints (i, j), as numbers i * k + j, and coefficients to the master."""
        examples, rivals = np.divmod(pairs, self._program.shape[1])
        if len(pairs):
            self._master.add_pairs(examples, rivals, np.minimum(self._cost_bounds[examples], self._limit))
            self._has_pair[pairs] = True
        if len(columns):
            self._master.add_columns(columns)
            self._has_column[columns] = True

    @property
    def iterations(self) -> int:
        """Iterations of the simplex method."""
        return self._done + self._master.iterations

    @property
    def exhausted(self) -> bool:
        """Whether the simplex method has taken its time."""
        return self._master.work >= self._affordable

    @property
    def _affordable(self) -> float:
        """Return how much work it may take."""
        return (self._settings.flood_patience if self._flooded else 1.0) * self._max_work

    def advance(self, target: float, enough: float) -> Status | None:
        """Do one round; return why there is no further one, None if there is: that the gap is the target, for one.

        What is ``enough`` matters to the other method alone.
        """
        program, best, master = self._program, self._best, self._master
        status = master.solve(self._max_iterations, self._affordable)
        if status == "max_work":
            return None
        if status is not None:
            return status
        scaled_multipliers, scaled_coefficients, intercept = master.solution()
        coefficients = np.zeros(program.shape[0])
        coefficients[master.columns] = scaled_coefficients / self._scale
        shortfalls = program.shortfalls(coefficients, intercept)
        best.update_primal(coefficients, intercept, shortfalls)
        multipliers = program.multiplier_matrix(master.examples, master.rivals, scaled_multipliers / self._scale)
        activities = program.dual_activities(multipliers)
        best.update_dual(multipliers, float(activities.max()))
        if best.gap <= target:
            return "converged"
        limited = self._at_limit(scaled_multipliers)
        complete = self._add_violated(shortfalls, activities)
        if not limited:
            return "precision" if complete else None
        cost_bounds = np.minimum(program.cost_bounds, self._limit / self._scale)
        limited_primal = program.primal(coefficients, shortfalls, cost_bounds)
        if complete or relative_gap(limited_primal, best.dual) <= self._settings.limit_gap:
            return self._raise_limit()
        return None

    def _add_violated(self, shortfalls: Floats, activities: Floats) -> bool:
        """Add the most violated constraints of both programs; return whether there are none."""
        n, settings = len(activities), self._settings
        pairs = _largest(
            np.where(self._has_pair, 0.0, shortfalls.ravel()),
            settings.violation,
            settings.max_pairs + n // settings.examples_per_pair,
        )
        columns = _largest(
            np.where(self._has_column, 0.0, activities),
            1.0 + settings.violation,
            settings.max_columns + n // settings.examples_per_column,
        )
        self._add(pairs, columns)
        self._flooded = len(pairs) == settings.max_pairs + n // settings.examples_per_pair
        return len(pairs) + len(columns) == 0

    def _at_limit(self, multipliers: Floats) -> bool:
        """Tell whether a multiplier is at the limit, and might go beyond."""
        limited = self._cost_bounds[self._master.examples] > self._limit
        return bool(np.any(multipliers[limited] >= self._limit * (1 - 1e-9)))

    def _raise_limit(self) -> Status | None:
        if self._program.hard and self._scale * self._best.dual > self._settings.inseparable_sum:
            return "unbounded"
        if self._limit >= self._settings.largest_limit:
            return "precision"
        self._limit *= self._settings.limit_factor
        self._master.set_limits(np.minimum(self._cost_bounds[self._master.examples], self._limit))
        return None


class _Solver:
    """Generation, the interior point method where that is faster, and generation again if rounding ends it."""

    def __init__(
        self,
        program: LinearProgram,
        start: Start | None,
        limits: Limits[LinearProgramResult],
        budget_bytes: int,
        settings: LinearProgramSettings,
    ) -> None:
        n = program.shape[0]
        self._limits, self._settings = limits, settings
        self._deadline = time.perf_counter() + limits.time_limit
        self._best = BestPoints(program)
        may_switch = budget_bytes >= 8 * MATRICES_NEEDED * n**2 and not program.hard
        work = self._expected() if may_switch else np.inf
        self._method: _Generation | WholeProgram = self._generation(start, work, 0)
        self._crossed_over = False
        exactly = n <= settings.exact_examples and limits.tolerance <= settings.exact_tolerance
        self._exact = self._finest = settings.exact_gap if exactly else float("inf")

    def _expected(self) -> float:
        """Return for how much work the simplex method is as fast as the interior point method."""
        settings = self._settings
        n, k = self._best.program.shape
        step = 3.0 * n**3 / k + n**3 / 3.0
        return settings.patience * (settings.least_work + settings.expected_steps * step) / settings.simplex_price

    def _generation(self, start: Start | None, max_work: float, done: int) -> _Generation:
        return _Generation(self._best, start, self._late, self._limits.max_iterations, max_work, done, self._settings)

    @property
    def _wanted(self) -> float:
        """The gap that was asked for."""
        return self._limits.wanted_gap(self._best.primal, self._best.dual)

    def _late(self) -> bool:
        return time.perf_counter() > self._deadline

    def _go_on(self) -> bool:
        progress = self._limits.progress
        return not self._late() and (progress is None or progress(0, 1, self._method.iterations, self._best.gap))

    def run(self) -> LinearProgramResult:
        """Do rounds until there is a reason to stop."""
        status = None
        while status is None:
            target, enough = min(self._wanted, self._finest), min(self._wanted, self._exact)
            status = self._method.advance(target, enough) or self._stop_reason()
            status = self._handed_over(status)
        if self._best.gap <= self._wanted:
            self._best.centre_intercepts(self._settings.exact_gap)
            status = "converged"
        return self.result(status)

    def _stop_reason(self) -> Status | None:
        if self._late():
            return "time_limit"
        progress = self._limits.progress
        if progress is not None and not progress(0, 1, self._method.iterations, self._best.gap, self.result):
            return "stopped"
        return None

    def _handed_over(self, status: Status | None) -> Status | None:
        """Let another method go on where one is slow or at its end; return the reason to stop, if there is one."""
        method = self._method
        if isinstance(method, _Generation):
            if status is not None or not method.exhausted:
                return status
            if self._crossed_over:
                return "precision"
            self._method = WholeProgram(self._best, method.iterations, self._limits, self._go_on, self._settings.whole)
            self._finest = min(self._finest, self._settings.whole.sparsity_loss)
        elif status == "precision" and self._best.gap > min(self._wanted, self._exact):
            # What rounding ended, the simplex method may bring to an end, beginning there. For digits that nobody
            # asked for it takes as long as before at most.
            self._crossed_over = True
            work = np.inf if self._best.gap > self._wanted else self._expected()
            active = self._best.multipliers.tocoo()
            rows, rivals = active.row.astype(np.int64), active.col.astype(np.int64)
            start = Start(np.flatnonzero(self._best.coefficients), rows, rivals)
            self._method = self._generation(start, work, method.iterations)
            return None
        return status

    def result(self, status: Status = "stopped") -> LinearProgramResult:
        """Return the best points."""
        best = self._best
        return LinearProgramResult(
            coefficients=best.coefficients,
            intercept=best.intercept - best.intercept.mean(),
            multipliers=best.multipliers,
            primal=best.primal,
            dual=min(best.dual, best.primal),  # rounding may have put it above
            gap=max(best.gap, 0.0),
            iterations=self._method.iterations,
            status=status,
            solver=self._method.name,
        )


def solve_linear_program(
    kernel_values: KernelValues,
    class_starts: Ints,
    cost_bounds: Floats,
    start: Start | None,
    limits: Limits[LinearProgramResult],
    budget_bytes: int,
    settings: LinearProgramSettings | None = None,
) -> LinearProgramResult:
    """Solve the linear program by row and column generation.

    Parameters
    ----------
    kernel_values : KernelValues
        Kernel values between the examples, sorted by class.
    class_starts : ndarray of shape (k + 1,)
        Class c has the examples from ``class_starts[c]`` to ``class_starts[c + 1]``.
    cost_bounds : ndarray of shape (n,)
        Their costs C_i, all finite or all infinite.
    start : Start or None
        Coefficients and constraints to begin with, besides a few of each class.
    limits : Limits
        When to stop. If the tolerance is at most 1e-3, problems of up to 1,024 examples are solved exactly. Iterations
        are those of the simplex method in all, and steps of the interior point method, whose threads these are.
        Progress is reported in every round, with the result, and without during steps.
    budget_bytes : int
        Memory for the matrices of the interior point method.
    settings : LinearProgramSettings, default=None
        How the program is generated; None for what was measured to be good.

    Returns
    -------
    LinearProgramResult
        The best points. The status is "unbounded" for a hard margin that does not exist.
    """
    program = LinearProgram(kernel_values, class_starts, cost_bounds)
    return _Solver(program, start, limits, budget_bytes, DEFAULT_SETTINGS if settings is None else settings).run()


def _largest(values: Floats, least: float, count: int) -> Ints:
    """Return the places of the largest values above ``least``, at most ``count`` of them."""
    places = np.flatnonzero(values > least)
    if len(places) > count:
        places = places[np.argpartition(-values[places], count)[:count]]
    return np.sort(places)
