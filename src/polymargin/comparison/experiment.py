"""The experiment of Hsu and Lin (2002, section V): parameters chosen by validation, the same for all machines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.multiclass import check_classification_targets

from polymargin.comparison.contestants import Contestant, contestants, groups
from polymargin.comparison.environment import environment
from polymargin.comparison.measure import Measure, measure_of
from polymargin.comparison.notes import last_line, notes_on_the_edge, recorded_warnings, scaling_advice, shortened
from polymargin.comparison.progress import TimeLimitError, Watch, limited, progress_of_searches
from polymargin.comparison.remaining import SearchWork
from polymargin.comparison.result import Comparison, MachineResult
from polymargin.comparison.settings import Split, check_choices, check_names, checked_test, chosen_grid, divisions
from polymargin.comparison.statistics import all_pairs
from polymargin.estimators import OneVsOneSVC
from polymargin.kernels import kernel_entry
from polymargin.selection import KernelSearchCV
from polymargin.selection.preparation import KernelUse, probable_repeats
from polymargin.support.examples import Matrix, checked_examples
from polymargin.support.threads import thread_count

_ROUNDS = 3  # most runs of which the shortest is the time
_LONG = 0.5  # seconds after which there is no further run
_PROBES = 3  # fits of each machine before all others, where somebody looks at the time that is left
_PROBING = 30.0  # seconds for the probes of a machine


def compare(
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    machines: Any = "all",
    grid: Any = None,
    cv: Any = 10,
    holdout: float | None = 0.3,
    kernel: str = "rbf",
    scaling: str | None = None,
    scoring: Any = None,
    level: float = 0.05,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    random_state: int | None = 0,
    name: str = "data",
    verbose: int = 0,
) -> Comparison:
    """Compare machines on some data, fairly: every one with its own best parameters, on the same folds.

    The experiment is that of Hsu and Lin (2002, section V). Without a test set each candidate of the grid is measured
    by cross-validation, and the best rate is reported. With one, a share of the training examples is held out to choose
    the parameters; the machine is then fitted to all training examples and measured on the test set. Of candidates with
    equal rates the first one counts, that is the one with the smallest C, then the smallest gamma; the test set has no
    say in it.

    A machine that cannot run on the data gets a row with the reason. Ctrl-C ends the run and keeps the machines that
    are done.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training examples.
    y : array-like of shape (n_samples,)
        Their classes.
    X_test : {array-like, sparse matrix} of shape (n_test_samples, n_features), default=None
        Test examples.
    y_test : array-like of shape (n_test_samples,), default=None
        Their classes.
    machines : str, list of str or classifiers, or dict, default="all"
        Who takes part. A group: ``"hsu-lin"``, the five of the paper; ``"classic"``, these and the others on hinges
        with relative margins or on pairs; ``"family"``, the joint machines of relative and of absolute margins;
        ``"codes"``, output codes; ``"smooth"``, losses without a corner; ``"all"``, one of each kind, without those of
        absolute margins and of output codes. Names are those of the report (``"DAG"``) or of classes
        (``"CrammerSingerSVC"``); classifiers may be any of scikit-learn's kind, also pipelines, and keep their
        parameters but for those of the grid that they have.
    grid : {"coarse", "hsu-lin"} or dict, default=None
        Values to try for each parameter. ``"hsu-lin"`` is the paper's 15 x 15 grid of C and gamma, ``"coarse"``, which
        None means, every second value of it.
    cv : int, splitter or iterable, default=10
        Folds, in the sense of scikit-learn. A number means that many, by class and shuffled.
    holdout : float or None, default=0.3
        Share of the training examples that is held out to choose parameters when there is a test set. None takes the
        folds of ``cv`` there too.
    kernel : str, default="rbf"
        Kernel of the machines that are named: any name that they know but ``"precomputed"``. If it has no gamma, as
        ``"linear"``, gamma is left out of the grid.
    scaling : {"range", "standard"} or None, default=None
        ``"range"`` scales every feature to [-1, 1], ``"standard"`` to mean 0 and variance 1, always by the training
        part alone. Sparse data keep their zeros: they are divided by the largest absolute value, or by the deviation.
    scoring : "accuracy", CostScorer or None, default=None
        What machines are compared and parameters chosen by. None is the share of right predictions; with what
        ``polymargin.costs.make_cost_scorer`` returns it is 1 minus the mean cost in units of the largest cost.
    level : float, default=0.05
        Level of significance of the tests between machines.
    time_limit : float or None, default=None
        Most seconds for the search of a machine; looked at after every fit. A machine that takes longer gets a row that
        says so.
    n_jobs : int or None, default=None
        Threads; None is 1, -1 all cores. Rates do not depend on it, times do.
    random_state : int or None, default=0
        Seed of the folds and of machines that draw at random.
    name : str, default="data"
        Name of the data in the reports.
    verbose : int, default=0
        1 shows a progress bar with the time left, on standard error.

    Returns
    -------
    Comparison
        ``table``, ``verdict``, ``to_markdown()``, ``to_html(path)``, ``to_json(path)``, ``plot()``.

    References
    ----------
    C.-W. Hsu, C.-J. Lin, "A comparison of methods for multiclass support vector machines", IEEE Transactions on Neural
    Networks 13(2), 2002, doi:10.1109/72.991427.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import compare
    >>> X, y = load_iris(return_X_y=True)
    >>> comparison = compare(X, y, machines=["DAG", "Crammer-Singer"], grid={"C": [1, 16], "gamma": [0.1]}, cv=5)
    >>> [(row["machine"], row["parameters"], round(row["rate"], 2)) for row in comparison.table]
    [('DAG', {'C': 16, 'gamma': 0.1}, 0.96), ('Crammer-Singer', {'C': 16, 'gamma': 0.1}, 0.97)]
    >>> print(comparison.verdict[0])
    No difference between these rates is significant (Wilcoxon signed-rank test on 5 folds, level 0.05): ...
    """
    check_choices(kernel, scaling, level, holdout, time_limit)
    taking_part = contestants(machines, kernel, random_state)
    chosen = chosen_grid(grid)
    check_names(grid, (contestant.machine for contestant in taking_part))
    X, y = checked_examples(OneVsOneSVC(), X, y, reset=True)
    check_classification_targets(y)
    test = checked_test(X, X_test, y_test)
    measure = measure_of(scoring, y, None if test is None else test[1])
    held = holdout if test is not None else None
    splits, validation = divisions(X, y, cv, held, random_state)
    experiment = Experiment(X, y, test, splits, chosen, scaling, time_limit, n_jobs, measure)
    results, interrupted = experiment.run(taking_part, verbose)
    done = {result.name: result for result in results if result.done}
    significance = all_pairs(
        {key: result.rate for key, result in done.items() if result.rate is not None},
        {key: result.fold_rates for key, result in done.items()},
        None if test is None else {key: measure.each(experiment.predicted[key], test[1]) for key in done},
        level,
    )
    return Comparison(
        results,
        significance,
        _facts(name, X, y, test, scaling),
        {
            "machines": machines if isinstance(machines, str) else [_text(entry, machines) for entry in machines],
            "grid_name": "coarse" if grid is None else grid if isinstance(grid, str) else None,
            "grid": {key: [_plain(value) for value in values] for key, values in chosen.items()},
            "cv": _plain(cv) if isinstance(cv, int | np.integer) else repr(cv),
            "holdout": held,
            "validation": validation,
            "kernel": kernel,
            "scaling": scaling,
            "scoring": measure.plain,
            "level": level,
            "time_limit": time_limit,
            "n_jobs": n_jobs,
            "random_state": random_state,
            "load": None,  # how the command got the data, and how it was called
            "command": None,
        },
        environment(),
        interrupted,
        experiment.models,
        (X, y) if X.shape[1] == 2 and not sp.issparse(X) else None,
    )


@dataclass
class Experiment:
    """Data, folds and settings that are the same for all machines; ``models`` and ``predicted`` grow as it runs."""

    X: Matrix
    y: NDArray[Any]
    test: tuple[Matrix, NDArray[Any]] | None
    splits: list[Split]
    grid: dict[str, list[Any]]
    scaling: str | None
    time_limit: float | None
    n_jobs: int | None
    measure: Measure
    models: dict[str, Any] = field(default_factory=dict)
    predicted: dict[str, NDArray[Any]] = field(default_factory=dict)  # on the test set
    fit_seconds: dict[str, float] = field(default_factory=dict)  # of fits that several machines decide on

    def run(self, taking_part: list[Contestant], verbose: int) -> tuple[list[MachineResult], bool]:
        """Return the result of each contestant, and whether Ctrl-C came before all were done."""
        scaled = [Contestant(c.name, self._with_scaling(c.estimator)) for c in taking_part]
        found: dict[str, MachineResult] = {}
        interrupted = False
        grouped = groups(scaled)
        work = [self._work(group) for group in grouped]
        with progress_of_searches(verbose, work, thread_count(self.n_jobs)) as progress:
            try:
                for number, group in enumerate(grouped) if progress.visible else ():
                    self._probe(group, partial(progress.remaining.probed, number))
                for number, group in enumerate(grouped):
                    with progress.search(number, " and ".join(c.name for c in group)) as watch:
                        found |= self._run_group(group, watch)
            except KeyboardInterrupt:
                if not any(result.done for result in found.values()):
                    raise
                interrupted = True
        missing = {
            c.name: MachineResult(c.name, _described(c.machine), "interrupted", "interrupted before it was done")
            for c in scaled
        }
        return [(missing | found)[c.name] for c in scaled], interrupted

    def _with_scaling(self, estimator: Any) -> Any:
        """Return the estimator with its scaling before it, so that every fold scales by its training part."""
        if self.scaling is None:
            return estimator
        sparse = sp.issparse(self.X)
        if self.scaling == "range":
            scaler = MaxAbsScaler() if sparse else MinMaxScaler((-1.0, 1.0))
        else:
            scaler = StandardScaler(with_mean=not sparse)
        steps = estimator.steps if isinstance(estimator, Pipeline) else [("machine", estimator)]
        return Pipeline([("scaling", scaler), *steps])

    def _own_grid(self, contestant: Contestant) -> dict[str, list[Any]]:
        """Return the part of the grid that the machine has parameters for, by their names in the estimator."""
        own = contestant.machine.get_params(deep=False)
        entry = kernel_entry(own.get("kernel"))
        unused = {"gamma"} if entry is not None and not entry.needs_gamma else set()
        names = [name for name in self.grid if name in own and name not in unused]
        return {contestant.prefix + name: self.grid[name] for name in names}

    def _work(self, group: list[Contestant]) -> SearchWork:
        folds = len(self.splits)
        afterwards = len(group) * (1 + (folds if self.test is None else 0))
        return SearchWork(list(ParameterGrid(self._own_grid(group[0]))), folds, afterwards, self.time_limit)

    def _probe(self, group: list[Contestant], report: Callable[[int, float], None]) -> None:
        """Fit some candidates, spread over the grid, to one part, so that the time left is known from the start."""
        train, _ = self.splits[0]
        candidates = self._work(group).candidates
        left = _PROBING if self.time_limit is None else min(_PROBING, self.time_limit)
        for number in range(_PROBES):
            candidate = (2 * number + 1) * len(candidates) // (2 * _PROBES)
            probe = Contestant("probe", clone(group[0].estimator).set_params(**candidates[candidate]))
            if "time_limit" in probe.machine.get_params(deep=False):
                probe.machine.set_params(time_limit=left)
            started = time.perf_counter()
            with recorded_warnings(), suppress(Exception):  # the search will say what is wrong
                probe.estimator.fit(self.X[train], self.y[train])
            spent = time.perf_counter() - started
            report(candidate, spent)
            left -= spent
            if left <= 0:
                return

    def _run_group(self, group: list[Contestant], watch: Watch) -> dict[str, MachineResult]:
        """Search for the group, then fit and measure each member; what goes wrong becomes the result."""
        with recorded_warnings() as of_search:
            started = time.perf_counter()
            try:
                search = self._searched(group, watch)
            except TimeLimitError as error:
                return {c.name: _failed(c, "time limit", error) for c in group}
            except Exception as error:
                return {c.name: _failed(c, "failed", error) for c in group}
            seconds = time.perf_counter() - started
        found = {}
        for contestant in group:
            with recorded_warnings() as own:
                try:
                    result = self._measured(contestant, search, watch, seconds, of_search + own)
                except Exception as error:
                    result = _failed(contestant, "failed", error)
            found[contestant.name] = result
        return found

    def _searched(self, group: list[Contestant], watch: Watch) -> KernelSearchCV:
        search = WatchedSearch(
            clone(group[0].estimator),
            self._own_grid(group[0]),
            cv=self.splits,
            scoring={c.decision or "rate": self.measure.scorer(c.decision) for c in group},
            refit=False,
            n_jobs=self.n_jobs,
        )
        search.watch = limited(watch, self.time_limit)
        return search.fit(self.X, self.y)

    def _measured(
        self, contestant: Contestant, search: KernelSearchCV, watch: Watch, seconds: float, notes: list[str]
    ) -> MachineResult:
        metric = contestant.decision or "rate"
        means = search.cv_results_[f"mean_test_{metric}"]
        if np.all(np.isnan(means)):
            raise ValueError("no candidate of the grid could be fitted")
        best = int(np.nanargmax(means))  # the first of equals
        candidates: list[dict[str, Any]] = [
            {"parameters": _without(contestant.prefix, parameters), "rate": None if np.isnan(mean) else float(mean)}
            for parameters, mean in zip(search.cv_results_["params"], means, strict=True)
        ]
        estimator = clone(contestant.estimator).set_params(**search.cv_results_["params"][best])
        if "n_jobs" in contestant.machine.get_params(deep=False) and contestant.machine.n_jobs is None:
            estimator.set_params(**{f"{contestant.prefix}n_jobs": self.n_jobs})
        chosen = Contestant(contestant.name, estimator)
        watch.chosen(best)
        with _timed(watch.fitted_again):
            train_seconds = self._fitted(chosen)
        machine = chosen.machine
        parameters = candidates[best]["parameters"]
        if self.test is None:
            measured = self._on_folds(estimator, watch.fitted_again)
        else:
            measured = self._on_test(contestant.name, estimator)
        result = MachineResult(
            contestant.name,
            _described(contestant.machine),
            "done",
            parameters=parameters,
            validation_rate=float(means[best]),
            train_seconds=train_seconds,
            search_seconds=seconds,
            unique_svs=_length(getattr(machine, "support_", None)),
            coefficients=_non_zero(getattr(machine, "dual_coef_", None)),
            gap=_number(getattr(machine, "duality_gap_", None)),
            converged=getattr(machine, "converged_", None),
            notes=[*shortened(notes), *notes_on_the_edge(parameters, candidates)],
            candidates=candidates,
            **measured,
        )
        self.models[contestant.name] = estimator
        return result

    def _fitted(self, chosen: Contestant) -> float:
        """Fit to all training examples and return the seconds; what is the same fit has the same."""
        same = chosen.fit_key
        if same is not None and same in self.fit_seconds:
            chosen.estimator.fit(self.X, self.y)
            return self.fit_seconds[same]
        _, seconds = shortest(partial(chosen.estimator.fit, self.X, self.y))
        if same is not None:
            self.fit_seconds[same] = seconds
        return seconds

    def _on_test(self, name: str, estimator: Any) -> dict[str, Any]:
        assert self.test is not None
        X, y = self.test
        predicted, seconds = shortest(partial(estimator.predict, X))
        self.predicted[name] = np.ravel(predicted)
        return {
            "rate": self.measure.of(predicted, y),
            "test_seconds": seconds,
            "confusion": self._confusion(y, predicted),
        }

    def _on_folds(self, estimator: Any, done: Callable[[float], None]) -> dict[str, Any]:
        """Measure the chosen parameters on every fold; the time is that of predicting all the parts held out."""
        rates, seconds, confusion = [], 0.0, np.zeros((len(self._classes()),) * 2, dtype=np.int64)
        for train, held in self.splits:
            with _timed(done):
                fitted = clone(estimator).fit(self.X[train], self.y[train])
                predicted, duration = shortest(partial(fitted.predict, self.X[held]))
            rates.append(self.measure.of(predicted, self.y[held]))
            seconds += duration
            confusion += np.array(self._confusion(self.y[held], predicted))
        return {
            "rate": float(np.mean(rates)),
            "test_seconds": seconds,
            "fold_rates": rates,
            "confusion": confusion.tolist(),
        }

    def _classes(self) -> NDArray[Any]:
        return np.unique(self.y)

    def _confusion(self, y: NDArray[Any], predicted: NDArray[Any]) -> list[list[int]]:
        """Return how many of each class (rows) were called each (columns); classes of the training set alone."""
        known = np.isin(y, self._classes())
        if not known.any():
            return np.zeros((len(self._classes()),) * 2, dtype=int).tolist()
        counts: list[list[int]] = confusion_matrix(y[known], predicted[known], labels=self._classes()).tolist()
        return counts


class WatchedSearch(KernelSearchCV):
    """A search that tells of every fit."""

    watch: Watch

    def _counter(self, total: int) -> AbstractContextManager[Callable[[int], None] | None]:
        return nullcontext(self.watch.counted)

    def _evaluated(self, candidate: int, seconds: float) -> None:
        self.watch.evaluated(candidate, seconds)

    def _foresee(self, rows: Matrix, uses: list[KernelUse], dtype: np.dtype[Any]) -> None:
        for use in probable_repeats(rows, uses, dtype):
            for series in use.group.series:
                for candidate in series.candidates:
                    self.watch.repeated(candidate, len(use.folds))


@contextmanager
def _timed(done: Callable[[float], None]) -> Iterator[None]:
    """Tell how many seconds something took."""
    started = time.perf_counter()
    yield
    done(time.perf_counter() - started)


def shortest(run: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a call returns, and the shortest time of three; of fewer, when it is long."""
    times: list[float] = []
    while len(times) < _ROUNDS and sum(times) < _LONG:
        started = time.perf_counter()
        answer = run()
        times.append(time.perf_counter() - started)
    return answer, min(times)


