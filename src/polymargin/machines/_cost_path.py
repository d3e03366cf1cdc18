"""Machines made of binary problems, for many costs and parts of the data by one call of the core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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

_SCORES_AT_ONCE = 4_000_000  # their memory


@dataclass(frozen=True)
class Division:
    """Examples to train on, with their classes and weights, and examples to decide on, by their numbers."""

    train: Ints
    y: NDArray[Any]
    sample_weight: Any
    test: Ints


def classes_for_costs(
    machine: CostPathMachine,
    K: NDArray[Any],
    y: NDArray[Any],
    divisions: list[Division],
    costs: list[float],
    tolerance: float,
    report: Callable[[float], bool],
) -> list[NDArray[Any] | None]:
    """Return what machines of ascending costs, fitted to one part of the examples, give to the other part.

    All divisions are solved by one call, on the whole matrix: an example that takes no part has the bound 0.

    Parameters
    ----------
    machine : CostPathMachine
        With all parameters but C.
    K : array of shape (n, n)
        Kernel values of all examples; if these are sorted by class, they are read where they are.
    y : array of shape (n,)
        Their classes.
    divisions : list of Division
        The parts.
    costs : list of float
        Ascending.
    tolerance : float
        The smallest that ``K`` is exact enough for.
    report : callable
        Called now and then with the share that is done; if it returns False, what is left is not done.

    Returns
    -------
    list of (array of shape (n_costs, n_test), or None)
        Classes, for each division. None if one of its machines did not converge, or if it has not all classes to train
        on: then each has to be fitted, to tell what it says.
    """
    machine._validate_params()
    machine.classes_, codes = np.unique(y, return_inverse=True)
    order = np.argsort(codes, kind="stable").astype(np.int64)
    bounds = np.searchsorted(codes[order], np.arange(len(machine.classes_) + 1)).astype(np.int64)
    complete = [d for d, division in enumerate(divisions) if len(np.unique(division.y)) == len(machine.classes_)]
    answers: list[NDArray[Any] | None] = [None] * len(divisions)
    if not complete:
        return answers
    threads = thread_count(machine.n_jobs)
    weight = _weights(machine, codes, order, [divisions[d] for d in complete])
    session = _core.KernelSession(
        _core.Data.precomputed(K),
        Kernel("precomputed", 0.0, 0.0, 0).spec,
        order,
        costs[-1] * float(weight.max()),
        tolerance,
        True,
        budget_bytes(machine.cache_size, 8 * len(order) ** 2 + 1_000_000),
        threads,
        rough=K.dtype == np.float32,
    )
    problems = machine._problems(bounds)
    solution = BinarySolution.of(
        session.train_paths(
            problems,
            weight,
            np.asarray(costs),
            float(machine.tol),
            int(machine.max_iter),
            lambda done, total, *_: report(done / max(1, total)),
        )
    )
    parts = solution.parts(len(complete))

    def answer(number: int) -> None:
        d, part = complete[number], parts[number]
        if part.stop_reason == "converged":
            scores = partial(_scores, session, problems, part, len(costs), max(1, threads // len(parts)))
            answers[d] = machine.classes_[_decided(machine, scores, divisions[d].test, len(part.intercept))].T

    for_each(answer, range(len(parts)), min(threads, len(parts)))
    return answers


def _weights(machine: CostPathMachine, codes: Ints, order: Ints, divisions: list[Division]) -> Floats:
    """Return the weight of each example in each division, 0 where it takes no part, in the order of the core."""
    weight = np.zeros((len(divisions), len(order)))
    place = np.argsort(order)
    for row, division in zip(weight, divisions, strict=True):
        sample_weight = None if division.sample_weight is None else checked_weights(division.sample_weight, division.y)
        training = machine._training_set(codes[division.train], machine.classes_, sample_weight)
        row[place[division.train[training.order]]] = training.weight
    return weight


def _scores(
    session: _core.KernelSession, problems: Ints, solution: BinarySolution, n_costs: int, threads: int, rows: Ints
) -> Floats:
    """Return the scores that some rows get, (n_problems, n_rows, n_costs)."""
    out = np.empty((len(problems), len(rows), n_costs))
    of_solution = (solution.starts, solution.support, solution.beta, solution.intercept)
    session.path_scores(rows, problems, *of_solution, out, threads)
    return out


def _decided(machine: CostPathMachine, scores: Callable[[Ints], Floats], rows: Ints, n_scores: int) -> Ints:
    """Return the class that the machine of each cost gives to each row, (n_rows, n_costs)."""
    sign = machine._sign(len(machine.classes_))
    decided = []
    for part in gen_batches(len(rows), max(1, _SCORES_AT_ONCE // n_scores)):
        of_problems = sign * scores(rows[part])
        n_problems, n_rows, n_costs = of_problems.shape
        decided.append(machine._decide_all(of_problems.reshape(n_problems, -1).T).reshape(n_rows, n_costs))
    return np.concatenate(decided)
