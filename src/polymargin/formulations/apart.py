"""Binary machines of the linear kernel that are solved one by one, on the examples that each of them has.

Nothing is computed for all of them together, so that there is no matrix of kernel values of all examples. They are
solved side by side by threads, each by one: the answer does not depend on how many there are.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from polymargin.formulations.binary import binary_model
from polymargin.formulations.formulation import PairsSolution, RunOptions, Solution, outcome
from polymargin.formulations.linear import SEQUENTIAL_DUAL
from polymargin.formulations.linear_wide import WideRule, has_room
from polymargin.formulations.training import TrainingSet
from polymargin.kernels import Kernel
from polymargin.models import ClassLayout, KernelModel, LinearModel, Outcome, ScoreLayout
from polymargin.support.examples import dense
from polymargin.support.memory import budget_bytes
from polymargin.support.numeric import Bools, Floats, Ints, Matrix
from polymargin.support.threads import in_threads

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

    def without(self, held_out: Bools) -> Part:
        """Return the machine without some examples, of all that the core has."""
        return Part(self.negative[~held_out[self.negative]], self.positive[~held_out[self.positive]])

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
    folds: Ints | None = None,
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
    folds : array, optional
        The fold of each example, -1 for one that is never held out: for the values of examples by machines that have
        not seen their fold.

    Returns
    -------
    PairsSolution
        All of them together.
    """
    report = _Report(len(parts), options)
    place = training.place_of(np.arange(training.X.shape[0]))
    ended: list[_Ended | None] = [None] * len(parts)
    weights = None
    if weights_have_room(training, len(parts), options):
        weights = np.empty((training.X.shape[1], len(parts)))

    def work(p: int) -> None:
        part = parts[p]
        start = None if options.start is None else part.start(options.start, p)
        whole = solve(part.training(training), kernel, report.options(start))
        values = np.empty(0)
        if folds is not None:
            values = _held_out(part, whole, folds, training, lambda rest, own: solve(rest, kernel, report.options(own)))
        if weights is not None:
            weights[:, p] = layout.sign * whole.model.score_weights()[0]
        ended[p] = _Ended.of(whole, place, values)
        report.ended()

    with in_threads(_side_by_side(parts, training, options), report.interrupted) as each:
        each(work, list(range(len(parts))))
    solved = [solution for solution in ended if solution is not None]
    model = binary_model(_Columns.of(solved), layout, training, kernel, options.tolerance)
    return PairsSolution(
        model=model if weights is None else _by_weights(model, weights),
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
        held_out=np.concatenate([each.held_out for each in solved]),
    )


def weights_have_room(training: TrainingSet, n_scores: int, options: RunOptions) -> bool:
    """Whether there may be a weight for each feature and score; else scores go through the support vectors."""
    needed = 8 * int(training.X.shape[1]) * n_scores
    return needed <= budget_bytes(options.cache_size, needed)


class _Ended(NamedTuple):
    """What is kept of a machine that is solved: not its weights, of which there may be as many as features."""

    support: Ints  # by the numbers of the core
    beta: Floats
    intercept: float
    outcome: Outcome
    violation: float | None
    held_out: Floats

    @classmethod
    def of(cls, solution: Solution, place: Ints, held_out: Floats) -> _Ended:
        """Keep that of a solution; ``place`` has the number in the core of every row."""
        model = solution.model
        beta = np.asarray(dense(model.coefficients)[0], dtype=np.float64)
        support, intercept = place[model.support], float(model.intercept[0])
        return cls(support, beta, intercept, solution.outcome, solution.violation, held_out)


class _Columns(NamedTuple):
    """Solved binary problems side by side."""

    support: Ints
    beta: Floats
    starts: Ints
    intercept: Floats

    @classmethod
    def of(cls, solved: Sequence[_Ended]) -> _Columns:
        """Put machines beside each other."""
        support = np.concatenate([each.support for each in solved])
        beta = np.concatenate([each.beta for each in solved])
        starts = np.cumsum([0, *(len(each.support) for each in solved)])
        return cls(support, beta, starts, np.array([each.intercept for each in solved]))


def _by_weights(model: KernelModel, weights: Floats) -> LinearModel:
    """Return a model that scores by weights of the features."""
    return LinearModel(**{each.name: getattr(model, each.name) for each in fields(model)}, weights=weights)


def _held_out(
    part: Part,
    whole: Solution,
    folds: Ints,
    training: TrainingSet,
    solve: Callable[[TrainingSet, KernelModel], Solution],
) -> Floats:
    """Return the value of each example by the machine without its fold, those of the positive ones first."""
    members = np.concatenate([part.positive, part.negative])
    rows, own = training.X[training.order[members]], folds[members]
    values = _values(whole, rows)
    for fold in np.unique(own[own >= 0]):
        without = solve(part.without(folds == fold).training(training), whole.model)
        held = np.flatnonzero(own == fold)
        values[held] = _values(without, rows[held])
    return values


def _values(solution: Solution, rows: Matrix) -> Floats:
    """Return the values of some rows."""
    values: Floats = np.asarray(rows @ solution.model.score_weights()[0] + solution.model.intercept[0], np.float64)
    return values


def _solver_of(solved: Sequence[_Ended]) -> str:
    """Return the one solver that was used, or that which the others took over from."""
    names = {each.outcome.solver for each in solved}
    return names.pop() if len(names) == 1 else SEQUENTIAL_DUAL


def _side_by_side(parts: Sequence[Part], training: TrainingSet, options: RunOptions) -> int:
    """Return how many machines may be solved at a time: there is to be room for the matrices of all of them."""
    largest = max((len(part.members) for part in parts), default=0)
    if largest > WideRule().most_examples:
        return max(1, min(options.threads, len(parts)))
    room = options.budget_bytes(training.X, max(1, options.threads)) // max(1, 8 * largest**2)
    return int(max(1, min(options.threads, len(parts), room)))


@dataclass(frozen=True)
class ApartRule:
    """When linear machines of pairs are solved on kernel values of all examples, which all pairs share.

    Parameters
    ----------
    few_examples : int
        Up to so many they are, whatever memory there is: rows of kernel values are computed anew where they must be.
    most_examples : int
        And up to so many where a matrix has room. (Two threads, C=1: reuters8, 5,485 rows, 0.12 s by the matrix and
        0.27 without; news20, 15,935, 2.3 and 3.7; mnist, C=0.1, 20,000 rows, 1.8 and 1.8; 60,000 rows, 8.7 and 4.3.)
    few_features, most_narrow : int
        With so few features up to so many examples. (shuttle, 43,500 rows of 9: 0.47 s and 0.69.)
    """

    few_examples: int = 4096
    most_examples: int = 16384
    few_features: int = 64
    most_narrow: int = 65536

    def has_matrix(self, training: TrainingSet, options: RunOptions | None) -> bool:
        """Whether all pairs share kernel values; the memory that may be used counts if options say so."""
        n = training.n_examples
        if n <= self.few_examples or (training.X.shape[1] <= self.few_features and n <= self.most_narrow):
            return True
        return n <= self.most_examples and (options is None or has_room(training, options))


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
