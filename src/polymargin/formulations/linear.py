"""Machines of the linear kernel that are solved on the examples themselves, without kernel values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from polymargin import _core
from polymargin.formulations.formulation import RunOptions, Solution, expansion, outcome, previous_examples
from polymargin.formulations.training import TrainingSet
from polymargin.kernels import Kernel
from polymargin.losses import JointLoss, LinearLoss
from polymargin.models import ClassLayout, KernelModel, LinearModel
from polymargin.solvers import CuttingPlaneResult, Limits
from polymargin.support.examples import check_squares, core_data, dense
from polymargin.support.numeric import Floats, Ints
from polymargin.support.typing import LINEAR_SOLVERS, Bias

SEQUENTIAL_DUAL = "sequential-dual"
# Up to here the decomposition is as fast, and so exact, polished, that the order of the rows does not matter.
_SMALL = 1024
# Numbers up to which coefficients are kept as a dense matrix.
_DENSE = 2**26


@dataclass(frozen=True)
class Heuristics:
    """Of the sequential dual method, Keerthi et al. 2.1, and what may follow it: to be switched off to see their worth.

    Parameters
    ----------
    shuffling : bool
        Visit the examples in a new random order in each loop.
    shrinking : bool
        Leave out examples that have been at a corner of their feasible set for a while.
    cooling : bool
        Solve the steps of the first loops less exactly.
    newton : bool
        Finish by proximal Newton steps where there are few features.
    """

    shuffling: bool = True
    shrinking: bool = True
    cooling: bool = True
    newton: bool = True


@dataclass(frozen=True, eq=False)
class LinearTask:
    """What is solved: a loss on rows of scores, and how."""

    loss: LinearLoss
    bias: Bias
    solver: str
    labels: Ints  # the column of each example; one that is no column is of no class
    layout: ClassLayout
    heuristics: Heuristics


def chosen_solver(
    solver: str, kernel: Any, n_examples: int, hard: bool, *, always: bool = False, by_kernel: bool = False
) -> str:
    """Return the solver that a name means for so many examples; raise ValueError if it cannot be.

    ``hard`` says whether a hard margin is asked for, ``always`` whether there is no other solver than that on examples,
    ``by_kernel`` whether kernel values come first even of many.
    """
    linear = isinstance(kernel, str) and kernel == "linear"
    if solver == "auto":
        large = (n_examples > _SMALL and not by_kernel) or always
        return SEQUENTIAL_DUAL if linear and not hard and large else "decomposition"
    if solver in LINEAR_SOLVERS:
        if not linear:
            raise ValueError(f"solver={solver!r} needs kernel='linear', got kernel={kernel!r}")
        if hard:
            raise ValueError(f"solver={solver!r} needs a finite C; for a hard margin use 'decomposition'")
    return solver


def is_small(training: TrainingSet) -> bool:
    """Whether the examples are so few that decompositions make their answers exact."""
    return training.n_examples <= _SMALL


def with_linear_rule(options: RunOptions, kernel: Kernel) -> RunOptions:
    """Return the options with one rule for all linear machines, whichever solver their number of examples asks for."""
    linear = isinstance(kernel.kind, str) and kernel.kind == "linear"
    return replace(options, stop="gap") if linear and options.stop == "auto" else options


def solve_linear(task: LinearTask, training: TrainingSet, kernel: Kernel, options: RunOptions) -> Solution:
    """Solve without kernel values."""
    if task.solver == SEQUENTIAL_DUAL:
        return _in_core(task, training, kernel, options)
    if task.bias == "free":
        raise ValueError(
            f"solver={task.solver!r} has no free bias: use bias='regularized' or None, or 'sequential-dual'"
        )
    if task.solver == "exponentiated-gradient":
        if not task.loss.on_simplex:
            raise ValueError(
                "solver='exponentiated-gradient' needs a loss on a simplex, CrammerSingerSVC's; use 'sequential-dual'"
            )
        if options.stop == "violation":
            raise ValueError(
                "solver='exponentiated-gradient' has no stop='violation', its coefficients never reach their limits: "
                "use stop='gap' or 'sequential-dual'"
            )
        return _in_core(task, training, kernel, options)
    return _by_cutting_planes(task, training, kernel, options)


def _in_core(task: LinearTask, training: TrainingSet, kernel: Kernel, options: RunOptions) -> Solution:
    # The competitors of the sequential dual method start from points of their own.
    warm = options.start is not None and task.solver == SEQUENTIAL_DUAL
    start = row_start(options.start, training, task.loss) if warm and options.start is not None else None
    result = train_core(task, training, options, start)
    shape = (training.n_examples, task.layout.n_scores)
    coefficients = sp.csr_array((result.coefficients, result.columns, result.starts), shape=shape)
    if isinstance(task.loss, JointLoss) and task.loss.scores_sum_to_zero:
        coefficients = _kept(coefficients, task.loss)
    return Solution(
        model=linear_model(task, training, kernel, options, coefficients, result.weights, result.intercept),
        outcome=outcome(
            primal=result.primal,
            dual=result.dual,
            status=result.status.name,
            iterations=_iterations(result.visits, task.loss),
            solver=task.solver,
        ),
        violation=result.violation,
        by_gap=options.stop != "violation",
    )


def _kept(coefficients: sp.csr_array, loss: JointLoss) -> sp.csr_array:
    """Return rows of coefficients as they reach the scores: all classes of those that have any."""
    used = np.flatnonzero(np.diff(coefficients.indptr))
    rows = loss.kept(coefficients[used].toarray())
    starts = np.zeros(coefficients.shape[0] + 1, dtype=np.int64)
    starts[used + 1] = rows.shape[1]
    columns = np.tile(np.arange(rows.shape[1]), len(used))
    return sp.csr_array((rows.ravel(), columns, np.cumsum(starts)), shape=coefficients.shape)


def train_core(
    task: LinearTask, training: TrainingSet, options: RunOptions, start: _core.RowStart | None
) -> _core.LinearResult:
    """Return what the core makes of the examples."""
    bias = _core.Bias[task.bias or "none"]
    problem = _core.LinearProblem(task.loss.core, bias, training.cost_bounds, task.labels, task.layout.n_scores)
    settings = _core.LinearSettings(
        method=_core.LinearMethod[task.solver.replace("-", "_")],
        gap=options.tolerance,
        violation=options.violation,
        max_visits=options.max_iterations,
        seed=options.seed,
        **asdict(task.heuristics),
    )
    return _core.train_linear(
        core_data(training.X),
        training.order,
        problem,
        settings,
        start=start,
        threads=options.threads,
        time_limit=options.time_limit,
        progress=options.progress,
    )


def _iterations(visits: Ints, loss: LinearLoss) -> Any:
    """Return the visits of each class if every class is a problem of its own, else those of the one problem."""
    return int(visits.max()) if isinstance(loss, JointLoss) else visits


def _by_cutting_planes(task: LinearTask, training: TrainingSet, kernel: Kernel, options: RunOptions) -> Solution:
    from polymargin.solvers import solve_cutting_plane  # HiGHS

    assert isinstance(task.loss, JointLoss)
    rows = training.X[training.order]
    check_squares(rows, training.order)
    report = options.progress

    def solution(result: CuttingPlaneResult) -> Solution:
        return Solution(
            model=linear_model(task, training, kernel, options, result.coefficients, result.weights, result.intercept),
            outcome=outcome(
                primal=result.primal,
                dual=result.dual,
                status=result.status,
                iterations=result.iterations,
                solver=task.solver,
            ),
            by_gap=options.stop != "violation",
        )

    def progress(done: int, total: int, iterations: int, gap: float, result: Any = None, /) -> bool:
        assert report is not None
        return report(done, total, iterations, gap, None if result is None else lambda: solution(result()))

    limits = Limits(
        tolerance=options.tolerance,
        total_cost=options.total_cost(training),
        max_iterations=options.max_iterations,
        time_limit=options.time_limit,
        threads=options.threads,
        progress=None if report is None else progress,
    )
    n_columns = task.layout.n_scores
    return solution(
        solve_cutting_plane(rows, task.labels, training.cost_bounds, n_columns, task.loss, task.bias, limits)
    )


def linear_model(
    task: LinearTask,
    training: TrainingSet,
    kernel: Kernel,
    options: RunOptions,
    coefficients: sp.csr_array,
    weights: Floats,
    intercept: Floats,
) -> LinearModel:
    """Return the model of coefficients, examples x columns, and weights, features x columns."""
    used = np.flatnonzero(np.diff(coefficients.indptr))
    columns = sp.csc_array(coefficients[used].T)
    kept = columns.toarray() if np.prod(columns.shape) <= _DENSE else columns
    del columns, coefficients  # before the support vectors, which may be all examples, are copied
    return LinearModel(
        **expansion(training, kernel, used),
        coefficients=kept,
        weights=weights,
        intercept=task.layout.kept(intercept),
        layout=task.layout,
        tolerance=options.tolerance,
    )


def start_rows(model: KernelModel, training: TrainingSet) -> tuple[Ints, Floats] | None:
    """Return the examples of an earlier solution and their rows of coefficients; None if it does not fit."""
    example = previous_examples(model, training)
    if example is None:
        return None
    known = example >= 0
    return example[known], np.ascontiguousarray(dense(model.coefficients.T[known]))


def row_start(model: KernelModel, training: TrainingSet, loss: LinearLoss) -> _core.RowStart | None:
    """Return an earlier solution as a start, which the core makes feasible; None if it does not fit."""
    start = start_rows(model, training)
    if start is None:
        return None
    example, rows = start
    if isinstance(loss, JointLoss):
        rows = loss.dual_rows(rows, training.labels[example], training.cost_bounds[example])
    return _core.RowStart(example, rows, np.ascontiguousarray(model.intercepts))
