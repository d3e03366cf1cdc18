"""Objectives recomputed from the data and the model alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.validation import check_is_fitted

from polymargin.estimators._binary import BinaryMachine
from polymargin.estimators._machine import KernelMachine, checked_weights
from polymargin.estimators._together import TogetherMachine
from polymargin.estimators.linear_program import LinearProgramSVC
from polymargin.formulations.solution import Floats, Ints, TrainingSet, relative_gap
from polymargin.kernels.kernel import Kernel
from polymargin.solvers.interior_point import MARGIN
from polymargin.support.examples import Matrix, checked_examples, dense

_BLOCK_BYTES = 64_000_000
_NUMBERS = {"linear": [], "rbf": ["gamma"], "poly": ["gamma", "degree", "coef0"], "sigmoid": ["gamma", "coef0"]}


@dataclass(frozen=True)
class Certificate:
    """How optimal a fitted machine is on some data.

    Weak duality makes every feasible dual point a lower bound: the primal objective is within
    ``primal_objective - dual_objective`` of the best there is, provided that the dual point is feasible.

    Parameters
    ----------
    primal_objective : float
        Primal objective of the model's weights and intercepts; for one-against-one and one-against-all the sum over
        the binary problems.
    dual_objective : float
        Dual objective of its coefficients, maximised.
    infeasibility : float
        Largest violation of a constraint of the dual by the coefficients (for ``LinearProgramSVC`` the multipliers), in
        units of the largest C (of the largest coefficient when C is infinite). Rounding leaves about 1e-16 times the
        number of examples.
    """

    primal_objective: float
    dual_objective: float
    infeasibility: float

    @property
    def duality_gap(self) -> float:
        """Relative difference of the objectives."""
        return relative_gap(self.primal_objective, self.dual_objective)

    def __repr__(self) -> str:
        shown = ("primal_objective", "dual_objective", "infeasibility", "duality_gap")
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def certify(machine: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
    """Recompute the objectives of a fitted machine, in float64, without trusting the solver.

    Kernel values are computed anew (by scikit-learn, in blocks), scores from them and the fitted coefficients, and the
    objectives from the definitions. The solver's own figures, precision and caches play no part.

    Parameters
    ----------
    machine : fitted machine of this package that is trained in the dual
        ``OneVsOneSVC``, ``OneVsRestSVC``, ``UncertaintySVC``, ``WestonWatkinsSVC``, ``CrammerSingerSVC`` or
        ``LinearProgramSVC``.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The training examples, in the order they were fitted; the kernel matrix if it was precomputed.
    y : array-like of shape (n_samples,)
        Their classes.
    sample_weight : array-like of shape (n_samples,), default=None
        The weights that were fitted.

    Returns
    -------
    Certificate
        The objectives, their relative gap, and how feasible the dual point is.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polymargin import CrammerSingerSVC, certify
    >>> X, y = load_iris(return_X_y=True)
    >>> proof = certify(CrammerSingerSVC(tol=1e-6).fit(X, y), X, y)
    >>> proof.duality_gap < 1e-5, proof.infeasibility < 1e-12
    (True, True)
    """
    if not isinstance(machine, BinaryMachine | TogetherMachine | LinearProgramSVC):
        raise TypeError(f"certify needs a machine of polymargin that is trained in the dual, got {type(machine)}")
    check_is_fitted(machine)
    X, y = checked_examples(machine, X, y, reset=False)
    codes = _codes(machine, y)
    weight = None if sample_weight is None else checked_weights(sample_weight, X)
    training = machine._training_set(codes, machine.classes_, weight)
    if int(np.max(machine.support_, initial=0)) >= X.shape[0]:
        raise ValueError(
            f"the machine was fitted on more than these {X.shape[0]} examples; certify needs the same ones"
        )
    if isinstance(machine, TogetherMachine):
        return _certify_together(machine, X, training)
    if isinstance(machine, LinearProgramSVC):
        return _certify_linear_program(machine, X, training)
    return _certify_binary(machine, X, training)


def _codes(machine: KernelMachine, y: NDArray[Any]) -> Ints:
    codes = np.searchsorted(machine.classes_, y)
    known = machine.classes_[np.minimum(codes, len(machine.classes_) - 1)] == y
    if not np.all(known):
        raise ValueError(f"y has the class {y[np.argmin(known)]!r}, which the machine was not fitted on")
    return codes


def _kernel_blocks(
    kernel: Kernel, X: Matrix, rows: Ints, vectors: Matrix, columns: Ints
) -> Iterator[tuple[slice, Floats]]:
    """Yield the kernel values of ``rows`` of X with the vectors, its rows ``columns``, a block of rows at a time."""
    step = max(1, _BLOCK_BYTES // (8 * max(1, len(columns))))
    for start in range(0, len(rows), step):
        part = X[rows[start : start + step]]
        values = kernel.values(part, vectors, columns)
        if values is None:
            numbers = {name: getattr(kernel, name) for name in _NUMBERS[kernel.kind]}
            values = pairwise_kernels(_in_double(part), _in_double(vectors), metric=kernel.kind, **numbers)
        yield slice(start, start + values.shape[0]), values


def _in_double(A: Matrix) -> Matrix:
    return sp.csr_array(A, dtype=np.float64) if sp.issparse(A) else np.asarray(A, dtype=np.float64)


def _products(machine: KernelMachine, X: Matrix, rows: Ints, members: Ints, coefficients: Floats) -> Floats:
    """Return the kernel expansion of each row for each column of ``coefficients``."""
    vectors = machine.support_vectors_ if machine._kernel.precomputed else machine.support_vectors_[members]
    if machine.kernel == "linear":  # through the weights: no kernel matrix, however many support vectors
        weights = vectors.T.astype(np.float64) @ coefficients
        return np.asarray(X[rows].astype(np.float64) @ weights)
    out = np.empty((len(rows), coefficients.shape[1]))
    for block, values in _kernel_blocks(machine._kernel, X, rows, vectors, machine.support_[members]):
        out[block] = values @ coefficients
    return out


def _spread(training: TrainingSet, support: Ints, values: Floats) -> Floats:
    """Put the coefficients of support vectors, by row of X, into the order of the training set."""
    full = np.zeros((len(training.order), *values.shape[1:]))
    full[_places(training, support)] = values
    return full


def _places(training: TrainingSet, rows: Ints) -> Ints:
    """Return the places of rows of X, which the solution names, in the order of the training set."""
    places = training.place_of(rows)
    if np.any(places < 0):
        raise ValueError("an example with weight 0 is a support vector; certify needs the weights that were fitted")
    return places


def _scale(upper: Floats, coefficients: Floats) -> float:
    """Return the unit of infeasibility."""
    finite = upper[np.isfinite(upper)]
    return float(finite.max()) if finite.size else max(float(np.max(np.abs(coefficients), initial=0.0)), 1e-300)


def _soft_or_hard(square: float, losses: float, margins: Floats, hard: NDArray[np.bool_]) -> float:
    """Return the primal objective; a hard margin first scales the weights until it is there."""
    if not np.any(hard):
        return 0.5 * square + losses
    smallest = float(margins[hard].min())
    return 0.5 * square / smallest**2 + losses if smallest > 0 else float("inf")


def _primal_point(
    machine: KernelMachine, X: Matrix, rows: Ints, columns: slice, expansion: Floats, square: float
) -> tuple[Floats, float]:
    """Return the scores of the primal point, without intercepts, and the square of its weights.

    Those of the coefficients; a linear solver may have weights of its own, which meet them at the optimum only.
    """
    weights = vars(machine).get("_linear_weights")
    if weights is None:
        return expansion, square
    return np.asarray(X[rows].astype(np.float64) @ weights[:, columns]), float(np.sum(weights[:, columns] ** 2))


def _certify_together(machine: TogetherMachine, X: Matrix, training: TrainingSet) -> Certificate:
    B = dense(machine.dual_coef_.T)
    members = np.arange(len(machine.support_))
    codes = training.class_of(np.arange(len(training.order)))
    expansion = _products(machine, X, training.order, members, B)
    full = _spread(training, machine.support_, B)
    sums = full.sum(axis=0)
    intercept = machine._intercepts
    square = float(np.sum(full * expansion))
    regularized = machine.bias == "regularized"
    dual_square = square + (float(sums @ sums) if regularized else 0.0)
    scores, primal_square = _primal_point(machine, X, training.order, slice(None), expansion, square)
    primal_square += float(intercept @ intercept) if regularized else 0.0
    scores = scores + intercept
    own = np.arange(len(codes)), codes
    rivals = scores.copy()
    rivals[own] = -np.inf
    margin = machine._loss()[1]
    hard = np.isinf(training.upper)
    losses = machine._losses(scores, codes)
    primal = _soft_or_hard(
        primal_square,
        float(training.upper[~hard] @ losses[~hard]),
        (scores[own] - rivals.max(axis=1)) / margin,
        hard,
    )
    broken = [np.abs(full.sum(axis=1)).max(initial=0.0), machine._excess(full, codes, training.upper)]
    if machine.bias == "free":
        broken.append(np.abs(sums).max())
    return Certificate(
        primal_objective=primal,
        dual_objective=margin * float(full[own].sum()) - 0.5 * dual_square,
        infeasibility=float(max(broken)) / _scale(training.upper, full),
    )


def _certify_linear_program(machine: LinearProgramSVC, X: Matrix, training: TrainingSet) -> Certificate:
    codes = training.class_of(np.arange(len(training.order)))
    own = np.arange(len(codes)), codes
    members = np.arange(len(machine.support_))
    scores = _products(machine, X, training.order, members, machine.dual_coef_.T) + machine._intercepts
    leads = scores[own][:, None] - scores
    leads[own] = np.inf
    hinges = np.maximum(0.0, MARGIN - leads).sum(axis=1)
    hard = np.isinf(training.upper)
    primal = float(machine.dual_coef_.sum() + training.upper[~hard] @ hinges[~hard])
    if np.any(hard):  # scaled until the margin is there
        smallest = float(leads[hard].min())
        primal = primal * MARGIN / smallest if smallest > 0 else float("inf")
    multipliers = np.zeros((len(codes), training.n_classes))
    multipliers[_places(training, machine.active_[:, 0]), machine.active_[:, 1]] = machine.multipliers_
    B = -multipliers
    B[own] += multipliers.sum(axis=1)
    outside = max(
        float(np.max(-multipliers)),
        float(np.max(multipliers[~hard] - training.upper[~hard, None], initial=0.0)),
        float(np.abs(B.sum(axis=0)).max()),
    )
    return Certificate(
        primal_objective=primal,
        dual_objective=MARGIN * float(multipliers.sum()),
        infeasibility=max(
            outside / _scale(training.upper, multipliers),
            float(_transposed_products(machine, X, training.order, B)[own].max()) - 1.0,
        ),
    )


def _transposed_products(machine: KernelMachine, X: Matrix, rows: Ints, B: Floats) -> Floats:
    """Return ``K'B`` for the kernel values between some rows."""
    active = np.flatnonzero(B.any(axis=1))
    vectors = X if machine._kernel.precomputed else X[rows]
    if machine.kernel == "linear":
        return np.asarray(vectors.astype(np.float64) @ (vectors[active].T.astype(np.float64) @ B[active]))
    out = np.zeros_like(B)
    for block, values in _kernel_blocks(machine._kernel, X, rows[active], vectors, rows):
        out += values.T @ B[active[block]]
    return out


