r"""Binary machines without a bias, or with a regularised one, on kernel values.

Weston and Watkins' machine for two classes with margin 1 has :math:`w_2 = -w_1` at its optimum, and with
:math:`u = 2 w_1`, :math:`\beta = 2 B_1` and half the cost its two problems are half of

.. math:: \min_u \tfrac12 |u|^2 + \sum_i C_i \max(0, 1 - y_i u'x_i), \qquad
          \max_\beta \; y'\beta - \tfrac12 \beta'K\beta \;\text{ subject to }\; 0 \le y_i \beta_i \le C_i,

with ``K + 1`` for K where the bias is regularised. So the decomposition of joint machines solves it. With squared
hinges all of that is the same, but for the conjugate terms.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from polymargin import _core
from polymargin.formulations.formulation import Progress, RunOptions, Solution, expansion, outcome, stop_reason
from polymargin.formulations.linear import LinearTask, start_rows
from polymargin.formulations.training import TrainingSet
from polymargin.kernels import Kernel
from polymargin.losses import SquaredOneVsRest, SquaredWestonWatkins, WestonWatkins
from polymargin.models import KernelModel
from polymargin.support.numeric import Floats, Ints


def solve_signed(task: LinearTask, training: TrainingSet, kernel: Kernel, options: RunOptions) -> Solution:
    """Solve a binary problem for each column, whose examples are positive, one after the other on one matrix.

    Parameters
    ----------
    task : LinearTask
        The loss, the bias, which is not free, the column of each example, and which scores there are.
    training, kernel, options
        What is solved on what, and how far.
    """
    session = kernel.session(
        training.X,
        training.order,
        training.largest_cost_bound,
        options.exact_to,
        options.budget_bytes(training.X, 7),
        options.threads,
    )
    ends = time.perf_counter() + options.time_limit
    start = None if options.start is None else start_rows(options.start, training)
    layout, k = task.layout, task.layout.n_scores
    results, coefficients = [], np.zeros((k, training.n_examples))
    for m in range(k):
        left = replace(options, time_limit=max(0.0, ends - time.perf_counter()), progress=_progress(options, m, k))
        result = _solved(session, task, m, training, _part(start, m), kernel.refine, left)
        coefficients[m, result.support] = 2.0 * result.rows[:, 0]
        results.append(result)
    used = np.flatnonzero(coefficients.any(axis=0))
    model = KernelModel(
        **expansion(training, kernel, used),
        coefficients=np.ascontiguousarray(coefficients[:, used]),
        intercept=layout.kept(np.array([2.0 * result.intercept[0] for result in results])),
        layout=layout,
        tolerance=options.tolerance,
    )
    ended = outcome(
        primal=2.0 * np.array([result.primal for result in results]),
        dual=2.0 * np.array([result.dual for result in results]),
        status=stop_reason([result.status for result in results]),
        iterations=np.array([result.iterations for result in results], dtype=np.int64),
        evaluations=sum(result.evaluations for result in results),
    )
    violation = max(result.violation for result in results)
    return Solution(model=model, outcome=ended, violation=violation, by_gap=options.stop == "gap")


def _solved(
    session: _core.KernelSession,
    task: LinearTask,
    column: int,
    training: TrainingSet,
    start: _core.RowStart | None,
    refine: bool,
    options: RunOptions,
) -> _core.JointResult:
    """Return the machine of two classes, those of a column and all others."""
    loss = (SquaredWestonWatkins if isinstance(task.loss, SquaredOneVsRest) else WestonWatkins)(margin=1.0).core
    labels = np.where(task.labels == column, 0, 1)
    return session.train_joint(
        _core.JointProblem(loss, _core.Bias[task.bias or "none"], training.cost_bounds / 2.0, labels, 2),
        _core.JointSettings(tolerance=options.tolerance, gap=options.gap, gap_counts=options.stop == "gap"),
        start=start,
        refine=refine,
        time_limit=options.time_limit,
        progress=options.progress,
    )


def _part(start: tuple[Ints, Floats] | None, column: int) -> _core.RowStart | None:
    """Return the start of the machine of a column, of the examples and their rows."""
    if start is None:
        return None
    half = start[1][:, column] / 2.0
    return _core.RowStart(start[0], np.column_stack([half, -half]), np.zeros(2))


def _progress(options: RunOptions, done: int, total: int) -> Progress | None:
    """Return what tells of one problem among others."""
    report = options.progress
    if report is None:
        return None
    return lambda _done, _total, iterations, value, *_: report(done, total, iterations, value)
