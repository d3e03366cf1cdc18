"""Decisions by the columns of a decision matrix: which pair to train next, which class is nearest (Wang & Huang 4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from polymargin.decision.voting import pair_values
from polymargin.models import KernelModel, pair_index, pair_list
from polymargin.models.declared import Value, attributes, declarations, declare, defects
from polymargin.models.settled import near_zero, precisions
from polymargin.support.numeric import Floats, Ints, Matrix

# Sums of the same numbers in another order must tie, and shares of a few dozen examples never come this close.
_DIGITS = 12
_TIED = 1e-9  # scores that differ by less have to be looked at again


class ColumnDistances:
    """The distances (4.3) between the columns of a decision matrix that grows by a row for each pair trained.

    Parameters
    ----------
    n_classes : int
        The number k of classes: columns of the matrix.
    """

    def __init__(self, n_classes: int) -> None:
        self._pairs = pair_list(n_classes)
        self._squared = np.zeros(len(self._pairs))
        self._open = np.ones(len(self._pairs), dtype=bool)
        self._n_classes = n_classes

    def add(self, pair: NDArray[np.int64], row: NDArray[np.float64]) -> None:
        """Take in the row of a pair, which is not to be chosen again."""
        first, second = self._pairs.T
        self._squared += (row[first] - row[second]) ** 2
        self._open[pair_index(pair[0], pair[1], self._n_classes)] = False

    def nearest(self) -> tuple[NDArray[np.int64], float]:
        """Return the pair not yet trained whose columns are nearest, and their distance; inf if all are trained.

        Of several the first in the order (0,1), (0,2), ..., (1,2), ... is taken.
        """
        squared = np.where(self._open, np.round(self._squared, _DIGITS), np.inf)
        choice = int(squared.argmin())
        return self._pairs[choice], float(np.sqrt(squared[choice]))


def pair_answers(values: NDArray[np.float64], kind: str) -> NDArray[np.float64]:
    """Return the answers of pair machines, from 0 (their second class) to 1 (their first).

    Parameters
    ----------
    values : array
        Decision values f.
    kind : {"signs", "margins"}
        "signs": 1 if f >= 0, else 0, Wang & Huang (4.4). "margins": (f + 1) / 2 between the margins f = -1 and f = 1,
        and 0 or 1 beyond them.

    Returns
    -------
    array of the same shape
        Answers.
    """
    return (values >= 0).astype(np.float64) if kind == "signs" else np.clip((values + 1) / 2, 0.0, 1.0)


def column_scores(answers: NDArray[np.float64], matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return minus the distance (4.5) between the answers to each row and each column of the decision matrix.

    The class with the largest score is the decision; distances that differ by rounding alone are equal here, so that a
    tie goes to the smaller index.

    Parameters
    ----------
    answers : array of shape (n, n_pairs)
        What each pair machine says, see :func:`pair_answers`.
    matrix : array of shape (n_pairs, k)
        The decision matrix: the mean answer of each pair machine to each class.

    Returns
    -------
    array of shape (n, k)
        Scores, none of them positive.
    """
    squared = answers @ (-2 * matrix) + (matrix**2).sum(axis=0) + (answers**2).sum(axis=1, keepdims=True)
    close = tied_rows(-squared)
    if len(close) > 0:  # a product of matrices has last digits that depend on the other rows
        squared[close] = _summed_squares(answers[close], matrix)
    scores: NDArray[np.float64] = -np.sqrt(np.round(np.maximum(squared, 0.0), _DIGITS))
    return scores


def tied_rows(scores: NDArray[np.float64], moved: NDArray[np.float64] | float = 0.0) -> NDArray[np.int64]:
    """Return the rows whose two largest scores rounding, or errors of the answers, may bring into another order."""
    second, first = np.partition(scores, -2, axis=1)[:, -2:].T
    return np.flatnonzero(first - second <= _TIED + 2 * moved)


