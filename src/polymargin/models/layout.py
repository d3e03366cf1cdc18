"""Which scores a model has, and where the coefficients of each stand.

A layout is a value that knows the number of classes and nothing of the support vectors. Coefficients are a matrix with
a column for each support vector, the vectors of a class together; ``class_counts`` says how many each class has.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from polymargin.support.memory import available_bytes
from polymargin.support.numeric import Floats, Ints

Counts = NDArray[np.int32]
Block = tuple[tuple[int, int], list[int]]
"""A range of support vectors, and the scores that their rows of coefficients, from the first on, belong to."""

_MANY = 1_000_000  # pairs, below which nobody needs to ask the system for memory
_PAIR_BYTES = 100  # of the layout and of the numbers of a pair, its support vectors aside


class ScoreLayout(Protocol):
    """What a model asks of its layout."""

    @property
    def n_classes(self) -> int:
        """The number of classes."""

    @property
    def n_groups(self) -> int:
        """The number of groups that support vectors are sorted into: the classes, or one where they have several."""

    @property
    def n_scores(self) -> int:
        """The number of scores of a row."""

    @property
    def height(self) -> int:
        """Rows of the matrix of coefficients."""

    @property
    def n_intercepts(self) -> int:
        """How many intercepts are kept."""

    @property
    def sign(self) -> float:
        """The sign between the coefficients of the binary problems and those that are kept."""

    def intercepts(self, kept: Floats) -> Floats:
        """Return the intercept of every score."""

    def coefficient_rows(self, score: Ints, example_class: Ints) -> Ints:
        """Return the rows of the coefficients of examples, by their class, in scores."""

    def blocks(self, class_counts: Counts) -> list[Block]:
        """Return all support vectors in ranges with the same scores."""

    def terms(self, score: int, class_counts: Counts) -> tuple[Ints, Ints]:
        """Return the support vectors that may take part in a score, and the row of the coefficient of each."""


@dataclass(frozen=True)
class ClassLayout:
    """A score for each class, or one for two classes, each made of all support vectors."""

    n_classes: int
    n_scores: int

    @property
    def n_groups(self) -> int:
        """The number of classes."""
        return self.n_classes

    @property
    def height(self) -> int:
        """Rows of the matrix of coefficients."""
        return self.n_scores

    @property
    def opposite(self) -> bool:
        """Whether there are two scores whose intercepts are opposite numbers, of which the second is kept."""
        return self.n_scores == self.n_classes == 2

    @property
    def n_intercepts(self) -> int:
        """How many intercepts are kept."""
        return 1 if self.opposite else self.n_scores

    @property
    def sign(self) -> float:
        """The coefficients of the problems are those that are kept."""
        return 1.0

    def kept(self, intercepts: Floats) -> Floats:
        """Return the intercepts that are kept, of all."""
        return intercepts[1:] if self.opposite else intercepts

    def intercepts(self, kept: Floats) -> Floats:
        """Return the intercept of every score."""
        return np.concatenate([-kept, kept]) if self.opposite else kept

    def coefficient_rows(self, score: Ints, example_class: Ints) -> Ints:
        """Return the rows of the coefficients of examples in scores."""
        return score

    def blocks(self, class_counts: Counts) -> list[Block]:
        """Return all support vectors as one range with all scores."""
        return [((0, int(np.sum(class_counts))), list(range(self.n_scores)))]

    def terms(self, score: int, class_counts: Counts) -> tuple[Ints, Ints]:
        """Return all support vectors, and the row of the score for each."""
        n_vectors = int(np.sum(class_counts))
        return np.arange(n_vectors), np.full(n_vectors, score)


@dataclass(frozen=True)
class LabelLayout(ClassLayout):
    """A score for each label, each made of all support vectors, which are one group: they may have several labels."""

    @property
    def n_groups(self) -> int:
        """One."""
        return 1

    @property
    def opposite(self) -> bool:
        """Two labels have nothing to do with each other."""
        return False


@dataclass(frozen=True, eq=False)
class PairLayout:
    """A score for each of some pairs of classes, made of the support vectors of the two.

    The coefficients of a support vector of class c stand in one column, that of the m-th pair that c takes part in at
    row m. For all pairs in their usual order that is scikit-learn's layout: the coefficient against class j at row
    j - 1 for j > c and at row j for j < c.
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
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.of_class)

    @property
    def n_groups(self) -> int:
        """The number of classes."""
        return self.n_classes

    @property
    def n_scores(self) -> int:
        """The number of pairs."""
        return len(self.pairs)

    @property
    def n_intercepts(self) -> int:
        """The number of pairs."""
        return len(self.pairs)

    @property
    def height(self) -> int:
        """The most pairs that one class takes part in."""
        return int(self.rows.max(initial=-1)) + 1

    @property
    def sign(self) -> float:
        """For two classes scikit-learn makes the second one positive, where the problem has the first."""
        return -1.0 if self.n_classes == 2 else 1.0

    def intercepts(self, kept: Floats) -> Floats:
        """Return the intercept of every score."""
        return kept

    def coefficient_rows(self, score: Ints, example_class: Ints) -> Ints:
        """Return the rows of the coefficients of examples, by their class, in pairs that they take part in."""
        first, second = self.rows[score].T
        rows: Ints = np.where(example_class == self.pairs[score, 0], first, second)
        return rows

    def blocks(self, class_counts: Counts) -> list[Block]:
        """Return the support vectors of each class with its pairs."""
        ends = np.concatenate([[0], np.cumsum(class_counts)]).tolist()
        return [((ends[c], ends[c + 1]), pairs.tolist()) for c, pairs in enumerate(self.of_class)]

    def terms(self, score: int, class_counts: Counts) -> tuple[Ints, Ints]:
        """Return the support vectors of the two classes of a pair, and the row of each."""
        ends = np.concatenate([[0], np.cumsum(class_counts)])
        members = np.concatenate([np.arange(ends[c], ends[c + 1]) for c in self.pairs[score]])
        return members, np.repeat(self.rows[score], class_counts[self.pairs[score]])


