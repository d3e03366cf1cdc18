"""Weston and Watkins' machine."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from polymargin import decision, formulations, losses
from polymargin.estimators.base import MulticlassSVC
from polymargin.estimators.constraints import BIAS, CALIBRATION, COSTS, HINGE, JOINT_SOLVER
from polymargin.estimators.declaration import estimator
from polymargin.support.typing import Bias, CalibrationMethod, HingeLoss, Solver


@estimator
class WestonWatkinsSVC(MulticlassSVC):
    r"""Weston and Watkins' machine: all classes together, a hinge for every wrong class.

    One optimisation problem for the scores :math:`s_m(x) = w_m \cdot \phi(x) + b_m` of all classes,

    .. math:: \min_{w, b} \tfrac12 \sum_m \|w_m\|^2
              + \sum_i C_i \sum_{m \ne y_i} \max(0, M - (s_{y_i}(x_i) - s_m(x_i))),

    with the margin M. It is solved in its dual (Hsu & Lin (5) and (10)) by block decomposition, and the fit stops when
    no dual variable violates its optimality condition by more than ``tol``. With two classes, M = 2 and
    ``bias="free"`` it is the binary support vector machine with the same C.

    Parameters
    ----------
    <C>
    <loss>
    bias : {"regularized", "free"} or None, default="regularized"
        ``"regularized"``: :math:`\tfrac12 \sum_m b_m^2` joins the objective, Hsu & Lin (9). ``"free"``: b costs
        nothing, as in the original problem (4); solved by proximal steps on b. None: no b.
    margin : float, default=2.0
        M. The margin 1 with C gives the scores of the margin 2 with 2C, halved.
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
    J. Weston, C. Watkins, "Multi-class support vector machines", Technical Report CSD-TR-98-04, Royal Holloway,
    University of London, 1998.

    <Hsu and Lin>

    <Keerthi>

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import WestonWatkinsSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = WestonWatkinsSVC(C=10).fit(X, y)
    >>> round(machine.score(X, y), 2)
    0.99
    >>> bool(abs(machine.dual_coef_.sum(axis=0)).max() < 1e-9)
    True
    """

    loss: HingeLoss = "hinge"
    bias: Bias = "regularized"
    margin: float = 2.0
    costs: Any = None
    solver: Solver = "auto"
    calibration: CalibrationMethod | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MulticlassSVC._parameter_constraints,
        "loss": HINGE,
        "bias": BIAS,
        "margin": [Interval(Real, 0, None, closed="neither")],
        "costs": COSTS,
        "solver": JOINT_SOLVER,
        "calibration": CALIBRATION,
    }

    @property
    def formulation(self) -> formulations.Joint:
        """What is optimised, as the parameters say."""
        squared = self.loss == "squared_hinge"
        kind = losses.SquaredWestonWatkins if squared else losses.WestonWatkins
        return formulations.Joint(kind(float(self.margin), costs=self.costs), self.bias, self.solver)

    @property
    def decision_rule(self) -> decision.LargestScore:
        """The largest score wins."""
        return decision.LargestScore()
