"""What the all-together machines have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from polymargin import _core
from polymargin.estimators._largest_score import LargestScoreMixin
from polymargin.estimators._linear import (
    LINEAR_KEPT,
    LINEAR_SOLVERS,
    LinearSolution,
    LinearSolverMixin,
    chosen_solver,
    core_loss,
    solve_linear,
)
from polymargin.estimators._machine import KernelMachine, refuse_inseparable
from polymargin.formulations.solution import Floats, Ints, TogetherSolution, TrainingSet
from polymargin.kernels.kernel import Kernel
from polymargin.support.examples import Matrix
from polymargin.support.typing import Bias, CacheSize, ClassWeight, Gamma, KernelParameter, Solver


class TogetherMachine(LargestScoreMixin, LinearSolverMixin, KernelMachine):
    """A classifier that learns the scores of all classes in one optimisation problem.

    Its dual, in the coefficients ``B_im`` of example i in the score of class m, is

        max  -1/2 tr(B'KB) + M sum_i B_{i,y_i}    subject to  sum_m B_im = 0,  B_i in a set of its own,

    which a subclass chooses by naming the loss. With ``bias="regularized"`` the kernel is ``K + 1``; with
    ``bias="free"`` the columns of B sum to zero too.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelMachine._parameter_constraints,
        "bias": [StrOptions({"regularized", "free"}), None],
        "solver": [StrOptions({"auto", "decomposition", *LINEAR_SOLVERS})],
    }
    _useful_matrices = 2  # the kernel's, and that of the features that a wide one is made of
    _kept = KernelMachine._kept | LINEAR_KEPT

    dual_coef_: Any
    n_iter_: int

    def __init__(
        self,
        C: float = 1.0,
        *,
        bias: Bias = None,
        solver: Solver = "auto",
        kernel: KernelParameter = "rbf",
        degree: int = 3,
        gamma: Gamma = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        class_weight: ClassWeight = None,
        max_iter: int = -1,
        time_limit: float | None = None,
        cache_size: CacheSize = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        super().__init__(
            C,
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            tol=tol,
            class_weight=class_weight,
            max_iter=max_iter,
            time_limit=time_limit,
            cache_size=cache_size,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            warm_start=warm_start,
        )
        self.bias = bias
        self.solver = solver

    @abstractmethod
    def _loss(self) -> tuple[str, float]:
        """Return the name of the loss in the core, and its margin."""

    @abstractmethod
    def _losses(self, scores: Floats, codes: Ints) -> Floats:
        """Return the loss of each example, without its factor C, by definition."""

    @abstractmethod
    def _excess(self, coefficients: Floats, codes: Ints, upper: Floats) -> float:
        """Return how far rows of coefficients are outside their feasible sets, the sum of a row aside."""

    def _solve(
        self, X: Matrix, y: NDArray[Any], kernel: Kernel, training: TrainingSet, classes: NDArray[Any]
    ) -> TogetherSolution | LinearSolution:
        labels = training.class_of(np.arange(len(training.order)))
        start = self._previous_rows(training, classes) if self.warm_start else None
        solver = chosen_solver(self, len(training.order))
        if solver in LINEAR_SOLVERS:
            return solve_linear(self, X, y, training, classes, labels, len(classes), self._loss(), solver, start)

        def train(
            budget_bytes: int, threads: int, tolerance: float, max_iterations: int, **limits: Any
        ) -> _core.JointResult:
            session = kernel.session(X, training.order, training.largest, tolerance, budget_bytes, threads)
            loss: Any = core_loss(*self._loss())
            bias = _core.Bias[self.bias or "none"]
            problem = _core.JointProblem(loss, bias, training.upper, labels, len(classes))
            settings = _core.JointSettings(tolerance=tolerance, max_iterations=max_iterations)
            return session.train_joint(problem, settings, start=start, refine=kernel.refine, **limits)

        solution = self._run(X, y, 1, train, TogetherSolution, training, classes)
        refuse_inseparable(solution)
        return solution

    def _store(self, X: Matrix, training: TrainingSet, solution: TogetherSolution | LinearSolution) -> None:
        self.n_iter_ = int(np.max(solution.iterations))
        if isinstance(solution, LinearSolution):
            return self._store_linear(X, training, solution)
        self._forget_linear()
        self._store_support(X, training, solution.support, solution)
        self.dual_coef_ = np.ascontiguousarray(solution.rows.T)
        self._store_intercepts(solution.intercept)

    def _shape(self, n_classes: int) -> tuple[int, int]:
        return n_classes, n_classes
