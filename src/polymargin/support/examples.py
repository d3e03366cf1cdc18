"""Checking what users bring, and handing it to the core."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_consistent_length, validate_data

from polymargin import _core

Matrix = Any  # a dense array or a CSR matrix of float32 or float64; for a kernel in Python also a column of objects
_LARGEST_SQUARE = 1e300
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


def checked_examples(estimator: Any, X: Any, y: Any = "no_validation", *, reset: bool, finite: bool = True) -> Any:
    """Validate ``X`` (and ``y``) as scikit-learn does, and further: sound CSR structure, finite values by place.

    ``finite=False`` leaves the values to the caller, who may need only some of them.
    """
    if not reset and _is_alone(y) and _is_ready(estimator, X):
        if finite:
            check_finite(X, "X")
        return X
    if reset and not _is_alone(y) and _are_numbers(X) and _are_labels(y) and len(X) == len(y):
        estimator.n_features_in_ = X.shape[1]
        vars(estimator).pop("feature_names_in_", None)
        if finite:
            check_finite(X, "X")
        return X, y
    kernel = getattr(estimator, "kernel", None)
    if callable(kernel) and _are_objects(X):
        return _checked_objects(estimator, X, y, reset=reset)
    if sp.issparse(X):
        if isinstance(kernel, str) and kernel == "precomputed":
            raise TypeError("Sparse precomputed kernels are not supported: pass K.toarray()")
        _check_sparse_structure(X)
    options: dict[str, Any] = {
        "accept_sparse": "csr",
        "dtype": [np.float64, np.float32],
        "order": "C",
        "ensure_all_finite": False,
        "reset": reset,
    }
    alone = _is_alone(y)
    checked = validate_data(estimator, X, y, **options)
    X = checked if alone else checked[0]
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()  # the caller's matrix stays as it is
        X.sum_duplicates()
    if finite:
        check_finite(X, "X")
    return X if alone else (X, checked[1])


def _is_ready(estimator: Any, X: Any) -> bool:
    """Whether validation would return ``X`` itself: an array of numbers as the core takes them, of the right width."""
    return _are_numbers(X) and X.shape[1] == estimator.n_features_in_ and not hasattr(estimator, "feature_names_in_")


def _are_numbers(X: Any) -> bool:
    """Whether ``X`` is an array of numbers as the core takes them, which validation would leave as it is."""
    return (
        type(X) is np.ndarray and X.dtype in _FLOATS and X.ndim == 2 and min(X.shape) > 0 and bool(X.flags.c_contiguous)
    )


def _are_labels(y: Any) -> bool:
    """Whether ``y`` is a vector that validation would leave as it is, of a type that can only be classes."""
    return type(y) is np.ndarray and y.ndim == 1 and are_classes(y)


def are_classes(y: NDArray[Any]) -> bool:
    """Whether the type of ``y`` says that it holds classes: no value has to be looked at."""
    return y.dtype.kind in "biuU"


def _is_alone(y: Any) -> bool:
    """Whether there is no ``y`` to check; scikit-learn's word, for None is a missing y, an error."""
    return isinstance(y, str) and y == "no_validation"


def _are_objects(X: Any) -> bool:
    """Whether ``X`` is a sequence of things that are no rows of numbers: texts, graphs, sequences of any length."""
    if getattr(X, "ndim", 1) == 1 and hasattr(X, "dtype"):  # an array or a column of a table
        return getattr(X.dtype, "kind", "O") in "OUS"
    if not isinstance(X, list | tuple) or any(hasattr(item, "__array__") for item in X[:1]):
        return False
    try:
        return np.asarray(X).dtype.kind in "OUS"
    except ValueError:  # sequences of different lengths
        return True


