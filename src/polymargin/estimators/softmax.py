"""Zien, De Bona and Ong's machine, trained in the primal."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from polymargin import decision, formulations
from polymargin.estimators.base import MulticlassSVC
from polymargin.estimators.constraints import BIAS
from polymargin.estimators.declaration import Fitted, estimator
from polymargin.support.numeric import Floats
from polymargin.support.typing import Bias, FeatureBasis, Strategy


@estimator
class SoftmaxSVC(MulticlassSVC):
    r"""Primal machine: all classes together, a soft maximum of logistic losses against the wrong classes.

    One optimisation problem, Zien et al. (1.1), for the scores :math:`s_m(x) = w_m \cdot \phi(x) + b_m` of all classes,

    .. math:: \min_{w, b} \tfrac12 \sum_m \|w_m\|^2 + \sum_i C_i \operatorname{smax}_\gamma \bigl\{
              \log(1 + e^{s_u(x_i) - s_{y_i}(x_i)}) : u \ne y_i \bigr\}, \qquad
              \operatorname{smax}_\gamma(t) = \tfrac1\gamma \log\Bigl(1 + \sum_u (e^{\gamma t_u} - 1)\Bigr).

    :math:`\gamma = 0` sums the losses, as Weston and Watkins do, :math:`\gamma = \infty` takes the largest, as Crammer
    and Singer do, and :math:`\gamma = 1` is multinomial logistic regression. The machine is trained in the primal, by
    Newton's method with conjugate gradients on finite features: coordinates in a basis of the span of the training
    examples, or of some of them. The scores are a kernel expansion on the points of the basis.

    The problem is convex for :math:`\gamma = 0` and :math:`\gamma \ge 1`; the paper does not say that it is not
    between. Then the fit ends at a stationary point, and ``dual_objective_`` is the bound for :math:`\gamma = 1`, which
    does not come near.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a loss, finite. Example t has ``C_t = C * class_weight * sample_weight``.
    aggregation : float, default=1.0
        :math:`\gamma`, from 0 (the sum of the losses) to ``inf`` (the largest).
    basis : {"kpca", "cholesky", "subset"}, default="kpca"
        The features: kernel principal components, an incomplete Cholesky factorisation, or the principal components of
        a random subset of the examples; see :mod:`polymargin.features`. Without ``rank`` they differ in cost alone.
    rank : int or None, default=None
        At most so many features, of which the score functions are then made; None is exact. For the linear kernel None
        takes the examples as they are, and there is no basis.
    class_kernel : array-like of shape (k, k) or None, default=None
        A positive semi-definite kernel of the classes, in the order of ``classes_``: Zien et al. (1.2). None is the
        identity, which says nothing about the classes.
    strategy : {"joint", "one-vs-rest"}, default="joint"
        ``"one-vs-rest"`` solves k binary problems of the same kind, each class against the rest.
    bias : {"free", "regularized"} or None, default="free"
        ``"free"``: b costs nothing, as in the paper. ``"regularized"``: :math:`\tfrac12 \sum_m b_m^2` joins the
        objective. None: no b.
    <kernel>
    tol : float, default=1e-3
        When to stop: the largest value of what ``stop`` names. Up to 1,024 examples are solved to rounding where
        ``tol`` is at most 1e-5, where sample weights differ within a class, or where that is a small share of the fit.
    stop : {"auto", "violation", "gap"}, default="auto"
        What ``tol`` is compared with. ``"gap"``, which ``"auto"`` is: the relative gap between the objective and its
        lower bound; for a problem that is not convex the gap that the same gradient would mean if it were.
        ``"violation"``: by how much the loss of an example is too large in the mean, which is the gap divided by the
        sum of all C_t. Unless the gap itself is set to more, one above 0.01 gives a
        warning.
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
        Rows of the points of the basis, grouped by class; without a ``rank`` (nearly) all examples: no loss is zero.
    support_vectors_ : {ndarray, CSR} of shape (n_SV, n_features)
        These points; empty for a precomputed kernel.
    n_support_ : ndarray of shape (k,)
        Number of points of each class.
    dual_coef_ : ndarray of shape (k, n_SV)
        Coefficients of the points in each class score. With ``strategy="joint"`` a column sums to zero: only
        differences of scores have a meaning.
    intercept_ : ndarray of shape (k,)
        Intercepts of the class scores.
    coef_ : ndarray of shape (k, n_features)
        Weights of the features, for the linear kernel.
    n_iter_ : int
        Newton steps.
    primal_objective_ : float
        Objective; for ``"one-vs-rest"`` the sum over the binary problems.
    dual_objective_ : float
        Lower bound of its minimum: the value of the dual at the slopes of the losses. Without a bias that is the
        objective less half the squared norm of the gradient. It is about the problem in these features: with a ``rank``
        it says nothing about the one without.
    gradient_norm_ : float
        Norm of the gradient at the end.
    <outcome>

    References
    ----------
    A. Zien, F. De Bona, C. S. Ong, "Training and approximation of a primal multiclass support vector machine", Applied
    Stochastic Models and Data Analysis (ASMDA) 2007.

    O. Chapelle, "Training a support vector machine in the primal", Neural Computation 19(5), 2007,
    doi:10.1162/neco.2007.19.5.1155.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import SoftmaxSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = SoftmaxSVC(C=10).fit(X, y)
    >>> round(machine.score(X, y), 2)
    0.98
    >>> machine.predict_proba(X[:2]).round(2)
    array([[0.99, 0.01, 0.  ],
           [0.99, 0.01, 0.  ]])
    """

    aggregation: float = 1.0
    basis: FeatureBasis = "kpca"
    rank: int | None = None
    class_kernel: Any = None
    strategy: Strategy = "joint"
    bias: Bias = "free"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MulticlassSVC._parameter_constraints,
        "aggregation": [Interval(Real, 0, None, closed="both")],
        "basis": [StrOptions({"kpca", "cholesky", "subset"})],
        "rank": [Interval(Integral, 1, None, closed="left"), None],
        "class_kernel": ["array-like", None],
        "strategy": [StrOptions({"joint", "one-vs-rest"})],
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
    def formulation(self) -> formulations.PrimalSoftmax:
        """What is optimised, as the parameters say."""
        return formulations.PrimalSoftmax(
            aggregation=self.aggregation,
            basis=self.basis,
            rank=self.rank,
            class_kernel=self.class_kernel,
            strategy=self.strategy,
            bias=self.bias,
        )

    @property
    def decision_rule(self) -> decision.LargestScore:
        """The largest score wins, and the loss says what probabilities are."""
        return decision.LargestScore(link=self._probabilities)

    @property
    def missing_probabilities(self) -> None:
        """Nothing is to be done for probabilities."""

    def _probabilities(self, scores: Floats) -> Floats:
        joint = self.formulation.is_joint(scores.shape[1])
        return decision.softmax_probabilities(scores) if joint else decision.normalized_probabilities(scores)

    def predict_proba(self, X: Any) -> Floats:
        r"""Return probabilities of the classes.

        With ``strategy="joint"`` they are :math:`e^{s_m(x)} / \sum_u e^{s_u(x)}`. For ``aggregation=1`` this is the
        model whose penalised likelihood the fit maximises: the probabilities are those of regularised multinomial
        logistic regression, and as good as its assumptions and ``C``. For any other aggregation no probability model
        stands behind the loss: they rank the classes as the scores do, but are not calibrated. With
        ``strategy="one-vs-rest"`` each binary problem is a logistic regression, and the k probabilities
        "this class against the rest" are scaled to sum to one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples, k)
            Probabilities, in the order of ``classes_``; the largest is that of the class that ``predict`` returns.
        """
        probabilities: Floats = super().predict_proba(X)
        return probabilities
