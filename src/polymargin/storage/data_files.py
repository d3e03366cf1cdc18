"""Examples and their labels from files: svmlight or LIBSVM text, CSV, npz; the first two plain, .gz, .bz2 or .xz.

What a file is, its first bytes say; its name decides between CSV and svmlight where it ends in one of the two.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polymargin import _core
from polymargin.storage._csv import read_csv
from polymargin.storage._npz import read_npz
from polymargin.storage.files import PathLike
from polymargin.storage.labels import label_text, numbered
from polymargin.support.errors import with_hint

LabelColumn = Literal["first", "last", "none"]

_COMPRESSED: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError)
_NO_LABEL = "put any number, such as 0, where a label is not known"
_BLOCK = 1 << 22  # bytes read at once
_START = 1 << 12  # bytes looked at to tell what a text is
_ROWS = 4096  # rows written at once
_TABLES = {".csv": ",", ".tsv": "\t"}
_SPARSE_TEXTS = {".svm", ".libsvm", ".svmlight"}


def read_data(
    path: PathLike, *, label: LabelColumn = "first", header: bool | None = None, zero_based: bool = False
) -> tuple[Any, NDArray[Any]]:
    """Read examples and their labels.

    Every number must be finite. What is wrong is named by line and column, both counted from 1, in an npz file by
    array, row and column.

    Parameters
    ----------
    path : str or path-like
        A text of svmlight's or LIBSVM's format or a CSV file, either of them plain, .gz, .bz2 or .xz; or an npz file
        with ``X`` and ``y``, or with ``y`` beside what :func:`scipy.sparse.save_npz` writes for a CSR matrix.
    label : {"first", "last", "none"}, default="first"
        The column of a CSV file that has the labels. With ``"none"``, for CSV and npz, there are none.
    header : bool, default=None
        Whether a CSV file begins with a line of names. None is yes if no feature in that line is a number.
    zero_based : bool, default=False
        Whether the first feature of a svmlight text has index 0, not 1.

    Returns
    -------
    X : ndarray or csr_matrix of shape (n_samples, n_features)
        Examples. Those of a svmlight text are dense if at least half of the values are given, else sparse.
    y : ndarray of shape (n_samples,)
        Labels: whole numbers, floats or texts; empty with ``label="none"``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from polymargin.storage import read_data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "two.svm"
    ...     size = file.write_text("1 1:0.5 3:2  # a comment\\n-1 2:1 3:4\\n")
    ...     X, y = read_data(file)
    >>> X, y
    (array([[0.5, 0. , 2. ],
           [0. , 1. , 4. ]]), array([ 1, -1]))
    """
    examples = read_examples(path, label=label, header=header, zero_based=zero_based)
    return examples.X, examples.y


@dataclass(frozen=True)
class Examples:
    """What a file has."""

    kind: Literal["svmlight", "csv", "npz"]  # a svmlight text leaves out zeros, also those at the end of all rows
    X: Any
    y: NDArray[Any]


def read_examples(
    path: PathLike, *, label: LabelColumn = "first", header: bool | None = None, zero_based: bool = False
) -> Examples:
    """Read what :func:`read_data` reads, and tell what the file was."""
    with _opened(path) as file:
        start = _peek(file, 6)
        if start.startswith(b"PK"):
            return Examples("npz", *_named(path, read_npz, io.BytesIO(file.read()), label != "none"))
        with _plain(path, file, start) as text:
            separator = _separator(path, _peek(text, _START))
            if separator is not None:
                return Examples("csv", *_named(path, read_csv, text, separator, label, header))
            if label == "none":
                raise with_hint(ValueError(f"{path} is a svmlight text, which has labels"), _NO_LABEL)
            return Examples("svmlight", *_named(path, _read_svmlight, text, zero_based))


def base_name(path: PathLike) -> str:
    """Return the last part of a path without .gz, .bz2 or .xz."""
    name = Path(path).name
    return name.rsplit(".", 1)[0] if name.endswith((".gz", ".bz2", ".xz")) else name


# Files and what they are.


@contextmanager
def _opened(path: PathLike) -> Iterator[io.BufferedReader]:
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        raise ValueError(f"{path} is not a file; give the name of a file")
    with open(path, "rb") as file:
        yield file


@contextmanager
def _plain(path: PathLike, file: io.BufferedReader, start: bytes) -> Iterator[io.BufferedReader]:
    """Yield the text of a file that may be compressed."""
    unpack = next((unpack for magic, unpack in _COMPRESSED.items() if start.startswith(magic)), None)
    if unpack is None:
        yield file
        return
    try:
        with io.BufferedReader(unpack(file, "rb"), _START) as text:
            yield text
    except _DAMAGED as error:
        raise ValueError(f"{path} is compressed, and damaged: {error}") from None


def _peek(file: io.BufferedReader, size: int) -> bytes:
    return file.peek(size)[:size]


def _separator(path: PathLike, start: bytes) -> str | None:
    """Return what separates the values of a CSV file, or None for a svmlight text."""
    suffix = Path(base_name(path)).suffix.lower()
    line = next((line for line in start.splitlines() if line.strip() and not line.startswith(b"#")), b"")
    if suffix in _TABLES:
        comma = _TABLES[suffix]
        return ";" if comma == "," and b"," not in line and b";" in line else comma
    if suffix in _SPARSE_TEXTS or b":" in line:
        return None
    return next((chr(mark) for mark in b",;" if mark in line), None)


def _named(path: PathLike, read: Any, *arguments: Any) -> Any:
    """Call a reader and put the name of the file before what it finds wrong."""
    try:
        return read(*arguments)
    except ValueError as error:
        raise with_hint(ValueError(f"{path}, {error}"), next(iter(getattr(error, "__notes__", ())), None)) from None


# svmlight.


def _read_svmlight(text: IO[bytes], zero_based: bool) -> tuple[Any, NDArray[Any]]:
    reader = _core.SvmlightReader(zero_based)
    try:
        while block := text.read(_BLOCK):
            reader.feed(block)
        read = reader.finish()
    except ValueError as error:
        _add_hint(error)
        raise
    labels, values = read.labels, read.values
    if len(labels) == 0:
        raise ValueError("line 1, column 1: expected an example, got an empty file")
    X = sp.csr_matrix((len(labels), read.features))
    X.data, X.indices, X.indptr = values, read.columns, read.row_starts  # as they are: the reader has checked them
    dense = 2 * len(values) >= len(labels) * read.features
    return X.toarray() if dense else X, numbered(labels)


def _add_hint(error: ValueError) -> None:
    message = str(error)
    if "got '0:" in message and "from 1 " in message:
        error.add_note("indices start at 1; read a file whose indices start at 0 with --zero-based, zero_based=True")
    elif "expected a label before" in message:
        error.add_note(_NO_LABEL)


def svmlight_text(X: Any, y: NDArray[Any]) -> Iterator[bytes]:
    """Yield examples as a svmlight text, some rows at a time, numbers so that they come back as they are."""
    if y.dtype.kind not in "iufb":
        error = ValueError(f"labels of a svmlight text are numbers, got {str(y[0])!r}")
        raise with_hint(error, "number the classes, for example with sklearn.preprocessing.LabelEncoder")
    for begin in range(0, X.shape[0], _ROWS):
        rows = sp.csr_matrix(X[begin : begin + _ROWS])
        rows.eliminate_zeros()
        lines = [
            " ".join([label_text(label), *map("{}:{!r}".format, (columns + 1).tolist(), values.tolist())])
            for label, columns, values in zip(
                y[begin : begin + _ROWS],
                np.split(rows.indices, rows.indptr[1:-1]),
                np.split(rows.data, rows.indptr[1:-1]),
                strict=True,
            )
        ]
        yield "".join(f"{line}\n" for line in lines).encode("ascii")
