"""Zien, De Bona and Ong's machine, trained in the primal."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from polymargin.decision.probabilities import log_probabilities, normalized_probabilities, softmax_probabilities
from polymargin.estimators._documentation import with_shared_documentation
from polymargin.estimators._largest_score import LargestScoreMixin
from polymargin.estimators._linear import LINEAR_KEPT, LinearSolverMixin
from polymargin.estimators._machine import KernelMachine
from polymargin.features.basis import Basis, Examples, incomplete_cholesky, kernel_pca, subset
from polymargin.features.transformers import chosen_points
from polymargin.formulations.solution import Floats, Ints, Solution, TrainingSet
from polymargin.kernels import Kernel, KernelParameter
from polymargin.models.declared import Kept
from polymargin.solvers import Objective, OneVsRestLoss, Outcome, Progress, SoftmaxLoss, class_factor, minimize
from polymargin.support.blocks import RowBlocks, row_blocks
from polymargin.support.examples import Matrix, dense
from polymargin.support.threads import thread_count
from polymargin.support.typing import Bias, CacheSize, ClassWeight, FeatureBasis, Gamma, Strategy

# Up to here a fit goes on to the limits of rounding, so that the order of the rows, or weights in place of repeated
# rows, change nothing.
_SMALL = 1024


@dataclass(frozen=True)
class SoftmaxSolution(Solution):
    """The solved primal, as an expansion on the points of the basis."""

    points: Ints
    coefficients: Floats  # points x classes
    intercept: Floats
    weights: Floats | None  # features x classes, where the examples themselves are the features
    gradient_norm: float


@with_shared_documentation
class SoftmaxSVC(LargestScoreMixin, LinearSolverMixin, KernelMachine):
    r"""Primal machine: all classes together, a soft maximum of logistic losses against the wrong classes.

    One optimisation problem, Zien et al. (1.1), for the scores :math:`s_m(x) = w_m \cdot \phi(x) + b_m` of all classes,

    .. math:: \min_{w, b} \tfrac12 \sum_m \|w_m\|^2 + \sum_i C_i \operatorname{smax}_\gamma \bigl\{
              \log(1 + e^{s_u(x_i) - s_{y_i}(x_i)}) : u \ne y_i \bigr\}, \qquad
              \operatorname{smax}_\gamma(t) = \tfrac1\gamma \log\Bigl(1 + \sum_u (e^{\gamma t_u} - 1)\Bigr).

    :math:`\gamma = 0` sums the losses, as Weston and Watkins do, :math:`\gamma = \infty` takes the largest, as Crammer
    and Singer do, and :math:`\gamma = 1` is multinomial logistic regression. The machine is trained in the primal, by
    Newton's method with conjugate gradients on finite features: coordinates in a basis of the span of the training
    examples, or of some of them. The scores are a kernel expansion on the points of the basis.

    The problem is convex for :math:`\gamma = 0` and :math:`\gamma \ge 1`; the paper does not say that it is not
    between. Then the fit ends at a stationary point, and ``dual_objective_`` is the bound for :math:`\gamma = 1`, which
    does not come near.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a loss, finite. Example t has ``C_t = C * class_weight * sample_weight``.
    aggregation : float, default=1.0
        :math:`\gamma`, from 0 (the sum of the losses) to ``inf`` (the largest).
    basis : {"kpca", "cholesky", "subset"}, default="kpca"
        The features: kernel principal components, an incomplete Cholesky factorisation, or the principal components of
        a random subset of the examples; see :mod:`polymargin.features`. Without ``rank`` they differ in cost alone.
    rank : int or None, default=None
        At most so many features, of which the score functions are then made; None is exact. For the linear kernel None
        takes the examples as they are, and there is no basis.
    class_kernel : array-like of shape (k, k) or None, default=None
        A positive semi-definite kernel of the classes, in the order of ``classes_``: Zien et al. (1.2). None is the
        identity, which says nothing about the classes.
    strategy : {"joint", "one-vs-rest"}, default="joint"
        ``"one-vs-rest"`` solves k binary problems of the same kind, each class against the rest.
    bias : {"free", "regularized"} or None, default="free"
        ``"free"``: b costs nothing, as in the paper. ``"regularized"``: :math:`\tfrac12 \sum_m b_m^2` joins the
        objective. None: no b.
    <kernel>
    tol : float, default=1e-3
        Relative gap between the objective and its lower bound at which to stop. For a problem that is not convex the
        gap that the same gradient would mean if it were. Up to 1,024 examples are solved to rounding.
    class_weight : dict, "balanced" or None, default=None
        Factors on C for each class; ``"balanced"`` makes them inversely proportional to class frequencies.
    max_iter : int, default=-1
        Most Newton steps, -1 for no limit.
    time_limit : float or None, default=None
        Most seconds for the fit; the best answer so far is kept, with a warning. The features are computed in any case.
    cache_size : "auto" or float, default="auto"
        Unused: there is no cache. The features take ``8 * n_samples * rank`` bytes.
    n_jobs : int or None, default=None
        Threads; None is 1, -1 all cores. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Chooses the points of ``basis="subset"``; None is always the same choice. Unused elsewhere.
    verbose : int, default=0
        1 shows a progress bar.
    warm_start : bool, default=False
        Start from the last solution, when the classes are the same: useful for a series of C.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The classes.
    n_features_in_ : int
        Number of features seen by ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had names that are strings.
    support_ : ndarray of shape (n_SV,)
        Rows of the points of the basis, grouped by class; without a ``rank`` (nearly) all examples: no loss is zero.
    support_vectors_ : {ndarray, CSR} of shape (n_SV, n_features)
        These points; empty for a precomputed kernel.
    n_support_ : ndarray of shape (k,)
        Number of points of each class.
    dual_coef_ : ndarray of shape (k, n_SV)
        Coefficients of the points in each class score. With ``strategy="joint"`` a column sums to zero: only
        differences of scores have a meaning.
    intercept_ : ndarray of shape (k,)
        Intercepts of the class scores.
    coef_ : ndarray of shape (k, n_features)
        Weights of the features, for the linear kernel.
    n_iter_ : int
        Newton steps.
    primal_objective_ : float
        Objective; for ``"one-vs-rest"`` the sum over the binary problems.
    dual_objective_ : float
        Lower bound of its minimum: the value of the dual at the slopes of the losses. Without a bias that is the
        objective less half the squared norm of the gradient. It is about the problem in these features: with a ``rank``
        it says nothing about the one without.
    gradient_norm_ : float
        Norm of the gradient at the end.
    <outcome>

    References
    ----------
    A. Zien, F. De Bona, C. S. Ong, "Training and approximation of a primal multiclass support vector machine", Applied
    Stochastic Models and Data Analysis (ASMDA) 2007.

    O. Chapelle, "Training a support vector machine in the primal", Neural Computation 19(5), 2007,
    doi:10.1162/neco.2007.19.5.1155.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import SoftmaxSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = SoftmaxSVC(C=10).fit(X, y)
    >>> round(machine.score(X, y), 2)
    0.98
    >>> machine.predict_proba(X[:2]).round(2)
    array([[0.99, 0.01, 0.  ],
           [0.99, 0.01, 0.  ]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KernelMachine._parameter_constraints,
        "aggregation": [Interval(Real, 0, None, closed="both")],
        "basis": [StrOptions({"kpca", "cholesky", "subset"})],
        "rank": [Interval(Integral, 1, None, closed="left"), None],
        "class_kernel": ["array-like", None],
        "strategy": [StrOptions({"joint", "one-vs-rest"})],
        "bias": [StrOptions({"regularized", "free"}), None],
    }
    _kept = KernelMachine._kept | LINEAR_KEPT | {"gradient_norm_": Kept("number", report=True)}

    dual_coef_: Floats
    n_iter_: int
    gradient_norm_: float
    solver_used_: str

    def __init__(
        self,
        C: float = 1.0,
        *,
        aggregation: float = 1.0,
        basis: FeatureBasis = "kpca",
        rank: int | None = None,
        class_kernel: Any = None,
        strategy: Strategy = "joint",
        bias: Bias = "free",
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
        self.aggregation = aggregation
        self.basis = basis
        self.rank = rank
        self.class_kernel = class_kernel
        self.strategy = strategy
        self.bias = bias

    def predict_proba(self, X: Any) -> Floats:
        r"""Return probabilities of the classes.

        With ``strategy="joint"`` they are :math:`e^{s_m(x)} / \sum_u e^{s_u(x)}`. For ``aggregation=1`` this is the
        model whose penalised likelihood the fit maximises: the probabilities are those of regularised multinomial
        logistic regression, and as good as its assumptions and ``C``. For any other aggregation no probability model
        stands behind the loss: they rank the classes as the scores do, but are not calibrated. With
        ``strategy="one-vs-rest"`` each binary problem is a logistic regression, and the k probabilities
        "this class against the rest" are scaled to sum to one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples, k)
            Probabilities, in the order of ``classes_``; the largest is that of the class that ``predict`` returns.
        """
        scores = self._all_scores(self._checked_queries(X))
        return softmax_probabilities(scores) if self._joint(scores.shape[1]) else normalized_probabilities(scores)

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples, k)
            Logarithms of what ``predict_proba`` gives, in the order of ``classes_``; of 0 it is ``-inf``.
        """
        return log_probabilities(self.predict_proba(X))

    def _joint(self, n_classes: int) -> bool:
        return self.strategy == "joint" or n_classes == 2  # one class against the rest of one is both

    def _solve(
        self, X: Matrix, y: NDArray[Any], kernel: Kernel, training: TrainingSet, classes: NDArray[Any]
    ) -> SoftmaxSolution:
        if not np.isfinite(self.C):
            raise ValueError("C must be finite: the logistic loss is never zero, so there is no hard margin")
        kernel.check_training(X)
        factor = self._class_factor(len(classes))

        def train(
            budget_bytes: int, threads: int, time_limit: float, progress: Progress | None, **options: Any
        ) -> dict[str, Any]:
            started = time.perf_counter()
            with row_blocks(self.n_jobs) as blocks:
                order = training.order
                key = self.basis, self.rank, self.random_state, order.tobytes()
                basis, Z, evaluations = kernel.features(key, lambda: self._features(X, kernel, order, blocks))
                objective = self._objective(Z, training, factor, blocks)

                def answer(outcome: Outcome) -> dict[str, Any]:
                    return self._expansion(objective, outcome.point, basis) | {
                        "primal": outcome.primal,
                        "dual": outcome.dual,
                        "violation": outcome.gradient_norm,
                        "gradient_norm": outcome.gradient_norm,
                        "iterations": outcome.iterations,
                        "status": outcome.status,
                        "evaluations": evaluations,
                    }

                def report(*counts: Any, outcome: Callable[[], Outcome] | None = None) -> bool:
                    assert progress is not None
                    return progress(*counts, None if outcome is None else lambda: answer(outcome()))

                return answer(
                    minimize(
                        objective,
                        self._start(objective, training, classes),
                        polish=len(training.order) <= _SMALL and kernel.refine,
                        time_limit=time_limit - (time.perf_counter() - started),
                        progress=None if progress is None else report,
                        **options,
                    )
                )

        return self._run(X, y, None, train, SoftmaxSolution, training, classes, measure="gap")

    def _class_factor(self, n_classes: int) -> Floats:
        """Return a factor B of the kernel of the classes, BB'."""
        if self.class_kernel is not None:
            if self.strategy != "joint":
                raise ValueError("class_kernel needs strategy='joint': binary problems know nothing of each other")
            return class_factor(self.class_kernel, n_classes)
        # A binary problem has scores +s and -s of one weight vector where the joint problem has two: half the norm.
        return np.eye(n_classes) if self._joint(n_classes) else np.eye(n_classes) / np.sqrt(2.0)

    def _features(self, X: Matrix, kernel: Kernel, order: Ints, blocks: RowBlocks) -> tuple[Basis | None, Any, int]:
        """Return the basis (None where the examples themselves are the features), features, kernel evaluations."""
        if kernel.kind == "linear" and self.rank is None:
            Z = sp.csr_array(X[order]) if sp.issparse(X) else X[order]
            return None, Z.astype(np.float64), 0
        examples = Examples(X, order, kernel, thread_count(self.n_jobs))
        if self.basis == "kpca":
            basis, Z = kernel_pca(examples, self.rank)
        elif self.basis == "cholesky":
            basis, Z = incomplete_cholesky(examples, self.rank, blocks)
        else:
            points = chosen_points(len(order), self.rank, "random", self.random_state)
            basis, Z = subset(examples, points, blocks)
        return basis, Z, examples.evaluations

    def _objective(self, Z: Any, training: TrainingSet, factor: Floats, blocks: RowBlocks) -> Objective:
        n = len(training.order)
        if self.bias == "regularized":
            Z = sp.csr_array(sp.hstack([Z, np.ones((n, 1))])) if sp.issparse(Z) else np.hstack([Z, np.ones((n, 1))])
        loss = SoftmaxLoss(self.aggregation) if self._joint(training.n_classes) else OneVsRestLoss()
        codes = training.class_of(np.arange(n))
        return Objective(Z, codes, training.upper, loss, factor, self.bias == "free", blocks)

    def _start(self, objective: Objective, training: TrainingSet, classes: NDArray[Any]) -> Floats:
        """Return the last solution, projected onto the basis, or zero."""
        example = self._previous_examples(training, classes) if self.warm_start else None
        if example is None:
            return np.zeros(objective.size)
        known = example >= 0
        return objective.projection(example[known], dense(self.dual_coef_.T[known]), self._intercepts)

    def _expansion(self, objective: Objective, point: Floats, basis: Basis | None) -> dict[str, Any]:
        """Return the scores as an expansion on the points of the basis, or on the features."""
        weights, intercept = objective.score_weights(point)
        if self.bias == "regularized":
            weights, intercept = weights[:-1], weights[-1]
        if basis is None:
            points = np.arange(len(objective.codes))
            coefficients = objective.representation(point)
        else:
            ascending = np.argsort(basis.points)
            points = basis.points[ascending]
            coefficients = basis.coefficients[ascending] @ weights
        if self._joint(objective.n_classes):  # a common part of all scores decides nothing
            weights, coefficients, intercept = (
                part - part.mean(axis=-1, keepdims=True) for part in (weights, coefficients, intercept)
            )
        return {
            "points": points,
            "coefficients": coefficients,
            "intercept": intercept,
            "weights": weights if basis is None else None,
        }

    def _store(self, X: Matrix, training: TrainingSet, solution: SoftmaxSolution) -> None:
        self._store_support(X, training, solution.points, solution)
        self._forget_linear()
        if solution.weights is not None:
            self._linear_weights = solution.weights
        self.dual_coef_ = np.ascontiguousarray(solution.coefficients.T)
        self._store_intercepts(solution.intercept)
        self.n_iter_ = int(solution.iterations)
        self.gradient_norm_ = float(solution.gradient_norm)
        self.solver_used_ = "newton-cg"

    def _shape(self, n_classes: int) -> tuple[int, int]:
        return n_classes, n_classes

    def _blocks(self) -> list[tuple[tuple[int, int], list[int]]]:
        return [((0, len(self.support_)), list(range(len(self.classes_))))]
