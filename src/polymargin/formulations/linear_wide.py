"""Wide linear machines, as on word counts: where loops over the examples crawl, kernel values take over.

With more features than a Newton step has room for, and at large costs, examples that move one at a time need the more
loops the nearer the data are to being separable. Decompositions do not: they move hundreds together. But they need the
matrix of kernel values, which takes more time than many loops where the examples are many.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms

from polymargin.formulations.formulation import RunOptions, Solution
from polymargin.formulations.training import TrainingSet

Solved = TypeVar("Solved", bound=Solution)


@dataclass(frozen=True)
class WideRule:
    """When kernel values come first or take over, by counts of operations: the answer must not depend on the machine.

    Parameters
    ----------
    few_examples : int
        Up to so many they come first: decompositions on 3,000 documents took 0.05 to 0.5 s at any C tried, 1 to 10^4,
        and loops 0.02 s or more than 10.
    most_examples : int
        Of a matrix that the core computes as a whole.
    newton_features, newton_rows, newton_from : int
        With fewer features than this, so many examples for each and so many in all, there are Newton steps.
    moderate : float
        Mean of C |x|^2 up to which these come first of few examples too. (segment in [-1, 1], C=1: 0.01 s, by kernel
        values 0.02 to 0.09. Raw it is 10^5, and loops crawl.)
    visit_flops : float
        What a visit of the sequential dual method costs beside the products of its features and classes.
    row_flops : float
        What the rounds of a decomposition cost, for each kernel value and class.
    binary_loops : float
        Of the sequential dual method, which the matrix may cost for binary machines with a free bias to have it at
        once: they need hundreds. (5,485 documents in 8 classes, C=1: 0.15 s, by loops 0.16; C=100: 0.15 and 1.2 s.)
    share, first_share, promising : float
        Of the operations of a decomposition that loops may use before it; the part of that after which their gap is to
        be this small.
    """

    few_examples: int = 4096
    most_examples: int = 16384
    newton_features: int = 1024
    newton_rows: int = 4
    newton_from: int = 2048
    moderate: float = 1e3
    visit_flops: float = 1e3
    row_flops: float = 10.0
    binary_loops: float = 100.0
    share: float = 1.0
    first_share: float = 0.5
    promising: float = 0.1

    def is_for(self, training: TrainingSet) -> bool:
        """Whether there may be a matrix, and Newton steps may not."""
        return training.n_examples <= self.most_examples and not self.is_narrow(training)

    def is_narrow(self, training: TrainingSet) -> bool:
        """Whether there are few features, and many examples for each."""
        features = int(training.X.shape[1])
        return features <= self.newton_features and self.newton_rows * features <= training.n_examples

    def is_easy(self, training: TrainingSet) -> bool:
        """Whether Newton steps end soon: few features, and no scores far beyond the hinges."""
        if training.n_examples < self.newton_from or not self.is_narrow(training):
            return False
        square = float(np.mean(row_norms(training.X, squared=True)))
        return bool(training.largest_cost_bound * square <= self.moderate)

    def matrix_flops(self, training: TrainingSet) -> float:
        """Return what kernel values cost, half of which are computed."""
        return float(training.n_examples) ** 2 / 2.0 * _entries(training)

    def visit(self, training: TrainingSet, columns: int) -> float:
        """Return what a visit costs."""
        return self.visit_flops + _entries(training) * columns

    def comes_first(self, training: TrainingSet, columns: int, *, binary: bool) -> bool:
        """Whether the matrix is cheap beside the loops that it saves."""
        n = training.n_examples
        if n <= self.few_examples:
            return not self.is_easy(training)
        loops = self.binary_loops * n * self.visit(training, columns)
        return binary and self.is_for(training) and self.matrix_flops(training) <= loops

    def takes_over(self, training: TrainingSet, columns: int, interior: float, options: RunOptions) -> bool:
        """Whether kernel values follow the loops, and not an interior-point method that costs so much."""
        return self.is_for(training) and has_room(training, options) and self.flops(training, columns) < interior

    def flops(self, training: TrainingSet, columns: int) -> float:
        """Return what a decomposition costs with its matrix."""
        return self.matrix_flops(training) + self.row_flops * float(training.n_examples) ** 2 * columns

    def visits(self, training: TrainingSet, columns: int) -> int:
        """Return how many visits cost as much as a decomposition."""
        return int(self.flops(training, columns) / self.visit(training, columns))


def _entries(training: TrainingSet) -> float:
    """Return how many numbers an example has."""
    X = training.X
    return float(X.nnz) / max(1, X.shape[0]) if sp.issparse(X) else float(X.shape[1])


def has_room(training: TrainingSet, options: RunOptions) -> bool:
    """Whether the matrix fits the memory that may be used, beside a copy of dense examples."""
    n, X, around = training.n_examples, training.X, 1_000_000
    return 8 * n**2 + (0 if sp.issparse(X) else 8 * X.size) + around <= options.budget_bytes(X)


def with_kernel_values(
    loops: Callable[[RunOptions], Solved],
    by_kernel: Callable[[RunOptions], Solved],
    training: TrainingSet,
    columns: int,
    options: RunOptions,
) -> Solved:
    """Solve by loops over the examples, and where they crawl on kernel values from where they came to.

    A limit on steps is one on visits alone: then nothing takes over.
    """
    rule = WideRule()
    if options.max_iterations >= 0:
        return loops(options)
    ends = time.perf_counter() + options.time_limit
    visits = rule.share * rule.visits(training, columns)
    best: Solved | None = None
    for share in (rule.first_share, 1.0 - rule.first_share):
        left = replace(options, time_limit=max(1e-9, ends - time.perf_counter()), max_iterations=int(share * visits))
        begun = loops(left if best is None else replace(left, start=best.model))
        best = begun if best is None else min(best, begun, key=lambda each: each.outcome.gap)
        if begun.outcome.stop_reason in ("converged", "stopped", "time_limit"):
            return begun if begun.outcome.converged else best
        if best.outcome.gap > rule.promising:
            break
    assert best is not None
    start = None if sp.issparse(best.model.coefficients) else best.model  # thousands of classes
    ended = by_kernel(replace(options, time_limit=max(1e-9, ends - time.perf_counter()), start=start))
    return ended if ended.outcome.converged else min(best, ended, key=lambda each: each.outcome.gap)
