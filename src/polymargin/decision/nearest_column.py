"""Decisions by the columns of a decision matrix: which pair to train next, which class is nearest (Wang & Huang 4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polymargin.decision.votes import pair_index, pair_list

# Sums of the same numbers in another order must tie, and shares of a few dozen examples never come this close.
_DIGITS = 12


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


def column_scores(answers: NDArray[np.bool_], matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return minus the distance (4.5) between the answers to each row and each column of the decision matrix.

    The class with the largest score is the decision; distances that differ by rounding alone are equal here, so that a
    tie goes to the smaller index.

    Parameters
    ----------
    answers : array of shape (n, n_pairs)
        Whether each pair machine decides for its first class.
    matrix : array of shape (n_pairs, k)
        The decision matrix: the share of each class that each pair machine gives to its first class.

    Returns
    -------
    array of shape (n, k)
        Scores, none of them positive.
    """
    squared = answers @ (1 - 2 * matrix) + (matrix**2).sum(axis=0)  # answers are their own squares
    return -np.sqrt(np.round(np.maximum(squared, 0.0), _DIGITS))
