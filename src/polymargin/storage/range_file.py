"""Ranges of features, as LIBSVM's ``svm-scale`` keeps them, and data scaled by them.

A file has the line ``x``, a line with the ends of the range to scale to, and for each feature that is not constant a
line ``index minimum maximum``, indices counted from 1.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from polymargin.storage._words import BadLineError, words_of
from polymargin.storage.files import PathLike, read_whole, replace_whole
from polymargin.support.errors import with_hint
from polymargin.support.memory import available_bytes
from polymargin.support.numeric import Floats


@dataclass(frozen=True)
class Ranges:
    r"""The least and the largest value of each feature, and the range they are taken to.

    A value x of feature j becomes

    .. math:: l + (u - l) \frac{x - \min_j}{\max_j - \min_j},

    and 0 if the feature is constant, for then it tells nothing.
    """

    lower: float
    upper: float
    least: Floats
    largest: Floats

    @classmethod
    def of(cls, X: Any, lower: float = -1.0, upper: float = 1.0) -> Ranges:
        """Return the ranges of some examples; what a sparse matrix leaves out counts as zero."""
        if not (np.isfinite([lower, upper]).all() and lower < upper):
            raise ValueError(f"the range to scale to must have two finite ends in order, got {lower:g} to {upper:g}")
        least, largest = (_dense_row(X.min(axis=0)), _dense_row(X.max(axis=0)))
        with np.errstate(over="ignore"):
            wide = np.flatnonzero(~np.isfinite(largest - least))
        if wide.size:
            raise ValueError(
                f"feature {wide[0] + 1} goes from {least[wide[0]]:g} to {largest[wide[0]]:g}, too wide to scale"
            )
        return cls(float(lower), float(upper), least, largest)

    def apply(self, X: Any) -> Any:
        """Return the examples scaled, with as many features as there are ranges.

        Features beyond them are left out with a warning, missing ones are zeros. A sparse matrix stays sparse if zeros
        stay zeros.
        """
        X = self._fitted(X)
        used = self.largest > self.least
        if sp.issparse(X):
            zeros = np.where(used, self._scaled(np.zeros(len(used)), slice(None)), 0.0)
            if not zeros.any():
                scaled = np.where(used[X.indices], self._scaled(X.data, X.indices), 0.0)
                return sp.csr_matrix((scaled, X.indices, X.indptr), shape=X.shape)
            X = self._made_dense(X)
        return np.where(used, self._scaled(X, slice(None)), 0.0)

    def _scaled(self, values: Floats, columns: Any) -> Floats:
        least, largest = self.least[columns], self.largest[columns]
        width = np.where(largest > least, largest - least, 1.0)
        scaled = self.lower + (self.upper - self.lower) * (values - least) / width
        scaled = np.where(values == largest, self.upper, scaled)  # exactly, whatever rounding says
        return np.where(values == least, self.lower, scaled)

    def _fitted(self, X: Any) -> Any:
        """Return the examples with as many columns as there are ranges."""
        width = len(self.least)
        if X.shape[1] > width:
            beyond = X[:, width:]
            if beyond.max() != 0 or beyond.min() != 0:
                warnings.warn(
                    f"features {width + 1} to {X.shape[1]} are not in the ranges and are left out", stacklevel=3
                )
            return X[:, :width]
        return widened(X, width)

    def _made_dense(self, X: Any) -> Floats:
        needed = 8 * X.shape[0] * X.shape[1]
        if 3 * needed > available_bytes():
            error = ValueError(
                f"zeros become other numbers in [{self.lower:g}, {self.upper:g}], and {needed / 1e9:.1f} GB of them "
                "do not fit the memory"
            )
            raise with_hint(error, "scale sparse data to [0, 1] with -l 0, where zeros stay zeros")
        return np.asarray(X.toarray())

    def save(self, path: PathLike) -> None:
        """Write the file, whole or not at all."""
        used = np.flatnonzero(self.largest > self.least)
        lines = ["x", f"{self.lower!r} {self.upper!r}"]
        pairs = zip(used.tolist(), self.least[used].tolist(), self.largest[used].tolist(), strict=True)
        lines += [f"{j + 1} {least!r} {largest!r}" for j, least, largest in pairs]
        replace_whole(path, ["".join(f"{line}\n" for line in lines).encode("ascii")])


def read_ranges(path: PathLike) -> Ranges:
    """Read ranges that ``svm-scale -s`` or :meth:`Ranges.save` wrote; ValueError names line and column."""
    lines = read_whole(path).splitlines()
    try:
        return _ranges([words_of(line, number + 1) for number, line in enumerate(lines)])
    except BadLineError as error:
        raise ValueError(f"{path}, {error}") from None


def _ranges(lines: list[Any]) -> Ranges:
    lines = [words for words in lines if words]
    if not lines or [word.text for word in lines[0]] != [b"x"]:
        raise BadLineError(1, 1, "expected a file of svm-scale, which begins with a line x")
    if len(lines) < 2:
        raise BadLineError(lines[0][0].line + 1, 1, "expected the ends of the range to scale to")
    lower, upper = (word.real() for word in _counted(lines[1], 2))
    if not lower < upper:
        lines[1][1].refuse(f"expected an upper end above {lower:g}")
    rows = [_counted(words, 3) for words in lines[2:]]
    last = 0
    for index, least, largest in rows:
        last = index.whole(last + 1)
        if not least.real() <= largest.real() or not np.isfinite(largest.real() - least.real()):
            largest.refuse(f"expected a maximum of at least {least.real():g}")
    ends = np.zeros((2, last))
    for index, *values in rows:
        ends[:, int(index.text) - 1] = [word.real() for word in values]
    return Ranges(lower, upper, ends[0], ends[1])


def _counted(words: list[Any], count: int) -> list[Any]:
    if len(words) != count:
        words[min(len(words), count) - 1].refuse(f"expected {count} numbers in this line, not {len(words)}")
    return words


def _dense_row(row: Any) -> Floats:
    return np.asarray(row.toarray() if sp.issparse(row) else row, dtype=np.float64).reshape(-1)


def widened(X: Any, width: int) -> Any:
    """Return examples with zeros for the features that are missing at the end."""
    missing = width - X.shape[1]
    if missing <= 0:
        return X
    if sp.issparse(X):
        return sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
    return np.hstack([X, np.zeros((X.shape[0], missing), dtype=X.dtype)])
