"""Scores that decide the same whatever rows are predicted together.

Scores come from matrix products, whose last digits depend on the shape of the matrices. A row whose decision could
change within the rounding of its scores is scored again, first in double precision if it was not, and then alone, in
the order of operations that LIBSVM has (:mod:`polymargin.kernels.ordered`). There are few such rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from polymargin.models.kernel_model import KernelModel
from polymargin.models.prepared import ErrorBound
from polymargin.support.numeric import Bools, Floats, Ints, Matrix

_AT_ONCE = 1 << 20  # numbers that are looked at together

Uncertain = Callable[[Floats, Floats], Bools]
"""Says of scores and the errors they may have which of them decide, and could decide otherwise."""


@dataclass(frozen=True)
class Precision:
    """A precision that scores were computed in: how far off they may be, and how to get better ones."""

    model: KernelModel
    threads: int
    bound: ErrorBound
    alone: bool  # better ones come from rows on their own

    def errors(self, sizes: Floats) -> Floats:
        """Return how far off each score may be, for rows whose kernel values have these sizes."""
        return self.bound.of(sizes)

    def improve(
        self, X: Matrix, scores: Floats, sizes: Floats, rows: Ints, uncertain: Uncertain, everything: bool = False
    ) -> None:
        """Put better scores into these rows: those that are uncertain, or everything."""
        if not self.alone:
            scores[rows] = self.model.raw_scores(X[rows], self.threads, accuracy=0.0)[0]
            return
        step = max(1, _AT_ONCE // max(1, len(self.model.support)))
        for begin in range(0, len(rows), step):
            some = rows[begin : begin + step]
            all_of_them = np.ones((len(some), scores.shape[1]), dtype=bool)
            needed = all_of_them if everything else self._needed(X[some], scores[some], sizes[some], uncertain)
            which = np.flatnonzero(needed.any(axis=1))
            if len(which) > 0:
                for score, of_which, values in self.model.scores_alone(X[some[which]], needed[which]):
                    scores[some[which[of_which]], score] = values

    def _needed(self, X: Matrix, scores: Floats, sizes: Floats, uncertain: Uncertain) -> Bools:
        """Return which scores have to be computed alone: those uncertain even when their own errors are looked at."""
        needed = uncertain(scores, self.errors(sizes))
        terms = self.model.absolute_terms(X, self.threads)
        if terms is None:
            return needed
        # A row far from all support vectors has small kernel values, and errors as small. Nothing is rounded in zeros.
        errors = self.bound.unit * (sizes[:, None] * terms + self.bound.offsets)
        return needed & uncertain(scores, errors) & (terms > 0).any(axis=1, keepdims=True)


def precisions(model: KernelModel, threads: int) -> list[Precision]:
    """Return the precisions of the scores, the coarser first."""
    bounds = model.error_bounds
    return [Precision(model, threads, bound, alone=bound is bounds[-1]) for bound in bounds]


def settled_scores(model: KernelModel, X: Matrix, threads: int, uncertain: Uncertain, shown: bool = True) -> Floats:
    """Return every score of every row; those of a row whose decision is close do not depend on the other rows.

    Scores that nobody sees (``shown=False``), only the class that they name, may be computed faster.
    """
    scores, sizes = model.raw_scores(X, threads, shown=shown)
    for precision in precisions(model, threads):
        rows = close_rows(precision, scores, sizes, uncertain)
        if len(rows) > 0:
            precision.improve(X, scores, sizes, rows, uncertain)
    return scores


def settled_by(
    model: KernelModel,
    X: Matrix,
    threads: int,
    class_scores: Callable[[Floats], Floats],
    close: Callable[[Floats, Floats, Floats], Bools],
) -> Floats:
    """Return what is made of every score of every row; in a row that is close, of scores that the row has alone.

    Parameters
    ----------
    model, X, threads
        What scores which rows.
    class_scores : callable
        Makes of the scores of rows what decides.
    close : callable
        Says of these, of the scores, and of the errors that scores may have, which rows could decide otherwise.

    Returns
    -------
    array with an entry for each row
        What ``class_scores`` makes.
    """
    values, sizes = model.raw_scores(X, threads)
    made = class_scores(values)
    for precision in precisions(model, threads):
        rows = np.flatnonzero(close(made, values, precision.errors(sizes)))
        if len(rows) > 0:
            precision.improve(X, values, sizes, rows, near_zero, everything=True)
            made[rows] = np.vstack([class_scores(values[[row]]) for row in rows])
    return made


def close_rows(precision: Precision, scores: Floats, sizes: Floats, uncertain: Uncertain) -> Ints:
    """Return the rows whose decision could change within the errors of their scores."""
    step = max(1, _AT_ONCE // max(1, scores.shape[1]))
    found = []
    for begin in range(0, len(scores), step):
        part = slice(begin, begin + step)
        close = uncertain(scores[part], precision.errors(sizes[part])).any(axis=1)
        found.append(np.flatnonzero(close) + begin)
    return found[0] if len(found) == 1 else np.concatenate([np.empty(0, dtype=np.int64), *found])


def near_zero(scores: Floats, errors: Floats) -> Bools:
    """Return which scores could be of either sign."""
    near: Bools = np.abs(scores) <= errors
    return near


def near_largest(scores: Floats, errors: Floats) -> Bools:
    """Return the scores of rows whose largest could be another's: all of them, or none."""
    ordered = np.partition(scores, -2, axis=1)
    close: Bools = ordered[:, -1:] - ordered[:, -2:-1] <= 2 * errors.max(axis=1, keepdims=True)
    return close.repeat(scores.shape[1], axis=1)
