"""Pairs of classes chosen by uncertainty: US_MSVM."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, RealNotInt

from polymargin import _core
from polymargin.decision import ColumnDistances, column_scores, pair_list
from polymargin.machines._data import Matrix
from polymargin.machines._documentation import with_shared_documentation
from polymargin.machines._kernel import Kernel
from polymargin.machines._machine import refuse_inseparable, seed_of
from polymargin.machines._pairs import PairLayout, PairMachine, pair_problems
from polymargin.machines._solution import BinarySolution, Floats, Ints, TrainingSet


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
    <parameters>

    Attributes
    ----------
    pairs_ : ndarray of shape (n_pairs, 2)
        The pairs of classes that were trained, in the order chosen: indices into ``classes_``, the smaller one, which is
        positive, first.
    decision_matrix_ : ndarray of shape (n_pairs, k)
        The share of each class that each pair gives to its first class.
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
    >>> machine.score(X[1000:], y[1000:]) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PairMachine._parameter_constraints,
        "max_pairs": [Interval(RealNotInt, 0, 1, closed="right"), Interval(Integral, 1, None, closed="left")],
        "min_distance": [Interval(Real, 0, None, closed="both")],
        "probe_size": [Interval(Integral, 1, None, closed="left")],
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
        kernel: str | Callable[[Matrix, Matrix], Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        class_weight: dict[Any, float] | str | None = None,
        max_iter: int = -1,
        time_limit: float | None = None,
        cache_size: str | float = "auto",
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
        probes = _Probes(self, X, training, rng)

        def train(budget_bytes: int, threads: int, tolerance: float, **limits: Any) -> dict[str, Any]:
            session = kernel.session(X, training.order, training.largest, tolerance, budget_bytes, threads)
            rounds = _Rounds(session, training, starts, most, tolerance=tolerance, **limits)
            self._choose_pairs(rounds, probes, first, most)
            return rounds.answer()

        solution = UncertaintySolution.of(self._run(X, y, most, train))
        refuse_inseparable(solution)
        return solution

    def _choose_pairs(self, rounds: _Rounds, probes: _Probes, pair: Ints, most: int) -> None:
        """Train pair after pair, each time the one whose classes look most alike."""
        distances = ColumnDistances(probes.n_classes)
        for _ in range(most):
            goes_on = rounds.train(pair)
            row = probes.shares(*rounds.last_machine)
            distances.add(pair, row)
            pair, distance = distances.nearest()
            rounds.note(row, distance, probes.evaluations)
            if distance > self.min_distance or not goes_on:
                return

    def _pair_starts(self, training: TrainingSet, classes: NDArray[Any]) -> dict[tuple[int, int], Any]:
        """Return the last solution of each pair that was trained, as starts."""
        previous = self._previous(training, classes) if self.warm_start else None
        if previous is None:
            return {}
        starts, support, beta = previous
        parts = (slice(*ends) for ends in zip(starts, starts[1:], strict=False))
        return {
            (int(i), int(j)): (np.array([0, len(support[part])]), support[part], beta[part])
            for (i, j), part in zip(self.pairs_, parts, strict=True)
        }

    def _store(self, X: Matrix, training: TrainingSet, solution: UncertaintySolution) -> None:
        self.pairs_ = solution.pairs
        self.decision_matrix_ = solution.decision_matrix
        self.distances_ = solution.distances
        super()._store(X, training, solution)

    # Deciding.

    def _checked_state(self) -> None:
        pairs, matrix, n_classes = np.asarray(self.pairs_), np.asarray(self.decision_matrix_), len(self.classes_)
        sound = pairs.ndim == 2 and pairs.shape[1] == 2 and pairs.dtype.kind in "iu" and len(pairs) > 0
        if not sound or not np.all((pairs[:, 0] >= 0) & (pairs[:, 0] < pairs[:, 1]) & (pairs[:, 1] < n_classes)):
            raise ValueError("the fitted state is damaged: pairs_ must hold pairs of classes; fit again")
        if matrix.shape != (len(pairs), n_classes) or not np.all((matrix >= 0) & (matrix <= 1)):
            raise ValueError("the fitted state is damaged: decision_matrix_ must hold shares of each class; fit again")
        super()._checked_state()

    def _scores(self, X: Any) -> Floats:
        values = self._all_scores(self._checked_queries(X))
        return values if len(self.classes_) == 2 else column_scores(values >= 0, self.decision_matrix_)

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


class _Probes:
    """Some examples of each class that every new pair machine is asked about."""

    def __init__(self, machine: UncertaintySVC, X: Matrix, training: TrainingSet, rng: np.random.Generator) -> None:
        drawn = [
            np.sort(rng.choice(np.arange(begin, end), min(end - begin, machine.probe_size), replace=False))
            for begin, end in zip(training.bounds, training.bounds[1:], strict=False)
        ]
        examples = np.concatenate(drawn)
        self.n_classes = training.n_classes
        self.evaluations = 0  # kernel values computed for the answers
        self._machine, self._X, self._training = machine, X, training
        self._queries = X[training.order[examples]]
        self._owner = training.class_of(examples)
        self._weight = training.weight[examples]
        self._total = np.bincount(self._owner, weights=self._weight)

    def shares(self, support: Ints, beta: Floats, intercept: float) -> Floats:
        """Return the share of each class that a pair machine gives to its first class, (4.1)."""
        positive = self._values(self._training.order[support], beta, intercept) >= 0
        return np.bincount(self._owner, weights=self._weight * positive, minlength=self.n_classes) / self._total

    def _values(self, support: Ints, beta: Floats, intercept: float) -> Floats:
        out = np.full((len(self._owner), 1), intercept)
        if len(support) == 0:
            return out[:, 0]
        vectors = self._X[support]
        self.evaluations += len(out) * len(support)
        values = self._machine._kernel.values(self._queries, vectors, support)
        if values is not None:
            return values @ beta + intercept
        blocks = [((0, len(support)), [0])]
        return self._machine._add_scores(self._queries, np.arange(len(out)), beta[None, :], blocks, out, vectors)[:, 0]


class _Rounds:
    """The pairs trained so far, one a round, on one kernel engine and within common limits."""

    def __init__(
        self,
        session: _core.KernelSession,
        training: TrainingSet,
        starts: dict[tuple[int, int], Any],
        most: int,
        *,
        tolerance: float,
        max_iterations: int,
        time_limit: float,
        progress: Callable[[int, int, int, float], bool] | None,
    ) -> None:
        self._session, self._training, self._starts, self._most = session, training, starts, most
        self._tolerance, self._max_iterations, self._progress = tolerance, max_iterations, progress
        self._deadline = time.perf_counter() + time_limit
        self._raw: list[dict[str, Any]] = []
        self._pairs: list[Ints] = []
        self._rows: list[Floats] = []
        self._distances: list[float] = []
        self._cut_short: list[str] = []
        self._probe_evaluations = 0

    def train(self, pair: Ints) -> bool:
        """Train a pair; False if there must not be another one."""
        report = self._report if self._progress is not None else None
        raw = self._session.train(
            pair_problems(pair[None, :], self._training.bounds),
            self._training.upper,
            self._starts.get((int(pair[0]), int(pair[1]))),
            True,
            self._tolerance,
            self._max_iterations,
            max(self._deadline - time.perf_counter(), 1e-9),
            report,
        )
        self._pairs.append(pair)
        self._raw.append(raw)
        go_on = report is None or report(0, 1, 0, float(raw["violation"][0]))
        if raw["status"][0] in ("time_limit", "stopped", "unbounded"):
            return False
        if len(self._pairs) < self._most and not (go_on and time.perf_counter() < self._deadline):
            self._cut_short = ["time_limit" if go_on else "stopped"]
            return False
        return True

    def _report(self, done: int, total: int, iterations: int, violation: float) -> bool:
        """Pass on the progress of one pair as that of all."""
        assert self._progress is not None
        before = sum(int(raw["iterations"][0]) for raw in self._raw)
        return self._progress(len(self._raw), self._most, before + iterations, violation)

    @property
    def last_machine(self) -> tuple[Ints, Floats, float]:
        """Support vectors, coefficients and intercept of the last pair."""
        raw = self._raw[-1]
        return raw["support"], raw["beta"], float(raw["intercept"][0])

    def note(self, row: Floats, distance: float, evaluations: int) -> None:
        """Keep what followed from the last pair: its row and the least distance; ``evaluations`` are of all rows."""
        self._rows.append(row)
        self._distances.append(distance)
        self._probe_evaluations = evaluations

    def answer(self) -> dict[str, Any]:
        """Return all pairs side by side, as the core would, and what they were chosen by."""
        together = {
            name: np.concatenate([raw[name] for raw in self._raw])
            for name in ("support", "beta", "intercept", "primal", "dual", "violation", "iterations")
        }
        return together | {
            "starts": np.cumsum([0] + [len(raw["support"]) for raw in self._raw]),
            "status": [raw["status"][0] for raw in self._raw] + self._cut_short,
            "evaluations": sum(raw["evaluations"] for raw in self._raw) + self._probe_evaluations,
            "pairs": np.array(self._pairs),
            "decision_matrix": np.array(self._rows),
            "distances": np.array(self._distances),
            "n_solved": len(self._raw),
        }
