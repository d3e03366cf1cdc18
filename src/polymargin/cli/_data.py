"""Data and models from files, made to fit each other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polymargin.storage import import_libsvm, load_model
from polymargin.storage.data_files import Examples, LabelColumn, read_examples
from polymargin.storage.files import read_whole
from polymargin.storage.range_file import Ranges, read_ranges, widened
from polymargin.support.errors import with_hint

_LIBSVM = (b"svm_type", b"kernel_type", b"nr_class", b"total_sv", b"rho", b"label", b"gamma", b"degree", b"coef0")


def load_training(
    path: Path,
    *,
    label: LabelColumn,
    header: bool | None,
    zero_based: bool,
    precomputed: bool = False,
    ranges: Path | None = None,
) -> Examples:
    """Read labelled examples, or with ``precomputed`` their kernel matrix."""
    if label == "none":
        raise ValueError(f"{path}: there is nothing to learn without labels: give --label first or last")
    examples = read_examples(path, label=label, header=header, zero_based=zero_based or precomputed)
    if precomputed:
        n = examples.X.shape[0]
        return replace(examples, X=_kernel_values(path, examples, n, numbers=np.arange(1, n + 1)))
    return _scaled(examples, ranges)


def load_queries(
    path: Path, model: Path, *, label: LabelColumn, header: bool | None, zero_based: bool, ranges: Path | None
) -> tuple[Any, Examples]:
    """Return a model and the examples it is asked about, as wide as it needs them."""
    machine = load_any_model(model)
    if getattr(machine, "multilabel_", False):
        error = ValueError(f"{model} has several labels for each example, which no file of this command holds")
        raise with_hint(error, "load it with polymargin.load_model and predict in Python")
    precomputed = machine.model_.kernel.precomputed
    examples = read_examples(path, label=label, header=header, zero_based=zero_based or precomputed)
    if precomputed:
        return machine, replace(examples, X=_kernel_values(path, examples, machine.n_features_in_))
    examples = _scaled(examples, ranges)
    width = examples.X.shape[1]
    if width > machine.n_features_in_ and machine.stop_reason_ == "imported":
        machine = import_libsvm(model, n_features=width)  # the file tells no more than the largest index in it
    short = examples.kind == "svmlight" or ranges is not None  # zeros at the end are left out
    if width > machine.n_features_in_ or (width < machine.n_features_in_ and not short):
        error = ValueError(f"{path} has {width} features, but {model} was trained with {machine.n_features_in_}")
        off_by_one = examples.kind == "csv" and abs(width - machine.n_features_in_) == 1
        raise with_hint(error, "--label says which column has the labels: first, last, none" if off_by_one else None)
    return machine, replace(examples, X=widened(examples.X, machine.n_features_in_))


def load_any_model(path: Path) -> Any:
    """Return the machine of a file, which polymargin or LIBSVM wrote."""
    start = read_whole(path)[:64].lstrip()
    return import_libsvm(path) if start.startswith(_LIBSVM) else load_model(path)


def rate(predicted: NDArray[Any], labels: NDArray[Any]) -> float | None:
    """Return the share of correct labels, or None if there is nothing to compare with."""
    if len(labels) == 0 or (predicted.dtype.kind == "U") != (labels.dtype.kind == "U"):
        return None
    return float(np.mean(predicted == labels))


def _scaled(examples: Examples, ranges: Path | None) -> Examples:
    if ranges is None:
        return examples
    return replace(examples, X=scaled_by(read_ranges(ranges), examples.X))


def scaled_by(ranges: Ranges, X: Any) -> Any:
    """Return scaled examples: dense if at least half of the values are not zero."""
    X = ranges.apply(X)
    return X.toarray() if sp.issparse(X) and 2 * X.nnz >= X.shape[0] * X.shape[1] else X


def _kernel_values(path: Path, examples: Examples, n: int, numbers: NDArray[Any] | None = None) -> NDArray[Any]:
    """Return kernel values with n training examples.

    As in LIBSVM, the feature of index 0 is the number of the example, from 1; CSV and npz files may leave it out.
    """
    X = examples.X.toarray() if sp.issparse(examples.X) else examples.X
    X = widened(X, n + 1) if examples.kind == "svmlight" else X
    if X.shape[1] == n and examples.kind != "svmlight":
        return X
    if X.shape[1] != n + 1:
        raise ValueError(f"{path} has {X.shape[1] - 1} kernel values in each row, expected {n}")
    if numbers is not None and not np.array_equal(X[:, 0], numbers):
        i = int(np.argmax(X[:, 0] != numbers))
        raise with_hint(
            ValueError(f"{path}: expected 0:{i + 1} in example {i + 1}, got 0:{X[i, 0]:g}"),
            "with a precomputed kernel a line is: label 0:number 1:K(x, x1) 2:K(x, x2) and so on, as in LIBSVM",
        )
    return np.ascontiguousarray(X[:, 1:])
