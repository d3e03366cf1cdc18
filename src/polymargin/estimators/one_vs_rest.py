"""One-against-all."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from polymargin import decision, formulations
from polymargin.estimators.base import MulticlassSVC
from polymargin.estimators.constraints import BIAS
from polymargin.estimators.declaration import estimator
from polymargin.support.typing import Bias, BinarySolver


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

    Parameters
    ----------
    <C>
    bias : {"free", "regularized"} or None, default="free"
        ``"free"``: b costs nothing, Hsu & Lin (1). ``"regularized"``: :math:`\tfrac12 b^2` joins the objective. None:
        no b. The latter two need the linear kernel, and begin with the sequential dual method.
    solver : {"auto", "decomposition", "sequential-dual"}, default="auto"
        ``"decomposition"`` solves the duals on kernel values. ``"sequential-dual"`` is dual coordinate descent for the
        linear kernel and finite C, all classes at each visit of an example, without kernel values. ``"auto"`` takes it
        for the linear kernel and more than 4,096 examples, unless a matrix of kernel values is cheap beside its loops,
        or another bias than ``"free"``; what crawls goes over to another solver, `solver_used_`.
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

    bias: Bias = "free"
    solver: BinarySolver = "auto"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MulticlassSVC._parameter_constraints,
        "bias": BIAS,
        "solver": [StrOptions({"auto", "decomposition", "sequential-dual"})],
    }

    @property
    def formulation(self) -> formulations.OneVsRest:
        """What is optimised, as the parameters say."""
        return formulations.OneVsRest(self.bias, self.solver)

    @property
    def decision_rule(self) -> decision.LargestScore:
        """The largest score wins."""
        return decision.LargestScore()
