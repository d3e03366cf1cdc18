"""Decisions that do not depend on rounding, and so not on the rows that are predicted together.

Scores come from matrix products, whose last digits depend on the shape of the matrices. A row whose decision could
change within the rounding of its scores is scored again, first in double precision if it was not, and then alone, in
the order of operations that LIBSVM has (:mod:`polymargin.kernels.ordered`). There are few such rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.kernels.kernel import Kernel
from polymargin.models.prepared import ErrorBound, Floats, Ints
from polymargin.support.examples import Matrix

SMALL = 1024  # support vectors up to which the core scores in double precision
_CERTAIN = 16.0  # roundings of a sum are taken as a random walk, and it never goes so many of its steps' lengths
_AT_ONCE = 1 << 20  # numbers that are looked at together


@dataclass(frozen=True)
class Level:
    """A precision that scores were computed in: how far off they may be, and how to get better ones."""

    machine: Any
    bound: ErrorBound
    alone: bool  # better ones come from rows on their own

    def errors(self, sizes: Floats) -> Floats:
        """Return how far off each score may be, for rows whose kernel values have these sizes."""
        return self.bound.of(sizes)

    def improve(
        self, X: Matrix, scores: Floats, sizes: Floats, rows: Ints, wanted: Wanted, everything: bool = False
    ) -> None:
        """Put better scores into these rows: those that are wanted, or everything."""
        if not self.alone:
            scores[rows] = self.machine._scores_and_sizes(X[rows], accuracy=0.0)[0]
            return
        step = max(1, _AT_ONCE // max(1, len(self.machine.support_)))
        for begin in range(0, len(rows), step):
            some = rows[begin : begin + step]
            all_of_them = np.ones((len(some), scores.shape[1]), dtype=bool)
            needed = all_of_them if everything else self._needed(X[some], scores[some], sizes[some], wanted)
            which = np.flatnonzero(needed.any(axis=1))
            if len(which) > 0:
                self.machine._score_alone(X[some[which]], scores, some[which], needed[which])

    def _needed(self, X: Matrix, scores: Floats, sizes: Floats, wanted: Wanted) -> NDArray[np.bool_]:
        """Return which scores have to be computed alone: those that are wanted even when the errors are looked at."""
        needed = wanted(scores, self.errors(sizes))
        terms = self.machine._absolute_terms(X)
        if terms is None:
            return needed
        # A row far from all support vectors has small kernel values, and errors as small. Nothing is rounded in zeros.
        errors = self.bound.unit * (sizes[:, None] * terms + self.bound.offsets)
        return needed & wanted(scores, errors) & (terms > 0).any(axis=1, keepdims=True)


Wanted = Callable[[Floats, Floats], NDArray[np.bool_]]
"""Says of scores and the errors they may have which of them decide, and could decide otherwise."""


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


def levels(machine: Any) -> list[Level]:
    """Return the precisions of the scores, the coarser first."""
    bounds = machine._error_bounds()
    return [Level(machine, bound, alone=bound is bounds[-1]) for bound in bounds]


def settled_scores(machine: Any, X: Matrix, wanted: Wanted | None = None, shown: bool = True) -> Floats:
    """Return every score of every row; those of a row whose decision is close do not depend on the other rows.

    Scores that nobody sees (``shown=False``), only the class that they name, may be computed faster.
    """
    wanted = machine._wanted if wanted is None else wanted
    scores, sizes = machine._scores_and_sizes(X, shown=shown)
    for level in levels(machine):
        rows = close_rows(level, scores, sizes, wanted)
        if len(rows) > 0:
            level.improve(X, scores, sizes, rows, wanted)
    return scores


def close_rows(level: Level, scores: Floats, sizes: Floats, wanted: Wanted) -> Ints:
    """Return the rows whose decision could change within the errors of their scores."""
    step = max(1, _AT_ONCE // max(1, scores.shape[1]))
    found = []
    for begin in range(0, len(scores), step):
        part = slice(begin, begin + step)
        close = wanted(scores[part], level.errors(sizes[part])).any(axis=1)
        found.append(np.flatnonzero(close) + begin)
    return found[0] if len(found) == 1 else np.concatenate([np.empty(0, dtype=np.int64), *found])


def near_zero(scores: Floats, errors: Floats) -> NDArray[np.bool_]:
    """Return which scores could be of either sign."""
    near: NDArray[np.bool_] = np.abs(scores) <= errors
    return near


def near_largest(scores: Floats, errors: Floats) -> NDArray[np.bool_]:
    """Return the scores of rows whose largest could be another's: all of them, or none."""
    ordered = np.partition(scores, -2, axis=1)
    close: NDArray[np.bool_] = ordered[:, -1:] - ordered[:, -2:-1] <= 2 * errors.max(axis=1, keepdims=True)
    return close.repeat(scores.shape[1], axis=1)
