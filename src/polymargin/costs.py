r"""Costs between classes: what it costs to call an example of one class another.

A matrix of costs :math:`\Delta` has a row for the true class and a column for the one that is named, in the order of
``classes_``, which is sorted. Its diagonal is zero. The joint machines take one as ``costs=``; here is what makes such
matrices, and what measures by them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polymargin.support.numeric import Floats

__all__ = [
    "CostScorer",
    "cheapest_classes",
    "checked_costs",
    "make_cost_scorer",
    "mean_cost",
    "ordinal_costs",
    "taxonomy_costs",
]

Normalisation = Literal["max", "mean"] | None
Path = tuple[Hashable, ...]


def checked_costs(costs: ArrayLike, n_classes: int | None = None) -> Floats:
    """Return costs between classes as an array, or raise ValueError with what would be right.

    Parameters
    ----------
    costs : array-like of shape (k, k)
        What it costs to call an example of a class (row) another (column).
    n_classes : int, default=None
        k; None for any.

    Returns
    -------
    ndarray of shape (k, k)
        The costs: zero on the diagonal, none negative, one positive at least.

    Examples
    --------
    >>> from polymargin.costs import checked_costs
    >>> checked_costs([[0, 1], [5, 0]])
    array([[0., 1.],
           [5., 0.]])
    """
    try:
        table = np.array(costs, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"costs must be a square array of numbers, got {type(costs).__name__}") from None
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        raise ValueError(f"costs must be square, a row and a column for each class, got shape {table.shape}")
    if n_classes is not None and len(table) != n_classes:
        raise ValueError(
            f"costs must have a row and a column for each class, {n_classes} x {n_classes}, got {table.shape}"
        )
    for bad, right in (
        (~np.isfinite(table), "finite"),
        (table < 0.0, "at least 0"),
        ((table != 0.0) & np.eye(len(table), dtype=bool), "0 on the diagonal: the right class costs nothing"),
    ):
        if np.any(bad):
            row, column = np.argwhere(bad)[0]
            raise ValueError(f"costs must be {right}, got {table[row, column]} in row {row}, column {column}")
    if len(table) > 1 and not np.any(table):
        raise ValueError("costs must have a positive number: if nothing costs anything there is nothing to learn")
    return table


def taxonomy_costs(
    taxonomy: Sequence[Any] | NDArray[Any] | Mapping[Any, Any],
    *,
    classes: Sequence[Any] | NDArray[Any] | None = None,
    separator: str = ".",
    decay: float = 1.0,
    normalise: Normalisation = "max",
) -> Floats:
    r"""Return costs from a tree of classes: how far it is from one to the other.

    The way goes from a class up to the first common ancestor and down to the other class. An edge at depth d, the one
    from the root having depth 1, has the length :math:`\text{decay}^{d-1}`; a cost is the sum of the lengths. Mistakes
    between neighbours are cheap, those between branches dear. Keerthi et al. (2008), section 5, point to such losses.

    Parameters
    ----------
    taxonomy : sequence of str or tuple, or mapping
        The path of each class from the root, as ``"a.b.c"`` or ``("a", "b", "c")``, in the order of the classes:
        machines sort theirs. Or the tree as a mapping from each node to its parent, None for the root; then nodes
        that are nobody's parent are the classes, sorted.
    classes : sequence, default=None
        With a mapping, the classes, in their order.
    separator : str, default="."
        What is between the parts of paths that are text.
    decay : float, default=1.0
        How long an edge is beside one that is a level higher; 1 counts edges. Above 0.
    normalise : {"max", "mean"} or None, default="max"
        Whether the largest cost is 1, or the mean of all off the diagonal, or lengths stay as they are.

    Returns
    -------
    ndarray of shape (k, k)
        The costs, symmetric.

    References
    ----------
    S. S. Keerthi, S. Sundararajan, K.-W. Chang, C.-J. Hsieh, C.-J. Lin, "A sequential dual method for large scale
    multi-class linear SVMs", KDD 2008, doi:10.1145/1401890.1401942.

    Examples
    --------
    >>> from polymargin.costs import taxonomy_costs
    >>> taxonomy_costs(["comp.graphics", "comp.windows", "sci.space"])
    array([[0. , 0.5, 1. ],
           [0.5, 0. , 1. ],
           [1. , 1. , 0. ]])
    >>> parents = {"cat": "animal", "dog": "animal", "car": "thing", "animal": None, "thing": None}
    >>> taxonomy_costs(parents, classes=["cat", "dog", "car"], normalise=None)
    array([[0., 2., 4.],
           [2., 0., 4.],
           [4., 4., 0.]])
    """
    if not (np.isfinite(decay) and decay > 0):
        raise ValueError(f"decay must be above 0, got {decay}")
    if isinstance(taxonomy, Mapping):
        paths = _paths_of_tree(taxonomy, classes)
    elif classes is not None:
        raise ValueError("classes is for a taxonomy that is a mapping: paths are in the order of the classes already")
    else:
        paths = [_path(entry, separator) for entry in taxonomy]
    if len(paths) < 2:
        raise ValueError(f"a taxonomy needs two classes at least, got {len(paths)}")
    repeated = next((path for at, path in enumerate(paths) if path in paths[:at]), None)
    if repeated is not None:
        raise ValueError(f"every class needs a path of its own, but two have {repeated!r}")
    costs = np.array([[_way(one, other, float(decay)) for other in paths] for one in paths])
    return _normalised(costs, normalise)


def ordinal_costs(n_classes: int, *, power: float = 1.0, normalise: Normalisation = None) -> Floats:
    r"""Return costs of classes in an order, :math:`|y - m|^p`: the further away the worse.

    Parameters
    ----------
    n_classes : int
        k, the number of classes, whose order is that of sorting.
    power : float, default=1.0
        p, above 0: with 1 the mean cost is the mean absolute error of ranks, with 2 the mean squared one.
    normalise : {"max", "mean"} or None, default=None
        Whether the largest cost is 1, or the mean of all off the diagonal, or differences stay as they are.

    Returns
    -------
    ndarray of shape (k, k)
        The costs, symmetric.

    Examples
    --------
    >>> from polymargin.costs import ordinal_costs
    >>> ordinal_costs(3)
    array([[0., 1., 2.],
           [1., 0., 1.],
           [2., 1., 0.]])
    """
    if n_classes < 2:
        raise ValueError(f"n_classes must be at least 2, got {n_classes}")
    if not (np.isfinite(power) and power > 0):
        raise ValueError(f"power must be above 0, got {power}")
    ranks = np.arange(n_classes, dtype=np.float64)
    return _normalised(np.abs(ranks[:, None] - ranks) ** float(power), normalise)


def mean_cost(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    costs: ArrayLike,
    *,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return what predictions cost on the average.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The classes of the examples.
    y_pred : array-like of shape (n,)
        What they were called.
    costs : array-like of shape (k, k)
        What it costs to call an example of a class (row) another (column).
    classes : array-like of shape (k,), default=None
        The classes in the order of the costs; None for those of both arrays, sorted, which must then be k.
    sample_weight : array-like of shape (n,), default=None
        How much each example counts.

    Returns
    -------
    float
        The mean cost; with costs of 1 the share of errors.

    Examples
    --------
    >>> from polymargin.costs import mean_cost, ordinal_costs
    >>> mean_cost([0, 1, 2, 2], [0, 2, 2, 0], ordinal_costs(3))
    0.75
    """
    table, true, predicted = checked_costs(costs), np.ravel(np.asarray(y_true)), np.ravel(np.asarray(y_pred))
    if len(true) != len(predicted) or len(true) == 0:
        raise ValueError(f"y_true and y_pred must have as many entries, got {len(true)} and {len(predicted)}")
    names = np.unique(np.concatenate([true, predicted])) if classes is None else np.ravel(np.asarray(classes))
    if len(names) != len(table):
        hint = "give classes=, in the order of the costs" if classes is None else "one for each row of the costs"
        raise ValueError(f"costs are {len(table)} x {len(table)}, but there are {len(names)} classes: {hint}")
    each = table[_places(true, names, "y_true"), _places(predicted, names, "y_pred")]
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    return float(np.average(each, weights=weight))


