"""Output codes."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, get_args

from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from polymargin import decision, formulations
from polymargin.estimators.base import MulticlassSVC
from polymargin.estimators.constraints import CALIBRATION
from polymargin.estimators.declaration import Fitted, estimator
from polymargin.models import CodeLayout
from polymargin.support.numeric import Floats
from polymargin.support.threads import thread_count
from polymargin.support.typing import CalibrationMethod, CodeKind, Decoding


@estimator
class OutputCodeSVC(MulticlassSVC):
    r"""Output codes: a binary support vector machine for each column of a code, decided by the nearest row.

    A code M has a row for each class and a column for each problem. In problem s the classes with :math:`M_{cs} = 1`
    are positive, those with -1 negative, and those with 0 take no part; each is solved as Hsu & Lin (1), in its dual.
    All problems share one kernel engine: a row of kernel values is computed once for all of them. With the decision
    values :math:`f_s` an example gets the class

    .. math:: \arg\min_c \sum_s L(M_{cs} f_s(x)),

    with :math:`L(z) = (1 - \operatorname{sign} z) / 2` for ``decoding="hamming"`` and the hinge loss
    :math:`L(z) = \max(0, 1 - z)`, which the machines were trained with, for ``decoding="loss"``: the more reliable
    one where problems are few. One-against-one decided by votes is the code ``"one-vs-one"`` with Hamming decoding.

    With ``decoding="probability"`` ``fit`` solves every problem again without each of five folds, fits Platt's sigmoid
    to the decision values of held-out examples, and the class probabilities are those of the generalised Bradley-Terry
    model under which the probabilities of the problems are likeliest.

    Parameters
    ----------
    <C>
    code : str or array of shape (k, n_problems), default="one-vs-one"
        The code, or how it is made: ``"one-vs-one"`` has a problem for each pair of classes, ``"one-vs-rest"`` one for
        each class. ``"dense"`` and ``"sparse"`` are drawn at random, without zeros and with half of
        them: of 100 draws that whose nearest rows are farthest apart. ``"exhaustive"`` divides all classes in every
        way, for up to 11 of them. With two classes there is one problem.
    code_size : float or None, default=None
        Problems of a random code, as a multiple of k. None means 10 log2(k) problems for ``"dense"`` and 15 log2(k) for
        ``"sparse"``, or all that there are, if those are fewer. Unused for other codes.
    decoding : {"hamming", "loss", "probability"}, default="hamming"
        How the values of the problems become a class; a tie goes to the class that sorts first.
    <calibration>
    <parameters>

    Attributes
    ----------
    code_book_ : ndarray of shape (k, n_problems)
        The code.
    probA_ : ndarray of shape (n_problems,)
        Slopes A of the sigmoids, never positive; with ``decoding="probability"``.
    probB_ : ndarray of shape (n_problems,)
        Their offsets B; with ``decoding="probability"``.
    <support>
    dual_coef_ : ndarray of shape (m, n_SV)
        Signed coefficients: in the column of a vector of class c, row r belongs to the r-th of the problems that c
        takes part in; m is the most problems that one class takes part in.
    intercept_ : ndarray of shape (n_problems,)
        Intercepts of the problems.
    coef_ : ndarray of shape (n_problems, n_features)
        Weights of the features, for the linear kernel.
    n_iter_ : ndarray of shape (n_problems,)
        Steps taken for each problem, without those for the folds.
    primal_objective_ : float
        Primal objective, summed over the problems.
    dual_objective_ : float
        Dual objective, summed over the problems: maximised, so never larger than the primal.
    <outcome>

    References
    ----------
    E. L. Allwein, R. E. Schapire, Y. Singer, "Reducing multiclass to binary: a unifying approach for margin
    classifiers", Journal of Machine Learning Research 1, 2000.

    <Hsu and Lin>

    T.-K. Huang, R. C. Weng, C.-J. Lin, "Generalized Bradley-Terry models and multi-class probability estimates",
    Journal of Machine Learning Research 7, 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from polymargin import OutputCodeSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> machine = OutputCodeSVC(C=10, gamma=0.001, code="dense", decoding="loss").fit(X[:1000], y[:1000])
    >>> machine.code_book_.shape
    (10, 34)
    >>> round(machine.score(X[1000:], y[1000:]), 2)
    0.97
    """

    code: CodeKind | ArrayLike = "one-vs-one"
    code_size: float | None = None
    decoding: Decoding = "hamming"
    calibration: CalibrationMethod | None = None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MulticlassSVC._parameter_constraints,
        "code": [StrOptions(set(get_args(CodeKind))), "array-like"],
        "code_size": [Interval(Real, 0, None, closed="neither"), None],
        "decoding": [StrOptions(decision.DECODINGS.keys())],
        "calibration": CALIBRATION,
    }
    code_book_: ClassVar[Fitted[Floats]] = Fitted()
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
        return super().part_types() | {"decision_data_": decision.CodeBook}

    @property
    def formulation(self) -> formulations.OutputCode:
        """What is optimised; probabilities are fitted to held-out values."""
        return formulations.OutputCode(self.code, self.code_size, held_out=self.decoding == "probability")

    @property
    def missing_probabilities(self) -> str | None:
        """What is to be done for probabilities; None if the machine has them."""
        if self.decoding == "probability" or self.calibration is not None:
            return None
        return (
            f"probabilities need decoding='probability', or a calibration, before fit; decoding={self.decoding!r} and "
            "calibration=None have none"
        )

    @property
    def calibration_method(self) -> str | None:
        """How probabilities are fitted to scores of held-out examples; None if they are not."""
        if self.decoding == "probability" and self.calibration is not None:
            raise ValueError(
                f"decoding='probability' has probabilities already: take calibration=None, not {self.calibration!r}, "
                "or another decoding"
            )
        return self.calibration

    @property
    def decision_rule(self) -> decision.NearestCode:
        """The class whose row of the code is nearest to the values wins."""
        return decision.NearestCode.of(self.decision_data_, self.decoding)

    def _fitted_decision(
        self, training: formulations.TrainingSet, solution: formulations.Solution
    ) -> decision.CodeBook:
        """Return the code, with the sigmoids of the problems if probabilities are asked for."""
        assert isinstance(solution, formulations.PairsSolution)
        layout = solution.model.layout
        assert isinstance(layout, CodeLayout)
        return decision.fitted_code_book(layout.code, solution.held_out, training.class_starts, training.weight)

    def decision_function(self, X: Any) -> Floats:
        """Return a score for each class; the largest is the class that ``predict`` gives.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples, k), or (n_samples,) for two classes
            Minus the Hamming distance or the loss of each class; of equal scores the first counts. With
            ``decoding="probability"`` the probabilities. For two classes the decision value, positive for the second;
            with probabilities half their difference.
        """
        return super().decision_function(X)

    def problem_decision_function(self, X: Any) -> Floats:
        """Return the decision value of every binary machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples; for a precomputed kernel their kernel values with the training examples, of which only the
            columns of support vectors are read.

        Returns
        -------
        ndarray of shape (n_samples, n_problems)
            Problems in the order of the columns of ``code_book_``; positive means the classes that are 1 there.
        """
        X = self.checked_queries(X)
        return decision.pair_values(self.model_, X, thread_count(self.n_jobs))
