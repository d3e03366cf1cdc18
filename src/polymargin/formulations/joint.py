"""One problem for the scores of all classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from polymargin import _core
from polymargin.formulations.formulation import RunOptions, Solution, expansion, outcome, refuse_inseparable
from polymargin.formulations.linear import (
    SEQUENTIAL_DUAL,
    Heuristics,
    LinearTask,
    chosen_solver,
    row_start,
    solve_linear,
    with_linear_rule,
)
from polymargin.formulations.linear_interior import checked, joint_cost, solve_by_interior_point, with_interior_point
from polymargin.formulations.linear_wide import WideRule, has_room, with_kernel_values
from polymargin.formulations.training import TrainingSet
from polymargin.kernels import Kernel
from polymargin.losses import JointLoss
from polymargin.models import ClassLayout, KernelModel
from polymargin.support.typing import LINEAR_SOLVERS, Bias, Solver


@dataclass(frozen=True)
class Joint:
    r"""A loss on the scores of all classes.

    Its dual, in the coefficients :math:`B_{im}` of example i in the score of class m, is

    .. math:: \max_B \; -\tfrac12 \operatorname{tr}(B'KB) + M \sum_i B_{i,y_i}
              \quad\text{subject to}\quad \sum_m B_{im} = 0,\; B_i \in C_i \mathcal{B}_{y_i},

    the set :math:`\mathcal{B}` being the loss's own. With ``bias="regularized"`` the kernel is ``K + 1``; with
    ``bias="free"`` the columns of B sum to zero too.

    Where the scores of an example sum to zero, rows need not: with :math:`P = I - 11'/k`, which takes the mean of a row
    away, and the targets of the margins :math:`t_m`, the dual is

    .. math:: \max_B \; -\tfrac12 \operatorname{tr}(B'KBP) + \sum_{im} t_m |B_{im}|
              \quad\text{subject to}\quad B_i \in C_i \mathcal{B}_{y_i},

    for a multiplier of the constraint may be added to a row, and BP is what minimises the Lagrangian. A model keeps BP.

    Parameters
    ----------
    loss : JointLoss
        The loss.
    bias : {"free", "regularized"} or None
        Whether scores have an intercept, and whether it costs something.
    solver : str
        How to solve it.
    heuristics : Heuristics
        Of the sequential dual method.
    """

    loss: JointLoss
    bias: Bias = None
    solver: Solver = "auto"
    heuristics: Heuristics = Heuristics()

    def layout(self, n_classes: int) -> ClassLayout:
        """Return a score for each class."""
        return ClassLayout(n_classes, n_classes)

    def n_problems(self, n_classes: int) -> int | None:
        """Return the number of problems, or None where a solver has rounds."""
        return None if self.solver == "cutting-plane" else 1

    @property
    def drops_by_cost(self) -> bool:
        """Whether an example with the cost 0 takes no part, so that folds can be solved on one matrix."""
        return True

    def measure(self, training: TrainingSet, kernel: Kernel) -> str:
        """Return what the solver stops on."""
        return "gap" if self._solver(training, kernel) in LINEAR_SOLVERS else "violation"

    def needs_kernel(self, kernel: str, n_examples: int, hard: bool) -> bool:
        """Whether kernel values are computed for so many examples."""
        return chosen_solver(self.solver, kernel, n_examples, hard) == "decomposition"

    @property
    def _has_fast_steps(self) -> bool:
        """Whether the decomposition, and what takes over from it, does not crawl where loops do."""
        return self.loss.row_limits is not None

    def _solver(self, training: TrainingSet, kernel: Kernel, options: RunOptions | None = None) -> str:
        """Return the solver that the parameters mean; the memory it may take counts where options say so."""
        hard, columns = bool(np.isinf(training.largest_cost_bound)), training.n_classes
        by_kernel = self._has_fast_steps and WideRule().comes_first(training, columns, binary=False)
        by_kernel = by_kernel and (options is None or has_room(training, options))
        n = training.n_examples
        return chosen_solver(self.solver, kernel.kind, n, hard, by_kernel=by_kernel)

    def solve(self, training: TrainingSet, kernel: Kernel, options: RunOptions) -> Solution:
        """Solve on kernel values, or on the examples themselves."""
        return replace(self, loss=self._sized_loss(training))._solve_sized(training, kernel, options)

    def _sized_loss(self, training: TrainingSet) -> JointLoss:
        loss = self.loss.of(training.n_classes)
        if np.isinf(training.largest_cost_bound):
            loss.check_hard()
        return loss

    def _solve_sized(self, training: TrainingSet, kernel: Kernel, options: RunOptions) -> Solution:
        """Solve with the loss of so many classes as there are."""
        options = with_linear_rule(options, kernel)
        first = partial(self._solve, training, kernel)
        if self.solver != "auto" or kernel.kind != "linear":
            return first(options)
        by_kernel, k = self._solver(training, kernel, options) == "decomposition", training.n_classes
        cost = joint_cost(self.loss, training, by_kernel=by_kernel)
        if not by_kernel and self._has_fast_steps and WideRule().takes_over(training, k, cost.interior, options):
            on_values = partial(replace(self, solver="decomposition")._solve, training, kernel)
            return with_kernel_values(first, on_values, training, k, options)
        task = LinearTask(self.loss, self.bias, SEQUENTIAL_DUAL, training.labels, self.layout(k), self.heuristics)

        def begin(options: RunOptions) -> Solution:
            solution = first(options)
            return checked(solution, task, training, options) if by_kernel and np.isfinite(cost.interior) else solution

        return with_interior_point(begin, partial(solve_by_interior_point, task, training, kernel), cost, options)

    def _solve(self, training: TrainingSet, kernel: Kernel, options: RunOptions) -> Solution:
        """Solve by the solver that the parameters mean."""
        solver, layout = self._solver(training, kernel, options), self.layout(training.n_classes)
        if solver in LINEAR_SOLVERS:
            task = LinearTask(self.loss, self.bias, solver, training.labels, layout, self.heuristics)
            return solve_linear(task, training, kernel, options)
        n, k = training.n_examples, layout.n_scores
        # The kernel's and that of the features that a wide one is made of; an interior-point method has two for each
        # class, and some 30 numbers for each example and class. Scores that sum to zero couple the classes by four.
        matrices = 3 + 2 * (k + 4 * self.loss.scores_sum_to_zero) + 30 * k // n
        session = kernel.session(
            training.X,
            training.order,
            training.largest_cost_bound,
            options.exact_to,
            options.budget_bytes(training.X, matrices),
            options.threads,
        )
        bias, loss = _core.Bias[self.bias or "none"], self.loss
        result = session.train_joint(
            _core.JointProblem(loss.core, bias, training.cost_bounds, training.labels, layout.n_scores),
            _core.JointSettings(
                tolerance=options.tolerance,
                gap=options.gap,
                gap_counts=options.stop == "gap",
                max_iterations=options.max_iterations,
                max_work=options.max_work,
            ),
            start=None if options.start is None else row_start(options.start, training, loss),
            refine=kernel.refine,
            time_limit=options.time_limit,
            progress=options.progress,
        )
        refuse_inseparable(result.status == _core.Status.unbounded)
        return self._solution(result, training, kernel, options)

    def _solution(
        self, result: _core.JointResult, training: TrainingSet, kernel: Kernel, options: RunOptions
    ) -> Solution:
        layout = self.layout(training.n_classes)
        model = KernelModel(
            **expansion(training, kernel, result.support),
            coefficients=np.ascontiguousarray(self.loss.kept(result.rows).T),
            intercept=layout.kept(result.intercept),
            layout=layout,
            tolerance=options.tolerance,
        )
        ended = outcome(
            primal=result.primal,
            dual=result.dual,
            status=result.status.name,
            iterations=int(result.iterations),
            solver="interior-point" if result.interior_point else "decomposition",
            evaluations=result.evaluations,
        )
        return Solution(model=model, outcome=ended, violation=result.violation, by_gap=options.stop == "gap")
