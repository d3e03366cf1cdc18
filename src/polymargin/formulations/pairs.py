"""A binary problem for each pair of classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin import _core
from polymargin.formulations.apart import ApartRule, Part, solve_apart
from polymargin.formulations.binary import signed_ranges, solve_binary
from polymargin.formulations.family import CostFamily
from polymargin.formulations.folds import folds_of
from polymargin.formulations.formulation import PairsSolution, RunOptions
from polymargin.formulations.linear import SEQUENTIAL_DUAL, chosen_solver, with_linear_rule
from polymargin.formulations.linear_interior import (
    pairs_cost,
    solve_pairs_by_interior_point,
    with_interior_point,
)
from polymargin.formulations.one_vs_rest import OneVsRest
from polymargin.formulations.training import TrainingSet
from polymargin.kernels import Kernel
from polymargin.models import PairLayout, all_pairs, pair_list
from polymargin.support.numeric import Ints
from polymargin.support.typing import BinarySolver


@dataclass(frozen=True)
class Pairs:
    """Hsu & Lin (3) for all pairs of classes, the first class of a pair being positive.

    Parameters
    ----------
    held_out : bool
        Whether every pair is solved again without each of five folds, for the decision values of held-out examples.
    squared : bool
        Whether the hinges are squared.
    solver : {"auto", "decomposition", "sequential-dual"}
        How to solve it; the last is for the linear kernel, each pair on its own examples.
    """

    held_out: bool = False
    squared: bool = False
    solver: BinarySolver = "auto"

    def layout(self, n_classes: int) -> PairLayout:
        """Return a score for each pair."""
        return all_pairs(n_classes)

    def n_problems(self, n_classes: int) -> int:
        """Return the number of pairs."""
        return n_classes * (n_classes - 1) // 2

    def measure(self, training: TrainingSet, kernel: Kernel) -> str:
        """Decompositions stop on the violation of Hsu & Lin (22), the sequential dual method on the gap."""
        return "gap" if self._is_apart(training, kernel, None) else "violation"

    def needs_kernel(self, kernel: str, n_examples: int, hard: bool) -> bool:
        """Whether kernel values are computed for so many examples."""
        return chosen_solver(self.solver, kernel, n_examples, hard, by_kernel=True) == "decomposition"

    def _is_apart(self, training: TrainingSet, kernel: Kernel, options: RunOptions | None) -> bool:
        """Whether each pair is solved on its own examples; the memory that may be used counts if options say so."""
        hard = bool(np.isinf(training.largest_cost_bound))
        by_kernel = ApartRule().has_matrix(training, options)
        solver = chosen_solver(self.solver, kernel.kind, training.n_examples, hard, by_kernel=by_kernel)
        return solver == SEQUENTIAL_DUAL

    def problems(self, class_starts: Ints) -> _core.BinaryProblems:
        """Return the problems of all pairs."""
        return pair_problems(all_pairs(len(class_starts) - 1).pairs, class_starts, squared=self.squared)

    @property
    def is_family(self) -> bool:
        """Whether it is a family of binary problems and nothing more, so that many costs can be solved by one call."""
        return not self.held_out and self.solver != SEQUENTIAL_DUAL

    def family(
        self, K: NDArray[Any], codes: Ints, costs: list[float], exact_to: float, options: RunOptions
    ) -> CostFamily:
        """Return the problems for many costs and many parts of the examples of a kernel matrix."""
        return CostFamily(self, K, codes, costs, exact_to, options)

    def solve(self, training: TrainingSet, kernel: Kernel, options: RunOptions) -> PairsSolution:
        """Solve all pairs, side by side on one kernel, or for the linear kernel each on its own examples."""
        folds = folds_of(kernel.examples(training.X), training, options.random_state) if self.held_out else None
        layout = self.layout(training.n_classes)
        if self._is_apart(training, kernel, options):
            options, parts = with_linear_rule(options, kernel), PairParts(training.class_starts)
            machine = OneVsRest(solver=self.solver, squared=self.squared).of_two(training, layout.n_scores, options)
            return solve_apart(parts, layout, training, kernel, options, machine.solve_without_matrix, folds)
        problems = self.problems(training.class_starts)

        def first(options: RunOptions) -> PairsSolution:
            return solve_binary(problems, layout, training, kernel, options, folds, squared=self.squared)

        if kernel.kind != "linear" or folds is not None or self.squared:
            return first(options)
        interior = partial(solve_pairs_by_interior_point, layout, training, kernel)
        return with_interior_point(first, interior, pairs_cost(training), options)


@dataclass(frozen=True, eq=False)
class PairParts(Sequence[Part]):
    """The machines of all pairs of classes, the first class of a pair being positive."""

    class_starts: Ints

    @cached_property
    def _pairs(self) -> Ints:
        return pair_list(len(self.class_starts) - 1)

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, pair: Any) -> Any:
        first, second = self._pairs[pair]
        starts = self.class_starts
        return Part(np.arange(starts[second], starts[second + 1]), np.arange(starts[first], starts[first + 1]))


def pair_problems(pairs: Ints, class_starts: Ints, *, squared: bool = False) -> _core.BinaryProblems:
    """Return the binary problems of some pairs, the first class being positive."""
    first, second = pairs.T
    return signed_ranges(
        (class_starts[first], class_starts[first + 1], 1),
        (class_starts[second], class_starts[second + 1], -1),
        squared=squared,
    )
