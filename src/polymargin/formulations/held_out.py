"""Scores of examples by machines that have not seen them: what probabilities are fitted to.

A machine is solved once for good and then again without each of five folds. That is cheap: a fold begins with the
coefficients, or the weights, of the whole solution. On kernel values an example that is held out has the cost 0, so
that all of them are one problem on one matrix with five sets of costs; solvers on the examples themselves get fewer of
them.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from polymargin.formulations.folds import folds_of
from polymargin.formulations.formulation import Formulation, HeldOut, RunOptions, Solution
from polymargin.formulations.training import TrainingSet
from polymargin.kernels import Kernel
from polymargin.support.examples import rows_of
from polymargin.support.numeric import Ints


def solve_held_out(formulation: Formulation, training: TrainingSet, kernel: Kernel, options: RunOptions) -> Solution:
    """Solve, and solve again without each fold.

    Parameters
    ----------
    formulation : Formulation
        What is solved.
    training, kernel, options
        On what, and how far. The limit of time is one for all, that of steps one for each.

    Returns
    -------
    Solution
        The solution, with the scores of held-out examples.
    """
    began = time.perf_counter()
    folds = folds_of(kernel.examples(training.X), training, options.random_state)
    by_cost = kernel.kind != "linear" and getattr(formulation, "drops_by_cost", False)
    shared = kernel.kept() if by_cost else kernel
    whole = formulation.solve(training, shared, options)
    ends = began + options.time_limit if whole.outcome.stop_reason != "stopped" else began
    report = _telling(options.progress, formulation.n_problems(training.n_classes) or 1)
    scores, status = np.empty((training.n_examples, whole.model.layout.n_scores)), "converged"
    for fold in np.unique(folds):
        held, solution = np.flatnonzero(folds == fold), whole
        if fold >= 0:
            part = _free_of_cost(training, held) if by_cost else _without(training, held)
            left = max(0.0, ends - time.perf_counter())
            limited = replace(options, start=whole.model, time_limit=left, progress=report)
            solution = formulation.solve(part, shared, limited)
            status = solution.outcome.stop_reason if status == "converged" else status
        rows = rows_of(training.X, training.order[held])
        scores[held] = solution.model.raw_scores(rows, options.threads)[0]
    own = replace(whole.model, kernel=kernel)
    return replace(whole, model=own, folds=HeldOut(scores=scores, status=status))


def _free_of_cost(training: TrainingSet, held: Ints) -> TrainingSet:
    """Return the examples with nothing to pay for some of them."""
    bounds = training.cost_bounds.copy()
    bounds[held] = 0.0
    return replace(training, cost_bounds=bounds)


def _without(training: TrainingSet, held: Ints) -> TrainingSet:
    """Return the examples that are left."""
    left = np.ones(training.n_examples, dtype=bool)
    left[held] = False
    starts = np.concatenate([[0], np.cumsum(left)])[training.class_starts]
    return TrainingSet(training.X, training.order[left], starts, training.cost_bounds[left], training.weight[left])


def _telling(report: Any, n_problems: int) -> Any:
    """Return what tells that all problems are solved and folds under way, so that a callback can ask to stop."""
    if report is None:
        return None
    return lambda _done, _total, iterations, value, *_: report(n_problems, n_problems, iterations, value)
