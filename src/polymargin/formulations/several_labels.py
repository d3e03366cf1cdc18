"""A binary problem for each of several labels, which an example may have any number of.

Examples that have a label are positive in its problem, all others negative. A label that all examples have, or none,
has no problem: its score is 1 or -1 everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from polymargin import _core
from polymargin.formulations.apart import BinarySolve, Part, solve_apart
from polymargin.formulations.binary import solve_binary
from polymargin.formulations.formulation import PairsSolution, RunOptions, expansion, outcome
from polymargin.formulations.training import TrainingSet
from polymargin.kernels import Kernel
from polymargin.models import KernelModel, LabelLayout, LinearModel
from polymargin.support.label_sets import LabelSets
from polymargin.support.numeric import Ints


def solve_labels(training: TrainingSet, kernel: Kernel, options: RunOptions, *, squared: bool) -> PairsSolution:
    """Solve the problems of all labels, side by side on one kernel; hinges may be squared."""
    sets = _sets(training)

    def solve(layout: LabelLayout, options: RunOptions) -> PairsSolution:
        problems = label_problems(sets, sets.varying, squared=squared)
        return solve_binary(problems, layout, training, kernel, options, squared=squared)

    return _without_constants(training, kernel, options, solve)


def solve_labels_apart(
    training: TrainingSet, kernel: Kernel, options: RunOptions, solve_part: BinarySolve
) -> PairsSolution:
    """Solve the problems of all labels one by one, for the linear kernel, without a kernel matrix of all of them."""
    sets = _sets(training)

    def solve(layout: LabelLayout, options: RunOptions) -> PairsSolution:
        everyone = np.arange(len(sets))
        members = [sets.members(label) for label in sets.varying]
        parts = [Part(np.delete(everyone, own), own) for own in members]
        return solve_apart(parts, layout, training, kernel, options, solve_part)

    return _without_constants(training, kernel, options, solve)


def label_problems(sets: LabelSets, labels: Ints, *, squared: bool = False) -> _core.BinaryProblems:
    """Return the problems of some labels: neighbours that have a label are one range of examples, as are the others.

    There are no more ranges than twice the entries of the indicator matrix, whatever the order of the examples.
    """
    tables = []
    for problem, label in enumerate(labels):
        own = sets.members(label)
        breaks = np.flatnonzero(np.diff(own) > 1)
        begins, ends = own[np.append(0, breaks + 1)], own[np.append(breaks, len(own) - 1)] + 1
        edges = np.concatenate([[0], np.column_stack([begins, ends]).ravel(), [len(sets)]])
        signs = np.where(np.arange(len(edges) - 1) % 2 == 0, -1, 1)
        table = np.column_stack([np.full(len(signs), problem), edges[:-1], edges[1:], signs])
        tables.append(table[edges[1:] > edges[:-1]])
    return _core.BinaryProblems(np.ascontiguousarray(np.concatenate(tables)), squared)


def _sets(training: TrainingSet) -> LabelSets:
    assert training.label_sets is not None
    return training.label_sets


def _without_constants(
    training: TrainingSet,
    kernel: Kernel,
    options: RunOptions,
    solve: Callable[[LabelLayout, RunOptions], PairsSolution],
) -> PairsSolution:
    """Solve for the labels that some examples have and others have not, and give the others their constant score."""
    sets = _sets(training)
    varying = sets.varying
    layout = LabelLayout(sets.n_labels, len(varying))
    if len(varying) == 0:
        solution = _nothing(layout, training, kernel, options)
    else:
        start = None if options.start is None else _restricted(options.start, varying, layout)
        solution = solve(layout, replace(options, start=start))
    iterations = np.zeros(sets.n_labels, dtype=np.int64)
    iterations[varying] = solution.outcome.iterations
    ended = replace(solution.outcome, iterations=iterations)
    return replace(solution, model=_completed(solution.model, sets), outcome=ended)


def _nothing(layout: LabelLayout, training: TrainingSet, kernel: Kernel, options: RunOptions) -> PairsSolution:
    """Return what there is where no label can be learned."""
    model = KernelModel(
        **expansion(training, kernel, np.empty(0, dtype=np.int64)),
        coefficients=np.zeros((0, 0)),
        intercept=np.empty(0),
        layout=layout,
        tolerance=options.tolerance,
    )
    nothing = np.empty(0)
    ended = outcome(primal=nothing, dual=nothing, status="converged", iterations=np.empty(0, dtype=np.int64))
    return PairsSolution(model=model, outcome=ended)


def _restricted(model: KernelModel, labels: Ints, layout: LabelLayout) -> KernelModel | None:
    """Return an earlier model's scores of some labels, to start from; None if it has others or is too large."""
    if sp.issparse(model.coefficients) or not isinstance(model.layout, LabelLayout):
        return None
    if model.layout.n_scores <= int(labels.max()):
        return None
    return replace(model, coefficients=model.coefficients[labels], intercept=model.intercept[labels], layout=layout)


def _completed(model: KernelModel, sets: LabelSets) -> KernelModel:
    """Return a model of all labels, of that of those which vary: the others have no support vectors."""
    k, varying = sets.n_labels, sets.varying
    coefficients = np.zeros((k, len(model.support)))
    coefficients[varying] = model.coefficients
    intercept = np.where(sets.counts > 0, 1.0, -1.0)
    intercept[varying] = model.intercept
    changes: dict[str, Any] = {"coefficients": coefficients, "intercept": intercept, "layout": LabelLayout(k, k)}
    if isinstance(model, LinearModel):
        weights = np.zeros((model.n_features, k))
        weights[:, varying] = model.weights
        changes["weights"] = weights
    return replace(model, **changes)
