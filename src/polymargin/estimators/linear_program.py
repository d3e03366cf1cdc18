"""Weston and Watkins' linear programming machine."""

from __future__ import annotations

from typing import Any, ClassVar

from polymargin import decision, formulations
from polymargin.estimators.base import MulticlassSVC
from polymargin.estimators.constraints import CALIBRATION
from polymargin.estimators.declaration import Fitted, estimator
from polymargin.support.numeric import Floats, Ints
from polymargin.support.typing import CalibrationMethod


@estimator
class LinearProgramSVC(MulticlassSVC):
    r"""The linear programming machine of Weston and Watkins: few coefficients, one for each example at most.

    The score of class n is made of the examples of that class alone, :math:`f_n(x) = \sum_{i: y_i = n} a_i K(x, x_i) +
    b_n`. One linear program for all classes,

    .. math:: \min_{a \ge 0, b} \; \sum_i a_i
              + \sum_i C_i \sum_{j \ne y_i} \max(0, 2 - (f_{y_i}(x_i) - f_j(x_i))),

    has the sum of the coefficients where other machines have the norm of the weights. Therefore most coefficients are
    zero, and any matrix of kernel values will do, be it indefinite or not even symmetric. It is solved by HiGHS with
    generation of rows and columns, and the fit stops when the relative duality gap is at most ``tol``.

    Parameters
    ----------
    <C>
    <calibration>
    <parameters>

    Attributes
    ----------
    <support>
    dual_coef_ : ndarray of shape (k, n_SV)
        Coefficients of the support vectors in each class score: a in the row of the vector's own class, 0 elsewhere.
    intercept_ : ndarray of shape (k,)
        Intercepts of the class scores. They sum to zero; where several are optimal these are in the middle of them.
    coef_ : ndarray of shape (k, n_features)
        Weights of the features, for the linear kernel.
    active_ : ndarray of shape (n_active, 2)
        Constraints with a multiplier: the row of an example, and the number of the class that it is to lead.
    multipliers_ : ndarray of shape (n_active,)
        Their multipliers: the dual point.
    n_iter_ : int
        Iterations of the simplex method, in all rounds together, and steps of the interior point method.
    primal_objective_ : float
        Primal objective; infinite while a hard margin was not reached.
    dual_objective_ : float
        Dual objective: maximised, so never larger than the primal.
    <outcome>

    Notes
    -----
    The gap is over all constraints and all coefficients, generated or not. If ``tol`` is at most 1e-3, problems of up
    to 1,024 examples are solved exactly, as the last rounds cost little there. ``max_iter`` limits the iterations,
    ``n_iter_``. A fit that is stopped keeps the best point so far. ``warm_start`` begins with the coefficients and
    constraints that were active in the last solution.

    Where classes overlap so much that HiGHS takes longer than an interior point method would, C is finite and
    ``cache_size`` leaves room for four matrices of n^2 numbers, that takes over: ``solver_used_`` is then
    "interior-point" instead of "highs".

    References
    ----------
    J. Weston, C. Watkins, "Multi-class support vector machines", Technical Report CSD-TR-98-04, Royal Holloway,
    University of London, 1998, section 6.

    Q. Huangfu, J. A. J. Hall, "Parallelizing the dual revised simplex method", Mathematical Programming Computation
    10(1), 2018, doi:10.1007/s12532-017-0130-5.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import LinearProgramSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = LinearProgramSVC(C=10).fit(X, y)
    >>> round(machine.score(X, y), 2)
    0.97
    >>> len(machine.support_) < 10, machine.duality_gap_ < 1e-8
    (True, True)
    """

    calibration: CalibrationMethod | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MulticlassSVC._parameter_constraints,
        "calibration": CALIBRATION,
    }
    active_: ClassVar[Fitted[Ints]] = Fitted()
    multipliers_: ClassVar[Fitted[Floats]] = Fitted()

    @classmethod
    def part_types(cls) -> dict[str, type]:
        """Return the types of what a fit leaves beside the model.

        Returns
        -------
        dict of str to type
            The types, by the names of the attributes.
        """
        return super().part_types() | {"outcome_": formulations.LinearProgramOutcome}

    @property
    def formulation(self) -> formulations.LinearProgram:
        """What is optimised, with the constraints of the last solution to begin with."""
        return formulations.LinearProgram(getattr(self, "active_", None))

    @property
    def decision_rule(self) -> decision.LargestScore:
        """The largest score wins; the scores of two classes are not opposite numbers."""
        return decision.LargestScore(halved_difference=True)
