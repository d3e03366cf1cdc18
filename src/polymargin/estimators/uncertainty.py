"""Pairs of classes chosen by uncertainty: US_MSVM."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from polymargin import _core
from polymargin.decision import ColumnDistances, column_scores, pair_answers, pair_list
from polymargin.decision.nearest_column import tied_rows
from polymargin.estimators._documentation import with_shared_documentation
from polymargin.estimators._machine import refuse_inseparable, seed_of
from polymargin.estimators._pairs import PairLayout, PairMachine
from polymargin.estimators._rounds import PairRounds, Probes
from polymargin.formulations.solution import BinarySolution, Floats, Ints, TrainingSet
from polymargin.kernels.kernel import Kernel
from polymargin.models.declared import Kept
from polymargin.models.settled import levels
from polymargin.support.examples import Matrix
from polymargin.support.typing import Answers, CacheSize, ClassWeight, Gamma, KernelParameter

_SHARE_OF_PROBES = 0.125  # of the memory for kernel values: theirs are few, and each saves one for every pair


@dataclass(frozen=True)
class UncertaintySolution(BinarySolution):
    """The solved pairs in the order chosen, and what they were chosen by."""

    pairs: Ints
    decision_matrix: Floats
    distances: Floats


@with_shared_documentation
class UncertaintySVC(PairMachine):
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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PairMachine._parameter_constraints,
        "max_pairs": [Interval(RealNotInt, 0, 1, closed="right"), Interval(Integral, 1, None, closed="left")],
        "min_distance": [Interval(Real, 0, None, closed="both")],
        "probe_size": [Interval(Integral, 1, None, closed="left")],
        "answers": [StrOptions({"signs", "margins"})],
    }
    _kept = PairMachine._kept | {
        "pairs_": Kept("count", ("scores", 2), below="classes"),
        "decision_matrix_": Kept("real", ("scores", "classes")),
        "distances_": Kept("extended", ("scores",), report=True),
    }

    pairs_: Ints
    decision_matrix_: Floats
    distances_: Floats

    def __init__(
        self,
        C: float = 1.0,
        *,
        max_pairs: float | int = 0.5,
        min_distance: float = 0.8,
        probe_size: int = 30,
        answers: Answers = "signs",
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
        self.max_pairs = max_pairs
        self.min_distance = min_distance
        self.probe_size = probe_size
        self.answers = answers

    def _layout(self, n_classes: int) -> PairLayout:
        return PairLayout.of(self.pairs_, n_classes)

    # Training.

    def _most_pairs(self, n_classes: int) -> int:
        every = n_classes * (n_classes - 1) // 2
        if isinstance(self.max_pairs, Integral):
            return min(int(self.max_pairs), every)
        return math.ceil(round(self.max_pairs * every, 9))  # 0.07 * 100 is 7, whatever rounding says

    def _solve(self, X: Matrix, y: NDArray[Any], kernel: Kernel, training: TrainingSet, classes: NDArray[Any]) -> Any:
        most = self._most_pairs(len(classes))
        starts = self._pair_starts(training, classes)
        rng = np.random.default_rng(seed_of(self.random_state))
        first = pair_list(len(classes))[rng.integers(len(classes) * (len(classes) - 1) // 2)]

        def train(budget_bytes: int, threads: int, tolerance: float, **limits: Any) -> dict[str, Any]:
            probes = Probes(
                kernel,
                X,
                training,
                self.probe_size,
                rng,
                answers=self.answers,
                room_bytes=int(_SHARE_OF_PROBES * budget_bytes),
                threads=threads,
            )
            budget_bytes -= probes.room_bytes
            session = kernel.session(X, training.order, training.largest, tolerance, budget_bytes, threads)
            rounds = PairRounds(
                session, training, probes, starts, most, refine=kernel.refine, tolerance=tolerance, **limits
            )
            self._choose_pairs(rounds, first, training.n_classes)
            return rounds.answer()

        solution = self._run(X, y, most, train, UncertaintySolution, training, classes)
        refuse_inseparable(solution)
        return solution

    def _choose_pairs(self, rounds: PairRounds, pair: Ints, n_classes: int) -> None:
        """Train pair after pair, each time the one whose classes look most alike."""
        distances, least = ColumnDistances(n_classes), 0.0
        while rounds.go_on and least <= self.min_distance:
            distances.add(pair, rounds.train(pair))
            pair, least = distances.nearest()
            rounds.end_round(least)

    def _pair_starts(self, training: TrainingSet, classes: NDArray[Any]) -> dict[tuple[int, int], Any]:
        """Return the last solution of each pair that was trained, as starts."""
        previous = self._previous_coefficients(training, classes) if self.warm_start else None
        if previous is None:
            return {}
        starts, support, beta = previous
        parts = (slice(*ends) for ends in pairwise(starts))
        return {
            (int(i), int(j)): _core.BinaryStart(np.array([0, len(support[part])]), support[part], beta[part])
            for (i, j), part in zip(self.pairs_, parts, strict=True)
        }

    def _store(self, X: Matrix, training: TrainingSet, solution: Any) -> None:
        self.pairs_ = solution.pairs
        self.decision_matrix_ = solution.decision_matrix
        self.distances_ = solution.distances
        super()._store(X, training, solution)

    # Deciding.

    def _flaws(self) -> Iterator[tuple[str, str]]:
        pairs, n_classes = np.asarray(self.pairs_), np.size(self.classes_)
        sound = pairs.ndim == 2 and pairs.shape[1] == 2 and pairs.dtype.kind == "i" and len(pairs) > 0
        if not sound or not np.all((pairs[:, 0] >= 0) & (pairs[:, 0] < pairs[:, 1]) & (pairs[:, 1] < n_classes)):
            yield "pairs_", "must hold pairs of classes, the smaller one first"
            return  # what else there must be depends on them
        yield from super()._flaws()
        if not np.all((self.decision_matrix_ >= 0) & (self.decision_matrix_ <= 1)):
            yield "decision_matrix_", "must hold shares, from 0 to 1"

    def _scores(self, X: Any) -> Floats:
        X = self._checked_queries(X)
        if len(self.classes_) == 2 or self.answers == "signs":
            values = self._all_scores(X)
            return values if len(self.classes_) == 2 else self._column_scores(values)
        values, sizes = self._scores_and_sizes(X)
        scores = self._column_scores(values)
        for level in levels(self):  # where two columns are equally near, the row alone decides
            moved = np.sqrt(values.shape[1]) * level.errors(sizes).max(axis=1)  # an answer moves by half of its value
            tied = tied_rows(scores, moved)
            if len(tied) > 0:
                level.improve(X, values, sizes, tied, self._wanted, everything=True)
                scores[tied] = self._column_scores(values[tied])
        return scores

    def _column_scores(self, values: Floats) -> Floats:
        return column_scores(pair_answers(values, self.answers), self.decision_matrix_)

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
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each example.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes.
        """
        scores = self._scores(X)
        chosen = (scores[:, 0] > 0).astype(np.intp) if len(self.classes_) == 2 else scores.argmax(axis=1)
        return self.classes_[chosen]
