"""Kernel values between training examples for solvers in Python: in blocks, kept within a budget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin.kernels.kernel import Kernel
from polymargin.kernels.table import Floats
from polymargin.support.examples import Matrix

Ints = NDArray[np.int64]
_BLOCK_BYTES = 16_000_000  # of values that are computed for a product and not kept


class KernelSession:
    """The matrix K of kernel values between the rows ``order`` of X, numbered from 0 in that order.

    With ``rows``, numbers of some of these examples, K has only these rows; it always has all columns. A column is
    computed in double precision when it is first asked for and kept as long as the budget has room; the others are
    computed anew each time. Values that Python has are read where they are: a precomputed matrix, or what a kernel
    function returns, which is called once for all examples if that fits into the budget. Neither need be symmetric.
    """

    def __init__(
        self, kernel: Kernel, X: Matrix, order: Ints, budget_bytes: int, threads: int, *, rows: Ints | None = None
    ) -> None:
        kernel.check_training(X)
        self._kernel, self._X, self._threads = kernel, X, threads
        self._columns = order  # as rows of X,
        self._rows = order if rows is None else order[rows]
        self._symmetric = kernel.in_core and rows is None
        self.evaluations: int = 0  # kernel values computed so far
        self._whole = self._whole_matrix(budget_bytes, square=rows is None)
        capacity = 0 if self._whole is not None else min(len(order), budget_bytes // max(1, 8 * len(self._rows)))
        self._kept = np.empty(
            (capacity, len(self._rows))
        )  # a row for each kept column; memory is taken when it is written
        self._place = np.full(len(order), -1)  # of an example's column there
        self._used = 0
        self._every = np.arange(len(self._rows))

    @property
    def kept_bytes(self) -> int:
        """The most that kept values take."""
        return self._kept.nbytes

    def block(self, rows: Ints, columns: Ints, dtype: Any = np.float64) -> NDArray[Any]:
        """Return ``K[rows][:, columns]``."""
        if self._whole is not None:
            return np.asarray(self._whole[np.ix_(self._rows[rows], self._columns[columns])], dtype=dtype)
        self._keep(columns)
        kept = self._place[columns] >= 0
        if not np.any(kept):
            return self._computed(rows, columns, dtype)
        out = np.empty((len(rows), len(columns)), dtype=dtype)
        out[:, kept] = self._kept[np.ix_(self._place[columns[kept]], rows)].T
        if not np.all(kept):
            out[:, ~kept] = self._computed(rows, columns[~kept], dtype)
        return out

    def product(self, columns: Ints, coefficients: Floats) -> Floats:
        """Return ``K[:, columns] @ coefficients``."""
        self._keep(columns)
        place = self._place[columns]
        kept = place >= 0
        if kept.all():
            whole: Floats = self._kept[place].T @ coefficients
            return whole
        out: Floats = self._kept[place[kept]].T @ coefficients[kept]
        for some in self._parts(np.flatnonzero(~kept), len(self._rows)):
            out = out + self.block(self._every, columns[some]) @ coefficients[some]
        return out

    def transposed_product(self, rows: Ints, coefficients: Floats) -> Floats:
        """Return ``K[rows].T @ coefficients``."""
        if self._symmetric:
            return self.product(rows, coefficients)
        every = np.arange(len(self._columns))
        out = np.zeros((len(every), *coefficients.shape[1:]))
        for some in self._parts(np.arange(len(rows)), len(every)):
            out += self.block(rows[some], every).T @ coefficients[some]
        return out

    def _whole_matrix(self, budget_bytes: int, square: bool) -> NDArray[Any] | None:
        """Return the values of all rows of X where Python has them."""
        if self._kernel.precomputed:
            values: NDArray[Any] = self._X
        elif callable(self._kernel.kind) and square and 8 * self._X.shape[0] ** 2 <= budget_bytes:
            values = self._kernel.called(self._X, self._X)
        else:
            return None
        self.evaluations = values.size
        return values

    def _keep(self, columns: Ints) -> None:
        """Compute and keep those columns that are new, as far as there is room."""
        new = columns[self._place[columns] < 0][: len(self._kept) - self._used]
        for part in self._parts(new, len(self._rows)):
            end = self._used + len(part)
            self._kept[self._used : end] = self._computed(self._every, part).T
            self._place[part] = np.arange(self._used, end)
            self._used += len(part)

    def _parts(self, numbers: Ints, height: int) -> Iterator[Ints]:
        """Yield some numbers at a time, so that their values take little memory."""
        step = max(1, _BLOCK_BYTES // max(1, 8 * height))
        for begin in range(0, len(numbers), step):
            yield numbers[begin : begin + step]

    def _computed(self, rows: Ints, columns: Ints, dtype: Any = np.float64) -> NDArray[Any]:
        self.evaluations += len(rows) * len(columns)
        members = self._columns[columns]
        return self._kernel.matrix(self._X, self._rows[rows], self._X[members], members, self._threads, dtype)
