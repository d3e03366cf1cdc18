"""Kernel matrices of one data set for many kernels: what the kernels have in common is computed once."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from polymargin import _core
from polymargin.kernels import Kernel
from polymargin.support.blocks import slices
from polymargin.support.examples import Matrix, core_data, dense
from polymargin.support.threads import for_each

BLOCK_BYTES = 64_000_000
_SAMPLE, _RESOLUTION = 64, 1e-3  # rows that show how much kernel values differ; the part of it that may be rounded off
_SMALLEST = float(np.finfo(np.float32).tiny)  # that has all digits
_CACHED = 1 << 20  # bytes of rows that are made while they are in the cache


class KernelMatrices:
    """The kernels on some examples.

    Kernels are functions of scalar products, of squared distances or of sums over features: the matrix of these numbers
    is kept, for kernels of all parameters, and those of the kernels asked for last, whose memory the next ones take.
    Values are kept in single precision if that is exact enough for all ``uses``: kernels, each with the largest C_i and
    the smallest tol.
    """

    def __init__(self, X: Matrix, uses: list[tuple[Kernel, float, float]], threads: int = 1) -> None:
        self.X = X
        self.threads = threads
        single = all(_single_suffices(X, *use) for use in uses)
        self.dtype = np.dtype(np.float32 if single else np.float64)
        self._base: dict[Any, NDArray[Any]] = {}
        self._last: dict[Kernel, NDArray[Any]] = {}
        self._spare: list[NDArray[Any]] = []  # matrices that nobody reads any more
        self._taken: list[NDArray[Any]] = []

    @property
    def matrix_bytes(self) -> int:
        """The memory for the matrix of a kernel, or for the one that it is made from."""
        return self.X.shape[0] ** 2 * self.dtype.itemsize

    @property
    def at_once(self) -> int:
        """How many matrices to ask for at once: several if they are small."""
        return max(1, BLOCK_BYTES // max(1, self.matrix_bytes))

    def matrices(self, kernels: list[Kernel]) -> list[NDArray[Any]]:
        """Return the kernel values of all pairs of examples, for each kernel; no longer valid when asked again."""
        if not all(kernel in self._last for kernel in kernels):
            self._last = {}
            self._spare, self._taken = self._spare + self._taken, []
            for kernel in kernels:
                if kernel not in self._last:
                    self._last[kernel] = self._made(kernel)
        return [self._last[kernel] for kernel in kernels]

    def hides(self, *kernels: Kernel) -> bool:
        """Whether values that are zero in single precision are none in double, of any of these kernels."""
        return self.dtype == np.float32 and any(self._hides(kernel) for kernel in kernels if kernel.in_core)

    def _hides(self, kernel: Kernel) -> bool:
        base = self._shared(kernel)
        value = np.empty((1, 1))
        nearest = np.full((1, 1), np.min(base, where=base > 0, initial=np.inf), dtype=np.float64)
        _core.apply_kernel(kernel.spec, nearest, value, 1)
        return bool(0.0 < value[0, 0] < _SMALLEST)

    def _made(self, kernel: Kernel) -> NDArray[Any]:
        if kernel.precomputed:
            return self.X
        if callable(kernel.kind):
            return kernel.called(self.X, self.X)
        base = self._shared(kernel)
        if kernel.kind == "linear":
            return base
        out = self._spare.pop() if self._spare else np.empty_like(base)
        self._taken.append(out)
        _core.apply_kernel(kernel.spec, base, out, self.threads)
        return out

    def _shared(self, kernel: Kernel) -> NDArray[Any]:
        """Return what the kernel reads of all pairs, which other kernels may read as well."""
        reads = kernel.spec.reads
        key = kernel.kind if reads is _core.KernelInput.feature_sums else reads  # every kernel has a term of its own
        if key not in self._base:
            self._base = {}  # one at a time: memory
            if reads is _core.KernelInput.feature_sums:
                self._base[key] = feature_sums(kernel, self.X, self.dtype, self.threads)
            else:
                products = reads is _core.KernelInput.products
                compute = scalar_products if products else squared_distances
                self._base[key] = compute(self.X, self.dtype, self.threads)
        return self._base[key]


def held_out_values(
    kernel: Kernel, X: Matrix, K: NDArray[Any], test: NDArray[np.int64], train: NDArray[np.int64]
) -> NDArray[Any]:
    """Return the part of a matrix that scores of held-out examples are made of.

    The values of an example that is far from all others may all be zero in single precision. The largest of them
    decides its class nevertheless, where scores have no intercept: they are computed in double precision.
    """
    values = K[test].take(train, axis=1)
    if values.dtype != np.float32 or not kernel.in_core:
        return values
    lost = np.flatnonzero(np.max(np.abs(values), axis=1, initial=0.0) < _SMALLEST)
    if len(lost) > 0:
        values = values.astype(np.float64)
        values[lost] = kernel.matrix(X, test[lost], X[train], train, 1)
    return values


def pattern_of_ones(K: NDArray[Any]) -> bytes | None:
    """Return what is the same for equal matrices of zeros and ones; None if there are other values.

    A kernel of distances that is far too narrow for the data is such a matrix, whatever its exact width.
    """
    step = max(1, _CACHED // max(1, K[0].nbytes))
    for part in (slice(0, 2), *slices(len(K), step)):  # two rows show it of most
        rows = K[part]
        if not np.all((rows == 0) | (rows == 1)):
            return None
    return hashlib.blake2b(np.packbits(K == 1).tobytes()).digest()


def _single_suffices(X: Matrix, kernel: Kernel, largest: float, tolerance: float) -> bool:
    """Whether rounding neither disturbs the solver nor hides by how much the values of a kernel differ."""
    size = float(np.max(np.abs(kernel.diagonal(X, np.arange(X.shape[0])))))
    if not _core.single_precision_suffices(
        size, _core.Exactness(largest_cost_bound=largest, tolerance=tolerance, rough=True)
    ):
        return False
    rows = np.unique(np.linspace(0, X.shape[0] - 1, min(X.shape[0], _SAMPLE)).astype(np.int64))
    spread = float(np.std(kernel.matrix(X, rows, X[rows], rows, 1)))
    return bool(np.finfo(np.float32).eps * size <= _RESOLUTION * spread)


def feature_sums(kernel: Kernel, X: Matrix, dtype: np.dtype[Any], threads: int = 1) -> NDArray[Any]:
    """Return the sums over features that a kernel reads, of all pairs of rows."""
    out = np.empty((X.shape[0], X.shape[0]), dtype)
    _core.pair_sums(kernel.spec, core_data(X), out, threads)
    return out


def squared_distances(X: Matrix, dtype: np.dtype[Any], threads: int = 1) -> NDArray[Any]:
    """Return the squared distances of all rows, formed in double precision."""
    # Distances do not change when the origin moves to the mean, and lose fewer digits there.
    rows = X.astype(np.float64) if sp.issparse(X) else dense(X) - dense(X).mean(axis=0, dtype=np.float64)
    half = row_norms(rows, squared=True) / 2

    def finish(products: NDArray[np.float64], part: slice, out: NDArray[Any]) -> None:
        products -= half[part, None]
        products -= half
        products *= -2.0
        np.maximum(products, 0.0, out=out, casting="same_kind")

    out = _products(rows, dtype, threads, finish)
    np.fill_diagonal(out, 0.0)
    return out


def scalar_products(X: Matrix, dtype: np.dtype[Any], threads: int = 1) -> NDArray[Any]:
    """Return the scalar products of all rows, formed in double precision."""

    def finish(products: NDArray[np.float64], part: slice, out: NDArray[Any]) -> None:
        out[...] = products

    return _products(X.astype(np.float64), dtype, threads, finish)


def _products(rows: Matrix, dtype: np.dtype[Any], threads: int, finish: Any) -> NDArray[Any]:
    """Return what ``finish`` makes of the products of all rows, some at a time, while they are in the cache."""
    n = rows.shape[0]
    out = np.empty((n, n), dtype)

    def fill(part: slice) -> None:
        finish(safe_sparse_dot(rows[part], rows.T, dense_output=True), part, out[part])

    for_each(fill, slices(n, max(1, _CACHED // (8 * n))), threads)
    return out
