"""Folds for inner cross-validation that depend on the examples, not on where they stand."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import hash as hash_of
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from polymargin.formulations.training import TrainingSet
from polymargin.support.examples import Matrix
from polymargin.support.numeric import Ints

FOLDS = 5
_AT_ONCE = 1 << 17  # entries hashed together: few enough to stay in the cache


def folds_of(X: Matrix, training: TrainingSet, random_state: Any) -> Ints:
    """Return the fold of each example, in the core's order; -1 for one that is never held out.

    The distinct rows of a class are dealt out to the folds in the order of a hash of their values. So folds are
    stratified; equal rows share a fold, which makes a row given twice the same as weight 2 and keeps copies of a
    held-out example out of training; and neither the order of the rows matters (but for a precomputed kernel, whose
    columns move with it) nor whether they are dense or sparse. ``random_state`` chooses the hash, None always the same
    one. The only distinct row of a class is not held out: nothing would be left to learn the class from.
    """
    hashes = _row_hashes(X, random_state)[training.order]
    folds = np.empty(len(hashes), dtype=np.int64)
    for begin, end in zip(training.class_starts, training.class_starts[1:], strict=False):
        distinct, rank = np.unique(hashes[begin:end], return_inverse=True)
        folds[begin:end] = rank % FOLDS if len(distinct) > 1 else -1
    return folds


def _row_hashes(X: Matrix, random_state: Any) -> NDArray[np.uint64]:
    """Hash each row to 64 bits: a sum, modulo 2^64, of its values' bits times a random odd number for each feature.

    The sum is exact, so its order does not matter, and a zero adds nothing, so sparse rows need only what they store.
    """
    rng = check_random_state(0 if random_state is None else random_state)
    if X.dtype == object:
        seed = rng.randint(2**31)
        return np.array([int(hash_of((seed, item))[:16], 16) for item in X[:, 0]], dtype=np.uint64)
    factors = rng.randint(0, np.iinfo(np.uint64).max, X.shape[1], dtype=np.uint64) | np.uint64(1)
    hashes = np.empty(X.shape[0], dtype=np.uint64)
    rows = max(1, _AT_ONCE // max(1, X.shape[1]))
    for begin in range(0, len(hashes), rows):
        part = X[begin : begin + rows]
        if sp.issparse(part):
            sums = np.concatenate([[np.uint64(0)], np.cumsum(_bits(part.data) * factors[part.indices])])
            hashes[begin : begin + rows] = np.diff(sums[part.indptr])
        else:
            hashes[begin : begin + rows] = (_bits(part) * factors).sum(axis=1, dtype=np.uint64)
    return hashes


def _bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the bits of numbers as float64, -0 as 0, with the high half mixed into the low one, often all zeros."""
    bits = (np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)
    return bits ^ (bits >> np.uint64(32))
