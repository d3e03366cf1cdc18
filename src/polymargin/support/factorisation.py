"""The Cholesky factor of a dense matrix, in threads and without holding up who waits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular

from polymargin.support.numeric import Floats
from polymargin.support.threads import for_each


def factorise(M: Floats, threads: int, go_on: Callable[[], bool] = lambda: True, block: int = 256) -> bool:
    """Replace the lower part of a positive definite matrix by its Cholesky factor, by products of blocks.

    LAPACK's in SciPy neither lets other threads run nor hears a Ctrl-C; NumPy's products do both. The blocks, and so
    the factor, do not depend on the number of threads. ``go_on`` is asked before each product, none of which takes
    longer than some hundredths of a second; if it says no, False is returned and the matrix is of no use. Raises
    LinAlgError if the matrix is not positive definite.
    """
    n, going = len(M), True
    for begin in range(0, n, block):
        if not (going and go_on()):
            return False
        end = min(begin + block, n)
        corner = np.linalg.cholesky(M[begin:end, begin:end])
        M[begin:end, begin:end] = corner
        if end == n:
            break
        inverse = solve_triangular(corner, np.eye(end - begin), lower=True, check_finite=False)
        panel = M[end:, begin:end] @ inverse.T
        M[end:, begin:end] = panel

        def update(place: int, panel: Floats = panel, end: int = end) -> None:
            nonlocal going
            if not (going and go_on()):
                going = False
                return
            rows, columns = panel[place - end :], panel[place - end : place - end + block]
            M[place:, place : place + block] -= rows @ columns.T

        for_each(update, range(end, n, block), threads)
    return going


def triangular_inverse(L: Floats, threads: int = 1, block: int = 256) -> Floats:
    """Return the inverse of a lower triangular matrix, by products of blocks, none of which takes long."""
    inverse = np.zeros_like(L)
    for begin in range(0, len(L), block):
        rows = slice(begin, min(begin + block, len(L)))
        corner = solve_triangular(L[rows, rows], np.eye(rows.stop - begin), lower=True, check_finite=False)
        inverse[rows, rows] = corner

        def fill(place: int, rows: slice = rows, corner: Floats = corner) -> None:
            columns = slice(place, place + block)
            inverse[rows, columns] = -corner @ (L[rows, place : rows.start] @ inverse[place : rows.start, columns])

        for_each(fill, range(0, begin, block), threads)
    return inverse
