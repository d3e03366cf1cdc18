"""A binary problem for each class against all others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin import _core
from polymargin.formulations.apart import weights_have_room
from polymargin.formulations.binary import signed_ranges, solve_binary
from polymargin.formulations.family import CostFamily
from polymargin.formulations.formulation import RunOptions, Solution
from polymargin.formulations.linear import (
    SEQUENTIAL_DUAL,
    Heuristics,
    LinearTask,
    chosen_solver,
    solve_linear,
    with_linear_rule,
)
from polymargin.formulations.linear_interior import binary_cost, checked, solve_by_interior_point, with_interior_point
from polymargin.formulations.linear_wide import WideRule, has_room, with_kernel_values
from polymargin.formulations.several_labels import solve_labels, solve_labels_apart
from polymargin.formulations.signed_joint import solve_signed
from polymargin.formulations.training import TrainingSet
from polymargin.kernels import Kernel
from polymargin.losses import OneVsRest as OneVsRestLoss
from polymargin.losses import SquaredOneVsRest
from polymargin.models import ClassLayout, LabelLayout
from polymargin.support.numeric import Ints
from polymargin.support.typing import Bias, BinarySolver


@dataclass(frozen=True)
class OneVsRest:
    """Hsu & Lin (1) for each class, which is positive, against all others; two classes need one problem, the second's.

    Where examples have several labels there is a problem for each label, for two of them as well.

    Parameters
    ----------
    bias : {"free", "regularized"} or None
        The latter two need the sequential dual method, so the linear kernel.
    solver : {"auto", "decomposition", "sequential-dual"}
        How to solve it.
    heuristics : Heuristics
        Of the sequential dual method.
    squared : bool
        Whether the hinges are squared.
    """

    bias: Bias = "free"
    solver: BinarySolver = "auto"
    heuristics: Heuristics = Heuristics()
    squared: bool = False

    def layout(self, n_classes: int) -> ClassLayout:
        """Return a score for each class, or one for two."""
        return ClassLayout(n_classes, self.n_problems(n_classes))

    def label_layout(self, n_labels: int) -> LabelLayout:
        """Return a score for each label, where examples may have several."""
        return LabelLayout(n_labels, n_labels)

    def n_problems(self, n_classes: int) -> int:
        """Return the number of problems."""
        return 1 if n_classes == 2 else n_classes

    @property
    def drops_by_cost(self) -> bool:
        """Whether an example with the cost 0 takes no part, so that folds can be solved on one matrix."""
        return True

    def measure(self, training: TrainingSet, kernel: Kernel) -> str:
        """Return what the solver stops on."""
        return "violation" if self._solver(training, kernel) == "decomposition" else "gap"

    def needs_kernel(self, kernel: str, n_examples: int, hard: bool) -> bool:
        """Whether kernel values are computed for so many examples."""
        # Only this solver has binary machines without a bias, or with a regularised one.
        only = self.bias != "free"
        return chosen_solver(self.solver, kernel, n_examples, hard, always=only) == "decomposition"

    def _solver(self, training: TrainingSet, kernel: Kernel, options: RunOptions | None = None) -> str:
        """Return the solver that the parameters mean; the memory it may take counts where options say so."""
        hard, columns = bool(np.isinf(training.largest_cost_bound)), self._columns(training)
        by_kernel = WideRule().comes_first(training, columns, binary=True)
        by_kernel = by_kernel and (options is None or has_room(training, options))
        n = training.n_examples
        return chosen_solver(self.solver, kernel.kind, n, hard, always=self.bias != "free", by_kernel=by_kernel)

    def _columns(self, training: TrainingSet) -> int:
        """Return the number of problems on a training set."""
        return self.n_problems(training.n_classes) if training.label_sets is None else training.n_classes

    def problems(self, class_starts: Ints) -> _core.BinaryProblems:
        """Return the problems of all classes."""
        n_classes = len(class_starts) - 1
        positive = np.array([1]) if n_classes == 2 else np.arange(n_classes)
        begin, end = class_starts[positive], class_starts[positive + 1]
        first, last = np.zeros_like(begin), np.full_like(begin, class_starts[-1])
        return signed_ranges((first, begin, -1), (begin, end, 1), (end, last, -1), squared=self.squared)

    @property
    def is_family(self) -> bool:
        """Whether it is a family of binary problems on kernel values, so that many costs can be solved by one call."""
        return self.bias == "free"

    def family(
        self, K: NDArray[Any], codes: Ints, costs: list[float], exact_to: float, options: RunOptions
    ) -> CostFamily:
        """Return the problems for many costs and many parts of the examples of a kernel matrix."""
        return CostFamily(self, K, codes, costs, exact_to, options)

    def solve(self, training: TrainingSet, kernel: Kernel, options: RunOptions) -> Solution:
        """Solve all problems, side by side on one kernel, or on the examples themselves."""
        options, first = with_linear_rule(options, kernel), partial(self._solve, training, kernel)
        if training.label_sets is not None:
            return self._solve_labels(training, kernel, options)
        if self.solver != "auto" or kernel.kind != "linear":
            return first(options)
        by_kernel = self._solver(training, kernel, options) == "decomposition"
        k = self.n_problems(training.n_classes)
        cost = binary_cost(training, k, by_kernel=by_kernel, squared=self.squared)
        if not by_kernel and WideRule().takes_over(training, k, cost.interior, options):
            return with_kernel_values(first, partial(self._by_kernel, training, kernel), training, k, options)
        task = self._task(training)

        def begin(options: RunOptions) -> Solution:
            solution = first(options)
            return checked(solution, task, training, options) if by_kernel and np.isfinite(cost.interior) else solution

        return with_interior_point(begin, partial(solve_by_interior_point, task, training, kernel), cost, options)

    def _solve_labels(self, training: TrainingSet, kernel: Kernel, options: RunOptions) -> Solution:
        """Solve a problem for each label on one kernel, or one by one: as machines of two classes are."""
        machine = self.of_two(training, self._columns(training), options)
        apart = partial(solve_labels_apart, training, kernel, solve_part=machine.solve_without_matrix)
        if self._solver(training, kernel, options) == SEQUENTIAL_DUAL:
            return apart(options)
        self._check_bias()
        together = partial(solve_labels, training, kernel, squared=self.squared)
        if self.solver != "auto" or kernel.kind != "linear":
            return together(options)
        cost = binary_cost(training, self._columns(training), by_kernel=True, squared=self.squared)
        return with_interior_point(together, apart, cost, options)

    def of_two(self, training: TrainingSet, n_scores: int, options: RunOptions) -> OneVsRest:
        """Return the machine that one of many scores is.

        Where their weights have no room to be kept, they have to be those of the coefficients: no Newton steps.
        """
        if weights_have_room(training, n_scores, options):
            return self
        return replace(self, solver="sequential-dual", heuristics=replace(self.heuristics, newton=False))

    def solve_without_matrix(self, training: TrainingSet, kernel: Kernel, options: RunOptions) -> Solution:
        """Solve on the examples themselves, for the linear kernel; where that crawls other solvers take over."""
        loops = partial(replace(self, solver="sequential-dual")._solve, training, kernel)
        if self.solver != "auto":
            return loops(options)
        cost = binary_cost(training, 1, by_kernel=False, squared=self.squared)
        if WideRule().takes_over(training, 1, cost.interior, options):
            return with_kernel_values(loops, partial(self._by_kernel, training, kernel), training, 1, options)
        interior = partial(solve_by_interior_point, self._task(training), training, kernel)
        return with_interior_point(loops, interior, cost, options)

    def _by_kernel(self, training: TrainingSet, kernel: Kernel, options: RunOptions) -> Solution:
        """Solve on kernel values, whatever the bias is."""
        if self.bias == "free":
            return replace(self, solver="decomposition")._solve(training, kernel, options)
        task = self._task(training)
        return solve_signed(task, training, kernel, options)

    def _task(self, training: TrainingSet) -> LinearTask:
        labels = training.labels - 1 if training.n_classes == 2 else training.labels  # the column of the second
        layout = self.layout(training.n_classes)
        loss = SquaredOneVsRest() if self.squared else OneVsRestLoss()
        return LinearTask(loss, self.bias, SEQUENTIAL_DUAL, labels, layout, self.heuristics)

    def _solve(self, training: TrainingSet, kernel: Kernel, options: RunOptions) -> Solution:
        """Solve by the solver that the parameters mean."""
        if self._solver(training, kernel, options) == SEQUENTIAL_DUAL:
            return solve_linear(self._task(training), training, kernel, options)
        self._check_bias()
        layout = self.layout(training.n_classes)
        problems = self.problems(training.class_starts)
        return solve_binary(problems, layout, training, kernel, options, squared=self.squared)

    def _check_bias(self) -> None:
        """Refuse what decompositions of binary machines cannot do."""
        if self.bias != "free":
            raise ValueError(
                f"bias={self.bias!r} needs solver='sequential-dual', which needs kernel='linear' and a finite C; "
                "otherwise binary machines have a free bias"
            )
