"""Weston and Watkins' linear programming machine."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.estimators._documentation import with_shared_documentation
from polymargin.estimators._largest_score import LargestScoreMixin
from polymargin.estimators._machine import KernelMachine, refuse_inseparable
from polymargin.formulations.solution import Floats, Ints, TrainingSet
from polymargin.kernels import Kernel, KernelSession
from polymargin.models.declared import Kept
from polymargin.solvers.linear_program import (
    HOPELESS,
    MATRICES,
    LinearProgramSolution,
    Start,
    solve_linear_program,
)
from polymargin.support.examples import Matrix


@with_shared_documentation
class LinearProgramSVC(LargestScoreMixin, KernelMachine):
    r"""The linear programming machine of Weston and Watkins: few coefficients, one for each example at most.

    The score of class n is made of the examples of that class alone, :math:`f_n(x) = \sum_{i: y_i = n} a_i K(x, x_i) +
    b_n`. One linear program for all classes,

    .. math:: \min_{a \ge 0, b} \; \sum_i a_i
              + \sum_i C_i \sum_{j \ne y_i} \max(0, 2 - (f_{y_i}(x_i) - f_j(x_i))),

    has the sum of the coefficients where other machines have the norm of the weights. Therefore most coefficients are
    zero, and any matrix of kernel values will do, be it indefinite or not even symmetric. It is solved by HiGHS with
    generation of rows and columns, and the fit stops when the relative duality gap is at most ``tol``.

    Parameters
    ----------
    <C>
    <parameters>

    Attributes
    ----------
    <support>
    dual_coef_ : ndarray of shape (k, n_SV)
        Coefficients of the support vectors in each class score: a in the row of the vector's own class, 0 elsewhere.
    intercept_ : ndarray of shape (k,)
        Intercepts of the class scores. They sum to zero; where several are optimal these are in the middle of them.
    coef_ : ndarray of shape (k, n_features)
        Weights of the features, for the linear kernel.
    active_ : ndarray of shape (n_active, 2)
        Constraints with a multiplier: the row of an example, and the number of the class that it is to lead.
    multipliers_ : ndarray of shape (n_active,)
        Their multipliers: the dual point.
    n_iter_ : int
        Iterations of the simplex method, in all rounds together, and steps of the interior point method.
    primal_objective_ : float
        Primal objective; infinite while a hard margin was not reached.
    dual_objective_ : float
        Dual objective: maximised, so never larger than the primal.
    <outcome>

    Notes
    -----
    ``tol`` is the relative duality gap, over all constraints and all coefficients, generated or not. If it is at most
    1e-3, problems of up to 1,024 examples are solved exactly, as the last rounds cost little there. ``max_iter`` limits
    the iterations, ``n_iter_``. A fit that is stopped keeps the best point so far. ``warm_start`` begins with the
    coefficients and constraints that were active in the last solution.

    Where the classes of more than 1,024 examples overlap so much that most constraints are active, and ``cache_size``
    leaves room for four matrices of n^2 numbers, an interior point method takes over from HiGHS: ``solver_used_`` is
    then "interior-point" instead of "highs".

    References
    ----------
    J. Weston, C. Watkins, "Multi-class support vector machines", Technical Report CSD-TR-98-04, Royal Holloway,
    University of London, 1998, section 6.

    Q. Huangfu, J. A. J. Hall, "Parallelizing the dual revised simplex method", Mathematical Programming Computation
    10(1), 2018, doi:10.1007/s12532-017-0130-5.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import LinearProgramSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = LinearProgramSVC(C=10).fit(X, y)
    >>> round(machine.score(X, y), 2)
    0.97
    >>> len(machine.support_) < 10, machine.duality_gap_ < 1e-8
    (True, True)
    """

    _useful_matrices = MATRICES
    _kept = KernelMachine._kept | {
        "active_": Kept("count", ("active", 2)),
        "multipliers_": Kept("real", ("active",)),
    }

    active_: Ints
    multipliers_: Floats
    dual_coef_: Floats
    n_iter_: int
    solver_used_: str

    def _solve(
        self, X: Matrix, y: NDArray[Any], kernel: Kernel, training: TrainingSet, classes: NDArray[Any]
    ) -> LinearProgramSolution:
        start = self._start(training, classes) if self.warm_start else None

        def train(budget_bytes: int, threads: int, **options: Any) -> dict[str, Any]:
            gram = KernelSession(kernel, X, training.order, budget_bytes, threads)
            return solve_linear_program(gram, training, start, budget_bytes=budget_bytes, threads=threads, **options)

        solution = self._run(X, y, None, train, LinearProgramSolution, training, classes, measure="gap")
        refuse_inseparable(solution, HOPELESS)
        return solution

    def _store(self, X: Matrix, training: TrainingSet, solution: LinearProgramSolution) -> None:
        used = np.flatnonzero(solution.coefficients)
        self._store_support(X, training, used, solution)
        self.dual_coef_ = np.zeros((training.n_classes, len(used)))
        self.dual_coef_[training.class_of(used), np.arange(len(used))] = solution.coefficients[used]
        self._store_intercepts(solution.intercept)
        multipliers = solution.multipliers.tocoo()
        self.active_ = np.column_stack([training.order[multipliers.row], multipliers.col])
        self.multipliers_ = multipliers.data
        self.n_iter_ = int(solution.iterations)
        self.solver_used_ = solution.solver

    def _start(self, training: TrainingSet, classes: NDArray[Any]) -> Start | None:
        """Return what the last solution was made of; None if it does not fit."""
        columns = self._previous_examples(training, classes)
        if columns is None:
            return None
        rows, rivals = getattr(self, "active_", np.zeros((0, 2), dtype=np.int64)).T
        examples = training.place_of(rows)
        return Start(columns[columns >= 0], examples[examples >= 0], rivals[examples >= 0])

    def _shape(self, n_classes: int) -> tuple[int, int]:
        return n_classes, n_classes

    def _weights(self) -> Floats:
        return np.asarray(self.dual_coef_ @ self.support_vectors_)

    def _binary_score(self, scores: Floats) -> Floats:
        return (scores[:, 1] - scores[:, 0]) / 2.0  # so that the margin is at 1 and -1, as in other machines
