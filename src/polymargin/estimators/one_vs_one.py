"""One-against-one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if

from polymargin.decision import Sigmoids, adag, couple, dag, fit_sigmoids, is_decided, pair_list, vote_scores, votes
from polymargin.decision.probabilities import log_probabilities
from polymargin.estimators._binary import CostPathMachine
from polymargin.estimators._documentation import with_shared_documentation
from polymargin.estimators._pairs import PairLayout, PairMachine, all_pairs
from polymargin.formulations.folds import folds_of
from polymargin.formulations.solution import BinarySolution, Floats, Ints, TrainingSet
from polymargin.kernels.ordered import kernel_rows, ordered_sums
from polymargin.models.declared import Kept
from polymargin.models.prepared import ErrorBound
from polymargin.models.settled import levels, near_zero, settled_scores
from polymargin.support.examples import Matrix
from polymargin.support.threads import one_blas_thread, thread_count
from polymargin.support.typing import CacheSize, ClassWeight, Decision, Gamma, KernelParameter

_PAIRWISE_AT_ONCE = 1 << 24  # decision values of pairs held at once for probabilities: 128 MB
_MOVED = 64.0  # of errors in the pairs to errors in probabilities
_ROUNDING = 1e-12  # of the coupling


def _couples(machine: Any) -> bool:
    if machine.decision != "coupling":
        raise AttributeError(
            f"probabilities need decision='coupling' before fit; decision={machine.decision!r} has no probabilities"
        )
    return True


@with_shared_documentation
class OneVsOneSVC(PairMachine, CostPathMachine):
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
    decision : {"votes", "dag", "adag", "coupling"}, default="votes"
        How the answers of the pairs become a class. ``"votes"``: most votes, a tie goes to the class that sorts
        first. ``"dag"``: ask (first, last) of the classes left and drop the loser, k - 1 questions. ``"adag"``:
        a knock-out tournament, first against last, second against second-last, and so on. ``"coupling"``: the
        largest probability. A pair whose value is exactly 0 answers with its second class, as in LIBSVM and
        scikit-learn's ``SVC``.
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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PairMachine._parameter_constraints,
        "decision": [StrOptions({"votes", "dag", "adag", "coupling"})],
    }
    _kept = PairMachine._kept | {
        "probA_": Kept("real", ("scores",), optional=True),
        "probB_": Kept("real", ("scores",), optional=True),
        "_tie_order": Kept("count", ("classes",), below="classes", optional=True),  # of LIBSVM's models
    }

    probA_: Floats  # noqa: N815 - LIBSVM's and scikit-learn's names
    probB_: Floats  # noqa: N815
    _tie_order: Ints

    def __init__(
        self,
        C: float = 1.0,
        *,
        decision: Decision = "votes",
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
        self.decision = decision

    def _layout(self, n_classes: int) -> PairLayout:
        return all_pairs(n_classes)

    # Probabilities.

    def _folds(self, X: Matrix, training: TrainingSet) -> Ints | None:
        return folds_of(X, training, self.random_state) if self.decision == "coupling" else None

    def _store(self, X: Matrix, training: TrainingSet, solution: BinarySolution) -> None:
        super()._store(X, training, solution)
        self.__dict__.pop("_tie_order", None)
        if self.decision == "coupling":
            self.probA_, self.probB_ = _fitted_sigmoids(training, solution.held_out)
        else:  # those of an earlier fit
            self.__dict__.pop("probA_", None)
            self.__dict__.pop("probB_", None)

    def _checked_state(self) -> None:
        super()._checked_state()
        if self.decision == "coupling" and not hasattr(self, "probA_"):
            raise NotFittedError(
                f"this {type(self).__name__} was fitted without probabilities, and decision='coupling' was set "
                "afterwards: fit it again with decision='coupling', or set back the decision that it was fitted with"
            )

    def _flaws(self) -> Iterator[tuple[str, str]]:
        yield from super()._flaws()
        order = self.__dict__.get("_tie_order")
        if order is not None and len(np.unique(order)) < len(order):
            yield "_tie_order", "must name every class once"

    def _coupled(self, X: Matrix) -> Floats:
        """Return the probabilities of each class, some rows at a time: their pairs may be many."""
        n_classes = len(self.classes_)
        out = np.empty((X.shape[0], n_classes))
        rows = max(1, _PAIRWISE_AT_ONCE // len(self.intercept_))
        for begin in range(0, len(out), rows):
            out[begin : begin + rows] = self._coupled_rows(X[begin : begin + rows])
        return out

    def _coupled_rows(self, X: Matrix) -> Floats:
        """Return the probabilities of some rows; where the largest are close, those of the row alone."""
        values, sizes = self._scores_and_sizes(X)
        out = self._probabilities_of(values)
        for level in levels(self):
            # An error of a pair's value moves the logarithm of its odds by A times as much, and no probability by more
            # than a few times that.
            moved = (level.errors(sizes) * np.abs(self.probA_)).max(axis=1)
            second, first = np.partition(out, -2, axis=1)[:, -2:].T
            close = np.flatnonzero(first - second <= first * (_MOVED * moved + _ROUNDING))
            if len(close) > 0:
                level.improve(X, values, sizes, close, near_zero, everything=True)
                out[close] = self._probabilities_of(values[close])
        return out

    def _probabilities_of(self, values: Floats) -> Floats:
        """Couple the answers of the pairs, given in the signs of the public attributes."""
        n_classes = len(self.classes_)
        with one_blas_thread():
            return couple(self._sigmoids.probabilities(self._sign(n_classes) * values), n_classes)

    @property
    def _sigmoids(self) -> Sigmoids:
        return Sigmoids(self.probA_, self.probB_)

    @available_if(_couples)
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class; only with ``decision="coupling"``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples, k)
            Probabilities in the order of ``classes_``; each row sums to 1, and its largest entry is the class that
            ``predict`` gives.
        """
        return self._coupled(self._checked_queries(X))

    @available_if(_couples)
    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithm of the probability of each class; only with ``decision="coupling"``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples, k)
            Logarithms of what ``predict_proba`` gives, in the order of ``classes_``; of 0 it is ``-inf``.
        """
        return log_probabilities(self.predict_proba(X))

    # Deciding.

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
        X = self._checked_queries(X)
        n_classes = len(self.classes_)
        if self.decision == "coupling":
            return self._coupled(X) if n_classes > 2 else self._log_odds(X)
        values = self._all_scores(X)
        if n_classes == 2:
            return values[:, 0]
        return vote_scores(values, n_classes, self._decide_all(values), self._order)

    def _log_odds(self, X: Matrix) -> Floats:
        """Return log(P(second) / P(first)) of two classes."""
        values, sizes = self._scores_and_sizes(X)
        for level in levels(self):
            odds = np.abs(self._sigmoids.second_class_log_odds(-values[:, 0]))
            errors = np.abs(self.probA_) * level.errors(sizes)[:, 0] + _ROUNDING
            close = np.flatnonzero(odds <= errors)
            if len(close) > 0:
                level.improve(X, values, sizes, close, near_zero, everything=True)
        return self._sigmoids.second_class_log_odds(-values[:, 0])

    def _costs_at_once(self) -> bool:
        return self.decision != "coupling"

    def _decide_all(self, values: Floats) -> Ints:
        """Decide from the values of all pairs."""
        n_classes = len(self.classes_)
        if n_classes == 2:  # positive for the second
            return (values[:, 0] > 0 if self._reverses(0, 1) else values[:, 0] >= 0).astype(np.int64)
        if self.decision == "votes":
            return votes(values, n_classes, self._order)
        eliminate = dag if self.decision == "dag" else adag
        return eliminate(lambda p, rows: values[rows, p], len(values), n_classes)

    @property
    def _order(self) -> Ints | None:
        """The classes in the order of the LIBSVM model that they come from, if that is not the sorted one."""
        return self.__dict__.get("_tie_order")

    def _reverses(self, first: int, second: int) -> bool:
        """Whether that order has the second of two classes before the first."""
        return self._order is not None and self._order.tolist().index(first) > self._order.tolist().index(second)

    def _that_decide(self, values: Floats, errors: Floats) -> NDArray[np.bool_]:
        """Return the values of pairs that could be of either sign, where the most votes depend on them."""
        unsure = near_zero(values, errors)
        if not unsure.any():
            return unsure
        rows = np.flatnonzero(unsure.any(axis=1))
        unsure[rows[is_decided(values[rows], unsure[rows], len(self.classes_))]] = False
        return unsure

    def _terms(self, column: int) -> tuple[Ints, Floats]:
        members, coefficients = self._pair(column)
        first, second = self._layout(len(self.classes_)).pairs[column]
        if not self._reverses(first, second):
            return members, coefficients
        begin = np.searchsorted(members, self._class_ranges()[second])  # LIBSVM begins with the class of the file's
        return np.roll(members, -begin), np.roll(coefficients, -begin)

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
        X = self._checked_queries(X)
        n_classes = len(self.classes_)
        if self.decision == "coupling":
            order = np.arange(n_classes) if self._order is None else self._order
            return self.classes_[order[self._coupled(X)[:, order].argmax(axis=1)]]
        if self.decision == "votes" and n_classes > 2:
            return self.classes_[self._decide_all(settled_scores(self, X, self._that_decide, False))]
        if n_classes == 2 or not self._in_core:
            return self.classes_[self._decide_all(self._all_scores(X, shown=False))]
        return self.classes_[self._eliminated(X)]

    def _eliminated(self, X: Matrix) -> Ints:
        """Return the classes that are left; where rounding could decide, those of the row alone."""
        bounds = self._error_bounds()
        classes, unsure = self._ready().scorer.eliminate(
            X, self.decision, bounds, thread_count(self.n_jobs), float(self.tol) / 2
        )
        if len(unsure) > 0:
            eliminate = dag if self.decision == "dag" else adag
            answer = self._path_answer(X[unsure], bounds[-1])
            classes[unsure] = eliminate(answer, len(unsure), len(self.classes_))
        return classes

    def _path_answer(self, X: Matrix, bound: ErrorBound) -> Callable[[int, Ints], Floats]:
        """Return a function that evaluates one pair machine for some rows."""
        scores, sizes = self._scores_and_sizes(X, accuracy=0.0)
        close = near_zero(scores, bound.of(sizes))

        def answer(p: int, rows: Ints) -> Floats:
            values = scores[rows, p]
            which = np.flatnonzero(close[rows, p])
            if len(which) > 0:
                values[which] = self._answer_alone(X[rows[which]], p)
            return values

        return answer

    def _answer_alone(self, X: Matrix, p: int) -> Floats:
        """Return the values of a pair machine for rows, each as if it were alone."""
        members, coefficients = self._terms(p)
        values = kernel_rows(self._kernel, X, self.support_vectors_[members], self.support_[members])
        sums: Floats = ordered_sums(values, coefficients) + self.intercept_[p]
        return sums


def _fitted_sigmoids(training: TrainingSet, held_out: Floats) -> Sigmoids:
    """Fit the sigmoid of each pair to the values of its held-out examples, first those of its first class."""
    of_class = [training.weight[begin:end] for begin, end in zip(training.bounds, training.bounds[1:], strict=False)]
    pairs = pair_list(training.n_classes)
    sizes = np.diff(training.bounds)[pairs]
    positive = np.repeat(np.tile([True, False], len(pairs)), sizes.ravel())
    weights = np.concatenate([of_class[c] for c in pairs.ravel()])
    return fit_sigmoids(held_out, positive, weights, np.concatenate([[0], np.cumsum(sizes.sum(axis=1))]))
