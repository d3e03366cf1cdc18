"""Linear machines without a kernel matrix: choosing the solver, calling it, keeping what comes out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.extmath import row_norms

from polymargin import _core
from polymargin.estimators._machine import seed_of
from polymargin.formulations.solution import Floats, Ints, Solution, TrainingSet
from polymargin.kernels.ordered import ordered_products
from polymargin.models.declared import Kept
from polymargin.solvers.cutting_plane import solve_cutting_plane
from polymargin.support.examples import Matrix, check_squares, core_data, dense

LINEAR_SOLVERS = ("sequential-dual", "exponentiated-gradient", "cutting-plane")
# Up to here the decomposition is as fast, and so exact, polished, that the order of the rows does not matter.
_SMALL = 1024
# Numbers up to which coefficients are kept as a dense matrix.
_DENSE = 2**26
# What machines with these solvers keep besides the rest, and what they keep in another form.
LINEAR_KEPT = {
    "dual_coef_": Kept("real", ("rows", "vectors"), sparse=True),
    "_linear_weights": Kept("real", ("features", "scores"), optional=True),
}


@dataclass(frozen=True)
class LinearSolution(Solution):
    """The solved dual of a linear machine, with its weights."""

    weights: Floats  # features x columns
    intercept: Floats
    coefficients: sp.csr_array  # examples x columns
    solver: str


def chosen_solver(machine: Any, n_samples: int) -> str:
    """Return the solver that ``machine.solver`` means for so many examples, or raise if it cannot be."""
    linear = isinstance(machine.kernel, str) and machine.kernel == "linear"
    if machine.solver == "auto":
        # Only this solver has binary machines without a bias, or with a regularised one.
        only = machine._binary and machine.bias != "free"
        large = n_samples > _SMALL or only
        return "sequential-dual" if linear and np.isfinite(machine.C) and large else "decomposition"
    if machine.solver in LINEAR_SOLVERS:
        if not linear:
            raise ValueError(f"solver={machine.solver!r} needs kernel='linear', got kernel={machine.kernel!r}")
        if not np.isfinite(machine.C):
            raise ValueError(f"solver={machine.solver!r} needs a finite C; for a hard margin use 'decomposition'")
    return str(machine.solver)


def solve_linear(
    machine: Any,
    X: Matrix,
    y: NDArray[Any],
    training: TrainingSet,
    classes: NDArray[Any],
    labels: Ints,
    n_columns: int,
    loss: tuple[str, float],
    solver: str,
    start: tuple[Ints, Floats, Floats] | None,
) -> LinearSolution:
    """Solve without kernel values; a label that is no column is an example of no class."""

    # There are no kernel values to keep, so the budget goes unused.
    def in_core(budget_bytes: int, **options: Any) -> dict[str, Any]:
        raw = _core.train_linear(
            core_data(X),
            training.order,
            training.upper,
            labels,
            n_columns,
            loss[0],
            loss[1],
            machine.bias,
            start,
            method=solver,
            seed=seed_of(machine.random_state),
            **machine._heuristics,
            **options,
        )
        # Popped: SciPy keeps narrower copies of the indices.
        entries = (raw.pop("coefficients"), raw.pop("columns"), raw.pop("starts"))
        raw["coefficients"] = sp.csr_array(entries, shape=(len(training.order), n_columns))
        raw["weights"] = raw["weights"].reshape(X.shape[1], n_columns)
        return raw | {"solver": solver}

    def by_planes(budget_bytes: int, threads: int, **options: Any) -> dict[str, Any]:
        rows = X[training.order]
        check_squares(rows, training.order)
        return solve_cutting_plane(rows, labels, training.upper, n_columns, *loss, machine.bias, **options)

    if solver != "sequential-dual":
        start = None  # the rivals start from points of their own
        _refuse_rival(solver, machine.bias, loss[0])
    train = by_planes if solver == "cutting-plane" else in_core
    n_tasks = None if solver == "cutting-plane" else 1
    return machine._run(X, y, n_tasks, train, LinearSolution, training, classes, measure="gap")


def _refuse_rival(solver: str, bias: str | None, loss: str) -> None:
    """Raise ValueError where a rival of the sequential dual method does not apply."""
    if bias == "free":
        raise ValueError(f"solver={solver!r} has no free bias: use bias='regularized' or None, or 'sequential-dual'")
    if solver == "exponentiated-gradient" and loss != "crammer-singer":
        raise ValueError("solver='exponentiated-gradient' is for CrammerSingerSVC; use 'sequential-dual'")


class LinearSolverMixin:
    """For machines with one score for each column of coefficients that may be solved without a kernel."""

    # Of the sequential dual method, Keerthi et al. 2.1, and what may follow it; to be switched off when their worth is
    # measured.
    _heuristics: ClassVar[dict[str, bool]] = {"shuffling": True, "shrinking": True, "cooling": True, "newton": True}
    _binary: ClassVar[bool] = False  # whether the columns are machines of their own
    dual_coef_: Any
    intercept_: Floats
    solver_used_: str
    _linear_weights: Floats

    def _store_linear(self, X: Matrix, training: TrainingSet, solution: LinearSolution) -> None:
        """Set the fitted attributes."""
        coefficients = solution.coefficients
        used = np.flatnonzero(np.diff(coefficients.indptr))
        columns = sp.csc_array(coefficients[used].T)
        self.dual_coef_ = columns.toarray() if np.prod(columns.shape) <= _DENSE else columns
        del columns  # before the support vectors, which may be all examples, are copied
        self._store_support(X, training, used, solution)  # type: ignore[attr-defined]
        self._store_intercepts(solution.intercept)  # type: ignore[attr-defined]
        self.solver_used_ = solution.solver
        self._linear_weights = solution.weights

    def _previous_rows(self, training: TrainingSet, classes: NDArray[Any]) -> tuple[Ints, Floats, Floats] | None:
        """Return the last solution as a start, which the core makes feasible; None if it does not fit."""
        example = self._previous_examples(training, classes)  # type: ignore[attr-defined]
        if example is None:
            return None
        known = example >= 0
        rows = np.ascontiguousarray(dense(self.dual_coef_.T[known]))
        return example[known], rows.ravel(), np.ascontiguousarray(self._intercepts)  # type: ignore[attr-defined]

    def _forget_linear(self) -> None:
        """After a fit on kernel values the weights of an earlier one are of no use."""
        self.__dict__.pop("_linear_weights", None)

    def _flaws(self) -> Iterator[tuple[str, str]]:
        yield from super()._flaws()  # type: ignore[misc]
        if sp.issparse(self.dual_coef_) and "_linear_weights" not in vars(self):
            yield "dual_coef_", "is sparse, but the weights that it stands beside are missing"

    def _scores_and_sizes(self, X: Matrix, accuracy: float | None = None, shown: bool = True) -> tuple[Floats, Floats]:
        weights = self.__dict__.get("_linear_weights")
        if weights is None:
            return super()._scores_and_sizes(X, accuracy, shown)  # type: ignore[misc]
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.asarray(X @ weights, dtype=np.float64) + self._intercepts  # type: ignore[attr-defined]
        if not np.all(np.isfinite(scores)):
            row = int(np.argmin(np.isfinite(scores).all(axis=1)))
            values = np.abs(dense(X[[row]])).ravel()
            raise ValueError(
                f"the value in row {row}, column {int(values.argmax())} is too large: its score overflows. Scale the "
                "data, for example with StandardScaler"
            )
        return scores, row_norms(X).astype(np.float64)

    @property
    def _may_be_single(self) -> bool:
        return "_linear_weights" not in vars(self) and super()._may_be_single  # type: ignore[misc]

    def _masses(self, power: int) -> Floats:
        weights = self.__dict__.get("_linear_weights")
        return super()._masses(power) if weights is None else row_norms(weights.T)  # type: ignore[misc]

    def _score_alone(self, X: Matrix, scores: Floats, rows: Ints, wanted: NDArray[np.bool_]) -> None:
        weights = self.__dict__.get("_linear_weights")
        if weights is None:
            return super()._score_alone(X, scores, rows, wanted)  # type: ignore[misc]
        scores[rows] = ordered_products(X, weights) + self._intercepts  # type: ignore[attr-defined]

    def _weights(self) -> Floats:
        weights = self.__dict__.get("_linear_weights")
        return np.asarray(self.dual_coef_ @ self.support_vectors_) if weights is None else weights.T  # type: ignore[attr-defined]
