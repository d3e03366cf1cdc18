"""What all kernel machines have in common: parameters, checking, the frame of a fit, scores."""

from __future__ import annotations

import inspect
import operator
import threading
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import cache, cached_property, partial, wraps
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from polymargin.formulations.solution import Floats, Ints, Solution, TrainingSet, relative_gap
from polymargin.kernels.kernel import KERNELS, Kernel, SharedKernel, resolve_gamma
from polymargin.kernels.ordered import kernel_rows, ordered_sums
from polymargin.models.declared import KeepsState, Kept
from polymargin.models.prepared import ErrorBound, PreparedScorer, prepare, score_masses
from polymargin.models.settled import SMALL, error_bounds, near_largest, settled_scores
from polymargin.support.blocks import row_blocks
from polymargin.support.callbacks import HAVE_CALLBACKS, CallbackSupportMixin, FitTasks, with_callbacks
from polymargin.support.examples import Matrix, checked_examples
from polymargin.support.memory import budget_bytes
from polymargin.support.progress import progress_bar
from polymargin.support.threads import one_blas_thread, thread_count
from polymargin.support.typing import BaseEstimator, CacheSize, ClassifierMixin, ClassWeight, Gamma, KernelParameter

Answer = TypeVar("Answer", bound=Solution)
_CACHED_VALUES = 1 << 18  # kernel values that are read at once


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Leave the estimator as it was if the block does not end well, Ctrl-C included."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def naming_the_class(init: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor whose errors name the class that was called, and not the one that has the constructor."""
    signature = inspect.signature(init)

    @wraps(init)
    def constructor(self: Any, *args: Any, **options: Any) -> None:
        try:
            init(self, *args, **options)
        except TypeError:
            try:
                signature.bind(self, *args, **options)
            except TypeError as error:
                advice = "; for probabilities use OneVsOneSVC(decision='coupling') or SoftmaxSVC()"
                flaw = f"{type(self).__name__}(): {error}"
                raise TypeError(flaw + advice if "probability" in options else flaw) from None
            raise

    return constructor


