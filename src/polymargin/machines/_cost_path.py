"""Machines made of binary problems, for many costs at once: one call of the core and one product for all scores."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from polymargin import _core
from polymargin._memory import budget_bytes
from polymargin._threads import for_each, thread_count
from polymargin.machines._binary import CostPathMachine
from polymargin.machines._kernel import Kernel
from polymargin.machines._machine import checked_weights
from polymargin.machines._solution import BinarySolution, Floats, Ints

_ROWS_AT_ONCE = 128  # whose kernel values stay in the cache, and whose scores need little memory


def classes_for_costs(
    machine: CostPathMachine,
    K: NDArray[Any],
    train: Ints,
    y: NDArray[Any],
    sample_weight: Any,
    test: Ints,
    costs: list[float],
    tolerance: float,
    go_on: Callable[[], bool],
) -> NDArray[Any] | None:
    """Return what machines of ascending costs, fitted to some rows of a kernel matrix, give to other rows.

    Parameters
    ----------
    machine : CostPathMachine
        With all parameters but C.
    K : array of shape (n, n)
        Kernel values, of which the rows and columns ``train`` are those of the training examples.
    train, y, sample_weight : arrays
        Numbers, classes and weights of the training examples.
    test : array
        Numbers of the examples to decide on.
    costs : list of float
        Ascending.
    tolerance : float
        The smallest that ``K`` is exact enough for.
    go_on : callable
        Asked now and then.

    Returns
    -------
    array of shape (n_costs, n_test), or None
        Classes. None if one of the machines did not converge: then each has to be fitted, to tell what it says.
    """
    machine._validate_params()
    weight = None if sample_weight is None else checked_weights(sample_weight, y)
    classes, codes = np.unique(y, return_inverse=True)
    training = machine._training_set(codes, classes, weight)
    rows = train[training.order]
    largest = costs[-1] * float(training.weight.max())
    useful = 8 * len(rows) ** 2 + 1_000_000
    session = _core.KernelSession(
        _core.Data.precomputed(K),
        Kernel("precomputed", 0.0, 0.0, 0).spec,
        rows,
        largest,
        tolerance,
        False,
        budget_bytes(machine.cache_size, useful),
        thread_count(machine.n_jobs),
        rough=K.dtype == np.float32,
    )
    raw = session.train(
        machine._problems(training.bounds),
        training.weight,
        None,
        None,
        False,
        float(machine.tol),
        int(machine.max_iter),
        float("inf"),
        lambda *_: go_on(),
        np.asarray(costs),
    )
    solution = BinarySolution.of(raw)
    if solution.stop_reason != "converged":
        return None
    machine.classes_ = classes
    return classes[_decided(machine, K, rows, training.bounds, test, solution, len(costs))].T


def _decided(
    machine: CostPathMachine,
    K: NDArray[Any],
    rows: Ints,
    bounds: Ints,
    test: Ints,
    solution: BinarySolution,
    n_costs: int,
) -> Ints:
    """Return the class that each machine gives to each row, (n_test, n_costs)."""
    sign = machine._sign(len(bounds) - 1)
    used = np.zeros(len(rows), dtype=bool)
    used[solution.support] = True
    examples, column = np.flatnonzero(used), (np.cumsum(used) - 1)[solution.support]
    n_scores = len(solution.intercept)
    coefficients: Floats = np.zeros((n_scores, len(examples)))
    coefficients[solution.problem, column] = sign * solution.beta
    columns = rows[examples]
    blocks = _blocks(coefficients, np.searchsorted(examples, bounds))
    decided = np.empty((len(test), n_costs), dtype=np.int64)

    def decide(part: slice) -> None:
        values = K[test[part]].take(columns, axis=1).astype(np.float64, copy=False)
        scores = np.tile(sign * solution.intercept, (len(values), 1))
        for vectors, problems, block in blocks:
            scores[:, problems] += values[:, vectors] @ block.T
        chosen = machine._decide_all(scores.reshape(-1, n_scores // n_costs))
        decided[part] = chosen.reshape(-1, n_costs)

    for_each(decide, gen_batches(len(test), _ROWS_AT_ONCE), thread_count(machine.n_jobs))
    return decided


def _blocks(coefficients: Floats, bounds: Ints) -> list[tuple[slice, Ints, Floats]]:
    """Return the coefficients of the vectors of each class, in the problems that they take part in."""
    blocks = []
    for begin, end in pairwise(bounds):
        problems = np.flatnonzero(coefficients[:, begin:end].any(axis=1))
        blocks.append((slice(begin, end), problems, coefficients[problems, begin:end]))
    return blocks
