"""From the parameters ``kernel``, ``gamma``, ``degree``, ``coef0`` to kernel values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polymargin import _core
from polymargin.kernels.table import KERNELS, KernelEntry, kernel_entry, uses_gamma
from polymargin.support.examples import Matrix, check_finite, core_data, dense, weighted_variance
from polymargin.support.threads import one_blas_thread

Made = TypeVar("Made")
_DIAGONAL_BLOCK = 64  # rows that a callable kernel gets at a time when only its diagonal is wanted


def resolve_gamma(kernel: Any, gamma: str | float, X: Matrix, weight: NDArray[np.float64] | None) -> float:
    """Return ``gamma`` of a kernel as a number; 0 if the kernel reads none.

    ``"auto"`` is 1 / n_features and ``"scale"`` 1 / (n_features * variance), so that values do not change with the unit
    of the features; for kernels of distances that are not squared the standard deviation takes the variance's place.
    """
    if not uses_gamma(kernel):
        return 0.0
    if gamma == "scale":
        spread = weighted_variance(X, weight) ** (KERNELS[kernel].dimension / 2)
        return float(1.0 / (X.shape[1] * spread)) if spread > 0 else 1.0
    if gamma == "auto":
        return 1.0 / int(X.shape[1])
    return float(gamma)


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters resolved to numbers: what a fitted machine keeps."""

    kind: Any  # a name of KERNELS, or a callable
    gamma: float
    coef0: float
    degree: int

    @classmethod
    def resolved(
        cls, kind: Any, gamma: str | float, coef0: float, degree: int, X: Matrix, weight: NDArray[np.float64] | None
    ) -> Self:
        """Return the kernel of some parameters on some training examples."""
        return cls(kind, resolve_gamma(kind, gamma, X, weight), float(coef0), int(degree))

    @property
    def entry(self) -> KernelEntry | None:
        """What the table says of it; None for a callable."""
        return kernel_entry(self.kind)

    @property
    def precomputed(self) -> bool:
        """Whether ``X`` holds kernel values, not examples."""
        entry = self.entry
        return entry is not None and entry.precomputed

    @property
    def definite(self) -> bool:
        """Whether no matrix of its values has a negative eigenvalue."""
        entry = self.entry
        return entry is not None and entry.definite

    @property
    def in_core(self) -> bool:
        """Whether the core computes the values."""
        entry = self.entry
        return entry is not None and not entry.precomputed

    @property
    def spec(self) -> _core.Kernel:
        """The kernel function as the core knows it; the values of a callable are given to the core."""
        kind = _core.KernelType.precomputed if callable(self.kind) else KERNELS[self.kind].core
        return _core.Kernel(kind, self.gamma, self.coef0, self.degree)

    def training_data(self, X: Matrix) -> _core.Data:
        """Return the training examples, or their kernel matrix, for the core."""
        values = self.training_values(X)
        return core_data(X) if values is None else _core.Data.precomputed(values)

    def training_values(self, X: Matrix) -> NDArray[np.floating] | None:
        """Return the kernel matrix of the training examples where Python has it (precomputed, callable), else None."""
        if callable(self.kind):
            return self.called(X, X)
        self.check_training(X)
        return X if self.precomputed else None

    def check_training(self, X: Matrix) -> None:
        """Raise ValueError if X is to be a kernel matrix of the training examples and is none."""
        if not self.precomputed:
            return
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                f"a precomputed kernel must be a square matrix when fitting, rows and columns being the "
                f"training examples; got {X.shape[0]} x {X.shape[1]}"
            )

    def examples(self, X: Matrix) -> Matrix:
        """Return the examples whose kernel values X may be, as far as they are known."""
        return X

    def session(
        self, X: Matrix, order: NDArray[np.int64], largest: float, tolerance: float, budget_bytes: int, threads: int
    ) -> _core.KernelSession:
        """Return what trains on these rows of X, exact enough for bounds up to ``largest``."""
        return _core.KernelSession(
            self.training_data(X),
            self.spec,
            order,
            _core.Exactness(largest_cost_bound=largest, tolerance=tolerance),
            _core.Resources(budget_bytes=budget_bytes, threads=threads),
        )

    def features(self, key: Any, make: Callable[[], Made]) -> Made:
        """Return features made from the kernel values; a kernel that is trained on again keeps them for the next fit.

        ``key`` says what else they depend on.
        """
        return make()

    @property
    def refine(self) -> bool:
        """Whether small problems are solved to rounding, which costs more than to solve them to ``tol``."""
        return True

    def kept(self) -> Kernel:
        """Return the same kernel with a session that is kept, for problems that differ in their costs alone."""
        return KeptKernel(self.kind, self.gamma, self.coef0, self.degree)

    def called(self, A: Matrix, B: Matrix) -> NDArray[np.float64]:
        """Return what a callable kernel says, checked; examples that are no rows of numbers it gets as a vector."""
        A, B = (examples[:, 0] if examples.dtype == object else examples for examples in (A, B))
        K = self.kind(A, B)
        K = np.ascontiguousarray(K.toarray() if sp.issparse(K) else K, dtype=np.float64)
        if K.shape != (A.shape[0], B.shape[0]):
            raise ValueError(
                f"the kernel function must return a matrix of shape {(A.shape[0], B.shape[0])}, got {K.shape}"
            )
        check_finite(K, "kernel(X, Y)")
        return K

    def values(
        self, X: Matrix, vectors: Matrix, support: NDArray[np.int64], first_row: int = 0
    ) -> NDArray[np.float64] | None:
        """Return k(X, support vectors) where Python has it (precomputed, callable), else None."""
        if callable(self.kind):
            return self.called(X, vectors)
        if self.precomputed:
            columns: NDArray[np.float64] = X.take(support, axis=1).astype(np.float64, copy=False)
            check_finite(columns, "X, in its columns of support vectors,", first_row, support)
            return columns
        return None

    def matrix(
        self,
        X: Matrix,
        rows: NDArray[np.int64],
        vectors: Matrix,
        columns: NDArray[np.int64],
        threads: int,
        dtype: Any = np.float64,
    ) -> NDArray[Any]:
        """Return k(X[rows], vectors); of a precomputed kernel, where X has the values, these columns."""
        if callable(self.kind) or self.precomputed:
            values = self.values(X[rows], vectors, columns)
            assert values is not None
            return values.astype(dtype, copy=False)
        if sp.issparse(X) != sp.issparse(vectors):  # the core takes both of one kind; dense fits into sparse
            X, vectors = sp.csr_array(X), sp.csr_array(vectors)
        out = np.empty((len(rows), vectors.shape[0]), dtype=dtype)
        with one_blas_thread():
            _core.kernel_values(core_data(X), rows, core_data(vectors), self.spec, out=out, threads=threads)
        return out

    def diagonal(self, X: Matrix, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return k(x, x) of training examples; of a precomputed kernel X is the square matrix."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = self._diagonal(X)[rows]
        if not np.all(np.isfinite(values)):
            row = int(rows[np.argmin(np.isfinite(values))])
            column = int(np.abs(dense(X[[row]])).argmax())
            raise ValueError(
                f"the value in row {row}, column {column} is too large: its kernel value overflows. Scale the data, "
                "for example with StandardScaler"
            )
        return values

    def _diagonal(self, X: Matrix) -> NDArray[np.float64]:
        if callable(self.kind):
            starts = range(0, X.shape[0], _DIAGONAL_BLOCK)
            parts = [self.called(part, part).diagonal() for part in (X[s : s + _DIAGONAL_BLOCK] for s in starts)]
            return np.concatenate(parts)
        if self.precomputed:
            return np.array(np.diagonal(X), dtype=np.float64)
        entry = self.entry
        assert entry is not None
        if entry.reads is _core.KernelInput.squared_distances:
            return np.repeat(entry.value(self, np.zeros(1)), X.shape[0])
        term = np.multiply if entry.term is None else entry.term
        if sp.issparse(X):
            values = X.data.astype(np.float64)
            sums = sp.csr_array((term(values, values), X.indices, X.indptr), X.shape).sum(axis=1)
        else:
            values = X.astype(np.float64)
            sums = term(values, values).sum(axis=1)
        return entry.value(self, np.asarray(sums, dtype=np.float64).ravel())


class _Last(Generic[Made]):
    """What was made last, with what it was made for: one is kept, for the sake of memory."""

    def __init__(self) -> None:
        self._kept: tuple[Any, Made] | None = None

    def get(self, key: Any, make: Callable[[], Made]) -> Made:
        if self._kept is None or self._kept[0] != key:
            self._kept = None  # its memory is free before the next is made
            self._kept = key, make()
        return self._kept[1]


@dataclass(frozen=True)
class KeptKernel(Kernel):
    """A kernel whose session is kept: what is trained next on the same rows finds kernel values that are there.

    The first problem has the largest costs.
    """

    _session: _Last[_core.KernelSession] = field(default_factory=_Last, init=False, compare=False, repr=False)

    def session(
        self, X: Matrix, order: NDArray[np.int64], largest: float, tolerance: float, budget_bytes: int, threads: int
    ) -> _core.KernelSession:
        """Return the session of these rows, made when they are asked for first."""
        make = partial(super().session, X, order, largest, tolerance, budget_bytes, threads)
        return self._session.get((order.tobytes(), tolerance), make)


@dataclass(frozen=True)
class SharedKernel(Kernel):
    """A precomputed kernel whose matrix is trained on again and again, for one machine and one cost after the other."""

    largest: float  # no C_i will be larger,
    tolerance: float  # and no tol smaller
    rows: Matrix = field(compare=False, repr=False)  # what the values are of
    _session: _Last[_core.KernelSession] = field(default_factory=_Last, init=False, compare=False, repr=False)
    _features: _Last[Any] = field(default_factory=_Last, init=False, compare=False, repr=False)

    def examples(self, X: Matrix) -> Matrix:
        """Return the examples themselves."""
        return self.rows

    def kept(self) -> Kernel:
        """Return itself: its session is kept already."""
        return self

    def session(
        self, X: Matrix, order: NDArray[np.int64], largest: float, tolerance: float, budget_bytes: int, threads: int
    ) -> _core.KernelSession:
        """Return the session of these rows, made when they are asked for first."""
        return self._session.get(
            order.tobytes(),
            lambda: _core.KernelSession(
                self.training_data(X),
                self.spec,
                order,
                _core.Exactness(largest_cost_bound=self.largest, tolerance=self.tolerance, rough=X.dtype == np.float32),
                _core.Resources(budget_bytes=budget_bytes, threads=threads, whole=True),
            ),
        )

    def features(self, key: Any, make: Callable[[], Made]) -> Made:
        """Return the features that were made last, if it was for this key."""
        made: Made = self._features.get(key, make)
        return made

    @property
    def refine(self) -> bool:
        """Nobody needs the last digits of answers that are compared and thrown away."""
        return False
