"""The frame of a fit: from checked examples to a fitted estimator."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import validate_parameter_constraints

from polymargin.formulations import (
    Formulation,
    RunOptions,
    Solution,
    TrainingSet,
    checked_weights,
    label_training_set,
    solve_held_out,
    training_set,
)
from polymargin.kernels import Kernel
from polymargin.support.callbacks import HAVE_CALLBACKS, FitTasks
from polymargin.support.label_sets import LabelSets, checked_label_sets, holds_label_sets
from polymargin.support.numeric import OPEN_GAP, Floats, Matrix
from polymargin.support.progress import progress_bar
from polymargin.support.state import unchanged_on_error
from polymargin.support.threads import one_blas_thread, thread_count
from polymargin.support.typing import Stop

_OUTSIDE = 6 if HAVE_CALLBACKS else 5  # past the decorators of fit


class Machine(Protocol):
    """What is fitted: the parameters, the formulation and the decision of an estimator."""

    C: float
    tol: float
    stop: Stop
    class_weight: Any
    max_iter: int
    time_limit: float | None
    cache_size: Any
    n_jobs: int | None
    random_state: Any
    verbose: int
    warm_start: bool
    n_features_in_: int
    _parameter_constraints: ClassVar[dict[str, Any]]

    @property
    def formulation(self) -> Formulation:
        """What is optimised."""

    @property
    def calibration_method(self) -> str | None:
        """How probabilities are fitted to scores of held-out examples."""

    def _fitted_decision(self, training: TrainingSet, solution: Solution) -> Any:
        """Return what the decision is fitted to."""

    def _fitted_calibration(self, training: TrainingSet, solution: Solution) -> Any:
        """Return what probabilities are fitted to, of a machine that is fitted but for them."""

    def _validate_params(self) -> None: ...


def fit_checked(
    machine: Machine,
    X: Matrix,
    y: NDArray[Any] | LabelSets,
    weight: Floats | None,
    kernel: Kernel,
    started: float,
    stop: threading.Event | None = None,
) -> Solution:
    """Fit an estimator to examples that have been looked at, and return the solution that it keeps.

    ``stop`` is set by somebody else when the fit is to end where it is.
    """
    training, classes = training_of(machine, X, y, weight)
    solution = _solve(machine, machine.formulation, training, kernel, classes, y, stop)
    state = vars(machine)
    state.update(_fitted_attributes(machine, training, classes, solution))
    if isinstance(y, LabelSets):
        state["label_form_"] = y.form
        _warn_of_constants(training.label_sets or y)
    else:
        state.pop("label_form_", None)
    calibration = machine._fitted_calibration(training, solution)
    if calibration is not None:
        state["calibration_data_"] = calibration
    state["outcome_"] = replace(solution.outcome, seconds=time.perf_counter() - started)
    return solution


def training_of(
    machine: Machine, X: Matrix, y: NDArray[Any] | LabelSets, weight: Floats | None
) -> tuple[TrainingSet, NDArray[Any]]:
    """Return what a machine is trained on, and the classes: of several labels their numbers."""
    settings: dict[str, Any] = {"C": machine.C, "class_weight": machine.class_weight, "sample_weight": weight}
    if isinstance(y, LabelSets):
        return label_training_set(X, y, **settings), np.arange(y.n_labels)
    classes, codes = np.unique(y, return_inverse=True)
    return training_set(X, codes, classes, **settings), classes


def _warn_of_constants(label_sets: LabelSets) -> None:
    """Name the labels that there is nothing to learn of."""
    varying, n = set(label_sets.varying.tolist()), len(label_sets)
    constant = [label for label in range(label_sets.n_labels) if label not in varying]
    if constant:
        some = ", ".join(f"{label} ({'all' if label_sets.counts[label] == n else 'no'} rows)" for label in constant[:5])
        more = f" and {len(constant) - 5} others" if len(constant) > 5 else ""
        warnings.warn(
            f"labels that all rows have, or none, have no machine and are predicted so everywhere: {some}{more}",
            UserWarning,
            stacklevel=_OUTSIDE,
        )


def fit_prepared(
    machine: Machine,
    X: Matrix,
    y: NDArray[Any],
    sample_weight: Any,
    kernel: Kernel,
    stop: threading.Event | None = None,
) -> None:
    """Fit an estimator to examples, or kernel values, that somebody else has checked: one of many that differ in C."""
    started = time.perf_counter()
    if "model_" in vars(machine):  # all but C has been looked at
        validate_parameter_constraints(machine._parameter_constraints, {"C": machine.C}, type(machine).__name__)
    else:
        machine._validate_params()
    with unchanged_on_error(machine):
        machine.n_features_in_ = X.shape[1]
        targets = checked_label_sets(y) if holds_label_sets(y) else y
        solution = fit_checked(machine, X, targets, checked_weights(sample_weight, X), kernel, started, stop)
    warn_unless_converged(machine, solution, stop)


def _solve(
    machine: Machine,
    formulation: Formulation,
    training: TrainingSet,
    kernel: Kernel,
    classes: NDArray[Any],
    y: NDArray[Any] | LabelSets,
    stop: threading.Event | None,
) -> Solution:
    """Solve, showing progress and listening to callbacks; with the scores of held-out examples where they count."""
    sets = training.label_sets
    n_problems = formulation.n_problems(training.n_classes) if sets is None else len(sets.varying)
    tasks = FitTasks(machine, training.X, y.indicator if isinstance(y, LabelSets) else y, n_problems)

    def fitted(solution: Callable[[], Solution]) -> dict[str, Any]:
        return _fitted_attributes(machine, training, classes, solution())

    measure = formulation.measure(training, kernel)
    with progress_bar(type(machine).__name__, machine.verbose, measure) as bar, one_blas_thread():

        def progress(
            done: int, total: int, iterations: int, value: float, solution: Callable[[], Solution] | None = None
        ) -> bool:
            if bar is not None:
                bar(done, total, iterations, value)
            state = None if solution is None else partial(fitted, solution)
            return tasks.report(done, state) and not (stop is not None and stop.is_set())

        listener = progress if bar is not None or tasks.listening or stop is not None else None
        calibrates = machine.calibration_method is not None
        solve = partial(solve_held_out, formulation) if calibrates else formulation.solve
        solution = solve(training, kernel, _options(machine, classes, listener))
        if bar is not None:
            gap, violation = solution.outcome.gap, solution.violation
            reached = gap if violation is None or measure == "gap" else violation
            bar(n_problems or 1, n_problems or 1, int(np.sum(solution.outcome.iterations)), reached)
    tasks.end(n_problems if solution.n_solved is None else solution.n_solved, partial(fitted, lambda: solution))
    return solution


def _options(machine: Machine, classes: NDArray[Any], progress: Any) -> RunOptions:
    state = vars(machine)
    warm = machine.warm_start and "model_" in state and np.array_equal(classes, state["classes_"])
    return RunOptions(
        tolerance=float(machine.tol),
        stop=machine.stop,
        max_iterations=int(machine.max_iter),
        time_limit=float("inf") if machine.time_limit is None else float(machine.time_limit),
        cache_size=machine.cache_size,
        threads=thread_count(machine.n_jobs),
        random_state=machine.random_state,
        start=state["model_"] if warm else None,
        progress=progress,
    )


def _fitted_attributes(
    machine: Machine, training: TrainingSet, classes: NDArray[Any], solution: Solution
) -> dict[str, Any]:
    """Return what a solution makes of an estimator."""
    attributes: dict[str, Any] = {"classes_": classes, "model_": solution.model, "outcome_": solution.outcome}
    data = machine._fitted_decision(training, solution)
    return attributes if data is None else attributes | {"decision_data_": data}


def warn_unless_converged(machine: Machine, solution: Solution, stop: threading.Event | None = None) -> None:
    """Warn, with the objectives, if the tolerance was not met; whoever stopped the fit knows."""
    name, outcome = type(machine).__name__, solution.outcome
    if stop is not None and stop.is_set():
        return
    if not outcome.converged:
        _warn(
            f"{name} did not converge: {_reason(machine, outcome.stop_reason)}{_violation(solution)} "
            f"(tol={machine.tol:g}); {_objectives(solution)}. Scale the data, raise the limit, or raise tol."
        )
    elif solution.folds is not None and solution.folds.status != "converged":
        _warn(
            f"the probabilities of {name} are fitted to held-out scores that did not converge: "
            f"{_reason(machine, solution.folds.status)} (tol={machine.tol:g}). Scale the data, raise the limit, or "
            "raise tol."
        )


def _reason(machine: Machine, status: str) -> str:
    return {
        "max_iter": f"max_iter={machine.max_iter} was reached",
        "time_limit": f"time_limit={machine.time_limit} was reached",
        "stopped": "a callback asked to stop",
        "precision": "rounding hides the rest",
    }[status]


def warn_of_open_gap(machine: Machine, solution: Solution) -> None:
    """Warn if the tolerance was met far from the optimum: a small violation, times a large C, is a large gap.

    Whoever sets the gap itself to more knows.
    """
    allowed = max(OPEN_GAP, machine.tol) if solution.by_gap else OPEN_GAP
    if solution.outcome.converged and solution.outcome.gap > allowed:
        _warn(
            f"{type(machine).__name__} met tol={machine.tol:g}{_violation(solution)}, but may be far from the optimum: "
            f'{_objectives(solution)}. Take a smaller tol, or stop="gap", which makes tol the relative gap.'
        )


def _violation(solution: Solution) -> str:
    return "" if solution.violation is None else f" at violation {solution.violation:.3g}"


def _objectives(solution: Solution) -> str:
    outcome = solution.outcome
    return f"primal {outcome.primal:.6g}, dual {outcome.dual:.6g}, relative gap {outcome.gap:.3g}"


def _warn(message: str) -> None:
    warnings.warn(message, ConvergenceWarning, stacklevel=_OUTSIDE)
