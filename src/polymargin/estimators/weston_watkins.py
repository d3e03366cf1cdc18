"""Weston and Watkins' machine."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from polymargin.estimators._documentation import with_shared_documentation
from polymargin.estimators._together import TogetherMachine
from polymargin.formulations.solution import Floats, Ints
from polymargin.kernels import KernelParameter
from polymargin.support.typing import Bias, CacheSize, ClassWeight, Gamma, Solver


@with_shared_documentation
class WestonWatkinsSVC(TogetherMachine):
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
    bias : {"regularized", "free"} or None, default="regularized"
        ``"regularized"``: :math:`\tfrac12 \sum_m b_m^2` joins the objective, Hsu & Lin (9). ``"free"``: b costs
        nothing, as in the original problem (4); solved by proximal steps on b. None: no b.
    margin : float, default=2.0
        M. The margin 1 with C gives the scores of the margin 2 with 2C, halved.
    <together parameters>
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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TogetherMachine._parameter_constraints,
        "margin": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        bias: Bias = "regularized",
        margin: float = 2.0,
        solver: Solver = "auto",
        kernel: KernelParameter = "rbf",
        degree: int = 3,
        gamma: Gamma = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        class_weight: ClassWeight = None,
        max_iter: int = -1,
        time_limit: float | None = None,
        cache_size: CacheSize = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        super().__init__(
            C,
            bias=bias,
            solver=solver,
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            tol=tol,
            class_weight=class_weight,
            max_iter=max_iter,
            time_limit=time_limit,
            cache_size=cache_size,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            warm_start=warm_start,
        )
        self.margin = margin

    def _loss(self) -> tuple[str, float]:
        return "weston-watkins", float(self.margin)

    def _losses(self, scores: Floats, codes: Ints) -> Floats:
        rows = np.arange(len(codes))
        hinges = np.maximum(0.0, float(self.margin) - (scores[rows, codes][:, None] - scores))
        hinges[rows, codes] = 0.0
        return hinges.sum(axis=1)

    def _excess(self, coefficients: Floats, codes: Ints, upper: Floats) -> float:
        wrong = coefficients.copy()
        wrong[np.arange(len(codes)), codes] = 0.0
        return float(max(wrong.max(initial=0.0), (-wrong - upper[:, None]).max(initial=0.0)))
