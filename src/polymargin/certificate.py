"""Objectives recomputed from the data and the model alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels
from sklearn.utils.validation import check_is_fitted

from polymargin.formulations import (
    ChosenPairs,
    Joint,
    LinearProgram,
    LinearProgramOutcome,
    OneVsRest,
    OutputCode,
    Pairs,
    TrainingSet,
    checked_weights,
    label_training_set,
    training_set,
)
from polymargin.kernels import Kernel, formula_values
from polymargin.models import CodeLayout, KernelModel, LabelLayout, LinearModel
from polymargin.solvers import MARGIN
from polymargin.support.examples import dense
from polymargin.support.label_sets import LabelSets
from polymargin.support.numeric import Bools, Floats, Ints, Matrix, gap_style, relative_gap

_BLOCK_BYTES = 64_000_000


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

    def __rich__(self) -> Any:
        """Return what rich prints: the same, with the gap in a colour that says whether it is small."""
        from rich.text import Text

        text = Text(repr(self))
        text.highlight_regex(r"duality_gap=[^)]*", gap_style(self.duality_gap))
        return text


def certify(machine: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
    """Recompute the objectives of a fitted machine, in float64, without trusting the solver.

    Kernel values are computed anew (by scikit-learn, in blocks), scores from them and the fitted coefficients, and the
    objectives from the definitions. The solver's own figures, precision and caches play no part.

    Parameters
    ----------
    machine : fitted machine of this package that is trained in the dual
        ``OneVsOneSVC``, ``OneVsRestSVC``, ``OutputCodeSVC``, ``UncertaintySVC``, ``JointSVC`` and the machines that
        it is by its parts, or ``LinearProgramSVC``.
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
    formulation = getattr(machine, "formulation", None)
    certifier = next((known for kind, known in _CERTIFIERS if isinstance(formulation, kind)), None)
    if certifier is None:
        raise TypeError(f"certify needs a machine of polymargin that is trained in the dual, got {type(machine)}")
    check_is_fitted(machine)
    X, y = machine.checked_training(X, y, reset=False)
    training = _training(machine, X, y, checked_weights(sample_weight, X))
    if int(np.max(machine.support_, initial=0)) >= X.shape[0]:
        raise ValueError(
            f"the machine was fitted on more than these {X.shape[0]} examples; certify needs the same ones"
        )
    return certifier(formulation, machine.model_, machine.outcome_, training)


def _training(machine: Any, X: Matrix, y: Any, weight: Floats | None) -> TrainingSet:
    """Return the examples as they were trained on, in the classes or with the labels of the machine."""
    settings: dict[str, Any] = {"C": machine.C, "class_weight": machine.class_weight, "sample_weight": weight}
    classes = machine.classes_
    several = isinstance(machine.model_.layout, LabelLayout)
    if several != isinstance(y, LabelSets) or (several and y.n_labels != len(classes)):
        what = f"an indicator matrix of {len(classes)} labels" if several else "a vector of classes"
        raise ValueError(f"the machine was fitted to {what}; certify needs the same")
    return label_training_set(X, y, **settings) if several else training_set(X, _codes(classes, y), classes, **settings)


def _codes(classes: NDArray[Any], y: NDArray[Any]) -> Ints:
    codes = np.searchsorted(classes, y)
    known = classes[np.minimum(codes, len(classes) - 1)] == y
    if not np.all(known):
        raise ValueError(f"y has the class {y[np.argmin(known)]!r}, which the machine was not fitted on")
    return codes


BinaryProblems = Pairs | ChosenPairs | OneVsRest | OutputCode


# Kernel values and what is made of them.


