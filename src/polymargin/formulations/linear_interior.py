"""Small linear machines that other solvers do not end: an interior-point method takes over.

Solvers that move some examples at a time need more steps the larger C and the values are, and the more their sizes
differ. Steps on the weights do not, but each costs the number of weights cubed. So the others begin, with as much work
as those steps would be, and where that is not enough the interior-point method does the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from polymargin import _core
from polymargin.formulations.binary import binary_model
from polymargin.formulations.formulation import PairsSolution, RunOptions, Solution, outcome
from polymargin.formulations.linear import (
    SEQUENTIAL_DUAL,
    Heuristics,
    LinearTask,
    is_small,
    linear_model,
    row_start,
    train_core,
)
from polymargin.formulations.training import TrainingSet
from polymargin.kernels import Kernel
from polymargin.losses import JointLoss
from polymargin.losses import OneVsRest as OneVsRestLoss
from polymargin.models import ClassLayout, Outcome, PairLayout
from polymargin.solvers import Bounds, Differences, LinearInterior, SignedScores
from polymargin.support.examples import dense
from polymargin.support.numeric import Floats, Ints, relative_gap

INTERIOR_POINT = "interior-point"


@dataclass(frozen=True)
class InteriorRule:
    """When the interior-point method takes over, by counts of operations: the answer must not depend on the machine.

    Parameters
    ----------
    steps : int
        That it usually needs, 10 to 40 on everything tried.
    step_flops : float
        What each costs at least, however small the problem: four tenths of a millisecond.
    most_flops : float
        Of all of its steps: several seconds. More is for other solvers.
    most_examples : int
        More are for Newton steps on growing samples. (On 100,000 examples of 40 features these end in 0.2 s, where the
        steps here have passes over all examples and classes that are not counted, and had not ended in 15 s.)
    share, binary_share, pairs_share, joint_share : float
        Of its operations that others may use before it, at least: the sequential dual method, decompositions for each
        class or pair, and that of a joint machine. They end most fits of moderate C and all of wide data (digits, dna
        and usps raw, C from 1 to 10^4: 0.02 to 0.06 s, and 0.2 to 10 by the sequential dual method and then this one).
        Hard pairs are few: the most that one may use is more than its part.
    least_steps : int
        For each example that they may take at least: many problems are solved by then.
    first_share : float
        Of a time limit that they may use.
    binary_flops, visit_flops : float
        What a step of a binary decomposition costs, 0.2 to 0.5 microseconds; and a visit of the sequential dual method,
        beside what depends on the sizes. (The work of the joint decomposition is counted as it goes.)
    hidden : float
        Relative gaps of weights up to this are taken for rounding where kernel values say that all is well.
    rank : float
        Directions in which the examples are shorter than this, relative to the longest, are rounding.
    finer, attempts : float, int
        The gap that is asked for next, relatively, where putting the sums of a free bias right left too large a one;
        and how often.
    """

    steps: int = 25
    step_flops: float = 8e6
    most_flops: float = 2e11
    most_examples: int = 4096
    share: float = 1.0
    binary_share: float = 1.0
    pairs_share: float = 3.0
    joint_share: float = 0.3
    least_steps: int = 4
    first_share: float = 0.3
    binary_flops: float = 1e4
    visit_flops: float = 5e3
    hidden: float = 1e-6
    rank: float = 1e-14
    finer: float = 1e-2
    attempts: int = 3

    def flops(self, loss: JointLoss | None, training: TrainingSet, n_problems: int) -> float:
        """Return what the method costs, for a joint loss or for binary problems; inf where it is not for."""
        n, d, k = training.n_examples, training.X.shape[1] + 1, training.n_classes
        if not np.isfinite(training.largest_cost_bound) or (loss is not None and loss.row_limits is None):
            return float("inf")
        if n > self.most_examples:
            return float("inf")
        if loss is not None:
            return self.steps * (self.step_flops + float(n * k * (k + 1) * d**2) + float((k * d) ** 3) / 3.0)
        return self.steps * n_problems * (self.step_flops + float(n * d**2) + float(d**3) / 3.0)


class Cost(NamedTuple):
    """Operations of the interior-point method in all, and what the solver before it may do."""

    interior: float
    limits: dict[str, Any]  # fields of `RunOptions`
    exact: bool  # whether that solver makes its answers exact


def joint_cost(loss: JointLoss, training: TrainingSet, *, by_kernel: bool) -> Cost:
    """Return what a joint machine costs."""
    rule = InteriorRule()
    flops = rule.flops(loss, training, 1)
    if by_kernel:
        return Cost(flops, {"max_work": rule.joint_share * flops}, exact=is_small(training))
    return Cost(flops, _visits(training, training.n_classes, flops), exact=False)


def binary_cost(training: TrainingSet, n_problems: int, *, by_kernel: bool = True, squared: bool = False) -> Cost:
    """Return what problems of all examples cost, side by side; the method needs limits, which squared hinges lack."""
    rule = InteriorRule()
    flops = float("inf") if squared else rule.flops(None, training, n_problems)
    if by_kernel:
        part = rule.binary_share * flops / n_problems
        return Cost(flops, _steps(training.n_examples, part, rule.binary_flops), exact=is_small(training))
    return Cost(flops, _visits(training, n_problems, flops), exact=False)


def pairs_cost(training: TrainingSet) -> Cost:
    """Return what the problems of all pairs cost: together each class is in all but one of them."""
    rule, k = InteriorRule(), training.n_classes
    n_pairs = k * (k - 1) // 2
    mean = replace(training, order=training.order[: max(1, 2 * training.n_examples // k)])
    flops = rule.flops(None, mean, n_pairs)
    part = rule.pairs_share * flops / n_pairs
    return Cost(flops, _steps(mean.n_examples, part, rule.binary_flops), exact=True)


def _visits(training: TrainingSet, columns: int, flops: float) -> dict[str, Any]:
    rule = InteriorRule()
    visit = rule.visit_flops + 8.0 * float(training.X.shape[1]) * columns
    return _steps(training.n_examples, rule.share * flops, visit)


def _steps(n_examples: int, flops: float, each: float) -> dict[str, Any]:
    """Return the limit on steps that cost so much."""
    if not np.isfinite(flops):
        return {}
    return {"max_iterations": max(InteriorRule().least_steps * n_examples, int(flops / each))}


Solved = TypeVar("Solved", bound=Solution)


def with_interior_point(
    first: Callable[[RunOptions], Solved],
    interior: Callable[[RunOptions], Solved],
    cost: Cost,
    options: RunOptions,
) -> Solved:
    """Solve by ``first``, and where it takes long by the interior-point method.

    The last digits are the first's again: a violation, and what makes answers exact if it is soon done from there.

    A limit on steps is one on the first's alone: then the other is not asked.
    """
    rule = InteriorRule()
    if options.max_iterations >= 0 or cost.interior > rule.most_flops:
        return first(options)
    ends = time.perf_counter() + options.time_limit

    def remaining(share: float = 1.0, **changes: object) -> RunOptions:
        left = max(1e-9, ends - time.perf_counter())
        return replace(options, time_limit=share * left, **changes)  # type: ignore[arg-type]

    begun = first(remaining(rule.first_share, **cost.limits))
    if begun.outcome.stop_reason in ("converged", "stopped"):
        return begun
    solution = interior(remaining())
    if solution.outcome.stop_reason in ("time_limit", "stopped"):
        return min(begun, solution, key=lambda each: each.outcome.gap)
    if solution.outcome.converged and options.stop == "gap":
        if not cost.exact:
            return solution
        ended = first(remaining(rule.first_share, start=solution.model, **cost.limits))
        return ended if ended.outcome.converged else solution
    best = min(begun, solution, key=lambda each: each.outcome.gap)
    ended = first(remaining(start=best.model))
    return ended if ended.outcome.converged or ended.outcome.gap < best.outcome.gap else best


def checked(solution: Solution, task: LinearTask, training: TrainingSet, options: RunOptions) -> Solution:
    """Return a solution on kernel values, not converged if its weights say so.

    With columns of all sizes and a large C rounding in the kernel values may hide a gap, which weights show.
    """
    if not solution.outcome.converged or options.stop != "gap":
        return solution
    unlimited = replace(options, max_iterations=0, time_limit=float("inf"), progress=None)
    measured = train_core(task, training, unlimited, row_start(solution.model, training, task.loss))
    gap = relative_gap(measured.primal, measured.dual)
    if not gap > max(options.tolerance, InteriorRule().hidden):
        return solution
    honest = _outcome(measured.primal, measured.dual, "precision", solution.outcome.iterations)
    return replace(solution, outcome=replace(honest, solver=solution.outcome.solver))


def solve_by_interior_point(task: LinearTask, training: TrainingSet, kernel: Kernel, options: RunOptions) -> Solution:
    """Solve a linear machine."""
    found = _solved(task, training, options)
    shape = (training.n_examples, task.layout.n_scores)
    measured = found.measured
    coefficients = sp.csr_array((measured.coefficients, measured.columns, measured.starts), shape=shape)
    steps = int(found.steps.max()) if isinstance(task.loss, JointLoss) else found.steps
    return Solution(
        model=linear_model(task, training, kernel, options, coefficients, found.weights, found.intercept),
        outcome=_outcome(found.primal, measured.dual, found.status, steps),
        violation=measured.violation,
        by_gap=options.stop != "violation",
    )


def solve_pairs_by_interior_point(
    layout: PairLayout, training: TrainingSet, kernel: Kernel, options: RunOptions
) -> PairsSolution:
    """Solve all pairs of classes, the first class being positive."""
    found, support, starts = [], [], training.class_starts
    for first, second in layout.pairs:
        members = np.r_[starts[first] : starts[first + 1], starts[second] : starts[second + 1]]
        sizes = np.array([starts[first + 1] - starts[first], starts[second + 1] - starts[second]])
        own = np.concatenate([[0], np.cumsum(sizes)])
        part = TrainingSet(
            training.X, training.order[members], own, training.cost_bounds[members], training.weight[members]
        )
        labels = np.repeat([0, -1], sizes)
        task = LinearTask(OneVsRestLoss(), "free", SEQUENTIAL_DUAL, labels, ClassLayout(2, 1), Heuristics())
        found.append(_solved(task, part, options, own_weights=True))
        support.append(members[np.flatnonzero(np.diff(found[-1].measured.starts))])
        if found[-1].status in ("time_limit", "stopped"):
            options = replace(options, time_limit=0.0)  # of the others what there is without a step
    columns = _Columns(
        support=np.concatenate(support),
        beta=np.concatenate([each.measured.coefficients for each in found]),
        starts=np.concatenate([[0], np.cumsum([len(each) for each in support])]),
        intercept=np.array([each.measured.intercept[0] for each in found]),
    )
    primal, dual = (sum(getattr(each.measured, name) for each in found) for name in ("primal", "dual"))
    status = next((each.status for each in found if each.status != "converged"), "converged")
    return PairsSolution(
        model=binary_model(columns, layout, training, kernel, options.tolerance),
        outcome=_outcome(primal, dual, status, np.array([each.steps[0] for each in found])),
        violation=max(each.measured.violation for each in found),
        by_gap=options.stop == "gap",
    )


class _Columns(NamedTuple):
    """Solved binary problems side by side."""

    support: Ints
    beta: Floats
    starts: Ints
    intercept: Floats


def _outcome(primal: float, dual: float, status: str, steps: Any) -> Outcome:
    return outcome(primal=primal, dual=dual, status=status, iterations=steps, solver=INTERIOR_POINT)


class _Found(NamedTuple):
    """What the core says of coefficients, and a point of the primal that is not theirs."""

    measured: _core.LinearResult
    weights: Floats
    intercept: Floats
    primal: float
    steps: Ints
    status: str = ""

    @property
    def gap(self) -> float:
        return relative_gap(self.primal, self.measured.dual)

    @property
    def own(self) -> _Found:
        """With the weights of the coefficients."""
        measured = self.measured
        return self._replace(weights=measured.weights, intercept=measured.intercept, primal=measured.primal)


def _solved(task: LinearTask, training: TrainingSet, options: RunOptions, *, own_weights: bool = False) -> _Found:
    """Return the best of some attempts, with the weights of its coefficients, whose sums the core has put right.

    Only where that does not lead to the gap weights are kept that are not those of the coefficients; never if nothing
    else is kept than these (``own_weights``).
    """
    rule, run = InteriorRule(), _Run(task, training, options)
    found: list[_Found] = []
    for attempt in range(rule.attempts):
        found.append(run.solved(options.tolerance * rule.finer**attempt))
        if found[-1].own.gap <= options.tolerance or run.stopped:
            break
    best = min((each.own for each in found), key=lambda each: each.gap)
    if best.gap > options.tolerance and not own_weights:
        best = min((best, *found), key=lambda each: each.gap)
    status = "converged" if best.gap <= options.tolerance else run.stopped or "precision"
    return best._replace(status=status)


class _Run:
    """The problem as the solver takes it: centred if the bias is free, and turned to the axes of the examples."""

    def __init__(self, task: LinearTask, training: TrainingSet, options: RunOptions) -> None:
        self._task, self._training, self._options = task, training, options
        self._ends = time.perf_counter() + options.time_limit
        self.stopped = ""
        self._steps, self._taken = 0, np.zeros(1, dtype=np.int64)
        self._rows: Floats = dense(training.X)[training.order].astype(np.float64)
        n, self._features = self._rows.shape
        free = task.bias == "free"
        self._centre = self._rows.mean(axis=0) if free else np.zeros(self._features)
        X = self._rows - self._centre
        if task.bias == "regularized":
            X = np.hstack([X, np.ones((n, 1))])
        _, sizes, axes = np.linalg.svd(X, full_matrices=False)
        self._axes: Floats = axes[sizes > InteriorRule().rank * sizes[0]]
        self._X: Floats = X @ self._axes.T
        self._penalty = np.ones(len(self._axes))
        if free:
            self._X, self._penalty = np.hstack([self._X, np.ones((n, 1))]), np.append(self._penalty, 0.0)
        self._solvers = self._problems()

    def _go_on(self, gap: float) -> bool:
        """Whether there is time and nobody asks to stop."""
        if time.perf_counter() > self._ends:
            self.stopped = "time_limit"
        elif np.isfinite(gap) and self._options.progress is not None:
            self._steps += 1
            if not self._options.progress(0, 1, self._steps, gap):
                self.stopped = "stopped"
        return not self.stopped

    def _problems(self) -> list[LinearInterior]:
        """Return what is solved, one after the other."""
        loss, costs, labels = self._task.loss, self._training.cost_bounds, self._task.labels
        k = self._task.layout.n_scores
        if isinstance(loss, JointLoss):
            assert loss.row_limits is not None
            bounds = Bounds(*(limit * costs for limit in loss.row_limits))
            targets = loss.targets(labels)
            return [LinearInterior(Differences(self._X, labels, k), self._penalty, bounds, targets, self._go_on)]
        bounds = Bounds(costs, np.full(len(costs), np.inf))
        signs = np.where(labels[:, None] == np.arange(k), 1.0, -1.0)
        return [
            LinearInterior(SignedScores(self._X, signs[:, m]), self._penalty, bounds, 1.0, self._go_on)
            for m in range(k)
        ]

    def solved(self, wanted: float) -> _Found:
        """Return weights and coefficients for a gap, from where the last one led to."""
        results = [solver.solve(wanted) for solver in self._solvers]
        V, a = (np.hstack([getattr(result, name) for result in results]) for name in ("V", "a"))
        labels = self._task.labels
        if isinstance(self._task.loss, JointLoss):
            B = -a
            B[np.arange(len(labels)), labels] = a.sum(axis=1)
        else:
            B = np.where(labels[:, None] == np.arange(a.shape[1]), a, -a)
        self._taken = self._taken + np.array([result.steps for result in results])
        return self._measured(V, B, self._taken)

    def _measured(self, V: Floats, B: Floats, steps: Ints) -> _Found:
        """Return the coefficients and the bias, in the features as they were, as the core sees them."""
        task, training = self._task, self._training
        W = self._axes.T @ V[: len(self._axes)]
        bias = np.zeros(V.shape[1]) if task.bias is None else W[-1] if task.bias == "regularized" else V[-1]
        weights = np.ascontiguousarray(W[: self._features])
        intercept = bias - self._centre @ weights
        used = np.flatnonzero(B.any(axis=1))
        start = _core.RowStart(used, np.ascontiguousarray(B[used]), intercept)
        unlimited = replace(self._options, max_iterations=0, time_limit=float("inf"), progress=None)
        measured = train_core(task, training, unlimited, start)
        return _Found(measured, weights, intercept, self._primal(weights, intercept), steps)

    def _primal(self, weights: Floats, intercept: Floats) -> float:
        """Return the objective of weights, by definition."""
        task, costs = self._task, self._training.cost_bounds
        size = float(np.sum(weights**2)) + (float(intercept @ intercept) if task.bias == "regularized" else 0.0)
        return 0.5 * size + float(costs @ task.loss.values(self._rows @ weights + intercept, task.labels))
