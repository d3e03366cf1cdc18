"""One-against-all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from polymargin.estimators._binary import CostPathMachine
from polymargin.estimators._documentation import with_shared_documentation
from polymargin.estimators._largest_score import LargestScoreMixin
from polymargin.estimators._linear import LINEAR_KEPT, LinearSolution, LinearSolverMixin, chosen_solver, solve_linear
from polymargin.formulations.solution import Ints, TrainingSet
from polymargin.kernels.kernel import Kernel
from polymargin.support.examples import Matrix
from polymargin.support.typing import Bias, BinarySolver, CacheSize, ClassWeight, Gamma, KernelParameter


@with_shared_documentation
class OneVsRestSVC(LargestScoreMixin, LinearSolverMixin, CostPathMachine):
    r"""One-against-all: a binary support vector machine for each class against all others.

    For each class m the machine solves Hsu & Lin (1),

    .. math:: \min_{w, b, \xi} \tfrac12 \|w\|^2 + \sum_t C_t \xi_t
              \quad\text{s.t.}\quad y_t (w \cdot \phi(x_t) + b) \ge 1 - \xi_t,\; \xi_t \ge 0,

    with :math:`y_t = 1` for the examples of class m and -1 for all others, in its dual, and stops when the
    optimality conditions (22) hold to within ``tol``. The class with the largest score wins, (2). The problems are
    solved side by side: a row of kernel values is computed once for all classes that need it. Two classes need
    only one problem.

    Parameters
    ----------
    <C>
    bias : {"free", "regularized"} or None, default="free"
        ``"free"``: b costs nothing, Hsu & Lin (1). ``"regularized"``: :math:`\tfrac12 b^2` joins the objective. None:
        no b. The latter two need the sequential dual method, so the linear kernel.
    solver : {"auto", "decomposition", "sequential-dual"}, default="auto"
        ``"decomposition"`` solves the duals on kernel values. ``"sequential-dual"`` is dual coordinate descent for the
        linear kernel and finite C, all classes at each visit of an example, without kernel values. ``"auto"`` takes it
        for the linear kernel and more than 1,024 examples, or another bias than ``"free"``.
    <parameters>

    Attributes
    ----------
    <support>
    dual_coef_ : ndarray of shape (k, n_SV), (1, n_SV) for two classes
        Signed coefficients of the support vectors in each class score.
    intercept_ : ndarray of shape (k,), (1,) for two classes
        Intercepts of the class scores.
    coef_ : ndarray of shape (k, n_features), (1, n_features) for two classes
        Weights of the features, for the linear kernel. Those of the coefficients, but after the Newton steps of
        ``"sequential-dual"`` only as near to them as the gap says.
    n_iter_ : ndarray of shape (k,), (1,) for two classes
        Steps taken for each class; ``"sequential-dual"``: visits to examples.
    primal_objective_ : float
        Primal objective, summed over the classes.
    dual_objective_ : float
        Dual objective, summed over the classes: maximised, so never larger than the primal.
    <outcome>

    References
    ----------
    <Hsu and Lin>

    <Keerthi>

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from polymargin import OneVsRestSVC
    >>> X, y = load_wine(return_X_y=True)
    >>> machine = make_pipeline(StandardScaler(), OneVsRestSVC()).fit(X, y)
    >>> machine.predict(X[:3])
    array([0, 0, 0])
    >>> machine.decision_function(X[:3]).shape
    (3, 3)
    """

    _binary = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **CostPathMachine._parameter_constraints,
        "bias": [StrOptions({"regularized", "free"}), None],
        "solver": [StrOptions({"auto", "decomposition", "sequential-dual"})],
    }
    _kept = CostPathMachine._kept | LINEAR_KEPT

    n_iter_: Any

    def __init__(
        self,
        C: float = 1.0,
        *,
        bias: Bias = "free",
        solver: BinarySolver = "auto",
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

    def _solve(self, X: Matrix, y: NDArray[Any], kernel: Kernel, training: TrainingSet, classes: NDArray[Any]) -> Any:
        solver = chosen_solver(self, len(training.order))
        if solver == "decomposition":
            if self.bias != "free":
                raise ValueError(
                    f"bias={self.bias!r} needs solver='sequential-dual', which needs kernel='linear' and a finite C; "
                    "otherwise binary machines have a free bias"
                )
            return super()._solve(X, y, kernel, training, classes)
        labels = training.class_of(np.arange(len(training.order)))
        if len(classes) == 2:  # one column, of the second class
            labels = labels - 1
        columns = self._shape(len(classes))[1]
        start = self._previous_rows(training, classes) if self.warm_start else None
        return solve_linear(self, X, y, training, classes, labels, columns, ("one-vs-rest", 1.0), solver, start)

    def _store(self, X: Matrix, training: TrainingSet, solution: Any) -> None:
        if isinstance(solution, LinearSolution):
            self.n_iter_ = solution.iterations
            return self._store_linear(X, training, solution)
        self._forget_linear()
        super()._store(X, training, solution)

    def _costs_at_once(self) -> bool:
        return self.bias == "free"

    def _problems(self, bounds: Ints) -> Ints:
        n_classes = len(bounds) - 1
        positive = np.array([1]) if n_classes == 2 else np.arange(n_classes)
        table = np.empty((len(positive), 3, 4), dtype=np.int64)  # what comes before the class, it, and what comes after
        table[:, :, 0] = np.arange(len(positive))[:, None]
        table[:, 0, 1] = 0
        table[:, 0, 2] = table[:, 1, 1] = bounds[positive]
        table[:, 1, 2] = table[:, 2, 1] = bounds[positive + 1]
        table[:, 2, 2] = bounds[-1]
        table[:, :, 3] = -1, 1, -1
        rows = table.reshape(-1, 4)
        return rows[rows[:, 1] < rows[:, 2]]

    def _coefficient_rows(self, problem: Ints, example_class: Ints, n_classes: int) -> Ints:
        return problem

    def _shape(self, n_classes: int) -> tuple[int, int]:
        problems = 1 if n_classes == 2 else n_classes
        return problems, problems

    def _members(self, owner: Ints, n_classes: int) -> Iterator[Ints]:
        for _ in range(self._shape(n_classes)[1]):
            yield np.arange(len(owner))
