"""Grid search that computes once what the candidates share."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from difflib import get_close_matches
from functools import partial
from numbers import Real
from operator import call
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, StratifiedShuffleSplit, check_cv
from sklearn.model_selection._validation import _warn_or_raise_about_fit_failures
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_method_params, column_or_1d

from polymargin.kernels import Kernel, SharedKernel
from polymargin.selection.evaluation import Evaluation, Fold, Machines
from polymargin.selection.kernel_matrices import held_out_values, pattern_of_ones
from polymargin.selection.plan import KernelGroup, Plan, Series, plan
from polymargin.selection.preparation import KernelUse, Prepared, kernel_of, prepared_folds
from polymargin.selection.scoreboard import Scoreboard
from polymargin.support.blocks import slices
from polymargin.support.callbacks import SearchTasks, with_callbacks
from polymargin.support.examples import Matrix, checked_examples
from polymargin.support.label_sets import holds_label_sets
from polymargin.support.progress import count_bar
from polymargin.support.threads import in_threads, one_blas_thread, thread_count

if TYPE_CHECKING:
    from polymargin.support.typing import GridSearchCV
else:
    from sklearn.model_selection import GridSearchCV


class KernelSearchCV(GridSearchCV):
    """Exhaustive search over parameters that shares kernel values and solutions between candidates.

    The interface and the answers are those of :class:`sklearn.model_selection.GridSearchCV`. The work is not:

    - squared distances (or scalar products) are computed once for all kernels,
    - one kernel matrix serves all costs, all other parameters and all folds,
    - each cost starts from the solution of the one before,
    - widths for which no two different examples are alike, so that their kernel matrices are equal, are one,
    - a linear program that is solved without loss is so for all larger costs,
    - folds go to threads, not to processes.

    The last step of a pipeline is searched likewise, fold by fold, as long as the grid leaves the steps before it
    alone. With ``kernel="linear"`` and many examples there is no kernel matrix: the costs are then a seeded path.

    Callbacks of the search hear of the tasks of scikit-learn's search, of which those below a candidate are missing:
    candidates are not fitted one by one. If the machine has callbacks of its own, they are.

    Parameters
    ----------
    estimator : estimator
        A machine of this package, or a pipeline that ends in one. Anything else is searched as scikit-learn does it,
        with a warning that says so; so are data whose kernel matrix does not fit the ``cache_size`` of the machine.
    param_grid : dict or list of dicts
        Values to try for each parameter; :func:`hsu_lin_grid` is the grid of the literature.
    cv : int, float, splitter or iterable, default=5
        As in scikit-learn. A number below 1 is the share of the examples that is held out once, by class, to measure.
    scoring : str, callable, list, tuple, dict or None, default=None
        As in scikit-learn; None is the rate of correct predictions.
    refit : bool, str or callable, default=True
        As in scikit-learn: fit the best candidate to all data.
    n_jobs : int or None, default=None
        Threads; None is 1, -1 all cores. The result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar with the time left.
    error_score : "raise" or float, default=np.nan
        Score of a candidate that cannot be fitted.
    return_train_score : bool, default=False
        Whether to compute the scores on the training parts too.
    early_stop : float or None, default=None
        Give up a candidate when, after three folds or more, a one-sided t-test at this level says that it is worse than
        the best one. Its scores are then not a number. None evaluates every candidate on every fold.

    Attributes
    ----------
    cv_results_ : dict
        As in scikit-learn, one row for each candidate; ``pandas.DataFrame(search.cv_results_)`` is a table. After
        Ctrl-C it has the candidates that were finished.
    best_params_ : dict
        Parameters of the best candidate.
    best_score_ : float
        Its mean score.
    best_index_ : int
        Its row.
    best_estimator_ : estimator
        It, fitted to all data, if ``refit``.
    n_splits_ : int
        Number of folds.
    refit_time_ : float
        Seconds of the last fit.
    scorer_ : callable or dict
        What measured.
    shared_ : bool
        Whether work was shared.

    See Also
    --------
    polymargin.selection.regularization_path : Machines for a series of costs.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import CrammerSingerSVC
    >>> from polymargin.selection import KernelSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = KernelSearchCV(CrammerSingerSVC(), {"C": [1, 8, 64], "gamma": [0.01, 0.1, 1]}, cv=10).fit(X, y)
    >>> search.best_params_, float(round(search.best_score_, 3))
    ({'C': 64, 'gamma': 0.01}, 0.987)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **GridSearchCV._parameter_constraints,
        "cv": ["cv_object", Interval(Real, 0, 1, closed="neither")],
        "early_stop": [Interval(Real, 0, 1, closed="neither"), None],
    }
    cv_results_: dict[str, Any]
    best_estimator_: Any
    best_params_: dict[str, Any]
    best_score_: float
    best_index_: int
    n_splits_: int
    multimetric_: bool
    refit_time_: float
    scorer_: Any
    feature_names_in_: NDArray[Any]
    shared_: bool

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        cv: Any = 5,
        scoring: Any = None,
        refit: Any = True,
        n_jobs: int | None = None,
        verbose: int = 0,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        early_stop: float | None = None,
    ) -> None:
        super().__init__(
            estimator,
            param_grid,
            cv=cv,
            scoring=scoring,
            refit=refit,
            n_jobs=n_jobs,
            verbose=verbose,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.early_stop = early_stop

    @with_callbacks
    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Evaluate all candidates, then fit the best.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples; with ``kernel="precomputed"`` their kernel matrix.
        y : array-like of shape (n_samples,)
            Their classes.
        **params : dict
            ``sample_weight`` for the machine and the scorer, ``groups`` for the splitter.

        Returns
        -------
        self : object
            The search with its results.
        """
        self._validate_params()
        candidates = list(ParameterGrid(self.param_grid))
        _check_names(self.estimator, candidates)
        shared = plan(self.estimator, candidates)
        if shared.unshared is None and holds_label_sets(y):
            shared = Plan(unshared="examples have several labels")
        if shared.unshared is None:
            prepared = self._prepared(shared, X, y, params)
            if prepared.matrices_at_once > 0:
                self.shared_ = True
                return self._search(prepared, candidates)
            shared = Plan(unshared=prepared.too_large())
        warnings.warn(f"candidates are evaluated one by one: {shared.unshared}", UserWarning, stacklevel=2)
        self.shared_ = False
        return super().fit(X, y, **params)

    # The frame of scikit-learn's search, around an evaluation of our own.

    def _search(self, prepared: Prepared, candidates: list[dict[str, Any]]) -> Self:
        X, y, splits, evaluation = prepared.X, prepared.y, prepared.splits, prepared.evaluation
        board = evaluation.board
        self.n_splits_ = len(splits)
        total = len(candidates) * len(splits)
        tasks = SearchTasks(self, X, y, prepared.params, total)

        def entered(candidate: int, fold: int, outcome: dict[str, Any]) -> None:
            tasks.evaluated(
                candidate * len(splits) + fold,
                lambda: (_safe_indexing(X, splits[fold][0]), _safe_indexing(y, splits[fold][0])),
            )
            self._evaluated(candidate, outcome["fit_time"] + outcome["score_time"])

        board.entered = entered
        try:
            with self._counter(total) as bar:
                evaluation.advanced = bar
                self._evaluate(prepared)
        except KeyboardInterrupt:
            self._keep(candidates, board, board.finished(), prepared.refit_metric)
            raise
        self._keep(candidates, board, list(range(len(candidates))), prepared.refit_metric)
        self.scorer_ = getattr(evaluation.scorer, "_scorers", evaluation.scorer)
        tasks.searched()
        if self.refit:
            self._refit(X, y, evaluation.fit_params, tasks)
        tasks.end()
        return self

    def _counter(self, total: int) -> AbstractContextManager[Callable[[int], None] | None]:
        """Return what counts fits that are done, as a context."""
        return count_bar(type(self).__name__, self.verbose, total, "fits")

    def _evaluated(self, candidate: int, seconds: float) -> None:
        """Hear of a candidate that was fitted to a fold and measured, from any thread."""

    def _foresee(self, rows: Matrix, uses: list[KernelUse], dtype: np.dtype[Any]) -> None:
        """Hear which kernels there will be, before the first of them is used."""

    def _splitter(self) -> Any:
        if isinstance(self.cv, float):
            return StratifiedShuffleSplit(n_splits=1, test_size=self.cv, random_state=0)
        return self.cv

    def _keep(self, candidates: list[dict[str, Any]], board: Scoreboard, which: list[int], refit_metric: str) -> None:
        """Set the results of some candidates."""
        if not which:
            return
        outcomes = board.listed(which)
        _warn_or_raise_about_fit_failures(outcomes, self.error_score)
        with warnings.catch_warnings():
            if board.given_up:
                warnings.filterwarnings("ignore", "One or more of the test scores are non-finite")
            results = self._format_results([candidates[c] for c in which], self.n_splits_, outcomes)
        self.multimetric_ = isinstance(outcomes[0]["test_scores"], dict)
        if callable(self.scoring) and self.multimetric_:  # what it measures is known only now
            self._check_refit_for_multimetric(outcomes[0]["test_scores"])
            refit_metric = self.refit
        self.cv_results_ = results
        if self.refit or not self.multimetric_:
            self.best_index_ = self._select_best_index(self.refit, refit_metric, results)
            self.best_params_ = results["params"][self.best_index_]
            if not callable(self.refit):
                self.best_score_ = results[f"mean_test_{refit_metric}"][self.best_index_]

    def __sklearn_is_fitted__(self) -> bool:
        """Ctrl-C may leave results without a machine."""
        return hasattr(self, "best_estimator_" if self.refit else "cv_results_")

    def _refit(self, X: Any, y: Any, fit_params: dict[str, Any], tasks: SearchTasks) -> None:
        started = time.perf_counter()
        best = clone(self.estimator).set_params(**clone(self.best_params_, safe=False))
        with tasks.refitting(best):
            self.best_estimator_ = best.fit(X, y, **fit_params)
        self.refit_time_ = time.perf_counter() - started
        if hasattr(best, "feature_names_in_"):
            self.feature_names_in_ = best.feature_names_in_

    # What is known before any work.

    def _prepared(self, shared: Plan, X: Any, y: Any, params: dict[str, Any]) -> Prepared:
        """Check what was given, divide it into folds, and see how many kernel matrices there may be at a time."""
        scorers, refit_metric = self._get_scorers()
        X, y = indexable(X, y)
        params = _check_method_params(X, params=params)
        routed = self._get_routed_params_for_fit(params)
        cv = check_cv(self._splitter(), y, classifier=True)
        splits = list(cv.split(X, y, **routed.splitter.split))
        evaluation = Evaluation(
            scorers,
            routed.estimator.fit,
            routed.scorer.score,
            self.return_train_score,
            self.error_score,
            Scoreboard(sum(len(series.candidates) for group in shared.groups for series in group.series), len(splits)),
        )
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        # Classes together: problems of some classes then read neighbouring kernel values. A matrix stays as it is.
        precomputed = any(group.machine.kernel == "precomputed" for group in shared.groups)
        order = np.arange(len(labels)) if precomputed else np.argsort(labels, kind="stable")
        ordered = X if precomputed else _safe_indexing(X, order)
        rows = None
        if shared.steps is None:
            rows = checked_examples(clone(shared.groups[0].machine), ordered, labels[order], reset=True)[0]
        return Prepared(
            shared,
            X,
            y,
            params,
            splits,
            refit_metric,
            evaluation,
            ordered,
            labels[order],
            prepared_folds(splits, labels, np.argsort(order), evaluation, X),
            evaluation.fit_parameters(X, order),
            rows,
            threads=thread_count(self.n_jobs),
        )

    # The evaluation.

    def _evaluate(self, prepared: Prepared) -> None:
        evaluation, folds = prepared.evaluation, prepared.folds
        # A candidate is given up by what it reached on the folds before: then one after the other.
        count = 1 if self.early_stop else prepared.threads
        threads = max(1, count // len(folds))  # within a fold
        with one_blas_thread(), in_threads(count, evaluation.stop) as each:
            for rows, of_rows in prepared.views():
                for group in prepared.plan.groups:
                    if not group.needs_kernel(rows.shape[0]):
                        each(partial(self._evaluate_path, rows, group, evaluation, threads), of_rows)
                uses = prepared.uses(rows, of_rows)
                if uses:
                    self._evaluate_kernels(prepared, rows, uses, threads, each)

    def _evaluate_kernels(
        self, prepared: Prepared, rows: Matrix, uses: list[KernelUse], threads: int, each: Callable[..., None]
    ) -> None:
        """Evaluate the candidates of each kernel on the folds that have it, some kernel matrices at a time."""
        family = prepared.family(rows, uses)
        if not self.early_stop:
            self._foresee(rows, uses, family.dtype)
        solved: dict[bytes, KernelUse] = {}  # kernels that say of any two examples only whether they are the same
        machines: Machines = {}  # of these
        for batch in slices(len(uses), min(family.at_once, prepared.matrices_at_once)):
            matrices = family.matrices([use.kernel for use in uses[batch]])
            work, repeated = [], []
            for K, use in zip(matrices, uses[batch], strict=True):
                pattern = None if self.early_stop else pattern_of_ones(K)
                twin = use if pattern is None else solved.setdefault(pattern, use)
                if twin is not use and use.repeats(twin):
                    repeated.append((K, use, twin))
                    continue
                kept = None if pattern is None else machines
                for fold, left in self._remaining(K, use, prepared):
                    part = partial(self._evaluate_fold, rows, K, use, left, prepared.evaluation, threads, fold, kept)
                    work.append(part)
            each(call, work)
            for K, use, twin in repeated:
                self._repeat(K, use, twin, machines if family.hides(use.kernel, twin.kernel) else None, prepared, rows)

    def _repeat(
        self,
        K: NDArray[Any],
        use: KernelUse,
        twin: KernelUse,
        machines: Machines | None,
        prepared: Prepared,
        rows: Matrix,
    ) -> None:
        """Give candidates what others have: all, or the machines alone, which score by values that K does not show."""
        evaluation = prepared.evaluation
        for series, same in zip(use.group.series, twin.group.series, strict=True):
            if machines is None or series.is_family():
                evaluation.repeat(series, same, use.folds)
                continue
            for fold in use.folds:
                K_train, K_test = _parts(use.kernel, rows, K, fold)
                evaluation.measure_again(series, same, fold, machines, K_train, K_test)

    def _remaining(self, K: NDArray[Any], use: KernelUse, prepared: Prepared) -> list[tuple[Fold, list[Series]]]:
        """Evaluate what can be solved for all folds by one call; return what is left for each fold."""
        remaining: dict[int, tuple[Fold, list[Series]]] = {}
        evaluation = prepared.evaluation
        at_once = evaluation.only_rates and not self.early_stop and all(len(fold.test) > 0 for fold in use.folds)
        for series in use.group.series:
            folds = use.folds
            if at_once and series.is_family():
                exact_to = use.group.tolerance
                folds = evaluation.run_family(series, folds, K, prepared.ordered_y, exact_to, self.n_jobs)
            for fold in folds:
                remaining.setdefault(fold.number, (fold, []))[1].append(series)
        return list(remaining.values())

    def _evaluate_fold(
        self,
        X: Matrix,
        K: NDArray[Any],
        use: KernelUse,
        remaining: list[Series],
        evaluation: Evaluation,
        threads: int,
        fold: Fold,
        kept: Machines | None,
    ) -> None:
        """Evaluate some candidates of a group on the part of the kernel matrix that belongs to a fold."""
        exactness = use.group.exactness(fold.y_train, fold.fit_params)
        kernel = SharedKernel("precomputed", 0.0, 0.0, 0, *exactness, X[fold.train])
        K_train, K_test = _parts(use.kernel, X, K, fold)
        for series in remaining:
            machine = clone(series.machine).set_params(kernel="precomputed", n_jobs=threads, verbose=0, warm_start=True)
            evaluation.run(series, fold, machine, K_train, K_test, kernel, kept)
        self._give_up(use.group, evaluation)

    def _evaluate_path(self, X: Matrix, group: KernelGroup, evaluation: Evaluation, threads: int, fold: Fold) -> None:
        """Evaluate the candidates of a group without a kernel matrix."""
        X_train, X_test = X[fold.train], X[fold.test]
        kernel = kernel_of(group.machine, X_train, fold.fit_params.get("sample_weight"))
        for series in group.series:
            machine = clone(series.machine).set_params(n_jobs=threads, verbose=0, warm_start=True)
            evaluation.run(series, fold, machine, X_train, X_test, kernel)
        self._give_up(group, evaluation)

    def _give_up(self, group: KernelGroup, evaluation: Evaluation) -> None:
        if self.early_stop:
            evaluation.board.give_up([c for series in group.series for c in series.candidates], self.early_stop)


def _parts(kernel: Kernel, X: Matrix, K: NDArray[Any], fold: Fold) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the parts of a kernel matrix that a fold is trained on and measured by."""
    return K[fold.train].take(fold.train, axis=1), held_out_values(kernel, X, K, fold.test, fold.train)


def _check_names(estimator: Any, candidates: list[dict[str, Any]]) -> None:
    """Raise ValueError if a candidate has a parameter that the estimator has not, nor anything that takes its place."""
    known = estimator.get_params()
    for candidate in candidates:
        for name in candidate:
            if name not in known and not any(name.startswith(f"{other}__") for other in candidate):
                last = name.rpartition("__")[2]
                near = [k for k in known if k.rpartition("__")[2] == last] or get_close_matches(name, known, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise ValueError(f"param_grid has {name!r}, which {type(estimator).__name__} has not{hint}")
