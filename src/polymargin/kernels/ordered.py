"""Scores of rows on their own, each operation in a fixed order: LIBSVM's.

A matrix product sums in an order that depends on its shape, so the last digits of the scores of a row depend on the
rows beside it. Where they decide, the row is scored again by the functions here. Features are taken in ascending order
and support vectors in the order of the model, nothing is fused, and ``exp`` and ``tanh`` are those of the C library.
That is what ``svm-predict`` does, so that even where everything cancels the answers are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.extmath import row_norms

Floats = NDArray[np.float64]
Matrix = Any
_LARGEST = 1e150  # of sizes, which are multiplied by more
_COLUMNS = 256  # features that sparse rows are spread out to at once


def kernel_rows(kernel: Any, X: Matrix, vectors: Matrix, support: NDArray[np.int64]) -> Floats:
    """Return the kernel values of the rows with the support vectors, of each row as if it were alone."""
    if kernel.precomputed:
        return np.asarray(kernel.values(X, vectors, support), dtype=np.float64)
    if callable(kernel.kind):
        return np.vstack([kernel.values(X[i : i + 1], vectors, support) for i in range(X.shape[0])])
    with np.errstate(over="ignore", invalid="ignore"):
        if kernel.kind == "rbf":
            return _mapped(math.exp, -kernel.gamma * _squared_distances(X, vectors))
        products = ordered_products(X, vectors.T)
        if kernel.kind == "linear":
            return products
        inner = kernel.gamma * products + kernel.coef0
        return _mapped(math.tanh, inner) if kernel.kind == "sigmoid" else _powers(inner, kernel.degree)


def ordered_products(X: Matrix, columns: Matrix) -> Floats:
    """Return ``X @ columns``, the features summed one after the other."""
    # A sparse product goes from entry to entry, for one row after the other.
    rows = sp.csr_array(X).astype(np.float64)
    product = rows @ (sp.csr_array(columns) if sp.issparse(columns) else np.ascontiguousarray(columns, np.float64))
    return product.toarray() if sp.issparse(product) else np.asarray(product)


def ordered_sums(values: Floats, coefficients: Floats) -> Floats:
    """Return ``values @ coefficients``, the terms of each row summed one after the other."""
    if len(coefficients) == 0:
        return np.zeros(len(values))
    sums: Floats = np.add.accumulate(values * coefficients, axis=1)[:, -1]
    return sums


def kernel_sizes(kernel: Any, X: Matrix, vectors: Matrix) -> Floats:
    """Return for each row how large rounding makes the error of its kernel values, in units of the last place of 1."""
    with np.errstate(over="ignore"):
        squares = row_norms(X, squared=True).astype(np.float64)
        largest = float(row_norms(vectors, squared=True).max(initial=0.0))
        sizes = _sizes(kernel, squares, np.sqrt(squares) * math.sqrt(largest), largest)
    return np.minimum(sizes, _LARGEST)


def _sizes(kernel: Any, squares: Floats, products: Floats, largest: float) -> Floats:
    """Return the sizes from squared lengths, of the rows and the largest of the vectors, and bounds of products."""
    if kernel.kind == "linear":
        return products
    if kernel.kind == "rbf":
        return 1.0 + kernel.gamma * (squares + largest)
    inner = kernel.gamma * products
    if kernel.kind == "sigmoid":
        return 1.0 + inner
    sizes: Floats = max(1, kernel.degree) * (inner + abs(kernel.coef0)) ** kernel.degree
    return sizes


def _squared_distances(X: Matrix, vectors: Matrix) -> Floats:
    """Sum the squared differences of one feature after the other; where both are zero nothing changes."""
    out = np.zeros((X.shape[0], vectors.shape[0]))
    features = np.arange(X.shape[1])
    if sp.issparse(X) or sp.issparse(vectors):
        X, vectors = sp.csc_array(X), sp.csc_array(vectors)
        features = np.flatnonzero((np.diff(X.indptr) > 0) | (np.diff(vectors.indptr) > 0))
    for begin in range(0, len(features), _COLUMNS):
        some = features[begin : begin + _COLUMNS]
        columns, of_vectors = _dense(X[:, some]), _dense(vectors[:, some])
        for column, of_vector in zip(columns.T, of_vectors.T, strict=True):
            difference = column[:, None] - of_vector
            out += difference * difference
    return out


def _dense(X: Matrix) -> Floats:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def _mapped(function: Callable[[float], float], values: Floats) -> Floats:
    """Apply a function of the C library; NumPy's own may differ in the last digit."""
    return np.array([function(value) for value in values.ravel().tolist()], dtype=np.float64).reshape(values.shape)


def _powers(base: Floats, degree: int) -> Floats:
    """Return powers by squaring."""
    power = np.ones_like(base)
    while degree > 0:
        if degree % 2:
            power *= base
        base = base * base
        degree //= 2
    return power