@dataclass(frozen=True, eq=False)
class CostScorer:
    """A scorer as scikit-learn takes it: minus the mean cost, so that larger is better.

    Parameters
    ----------
    costs : ndarray of shape (k, k)
        What it costs to call an example of a class (row) another (column).
    classes : ndarray of shape (k,), default=None
        The classes in the order of the costs; None for the estimator's ``classes_``.
    """

    costs: Any
    classes: Any = None

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return minus the mean cost of an estimator's predictions.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier.
        X : {array-like, sparse matrix}
            Examples.
        y : array-like
            Their classes.
        sample_weight : array-like, default=None
            How much each example counts.

        Returns
        -------
        float
            Minus the mean cost.
        """
        return self.of(estimator.predict(X), y, estimator.classes_, sample_weight)

    def of(self, predicted: Any, y: Any, classes: Any, sample_weight: Any = None) -> float:
        """Return minus the mean cost of predictions.

        Parameters
        ----------
        predicted : array-like
            What examples were called.
        y : array-like
            Their classes.
        classes : array-like
            All classes, where the scorer has none of its own.
        sample_weight : array-like, default=None
            How much each example counts.

        Returns
        -------
        float
            Minus the mean cost.
        """
        known = classes if self.classes is None else self.classes
        return -mean_cost(y, predicted, self.costs, classes=known, sample_weight=sample_weight)


def make_cost_scorer(costs: ArrayLike, *, classes: ArrayLike | None = None) -> CostScorer:
    """Return a scorer for searches and cross-validation: minus the mean cost, so that larger is better.

    Parameters
    ----------
    costs : array-like of shape (k, k)
        What it costs to call an example of a class (row) another (column).
    classes : array-like of shape (k,), default=None
        The classes in the order of the costs; None for the estimator's ``classes_``.

    Returns
    -------
    CostScorer
        What ``scoring=`` takes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> from polymargin import WestonWatkinsSVC
    >>> from polymargin.costs import make_cost_scorer, ordinal_costs
    >>> X, y = load_iris(return_X_y=True)
    >>> scorer = make_cost_scorer(ordinal_costs(3))
    >>> cross_val_score(WestonWatkinsSVC(costs=ordinal_costs(3)), X, y, scoring=scorer).round(3)
    array([-0.033, -0.033, -0.067, -0.067, -0.   ])
    """
    return CostScorer(checked_costs(costs), None if classes is None else np.ravel(np.asarray(classes)))


def cheapest_classes(probabilities: ArrayLike, costs: ArrayLike, *, classes: ArrayLike | None = None) -> NDArray[Any]:
    r"""Return the class of least expected cost, :math:`\arg\min_m \sum_y p_y \Delta_{ym}`.

    ``predict`` of a machine goes by its scores, with costs and without. Where there are probabilities, this is the
    decision that costs least if they are right.

    Parameters
    ----------
    probabilities : array-like of shape (n, k)
        Of the classes, as ``predict_proba`` returns them.
    costs : array-like of shape (k, k)
        What it costs to call an example of a class (row) another (column).
    classes : array-like of shape (k,), default=None
        The classes in the order of the costs; None for their numbers.

    Returns
    -------
    ndarray of shape (n,)
        Classes; of equal costs the first.

    Examples
    --------
    >>> from polymargin.costs import cheapest_classes
    >>> cheapest_classes([[0.6, 0.4], [0.9, 0.1]], [[0, 1], [5, 0]], classes=["ham", "spam"])
    array(['spam', 'ham'], dtype='<U4')
    """
    p = np.asarray(probabilities, dtype=np.float64)
    if p.ndim != 2:
        raise ValueError(f"probabilities must have a row for each example, got shape {p.shape}")
    cheapest = np.argmin(p @ checked_costs(costs, p.shape[1]), axis=1)
    if classes is None:
        return cheapest
    names = np.ravel(np.asarray(classes))
    if len(names) != p.shape[1]:
        raise ValueError(f"classes must be {p.shape[1]}, one for each column of probabilities, got {len(names)}")
    return names[cheapest]


def _places(labels: NDArray[Any], classes: NDArray[Any], name: str) -> NDArray[np.intp]:
    """Return which class each label is."""
    order = np.argsort(classes, kind="stable")
    at = np.minimum(np.searchsorted(classes, labels, sorter=order), len(classes) - 1)
    places = order[at]
    unknown = np.flatnonzero(classes[places] != labels)
    if unknown.size:
        raise ValueError(f"{name} has {labels[unknown[0]]!r}, which is none of the classes {classes.tolist()}")
    return places


def _path(entry: Any, separator: str) -> Path:
    """Return the nodes from the root to a class, without the root."""
    parts: Path = tuple(entry.split(separator)) if isinstance(entry, str) else tuple(entry)
    if not parts or "" in parts:
        raise ValueError(f"a path must be like 'a{separator}b{separator}c' or ('a', 'b', 'c'), got {entry!r}")
    return parts


def _paths_of_tree(parents: Mapping[Any, Any], classes: Any) -> list[Path]:
    """Return the path of each class in a tree; what has no parent hangs on the one root."""
    if classes is None:
        inner = set(parents.values())
        classes = sorted(node for node in parents if node not in inner)
    paths = []
    for leaf in classes.tolist() if isinstance(classes, np.ndarray) else classes:
        if leaf not in parents:
            raise ValueError(f"the tree has no node {leaf!r}, which is a class")
        path, node = [leaf], parents[leaf]
        while node is not None:
            if node in path:
                raise ValueError(f"the tree has a circle through {node!r}")
            path.append(node)
            node = parents.get(node)
        paths.append(tuple(reversed(path)))
    return paths


def _way(one: Path, other: Path, decay: float) -> float:
    """Return the length of the way from one class to another."""
    common = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return sum(decay**depth for path in (one, other) for depth in range(common, len(path)))


def _normalised(costs: Floats, normalise: Normalisation) -> Floats:
    k = len(costs)
    units = {"max": costs.max(), "mean": costs.sum() / (k * (k - 1)), None: 1.0}
    if normalise not in units:
        raise ValueError(f"normalise must be 'max', 'mean' or None, got {normalise!r}")
    scaled: Floats = costs / units[normalise]
    return scaled
