"""Models: what is kept of a fit. They score, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms

from polymargin.kernels import Kernel
from polymargin.kernels.ordered import kernel_rows, ordered_products, ordered_sums
from polymargin.models.declared import Value, attributes, declarations, declare, defects
from polymargin.models.layout import Block, ClassLayout, Counts, PairLayout, ScoreLayout
from polymargin.models.prepared import ErrorBound, PreparedScorer, error_bounds, prepare, score_masses
from polymargin.support.blocks import row_blocks
from polymargin.support.examples import dense
from polymargin.support.numeric import Bools, Floats, Ints, Matrix

SMALL = 1024  # support vectors up to which the core scores in double precision
_CACHED_VALUES = 1 << 18  # kernel values that are read at once


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelModel(Value):
    r"""Scores that are kernel expansions on support vectors.

    Score m of a row x is :math:`s_m(x) = \sum_v c_{mv} k(x, x_v) + b_m`, the sum being over the support vectors that
    the layout gives to it, and their coefficients at the rows that it says.

    Parameters
    ----------
    kernel : Kernel
        k, its numbers resolved.
    support : array of shape (n_vectors,)
        Rows of the training examples that the support vectors are, those of a class together; the columns of a
        precomputed kernel.
    vectors : {array, CSR matrix} of shape (n_vectors, n_features)
        The support vectors; empty for a precomputed kernel.
    class_counts : array of shape (layout.n_groups,)
        How many support vectors each class has; where examples have several labels, how many there are.
    coefficients : array of shape (layout.height, n_vectors)
        Their coefficients.
    intercept : array of shape (layout.n_intercepts,)
        Intercepts.
    layout : ScoreLayout
        Which scores there are.
    n_features : int
        Features of a row; for a precomputed kernel the number of training examples.
    tolerance : float
        What the model was solved to: scores need not be more exact than half of it, but where they decide.
    class_order : array of shape (n_classes,), optional
        The classes in the order in which LIBSVM had them: sums begin with the class that comes first.
    """

    kernel: Kernel = declare("_kernel", "kernel")
    support: Ints = declare("support_", "count", ("vectors",))
    vectors: Matrix = declare("support_vectors_", "data", ("vectors held", "features held"), sparse=True)
    class_counts: Counts = declare("n_support_", "count", ("groups",))
    coefficients: Any = declare("dual_coef_", "real", ("rows", "vectors"))
    intercept: Floats = declare("intercept_", "real", ("intercepts",))
    class_order: Ints | None = declare("_tie_order", "count", ("classes",), below="classes", optional=True)
    layout: ScoreLayout
    n_features: int
    tolerance: float

    # What must hold.

    def _dimensions(self) -> dict[str, int]:
        held = not self.kernel.precomputed  # else the support vectors are columns of the kernel matrix
        n_vectors = np.size(self.support)
        return {
            "classes": self.layout.n_classes,
            "groups": self.layout.n_groups,
            "rows": self.layout.height,
            "scores": self.layout.n_scores,
            "intercepts": self.layout.n_intercepts,
            "vectors": n_vectors,
            "features": self.n_features,
            "vectors held": held * n_vectors,
            "features held": held * self.n_features,
        }

    def defects(self) -> Iterator[tuple[str, str]]:
        """Yield the attributes that do not belong together, each with what is wrong with it."""
        yield from defects(declarations(type(self)), attributes(self), self._dimensions)
        if np.sum(self.class_counts) != len(self.support):
            yield "n_support_", "does not count support_"
        if getattr(self.vectors, "dtype", None) == np.dtype(object) and not callable(self.kernel.kind):
            yield "support_vectors_", "holds objects, which the kernel does not understand"
        if self.kernel.precomputed and int(np.max(self.support, initial=0)) >= self.n_features:
            yield "support_", "names columns the kernel does not have"
        if self.class_order is not None and len(np.unique(self.class_order)) < len(self.class_order):
            yield "_tie_order", "must name every class once"

    @cached_property
    def defect(self) -> tuple[str, str] | None:
        """The first attribute that is not sound, and what is wrong with it; None if all are. Looked for once."""
        return next(self.defects(), None)

    # What scores are made of.

    @cached_property
    def intercepts(self) -> Floats:
        """The intercept of every score."""
        return np.asarray(self.layout.intercepts(self.intercept), dtype=np.float64)

    @cached_property
    def blocks(self) -> list[Block]:
        """Ranges of support vectors with the scores that their rows of coefficients go to."""
        return self.layout.blocks(self.class_counts)

    @property
    def may_be_single(self) -> bool:
        """Whether the core may score in single precision."""
        return self.kernel.in_core and len(self.support) > SMALL

    def score_coefficients(self, score: int) -> tuple[Ints, Floats]:
        """Return the support vectors that may take part in a score, and their coefficients, zeros among them."""
        members, rows = self.layout.terms(score, self.class_counts)
        if sp.issparse(self.coefficients):
            return members, dense(self.coefficients[[score]]).ravel()[members]
        return members, self.coefficients[rows, members]

    def terms(self, score: int) -> tuple[Ints, Floats]:
        """Return the support vectors that a score is made of, in the order of its sum, and their coefficients."""
        members, coefficients = self.score_coefficients(score)
        if not isinstance(self.layout, PairLayout):
            return members, coefficients
        used = coefficients != 0
        members, coefficients = members[used], coefficients[used]
        first, second = self.layout.pairs[score]
        if not self.comes_before(int(second), int(first)):
            return members, coefficients
        begin = np.searchsorted(members, int(np.sum(self.class_counts[:second])))
        return np.roll(members, -begin), np.roll(coefficients, -begin)

    def comes_before(self, one: int, other: int) -> bool:
        """Whether a class has another one behind it in the order in which classes win ties."""
        if self.class_order is None:
            return one < other
        order = self.class_order.tolist()
        return bool(order.index(one) < order.index(other))

    def score_weights(self) -> Floats:
        """Return the weights of the features in each score of a linear kernel, of shape (n_scores, n_features)."""
        if isinstance(self.layout, ClassLayout):
            return np.asarray(self.coefficients @ self.vectors)
        weights = np.zeros((self.layout.n_scores, self.n_features))
        for p in range(len(weights)):
            members, coefficients = self.terms(p)
            weights[p] = coefficients @ self.vectors[members]
        return weights

    # Scores.

    @cached_property
    def scorer(self) -> PreparedScorer:
        """The model as the core keeps it, ready for rows: made when the first are scored."""
        return prepare(self.kernel, self.vectors, self.coefficients, self.blocks, self.intercepts)

    @cached_property
    def error_bounds(self) -> tuple[ErrorBound, ...]:
        """How far off scores may be, the coarser precision first."""
        shape = len(self.support), self.n_features
        tolerance = self.tolerance if self.may_be_single else None
        return error_bounds(self.kernel, shape, self.masses, self.intercepts, tolerance)

    def raw_scores(
        self, X: Matrix, threads: int, accuracy: float | None = None, shown: bool = True
    ) -> tuple[Floats, Floats]:
        """Return every score of every row, and for each row the size of the rounding in its kernel values.

        ``accuracy`` is the rounding that is allowed in a score, half of the tolerance if it is None. Scores that nobody
        sees (``shown=False``), only the class that they name, may be computed faster.
        """
        if X.shape[0] == 0 or len(self.support) == 0:
            return np.tile(self.intercepts, (X.shape[0], 1)), np.zeros(X.shape[0])
        if self.kernel.in_core:
            return self.scorer.scores(X, threads, self.tolerance / 2 if accuracy is None else accuracy, shown)
        out = np.tile(self.intercepts, (X.shape[0], 1))
        return out, self._add_given(X, out, threads)

    def _add_given(self, X: Matrix, out: Floats, threads: int) -> Floats:
        """Add to ``out`` the expansions of rows whose kernel values Python has; return the sizes of these."""
        kernel, sizes = self.kernel, np.zeros(X.shape[0])

        def add(rows: slice) -> None:
            values = kernel.values(X[rows], self.vectors, self.support, rows.start)
            assert values is not None
            sizes[rows] = np.maximum(values.max(axis=1), -values.min(axis=1))
            scores = out[rows]
            for (begin, end), columns in self.blocks:
                scores[:, columns] += values[:, begin:end] @ self.coefficients[: len(columns), begin:end].T

        # A function is called once. Values that are there are copied while they fit into the cache.
        step = X.shape[0] if callable(kernel.kind) else max(1, _CACHED_VALUES // len(self.support))
        with row_blocks(threads) as blocks:
            blocks.each(add, X.shape[0], step)
        return sizes

    def masses(self, power: int) -> Floats:
        """Return the norm of the coefficients of each score: their absolute sum, or with 2 their length."""
        return score_masses(self.coefficients, self.blocks, self.layout.n_scores, power)

    def absolute_terms(self, X: Matrix, threads: int) -> Floats | None:
        """Return the sums of the absolute terms of each score, where kernel values are positive and may be tiny."""
        if self.kernel.entry is None or not self.kernel.entry.positive:
            return None
        nothing = np.zeros(self.layout.n_scores)
        absolute = prepare(self.kernel, self.vectors, np.abs(self.coefficients), self.blocks, nothing)
        return absolute.scores(X, threads)[0]

    def scores_alone(self, X: Matrix, wanted: Bools) -> Iterator[tuple[int, Ints, Floats]]:
        """Yield for each score the rows in which it is wanted, and what these have on their own."""
        values = kernel_rows(self.kernel, X, self.vectors, self.support)
        for score in np.flatnonzero(wanted.any(axis=0)):
            which = np.flatnonzero(wanted[:, score])
            members, coefficients = self.terms(int(score))
            sums = ordered_sums(values[np.ix_(which, members)], coefficients)
            yield int(score), which, sums + self.intercepts[score]


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearModel(KernelModel):
    """A model of the linear kernel that has the weights of its scores, and scores by them.

    They are those of the coefficients, but after Newton steps only as near to them as the duality gap says.

    Parameters
    ----------
    weights : array of shape (n_features, n_scores)
        Weights of the features in each score; the coefficients may be sparse then.
    """

    coefficients: Any = declare("dual_coef_", "real", ("rows", "vectors"), sparse=True)
    weights: Floats = declare("_linear_weights", "real", ("features", "scores"))

    @property
    def may_be_single(self) -> bool:
        """Weights are in double precision."""
        return False

    def score_weights(self) -> Floats:
        """Return the weights of the features in each score, of shape (n_scores, n_features)."""
        return self.weights.T

    def raw_scores(
        self, X: Matrix, threads: int, accuracy: float | None = None, shown: bool = True
    ) -> tuple[Floats, Floats]:
        """Return every score of every row, and for each row the size of the rounding in its products."""
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.asarray(X @ self.weights, dtype=np.float64) + self.intercepts
        if not np.all(np.isfinite(scores)):
            row = int(np.argmin(np.isfinite(scores).all(axis=1)))
            column = int(np.abs(dense(X[[row]])).argmax())
            raise ValueError(
                f"the value in row {row}, column {column} is too large: its score overflows. Scale the data, for "
                "example with StandardScaler"
            )
        return scores, row_norms(X).astype(np.float64)

    def masses(self, power: int) -> Floats:
        """Return the length of the weights of each score."""
        lengths: Floats = row_norms(self.weights.T)
        return lengths

    def scores_alone(self, X: Matrix, wanted: Bools) -> Iterator[tuple[int, Ints, Floats]]:
        """Yield for each score the rows in which it is wanted, and what these have on their own."""
        scores = ordered_products(X, self.weights) + self.intercepts
        for score in range(scores.shape[1]):
            which = np.flatnonzero(wanted[:, score])
            yield score, which, scores[which, score]


Scored = Callable[[Floats, Floats], Bools]
