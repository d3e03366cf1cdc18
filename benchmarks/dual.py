"""Dual objective of an all-pairs machine, recomputed from its coefficients by code that trusts no solver."""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel


def pairwise_dual(support: NDArray, dual_coef: NDArray, n_support: NDArray, gamma: float) -> float:
    r"""Sum over all pairs of the maximised dual, in float64.

    For the pair (i, j) with signed coefficients :math:`c = y \alpha` the dual is
    :math:`\sum |c| - \frac12 c^\top K c`. The layout is LIBSVM's: support vectors are ordered by class, and
    row r of `dual_coef` holds, for a support vector of class i, its coefficient against class r if r < i,
    else against class r + 1. The square splits into three class blocks, so each block of the kernel is
    computed once: the diagonal block of class i serves all its pairs at once as a trace.

    Parameters
    ----------
    support : array of shape (n_sv, n_features), support vectors ordered by class
    dual_coef : array of shape (k - 1, n_sv)
    n_support : array of shape (k,), support vectors per class
    gamma : float, width of the RBF kernel
    """
    cuts = np.cumsum(n_support)[:-1]
    rows = np.split(support.astype(np.float64), cuts)
    coefficients = np.split(dual_coef.astype(np.float64), cuts, axis=1)
    square = sum(np.sum((c @ rbf_kernel(x, gamma=gamma)) * c) for x, c in zip(rows, coefficients, strict=True))
    for i, j in combinations(range(len(rows)), 2):
        block = rbf_kernel(rows[i], rows[j], gamma=gamma)
        square += 2 * (coefficients[i][j - 1] @ block @ coefficients[j][i])
    return float(np.abs(dual_coef).sum() - square / 2)


def recompute(model: object, X: NDArray, y: NDArray, gamma: float) -> float | None:
    """Recompute the dual of any fitted machine that keeps LIBSVM's layout; None if it keeps another."""
    coefficients = np.asarray(model.dual_coef_)
    classes = np.searchsorted(model.classes_, y[model.support_])
    if coefficients.shape != (len(model.classes_) - 1, len(model.support_)):
        return None
    order = np.argsort(classes, kind="stable")
    counts = np.bincount(classes, minlength=len(model.classes_))
    return pairwise_dual(X[model.support_][order], coefficients[:, order], counts, gamma)
