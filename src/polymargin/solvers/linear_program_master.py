"""The master program of the linear programming machine: the dual on some multipliers and coefficients, in HiGHS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from polymargin.formulations.solution import Floats, Ints
from polymargin.kernels import KernelSession
from polymargin.solvers.interior_point import MARGIN

# Ways to solve a master, one after the other if the first does not end well. All numbers are around 1 already, and the
# scaling of HiGHS, which blows up what is next to nothing, made it cycle. 1e-10 is the least tolerance that it takes.
_MANNERS: tuple[dict[str, int | float], ...] = (
    {"simplex_scale_strategy": 0, "primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    {"simplex_scale_strategy": 2, "primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
)
_CYCLE = 20_000  # iterations, besides 20 for each row and column, that no master takes: it cycles


class Master:
    """The dual on the multipliers of some pairs (i, j) and the constraints of some coefficients, in HiGHS.

    Kernel values are divided by ``scale``, so that all numbers are around 1: the multipliers here are ``scale`` times
    those of the machine, the coefficients likewise.
    """

    def __init__(
        self, gram: KernelSession, codes: Ints, n_classes: int, scale: float, interrupt: Callable[[], bool]
    ) -> None:
        import highspy  # not at the top: only this solver needs it

        self._gram, self._codes, self._scale = gram, codes, scale
        self._balanced = n_classes - 1  # rows of HiGHS; the last class's intercept is 0
        self._highs, self._status = highspy.Highs(), highspy.HighsModelStatus
        self._unbounded = highspy.kHighsInf
        self.examples = self.rivals = self.columns = np.zeros(0, dtype=np.int64)
        self.iterations = 0
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
        zero = np.zeros(self._balanced)
        self._highs.addRows(self._balanced, zero, zero, *_compressed(sp.csr_array((self._balanced, 0))))

    def add_pairs(self, examples: Ints, rivals: Ints, limit: Floats) -> None:
        """Let the multipliers of constraints (example, rival) join, with their upper limits."""
        owner = self._codes[examples]
        classes = np.arange(self._balanced)
        balance = _sign(owner, rivals, classes)
        values = self._gram.block(examples, self.columns) / self._scale
        entries = np.hstack([balance, _sign(owner, rivals, self._codes[self.columns]) * values])
        cost, zero = np.full(len(examples), -MARGIN), np.zeros(len(examples))
        self._highs.addCols(len(examples), cost, zero, limit, *_compressed(sp.csr_array(entries)))
        self.examples = np.concatenate([self.examples, examples])
        self.rivals = np.concatenate([self.rivals, rivals])

    def add_columns(self, columns: Ints) -> None:
        """Let the coefficients of some examples join."""
        values = self._gram.block(self.examples, columns) / self._scale
        entries = (_sign(self._codes[self.examples], self.rivals, self._codes[columns]) * values).T
        lower = np.full(len(columns), -self._unbounded)
        self._highs.addRows(len(columns), lower, np.ones(len(columns)), *_compressed(sp.csr_array(entries)))
        self.columns = np.concatenate([self.columns, columns])

    def limit(self, limit: Floats) -> None:
        """Set the upper limits of all multipliers."""
        every = np.arange(len(limit), dtype=np.int32)
        self._highs.changeColsBounds(len(limit), every, np.zeros(len(limit)), limit)

    def solve(self, max_iterations: int) -> str:
        """Solve; return why there is no solution, or nothing."""
        for manner in _MANNERS:
            for option, value in manner.items():
                self._highs.setOptionValue(option, value)
            limit = _CYCLE + 20 * (len(self.examples) + len(self.columns))
            if max_iterations >= 0:
                limit = min(limit, max_iterations - self.iterations)
            self._highs.setOptionValue("simplex_iteration_limit", limit)
            self._highs.run()
            self.iterations += max(0, int(self._highs.getInfo().simplex_iteration_count))
            status = self._highs.getModelStatus()
            if status == self._status.kOptimal:
                return ""
            if status == self._status.kInterrupt:
                return "time_limit"
            if status == self._status.kIterationLimit and self.iterations == max_iterations:
                return "max_iter"
            self._highs.clearSolver()  # forget the basis, which rounding may have spoilt
        return "precision"

    def solution(self) -> tuple[Floats, Floats, Floats]:
        """Return the multipliers, and the coefficients and intercepts that are the duals of the constraints."""
        solution = self._highs.getSolution()
        duals = -np.array(solution.row_dual)
        coefficients = np.maximum(duals[self._balanced :], 0.0)
        coefficients[coefficients <= 1e-12 * coefficients.max(initial=0.0)] = 0.0
        return np.maximum(np.array(solution.col_value), 0.0), coefficients, np.append(duals[: self._balanced], 0.0)


def _sign(owner: Ints, rivals: Ints, classes: Ints) -> Floats:
    """Return 1 where a class is a pair's own, -1 where it is the rival."""
    return (owner[:, None] == classes).astype(np.float64) - (rivals[:, None] == classes)


def _compressed(rows: sp.csr_array) -> tuple[int, Any, Any, Any]:
    """Return a matrix as HiGHS takes it."""
    return rows.nnz, rows.indptr[:-1].astype(np.int32), rows.indices.astype(np.int32), rows.data
