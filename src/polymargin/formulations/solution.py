"""What goes into the solver and what comes out of it, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

_ROUNDING = 1e-9  # of sums over many examples, relative

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TrainingSet:
    """The examples that take part, sorted by class: example ``g`` of the core is row ``order[g]`` of ``X``."""

    order: Ints
    bounds: Ints  # class c is [bounds[c], bounds[c + 1])
    upper: Floats  # C_i of each example, in this order
    weight: Floats  # the same without C: class weight times sample weight

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.bounds) - 1

    @property
    def largest(self) -> float:
        """The largest C_i."""
        return float(self.upper.max())

    def class_of(self, examples: Ints) -> Ints:
        """Return the classes of some examples, by their numbers in the core."""
        return np.searchsorted(self.bounds, examples, side="right") - 1

    def place_of(self, rows: Ints) -> Ints:
        """Return the core's numbers of some rows of ``X``, -1 for those that take no part."""
        place = np.full(int(max(self.order.max(), rows.max(initial=0))) + 1, -1)
        place[self.order] = np.arange(len(self.order))
        return place[rows]


@dataclass(frozen=True)
class Solution:
    """What every solved dual has; for a family of problems the objectives are those of each."""

    primal: Any
    dual: Any
    violation: Any
    iterations: Any
    status: Any
    evaluations: int

    @classmethod
    def of(cls, result: Any) -> Self:
        """Take from the core's result what belongs here; a status becomes its name."""
        values = {field.name: getattr(result, field.name) for field in fields(cls)}
        return cls(**values | {"status": _names(values["status"])})

    @property
    def stop_reason(self) -> str:
        """Why the solver stopped: "converged", or the first other reason."""
        reasons = [self.status] if isinstance(self.status, str) else self.status
        return next((s for s in reasons if s != "converged"), "converged")

    @property
    def gap(self) -> float:
        """The relative duality gap of all problems together."""
        return relative_gap(float(np.sum(self.primal)), float(np.sum(self.dual)))


@dataclass(frozen=True)
class BinarySolution(Solution):
    """The solved binary problems: coefficients of problem p are ``[starts[p], starts[p + 1])``.

    ``held_out`` has, problem after problem, each example's decision value by the machine without its fold; it is empty
    if there were no folds.
    """

    starts: Ints
    support: Ints
    beta: Floats
    intercept: Floats
    held_out: Floats

    @property
    def problem(self) -> Ints:
        """The problem that each coefficient belongs to."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


@dataclass(frozen=True)
class TogetherSolution(Solution):
    """The solved dual of an all-together machine: the coefficients of each support vector are one row."""

    support: Ints
    rows: Floats
    intercept: Floats


def _names(status: Any) -> Any:
    """Return what users know a status of the core by, or those of a list."""
    return [_names(each) for each in status] if isinstance(status, list) else getattr(status, "name", status)


def relative_gap(primal: float, dual: float) -> float:
    """Return (primal - dual) / max(|primal|, |dual|), 0 when both are 0, inf while there is no primal point.

    Weak duality holds exactly: a gap that is negative within rounding is none.
    """
    if not np.isfinite(primal) or not np.isfinite(dual):
        return float("inf")
    scale = max(abs(primal), abs(dual))
    gap = (primal - dual) / scale if scale > 0 else 0.0
    return 0.0 if -_ROUNDING < gap < 0 else gap