def _certify_binary(machine: BinaryMachine, X: Matrix, training: TrainingSet) -> Certificate:
    n_classes = training.n_classes
    owner = np.repeat(np.arange(n_classes), machine.n_support_)
    coefficients = machine._sign(n_classes) * machine.dual_coef_
    intercepts = machine._sign(n_classes) * machine.intercept_
    primal = dual = broken = 0.0
    problems = machine._problems(training.bounds)
    for p, members in enumerate(machine._members(owner, n_classes)):
        ranges = problems[slice(*np.searchsorted(problems[:, 0], [p, p + 1]))]
        examples = np.concatenate([np.arange(begin, end) for _, begin, end, _ in ranges])
        sign = np.repeat(ranges[:, 3], ranges[:, 2] - ranges[:, 1]).astype(np.float64)
        rows = machine._coefficient_rows(np.full(len(members), p), owner[members], n_classes)
        values = coefficients[rows, members][:, None]
        beta = _spread(training, machine.support_[members], values)[examples, 0]
        expansion = _products(machine, X, training.order[examples], members, values)[:, 0]
        upper = training.upper[examples]
        hard = np.isinf(upper)
        square = float(beta @ expansion)
        scores, primal_square = _primal_point(
            machine, X, training.order[examples], slice(p, p + 1), expansion[:, None], square
        )
        margins = sign * (scores[:, 0] + intercepts[p])
        losses = float(upper[~hard] @ np.maximum(0.0, 1.0 - margins[~hard]))
        bias = getattr(machine, "bias", "free")
        regularized = bias == "regularized"
        primal += _soft_or_hard(primal_square + (intercepts[p] ** 2 if regularized else 0.0), losses, margins, hard)
        dual += float(sign @ beta) - 0.5 * (square + (beta.sum() ** 2 if regularized else 0.0))
        worst = max(
            abs(beta.sum()) if bias == "free" else 0.0,
            float(np.max(-sign * beta)),
            float(np.max((sign * beta - upper)[~hard], initial=0.0)),
        )
        broken = max(broken, worst / _scale(upper, beta))
    return Certificate(float(primal), float(dual), float(broken))
