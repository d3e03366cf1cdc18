"""The master program of the linear programming machine: the dual on some multipliers and coefficients, in HiGHS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from polymargin.solvers.limits import Status
from polymargin.solvers.linear_program_problem import MARGIN, KernelValues, signs
from polymargin.support.numeric import Floats, Ints


@dataclass(frozen=True)
class MasterSettings:
    """How HiGHS solves a master program."""

    # Scaling strategy and tolerance of HiGHS, one after the other if the first does not end well. All numbers are
    # around 1 already, and the scaling of HiGHS, which blows up what is next to nothing, made it cycle. 1e-10 is the
    # least tolerance that it takes.
    attempts: tuple[tuple[int, float], ...] = ((0, 1e-10), (2, 1e-9))
    # No master takes more iterations than so many and so many for each row and column: it cycles.
    cycle_iterations: int = 20_000
    cycle_iterations_each: int = 20
    negligible: float = 1e-12  # a coefficient below this share of the largest is zero


class Master:
    """The dual on the multipliers of some pairs (i, j) and the constraints of some coefficients, in HiGHS.

    Kernel values are divided by ``scale``, so that all numbers are around 1: the multipliers here are ``scale`` times
    those of the machine, the coefficients likewise.
    """

    def __init__(
        self,
        kernel_values: KernelValues,
        labels: Ints,
        n_classes: int,
        scale: float,
        interrupt: Callable[[], bool],
        settings: MasterSettings,
    ) -> None:
        import highspy  # not at the top: only the solvers that need it load it

        self._kernel_values, self._labels, self._scale, self._settings = kernel_values, labels, scale, settings
        self._n_balances = n_classes - 1  # first rows of HiGHS, of the intercepts; that of the last class is 0
        self._highs, self._status = highspy.Highs(), highspy.HighsModelStatus
        self._unbounded = highspy.kHighsInf
        self.examples: Ints = np.zeros(0, dtype=np.int64)
        self.rivals: Ints = np.zeros(0, dtype=np.int64)
        self.columns: Ints = np.zeros(0, dtype=np.int64)
        self.iterations: int = 0
        self.work: float = 0.0  # iterations, each times the entries that it looks at
        options: dict[str, bool | int | float | str] = {
            "output_flag": False,
            "presolve": "off",
            "parallel": "off",
            "threads": 1,
            "simplex_strategy": 1,  # dual: three times as fast here as primal
            "small_matrix_value": 1e-12,  # the least that HiGHS takes; smaller kernel values are taken for 0
        }
        for option, value in options.items():
            self._highs.setOptionValue(option, value)

        def listen(event: Any) -> None:
            if interrupt():
                event.data_in.user_interrupt = True

        self._highs.cbSimplexInterrupt += listen
        zero = np.zeros(self._n_balances)
        self._highs.addRows(self._n_balances, zero, zero, *_compressed(sp.csr_array((self._n_balances, 0))))

    def add_pairs(self, examples: Ints, rivals: Ints, limits: Floats) -> None:
        """Add the multipliers of constraints (example, other class), with their upper limits."""
        owner = self._labels[examples]
        classes = np.arange(self._n_balances)
        balance = signs(owner, rivals, classes)
        values = self._kernel_values.block(examples, self.columns) / self._scale
        entries = np.hstack([balance, signs(owner, rivals, self._labels[self.columns]) * values])
        cost, zero = np.full(len(examples), -MARGIN), np.zeros(len(examples))
        self._highs.addCols(len(examples), cost, zero, limits, *_compressed(sp.csr_array(entries)))
        self.examples = np.concatenate([self.examples, examples])
        self.rivals = np.concatenate([self.rivals, rivals])

    def add_columns(self, columns: Ints) -> None:
        """Add the coefficients of some examples."""
        values = self._kernel_values.block(self.examples, columns) / self._scale
        entries = (signs(self._labels[self.examples], self.rivals, self._labels[columns]) * values).T
        lower = np.full(len(columns), -self._unbounded)
        self._highs.addRows(len(columns), lower, np.ones(len(columns)), *_compressed(sp.csr_array(entries)))
        self.columns = np.concatenate([self.columns, columns])

    def set_limits(self, limits: Floats) -> None:
        """Set the upper limits of all multipliers."""
        every = np.arange(len(limits), dtype=np.int32)
        self._highs.changeColsBounds(len(limits), every, np.zeros(len(limits)), limits)

    def solve(self, max_iterations: int, max_work: float) -> Status | Literal["max_work"] | None:
        """Solve; return why there is no solution, None if there is one."""
        settings = self._settings
        for scaling, tolerance in settings.attempts:
            self._highs.setOptionValue("simplex_scale_strategy", scaling)
            self._highs.setOptionValue("primal_feasibility_tolerance", tolerance)
            self._highs.setOptionValue("dual_feasibility_tolerance", tolerance)
            size = len(self.examples) + len(self.columns)
            limit = settings.cycle_iterations + settings.cycle_iterations_each * size
            if max_iterations >= 0:
                limit = min(limit, max_iterations - self.iterations)
            entries = float(len(self.columns)) * size
            affordable = int(min(limit, max(0.0, max_work - self.work) / entries)) + 1
            self._highs.setOptionValue("simplex_iteration_limit", min(limit, affordable))
            self._highs.run()
            done = max(0, int(self._highs.getInfo().simplex_iteration_count))
            self.iterations += done
            self.work += done * entries
            status = self._highs.getModelStatus()
            if status == self._status.kOptimal:
                return None
            if status == self._status.kInterrupt:
                return "time_limit"
            if status == self._status.kIterationLimit and self.iterations == max_iterations:
                return "max_iter"
            if status == self._status.kIterationLimit and self.work >= max_work:
                return "max_work"
            self._highs.clearSolver()  # forget the basis, which rounding may have spoilt
        return "precision"

    def solution(self) -> tuple[Floats, Floats, Floats]:
        """Return the multipliers, and the coefficients and intercepts that are the duals of the constraints."""
        solution = self._highs.getSolution()
        duals = -np.array(solution.row_dual)
        coefficients = np.maximum(duals[self._n_balances :], 0.0)
        coefficients[coefficients <= self._settings.negligible * coefficients.max(initial=0.0)] = 0.0
        return np.maximum(np.array(solution.col_value), 0.0), coefficients, np.append(duals[: self._n_balances], 0.0)


def _compressed(rows: sp.csr_array) -> tuple[int, Any, Any, Any]:
    """Return a matrix as HiGHS takes it."""
    return rows.nnz, rows.indptr[:-1].astype(np.int32), rows.indices.astype(np.int32), rows.data
