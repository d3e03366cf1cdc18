"""Kernel values between training examples for solvers in Python: in blocks, kept within a budget."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from polymargin import _core
from polymargin.formulations.solution import Floats, Ints
from polymargin.kernels.kernel import Kernel
from polymargin.support.examples import Matrix, core_data

_TILE = 128  # vectors whose values are asked for at once: the unit matrix that picks them out costs little


class Gram(ABC):
    """The matrix K of kernel values ``K[i, m] = k(x_i, x_m)`` between the examples that take part."""

    evaluations = 0  # kernel values computed so far

    @abstractmethod
    def block(self, rows: Ints, columns: Ints) -> Floats:
        """Return ``K[rows][:, columns]``."""

    @abstractmethod
    def product(self, columns: Ints, coefficients: Floats) -> Floats:
        """Return ``K[:, columns] @ coefficients``."""

    @abstractmethod
    def transposed_product(self, rows: Ints, coefficients: Floats) -> Floats:
        """Return ``K[rows].T @ coefficients``."""


def gram_of(kernel: Kernel, X: Matrix, order: Ints, budget_bytes: int, threads: int) -> Gram:
    """Return the kernel values of the rows ``order`` of ``X``."""
    values = kernel.training_values(X)
    return ComputedGram(kernel, X, order, budget_bytes, threads) if values is None else GivenGram(values, order)


class GivenGram(Gram):
    """A matrix that Python has: precomputed, or returned by a function. It need not be symmetric."""

    def __init__(self, values: NDArray[np.floating], order: Ints) -> None:
        self._values = values
        self._order = order
        self.evaluations = values.size

    def block(self, rows: Ints, columns: Ints) -> Floats:
        """Return ``K[rows][:, columns]``."""
        return np.asarray(self._values[np.ix_(self._order[rows], self._order[columns])], dtype=np.float64)

    def product(self, columns: Ints, coefficients: Floats) -> Floats:
        """Return ``K[:, columns] @ coefficients``."""
        return self.block(np.arange(len(self._order)), columns) @ coefficients

    def transposed_product(self, rows: Ints, coefficients: Floats) -> Floats:
        """Return ``K[rows].T @ coefficients``."""
        return self.block(rows, np.arange(len(self._order))).T @ coefficients


class ComputedGram(Gram):
    """Values of the core's kernels, which are symmetric, in double precision.

    A column is computed when it is first asked for and kept as long as there is room; the others are computed anew
    each time.
    """

    def __init__(self, kernel: Kernel, X: Matrix, order: Ints, budget_bytes: int, threads: int) -> None:
        self._kernel = kernel.spec
        self._X = X
        self._data = core_data(X)
        self._order = order
        self._threads = threads
        room = min(len(order), budget_bytes // (8 * len(order)))
        self._kept = np.empty((room, len(order)))  # a row for each kept column; memory is taken when it is written
        self._place = np.full(len(order), -1)  # of an example's column
        self._used = 0

    def block(self, rows: Ints, columns: Ints) -> Floats:
        """Return ``K[rows][:, columns]``."""
        self._keep(columns)
        out = np.empty((len(rows), len(columns)))
        kept = self._place[columns] >= 0
        out[:, kept] = self._kept[np.ix_(self._place[columns[kept]], rows)].T
        for begin in range(0, np.count_nonzero(~kept), _TILE):
            part = np.flatnonzero(~kept)[begin : begin + _TILE]
            out[:, part] = self._tile(rows, columns[part])
        return out

    def product(self, columns: Ints, coefficients: Floats) -> Floats:
        """Return ``K[:, columns] @ coefficients``."""
        self._keep(columns)
        kept = self._place[columns] >= 0
        out = self._kept[self._place[columns[kept]]].T @ coefficients[kept]
        if np.all(kept):
            return out
        out = np.ascontiguousarray(out)
        self._add(np.arange(len(self._order)), columns[~kept], coefficients[~kept].T, out)
        return out

    def transposed_product(self, rows: Ints, coefficients: Floats) -> Floats:
        """Return ``K[rows].T @ coefficients``, K being symmetric."""
        return self.product(rows, coefficients)

    def _keep(self, columns: Ints) -> None:
        """Compute and keep those columns that are new, as far as there is room."""
        new = columns[self._place[columns] < 0][: len(self._kept) - self._used]
        for begin in range(0, len(new), _TILE):
            part = new[begin : begin + _TILE]
            places = np.arange(self._used, self._used + len(part))
            self._kept[places] = self._tile(np.arange(len(self._order)), part).T
            self._place[part] = places
            self._used += len(part)

    def _tile(self, rows: Ints, columns: Ints) -> Floats:
        out = np.zeros((len(rows), len(columns)))
        self._add(rows, columns, np.eye(len(columns)), out)
        return out

    def _add(self, rows: Ints, columns: Ints, coefficients: Floats, out: Floats) -> None:
        """Add to ``out`` the products of the kernel values with rows of coefficients."""
        _core.add_scores(
            self._data,
            self._order[rows],
            core_data(self._X[self._order[columns]]),
            self._kernel,
            np.ascontiguousarray(coefficients),
            [((0, len(columns)), list(range(len(coefficients))))],
            out,
            accuracy=0.0,  # no rounding to single precision
            threads=self._threads,
        )
        self.evaluations += len(rows) * len(columns)
