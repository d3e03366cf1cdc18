"""One-against-one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import StrOptions

from polymargin import decision as decisions
from polymargin import formulations
from polymargin.decision.rule import PAIR_DECISIONS
from polymargin.estimators.base import MulticlassSVC
from polymargin.estimators.constraints import HINGE
from polymargin.estimators.declaration import Fitted, estimator
from polymargin.support.numeric import Floats
from polymargin.support.threads import thread_count
from polymargin.support.typing import BinarySolver, Decision, HingeLoss

if TYPE_CHECKING:
    from polymargin.models import PairLayout


@estimator
class OneVsOneSVC(MulticlassSVC):
    r"""One-against-one: a binary support vector machine for each pair of classes.

    For classes i < j the machine solves Hsu & Lin (3) on the examples of the two classes, those of i being
    positive,

    .. math:: \min_{w, b, \xi} \tfrac12 \|w\|^2 + \sum_t C_t \xi_t
              \quad\text{s.t.}\quad y_t (w \cdot \phi(x_t) + b) \ge 1 - \xi_t,\; \xi_t \ge 0,

    in its dual, and stops when the optimality conditions (22) hold to within ``tol``. All pairs share one kernel
    engine: a row of kernel values against a class is computed once for all pairs that need it.

    With ``decision="coupling"`` the machine has probabilities. ``fit`` solves every pair again without each of five
    folds, fits Platt's sigmoid :math:`1 / (1 + e^{Af + B})` to the decision values f of held-out examples, and
    ``predict_proba`` couples the sigmoids of all pairs by the second method of Wu, Lin & Weng.

    Parameters
    ----------
    <C>
    <loss>
    decision : {"votes", "dag", "adag", "coupling"}, default="votes"
        How the answers of the pairs become a class. ``"votes"``: most votes, a tie goes to the class that sorts
        first. ``"dag"``: ask (first, last) of the classes left and drop the loser, k - 1 questions. ``"adag"``:
        a knock-out tournament, first against last, second against second-last, and so on. ``"coupling"``: the
        largest probability. A pair whose value is exactly 0 answers with its second class, as in LIBSVM and
        scikit-learn's ``SVC``.
    solver : {"auto", "decomposition", "sequential-dual"}, default="auto"
        ``"decomposition"`` solves the duals of all pairs on kernel values. ``"sequential-dual"`` is dual coordinate
        descent for the linear kernel and finite C, each pair on its own examples, without a matrix of kernel values of
        all of them; ``tol`` is that of the gap then, and what crawls goes over to another solver with ``"auto"``, which
        takes it for the linear kernel where it is faster or the matrix has no room.
    <parameters>

    Attributes
    ----------
    <support>
    dual_coef_ : ndarray of shape (k - 1, n_SV)
        Signed coefficients, as in scikit-learn's ``SVC``: for a vector of class i, row j - 1 (for j > i) or j
        (for j < i) is its coefficient in the pair with class j.
    intercept_ : ndarray of shape (k (k - 1) / 2,)
        Intercepts of the pairs.
    coef_ : ndarray of shape (k (k - 1) / 2, n_features)
        Weights of the features, for the linear kernel.
    probA_ : ndarray of shape (k (k - 1) / 2,)
        Slopes A of the sigmoids, never positive; with ``decision="coupling"``.
    probB_ : ndarray of shape (k (k - 1) / 2,)
        Their offsets B; with ``decision="coupling"``.
    n_iter_ : ndarray of shape (k (k - 1) / 2,)
        Steps taken for each pair, without those for the folds.
    primal_objective_ : float
        Primal objective, summed over the pairs.
    dual_objective_ : float
        Dual objective, summed over the pairs: maximised, so never larger than the primal.
    <outcome>

    References
    ----------
    <Hsu and Lin>
    T.-F. Wu, C.-J. Lin, R. C. Weng, "Probability estimates for multi-class classification by pairwise coupling",
    Journal of Machine Learning Research 5, 2004.

    H.-T. Lin, C.-J. Lin, R. C. Weng, "A note on Platt's probabilistic outputs for support vector machines", Machine
    Learning 68, 2007, doi:10.1007/s10994-007-5018-6.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import OneVsOneSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = OneVsOneSVC(C=10).fit(X, y)
    >>> round(machine.score(X, y), 2)
    0.99
    >>> machine.converged_, machine.duality_gap_ < 1e-6
    (True, True)
    >>> OneVsOneSVC(decision="coupling").fit(X, y).predict_proba(X[[0, 70]]).round(2)
    array([[0.98, 0.01, 0.01],
           [0.01, 0.52, 0.47]])
    """

    loss: HingeLoss = "hinge"
    decision: Decision = "votes"
    solver: BinarySolver = "auto"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MulticlassSVC._parameter_constraints,
        "loss": HINGE,
        "decision": [StrOptions(PAIR_DECISIONS.keys())],
        "solver": [StrOptions({"auto", "decomposition", "sequential-dual"})],
    }
    probA_: ClassVar[Fitted[Floats]] = Fitted()  # noqa: N815 - LIBSVM's and scikit-learn's names
    probB_: ClassVar[Fitted[Floats]] = Fitted()  # noqa: N815

    @classmethod
    def part_types(cls) -> dict[str, type]:
        """Return the types of what a fit leaves beside the model.

        Returns
        -------
        dict of str to type
            The types, by the names of the attributes.
        """
        return super().part_types() | {"decision_data_": decisions.PairProbabilities}

    @property
    def formulation(self) -> formulations.Pairs:
        """What is optimised; probabilities are fitted to held-out values."""
        coupled, squared = self.decision == "coupling", self.loss == "squared_hinge"
        return formulations.Pairs(held_out=coupled, squared=squared, solver=self.solver)

    @property
    def decision_rule(self) -> decisions.DecisionRule:
        """The way to decide that the parameter names."""
        return self._rule(self.decision)

    @property
    def missing_probabilities(self) -> str | None:
        """What is to be done for probabilities; None if the machine has them."""
        if self.decision == "coupling":
            return None
        return f"probabilities need decision='coupling' before fit; decision={self.decision!r} has no probabilities"

    def _rule(self, decision: str) -> decisions.DecisionRule:
        sigmoids = self.decision_data_.sigmoids
        if decision == "coupling" and sigmoids is None:
            raise NotFittedError(
                f"this {type(self).__name__} was fitted without probabilities, and decision='coupling' was set "
                "afterwards: fit it again with decision='coupling', or set back the decision that it was fitted with"
            )
        layout = cast("PairLayout", self.model_.layout)
        return PAIR_DECISIONS[decision](layout, self.model_.class_order, sigmoids)

    def predict_by(self, decision: Decision, X: Any) -> NDArray[Any]:
        """Return the class of each example by another decision than that of the parameter.

        Parameters
        ----------
        decision : {"votes", "dag", "adag", "coupling"}
            How to decide; ``"coupling"`` needs a machine that was fitted with it.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes.
        """
        X = self.checked_queries(X)
        return self.classes_[self._rule(decision).predict(self.model_, X, thread_count(self.n_jobs))]

    def _fitted_decision(
        self, training: formulations.TrainingSet, solution: formulations.Solution
    ) -> decisions.PairProbabilities:
        """Return the sigmoids of the pairs, if probabilities are asked for."""
        if self.decision != "coupling":
            return decisions.PairProbabilities()
        assert isinstance(solution, formulations.PairsSolution)
        return decisions.fitted_probabilities(solution.held_out, training.class_starts, training.weight)

    def decision_function(self, X: Any) -> Floats:
        """Return a score for each class; the largest is the class that ``predict`` gives.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples, k), or (n_samples,) for two classes
            The votes of each class plus its summed decision values squeezed into (-1/3, 1/3), which order classes
            with equally many votes; where that order contradicts ``predict``, the two scores change places. For two
            classes the decision value, positive for the second, and 0 is the second as well. With
            ``decision="coupling"`` the probabilities, and for two classes the logarithm of their ratio.
        """
        return super().decision_function(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each example.

        With ``decision="dag"`` or ``"adag"`` only the machines on the path of an example are evaluated, all
        examples that ask the same machine together.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes.
        """
        return super().predict(X)

    def pairwise_decision_function(self, X: Any) -> Floats:
        """Return the decision value of every pair machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples; for a precomputed kernel their kernel values with the training examples, of which only the
            columns of support vectors are read.

        Returns
        -------
        ndarray of shape (n_samples, n_pairs)
            Pairs in the order of ``intercept_``: (0,1), (0,2), ..., (1,2), ...; positive means the first class of the
            pair.
        """
        X = self.checked_queries(X)
        return self.model_.layout.sign * decisions.pair_values(self.model_, X, thread_count(self.n_jobs))
