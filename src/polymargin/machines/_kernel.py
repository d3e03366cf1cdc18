"""From the parameters ``kernel``, ``gamma``, ``degree``, ``coef0`` to kernel values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polymargin import _core
from polymargin.machines._data import Matrix, check_finite, core_data, weighted_variance

KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")


def resolve_gamma(gamma: str | float, X: Matrix, weight: NDArray[np.float64] | None) -> float:
    """Return ``gamma`` as a number: ``"scale"`` is 1 / (n_features * variance), ``"auto"`` 1 / n_features."""
    if gamma == "scale":
        variance = weighted_variance(X, weight)
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    if gamma == "auto":
        return 1.0 / X.shape[1]
    return float(gamma)


@dataclass(frozen=True)
class Kernel:
    """A kernel with its numbers settled: what a fitted machine keeps."""

    kind: Any  # one of KERNELS, or a callable
    gamma: float
    coef0: float
    degree: int

    @property
    def precomputed(self) -> bool:
        """Whether ``X`` holds kernel values, not examples."""
        return isinstance(self.kind, str) and self.kind == "precomputed"

    @property
    def spec(self) -> _core.Kernel:
        """The kernel function as the core knows it."""
        kind = "precomputed" if callable(self.kind) else self.kind
        return _core.Kernel(_core.KernelType[kind], self.gamma, self.coef0, self.degree)

    def training_data(self, X: Matrix) -> _core.Data:
        """Return the training examples, or their kernel matrix, for the core."""
        values = self.training_values(X)
        return core_data(X) if values is None else _core.Data.precomputed(values)

    def training_values(self, X: Matrix) -> NDArray[np.floating] | None:
        """Return the kernel matrix of the training examples where Python has it (precomputed, callable), else None."""
        if callable(self.kind):
            return self._called(X, X)
        if not self.precomputed:
            return None
        if sp.issparse(X):
            raise ValueError("a precomputed kernel must be a dense matrix; use K.toarray()")
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                f"a precomputed kernel must be a square matrix when fitting, rows and columns being the "
                f"training examples; got {X.shape[0]} x {X.shape[1]}"
            )
        return X

    def _called(self, A: Matrix, B: Matrix) -> NDArray[np.float64]:
        K = np.ascontiguousarray(self.kind(A, B), dtype=np.float64)
        if K.shape != (A.shape[0], B.shape[0]):
            raise ValueError(
                f"the kernel function must return a matrix of shape {(A.shape[0], B.shape[0])}, got {K.shape}"
            )
        check_finite(K, "kernel(X, Y)")
        return K

    def values(self, X: Matrix, vectors: Matrix, support: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Return k(X, support vectors) where Python has it (precomputed, callable), else None."""
        if callable(self.kind):
            return self._called(X, vectors)
        if self.precomputed:
            columns = np.ascontiguousarray(X[:, support], dtype=np.float64)
            check_finite(columns, "X, in its columns of support vectors,")
            return columns
        return None
