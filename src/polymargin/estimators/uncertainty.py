"""Pairs of classes chosen by uncertainty: US_MSVM."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from polymargin import decision, formulations
from polymargin.estimators.base import MulticlassSVC
from polymargin.estimators.declaration import Fitted, estimator
from polymargin.support.numeric import Floats, Ints
from polymargin.support.threads import thread_count
from polymargin.support.typing import Answers


@estimator
class UncertaintySVC(MulticlassSVC):
    r"""Pairs of classes chosen by uncertainty (US_MSVM): the useful half of one-against-one.

    Pairs are trained one at a time, each as in one-against-one, Hsu & Lin (3). After pair k, with decision function
    :math:`f_k`, its row joins the decision matrix,

    .. math:: \mathrm{PPS}_{k,i} = \frac{|\{x \in P_i : f_k(x) \ge 0\}|}{|P_i|},

    Wang & Huang (4.1), where :math:`P_i` are up to ``probe_size`` training examples of class i, drawn once. Two classes
    whose columns are near each other are those that the pairs trained so far tell apart least: the next pair is the
    untrained one with the smallest distance (4.3). Training ends with ``max_pairs`` pairs, or when that distance is
    larger than ``min_distance``. An example gets the class whose column is nearest to the answers of all pairs, (4.5),

    .. math:: \arg\min_i \sum_k ([f_k(x) \ge 0] - \mathrm{PPS}_{k,i})^2 .

    With ``answers="margins"`` the 0 or 1 of both formulas, :math:`[f_k(x) \ge 0]`, becomes
    :math:`\min(1, \max(0, (f_k(x) + 1) / 2))`: the place between the margins. The paper does not have it, and it loses
    far less accuracy.

    The first pair is drawn at random; ties go to the smaller index. Zero counts as positive in both formulas; the paper
    has it so in the second alone. Shares are of sample weight where there is any. Two classes have one pair, which
    decides by its sign.

    Parameters
    ----------
    <C>
    max_pairs : float or int, default=0.5
        Most pairs to train: a share of all k (k - 1) / 2, rounded up, if it is a float (up to 1.0), a number of pairs
        if it is an int. A number larger than there are pairs means all.
    min_distance : float, default=0.8
        Stop when the columns of every untrained pair are farther apart than this; ``inf`` never does.
    probe_size : int, default=30
        Most training examples of a class that are asked for its share.
    answers : {"signs", "margins"}, default="signs"
        What pairs say about an example: the sign of the decision value, as in the paper, or its place between the
        margins.
    <parameters>

    Attributes
    ----------
    pairs_ : ndarray of shape (n_pairs, 2)
        The pairs of classes that were trained, in the order chosen: indices into ``classes_``, the smaller one first,
        which is the positive class.
    decision_matrix_ : ndarray of shape (n_pairs, k)
        The share of each class that each pair gives to its first class; with ``answers="margins"`` its mean answer.
    distances_ : ndarray of shape (n_pairs,)
        The least distance between the columns of an untrained pair after each round; inf when all pairs are trained.
    <support>
    dual_coef_ : ndarray of shape (m, n_SV)
        Signed coefficients: in the column of a vector of class c, row r belongs to the r-th of ``pairs_`` that c is in;
        m is the most pairs that one class is in.
    intercept_ : ndarray of shape (n_pairs,)
        Intercepts of the pairs.
    coef_ : ndarray of shape (n_pairs, n_features)
        Weights of the features, for the linear kernel.
    n_iter_ : ndarray of shape (n_pairs,)
        Steps taken for each pair.
    primal_objective_ : float
        Primal objective, summed over the trained pairs.
    dual_objective_ : float
        Dual objective, summed over the trained pairs: maximised, so never larger than the primal.
    <outcome>

    References
    ----------
    Y. Wang, S.-T. Huang, "Reducing the number of sub-classifiers for pairwise multi-category support vector machines",
    Pattern Recognition Letters 28, 2007, doi:10.1016/j.patrec.2007.06.020.

    <Hsu and Lin>

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from polymargin import UncertaintySVC
    >>> X, y = load_digits(return_X_y=True)
    >>> machine = UncertaintySVC(C=10, min_distance=float("inf")).fit(X[:1000], y[:1000])
    >>> len(machine.pairs_)  # of 45
    23
    >>> round(machine.score(X[1000:], y[1000:]), 1)
    0.9
    """

    max_pairs: float | int = 0.5
    min_distance: float = 0.8
    probe_size: int = 30
    answers: Answers = "signs"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MulticlassSVC._parameter_constraints,
        "max_pairs": [Interval(RealNotInt, 0, 1, closed="right"), Interval(Integral, 1, None, closed="left")],
        "min_distance": [Interval(Real, 0, None, closed="both")],
        "probe_size": [Interval(Integral, 1, None, closed="left")],
        "answers": [StrOptions({"signs", "margins"})],
    }
    pairs_: ClassVar[Fitted[Ints]] = Fitted()
    decision_matrix_: ClassVar[Fitted[Floats]] = Fitted()
    distances_: ClassVar[Fitted[Floats]] = Fitted()

    @classmethod
    def part_types(cls) -> dict[str, type]:
        """Return the types of what a fit leaves beside the model.

        Returns
        -------
        dict of str to type
            The types, by the names of the attributes.
        """
        return {"outcome_": formulations.ChosenPairsOutcome, "decision_data_": decision.DecisionMatrix}

    @property
    def formulation(self) -> formulations.ChosenPairs:
        """What is optimised, as the parameters say."""
        return formulations.ChosenPairs(self.max_pairs, self.min_distance, self.probe_size, self.answers)

    @property
    def decision_rule(self) -> decision.NearestColumn:
        """The class whose column is nearest to the answers wins."""
        return decision.NearestColumn(self.decision_matrix_, self.answers)

    def _fitted_decision(
        self, training: formulations.TrainingSet, solution: formulations.Solution
    ) -> decision.DecisionMatrix:
        """Return the decision matrix, whose rows are the mean answers of the pairs."""
        assert isinstance(solution, formulations.ChosenPairsSolution)
        return solution.decision_matrix

    def decision_function(self, X: Any) -> Floats:
        """Return a score for each class; the largest is the class that ``predict`` gives.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples, k), or (n_samples,) for two classes
            Minus the distance between the answers of the pairs and the column of each class; of equal scores the first
            counts. For two classes the decision value, positive for the second.
        """
        return super().decision_function(X)

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
            Pairs in the order of ``pairs_``; positive means the first class of the
            pair.
        """
        X = self.checked_queries(X)
        return self.model_.layout.sign * decision.pair_values(self.model_, X, thread_count(self.n_jobs))
