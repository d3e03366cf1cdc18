"""One-against-all."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_consistent_length

from polymargin import decision, formulations
from polymargin.estimators.base import MulticlassSVC
from polymargin.estimators.constraints import BIAS, CALIBRATION, HINGE
from polymargin.estimators.declaration import estimator
from polymargin.support.examples import checked_examples
from polymargin.support.label_sets import checked_label_sets, holds_label_sets, indicator_of
from polymargin.support.numeric import Matrix
from polymargin.support.threads import thread_count
from polymargin.support.typing import Bias, BinarySolver, CalibrationMethod, HingeLoss

_SCORES_AT_ONCE = 1 << 24  # 128 MB of them


@estimator
class OneVsRestSVC(MulticlassSVC):
    r"""One-against-all: a binary support vector machine for each class against all others.

    For each class m the machine solves Hsu & Lin (1),

    .. math:: \min_{w, b, \xi} \tfrac12 \|w\|^2 + \sum_t C_t \xi_t
              \quad\text{s.t.}\quad y_t (w \cdot \phi(x_t) + b) \ge 1 - \xi_t,\; \xi_t \ge 0,

    with :math:`y_t = 1` for the examples of class m and -1 for all others, in its dual, and stops when the
    optimality conditions (22) hold to within ``tol``. The class with the largest score wins, (2). The problems are
    solved side by side: a row of kernel values is computed once for all classes that need it. Two classes need
    only one problem.

    ``fit`` also takes several labels for each example, as an indicator matrix, dense or sparse, of 0 and 1 with a row
    for each example and a column for each of two or more labels. Each label is a problem then, and all share one kernel
    as classes do; with the linear kernel and many examples each is solved on the examples themselves. ``predict``
    returns the indicator matrix of the labels whose scores are positive, in the form that was given, and
    ``decision_function`` has a column for each label. A label that all examples have, or none, is warned of and
    predicted so everywhere. ``class_weight`` has no meaning then.

    Parameters
    ----------
    <C>
    <loss>
    bias : {"free", "regularized"} or None, default="free"
        ``"free"``: b costs nothing, Hsu & Lin (1). ``"regularized"``: :math:`\tfrac12 b^2` joins the objective. None:
        no b. The latter two need the linear kernel, and begin with the sequential dual method.
    solver : {"auto", "decomposition", "sequential-dual"}, default="auto"
        ``"decomposition"`` solves the duals on kernel values. ``"sequential-dual"`` is dual coordinate descent for the
        linear kernel and finite C, all classes at each visit of an example, without kernel values. ``"auto"`` takes it
        for the linear kernel and more than 4,096 examples, unless a matrix of kernel values is cheap beside its loops,
        or another bias than ``"free"``; what crawls goes over to another solver, `solver_used_`.
    <calibration>
    <parameters>

    Attributes
    ----------
    <support>
    multilabel_ : bool
        Whether the machine was fitted to an indicator matrix of several labels. Then `classes_` are the numbers of its
        columns, k is their number, for two as for more, and `n_support_` has the number of all support vectors alone.
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

    loss: HingeLoss = "hinge"
    bias: Bias = "free"
    solver: BinarySolver = "auto"
    calibration: CalibrationMethod | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MulticlassSVC._parameter_constraints,
        "loss": HINGE,
        "bias": BIAS,
        "solver": [StrOptions({"auto", "decomposition", "sequential-dual"})],
        "calibration": CALIBRATION,
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self.calibration is None
        return tags

    @property
    def multilabel_(self) -> bool:
        """Whether the machine was fitted to several labels for each example."""
        self.check_state()
        return "label_form_" in vars(self)

    @property
    def formulation(self) -> formulations.OneVsRest:
        """What is optimised, as the parameters say."""
        return formulations.OneVsRest(self.bias, self.solver, squared=self.loss == "squared_hinge")

    @property
    def decision_rule(self) -> decision.DecisionRule:
        """The largest score wins; of several labels those are there whose scores are positive."""
        return decision.OwnSign() if "label_form_" in vars(self) else decision.LargestScore()

    def checked_training(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Matrix, Any]:
        """Return examples and their classes, or labels, as a fit takes them; refuse what cannot be learned from.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples.
        y : {array-like, sparse matrix} of shape (n_samples,) or (n_samples, n_labels)
            Their classes, or an indicator matrix of their labels.
        reset : bool
            Whether the number and the names of the features become those of the machine.

        Returns
        -------
        {ndarray, CSR matrix}
            The examples.
        {ndarray, LabelSets}
            Their classes or labels.
        """
        if not holds_label_sets(y):
            return super().checked_training(X, y, reset=reset)
        if self.calibration is not None:
            raise ValueError(
                f"calibration={self.calibration!r} is for classes, and y has several labels: take calibration=None"
            )
        label_sets = checked_label_sets(y)
        X = checked_examples(self, X, reset=reset)
        check_consistent_length(X, label_sets.indicator)
        return X, label_sets

    def predict(self, X: Any) -> Any:
        """Return the class of each example, the one with the largest score, or its labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples,), or {ndarray, sparse matrix} of shape (n_samples, n_labels)
            Classes. Where the machine was fitted to several labels, an indicator matrix of those whose scores are
            positive: sparse if that of the fit was.
        """
        if not self.multilabel_:
            return super().predict(X)
        X, form = self.checked_queries(X), vars(self)["label_form_"]
        step = max(1, _SCORES_AT_ONCE // len(self.classes_))
        rule, threads = self.decision_rule, thread_count(self.n_jobs)
        parts = [
            indicator_of(rule.predict(self.model_, X[begin : begin + step], threads), form)
            for begin in range(0, X.shape[0], step)
        ]
        return np.concatenate(parts) if form == "array" else sp.vstack(parts, format="csr")
