"""Kernel values by their formulas, of rows on their own, each operation in a fixed order: LIBSVM's.

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

from polymargin import _core
from polymargin.kernels.kernel import Kernel
from polymargin.kernels.table import Floats

Matrix = Any
Term = Callable[[Floats, Floats], Floats]
_LARGEST = 1e150  # of sizes, which are multiplied by more
_COLUMNS = 256  # features that sparse rows are spread out to at once


def kernel_rows(kernel: Kernel, X: Matrix, vectors: Matrix, support: NDArray[np.int64]) -> Floats:
    """Return the kernel values of the rows with the support vectors, of each row as if it were alone."""
    if kernel.precomputed:
        return np.asarray(kernel.values(X, vectors, support), dtype=np.float64)
    if callable(kernel.kind):
        return np.vstack([kernel.called(X[i : i + 1], vectors) for i in range(X.shape[0])])
    return formula_values(kernel, X, vectors)


def formula_values(kernel: Kernel, X: Matrix, vectors: Matrix) -> Floats:
    """Return the kernel values of two matrices of examples by the formula in the table, without the core."""
    entry = kernel.entry
    assert entry is not None
    with np.errstate(over="ignore", invalid="ignore"):
        if entry.reads is _core.KernelInput.products:
            return entry.value(kernel, ordered_products(X, vectors.T))
        return entry.value(kernel, _feature_sums(entry.term or _squared_difference, X, vectors))


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


def kernel_sizes(kernel: Kernel, X: Matrix, vectors: Matrix) -> Floats:
    """Return for each row how large rounding makes the error of its kernel values, in units of the last place of 1."""
    entry = kernel.entry
    assert entry is not None
    with np.errstate(over="ignore"):
        if entry.term is not None:
            sizes = _totals(entry.term, X) + _totals(entry.term, vectors).max(initial=0.0)
        else:
            squares = row_norms(X, squared=True).astype(np.float64)
            largest = float(row_norms(vectors, squared=True).max(initial=0.0))
            products = entry.reads is _core.KernelInput.products
            sizes = np.sqrt(squares) * math.sqrt(largest) if products else squares + largest
        return np.minimum(entry.rounding(kernel, sizes), _LARGEST)


def _squared_difference(x: Floats, y: Floats) -> Floats:
    difference = x - y
    squared: Floats = difference * difference
    return squared


def _totals(term: Term, X: Matrix) -> Floats:
    """Return for each row the sum of the absolute terms with a row of zeros."""
    if sp.issparse(X):
        terms = sp.csr_array((np.abs(term(X.data.astype(np.float64), np.zeros(1))), X.indices, X.indptr), X.shape)
        return np.asarray(terms.sum(axis=1), dtype=np.float64).ravel()
    totals: Floats = np.abs(term(_dense(X), np.zeros(1))).sum(axis=1)
    return totals


def _feature_sums(term: Term, X: Matrix, vectors: Matrix) -> Floats:
    """Sum the terms of one feature after the other; where both are zero nothing changes."""
    out = np.zeros((X.shape[0], vectors.shape[0]))
    features = np.arange(X.shape[1])
    if sp.issparse(X) or sp.issparse(vectors):
        X, vectors = sp.csc_array(X), sp.csc_array(vectors)
        features = np.flatnonzero((np.diff(X.indptr) > 0) | (np.diff(vectors.indptr) > 0))
    for begin in range(0, len(features), _COLUMNS):
        some = features[begin : begin + _COLUMNS]
        columns, of_vectors = _dense(X[:, some]), _dense(vectors[:, some])
        for column, of_vector in zip(columns.T, of_vectors.T, strict=True):
            out += term(column[:, None], of_vector)
    return out


def _dense(X: Matrix) -> Floats:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
