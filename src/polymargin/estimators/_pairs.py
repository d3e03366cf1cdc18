"""What the machines made of pairs of classes have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.decision import pair_list
from polymargin.estimators._binary import BinaryMachine
from polymargin.formulations.solution import Floats, Ints
from polymargin.models.settled import near_zero
from polymargin.support.memory import available_bytes


@dataclass(frozen=True)
class PairLayout:
    """Pairs of classes and where their coefficients stand.

    The coefficients of a support vector of class c stand in one column of ``dual_coef_``, that of the m-th pair that c
    takes part in at row m. For all pairs in their usual order that is scikit-learn's layout: the coefficient against
    class j at row j - 1 for j > c and at row j for j < c.
    """

    pairs: Ints  # (n_pairs, 2), the smaller class first
    rows: Ints  # (n_pairs, 2): the row for vectors of either class
    of_class: list[Ints]  # the pairs that each class takes part in

    @classmethod
    def of(cls, pairs: Ints, n_classes: int) -> PairLayout:
        """Lay out some pairs, in their order."""
        side = pairs.ravel()
        grouped = np.argsort(side, kind="stable")
        starts = np.searchsorted(side[grouped], np.arange(n_classes + 1))
        rows = np.empty_like(side)
        rows[grouped] = np.arange(len(side)) - np.repeat(starts[:-1], np.diff(starts))
        return cls(pairs, rows.reshape(-1, 2), np.split(grouped // 2, starts[1:-1]))

    @property
    def height(self) -> int:
        """Rows of ``dual_coef_``: the most pairs that one class takes part in."""
        return int(self.rows.max(initial=-1)) + 1


_MANY = 1_000_000  # pairs, below which nobody needs to ask the system for memory
_PAIR_BYTES = 100  # of the layout and of the numbers of a machine, its support vectors aside


@lru_cache(maxsize=4)
def all_pairs(n_classes: int) -> PairLayout:
    """Lay out the pairs (0,1), (0,2), ..., (1,2), ...; raise MemoryError with advice if they are too many."""
    n_pairs = n_classes * (n_classes - 1) // 2
    if n_pairs > _MANY and n_pairs * _PAIR_BYTES > available_bytes():
        raise MemoryError(
            f"{n_classes:,} classes have {n_pairs:,} pairs, and a machine for each does not fit the memory: use "
            "OneVsRestSVC, or CrammerSingerSVC with kernel='linear'"
        )
    return PairLayout.of(pair_list(n_classes), n_classes)


def pair_problems(pairs: Ints, bounds: Ints) -> Ints:
    """Return the binary problems of some pairs: rows (problem, begin, end, sign), the first class being positive."""
    classes = pairs.ravel()
    table = np.empty((len(classes), 4), dtype=np.int64)
    table[:, 0] = np.arange(len(classes)) // 2
    table[:, 1] = bounds[classes]
    table[:, 2] = bounds[classes + 1]
    table[::2, 3], table[1::2, 3] = 1, -1
    return table


class PairMachine(BinaryMachine):
    """A classifier made of binary machines for pairs of classes; a subclass says which (:meth:`_layout`)."""

    @abstractmethod
    def _layout(self, n_classes: int) -> PairLayout:
        """Return the pairs, in the order of ``intercept_``."""

    # The family of problems.

    def _problems(self, bounds: Ints) -> Ints:
        return pair_problems(self._layout(len(bounds) - 1).pairs, bounds)

    def _coefficient_rows(self, problem: Ints, example_class: Ints, n_classes: int) -> Ints:
        layout = self._layout(n_classes)
        first, second = layout.rows[problem].T
        return np.where(example_class == layout.pairs[problem, 0], first, second)

    def _shape(self, n_classes: int) -> tuple[int, int]:
        layout = self._layout(n_classes)
        return layout.height, len(layout.pairs)

    def _sign(self, n_classes: int) -> float:
        return -1.0 if n_classes == 2 else 1.0  # for two classes scikit-learn makes the second one positive

    def _members(self, owner: Ints, n_classes: int) -> Iterator[Ints]:
        of_class = [np.flatnonzero(owner == c) for c in range(n_classes)]
        for i, j in self._layout(n_classes).pairs:
            yield np.concatenate([of_class[i], of_class[j]])

    # Decision values of the pairs.

    def _class_ranges(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.n_support_)])

    def _blocks(self) -> list[tuple[tuple[int, int], list[int]]]:
        bounds = self._class_ranges().tolist()
        of_class = self._layout(len(self.classes_)).of_class
        return [((bounds[c], bounds[c + 1]), pairs.tolist()) for c, pairs in enumerate(of_class)]

    def _pair(self, p: int) -> tuple[Ints, Floats]:
        """Return the support vectors of pair p (their numbers) and their coefficients."""
        layout = self._layout(len(self.classes_))
        bounds = self._class_ranges()
        members = np.concatenate([np.arange(bounds[c], bounds[c + 1]) for c in layout.pairs[p]])
        rows = np.repeat(layout.rows[p], self.n_support_[layout.pairs[p]])
        coefficients = self.dual_coef_[rows, members]
        used = coefficients != 0
        return members[used], coefficients[used]

    def _terms(self, column: int) -> tuple[Ints, Floats]:
        return self._pair(column)

    def _wanted(self, scores: Floats, errors: Floats) -> NDArray[np.bool_]:
        return near_zero(scores, errors)

    def _weights(self) -> Floats:
        weights = np.zeros((len(self.intercept_), self.n_features_in_))
        for p in range(len(weights)):
            members, coefficients = self._pair(p)
            weights[p] = coefficients @ self.support_vectors_[members]
        return weights

    def pairwise_decision_function(self, X: Any) -> Floats:
        """Return the decision value of every pair machine.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples; for a precomputed kernel their kernel values with the training examples, of which only the
            columns of support vectors are read.

        Returns
        -------
        ndarray of shape (n_samples, n_pairs)
            Pairs in the order of ``intercept_``: (0,1), (0,2), ..., (1,2), ..., or that of ``pairs_`` where there is
            one; positive means the first class of the pair.
        """
        X = self._checked_queries(X)
        return self._sign(len(self.classes_)) * self._all_scores(X)
