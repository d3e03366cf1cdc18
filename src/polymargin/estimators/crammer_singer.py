"""Crammer and Singer's machine."""

from __future__ import annotations

from typing import Any, ClassVar

from polymargin import decision, formulations, losses
from polymargin.estimators.base import MulticlassSVC
from polymargin.estimators.constraints import BIAS, CALIBRATION, COSTS, HINGE, JOINT_SOLVER
from polymargin.estimators.declaration import estimator
from polymargin.support.typing import Bias, CalibrationMethod, HingeLoss, Solver


@estimator
class CrammerSingerSVC(MulticlassSVC):
    r"""Crammer and Singer's machine: all classes together, one hinge for the worst wrong class.

    One optimisation problem for the scores :math:`s_m(x) = w_m \cdot \phi(x) + b_m` of all classes,

    .. math:: \min_{w, b} \tfrac12 \sum_m \|w_m\|^2
              + \sum_i C_i \max_m \bigl(s_m(x_i) + [m \ne y_i]\bigr) - s_{y_i}(x_i).

    It is solved in its dual (Hsu & Lin (17)) by block decomposition, and the fit stops when the conditions (21) hold to
    within ``tol``.

    Parameters
    ----------
    <C>
    <loss>
    bias : {"regularized", "free"} or None, default=None
        None: no b, Hsu & Lin (16). ``"regularized"``: :math:`\tfrac12 \sum_m b_m^2` joins the objective, (24).
        ``"free"``: b costs nothing, (23); solved by proximal steps on b.
    <costs>
    <together parameters>
    <calibration>
    <parameters>

    Attributes
    ----------
    <support>
    <together coefficients>
    <outcome>

    References
    ----------
    K. Crammer, Y. Singer, "On the algorithmic implementation of multiclass kernel-based vector machines", Journal of
    Machine Learning Research 2, 2001.

    <Hsu and Lin>

    <Keerthi>

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import CrammerSingerSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = CrammerSingerSVC(C=10).fit(X, y)
    >>> round(machine.score(X, y), 2)
    0.99
    >>> machine.decision_function(X[:2]).shape
    (2, 3)
    """

    loss: HingeLoss = "hinge"
    bias: Bias = None
    costs: Any = None
    solver: Solver = "auto"
    calibration: CalibrationMethod | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MulticlassSVC._parameter_constraints,
        "loss": HINGE,
        "bias": BIAS,
        "costs": COSTS,
        "solver": JOINT_SOLVER,
        "calibration": CALIBRATION,
    }

    @property
    def formulation(self) -> formulations.Joint:
        """What is optimised, as the parameters say."""
        kind = losses.SquaredCrammerSinger if self.loss == "squared_hinge" else losses.CrammerSinger
        return formulations.Joint(kind(costs=self.costs), self.bias, self.solver)

    @property
    def decision_rule(self) -> decision.LargestScore:
        """The largest score wins."""
        return decision.LargestScore()
