"""Machines of absolute margins, whose scores sum to zero."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from polymargin import decision, formulations, losses
from polymargin.estimators.base import MulticlassSVC
from polymargin.estimators.constraints import BIAS, CALIBRATION, COSTS, JOINT_SOLVER
from polymargin.estimators.declaration import estimator
from polymargin.support.typing import Bias, CalibrationMethod, Solver

_CONSTRAINTS: dict[str, Any] = {
    **MulticlassSVC._parameter_constraints,
    "bias": BIAS,
    "solver": JOINT_SOLVER,
    "calibration": CALIBRATION,
}
_WITH_COSTS: dict[str, Any] = {**_CONSTRAINTS, "costs": COSTS}


@estimator
class LeeLinWahbaSVC(MulticlassSVC):
    r"""Lee, Lin and Wahba's machine: absolute margins, a hinge for every wrong class. Fisher consistent.

    One optimisation problem for the scores :math:`s_m(x) = w_m \cdot \phi(x) + b_m` of all classes,

    .. math:: \min_{w, b} \tfrac12 \sum_m \|w_m\|^2
              + \sum_i C_i \sum_{m \ne y_i} \max(0, 1 + s_m(x_i))
              \quad\text{subject to}\quad \sum_m s_m = 0.

    The score of a wrong class is to be at most -1, so that that of the right one, which is what the others leave, is at
    least k - 1. In the limit of many examples the largest score is that of the most probable class. With two classes it
    is the binary machine with half the C. Called LLW by Dogan et al.

    It is solved in its dual by block decomposition, as all joint machines are; the constraint takes the mean of the
    coefficients of an example away from what reaches the scores, see ``polymargin.losses``.

    Parameters
    ----------
    <C>
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
    >>> from polymargin import LeeLinWahbaSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = LeeLinWahbaSVC(C=10).fit(X, y)
    >>> round(machine.score(X, y), 2)
    0.99
    >>> bool(abs(machine.decision_function(X).sum(axis=1)).max() < 1e-9)
    True
    """

    bias: Bias = "regularized"
    costs: Any = None
    solver: Solver = "auto"
    calibration: CalibrationMethod | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = _WITH_COSTS

    @property
    def formulation(self) -> formulations.Joint:
        """What is optimised, as the parameters say."""
        return formulations.Joint(losses.AbsoluteSum(costs=self.costs), self.bias, self.solver)

    @property
    def decision_rule(self) -> decision.LargestScore:
        """The largest score wins."""
        return decision.LargestScore()


@estimator
class ReinforcedSVC(MulticlassSVC):
    r"""The reinforced machine: Lee, Lin and Wahba's, and a hinge for the right class.

    One optimisation problem for the scores :math:`s_m(x) = w_m \cdot \phi(x) + b_m` of all classes,

    .. math:: \min_{w, b} \tfrac12 \sum_m \|w_m\|^2
              + \sum_i C_i \Bigl(u \sum_{m \ne y_i} \max(0, 1 + s_m(x_i))
              + (1 - u) \max(0, k - 1 - s_{y_i}(x_i))\Bigr)
              \quad\text{subject to}\quad \sum_m s_m = 0.

    With :math:`u = 1` it is Lee, Lin and Wahba's machine; with u of at least 1/2 it is Fisher consistent too. Called RM
    by Dogan et al.; the parameter of Liu and Yuan is :math:`1 - u`.

    Parameters
    ----------
    <C>
    share : float, default=0.5
        u, what the wrong classes have of the loss.
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
    Y. Liu, M. Yuan, "Reinforced multicategory support vector machines", Journal of Computational and Graphical
    Statistics 20(4), 2011, doi:10.1198/jcgs.2010.09206.

    <Lee>

    <Dogan>

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import ReinforcedSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = ReinforcedSVC(share=0.6, C=10).fit(X, y)
    >>> round(machine.score(X, y), 2)
    0.99
    >>> bool(abs(machine.decision_function(X).sum(axis=1)).max() < 1e-9)
    True
    """

    share: float = 0.5
    bias: Bias = "regularized"
    costs: Any = None
    solver: Solver = "auto"
    calibration: CalibrationMethod | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {**_WITH_COSTS, "share": [Interval(Real, 0, 1, closed="both")]}

    @property
    def formulation(self) -> formulations.Joint:
        """What is optimised, as the parameters say."""
        return formulations.Joint(losses.reinforced(float(self.share), self.costs), self.bias, self.solver)

    @property
    def decision_rule(self) -> decision.LargestScore:
        """The largest score wins."""
        return decision.LargestScore()


@estimator
class AbsoluteMaximumSVC(MulticlassSVC):
    r"""Absolute margins, one hinge for the worst wrong class.

    One optimisation problem for the scores :math:`s_m(x) = w_m \cdot \phi(x) + b_m` of all classes,

    .. math:: \min_{w, b} \tfrac12 \sum_m \|w_m\|^2
              + \sum_i C_i \max_{m \ne y_i} \max(0, 1 + s_m(x_i))
              \quad\text{subject to}\quad \sum_m s_m = 0.

    What Crammer and Singer's machine is for relative margins. It is not Fisher consistent: where no class is more
    likely than not, all scores may vanish. Called ADM by Dogan et al.

    Parameters
    ----------
    <C>
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
    >>> from polymargin import AbsoluteMaximumSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = AbsoluteMaximumSVC(C=10).fit(X, y)
    >>> round(machine.score(X, y), 2)
    0.99
    >>> bool(abs(machine.decision_function(X).sum(axis=1)).max() < 1e-9)
    True
    """

    bias: Bias = "regularized"
    costs: Any = None
    solver: Solver = "auto"
    calibration: CalibrationMethod | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = _WITH_COSTS

    @property
    def formulation(self) -> formulations.Joint:
        """What is optimised, as the parameters say."""
        return formulations.Joint(losses.AbsoluteMaximum(costs=self.costs), self.bias, self.solver)

    @property
    def decision_rule(self) -> decision.LargestScore:
        """The largest score wins."""
        return decision.LargestScore()


@estimator
class TotalMaximumSVC(MulticlassSVC):
    r"""Absolute margins, one hinge for the worst of all classes, the right one among them.

    One optimisation problem for the scores :math:`s_m(x) = w_m \cdot \phi(x) + b_m` of all classes,

    .. math:: \min_{w, b} \tfrac12 \sum_m \|w_m\|^2
              + \sum_i C_i \max\bigl(0, 1 - s_{y_i}(x_i), \max_{m \ne y_i} 1 + s_m(x_i)\bigr)
              \quad\text{subject to}\quad \sum_m s_m = 0.

    It differs from ``AbsoluteMaximumSVC`` where an example is on the wrong side. It is not Fisher consistent: where no
    class is more likely than not, all scores may vanish. Called ATM by Dogan et al.

    Parameters
    ----------
    <C>
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
    >>> from polymargin import TotalMaximumSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = TotalMaximumSVC(C=10).fit(X, y)
    >>> round(machine.score(X, y), 2)
    0.99
    >>> bool(abs(machine.decision_function(X).sum(axis=1)).max() < 1e-9)
    True
    """

    bias: Bias = "regularized"
    costs: Any = None
    solver: Solver = "auto"
    calibration: CalibrationMethod | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = _WITH_COSTS

    @property
    def formulation(self) -> formulations.Joint:
        """What is optimised, as the parameters say."""
        return formulations.Joint(losses.AbsoluteMaximum(own=True, costs=self.costs), self.bias, self.solver)

    @property
    def decision_rule(self) -> decision.LargestScore:
        """The largest score wins."""
        return decision.LargestScore()


@estimator
class TotalSumSVC(MulticlassSVC):
    r"""Absolute margins, a hinge for every class, the right one among them.

    One optimisation problem for the scores :math:`s_m(x) = w_m \cdot \phi(x) + b_m` of all classes,

    .. math:: \min_{w, b} \tfrac12 \sum_m \|w_m\|^2
              + \sum_i C_i \Bigl(\max(0, 1 - s_{y_i}(x_i)) + \sum_{m \ne y_i} \max(0, 1 + s_m(x_i))\Bigr)
              \quad\text{subject to}\quad \sum_m s_m = 0.

    The loss is that of one-against-all; the scores sum to zero. It is not Fisher consistent. With two classes it is the
    binary machine. Called ATS by Dogan et al.

    Parameters
    ----------
    <C>
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
    >>> from polymargin import TotalSumSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = TotalSumSVC(C=10).fit(X, y)
    >>> round(machine.score(X, y), 2)
    0.98
    >>> bool(abs(machine.decision_function(X).sum(axis=1)).max() < 1e-9)
    True
    """

    bias: Bias = "regularized"
    costs: Any = None
    solver: Solver = "auto"
    calibration: CalibrationMethod | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = _WITH_COSTS

    @property
    def formulation(self) -> formulations.Joint:
        """What is optimised, as the parameters say."""
        return formulations.Joint(losses.AbsoluteSum(own=1.0, costs=self.costs), self.bias, self.solver)

    @property
    def decision_rule(self) -> decision.LargestScore:
        """The largest score wins."""
        return decision.LargestScore()


@estimator
class MaximumMarginRegressionSVC(MulticlassSVC):
    r"""Absolute margins, one hinge for the right class alone.

    One optimisation problem for the scores :math:`s_m(x) = w_m \cdot \phi(x) + b_m` of all classes,

    .. math:: \min_{w, b} \tfrac12 \sum_m \|w_m\|^2
              + \sum_i C_i \max(0, 1 - s_{y_i}(x_i))
              \quad\text{subject to}\quad \sum_m s_m = 0.

    The wrong classes are kept down by the constraint only. It has one dual variable for each example and is the fastest
    of the family; it is not Fisher consistent. Called MMR by Dogan et al., maximum margin regression by Szedmak et al.

    Parameters
    ----------
    <C>
    <absolute parameters>
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
    S. Szedmak, J. Shawe-Taylor, E. Parado-Hernandez, "Learning via linear operators: maximum margin regression",
    Technical Report, University of Southampton, 2006.

    <Lee>

    <Dogan>

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import MaximumMarginRegressionSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = MaximumMarginRegressionSVC(C=10).fit(X, y)
    >>> round(machine.score(X, y), 2)
    0.97
    >>> bool(abs(machine.decision_function(X).sum(axis=1)).max() < 1e-9)
    True
    """

    bias: Bias = "regularized"
    solver: Solver = "auto"
    calibration: CalibrationMethod | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = _CONSTRAINTS

    @property
    def formulation(self) -> formulations.Joint:
        """What is optimised, as the parameters say."""
        return formulations.Joint(losses.AbsoluteSum(own=1.0, others=0.0), self.bias, self.solver)

    @property
    def decision_rule(self) -> decision.LargestScore:
        """The largest score wins."""
        return decision.LargestScore()
