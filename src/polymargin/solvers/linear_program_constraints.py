r"""Products with the constraints of the linear programming machine, for an interior point method.

Pairs (i, j) are matrices of examples x classes, zero if :math:`j = y_i`. The rows of :math:`\hat A` are those of the
coefficients that take part, :math:`\sigma_{ij}(m) K_{im}`, and those of the intercepts, the same with ones in place of
kernel values.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polymargin.support.numeric import Bools, Floats, Ints
from polymargin.support.threads import for_each

_STRIP = 256  # coefficients whose products are formed at a time: some hundredths of a second


class Constraints:
    """The matrix of the constraints; ``columns`` are the examples whose coefficients take part, ascending.

    Parameters
    ----------
    K : array of shape (n, n)
        Kernel values; examples sorted by class.
    class_starts : array of shape (k + 1,)
        Class c has the examples from ``class_starts[c]`` to ``class_starts[c + 1]``.
    """

    def __init__(self, K: Floats, class_starts: Ints) -> None:
        n, k = len(K), len(class_starts) - 1
        starts, ends = class_starts[:-1], class_starts[1:]
        self.rows: list[slice] = [slice(starts[c], ends[c]) for c in range(k)]
        self._K, self._labels = K, np.repeat(np.arange(k), np.diff(class_starts))
        self._own = (np.arange(n), self._labels)
        self.pairs: Bools = np.ones((n, k), dtype=bool)
        self.pairs[self._own] = False
        every = np.arange(n)
        self._take(every, [self._values(every, c) for c in range(k)])

    def _values(self, columns: Ints, c: int) -> Floats:
        """Return a class's part of the matrix: kernel values, and a column of ones for the intercept."""
        mine = columns[self._labels[columns] == c]
        part = np.ones((len(self._K), len(mine) + 1))
        part[:, :-1] = self._K[:, mine]
        return part

    def _take(self, columns: Ints, parts: list[Floats]) -> None:
        ends = np.cumsum([part.shape[1] for part in parts])
        self._parts = parts
        self.columns: Ints = columns
        self.size: int = int(ends[-1])
        self.groups: list[slice] = [slice(end - part.shape[1], end) for end, part in zip(ends, parts, strict=True)]
        self.intercepts: Ints = ends - 1
        self.coefficients: Ints = np.delete(np.arange(self.size), self.intercepts)

    def keep(self, kept: Bools) -> None:
        """Forget some of the coefficients."""
        with_intercept = np.ones(self.size, dtype=bool)
        with_intercept[self.coefficients] = kept
        parts = [part[:, with_intercept[group]] for part, group in zip(self._parts, self.groups, strict=True)]
        self._take(self.columns[kept], parts)

    def add(self, columns: Ints) -> None:
        """Let the coefficients of further examples take part."""
        every = np.sort(np.concatenate([self.columns, columns]))
        new = np.bincount(self._labels[columns], minlength=len(self.rows))
        self._take(every, [self._values(every, c) if new[c] else part for c, part in enumerate(self._parts)])

    def transposed(self, y: Floats) -> Floats:
        """Return A'y, a value for every pair."""
        scores = np.column_stack([part @ y[group] for part, group in zip(self._parts, self.groups, strict=True)])
        return scores[self._own][:, None] - scores

    def _by_class(self, u: Floats) -> Floats:
        B = -u
        B[self._own] = u.sum(axis=1)
        return B

    def times(self, u: Floats) -> Floats:
        """Return A u."""
        B = self._by_class(u)
        return np.concatenate([B[:, c] @ part for c, part in enumerate(self._parts)])

    def activities(self, u: Floats) -> Floats:
        """Return the rows of A u of the coefficients of all examples, whether they take part or not."""
        B = self._by_class(u)
        return np.concatenate([B[:, c] @ self._K[:, rows] for c, rows in enumerate(self.rows)])

    def balanced(self, u: Floats, room: Floats) -> Floats:
        """Return the nearest u that fulfils the equations of the intercepts, changes being measured by their room."""
        B = self._by_class(u)
        moved = np.add.reduceat(room, [rows.start for rows in self.rows], axis=0)
        moved += moved.T
        system = np.diag(moved.sum(axis=1)) - moved
        shift: Floats = np.linalg.lstsq(system, -B.sum(axis=0), rcond=None)[0]
        return u + room * (shift[self._labels][:, None] - shift)

    def normal(self, D: Floats, threads: int, go_on: Callable[[], bool]) -> Floats | None:
        """Return the lower part of A diag(D) A', or None if asked not to go on."""
        M = np.zeros((self.size, self.size))
        total = D.sum(axis=1)

        def fill(strip: tuple[int, int]) -> None:
            c, begin = strip
            if not go_on():
                return
            mine = self._parts[c][:, begin : begin + _STRIP]
            place = slice(self.groups[c].start + begin, self.groups[c].start + begin + mine.shape[1])
            weight = D[:, c].copy()
            weight[self.rows[c]] = total[self.rows[c]]
            weighted = mine * weight[:, None]
            own_class = self._parts[c][:, : begin + mine.shape[1]]
            M[place, self.groups[c].start : place.stop] = weighted.T @ own_class
            for e in range(c):
                M[place, self.groups[e]] = -self._cross(mine, D, c, e)

        strips = [(c, s) for c, part in enumerate(self._parts) for s in range(0, part.shape[1], _STRIP)]
        for_each(fill, strips, threads)
        return M if go_on() else None

    def _cross(self, mine: Floats, D: Floats, c: int, e: int) -> Floats:
        """Return the products of some coefficients of class c with all of class e."""
        own, theirs, other = self.rows[c], self.rows[e], self._parts[e]
        product: Floats = (mine[own] * D[own, e, None]).T @ other[own]
        product += (mine[theirs] * D[theirs, c, None]).T @ other[theirs]
        return product
