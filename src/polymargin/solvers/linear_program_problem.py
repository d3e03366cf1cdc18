"""The whole program of the linear programming machine: what a point is worth, what it violates, the best point so far.

``polymargin.solvers.linear_program`` has the formulas.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import scipy.sparse as sp

from polymargin.support.numeric import Floats, Ints, relative_gap

MARGIN = 2.0  # of an example's own class over every other
_NEGLIGIBLE_MULTIPLIER = 1e-9  # relative to the largest: what rounding leaves of zero


class KernelValues(Protocol):
    """The matrix K of kernel values ``K[i, m] = k(x_i, x_m)`` between the examples, sorted by class."""

    def block(self, rows: Ints, columns: Ints) -> Floats:
        """Return ``K[rows][:, columns]``."""

    def product(self, columns: Ints, coefficients: Floats) -> Floats:
        """Return ``K[:, columns] @ coefficients``."""

    def transposed_product(self, rows: Ints, coefficients: Floats) -> Floats:
        """Return ``K[rows].T @ coefficients``."""


class LinearProgram:
    """Objectives and constraints, over all examples and classes."""

    def __init__(self, kernel_values: KernelValues, class_starts: Ints, cost_bounds: Floats) -> None:
        n, k = len(cost_bounds), len(class_starts) - 1
        self.kernel_values = kernel_values
        self.class_starts = class_starts
        self.cost_bounds = cost_bounds
        self.hard: bool = bool(np.isinf(cost_bounds[0]))
        self.labels: Ints = np.repeat(np.arange(k), np.diff(class_starts))
        self.own: tuple[Ints, Ints] = (np.arange(n), self.labels)
        self.shape: tuple[int, int] = (n, k)

    def shortfalls(self, coefficients: Floats, intercept: Floats | None = None) -> Floats:
        """Return by how much each margin is missed (n, k), -inf for the own class; without intercepts if None."""
        used = np.flatnonzero(coefficients)
        by_class = np.zeros((len(used), self.shape[1]))
        by_class[np.arange(len(used)), self.labels[used]] = coefficients[used]
        scores = self.kernel_values.product(used, by_class)
        shortfalls = MARGIN - (scores[self.own][:, None] - scores)
        shortfalls[self.own] = -np.inf
        return shortfalls if intercept is None else self.with_intercept(shortfalls, intercept)

    def with_intercept(self, shortfalls: Floats, intercept: Floats) -> Floats:
        """Return what shortfalls become with intercepts."""
        return shortfalls - (intercept[self.labels][:, None] - intercept)

    def primal(self, coefficients: Floats, shortfalls: Floats, cost_bounds: Floats) -> float:
        """Return the primal objective for some costs, infinite where a hard margin is missed."""
        hinges = np.maximum(shortfalls, 0.0).sum(axis=1)
        missed = hinges > 0
        return float(coefficients.sum() + cost_bounds[missed] @ hinges[missed])

    def dual_activities(self, multipliers: sp.csr_array) -> Floats:
        """Return the left sides of the dual's constraints, one for each coefficient: at most 1 where it is feasible."""
        B = -multipliers.toarray()
        B[self.own] = -B.sum(axis=1)
        used = np.flatnonzero(B.any(axis=1))
        return self.kernel_values.transposed_product(used, B[used])[self.own]

    def multiplier_matrix(self, examples: Ints, rivals: Ints, multipliers: Floats) -> sp.csr_array:
        """Return the multipliers of pairs (example, other class) as a matrix (n, k)."""
        used = multipliers > 0
        return sp.csr_array((multipliers[used], (examples[used], rivals[used])), shape=self.shape)


class BestPoints:
    """The best point of either program so far."""

    def __init__(self, program: LinearProgram) -> None:
        n, k = program.shape
        self.program = program
        self.coefficients: Floats = np.zeros(n)
        self.intercept: Floats = np.zeros(k)
        self.multipliers: sp.csr_array = sp.csr_array((n, k))
        self.primal: float = program.primal(
            self.coefficients, program.shortfalls(self.coefficients), program.cost_bounds
        )
        self.dual: float = 0.0

    @property
    def gap(self) -> float:
        """The relative gap."""
        return relative_gap(self.primal, self.dual)

    def update_primal(
        self, coefficients: Floats, intercept: Floats, shortfalls: Floats, allowed_loss: float = 0.0
    ) -> bool:
        """Take a point, or its multiple that has every margin, if it is better, or worse by no more than allowed.

        Returns whether it was taken.
        """
        factor, value = 1.0, self.program.primal(coefficients, shortfalls, self.program.cost_bounds)
        smallest = MARGIN - float(shortfalls.max())
        if smallest > 0:
            scaled = MARGIN / smallest
            if scaled * float(coefficients.sum()) < value:
                factor, value = scaled, scaled * float(coefficients.sum())
        if value > self.primal * (1.0 + allowed_loss):
            return False
        self.primal, self.coefficients, self.intercept = value, factor * coefficients, factor * intercept
        return True

    def update_dual(self, multipliers: sp.csr_array, largest_activity: float) -> None:
        """Take a point, scaled until it is feasible, if it is better."""
        feasible = multipliers / max(1.0, largest_activity)
        value = MARGIN * float(feasible.sum())
        if value >= self.dual:
            self.dual, self.multipliers = value, feasible

    def centre_intercepts(self, allowed_loss: float) -> None:
        """Move the intercepts to the middle of those that are as good."""
        shortfalls = self.program.shortfalls(self.coefficients)
        intercept = middle_intercept(self.program, shortfalls, self.intercept, self.multipliers.toarray())
        shortfalls = self.program.with_intercept(shortfalls, intercept)
        self.update_primal(self.coefficients, intercept, shortfalls, allowed_loss)


def middle_intercept(program: LinearProgram, shortfalls: Floats, intercept: Floats, multipliers: Floats) -> Floats:
    r"""Return the middle of the intercepts that are optimal for the coefficients, with sum zero.

    By complementary slackness those are the b for which :math:`b_{y_i} - b_j` is at least the shortfall of the pair
    (i, j), without intercepts, where :math:`u_{ij} < C_i`, and at most that where :math:`u_{ij} > 0`: upper bounds
    :math:`D_{nj}` of :math:`b_n - b_j`. Tightened along all paths from n to j, every column of D is such a b, and so is
    every row of -D. Their mean is returned. With two classes it is the middle of the interval.
    """
    first = program.class_starts[:-1]
    small = _NEGLIGIBLE_MULTIPLIER * multipliers.max(initial=0.0)
    below_cost = multipliers < program.cost_bounds[:, None] - small
    lower = np.maximum.reduceat(np.where(below_cost, shortfalls, -np.inf), first, axis=0)
    upper = np.minimum.reduceat(np.where(multipliers > small, shortfalls, np.inf), first, axis=0)
    here = intercept[:, None] - intercept
    D = np.maximum(np.minimum(upper, -lower.T), here)  # not past the point we have, which rounding may have put outside
    np.fill_diagonal(D, 0.0)
    for via in range(len(D)):
        D = np.minimum(D, D[:, [via]] + D[[via]])
    if not np.all(np.isfinite(D)):  # the multipliers are not optimal
        D = here
    middle: Floats = (D.mean(axis=1) - D.mean(axis=0)) / 2.0
    return middle


def signs(owner: Ints, rivals: Ints, classes: Ints) -> Floats:
    """Return 1 where a class is a pair's own, -1 where it is the rival (pairs x classes)."""
    own: Floats = (owner[:, None] == classes).astype(np.float64) - (rivals[:, None] == classes)
    return own
