"""Data sets in files: svmlight, CSV and npz."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from polymargin.storage._files import PathLike


def read_data(path: PathLike, *, label: str = "first") -> tuple[Any, Any]:
    """Return the examples and classes of a file.

    Parameters
    ----------
    path : str or path
        The ending says what it is: ``.csv`` has the class in its first column, and a first line of names is skipped;
        ``.npz`` has arrays ``X`` and ``y``; anything else is svmlight's format, plain, ``.gz`` or ``.bz2``.
    label : {"first", "last"}, default="first"
        The column of a CSV file that has the classes.

    Returns
    -------
    tuple
        X and y; X is a CSR matrix for svmlight files and an array otherwise.
    """
    ending = Path(path).suffix.lower()
    if ending == ".csv":
        return _read_csv(path, label)
    if ending == ".npz":
        return _read_npz(path)
    return load_svmlight_file(str(path))


def _read_csv(path: PathLike, label: str) -> tuple[Any, Any]:
    cells = np.loadtxt(path, delimiter=",", dtype=str, encoding="utf-8", ndmin=2)
    cells = np.char.strip(cells)
    if cells.shape[1] < 2:
        raise ValueError(f"{path} has one column; a CSV file has features and a class")
    features, classes = (cells[:, 1:], cells[:, 0]) if label == "first" else (cells[:, :-1], cells[:, -1])
    if not _are_numbers(features[0]):  # names of columns
        features, classes = features[1:], classes[1:]
    if len(features) == 0:
        raise ValueError(f"{path} has no rows")
    for row, values in enumerate(features):
        if not _are_numbers(values):
            raise ValueError(f"{path}: example {row} has a feature that is not a number: {', '.join(values[:5])}")
    return features.astype(np.float64), classes


def _are_numbers(values: Any) -> bool:
    try:
        values.astype(np.float64)
    except ValueError:
        return False
    return True


def _read_npz(path: PathLike) -> tuple[Any, Any]:
    with np.load(path, allow_pickle=False) as arrays:
        missing = {"X", "y"} - set(arrays.files)
        if missing:
            raise ValueError(f"{path} must have arrays X and y, it has {', '.join(arrays.files) or 'none'}")
        return arrays["X"], arrays["y"]