def _facts(
    name: str, X: Matrix, y: NDArray[Any], test: tuple[Matrix, NDArray[Any]] | None, scaling: str | None
) -> dict[str, Any]:
    classes, counts = np.unique(y, return_counts=True)
    return {
        "name": name,
        "n_train": int(X.shape[0]),
        "n_test": None if test is None else int(test[0].shape[0]),
        "n_features": int(X.shape[1]),
        "classes": [str(label) for label in classes.tolist()],
        "class_counts": counts.tolist(),
        "sparse": bool(sp.issparse(X)),
        "notes": scaling_advice(X) if scaling is None else [],
    }


def _failed(contestant: Contestant, status: str, error: Exception) -> MachineResult:
    # When every fit fails, the search quotes the traceback; its last line is the reason.
    text = last_line(str(error))
    kind = type(error).__name__
    quoted = isinstance(error, TimeLimitError) or "fits failed" in str(error)
    return MachineResult(
        contestant.name, _described(contestant.machine), status, text if quoted else f"{kind}: {text or 'no message'}"
    )


def _described(machine: Any) -> str:
    return " ".join(repr(machine).split())


def _without(prefix: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(prefix): _plain(value) for name, value in parameters.items()}


def _plain(value: Any) -> Any:
    """Return a value that JSON has."""
    value = value.item() if isinstance(value, np.generic) else value
    number = isinstance(value, bool | int) or (isinstance(value, float) and np.isfinite(value))
    return value if number or value is None or isinstance(value, str) else repr(value)


def _text(entry: Any, machines: Any) -> str:
    if not isinstance(entry, str):
        return _described(entry)
    return f"{entry}: {_described(machines[entry])}" if isinstance(machines, Mapping) else entry


def _length(rows: Any) -> int | None:
    return None if rows is None else len(rows)


def _non_zero(coefficients: Any) -> int | None:
    if coefficients is None:
        return None
    return int(coefficients.count_nonzero() if sp.issparse(coefficients) else np.count_nonzero(coefficients))


def _number(value: Any) -> float | None:
    return float(value) if value is not None and np.isfinite(value) else None