def _kernel_blocks(
    kernel: Kernel, X: Matrix, rows: Ints, vectors: Matrix, columns: Ints
) -> Iterator[tuple[slice, Floats]]:
    """Yield the kernel values of ``rows`` of X with the vectors, its rows ``columns``, a block of rows at a time."""
    step = max(1, _BLOCK_BYTES // (8 * max(1, len(columns))))
    for start in range(0, len(rows), step):
        part = X[rows[start : start + step]]
        values = kernel.values(part, vectors, columns)
        if values is None:
            values = _computed(kernel, _in_double(part), _in_double(vectors))
        yield slice(start, start + values.shape[0]), values


def _computed(kernel: Kernel, A: Matrix, B: Matrix) -> Floats:
    """Return kernel values as scikit-learn computes them, or else by their formula."""
    entry = kernel.entry
    assert entry is not None
    if kernel.kind not in PAIRWISE_KERNEL_FUNCTIONS:
        return formula_values(kernel, A, B)
    numbers = {name: getattr(kernel, name) for name in entry.parameters}
    values: Floats = pairwise_kernels(A, B, metric=kernel.kind, **numbers)
    return values


def _in_double(A: Matrix) -> Matrix:
    return sp.csr_array(A, dtype=np.float64) if sp.issparse(A) else np.asarray(A, dtype=np.float64)


def _products(model: KernelModel, X: Matrix, rows: Ints, members: Ints, coefficients: Floats) -> Floats:
    """Return the kernel expansion of each row for each column of ``coefficients``."""
    vectors = model.vectors if model.kernel.precomputed else model.vectors[members]
    if model.kernel.kind == "linear":  # through the weights: no kernel matrix, however many support vectors
        weights = vectors.T.astype(np.float64) @ coefficients
        return np.asarray(X[rows].astype(np.float64) @ weights)
    out = np.empty((len(rows), coefficients.shape[1]))
    for block, values in _kernel_blocks(model.kernel, X, rows, vectors, model.support[members]):
        out[block] = values @ coefficients
    return out


def _transposed_products(kernel: Kernel, X: Matrix, rows: Ints, B: Floats) -> Floats:
    """Return ``K'B`` for the kernel values between some rows."""
    active = np.flatnonzero(B.any(axis=1))
    vectors = X if kernel.precomputed else X[rows]
    if kernel.kind == "linear":
        return np.asarray(vectors.astype(np.float64) @ (vectors[active].T.astype(np.float64) @ B[active]))
    out = np.zeros_like(B)
    for block, values in _kernel_blocks(kernel, X, rows[active], vectors, rows):
        out += values.T @ B[active[block]]
    return out


def _spread(training: TrainingSet, support: Ints, values: Floats) -> Floats:
    """Put the coefficients of support vectors, by row of X, into the order of the training set."""
    full = np.zeros((training.n_examples, *values.shape[1:]))
    full[_places(training, support)] = values
    return full


def _places(training: TrainingSet, rows: Ints) -> Ints:
    """Return the places of rows of X, which the solution names, in the order of the training set."""
    places = training.place_of(rows)
    if np.any(places < 0):
        raise ValueError("an example with weight 0 is a support vector; certify needs the weights that were fitted")
    return places


def _scale(cost_bounds: Floats, coefficients: Floats) -> float:
    """Return the unit of infeasibility."""
    finite = cost_bounds[np.isfinite(cost_bounds)]
    return float(finite.max()) if finite.size else max(float(np.max(np.abs(coefficients), initial=0.0)), 1e-300)


def _soft_or_hard(square: float, losses: float, margins: Floats, hard: Bools) -> float:
    """Return the primal objective; a hard margin first scales the weights until it is there."""
    if not np.any(hard):
        return 0.5 * square + losses
    smallest = float(margins[hard].min())
    return 0.5 * square / smallest**2 + losses if smallest > 0 else float("inf")


def _primal_point(
    model: KernelModel, X: Matrix, rows: Ints, columns: slice, expansion: Floats, square: float
) -> tuple[Floats, float]:
    """Return the scores of the primal point, without intercepts, and the square of its weights.

    Those of the coefficients; a linear solver may have weights of its own, which meet them at the optimum only.
    """
    if not isinstance(model, LinearModel):
        return expansion, square
    weights = model.weights[:, columns]
    return np.asarray(X[rows].astype(np.float64) @ weights), float(np.sum(weights**2))


# One certificate for each kind of formulation.


def _certify_joint(formulation: Joint, model: KernelModel, _: Any, training: TrainingSet) -> Certificate:
    B = dense(model.coefficients.T)
    loss, labels, intercept = formulation.loss.of(training.n_classes), training.labels, model.intercepts
    expansion = _products(model, training.X, training.order, np.arange(len(model.support)), B)
    full = _spread(training, model.support, B)
    sums = full.sum(axis=0)
    square = float(np.sum(full * expansion))
    regularized = formulation.bias == "regularized"
    dual_square = square + (float(sums @ sums) if regularized else 0.0)
    scores, primal_square = _primal_point(model, training.X, training.order, slice(None), expansion, square)
    primal_square += float(intercept @ intercept) if regularized else 0.0
    scores = scores + intercept
    hard = np.isinf(training.cost_bounds)
    primal = _soft_or_hard(
        primal_square,
        float(training.cost_bounds[~hard] @ loss.values(scores, labels)[~hard]),
        loss.smallest_margins(scores, labels),
        hard,
    )
    rows = loss.dual_rows(full, labels, training.cost_bounds)
    broken = [np.abs(full.sum(axis=1)).max(initial=0.0), loss.excess(rows, labels, training.cost_bounds)]
    if loss.scores_sum_to_zero:
        broken.append(abs(float(intercept.sum())))
    if formulation.bias == "free":
        broken.append(np.abs(sums).max())
    return Certificate(
        primal_objective=primal,
        dual_objective=loss.dual_value(rows, labels)
        - loss.conjugate(rows, labels, training.cost_bounds)
        - 0.5 * dual_square,
        infeasibility=float(max(broken)) / _scale(training.cost_bounds, full),
    )


def _certify_linear_program(
    _: LinearProgram, model: KernelModel, outcome: LinearProgramOutcome, training: TrainingSet
) -> Certificate:
    labels = training.labels
    own = np.arange(len(labels)), labels
    members = np.arange(len(model.support))
    scores = _products(model, training.X, training.order, members, model.coefficients.T) + model.intercepts
    leads = scores[own][:, None] - scores
    leads[own] = np.inf
    hinges = np.maximum(0.0, MARGIN - leads).sum(axis=1)
    hard = np.isinf(training.cost_bounds)
    primal = float(model.coefficients.sum() + training.cost_bounds[~hard] @ hinges[~hard])
    if np.any(hard):  # scaled until the margin is there
        smallest = float(leads[hard].min())
        primal = primal * MARGIN / smallest if smallest > 0 else float("inf")
    multipliers = np.zeros((len(labels), training.n_classes))
    multipliers[_places(training, outcome.active[:, 0]), outcome.active[:, 1]] = outcome.multipliers
    B = -multipliers
    B[own] += multipliers.sum(axis=1)
    outside = max(
        float(np.max(-multipliers)),
        float(np.max(multipliers[~hard] - training.cost_bounds[~hard, None], initial=0.0)),
        float(np.abs(B.sum(axis=0)).max()),
    )
    reduced_costs = _transposed_products(model.kernel, training.X, training.order, B)[own]
    return Certificate(
        primal_objective=primal,
        dual_objective=MARGIN * float(multipliers.sum()),
        infeasibility=max(outside / _scale(training.cost_bounds, multipliers), float(reduced_costs.max()) - 1.0),
    )


def _certify_binary(formulation: BinaryProblems, model: KernelModel, _: Any, training: TrainingSet) -> Certificate:
    bias = formulation.bias if isinstance(formulation, OneVsRest) else "free"
    squared = isinstance(formulation, OneVsRest | Pairs) and formulation.squared
    problems = [
        _certify_problem(model, training, score, sign, bias, squared=squared)
        for score, sign in enumerate(_signs(formulation, model, training))
        if sign.min() < sign.max()  # a label that all examples have, or none, has no problem
    ]
    return Certificate(
        primal_objective=float(sum(each.primal_objective for each in problems)),
        dual_objective=float(sum(each.dual_objective for each in problems)),
        infeasibility=float(max((each.infeasibility for each in problems), default=0.0)),
    )


def _signs(formulation: BinaryProblems, model: KernelModel, training: TrainingSet) -> Iterator[Floats]:
    """Yield for each problem the sign of every example, 0 where it takes no part."""
    labels, sets = training.labels, training.label_sets
    if sets is not None:
        for label in range(sets.n_labels):
            sign = np.full(len(sets), -1.0)
            sign[sets.members(label)] = 1.0
            yield sign
        return
    if isinstance(formulation, OneVsRest):
        positive = [1] if training.n_classes == 2 else range(training.n_classes)
        for c in positive:
            yield np.where(labels == c, 1.0, -1.0)
        return
    if isinstance(model.layout, CodeLayout):
        yield from model.layout.code[labels].T.astype(np.float64)
        return
    for i, j in model.layout.pairs:  # type: ignore[attr-defined]
        yield np.where(labels == i, 1.0, np.where(labels == j, -1.0, 0.0))


def _certify_problem(
    model: KernelModel, training: TrainingSet, score: int, signs: Floats, bias: str | None, *, squared: bool
) -> Certificate:
    """Certify one binary problem, on the examples that have a sign."""
    examples = np.flatnonzero(signs)
    sign, rows = signs[examples], training.order[examples]
    members, coefficients = model.score_coefficients(score)
    values = model.layout.sign * coefficients[:, None]
    intercept = model.layout.sign * float(model.intercept[score])
    beta = _spread(training, model.support[members], values)[examples, 0]
    expansion = _products(model, training.X, rows, members, values)[:, 0]
    cost_bounds = training.cost_bounds[examples]
    hard = np.isinf(cost_bounds)
    square = float(beta @ expansion)
    columns = slice(score, score + 1)
    scores, primal_square = _primal_point(model, training.X, rows, columns, expansion[:, None], square)
    margins = sign * (scores[:, 0] + intercept)
    hinges = np.maximum(0.0, 1.0 - margins[~hard])
    losses = float(cost_bounds[~hard] @ (hinges**2 if squared else hinges))
    regularized = bias == "regularized"
    primal_square += intercept**2 if regularized else 0.0
    worst = max(
        abs(beta.sum()) if bias == "free" else 0.0,
        float(np.max(-sign * beta)),
        0.0 if squared else float(np.max((sign * beta - cost_bounds)[~hard], initial=0.0)),
    )
    conjugate = float(np.sum(beta**2 / (4.0 * cost_bounds))) if squared else 0.0
    return Certificate(
        primal_objective=_soft_or_hard(primal_square, losses, margins, hard),
        dual_objective=float(sign @ beta) - conjugate - 0.5 * (square + (beta.sum() ** 2 if regularized else 0.0)),
        infeasibility=worst / _scale(cost_bounds, beta),
    )


_CERTIFIERS: list[tuple[Any, Callable[..., Certificate]]] = [
    (BinaryProblems, _certify_binary),
    (Joint, _certify_joint),
    (LinearProgram, _certify_linear_program),
]
