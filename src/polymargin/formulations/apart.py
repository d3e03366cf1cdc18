"""Binary machines of the linear kernel that are solved one by one, on the examples that each of them has.

Nothing is computed for all of them together, so that there is no matrix of kernel values of all examples. They are
solved side by side by threads, each by one: the answer does not depend on how many there are.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from polymargin.formulations.binary import binary_model
from polymargin.formulations.formulation import PairsSolution, RunOptions, Solution, outcome
from polymargin.formulations.linear import SEQUENTIAL_DUAL
from polymargin.formulations.training import TrainingSet
from polymargin.kernels import Kernel
from polymargin.models import ClassLayout, KernelModel, LinearModel, ScoreLayout
from polymargin.support.numeric import Floats, Ints
from polymargin.support.threads import in_threads

_LARGEST_MATRIX = 16384  # examples of a machine that may be solved on kernel values

BinarySolve = Callable[[TrainingSet, Kernel, RunOptions], Solution]
"""Solves a machine of two classes, of which the second is positive."""


@dataclass(frozen=True, eq=False)
class Part:
    """A binary machine: the examples of either side, by their numbers in the core, ascending."""

    negative: Ints
    positive: Ints

    @cached_property
    def members(self) -> Ints:
        """All examples, the negative ones first."""
        return np.concatenate([self.negative, self.positive])

    def training(self, of_all: TrainingSet) -> TrainingSet:
        """Return its examples, as those of two classes."""
        members = self.members
        starts = np.array([0, len(self.negative), len(members)], dtype=np.int64)
        costs, weight = of_all.cost_bounds[members], of_all.weight[members]
        return TrainingSet(of_all.X, of_all.order[members], starts, costs, weight)

    def start(self, model: KernelModel, score: int) -> KernelModel:
        """Return the part of an earlier solution of all machines that is one of this machine."""
        members, coefficients = model.score_coefficients(score)
        beta = model.layout.sign * coefficients
        order = np.concatenate([np.flatnonzero(beta < 0), np.flatnonzero(beta > 0)])
        return KernelModel(
            kernel=model.kernel,
            support=model.support[members[order]],
            vectors=np.empty((0, 0)),
            class_counts=np.array([(beta < 0).sum(), (beta > 0).sum()], dtype=np.int32),
            coefficients=beta[order][None, :],
            intercept=model.layout.sign * model.intercepts[score : score + 1],
            layout=ClassLayout(2, 1),
            n_features=model.n_features,
            tolerance=model.tolerance,
        )


def solve_apart(
    parts: Sequence[Part],
    layout: ScoreLayout,
    training: TrainingSet,
    kernel: Kernel,
    options: RunOptions,
    solve: BinarySolve,
) -> PairsSolution:
    """Solve a binary machine for each score of a layout.

    Parameters
    ----------
    parts : sequence of Part
        Their examples.
    layout : ScoreLayout
        Which scores there are.
    training, kernel, options
        What is solved on what, and how far.
    solve : callable
        Solves one of them.

    Returns
    -------
    PairsSolution
        All of them together.
    """
    report = _Report(len(parts), options)
    solutions: list[Solution | None] = [None] * len(parts)

    def work(p: int) -> None:
        own = report.options(None if options.start is None else parts[p].start(options.start, p))
        solutions[p] = solve(parts[p].training(training), kernel, own)
        report.ended()

    with in_threads(_side_by_side(parts, training, options), report.interrupted) as each:
        each(work, list(range(len(parts))))
    solved = [solution for solution in solutions if solution is not None]
    return PairsSolution(
        model=_model(solved, layout, training, kernel, options),
        outcome=outcome(
            primal=[each.outcome.primal for each in solved],
            dual=[each.outcome.dual for each in solved],
            status=next((each.outcome.stop_reason for each in solved if not each.outcome.converged), "converged"),
            iterations=np.array([int(np.max(each.outcome.iterations)) for each in solved], dtype=np.int64),
            solver=_solver_of(solved),
            evaluations=sum(each.outcome.evaluations for each in solved),
        ),
        violation=max((each.violation for each in solved if each.violation is not None), default=None),
        by_gap=options.stop != "violation",
    )


def _solver_of(solved: Sequence[Solution]) -> str:
    """Return the one solver that was used, or that which the others took over from."""
    names = {each.outcome.solver for each in solved}
    return names.pop() if len(names) == 1 else SEQUENTIAL_DUAL


def _side_by_side(parts: Sequence[Part], training: TrainingSet, options: RunOptions) -> int:
    """Return how many machines may be solved at a time: there is to be room for the matrices of all of them."""
    largest = max((len(part.members) for part in parts), default=0)
    if largest > _LARGEST_MATRIX:
        return max(1, min(options.threads, len(parts)))
    room = options.budget_bytes(training.X, max(1, options.threads)) // max(1, 8 * largest**2)
    return int(max(1, min(options.threads, len(parts), room)))


class _Report:
    """Tells of all machines together, from any thread, and ends all when one is asked to."""

    def __init__(self, total: int, options: RunOptions) -> None:
        self._total, self._options, self._done = total, options, 0
        self._ends = time.perf_counter() + options.time_limit
        self._lock, self._asked = threading.Lock(), False
        self.interrupted = threading.Event()

    def options(self, start: KernelModel | None) -> RunOptions:
        """Return how far to solve the next machine."""
        left = max(1e-9, self._ends - time.perf_counter())
        return replace(self._options, time_limit=left, threads=1, start=start, progress=self._progress)

    def ended(self) -> None:
        """Count a machine that is solved."""
        with self._lock:
            self._done += 1

    def _progress(self, _done: int, _total: int, iterations: int, value: float, *_: object) -> bool:
        with self._lock:
            report = self._options.progress
            if report is not None and not report(self._done, self._total, iterations, value):
                self._asked = True
            return not (self._asked or self.interrupted.is_set())


def _model(
    solved: Sequence[Solution], layout: ScoreLayout, training: TrainingSet, kernel: Kernel, options: RunOptions
) -> KernelModel:
    """Return one model of all machines, by weights of the features where these have room."""
    place = training.place_of(np.arange(training.X.shape[0]))
    model = binary_model(
        _Columns(
            support=np.concatenate([place[each.model.support] for each in solved]),
            beta=np.concatenate([np.asarray(each.model.coefficients[0]).ravel() for each in solved]),
            starts=np.cumsum([0, *(len(each.model.support) for each in solved)]),
            intercept=np.array([each.model.intercept[0] for each in solved]),
        ),
        layout,
        training,
        kernel,
        options.tolerance,
    )
    weights = np.empty((training.X.shape[1], len(solved)))
    for p, each in enumerate(solved):
        weights[:, p] = layout.sign * each.model.score_weights()[0]
    fields = {name: getattr(model, name) for name in model.__dataclass_fields__}
    return LinearModel(**fields, weights=weights)


@dataclass(frozen=True, eq=False)
class _Columns:
    """Solved binary problems side by side."""

    support: Ints
    beta: Floats
    starts: Ints
    intercept: Floats