@dataclass(frozen=True, eq=False)
class CodeLayout:
    """A score for each column of a code, made of the support vectors of the classes that are not 0 there.

    The coefficients of a support vector of class c stand in one column, that of the m-th problem that c takes part in
    at row m.
    """

    code: NDArray[np.int8]  # (n_classes, n_scores): 1, -1, or 0 where a class takes no part

    @cached_property
    def rows(self) -> Ints:
        """For each class and score the row of its coefficients, of no meaning where the class takes no part."""
        return np.cumsum(self.code != 0, axis=1) - 1

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.code)

    @property
    def n_groups(self) -> int:
        """The number of classes."""
        return self.n_classes

    @property
    def n_scores(self) -> int:
        """The number of columns of the code."""
        return int(self.code.shape[1])

    @property
    def n_intercepts(self) -> int:
        """The number of columns of the code."""
        return self.n_scores

    @property
    def height(self) -> int:
        """The most problems that one class takes part in."""
        return int(self.rows[:, -1].max()) + 1

    @property
    def sign(self) -> float:
        """The coefficients of the problems are those that are kept."""
        return 1.0

    def intercepts(self, kept: Floats) -> Floats:
        """Return the intercept of every score."""
        return kept

    def coefficient_rows(self, score: Ints, example_class: Ints) -> Ints:
        """Return the rows of the coefficients of examples, by their class, in problems that they take part in."""
        rows: Ints = self.rows[example_class, score]
        return rows

    def blocks(self, class_counts: Counts) -> list[Block]:
        """Return the support vectors of each class with its problems, or all as one range where each has all."""
        if np.all(self.code):
            return [((0, int(np.sum(class_counts))), list(range(self.n_scores)))]
        ends = np.concatenate([[0], np.cumsum(class_counts)]).tolist()
        return [((ends[c], ends[c + 1]), np.flatnonzero(own).tolist()) for c, own in enumerate(self.code)]

    def terms(self, score: int, class_counts: Counts) -> tuple[Ints, Ints]:
        """Return the support vectors of the classes that take part in a problem, and the row of each."""
        owner = np.repeat(np.arange(self.n_classes), class_counts)
        members = np.flatnonzero(self.code[owner, score])
        return members, self.rows[owner[members], score]


def pair_list(n_classes: int) -> Ints:
    """Return the pairs (i, j), i < j, as rows in the order (0,1), (0,2), ..., (1,2), ..."""
    first, second = np.triu_indices(n_classes, k=1)
    return np.column_stack([first, second]).astype(np.int64)


def pair_index(i: Ints, j: Ints, n_classes: int) -> Ints:
    """Return the positions of the pairs (i, j), i < j, in :func:`pair_list`."""
    return i * (2 * n_classes - i - 1) // 2 + (j - i - 1)


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
