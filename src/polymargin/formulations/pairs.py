"""A binary problem for each pair of classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from numpy.typing import NDArray

from polymargin import _core
from polymargin.formulations.binary import signed_ranges, solve_binary
from polymargin.formulations.family import CostFamily
from polymargin.formulations.folds import folds_of
from polymargin.formulations.formulation import PairsSolution, RunOptions
from polymargin.formulations.linear_interior import (
    pairs_cost,
    solve_pairs_by_interior_point,
    with_interior_point,
)
from polymargin.formulations.training import TrainingSet
from polymargin.kernels import Kernel
from polymargin.models import PairLayout, all_pairs
from polymargin.support.numeric import Ints


@dataclass(frozen=True)
class Pairs:
    """Hsu & Lin (3) for all pairs of classes, the first class of a pair being positive.

    Parameters
    ----------
    held_out : bool
        Whether every pair is solved again without each of five folds, for the decision values of held-out examples.
    squared : bool
        Whether the hinges are squared.
    """

    held_out: bool = False
    squared: bool = False

    def layout(self, n_classes: int) -> PairLayout:
        """Return a score for each pair."""
        return all_pairs(n_classes)

    def n_problems(self, n_classes: int) -> int:
        """Return the number of pairs."""
        return n_classes * (n_classes - 1) // 2

    def measure(self, training: TrainingSet, kernel: Kernel) -> str:
        """Solvers stop on the violation of Hsu & Lin (22)."""
        return "violation"

    def problems(self, class_starts: Ints) -> _core.BinaryProblems:
        """Return the problems of all pairs."""
        return pair_problems(all_pairs(len(class_starts) - 1).pairs, class_starts, squared=self.squared)

    @property
    def is_family(self) -> bool:
        """Whether it is a family of binary problems and nothing more, so that many costs can be solved by one call."""
        return not self.held_out

    def family(
        self, K: NDArray[Any], codes: Ints, costs: list[float], exact_to: float, options: RunOptions
    ) -> CostFamily:
        """Return the problems for many costs and many parts of the examples of a kernel matrix."""
        return CostFamily(self, K, codes, costs, exact_to, options)

    def solve(self, training: TrainingSet, kernel: Kernel, options: RunOptions) -> PairsSolution:
        """Solve all pairs, side by side on one kernel."""
        folds = folds_of(kernel.examples(training.X), training, options.random_state) if self.held_out else None
        layout, problems = self.layout(training.n_classes), self.problems(training.class_starts)

        def first(options: RunOptions) -> PairsSolution:
            return solve_binary(problems, layout, training, kernel, options, folds, squared=self.squared)

        if kernel.kind != "linear" or folds is not None or self.squared:
            return first(options)
        interior = partial(solve_pairs_by_interior_point, layout, training, kernel)
        return with_interior_point(first, interior, pairs_cost(training), options)


def pair_problems(pairs: Ints, class_starts: Ints, *, squared: bool = False) -> _core.BinaryProblems:
    """Return the binary problems of some pairs, the first class being positive."""
    first, second = pairs.T
    return signed_ranges(
        (class_starts[first], class_starts[first + 1], 1),
        (class_starts[second], class_starts[second + 1], -1),
        squared=squared,
    )
