"""Types of arrays, and the relative gap that every certificate has."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Matrix: TypeAlias = Any
"""A dense array or a CSR matrix of float32 or float64; for a kernel in Python also a column of objects."""

_ROUNDING = 1e-9  # of sums over many examples, relative

SMALL_GAP, OPEN_GAP = 1e-3, 1e-2
"""Relative gaps up to which an answer is as good as any, and above which it may be far from the optimum: whoever shows
one says so."""


def relative_gap(primal: float, dual: float) -> float:
    """Return (primal - dual) / max(|primal|, |dual|), 0 when both are 0, inf while there is no primal point.

    Weak duality holds exactly: a gap that is negative within rounding is none.
    """
    if not np.isfinite(primal) or not np.isfinite(dual):
        return float("inf")
    scale = max(abs(primal), abs(dual))
    gap = (primal - dual) / scale if scale > 0 else 0.0
    return 0.0 if -_ROUNDING < gap < 0 else gap


def gap_style(gap: float | None) -> str:
    """Return the style in which rich shows a relative gap: green, yellow or red."""
    if gap is None:
        return ""
    return "green" if gap <= SMALL_GAP else "yellow" if gap <= OPEN_GAP else "bold red"