class KernelMachine(CallbackSupportMixin, KeepsState, ClassifierMixin, BaseEstimator):
    """A classifier that is trained in the dual on a kernel and decides by scores.

    A subclass calls the core (:meth:`_solve`), keeps the solution (:meth:`_store`), and says what its scores are made
    of (:meth:`_shape`, :meth:`_blocks`).
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "C": [Interval(Real, 0, None, closed="right")],
        "kernel": [StrOptions(set(KERNELS)), callable],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "cache_size": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
    }
    _useful_matrices: ClassVar[int] = 1
    _kept: ClassVar[dict[str, Kept]] = {
        "n_features_in_": Kept("count"),
        "_kernel": Kept("kernel"),
        "classes_": Kept("labels", ("classes",)),
        "feature_names_in_": Kept("names", ("features",), optional=True),
        "support_": Kept("count", ("vectors",)),
        "support_vectors_": Kept("data", ("vectors held", "features held"), sparse=True),
        "n_support_": Kept("count", ("classes",)),
        "dual_coef_": Kept("real", ("rows", "vectors")),
        "intercept_": Kept("real", ("intercepts",)),
        "primal_objective_": Kept("number", report=True),
        "dual_objective_": Kept("number", report=True),
        "duality_gap_": Kept("number", report=True),
        "converged_": Kept("flag", report=True),
        "stop_reason_": Kept("text", report=True),
        "solver_used_": Kept("text", report=True),
        "n_iter_": Kept("count", None, report=True),
        "n_kernel_evaluations_": Kept("count", report=True),
        "fit_time_": Kept("number", report=True),
    }

    classes_: NDArray[Any]
    n_features_in_: int
    support_: Ints
    support_vectors_: Matrix
    n_support_: NDArray[np.int32]
    dual_coef_: Any  # an array; a linear solver may leave a sparse one
    intercept_: Floats
    primal_objective_: float
    dual_objective_: float
    duality_gap_: float
    converged_: bool
    stop_reason_: str
    solver_used_: str
    n_iter_: Any  # a number, or one for each binary problem
    n_kernel_evaluations_: int
    fit_time_: float
    _kernel: Kernel
    _stop: threading.Event | None = None  # set by somebody else when the fit is to end where it is

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = naming_the_class(cls.__init__)  # type: ignore[method-assign]

    @classmethod
    @cache  # the signature is read anew for every clone otherwise, which small fits feel
    def _get_param_names(cls) -> list[str]:
        return super()._get_param_names()

    @naming_the_class
    def __init__(
        self,
        C: float = 1.0,
        *,
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
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is_precomputed
        tags.input_tags.pairwise = self._is_precomputed
        return tags

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    # What a subclass says.

    @abstractmethod
    def _solve(
        self, X: Matrix, y: NDArray[Any], kernel: Kernel, training: TrainingSet, classes: NDArray[Any]
    ) -> Solution:
        """Solve the dual."""

    @abstractmethod
    def _store(self, X: Matrix, training: TrainingSet, solution: Any) -> None:
        """Set the fitted attributes that are the machine's own."""

    @abstractmethod
    def _shape(self, n_classes: int) -> tuple[int, int]:
        """Return the number of rows of ``dual_coef_`` and of scores."""

    @abstractmethod
    def _blocks(self) -> list[tuple[tuple[int, int], list[int]]]:
        """Return ranges of support vectors with the score columns their rows of ``dual_coef_`` go to."""

    @abstractmethod
    def _weights(self) -> Floats:
        """Return the weight vectors of the linear machine."""

    # Fitting.

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training examples; with ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix.
        y : array-like of shape (n_samples,)
            Their classes, of any type that can be sorted.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors on C for each example. A row with weight 2 counts as two rows, one with weight 0 not at all.

        Returns
        -------
        self : object
            The fitted machine. If the fit is interrupted or fails, the machine is as it was before.
        """
        started = time.perf_counter()
        with unchanged_on_error(self):
            X, y = checked_examples(self, X, y, reset=True)
            check_classification_targets(y)
            weight = None if sample_weight is None else checked_weights(sample_weight, X)
            gamma = resolve_gamma(self.gamma, X, weight) if self._uses_gamma else 0.0
            kernel = Kernel(self.kernel, gamma, float(self.coef0), int(self.degree))
            solution = self._fit_checked(X, y, weight, kernel)
            self.fit_time_ = time.perf_counter() - started
        self._warn(solution)
        return self

    def _fit_again(self, K: NDArray[Any], y: NDArray[Any], sample_weight: Any, kernel: SharedKernel) -> None:
        """Fit the machine to kernel values that somebody else has checked, as one of many fits that differ in C."""
        if hasattr(self, "classes_"):  # all but C has been looked at
            validate_parameter_constraints(self._parameter_constraints, {"C": self.C}, type(self).__name__)
        else:
            self._validate_params()
        with unchanged_on_error(self):
            self.n_features_in_ = K.shape[1]
            solution = self._fit_checked(
                K, y, None if sample_weight is None else checked_weights(sample_weight, K), kernel
            )
        self._warn(solution)

    def _fit_checked(self, X: Matrix, y: NDArray[Any], weight: Floats | None, kernel: Kernel) -> Solution:
        """Fit the machine to examples that have been looked at."""
        classes, codes = np.unique(y, return_inverse=True)
        training = self._training_set(codes, classes, weight)
        self._kernel = kernel
        solution = self._solve(X, y, kernel, training, classes)
        self.classes_ = classes
        self._store(X, training, solution)
        return solution

    @property
    def _uses_gamma(self) -> bool:
        return self.kernel in ("rbf", "poly", "sigmoid")

    def _training_set(self, codes: Ints, classes: NDArray[Any], weight: Floats | None) -> TrainingSet:
        if len(classes) < 2:
            raise ValueError(f"y has only one class, {classes.tolist()[0]!r}; a classifier needs at least two")
        counts = np.bincount(codes, weights=weight, minlength=len(classes))
        if np.any(counts <= 0):
            empty = classes[np.argmin(counts)]
            raise ValueError(
                f"class {empty!r} has no example with positive sample_weight; leave its rows out or give them weight"
            )
        if self.class_weight is None:
            factors = np.ones(len(classes))
        elif isinstance(self.class_weight, str):  # "balanced": by weight, so that weight 2 equals two rows
            factors = counts.sum() / (len(classes) * counts)
        else:
            factors = compute_class_weight(self.class_weight, classes=classes, y=classes[codes])
        if np.any(~(factors > 0)) or not np.all(np.isfinite(factors)):
            raise ValueError(f"class_weight must be positive and finite for every class, got {self.class_weight}")
        total = factors[codes] * (1.0 if weight is None else weight)
        order = np.argsort(codes, kind="stable")
        if weight is not None:
            order = order[weight[order] > 0]
        bounds = np.searchsorted(codes[order], np.arange(len(classes) + 1))
        weight = np.ascontiguousarray(total[order])
        return TrainingSet(order.astype(np.int64), bounds.astype(np.int64), float(self.C) * weight, weight)

    def _useful_bytes(self, X: Matrix) -> int:
        """Return the most memory that a fit can use: for matrices of kernel values, and a copy of the data."""
        n, features = X.shape
        return int(8 * self._useful_matrices * n**2 + 8 * n * features + 1_000_000)

    def _run(
        self,
        X: Matrix,
        y: NDArray[Any],
        n_tasks: int | None,
        train: Callable[..., dict[str, Any]],
        kind: type[Answer],
        training: TrainingSet,
        classes: NDArray[Any],
        measure: str = "violation",
    ) -> Answer:
        """Call the solver with what every machine passes, showing progress and listening to callbacks.

        ``measure`` is what the solver stops on: its "violation" or the "gap". A family of problems that ends before
        all ``n_tasks`` are solved says so in its answer, as "n_solved". A solver that has rounds (``n_tasks`` is None
        where they are not problems) may tell what its answer would be after each, as the last argument of ``progress``.
        """
        tasks = FitTasks(self, X, y, n_tasks)

        def fitted(answer: Callable[[], dict[str, Any]]) -> dict[str, Any]:
            return self._fitted_attributes(X, training, classes, kind.of(answer()))

        with progress_bar(type(self).__name__, self.verbose, measure) as bar, one_blas_thread():

            def progress(
                done: int,
                total: int,
                iterations: int,
                violation: float,
                answer: Callable[[], dict[str, Any]] | None = None,
            ) -> bool:
                if bar is not None:
                    bar(done, total, iterations, violation)
                state = None if answer is None else partial(fitted, answer)
                return tasks.report(done, state) and not (self._stop is not None and self._stop.is_set())

            raw = train(
                tolerance=float(self.tol),
                max_iterations=int(self.max_iter),
                time_limit=float("inf") if self.time_limit is None else float(self.time_limit),
                budget_bytes=budget_bytes(self.cache_size, self._useful_bytes(X)),
                threads=thread_count(self.n_jobs),
                progress=progress if bar is not None or tasks.listening or self._stop is not None else None,
            )
            if bar is not None:
                left = raw["violation"] if measure == "violation" else relative_gap(raw["primal"], raw["dual"])
                bar(n_tasks or 1, n_tasks or 1, int(np.sum(raw["iterations"])), float(np.max(left)))
        tasks.end(raw.get("n_solved", n_tasks), partial(fitted, lambda: raw))
        return kind.of(raw)

    def _fitted_attributes(
        self, X: Matrix, training: TrainingSet, classes: NDArray[Any], solution: Solution
    ) -> dict[str, Any]:
        """Return what a solution makes of the machine."""
        machine = copy(self)
        machine.classes_ = classes
        machine._store(X, training, solution)
        return {name: value for name, value in vars(machine).items() if name in self._kept}

    def _store_support(self, X: Matrix, training: TrainingSet, examples: Ints, solution: Solution) -> None:
        """Set the fitted attributes that all machines have; ``examples`` are the unique support vectors."""
        self.support_ = training.order[examples]
        self.support_vectors_ = X[self.support_] if not self._kernel.precomputed else np.empty((0, 0))
        self.n_support_ = np.bincount(training.class_of(examples), minlength=training.n_classes).astype(np.int32)
        self.primal_objective_ = float(np.sum(solution.primal))
        self.dual_objective_ = float(np.sum(solution.dual))
        self.duality_gap_ = solution.gap
        self.stop_reason_ = solution.stop_reason
        self.converged_ = solution.stop_reason == "converged"
        self.solver_used_ = "decomposition"
        self.n_kernel_evaluations_ = int(solution.evaluations)

    def _warn(self, solution: Solution) -> None:
        if self.converged_ or (self._stop is not None and self._stop.is_set()):  # whoever stopped it knows
            return
        advice = {
            "max_iter": f"max_iter={self.max_iter} was reached",
            "time_limit": f"time_limit={self.time_limit} was reached",
            "stopped": "a callback asked to stop",
            "precision": "rounding hides the rest",
        }[self.stop_reason_]
        warnings.warn(
            f"{type(self).__name__} did not converge: {advice} at violation {np.max(solution.violation):.3g} "
            f"(tol={self.tol:g}); primal {self.primal_objective_:.6g}, dual {self.dual_objective_:.6g}, "
            f"relative gap {self.duality_gap_:.3g}. Scale the data, raise the limit, or raise tol.",
            ConvergenceWarning,
            stacklevel=5 if HAVE_CALLBACKS else 4,  # past the decorators of fit
        )

    def _previous_examples(self, training: TrainingSet, classes: NDArray[Any]) -> Ints | None:
        """Return the core's numbers of the last support vectors, -1 where one is gone; None if they do not fit."""
        if not hasattr(self, "dual_coef_") or not np.array_equal(classes, self.classes_):
            return None
        example = training.place_of(self.support_)
        owner = np.repeat(np.arange(len(classes)), self.n_support_)
        known = example >= 0
        return example if np.array_equal(training.class_of(example[known]), owner[known]) else None

    # Scores.

    @property
    def coef_(self) -> Floats:
        """Weights of the features in each score, for ``kernel="linear"``."""
        if self.kernel != "linear":
            raise AttributeError("coef_ exists only with kernel='linear'")
        check_is_fitted(self)
        weights = self._public_weights()[:]
        weights.flags.writeable = False  # scores are computed from what it was made of
        return weights

    def _public_weights(self) -> Floats:
        """Return the weight vectors of the scores that ``decision_function`` is made of."""
        return self._weights()

    @property
    def _intercepts(self) -> Floats:
        """The intercepts of all scores."""
        return self.intercept_

    def _dimensions(self) -> dict[str, int]:
        rows, scores = self._shape(np.size(self.classes_))
        n_vectors, n_features = np.size(self.support_), int(self.n_features_in_)
        sizes = {"rows": rows, "scores": scores, "intercepts": scores, "vectors": n_vectors, "features": n_features}
        held = not self._kernel.precomputed  # else the support vectors are columns of the kernel matrix
        return sizes | {"vectors held": held * n_vectors, "features held": held * n_features}

    def _flaws(self) -> Iterator[tuple[str, str]]:
        yield from super()._flaws()
        if np.sum(self.n_support_) != len(self.support_):
            yield "n_support_", "does not count support_"
        if getattr(self.support_vectors_, "dtype", None) == np.dtype(object) and not callable(self._kernel.kind):
            yield "support_vectors_", "holds objects, which the kernel does not understand"
        if self._kernel.precomputed and int(np.max(self.support_, initial=0)) >= self.n_features_in_:
            yield "support_", "names columns the kernel does not have"

    def _checked_queries(self, X: Any) -> Matrix:
        self._checked_state()
        return checked_examples(self, X, reset=False, finite=not self._kernel.precomputed)

    def _ready(self) -> Ready:
        """Return what was prepared for the fitted attributes as they are."""
        ready = _READY.get(self)
        if ready is None or not ready.is_of(self):
            ready = _READY[self] = Ready(self)
        return ready

    def _checked_state(self) -> None:
        ready = _READY.get(self)
        if ready is None or not ready.checked or not ready.is_of(self):
            super()._checked_state()
            self._ready().checked = True

    def _error_bounds(self) -> tuple[ErrorBound, ...]:
        """Return how far off the scores may be, the coarser precision first."""
        return self._ready().error_bounds(float(self.tol) if self._may_be_single else None)

    def _all_scores(self, X: Matrix, shown: bool = True) -> Floats:
        """Return every score of every row, in the signs of the public attributes.

        Where rounding could decide, a row's scores do not depend on the rows beside it.
        """
        return settled_scores(self, X, None, shown)

    def _scores_and_sizes(self, X: Matrix, accuracy: float | None = None, shown: bool = True) -> tuple[Floats, Floats]:
        """Return every score of every row, and for each row the size of the rounding in its kernel values."""
        kernel = self._kernel
        if self._in_core:
            accuracy = float(self.tol) / 2 if accuracy is None else accuracy
            return self._ready().scorer.scores(X, thread_count(self.n_jobs), accuracy, shown)
        out = np.tile(np.asarray(self._intercepts, dtype=np.float64), (X.shape[0], 1))
        sizes = np.zeros(X.shape[0])
        if X.shape[0] == 0 or len(self.support_) == 0:
            return out, sizes

        def add(rows: slice) -> None:
            values = kernel.values(X[rows], self.support_vectors_, self.support_, rows.start)
            assert values is not None
            sizes[rows] = np.maximum(values.max(axis=1), -values.min(axis=1))
            scores = out[rows]
            for (begin, end), columns in self._blocks():
                scores[:, columns] += values[:, begin:end] @ self.dual_coef_[: len(columns), begin:end].T

        # A function is called once. Values that are there are copied while they fit into the cache.
        step = X.shape[0] if callable(kernel.kind) else max(1, _CACHED_VALUES // len(self.support_))
        with row_blocks(self.n_jobs) as blocks:
            blocks.each(add, X.shape[0], step)
        return out, sizes

    @property
    def _in_core(self) -> bool:
        """Whether the core computes the kernel values."""
        return not (self._kernel.precomputed or callable(self._kernel.kind))

    @property
    def _may_be_single(self) -> bool:
        """Whether the core may have scored in single precision."""
        return self._in_core and len(self.support_) > SMALL

    def _masses(self, power: int) -> Floats:
        """Return the norm of the coefficients of each score: their absolute sum, or with 2 their length."""
        return score_masses(self.dual_coef_, self._blocks(), len(self._intercepts), power)

    def _absolute_terms(self, X: Matrix) -> Floats | None:
        """Return the sums of the absolute terms of each score, where kernel values are positive and may be tiny."""
        if self._kernel.kind != "rbf":
            return None
        none = np.zeros(len(self._intercepts))
        absolute = prepare(self._kernel, self.support_vectors_, np.abs(self.dual_coef_), self._blocks(), none)
        return absolute.scores(X, thread_count(self.n_jobs))[0]

    def _wanted(self, scores: Floats, errors: Floats) -> NDArray[np.bool_]:
        """Return which scores have to be computed again if they may be so far off."""
        return near_largest(scores, errors)

    def _terms(self, column: int) -> tuple[Ints, Floats]:
        """Return the support vectors that a score is made of, in the order of its sum, and their coefficients."""
        return np.arange(len(self.support_)), self.dual_coef_[column]

    def _score_alone(self, X: Matrix, scores: Floats, rows: Ints, wanted: NDArray[np.bool_]) -> None:
        """Put into ``scores[rows]`` what the rows X have on their own."""
        values = kernel_rows(self._kernel, X, self.support_vectors_, self.support_)
        for column in np.flatnonzero(wanted.any(axis=0)):
            which = np.flatnonzero(wanted[:, column])
            members, coefficients = self._terms(int(column))
            sums = ordered_sums(values[np.ix_(which, members)], coefficients)
            scores[rows[which], column] = sums + self._intercepts[column]


class Ready:
    """What is known of the fitted attributes of a machine, as long as they are the same objects."""

    def __init__(self, machine: KernelMachine) -> None:
        state = vars(machine)
        self.names = [name for name, kept in machine._kept.items() if not kept.report]
        self.names += [name for name in ("_linear_weights", "_tie_order", "probA_") if name not in self.names]
        self.values = [state.get(name) for name in self.names]
        self.checked = False
        self._bounds: dict[float | None, tuple[ErrorBound, ...]] = {}
        self._machine = copy(machine)  # not the machine itself, which would never be freed

    def is_of(self, machine: KernelMachine) -> bool:
        """Whether the machine still has the attributes that this is of."""
        return all(map(operator.is_, map(vars(machine).get, self.names), self.values))

    @cached_property
    def scorer(self) -> PreparedScorer:
        """The model in the core; its arrays can be read only from now on."""
        machine = self._machine
        for array in (machine.support_vectors_, machine.dual_coef_, machine.intercept_):
            for part in (getattr(array, "data", None), getattr(array, "indices", None), array):
                if isinstance(part, np.ndarray):
                    part.flags.writeable = False
        return prepare(
            machine._kernel, machine.support_vectors_, machine.dual_coef_, machine._blocks(), machine._intercepts
        )

    def error_bounds(self, tolerance: float | None) -> tuple[ErrorBound, ...]:
        """Return how far off scores may be; those in single precision with a tolerance."""
        if tolerance not in self._bounds:
            machine = self._machine
            shape = len(machine.support_), machine.n_features_in_
            self._bounds[tolerance] = error_bounds(
                machine._kernel, shape, machine._masses, machine._intercepts, tolerance
            )
        return self._bounds[tolerance]


_READY: WeakKeyDictionary[KernelMachine, Ready] = WeakKeyDictionary()


def checked_weights(sample_weight: Any, X: Matrix) -> Floats:
    """Return the weights as float64; raise ValueError if one is negative or all are zero."""
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if np.any(weight < 0):
        row = int(np.argmax(weight < 0))
        raise ValueError(f"sample_weight must not be negative, but row {row} has {weight[row]:g}")
    if not np.any(weight > 0):
        raise ValueError("sample_weight is zero for every row; at least one example of each class needs weight")
    return weight


def seed_of(random_state: Any) -> int:
    """Return a seed; None is always the same one, so that fits can be repeated."""
    return 0 if random_state is None else int(check_random_state(random_state).randint(2**31))


def refuse_inseparable(solution: Solution, size: float = 1e4) -> None:
    """Raise ValueError when a hard margin was asked for that does not exist, or that ``size`` hides."""
    if solution.stop_reason == "unbounded" or "unbounded" in solution.status:
        raise ValueError(
            f"the data cannot be separated (or only by a margin below 1/{size:,.0f} of their size), so the hard "
            "margin C=inf has no solution: use a finite C, or a kernel that separates the classes"
        )
