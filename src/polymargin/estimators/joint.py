"""The family of joint machines, by its parts."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, get_args

from sklearn.utils._param_validation import Interval, StrOptions

from polymargin import decision, formulations, losses
from polymargin.estimators.base import MulticlassSVC
from polymargin.estimators.constraints import BIAS, CALIBRATION, COSTS, HINGE, JOINT_SOLVER
from polymargin.estimators.declaration import estimator
from polymargin.support.typing import Aggregation, Bias, CalibrationMethod, HingeLoss, Margins, Solver


@estimator
class JointSVC(MulticlassSVC):
    r"""A joint machine by its parts: which margins, and how those of the classes become a loss.

    One optimisation problem for the scores :math:`s_m(x) = w_m \cdot \phi(x) + b_m` of all classes,

    .. math:: \min_{w, b} \tfrac12 \sum_m \|w_m\|^2 + \sum_i C_i L(y_i, s(x_i)).

    With *relative* margins a class is short of its margin by :math:`h_m = M - (s_y - s_m)`. With *absolute* ones
    :math:`\sum_m s_m = 0`, a wrong class is short by :math:`h_m = 1 + s_m` and the right one by :math:`h_y = 1 - s_y`.
    The loss L is made of the :math:`\max(0, h_m)`:

    ================= =================== ========================= ============================================
    ``aggregation``   of                  relative                  absolute
    ================= =================== ========================= ============================================
    ``"sum"``         the wrong classes   ``WestonWatkinsSVC``, M=2 ``LeeLinWahbaSVC``
    ``"max"``         the wrong classes   ``CrammerSingerSVC``, M=1 ``AbsoluteMaximumSVC`` (ADM)
    ``"total"``       the worst of all                              ``TotalMaximumSVC`` (ATM)
    ``"total-sum"``   all classes                                   ``TotalSumSVC`` (ATS)
    ``"self"``        the right class                               ``MaximumMarginRegressionSVC`` (MMR)
    ``reinforced=u``  both, weighted                                ``ReinforcedSVC(share=u)`` (RM)
    ================= =================== ========================= ============================================

    The names in brackets are those of Dogan et al.

    Parameters
    ----------
    <C>
    <loss>
        It needs relative margins.
    margins : {"relative", "absolute"}, default="relative"
        What the score of a class is held against: that of the right class, or a number.
    aggregation : {"sum", "max", "total", "total-sum", "self"}, default="sum"
        How the margins of the classes become a loss; the last three need absolute margins.
    reinforced : float or None, default=None
        u of the reinforced machine, what the wrong classes have of the loss: with absolute margins and
        ``aggregation="sum"``.
    <absolute parameters>
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
    <Lee>

    <Dogan>

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import JointSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = JointSVC(C=10, margins="absolute", aggregation="max").fit(X, y)
    >>> round(machine.score(X, y), 2)
    0.99
    """

    loss: HingeLoss = "hinge"
    margins: Margins = "relative"
    aggregation: Aggregation = "sum"
    reinforced: float | None = None
    bias: Bias = "regularized"
    costs: Any = None
    solver: Solver = "auto"
    calibration: CalibrationMethod | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MulticlassSVC._parameter_constraints,
        "loss": HINGE,
        "margins": [StrOptions(set(get_args(Margins)))],
        "aggregation": [StrOptions(set(get_args(Aggregation)))],
        "reinforced": [Interval(Real, 0, 1, closed="both"), None],
        "bias": BIAS,
        "costs": COSTS,
        "solver": JOINT_SOLVER,
        "calibration": CALIBRATION,
    }

    @property
    def formulation(self) -> formulations.Joint:
        """What is optimised, as the parameters say."""
        squared = self.loss == "squared_hinge"
        loss = losses.by_parts(self.margins, self.aggregation, self.reinforced, self.costs, squared=squared)
        return formulations.Joint(loss, self.bias, self.solver)

    @property
    def decision_rule(self) -> decision.LargestScore:
        """The largest score wins."""
        return decision.LargestScore()
