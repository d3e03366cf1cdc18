"""Decisions by the columns of a decision matrix: which pair to train next, which class is nearest (Wang & Huang 4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polymargin.decision.votes import pair_index, pair_list

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
    return -np.sqrt(np.round(np.maximum(squared, 0.0), _DIGITS))


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
