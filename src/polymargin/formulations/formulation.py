"""What every formulation has: it is solved on a training set and a kernel, and leaves a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from sklearn.utils import check_random_state

from polymargin import _core
from polymargin.formulations.training import TrainingSet
from polymargin.kernels import Kernel
from polymargin.models import KernelModel, Outcome, ScoreLayout
from polymargin.support.examples import rows_of
from polymargin.support.memory import budget_bytes
from polymargin.support.numeric import Floats, Ints, Matrix, relative_gap
from polymargin.support.typing import Stop

Progress = Callable[..., bool]
"""``progress(done, total, iterations, value, solution=None)``: problems solved, of how many, steps taken, the violation
or gap so far, and for solvers with rounds a function that returns the solution so far. False asks to stop."""


_FINEST = 1e-10  # the least violation that the core asks for where the gap counts


@dataclass(frozen=True, eq=False)
class RunOptions:
    """How far to solve, with what, and who listens."""

    tolerance: float = 1e-3
    stop: Stop = "auto"  # what the tolerance is of; "auto": of what the solver goes by
    max_iterations: int = -1
    max_work: float = float("inf")  # operations of the decomposition of a joint machine, about
    time_limit: float = float("inf")
    cache_size: str | float = "auto"
    threads: int = 1
    random_state: Any = None
    start: KernelModel | None = None  # of an earlier fit to the same classes
    progress: Progress | None = None

    @property
    def gap(self) -> float:
        """The relative gap that a solver which goes by its violation is to reach; 0 if the violation counts."""
        return self.tolerance if self.stop == "gap" else 0.0

    @property
    def violation(self) -> float:
        """The violation that a solver which goes by its gap is to reach; inf if the gap counts."""
        return self.tolerance if self.stop == "violation" else float("inf")

    @property
    def exact_to(self) -> float:
        """The smallest violation that kernel values must be exact enough for: what a gap needs is not known before."""
        return min(self.tolerance, _FINEST) if self.stop == "gap" else self.tolerance

    def total_cost(self, training: TrainingSet) -> float | None:
        """Return what makes a mean violation of a gap, for solvers that know no other; None if the gap counts."""
        total = float(training.cost_bounds.sum())
        return total if self.stop == "violation" and np.isfinite(total) else None

    @property
    def seed(self) -> int:
        """A number made of ``random_state``; None is always the same one, so that fits can be repeated."""
        return 0 if self.random_state is None else int(check_random_state(self.random_state).randint(2**31))

    def budget_bytes(self, X: Matrix, matrices: int = 1, vectors: int = 0) -> int:
        """Return the memory for kernel values; more than these and a copy of the data are of no use."""
        n, features = X.shape
        return budget_bytes(self.cache_size, int(8 * n * (matrices * n + vectors + features) + 1_000_000))


@dataclass(frozen=True, eq=False, kw_only=True)
class HeldOut:
    """The scores of all examples, in the core's order, by machines without their fold.

    An example that is never held out has those of the whole machine. ``status`` is "converged" or why a fold did not.
    """

    scores: Floats
    status: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Solution:
    """A solved formulation: the model, and how it came about."""

    model: KernelModel
    outcome: Outcome
    violation: float | None = None  # of the optimality conditions, where the solver looks at it
    by_gap: bool = False  # whether the tolerance was that of the gap
    n_solved: int | None = None  # problems that were solved, where there may be fewer than were announced
    folds: HeldOut | None = None  # if scores of held-out examples were asked for


@dataclass(frozen=True, eq=False, kw_only=True)
class PairsSolution(Solution):
    """Solved pairs; ``held_out`` has the values of examples by machines without their fold, if these were asked for."""

    held_out: Floats = field(default_factory=lambda: np.empty(0))


class Formulation(Protocol):
    """What is optimised, as a value."""

    def layout(self, n_classes: int) -> ScoreLayout:
        """Return which scores a model has."""

    def n_problems(self, n_classes: int) -> int | None:
        """Return how many problems there are, None if there are rounds of another kind."""

    def measure(self, training: TrainingSet, kernel: Kernel) -> str:
        """Return what a solver stops on: its "violation" or the "gap"."""

    def solve(self, training: TrainingSet, kernel: Kernel, options: RunOptions) -> Solution:
        """Solve to the tolerance, or as far as the limits allow; raise ValueError for what has no solution."""


def expansion(training: TrainingSet, kernel: Kernel, examples: Ints) -> dict[str, Any]:
    """Return the fields of a model that say what the support vectors, given by their numbers in the core, are."""
    X, support = training.X, training.order[examples]
    return {
        "kernel": kernel,
        "support": support,
        "vectors": np.empty((0, 0)) if kernel.precomputed else rows_of(X, support),
        "class_counts": np.bincount(training.class_of(examples), minlength=training.n_groups).astype(np.int32),
        "n_features": X.shape[1],
    }


def outcome(
    *, primal: Any, dual: Any, status: str, iterations: Any, solver: str = "decomposition", evaluations: int = 0
) -> Outcome:
    """Return how a fit ended; objectives of several problems are summed."""
    primal, dual = float(np.sum(primal)), float(np.sum(dual))
    return Outcome(
        primal=primal,
        dual=dual,
        gap=relative_gap(primal, dual),
        converged=status == "converged",
        stop_reason=status,
        solver=solver,
        iterations=iterations,
        evaluations=int(evaluations),
        seconds=float("nan"),  # whoever waits knows
    )


def stop_reason(statuses: Sequence[_core.Status]) -> str:
    """Return why solvers stopped: "converged", or the first other reason."""
    return next((s.name for s in statuses if s != _core.Status.converged), "converged")


def refuse_inseparable(unbounded: bool, size: float = 1e4) -> None:
    """Raise ValueError when a hard margin was asked for that does not exist, or that ``size`` hides."""
    if unbounded:
        raise ValueError(
            f"the data cannot be separated (or only by a margin below 1/{size:,.0f} of their size), so the hard "
            "margin C=inf has no solution: use a finite C, or a kernel that separates the classes"
        )


def previous_examples(model: KernelModel, training: TrainingSet) -> Ints | None:
    """Return the core's numbers of the support vectors of an earlier model, -1 where one is gone; None if they do not
    fit."""
    if model.layout.n_classes != training.n_classes or len(model.class_counts) != training.n_groups:
        return None
    example = training.place_of(model.support)
    owner = np.repeat(np.arange(training.n_groups), model.class_counts)
    known = example >= 0
    return example if np.array_equal(training.class_of(example[known]), owner[known]) else None
