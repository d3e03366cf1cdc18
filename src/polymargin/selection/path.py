"""Solutions for a series of costs, each started from the last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.multiclass import check_classification_targets

from polymargin.estimators import OneVsRestSVC, WestonWatkinsSVC
from polymargin.estimators.base import MulticlassSVC
from polymargin.formulations import checked_weights, training_set
from polymargin.support.examples import check_squares, checked_examples
from polymargin.support.numeric import Matrix

_PARTS = ("classes_", "model_", "outcome_")


def regularization_path(machine: Any, X: Any, y: Any, costs: Iterable[float], sample_weight: Any = None) -> list[Any]:
    """Fit a machine for every cost, in ascending order, each fit starting from the solution of the one before.

    Keerthi et al. (2008, 2.3) call it seeding. The coefficients are taken as they are: scaled by the ratio of the
    costs, so that those at their limit stay there, they were a worse start.

    Parameters
    ----------
    machine : estimator
        A machine of this package that has ``warm_start``; it is not changed.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training examples.
    y : array-like of shape (n_samples,)
        Their classes.
    costs : iterable of float
        Values of C, positive and finite.
    sample_weight : array-like of shape (n_samples,), default=None
        Factors on C for each example.

    Returns
    -------
    list of estimators
        A fitted clone for each cost, in the order of ``costs``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import CrammerSingerSVC
    >>> from polymargin.selection import regularization_path
    >>> X, y = load_iris(return_X_y=True)
    >>> machines = regularization_path(CrammerSingerSVC(kernel="linear"), X, y, [0.01, 0.1, 1])
    >>> [round(machine.score(X, y), 2) for machine in machines]
    [0.67, 0.97, 0.96]
    """
    if not isinstance(machine, MulticlassSVC):
        raise TypeError(
            f"regularization_path needs a machine that is trained in the dual, got {type(machine).__name__}"
        )
    values = [float(c) for c in costs]
    if any(not (np.isfinite(c) and c > 0) for c in values):
        raise ValueError(f"costs must be positive and finite, got {values}")
    fitted: dict[int, Any] = {}
    last = None
    for at in np.argsort(values, kind="stable"):
        current = clone(machine).set_params(C=values[at], warm_start=True)
        if last is not None:
            _seed(current, last)
        fitted[int(at)] = last = current.fit(X, y, sample_weight=sample_weight)
        current.set_params(warm_start=machine.warm_start)
    return [fitted[at] for at in range(len(values))]


def _seed(machine: Any, last: Any) -> None:
    vars(machine).update({name: vars(last)[name] for name in _PARTS})


def known_cost(machine: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return the cost up to which the solution is known without a solver: every coefficient is at its limit.

    As long as no example reaches its margin, all of them pull with all their weight, so the scores are C times those
    for C = 1, and the first margin that is reached gives the bound. A series of costs need not begin below it.

    Parameters
    ----------
    machine : WestonWatkinsSVC or OneVsRestSVC
        With ``kernel="linear"`` and a bias that is not free. For Crammer-Singer with more than two classes there is no
        such cost: all wrong classes tie at first, and how they share the limit is a problem of its own.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training examples.
    y : array-like of shape (n_samples,)
        Their classes.
    sample_weight : array-like of shape (n_samples,), default=None
        Factors on C for each example; the machine's ``class_weight`` counts too.

    Returns
    -------
    float
        The largest such C, infinite if no margin is ever reached.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import WestonWatkinsSVC
    >>> from polymargin.selection import known_cost
    >>> X, y = load_iris(return_X_y=True)
    >>> round(known_cost(WestonWatkinsSVC(kernel="linear"), X, y), 5)
    0.00031
    """
    if not isinstance(machine, WestonWatkinsSVC | OneVsRestSVC) or machine.kernel != "linear" or machine.bias == "free":
        raise ValueError("known_cost is for WestonWatkinsSVC and OneVsRestSVC with kernel='linear' and no free bias")
    if getattr(machine, "costs", None) is not None:
        raise ValueError("known_cost is for costs=None: classes that cost nothing have no margin to be short of")
    unit = clone(machine).set_params(C=1.0)
    X, y = checked_examples(unit, X, y, reset=True)
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    training = training_set(
        X,
        codes,
        classes,
        C=1.0,
        class_weight=machine.class_weight,
        sample_weight=checked_weights(sample_weight, X),
    )
    X, codes = X[training.order], codes[training.order]
    check_squares(X, training.order)
    rows, k = np.arange(len(codes)), len(classes)
    margin = machine.margin if isinstance(machine, WestonWatkinsSVC) else None
    together = margin is not None
    B = np.full((len(codes), k), -1.0)
    B[rows, codes] = k - 1.0 if together else 1.0
    scores = _scores(X, training.cost_bounds[:, None] * B, machine.bias == "regularized")
    own = scores[rows, codes]
    if margin is not None:
        scores = own[:, None] - scores  # the margins; zero for the own class, which is never the largest
        return _ratio(margin, scores)
    scores *= -1.0
    scores[rows, codes] = own
    return _ratio(1.0, scores)


def _scores(X: Matrix, B: Any, regularized: bool) -> Any:
    scores = np.asarray(X @ np.asarray(X.T @ B))
    return scores + B.sum(axis=0) if regularized else scores


def _ratio(margin: float, scores: Any) -> float:
    largest = float(scores.max())
    return margin / largest if largest > 0 else float("inf")
