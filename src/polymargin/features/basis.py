r"""Orthonormal bases of the span of some examples in the space of a kernel.

A basis vector is :math:`u_i = \sum_k A_{ki} \phi(x_k)` over the points :math:`x_k` of the basis, with
:math:`A' K A = I`. An example's features are its coordinates :math:`(u_i \cdot \phi(x))_i`, the rows of
:math:`K(X, \text{points})\, A` (Zien et al. (1.3)). Their scalar products are the kernel for examples in the span.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.utils import check_random_state

from polymargin.kernels import Kernel, KernelSession
from polymargin.support.blocks import RowBlocks, interruptible
from polymargin.support.factorisation import factorise, triangular_inverse
from polymargin.support.memory import available_bytes
from polymargin.support.numeric import Floats, Ints

_BLOCK = 64  # pivots that are looked for at a time
_ENOUGH = 0.5  # share of the largest residual that a pivot must have


@dataclass(frozen=True)
class Basis:
    """The points, as rows of the training examples, and A (points x dimension)."""

    points: Ints
    coefficients: Floats


class Examples:
    """Some rows of a matrix, numbered anew, whose kernel values are computed when they are asked for."""

    def __init__(self, X: Any, rows: Ints, kernel: Kernel, threads: int, dtype: Any = np.float64) -> None:
        self.X = X
        self.rows = rows
        self.kernel = kernel
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self._session = KernelSession(kernel, X, rows, 0, threads)
        self.evaluations: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def negligible(self) -> float:
        """The share of the largest eigenvalue below which an eigenvalue is rounding."""
        return len(self) * float(np.finfo(self.dtype).eps)

    def columns(self, points: Ints, examples: Ints | None = None, dtype: Any = np.float64) -> Floats:
        """Return the kernel values of some examples (all) with the points."""
        examples = np.arange(len(self)) if examples is None else examples
        self.evaluations += len(examples) * len(points)
        return self._session.block(examples, points, dtype)

    def diagonal(self) -> Floats:
        """Return the kernel value of every example with itself."""
        self.evaluations += len(self)
        return self.kernel.diagonal(self.X, self.rows)


def kernel_pca(examples: Examples, rank: int | None) -> tuple[Basis, Floats]:
    r"""Return the leading eigenvectors of the whole Gram matrix, and the features of the examples.

    :math:`K = V \Lambda V'` gives :math:`A = V \Lambda^{-1/2}` and the features :math:`V \Lambda^{1/2}`.
    """
    n = len(examples)
    _refuse_too_large(5 * n * n, "the Gram matrix and its eigenvectors")
    values, vectors = _eigen(examples.columns(np.arange(n)), rank, examples.negligible)
    return Basis(np.arange(n), vectors * _inverse_roots(values)), vectors * np.sqrt(values)


def whole_span(examples: Examples, blocks: RowBlocks, threads: int) -> tuple[Basis, Floats]:
    r"""Return a triangular basis of the span of all examples, and their features.

    Where the Gram matrix is well enough conditioned, :math:`K = L L'` is factorised at once, a fifth of the work of
    pivoting; the features are L.
    """
    n = len(examples)
    _refuse_too_large(3 * n * n, "the Gram matrix and its factor")
    L = examples.columns(np.arange(n))
    enough = examples.negligible * float(L.diagonal().max(initial=0.0))
    try:
        factorise(L, threads)
    except np.linalg.LinAlgError:
        return incomplete_cholesky(examples, None, blocks)
    if not np.all(L.diagonal() ** 2 > enough):
        return incomplete_cholesky(examples, None, blocks)
    L[np.triu_indices(n, 1)] = 0.0
    return Basis(np.arange(n), triangular_inverse(L, threads).T), L


def subset(examples: Examples, points: Ints, blocks: RowBlocks) -> tuple[Basis, Floats]:
    """Return a basis of the span of some of the examples, and the projections of all onto it (Nystroem's features)."""
    d = len(points)
    _refuse_too_large(5 * d * d + len(examples) * d, "the kernel values of this rank")
    values, vectors = _eigen(examples.columns(points, points), None, d * float(np.finfo(examples.dtype).eps))
    basis = Basis(points, vectors * _inverse_roots(values))
    return basis, projected(examples.columns(points, dtype=examples.dtype), basis.coefficients, blocks)


def incomplete_cholesky(examples: Examples, rank: int | None, blocks: RowBlocks) -> tuple[Basis, Floats]:
    r"""Return the basis of a pivoted Cholesky factorisation stopped at some rank, and the features of the examples.

    :math:`K \approx L L'` with :math:`L` n x rank, the features. In exact pivoting the next pivot is the example with
    the largest residual :math:`K_{ii} - |L_i|^2`. Here up to 64 with large residuals are taken together, as long as
    each, when its turn comes, still has half of the largest: so kernel values come in blocks, by matrix products. With
    :math:`L_p` the rows of the pivots, triangular, :math:`A = L_p^{-\top}`.
    """
    n = len(examples)
    rank = n if rank is None else min(rank, n)
    _refuse_too_large(n * rank, "the features of this rank")
    residual = examples.diagonal()
    threshold = examples.negligible * max(float(residual.max(initial=0.0)), 0.0)
    L = np.zeros((n, rank))
    pivots = np.zeros(0, dtype=np.int64)
    while len(pivots) < rank:
        done = len(pivots)
        worst = float(residual.max())
        if not worst > threshold:
            break
        floor = max(threshold, _ENOUGH * worst)
        candidates = np.argsort(-residual, kind="stable")[: min(_BLOCK, rank - done)]
        candidates = candidates[residual[candidates] > floor]
        square = examples.columns(candidates, candidates) - L[candidates, :done] @ L[candidates, :done].T
        chosen, factor = _pivoted(square, floor)
        new = candidates[chosen]
        part = _new_columns(examples.columns(new), L[:, :done], new, factor, blocks)
        part[new] = factor
        part[pivots] = 0.0  # what is there is rounding
        L[:, done : done + len(new)] = part
        residual -= (part * part).sum(axis=1)
        pivots = np.concatenate([pivots, new])
        residual[pivots] = -np.inf
        residual[candidates[:1]] = -np.inf  # if rounding left nothing of the best one, it must not come back
    if len(pivots) == 0:  # a kernel that is zero everywhere: one feature that is zero everywhere
        return Basis(np.zeros(1, dtype=np.int64), np.zeros((1, 1))), np.zeros((n, 1))
    L = L[:, : len(pivots)]
    A = scipy.linalg.solve_triangular(L[pivots], np.eye(len(pivots)), lower=True).T
    return Basis(pivots, np.ascontiguousarray(A)), L


def projected(values: Floats, coefficients: Floats, blocks: RowBlocks) -> Floats:
    """Return features from kernel values with the points, in their precision."""
    A = np.ascontiguousarray(coefficients, dtype=values.dtype)
    out = np.empty((len(values), A.shape[1]), dtype=values.dtype)

    def project(block: slice) -> None:
        np.matmul(values[block], A, out=out[block])

    blocks.each(project, len(values))
    return out


def _eigen(K: Floats, rank: int | None, negligible: float) -> tuple[Floats, Floats]:
    """Return the positive eigenvalues (one at least, that may be 0), the largest first, with their vectors."""
    # NumPy's, unlike SciPy's, lets other threads run meanwhile.
    values, vectors = interruptible(np.linalg.eigh, K)
    values, vectors = values[::-1][:rank], vectors[:, ::-1]
    kept = max(1, int(np.sum(values > negligible * max(values[0], 0.0))))
    return np.maximum(values[:kept], 0.0), np.ascontiguousarray(vectors[:, :kept])


def _inverse_roots(values: Floats) -> Floats:
    return np.divide(1.0, np.sqrt(values), out=np.zeros_like(values), where=values > 0)


def _new_columns(columns: Floats, L: Floats, new: Ints, factor: Floats, blocks: RowBlocks) -> Floats:
    """Turn the kernel values of new pivots, in place, into columns of the factor L."""

    def solve(block: slice) -> None:
        columns[block] -= L[block] @ L[new].T
        columns[block] = scipy.linalg.solve_triangular(factor, columns[block].T, lower=True).T

    if len(new):
        blocks.each(solve, len(columns))
    return columns


def _pivoted(square: Floats, floor: float) -> tuple[Ints, Floats]:
    """Choose pivots of a small matrix, the largest first, while they exceed a floor; return them with their factor."""
    b = len(square)
    L = np.zeros((b, b))
    residual = np.diag(square).copy()
    chosen: list[int] = []
    while len(chosen) < b:
        p = int(residual.argmax())
        if not residual[p] > (floor if chosen else 0.0):
            break
        m = len(chosen)
        L[:, m] = (square[:, p] - L[:, :m] @ L[p, :m]) / np.sqrt(residual[p])
        residual -= L[:, m] ** 2
        chosen.append(p)
        residual[chosen] = -np.inf
    return np.array(chosen, dtype=np.int64), np.tril(L[chosen, : len(chosen)])


def _refuse_too_large(numbers: int, what: str) -> None:
    """Raise MemoryError, saying what to do, where the memory would not suffice."""
    needed = 8 * numbers
    if needed > 2**28 and needed > available_bytes():
        raise MemoryError(
            f"{what} would take {needed / 1e9:.1f} GB and {available_bytes() / 1e9:.1f} GB are free; set rank, for "
            "example rank=1000, with the basis 'cholesky' or 'subset' (CholeskyFeatures, SubsetFeatures)"
        )


def chosen_points(n: int, rank: int | None, choice: str, random_state: Any) -> Ints:
    """Return the rows that :class:`SubsetFeatures` takes, in ascending order."""
    if rank is None or rank >= n:
        return np.arange(n)
    if choice == "first":
        return np.arange(rank)
    random = check_random_state(0 if random_state is None else random_state)
    return np.sort(random.permutation(n)[:rank])
