"""One-against-all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from polymargin.machines._binary import BinaryMachine
from polymargin.machines._documentation import with_shared_documentation
from polymargin.machines._largest_score import LargestScoreMixin
from polymargin.machines._solution import Floats, Ints


@with_shared_documentation
class OneVsRestSVC(LargestScoreMixin, BinaryMachine):
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
    <parameters>

    Attributes
    ----------
    <support>
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
    <outcome>

    References
    ----------
    <Hsu and Lin>

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
