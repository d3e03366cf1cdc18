"""Weston and Watkins' linear program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from polymargin.formulations.formulation import (
    RunOptions,
    Solution,
    expansion,
    outcome,
    previous_examples,
    refuse_inseparable,
)
from polymargin.formulations.training import TrainingSet
from polymargin.kernels import Kernel, KernelSession
from polymargin.models import ClassLayout, KernelModel, Outcome
from polymargin.models.declared import declare
from polymargin.solvers import (
    MATRICES_NEEDED,
    Limits,
    LinearProgramResult,
    LinearProgramSettings,
    Start,
    solve_linear_program,
)
from polymargin.support.numeric import Floats, Ints, relative_gap


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearProgramOutcome(Outcome):
    """The dual point beside how the program was solved.

    Parameters
    ----------
    active : array of shape (n_active, 2)
        Constraints with a multiplier: the row of an example, and the number of the class that it is to lead.
    multipliers : array of shape (n_active,)
        Their multipliers.
    """

    active: Ints = declare("active_", "count", ("active", 2))
    multipliers: Floats = declare("multipliers_", "real", ("active",))


@dataclass(frozen=True, eq=False)
class LinearProgram:
    r"""Scores of each class on its own examples, with the sum of the coefficients in place of the norm of the weights.

    .. math:: \min_{a \ge 0, b} \; \sum_i a_i
              + \sum_i C_i \sum_{j \ne y_i} \max(0, 2 - (f_{y_i}(x_i) - f_j(x_i))).

    Parameters
    ----------
    active : array of shape (n_active, 2), optional
        Constraints that were active in an earlier solution, to begin with.
    """

    active: Ints | None = None

    def layout(self, n_classes: int) -> ClassLayout:
        """Return a score for each class."""
        return ClassLayout(n_classes, n_classes)

    def n_problems(self, n_classes: int) -> int | None:
        """There are rounds of generation."""
        return None

    def measure(self, training: TrainingSet, kernel: Kernel) -> str:
        """The solver stops on the gap."""
        return "gap"

    def solve(self, training: TrainingSet, kernel: Kernel, options: RunOptions) -> Solution:
        """Solve by generation of rows and columns."""
        budget = options.budget_bytes(training.X, MATRICES_NEEDED)
        report = options.progress

        def solution(result: LinearProgramResult) -> Solution:
            return self._solution(result, training, kernel, options, values.evaluations)

        def progress(done: int, total: int, iterations: int, gap: float, result: Any = None, /) -> bool:
            assert report is not None
            return report(done, total, iterations, gap, None if result is None else lambda: solution(result()))

        limits = Limits(
            tolerance=options.tolerance,
            total_cost=options.total_cost(training),
            max_iterations=options.max_iterations,
            time_limit=options.time_limit,
            threads=options.threads,
            progress=None if report is None else progress,
        )
        values = KernelSession(kernel, training.X, training.order, budget, options.threads)
        start = self._start(options.start, training)
        result = solve_linear_program(values, training.class_starts, training.cost_bounds, start, limits, budget)
        refuse_inseparable(result.status == "unbounded", LinearProgramSettings().inseparable_sum)
        return solution(result)

    def gap_at_larger_costs(self, model: KernelModel, outcome: Outcome, growth: float) -> float:
        """Return the relative gap that a solution leaves where all costs are ``growth`` times as large.

        Its dual point stays feasible, and of its primal objective the loss alone grows with the costs: a solution
        without any is that of all larger costs.
        """
        coefficients = float(model.coefficients.sum())
        return relative_gap(coefficients + growth * max(0.0, outcome.primal - coefficients), outcome.dual)

    def _start(self, model: KernelModel | None, training: TrainingSet) -> Start | None:
        """Return what the last solution was made of; None if it does not fit."""
        columns = None if model is None else previous_examples(model, training)
        if columns is None:
            return None
        rows, rivals = (np.zeros((0, 2), dtype=np.int64) if self.active is None else self.active).T
        examples = training.place_of(rows)
        return Start(columns[columns >= 0], examples[examples >= 0], rivals[examples >= 0])

    def _solution(
        self,
        result: LinearProgramResult,
        training: TrainingSet,
        kernel: Kernel,
        options: RunOptions,
        evaluations: int,
    ) -> Solution:
        used = np.flatnonzero(result.coefficients)
        layout = self.layout(training.n_classes)
        coefficients = np.zeros((training.n_classes, len(used)))
        coefficients[training.class_of(used), np.arange(len(used))] = result.coefficients[used]
        model = KernelModel(
            **expansion(training, kernel, used),
            coefficients=coefficients,
            intercept=layout.kept(result.intercept),
            layout=layout,
            tolerance=options.tolerance,
        )
        ended = outcome(
            primal=result.primal,
            dual=result.dual,
            status=result.status,
            iterations=int(result.iterations),
            solver=result.solver,
            evaluations=evaluations,
        )
        multipliers = result.multipliers.tocoo()
        active = np.column_stack([training.order[multipliers.row], multipliers.col])
        return Solution(
            model=model,
            outcome=LinearProgramOutcome(**vars(ended), active=active, multipliers=multipliers.data),
            by_gap=options.stop != "violation",
        )