def _summed_squares(answers: NDArray[np.float64], matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the squared distances, one pair after the other."""
    squared = np.zeros((len(answers), matrix.shape[1]))
    for own, row in zip(answers.T, matrix, strict=True):
        squared += (own[:, None] - row) ** 2
    return squared


@dataclass(frozen=True, eq=False, kw_only=True)
class DecisionMatrix(Value):
    """The pairs that were trained and their mean answers to each class, Wang & Huang (4.1)."""

    pairs: Ints = declare("pairs_", "count", ("scores", 2), below="classes")
    matrix: Floats = declare("decision_matrix_", "real", ("scores", "classes"))

    def defects(self, model: KernelModel) -> Iterator[tuple[str, str]]:
        """Yield the attributes that do not belong together, or to the model."""
        n_classes = model.layout.n_classes
        defect = pairs_defect(self.pairs, n_classes)
        if defect is not None:
            yield "pairs_", defect
            return  # what else there must be depends on them
        sizes = {"scores": model.layout.n_scores, "classes": n_classes}
        yield from defects(declarations(type(self)), attributes(self), lambda: sizes)
        if not np.array_equal(self.pairs, getattr(model.layout, "pairs", ())):
            yield "pairs_", "are not those of the coefficients"
        if not np.all((self.matrix >= 0) & (self.matrix <= 1)):
            yield "decision_matrix_", "must hold shares, from 0 to 1"


def pairs_defect(pairs: Ints, n_classes: int) -> str | None:
    """Return what is wrong with an array that should hold pairs of classes, None if nothing is."""
    pairs = np.asarray(pairs)
    sound = pairs.ndim == 2 and pairs.shape[1] == 2 and pairs.dtype.kind == "i" and len(pairs) > 0
    if sound and np.all((pairs[:, 0] >= 0) & (pairs[:, 0] < pairs[:, 1]) & (pairs[:, 1] < n_classes)):
        return None
    return "must hold pairs of classes, the smaller one first"


@dataclass(frozen=True, eq=False)
class NearestColumn:
    """The class whose column of the decision matrix is nearest to the answers of the pairs, Wang & Huang (4.5)."""

    matrix: Floats
    answers: Literal["signs", "margins"]

    def class_scores(self, values: Floats) -> Floats:
        """Return minus the distance to each column; of two classes the value of their pair."""
        if self.matrix.shape[1] == 2:
            return values
        return column_scores(pair_answers(values, self.answers), self.matrix)

    def public_scores(self, scores: Floats) -> Floats:
        """Return the scores that are shown: the values of all pairs."""
        return scores

    def decide(self, values: Floats) -> Ints:
        """Return the number of the class that the values of all pairs name."""
        return self._chosen(self.class_scores(values))

    def predict(self, model: KernelModel, X: Matrix, threads: int) -> Ints:
        """Return the number of the class of each row."""
        return self._chosen(self._scores(model, X, threads))

    def decision_function(self, model: KernelModel, X: Matrix, threads: int) -> Floats:
        """Return the score of each class, or the value of the pair of two classes."""
        scores = self._scores(model, X, threads)
        return scores[:, 0] if self.matrix.shape[1] == 2 else scores

    def _chosen(self, scores: Floats) -> Ints:
        two = self.matrix.shape[1] == 2
        return (scores[:, 0] > 0).astype(np.intp) if two else scores.argmax(axis=1)

    def _scores(self, model: KernelModel, X: Matrix, threads: int) -> Floats:
        if self.matrix.shape[1] == 2 or self.answers == "signs":
            return self.class_scores(pair_values(model, X, threads))
        values, sizes = model.raw_scores(X, threads)
        scores = self.class_scores(values)
        for precision in precisions(model, threads):  # where two columns are equally near, the row alone decides
            moved = np.sqrt(values.shape[1]) * precision.errors(sizes).max(axis=1)  # an answer moves by half of it
            tied = tied_rows(scores, moved)
            if len(tied) > 0:
                precision.improve(X, values, sizes, tied, near_zero, everything=True)
                scores[tied] = self.class_scores(values[tied])
        return scores