def _checked_objects(estimator: Any, X: Any, y: Any, *, reset: bool) -> Any:
    """Return examples that only the kernel function understands as a column of objects (and ``y``)."""
    if reset:
        estimator.n_features_in_ = 1
        vars(estimator).pop("feature_names_in_", None)
    elif estimator.n_features_in_ != 1:
        raise ValueError(
            f"X has examples that are no rows of numbers, but {type(estimator).__name__} was fitted on rows of "
            f"{estimator.n_features_in_} numbers"
        )
    if len(X) == 0:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
    column = np.empty((len(X), 1), dtype=object)
    for row, item in enumerate(X):  # one by one: NumPy would look into items that are sequences
        column[row, 0] = item
    if _is_alone(y):
        return column
    y = validate_data(estimator, y=y)
    check_consistent_length(column, y)
    return column, y


def _check_sparse_structure(X: Any) -> None:
    if X.format == "csr":
        indices, indptr = np.ascontiguousarray(X.indices), np.ascontiguousarray(X.indptr)
        _core.check_csr(indices, indptr, len(X.data), *X.shape)
    elif X.format in ("csc", "bsr"):
        X.check_format(full_check=True)


def check_finite(X: Matrix, name: str, first_row: int = 0, columns: NDArray[np.int64] | None = None) -> None:
    """Raise ValueError, naming row and column, if there is a NaN or an infinity.

    X may begin at some row of another matrix, and have only these of its columns.
    """
    values = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):  # one fast pass; an overflowing sum of finite values is sorted out below
            return
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size == 0:
        return
    if sp.issparse(X):
        row, column = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1, int(X.indices[bad[0]])
    else:
        row, column = (int(i) for i in np.unravel_index(bad[0], X.shape))
    column = column if columns is None else int(columns[column])
    value = "NaN" if np.isnan(values.flat[bad[0]]) else "infinity"
    raise ValueError(
        f"Input {name} contains {value} at row {first_row + row}, column {column}; every value must be finite. "
        "Drop such rows or fill them, for example with sklearn.impute.SimpleImputer."
    )


def check_squares(X: Matrix, numbers: NDArray[np.int64]) -> None:
    """Raise ValueError if a row is so long that products with it overflow, as the core does where it reads the rows.

    ``numbers`` are those of the rows of ``X`` in what the user gave.
    """
    with np.errstate(over="ignore"):
        squares = row_norms(X.astype(np.float64, copy=False), squared=True)
    too_long = np.flatnonzero(~(squares <= _LARGEST_SQUARE))
    if too_long.size == 0:
        return
    column = int(np.abs(dense(X[too_long[:1]])).argmax())
    raise ValueError(
        f"the value in row {numbers[too_long[0]]}, column {column} is too large: its square overflows. Scale the data, "
        "for example with StandardScaler"
    )


def core_data(X: Matrix) -> _core.Data:
    """Wrap examples for the core without copying them."""
    if sp.issparse(X):
        return _core.Data.csr(
            np.ascontiguousarray(X.data),
            np.ascontiguousarray(X.indices),
            np.ascontiguousarray(X.indptr),
            *X.shape,
        )
    return _core.Data.dense(np.ascontiguousarray(X))


def rows_of(X: Matrix, rows: NDArray[np.int64]) -> Matrix:
    """Return a copy of some rows; NumPy takes whole rows twice as fast as it finds them by an index."""
    return X.take(rows, axis=0) if isinstance(X, np.ndarray) else X[rows]


def dense(X: Matrix) -> NDArray[Any]:
    """Return a matrix as an array."""
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def weighted_variance(X: Matrix, weight: NDArray[np.float64] | None) -> float:
    """Return the variance of all entries of ``X``, a row counting as often as its weight says."""
    with np.errstate(over="ignore", invalid="ignore"):
        if weight is None and not sp.issparse(X):
            return float(X.var(dtype=np.float64))
        rows = np.ones(X.shape[0]) if weight is None else weight
        count = rows.sum() * X.shape[1]
        mean = float(rows @ np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()) / count
        if sp.issparse(X):
            squares = X.multiply(X).sum(axis=1, dtype=np.float64)
            return float(rows @ np.asarray(squares).ravel()) / count - mean**2
        return float(rows @ ((X - mean) ** 2).sum(axis=1, dtype=np.float64)) / count
