"""Several labels for each example: what users bring, checked, and what they get back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from polymargin.support.numeric import Ints

FORMATS = ("array", "csr_array", "csr_matrix")
"""Forms of predictions: dense for dense labels, and sparse for sparse ones."""


@dataclass(frozen=True, eq=False)
class LabelSets:
    """Which labels each example has.

    Parameters
    ----------
    indicator : csr_array of bool of shape (n, k)
        True where example i has label m; nothing else is stored.
    form : str
        One of `FORMATS`: what predictions are to look like.
    """

    indicator: sp.csr_array
    form: str

    def __len__(self) -> int:
        return int(self.indicator.shape[0])

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return int(self.indicator.shape[1])

    def of(self, rows: Ints) -> LabelSets:
        """Return the labels of some examples."""
        return LabelSets(self.indicator[rows], self.form)

    @cached_property
    def _by_label(self) -> sp.csc_array:
        columns = self.indicator.tocsc()
        columns.sort_indices()
        return columns

    def members(self, label: int) -> Ints:
        """Return the examples that have a label, ascending."""
        begin, end = self._by_label.indptr[label : label + 2]
        return self._by_label.indices[begin:end].astype(np.int64)

    @cached_property
    def counts(self) -> Ints:
        """How many examples have each label."""
        return np.diff(self._by_label.indptr).astype(np.int64)

    @property
    def varying(self) -> Ints:
        """The labels that some examples have and others have not: only these can be learned."""
        return np.flatnonzero((self.counts > 0) & (self.counts < len(self)))

    def sorted(self) -> Ints:
        """Return an order of the examples in which equal sets are neighbours."""
        width = max(1, (self.n_labels + 7) // 8)
        keys = np.zeros((len(self), width), dtype=np.uint8)
        row = np.repeat(np.arange(len(self)), np.diff(self.indicator.indptr))
        label = self.indicator.indices
        np.bitwise_or.at(keys, (row, label // 8), (128 >> (label % 8)).astype(np.uint8))
        return np.argsort(keys.view(f"S{width}").ravel(), kind="stable")


def holds_label_sets(y: Any) -> bool:
    """Whether ``y`` is a matrix of two or more columns, and no vector of classes."""
    if sp.issparse(y):
        return True
    if isinstance(y, list | tuple):
        return bool(len(y)) and getattr(y[0], "__len__", None) is not None and not isinstance(y[0], str | bytes)
    shape: tuple[int, ...] = getattr(y, "shape", ())
    return len(shape) == 2 and shape[1] > 1


def checked_label_sets(y: Any) -> LabelSets:
    """Return what an indicator matrix says; raise ValueError, naming row and column, if it is none.

    Parameters
    ----------
    y : {array-like, sparse matrix} of shape (n, k)
        1 or True where an example has a label, 0 or False elsewhere.

    Returns
    -------
    LabelSets
        The labels of each example.
    """
    indicator: Any
    if sp.issparse(y):
        form = "csr_array" if isinstance(y, sp.sparray) else "csr_matrix"
        indicator = sp.csr_array(y)
        if indicator is y or np.shares_memory(indicator.data, y.data):
            indicator = indicator.copy()  # the caller's stays as it is
        indicator.sum_duplicates()
    else:
        form, indicator = "array", _dense_indicator(y)
    rows, labels = np.shape(indicator)
    if labels < 2:
        raise ValueError(
            f"an indicator matrix needs a column for each of two or more labels, got shape {(rows, labels)}; for one "
            "label pass a vector of 0 and 1"
        )
    if rows == 0:
        raise ValueError("the indicator matrix has no row")
    _check_values(indicator)
    indicator.eliminate_zeros()
    parts = np.ones(indicator.nnz, dtype=bool), indicator.indices, indicator.indptr
    return LabelSets(sp.csr_array(parts, shape=(rows, labels)), form)


def _dense_indicator(y: Any) -> sp.csr_array:
    """Return an array, a table or a sequence of rows as a sparse matrix."""
    try:
        rows = np.asarray(y)
    except ValueError:  # rows of different lengths
        rows = np.empty(0, dtype=object)
    if rows.ndim != 2 or rows.dtype.kind not in "biuf":
        raise ValueError(
            "y must be a vector of classes, or an indicator matrix of 0 and 1 with a row for each example and a column "
            "for each label; sequences of labels become one by sklearn.preprocessing.MultiLabelBinarizer"
        )
    return sp.csr_array(rows)


def _check_values(indicator: sp.csr_array) -> None:
    other = np.flatnonzero((indicator.data != 0) & (indicator.data != 1))
    if other.size > 0:
        row = int(np.searchsorted(indicator.indptr, other[0], side="right")) - 1
        raise ValueError(
            f"an indicator matrix holds 0 and 1 alone, but row {row}, column {indicator.indices[other[0]]} has "
            f"{indicator.data[other[0]]}"
        )


def indicator_of(present: Ints, form: str) -> Any:
    """Return labels as they were given: 1 where they are there, in an array of whole numbers or a sparse matrix."""
    if form == "array":
        return present
    return (sp.csr_array if form == "csr_array" else sp.csr_matrix)(present)
