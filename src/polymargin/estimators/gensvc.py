"""Van den Burg and Groenen's machine."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from polymargin import decision, formulations
from polymargin.estimators.base import MulticlassSVC
from polymargin.estimators.constraints import BIAS
from polymargin.estimators.declaration import Fitted, estimator
from polymargin.support.typing import Bias, FeatureBasis


@estimator
class GenSVC(MulticlassSVC):
    r"""GenSVM: one map to the space of a simplex, a corner for each class, with a p-norm of Huber hinges.

    An example is mapped to :math:`v(x) = W' \phi(x) + t` in k - 1 dimensions. The corners :math:`u_m` of a regular
    simplex with edges of length 1 stand for the classes, and the class whose corner is nearest wins: that with the
    largest score :math:`s_m = u_m \cdot v`. Van den Burg & Groenen's problem (5) is, up to a factor,

    .. math:: \min_{W, t} \tfrac12 \|W\|^2 + \sum_i C_i \Bigl(\sum_{m \ne y_i} h(s_{y_i}(x_i) - s_m(x_i))^p\Bigr)^{1/p},

    with the Huber hinge h, which is 0 from 1 on, a parabola down to :math:`-\kappa` and straight below. Their
    :math:`\lambda` is :math:`1 / (2 n C)`, and their instance weights that correct for the sizes of classes are
    ``class_weight="balanced"``. It is solved not by majorisation, but by Newton's method with conjugate gradients on
    finite features, in the primal, to a proven distance from the optimum.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a loss, finite. Example t has ``C_t = C * class_weight * sample_weight``.
    p : float, default=1.0
        The norm, from 1, which sums the hinges of all wrong classes, to 2.
    kappa : float, default=0.0
        :math:`\kappa > -1`: near -1 the Huber hinge is the hinge, and a large one makes it a parabola.
    basis : {"kpca", "cholesky", "subset"}, default="kpca"
        The features: kernel principal components, an incomplete Cholesky factorisation, or the principal components of
        a random subset of the examples; see :mod:`polymargin.features`. Without ``rank`` they differ in cost alone.
    rank : int or None, default=None
        At most so many features, of which the score functions are then made; None is exact. For the linear kernel None
        takes the examples as they are, and there is no basis.
    bias : {"free", "regularized"} or None, default="free"
        ``"free"``: t costs nothing, as in the paper. ``"regularized"``: :math:`\tfrac12 \|t\|^2` joins the objective.
        None: no t.
    <kernel>
    tol : float, default=1e-3
        When to stop: the largest value of what ``stop`` names. Up to 1,024 examples are solved to rounding where
        ``tol`` is at most 1e-5, where sample weights differ within a class, or where that is a small share of the fit.
    stop : {"auto", "violation", "gap"}, default="auto"
        What ``tol`` is compared with. ``"gap"``, which ``"auto"`` is: the relative gap between the objective and its
        lower bound. ``"violation"``: by how much the loss of an example is too large in the mean, which is the gap
        divided by the sum of all C_t. Unless the gap itself is set to more, one above 0.01 gives a warning.
    class_weight : dict, "balanced" or None, default=None
        Factors on C for each class; ``"balanced"`` makes them inversely proportional to class frequencies.
    max_iter : int, default=-1
        Most Newton steps, -1 for no limit.
    time_limit : float or None, default=None
        Most seconds for the fit; the best answer so far is kept, with a warning. The features are computed in any case.
    cache_size : "auto" or float, default="auto"
        Unused: there is no cache. The features take ``8 * n_samples * rank`` bytes.
    n_jobs : int or None, default=None
        Threads; None is 1, -1 all cores. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Chooses the points of ``basis="subset"``; None is always the same choice. Unused elsewhere.
    verbose : int, default=0
        1 shows a progress bar.
    warm_start : bool, default=False
        Start from the last solution, when the classes are the same: useful for a series of C.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The classes.
    n_features_in_ : int
        Number of features seen by ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had names that are strings.
    support_ : ndarray of shape (n_SV,)
        Rows of the points of the basis, grouped by class; without a ``rank`` (nearly) all examples.
    support_vectors_ : {ndarray, CSR} of shape (n_SV, n_features)
        These points; empty for a precomputed kernel.
    n_support_ : ndarray of shape (k,)
        Number of points of each class.
    dual_coef_ : ndarray of shape (k, n_SV)
        Coefficients of the points in each class score; a column sums to zero.
    intercept_ : ndarray of shape (k,)
        Intercepts of the class scores.
    coef_ : ndarray of shape (k, n_features)
        Weights of the features, for the linear kernel.
    n_iter_ : int
        Newton steps.
    primal_objective_ : float
        Objective.
    dual_objective_ : float
        Lower bound of its minimum: the value of the dual at the slopes of the losses. It is about the problem in these
        features: with a ``rank`` it says nothing about the one without.
    gradient_norm_ : float
        Norm of the gradient at the end.
    <outcome>

    References
    ----------
    <GenSVM>
    <Huber>

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import GenSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = GenSVC(C=10, p=1.5).fit(X, y)
    >>> round(machine.score(X, y), 2)
    0.99
    """

    p: float = 1.0
    kappa: float = 0.0
    basis: FeatureBasis = "kpca"
    rank: int | None = None
    bias: Bias = "free"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MulticlassSVC._parameter_constraints,
        "p": [Interval(Real, 1, 2, closed="both")],
        "kappa": [Interval(Real, -1, None, closed="neither")],
        "basis": [StrOptions({"kpca", "cholesky", "subset"})],
        "rank": [Interval(Integral, 1, None, closed="left"), None],
        "bias": BIAS,
    }
    gradient_norm_: ClassVar[Fitted[float]] = Fitted()

    @classmethod
    def part_types(cls) -> dict[str, type]:
        """Return the types of what a fit leaves beside the model.

        Returns
        -------
        dict of str to type
            The types, by the names of the attributes.
        """
        return {"outcome_": formulations.PrimalOutcome}

    @property
    def formulation(self) -> formulations.PrimalSimplex:
        """What is optimised, as the parameters say."""
        return formulations.PrimalSimplex(
            norm=float(self.p), kappa=float(self.kappa), basis=self.basis, rank=self.rank, bias=self.bias
        )

    @property
    def decision_rule(self) -> decision.LargestScore:
        """The largest score, which is that of the nearest corner, wins."""
        return decision.LargestScore()
