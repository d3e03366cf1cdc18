"""One-against-all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.machines._binary import BinaryMachine
from polymargin.machines._solution import Floats, Ints


class OneVsRestSVC(BinaryMachine):
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
    C : float, default=1.0
        Cost of a margin violation; ``inf`` asks for a hard margin. Example t has
        ``C_t = C * class_weight * sample_weight``.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
        The kernel. A callable gets two matrices of examples and returns the matrix of their kernel values.
    degree : int, default=3
        Degree of ``"poly"``.
    gamma : {"scale", "auto"} or float, default="scale"
        Factor of ``"rbf"``, ``"poly"`` and ``"sigmoid"``: ``"scale"`` is 1 / (n_features * variance of X), the
        variance being weighted when there are sample weights, ``"auto"`` is 1 / n_features.
    coef0 : float, default=0.0
        Constant term of ``"poly"`` and ``"sigmoid"``.
    tol : float, default=1e-3
        Largest violation of the optimality conditions, in units of the decision value.
    class_weight : dict, "balanced" or None, default=None
        Factors on C for each class; ``"balanced"`` makes them inversely proportional to class frequencies.
    max_iter : int, default=-1
        Most steps for one class, -1 for no limit.
    time_limit : float or None, default=None
        Most seconds for the fit; the best answer so far is kept, with a warning.
    cache_size : "auto" or float, default="auto"
        Megabytes for kernel values. ``"auto"`` takes at most half of the memory that is free.
    n_jobs : int or None, default=None
        Threads; None is 1, -1 all cores. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Unused; the fit is deterministic. Here so that all machines take the same parameters.
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
        Rows of the unique support vectors, grouped by class.
    support_vectors_ : {ndarray, CSR} of shape (n_SV, n_features)
        The support vectors; empty for a precomputed kernel.
    n_support_ : ndarray of shape (k,)
        Number of support vectors of each class.
    dual_coef_ : ndarray of shape (k, n_SV), (1, n_SV) for two classes
        Signed coefficients of the support vectors in each class score.
    intercept_ : ndarray of shape (k,), (1,) for two classes
        Intercepts of the class scores.
    coef_ : ndarray of shape (k, n_features), (1, n_features) for two classes
        Weights of the features, for the linear kernel.
    n_iter_ : ndarray of shape (k,), (1,) for two classes
        Steps taken for each class.
    primal_objective_ : float
        Primal objective, summed over the classes.
    dual_objective_ : float
        Dual objective, summed over the classes: maximised, so never larger than the primal.
    duality_gap_ : float
        Their relative difference: the certificate.
    converged_ : bool
        Whether every class met ``tol``.
    stop_reason_ : str
        "converged", "max_iter", "time_limit", "stopped" (by a callback) or "precision" (rounding hides the rest).
    solver_used_ : str
        "decomposition".
    fit_time_ : float
        Seconds that ``fit`` took.
    n_kernel_evaluations_ : int
        Kernel values computed.

    References
    ----------
    C.-W. Hsu, C.-J. Lin, "A comparison of methods for multiclass support vector machines", IEEE Transactions on
    Neural Networks 13(2), 2002, doi:10.1109/72.991427.

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

    def _problems(self, bounds: Ints) -> Ints:
        n_classes = len(bounds) - 1
        positive = np.array([1]) if n_classes == 2 else np.arange(n_classes)
        zero = np.zeros_like(positive)
        return np.column_stack([zero, zero + bounds[-1], zero, zero, bounds[positive], bounds[positive + 1]]).astype(
            np.int64
        )

    def _coefficient_rows(self, problem: Ints, example_class: Ints, n_classes: int) -> Ints:
        return problem

    def _shape(self, n_classes: int) -> tuple[int, int]:
        problems = 1 if n_classes == 2 else n_classes
        return problems, problems

    def _members(self, owner: Ints, n_classes: int) -> Iterator[Ints]:
        for _ in range(self._shape(n_classes)[1]):
            yield np.arange(len(owner))

    def _blocks(self) -> list[tuple[tuple[int, int], list[int]]]:
        return [((0, len(self.support_)), list(range(len(self.intercept_))))]

    def _weights(self) -> Floats:
        return np.asarray(self.dual_coef_ @ self.support_vectors_)

    def decision_function(self, X: Any) -> Floats:
        """Return the score of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples; for a precomputed kernel their kernel values with the training examples, of which only the
            columns of support vectors are read.

        Returns
        -------
        ndarray of shape (n_samples, k), or (n_samples,) for two classes
            Scores; for two classes the score of the second.
        """
        scores = self._all_scores(self._checked_queries(X))
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each example: the one with the largest score.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes.
        """
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[chosen]
