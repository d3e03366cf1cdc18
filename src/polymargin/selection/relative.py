"""Parameters relative to the data: the widths and costs around which to search."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.utils import check_array, check_random_state, check_X_y

from polymargin.kernels import Kernel
from polymargin.support.examples import dense
from polymargin.support.threads import one_blas_thread

_WIDTHS = (0.5, 1.0, 2.0, 4.0, 8.0)
_COSTS = (1.0, 10.0, 1e2, 1e3, 1e4)
_ENOUGH = 2000  # examples: two million distances


def default_width(X: Any, n_classes: int) -> float:
    r"""Return the width of an RBF kernel that suits the distances between examples.

    It is the 1/k quantile of the pairwise distances: roughly the largest distance within a class, if classes are
    clusters of one size. The kernel :math:`\exp(-|x - x'|^2 / (2 \sigma^2))` has ``gamma = 1 / (2 * sigma**2)``.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Examples; of more than 2,000 a fixed random choice is taken.
    n_classes : int
        k, the number of classes.

    Returns
    -------
    float
        :math:`\sigma`; 1 if all examples are equal.

    References
    ----------
    O. Chapelle, A. Zien, "Semi-supervised classification by low density separation", AISTATS 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin.selection import default_width
    >>> X, y = load_iris(return_X_y=True)
    >>> round(default_width(X, 3), 2)
    1.33
    """
    if n_classes < 1:
        raise ValueError(f"n_classes must be positive, got {n_classes}")
    X = check_array(X, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2)
    distances = np.sort(pdist(dense(_some(X))))
    width = float(distances[min(len(distances) - 1, round(len(distances) / n_classes))])
    positive = distances[distances > 0]
    if width > 0:
        return width
    return float(positive[0]) if positive.size else 1.0


def default_cost(X: Any, gamma: float) -> float:
    r"""Return the cost that suits the spread of examples in the space of an RBF kernel.

    It is the inverse of their variance there, :math:`1 / (\frac1n \sum_i K_{ii} - \frac1{n^2} \sum_{ij} K_{ij})`.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Examples; of more than 2,000 a fixed random choice is taken.
    gamma : float
        Of the kernel.

    Returns
    -------
    float
        C; 1 if all examples are equal.

    References
    ----------
    O. Chapelle, A. Zien, "Semi-supervised classification by low density separation", AISTATS 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin.selection import default_cost
    >>> X, y = load_iris(return_X_y=True)
    >>> round(default_cost(X, gamma=0.25), 2)
    1.63
    """
    X = _some(check_array(X, accept_sparse="csr", dtype=np.float64))
    rows = np.arange(X.shape[0])
    with one_blas_thread():
        K = Kernel("rbf", float(gamma), 0.0, 0).matrix(X, rows, X, rows, 1)
    variance = 1.0 - float(K.mean())
    return 1.0 / variance if variance > 0 else 1.0


def zien_grid(X: Any, y: Any) -> list[dict[str, list[float]]]:
    r"""Return the grid of Zien et al. for RBF machines: five widths and five costs, relative to the data.

    The widths are 1/2, 1, 2, 4 and 8 times :func:`default_width`, the costs 1, 10, ..., 10,000 times
    :func:`default_cost`, which depends on the width: so there is one grid for each width.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training examples.
    y : array-like of shape (n_samples,)
        Their classes.

    Returns
    -------
    list of dict
        Grids for ``GridSearchCV``, each with one ``gamma`` and five values of ``C``.

    References
    ----------
    A. Zien, F. De Bona, C. S. Ong, "Training and approximation of a primal multiclass support vector machine", Applied
    Stochastic Models and Data Analysis (ASMDA) 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from polymargin import SoftmaxSVC
    >>> from polymargin.selection import zien_grid
    >>> X, y = load_iris(return_X_y=True)
    >>> search = GridSearchCV(SoftmaxSVC(), zien_grid(X, y), cv=3).fit(X, y)
    >>> bool(search.best_score_ > 0.96)
    True
    """
    X, y = check_X_y(X, y, accept_sparse="csr", dtype=np.float64)
    width = default_width(X, len(np.unique(y)))
    gammas = [1.0 / (2.0 * (factor * width) ** 2) for factor in _WIDTHS]
    return [{"gamma": [gamma], "C": [factor * default_cost(X, gamma) for factor in _COSTS]} for gamma in gammas]


def _some(X: Any) -> Any:
    if X.shape[0] <= _ENOUGH:
        return X
    return X[np.sort(check_random_state(0).permutation(X.shape[0])[:_ENOUGH])]
