"""Examples from npz files."""

from __future__ import annotations

import io
import tokenize
import zipfile
import zlib
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polymargin import _core
from polymargin.support.errors import with_hint
from polymargin.support.examples import check_finite

_PARTS = ("data", "indices", "indptr", "shape")
_DAMAGED = (
    *(ValueError, OSError, EOFError, KeyError, TypeError, OverflowError, SyntaxError, tokenize.TokenError),
    *(zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, MemoryError, AttributeError, UnicodeError),
)


def read_npz(file: io.BytesIO, labelled: bool) -> tuple[Any, NDArray[Any]]:
    """Return the examples and the labels of an npz file; ValueError names the array."""
    arrays = _arrays(file, labelled)
    X = _dense(arrays["X"]) if "X" in arrays else _csr(arrays)
    check_finite(X, "array 'X'")
    if not labelled:
        return X, np.empty(0, dtype=np.int64)
    return X, _labels(arrays["y"], X.shape[0])


def _arrays(file: io.BytesIO, labelled: bool) -> dict[str, NDArray[Any]]:
    """Return the arrays that are needed, and no other: nothing in the file is unpickled."""
    try:
        with np.load(file, allow_pickle=False) as npz:
            names = list(npz)
            needed = {"X"} if "X" in names else {*_PARTS}
            needed |= {"y"} if labelled else set()
            missing = sorted(needed - set(names))
            arrays = {} if missing else {name: npz[name] for name in sorted(needed)}
    except _DAMAGED as error:
        raise ValueError(f"which is not a sound npz file: {error}") from None
    if missing:
        raise with_hint(
            ValueError(f"array {missing[0]!r} is missing: expected X, or data, indices, indptr and shape, and y"),
            f"there are {', '.join(names) or 'none'}; numpy.savez(file, X=X, y=y) writes what is needed",
        )
    return arrays


def _dense(X: NDArray[Any]) -> NDArray[Any]:
    if X.ndim != 2 or X.dtype.kind not in "iufb" or 0 in X.shape:
        raise ValueError(f"array 'X': expected a matrix of numbers, got type {X.dtype} and shape {X.shape}")
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _csr(arrays: dict[str, NDArray[Any]]) -> Any:
    data, indices, indptr, shape = (arrays[name] for name in _PARTS)
    for name, kinds in zip(_PARTS, ("fiu", "iu", "iu", "iu"), strict=True):
        if arrays[name].ndim != 1 or arrays[name].dtype.kind not in kinds:
            raise ValueError(f"array {name!r}: expected a vector of numbers, got type {arrays[name].dtype}")
    if shape.shape != (2,) or np.min(shape) < 1 or np.max(shape) >= 2**62:
        raise ValueError(f"array 'shape': expected rows and columns, got {shape.tolist()[:4]}")
    rows, columns = (int(size) for size in shape)
    wide = np.int64 if max(indices.dtype.itemsize, indptr.dtype.itemsize) > 4 else np.int32
    indices, indptr = indices.astype(wide), indptr.astype(wide)
    try:
        _core.check_csr(indices, indptr, len(data), rows, columns)
    except ValueError as error:
        raise ValueError(f"arrays 'indices' and 'indptr': {error}") from None
    if indptr[-1] != len(data):
        raise ValueError(f"array 'indptr': expected {len(data)}, the number of values, at its end, got {indptr[-1]}")
    values = data if data.dtype in (np.float32, np.float64) else data.astype(np.float64)
    return sp.csr_matrix((values, indices, indptr), shape=(rows, columns))


def _labels(y: NDArray[Any], n_rows: int) -> NDArray[Any]:
    if y.shape != (n_rows,) or y.dtype.kind not in "iufbU":
        raise ValueError(f"array 'y': expected {n_rows} numbers or texts, got type {y.dtype} and shape {y.shape}")
    if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
        raise ValueError(
            f"array 'y': expected finite numbers, got {y[~np.isfinite(y)][0]} in row {np.argmin(np.isfinite(y))}"
        )
    return y
