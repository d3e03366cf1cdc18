"""What a model prepares once for all its predictions.

Support vectors are handed to the core when the first prediction needs them; there they stay gathered, converted and
centred, with their squared lengths and the coefficients in the precision that is used. That takes a copy of dense
vectors at most, and one in single precision beside it if scores are computed in that; sparse vectors are read where
they are. The arrays must not change afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from polymargin import _core
from polymargin.kernels import Kernel
from polymargin.models.layout import Block
from polymargin.support.examples import core_data
from polymargin.support.numeric import Floats, Ints, Matrix
from polymargin.support.threads import one_blas_thread

_CERTAIN = 16.0  # roundings of a sum are taken as a random walk, and it never goes so many of its steps' lengths


@dataclass(frozen=True)
class ErrorBound:
    """How far off the scores of one precision may be.

    The bound of score m is ``min(unit * (size * masses[m] + offsets[m]), largest)`` for a row whose kernel values have
    rounding of that size.
    """

    unit: float  # the error of a score whose coefficients have the mass 1, of kernel values of size 1
    masses: Floats
    offsets: Floats  # absolute intercepts
    largest: float

    def of(self, sizes: Floats) -> Floats:
        """Return the bounds of all scores of rows with these sizes, of shape (rows, scores)."""
        return np.minimum(self.unit * (sizes[:, None] * self.masses + self.offsets), self.largest)


@dataclass(frozen=True, eq=False)
class PreparedScorer:
    """Scores of a model whose kernel values the core computes; made by :func:`prepare`."""

    scorer: _core.Scorer
    n_scores: int

    def scores(self, X: Matrix, threads: int = 1, accuracy: float = 0.0, shown: bool = True) -> tuple[Floats, Floats]:
        """Return every score of every row, and for each row the size of the rounding in its kernel values.

        Rows and support vectors may be dense or sparse, each of either precision. Scores may be off by ``accuracy``,
        where that allows single precision. With ``shown=False`` a row's digits beyond that accuracy may depend on
        whether it is alone, which is faster: for those who only want to know which score is the largest, or its sign.
        """
        n = X.shape[0]
        scores, sizes = np.empty((n, self.n_scores)), np.empty(n)
        with self._alone(n, shown):
            self.scorer.scores(core_data(X), None, scores, sizes, accuracy, threads, shown)
        return scores, sizes

    def eliminate(
        self, X: Matrix, rule: str, bounds: Sequence[ErrorBound], threads: int = 1, accuracy: float = 0.0
    ) -> tuple[Ints, Ints]:
        """Return the class that is left for each row, and the rows where even the last bound leaves a doubt.

        The scores must be those of all pairs of classes. ``rule`` is "dag" or "adag". The first of ``bounds`` is of
        scores of this accuracy; rows that it leaves in doubt are looked at again in double precision, of which the
        last is.
        """
        data = core_data(X)
        classes, rows = self._eliminated(data, None, X.shape[0], rule, bounds[0], threads, accuracy)
        for bound in bounds[1:]:
            if len(rows) == 0:
                break
            classes[rows], unsure = self._eliminated(data, rows, len(rows), rule, bound, threads, 0.0)
            rows = rows[unsure]
        return classes, rows

    def _eliminated(
        self, data: _core.Data, rows: Ints | None, n: int, rule: str, bound: ErrorBound, threads: int, accuracy: float
    ) -> tuple[Ints, Ints]:
        """Return the classes of some rows, or all, and the places of those in doubt among them."""
        classes, unsure = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.uint8)
        errors = _core.ScoreErrors(bound.unit, bound.masses, bound.largest)
        with self._alone(n):
            self.scorer.eliminate(
                data, rows, _core.Elimination[rule], errors, classes, unsure, accuracy=accuracy, threads=threads
            )
        return classes, np.flatnonzero(unsure)

    def _alone(self, n_rows: int, shown: bool = False) -> Any:
        """Return what keeps BLAS from starting threads, where it is called at all."""
        return nullcontext() if self.scorer.are_few(n_rows) and not shown else one_blas_thread()


def prepare(
    kernel: Kernel, vectors: Matrix, coefficients: Floats, blocks: Sequence[Block], intercepts: Floats
) -> PreparedScorer:
    """Prepare a model for scoring.

    Parameters
    ----------
    kernel : Kernel
        One that the core computes: neither precomputed nor a function in Python.
    vectors : {array, CSR matrix} of shape (n_vectors, n_features)
        Support vectors.
    coefficients : array of shape (height, n_vectors)
        Coefficients; the first rows of a column, as many as its block has scores.
    blocks : sequence of ((begin, end), scores)
        Ranges of vectors, and the scores that their rows of coefficients go to.
    intercepts : array of shape (n_scores,)
        What the scores begin with.
    """
    ranges = np.array([block for block, _ in blocks], dtype=np.int64).reshape(-1, 2)
    starts = np.concatenate([[0], np.cumsum([len(columns) for _, columns in blocks])]).astype(np.int64)
    columns = np.array([column for _, columns in blocks for column in columns], dtype=np.int64)
    scorer = _core.Scorer(
        core_data(vectors),
        kernel.spec,
        np.ascontiguousarray(coefficients, dtype=np.float64),
        ranges,
        starts,
        columns,
        np.ascontiguousarray(intercepts, dtype=np.float64),
    )
    return PreparedScorer(scorer, len(intercepts))


def score_masses(coefficients: Floats, blocks: Sequence[Block], n_scores: int, power: int) -> Floats:
    """Return the norm of the coefficients of each score: their absolute sum, or with 2 their length."""
    masses = np.zeros(n_scores)
    for (begin, end), columns in blocks:
        masses[list(columns)] += (np.abs(coefficients[: len(columns), begin:end]) ** power).sum(axis=1)
    return masses if power == 1 else np.sqrt(masses)


def error_bounds(
    kernel: Kernel,
    shape: tuple[int, int],
    masses: Callable[[int], Floats],
    intercepts: Floats,
    tolerance: float | None,
) -> tuple[ErrorBound, ...]:
    """Return how far off the scores of each precision may be, the coarser first.

    ``shape`` is that of the support vectors and ``masses(power)`` the norms of the coefficients of each score. Single
    precision comes first where the core may take it: with a ``tolerance``, half of which it keeps its errors to.
    """
    bounds = []
    offsets = np.abs(intercepts)
    if tolerance is not None:
        unit = float(np.finfo(np.float32).eps) / 2
        if kernel.kind == "linear":  # sums of many products with the same sign, which cancel in the end
            bounds.append(ErrorBound(4 * unit, masses(1), offsets, math.inf))
        else:  # the core takes single precision where it expects an error of half of the tolerance
            bounds.append(ErrorBound(_CERTAIN * unit, masses(2), offsets, tolerance))
    terms = math.sqrt(max(1, shape[0])) + math.sqrt(shape[1])
    unit = _CERTAIN * float(np.finfo(np.float64).eps) / 2 * terms
    bounds.append(ErrorBound(unit, masses(1), offsets, math.inf))
    return tuple(bounds)
