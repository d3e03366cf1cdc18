"""Decisions that do not depend on rounding, and so not on the rows that are predicted together.

Scores come from matrix products, whose last digits depend on the shape of the matrices. A row whose decision could
change within the rounding of its scores is scored again, first in double precision if it was not, and then alone, in
the order of operations that LIBSVM has (:mod:`polymargin._alone`). There are few such rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.machines._data import Matrix
from polymargin.machines._solution import Floats, Ints

SMALL = 1024  # support vectors up to which the core scores in double precision
_CERTAIN = 16.0  # roundings of a sum are taken as a random walk, and it never goes so many of its steps' lengths
_AT_ONCE = 1 << 20  # numbers that are looked at together


@dataclass(frozen=True)
class Level:
    """A precision that scores were computed in: how far off they may be, and how to get better ones."""

    machine: Any
    masses: Floats  # of the coefficients of each score, times the unit of rounding
    offsets: Floats
    largest: float  # no error is larger
    alone: bool  # better ones come from rows on their own

    def errors(self, sizes: Floats) -> Floats:
        """Return how far off each score may be, for rows whose kernel values have these sizes."""
        return np.minimum(np.multiply.outer(sizes, self.masses) + self.offsets, self.largest)

    def errors_of(self, column: int, sizes: Floats) -> Floats:
        """Return how far off one of the scores may be."""
        return np.minimum(sizes * self.masses[column] + self.offsets[column], self.largest)

    def rescore(self, X: Matrix, scores: Floats, sizes: Floats, rows: Ints, everything: bool = False) -> None:
        """Put better scores into these rows: those that the decision needs, or all."""
        if not self.alone:
            scores[rows] = self.machine._scores_and_sizes(X[rows], accuracy=0.0)[0]
            return
        step = max(1, _AT_ONCE // max(1, len(self.machine.support_)))
        for begin in range(0, len(rows), step):
            some = rows[begin : begin + step]
            errors = np.full((len(some), scores.shape[1]), np.inf) if everything else self.errors(sizes[some])
            wanted = self.machine._wanted(scores[some], errors)
            self.machine._score_alone(X[some], scores, some, wanted)


def levels(machine: Any) -> Iterator[Level]:
    """Yield the precisions of the scores, the coarser first."""
    offsets = np.abs(machine._intercepts)
    if machine._may_be_single:
        unit = _CERTAIN * np.finfo(np.float32).eps / 2
        yield Level(machine, unit * machine._masses(2), unit * offsets, machine.tol / 2, alone=False)
    terms = np.sqrt(max(1, len(machine.support_))) + np.sqrt(machine.n_features_in_)
    unit = _CERTAIN * np.finfo(np.float64).eps / 2 * terms
    yield Level(machine, unit * machine._masses(1), unit * offsets, np.inf, alone=True)


def settled_scores(machine: Any, X: Matrix) -> Floats:
    """Return every score of every row; those of a row whose decision is close do not depend on the other rows."""
    scores, sizes = machine._scores_and_sizes(X)
    for level in levels(machine):
        rows = close_rows(machine, level, scores, sizes)
        if len(rows) > 0:
            level.rescore(X, scores, sizes, rows)
    return scores


def close_rows(machine: Any, level: Level, scores: Floats, sizes: Floats) -> Ints:
    """Return the rows whose decision could change within the errors of their scores."""
    step = max(1, _AT_ONCE // max(1, scores.shape[1]))
    found = [np.empty(0, dtype=np.int64)]
    for begin in range(0, len(scores), step):
        part = slice(begin, begin + step)
        wanted = machine._wanted(scores[part], level.errors(sizes[part]))
        found.append(begin + np.flatnonzero(wanted.any(axis=1)))
    return np.concatenate(found)


def near_zero(scores: Floats, errors: Floats) -> NDArray[np.bool_]:
    """Return which scores could be of either sign."""
    near: NDArray[np.bool_] = np.abs(scores) <= errors
    return near


def near_largest(scores: Floats, errors: Floats) -> NDArray[np.bool_]:
    """Return the scores of rows whose largest could be another's: all of them, or none."""
    error = errors.max(axis=1)
    second, first = np.partition(scores, -2, axis=1)[:, -2:].T
    return np.repeat((first - second <= 2 * error)[:, None], scores.shape[1], axis=1)
