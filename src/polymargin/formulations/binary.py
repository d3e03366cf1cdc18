r"""Families of binary support vector machines on one kernel.

Each problem is, in signed coefficients :math:`b_i = y_i \alpha_i`,

.. math:: \max_b \; y'b - \tfrac12 b'Kb \quad\text{subject to}\quad \sum_i b_i = 0,\; 0 \le y_i b_i \le C_i,

the dual of Hsu & Lin (1) and (3), with :math:`C_i = C \cdot` class weight :math:`\cdot` sample weight. With squared
hinges, :math:`C_i \xi_i^2` in the primal, coefficients have no upper limit and :math:`\sum_i b_i^2 / 4 C_i` is taken
from the dual, as if K had :math:`1 / 2 C_i` more on its diagonal.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from polymargin import _core
from polymargin.formulations.formulation import (
    PairsSolution,
    RunOptions,
    expansion,
    outcome,
    previous_examples,
    refuse_inseparable,
    stop_reason,
)
from polymargin.formulations.training import TrainingSet
from polymargin.kernels import Kernel
from polymargin.losses import squared_limits
from polymargin.models import KernelModel, ScoreLayout
from polymargin.support.numeric import Floats, Ints

_VECTORS = 10
"""Of the examples, for each problem, where all problems begin together."""


def solve_binary(
    problems: _core.BinaryProblems,
    layout: ScoreLayout,
    training: TrainingSet,
    kernel: Kernel,
    options: RunOptions,
    folds: Ints | None = None,
    *,
    squared: bool = False,
) -> PairsSolution:
    """Solve a family of problems, one for each score; with folds also for the values of held-out examples."""
    session = kernel.session(
        training.X,
        training.order,
        training.largest_cost_bound,
        options.exact_to,
        options.budget_bytes(training.X, vectors=_VECTORS * layout.n_scores),
        options.threads,
    )
    results = session.train_binary(
        problems,
        training.cost_bounds,
        binary_settings(options),
        start=core_start(None if options.start is None else binary_start(options.start, training, squared=squared)),
        folds=folds,
        refine=kernel.refine,
        time_limit=options.time_limit,
        progress=options.progress,
    )
    statuses = results.status
    refuse_inseparable(_core.Status.unbounded in statuses)
    return PairsSolution(
        model=binary_model(results, layout, training, kernel, options.tolerance),
        outcome=outcome(
            primal=results.primal,
            dual=results.dual,
            status=stop_reason(statuses),
            iterations=results.iterations.astype(np.int64),
            evaluations=results.evaluations,
        ),
        violation=float(np.max(results.violation)),
        by_gap=options.stop == "gap",
        held_out=results.held_out,
    )


def binary_settings(options: RunOptions) -> _core.BinarySettings:
    """Return how far binary problems are to be solved."""
    return _core.BinarySettings(tolerance=options.tolerance, gap=options.gap, max_iterations=options.max_iterations)


def binary_model(
    results: Any, layout: ScoreLayout, training: TrainingSet, kernel: Kernel, tolerance: float
) -> KernelModel:
    """Return the model of solved problems; coefficients of problem p are [starts[p], starts[p + 1])."""
    support = results.support
    takes_part = np.zeros(training.n_examples, dtype=bool)
    takes_part[support] = True
    examples = np.flatnonzero(takes_part)
    column = np.cumsum(takes_part)[support] - 1
    problem = np.repeat(np.arange(len(results.starts) - 1), np.diff(results.starts))
    coefficients = np.zeros((layout.height, len(examples)))
    coefficients[layout.coefficient_rows(problem, training.labels[support]), column] = results.beta
    return KernelModel(
        **expansion(training, kernel, examples),
        coefficients=layout.sign * coefficients,
        intercept=layout.sign * results.intercept,
        layout=layout,
        tolerance=tolerance,
    )


class BinaryStart(NamedTuple):
    """Where solvers begin: the coefficients of problem p are [starts[p], starts[p + 1])."""

    starts: Ints
    support: Ints
    beta: Floats

    def parts(self) -> list[BinaryStart]:
        """Return the start of each problem on its own."""
        ends = pairwise(self.starts)
        return [BinaryStart(np.array([0, e - b]), self.support[b:e], self.beta[b:e]) for b, e in ends]


def core_start(start: BinaryStart | None) -> _core.BinaryStart | None:
    """Return a start as the core takes it."""
    return None if start is None else _core.BinaryStart(*start)


def binary_start(model: KernelModel, training: TrainingSet, *, squared: bool = False) -> BinaryStart | None:
    """Return an earlier solution, made feasible for these costs, as a start; None if it does not fit."""
    limits = squared_limits(training.cost_bounds) if squared else training.cost_bounds
    example = previous_examples(model, training)
    if example is None:
        return None
    known = example >= 0
    starts, support, beta = [0], [], []
    coefficients = model.layout.sign * model.coefficients
    for score in range(model.layout.n_scores):
        members, rows = model.layout.terms(score, model.class_counts)
        members, rows = members[known[members]], rows[known[members]]
        values = _feasible(coefficients[rows, members], limits[example[members]])
        used = values != 0
        support.append(example[members][used])
        beta.append(values[used])
        starts.append(starts[-1] + int(used.sum()))
    return BinaryStart(np.array(starts), np.concatenate(support), np.concatenate(beta))


def _feasible(beta: Floats, cost_bounds: Floats) -> Floats:
    """Clip signed coefficients to their bounds and scale the heavier side so that they sum to zero."""
    beta = np.clip(beta, -cost_bounds, cost_bounds)
    positive, negative = beta[beta > 0].sum(), -beta[beta < 0].sum()
    if positive == 0 or negative == 0:
        return np.zeros_like(beta)
    factor: Floats = np.where(beta > 0, min(1.0, negative / positive), min(1.0, positive / negative))
    return beta * factor


def signed_ranges(*ranges: tuple[Ints, Ints, int], squared: bool = False) -> _core.BinaryProblems:
    """Return problems from the begins, ends and sign of their first ranges, their second ranges, and so on.

    Ranges of a problem ascend; those that are empty are left out.
    """
    table = np.empty((len(ranges[0][0]), len(ranges), 4), dtype=np.int64)
    table[:, :, 0] = np.arange(len(table))[:, None]
    for part, (begin, end, sign) in enumerate(ranges):
        table[:, part, 1], table[:, part, 2], table[:, part, 3] = begin, end, sign
    rows = table.reshape(-1, 4)
    return _core.BinaryProblems(rows[rows[:, 2] > rows[:, 1]], squared)
