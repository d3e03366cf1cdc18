"""Machines made of binary problems, for many costs and parts of the data by one call of the core."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from polymargin import _core
from polymargin.estimators._binary import CostPathMachine
from polymargin.estimators._machine import checked_weights
from polymargin.formulations.solution import Floats, Ints
from polymargin.kernels.kernel import Kernel
from polymargin.support.memory import budget_bytes
from polymargin.support.threads import for_each, thread_count

_SOLUTION_BYTES = 256_000_000  # of all costs and divisions that are solved at once
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
    decisions: list[str | None],
    K: NDArray[Any],
    y: NDArray[Any],
    divisions: list[Division],
    costs: list[float],
    tolerance: float,
    report: Callable[[float], bool],
) -> list[list[NDArray[Any]] | None]:
    """Return what machines of ascending costs, fitted to one part of the examples, give to the other part.

    Divisions are solved together, on the whole matrix: an example that takes no part has the bound 0.

    Parameters
    ----------
    machine : CostPathMachine
        With all parameters but C.
    decisions : list of (str or None)
        Ways to decide from the same values; None is the machine's own.
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
    list of (list of arrays of shape (n_costs, n_test), or None)
        Classes by each decision, for each division. None if one of its machines did not converge, or if it has not all
        classes to train on: then each has to be fitted, to tell what it says.
    """
    machine._validate_params()
    family = _Family(machine, decisions, K, y, costs)
    answers: list[list[NDArray[Any]] | None] = [None] * len(divisions)
    complete = [d for d, division in enumerate(divisions) if family.has_all_classes(division)]
    if not complete:
        return answers
    weight = np.array([family.weight(divisions[d]) for d in complete])
    session = family.session(costs[-1] * float(weight.max()), tolerance)
    for batch in gen_batches(len(complete), max(1, _SOLUTION_BYTES // family.solution_bytes)):
        share = partial(_share, report, batch.start / len(complete), (batch.stop - batch.start) / len(complete))
        parts = zip(complete[batch], family.solve(session, weight[batch], share), strict=True)
        solved = [(d, part) for d, part in parts if part.stop_reason is _core.Status.converged]
        tests = [(divisions[d].test, part) for d, part in solved]
        for (d, _), answer in zip(solved, family.decide(session, tests), strict=True):
            answers[d] = answer
    return answers


def _share(report: Callable[[float], bool], before: float, of_all: float, done: int, total: int, *_: Any) -> bool:
    return report(before + of_all * done / max(1, total))


class _Family:
    """The binary problems of a machine on all examples of a kernel matrix, for ascending costs."""

    def __init__(
        self,
        machine: CostPathMachine,
        decisions: list[str | None],
        K: NDArray[Any],
        y: NDArray[Any],
        costs: list[float],
    ) -> None:
        self.machine, self.K, self.costs = machine, K, costs
        self.threads = thread_count(machine.n_jobs)
        machine.classes_, self.codes = np.unique(y, return_inverse=True)
        self.deciders = [_that_decides(machine, decision) for decision in decisions]
        self.order = np.argsort(self.codes, kind="stable").astype(np.int64)
        self.place = np.argsort(self.order)
        bounds = np.searchsorted(self.codes[self.order], np.arange(len(machine.classes_) + 1)).astype(np.int64)
        self.problems = _core.BinaryProblems(machine._problems(bounds))

    @property
    def solution_bytes(self) -> int:
        """The most memory that the solutions of one division can take."""
        return 16 * len(self.costs) * int(self.problems.sizes.sum())

    def has_all_classes(self, division: Division) -> bool:
        """Whether there are examples of every class to train on."""
        return len(np.unique(division.y)) == len(self.machine.classes_)

    def weight(self, division: Division) -> Floats:
        """Return the weight of each example, 0 where it takes no part, in the order of the core."""
        given = division.sample_weight
        sample_weight = None if given is None else checked_weights(given, division.y)
        training = self.machine._training_set(self.codes[division.train], self.machine.classes_, sample_weight)
        weight = np.zeros(len(self.order))
        weight[self.place[division.train[training.order]]] = training.weight
        return weight

    def session(self, largest: float, tolerance: float) -> _core.KernelSession:
        """Return what trains on the matrix, exact enough for bounds up to ``largest``."""
        return _core.KernelSession(
            _core.Data.precomputed(self.K),
            Kernel("precomputed", 0.0, 0.0, 0).spec,
            self.order,
            _core.Exactness(largest_cost_bound=largest, tolerance=tolerance, rough=self.K.dtype == np.float32),
            _core.Resources(
                budget_bytes=budget_bytes(self.machine.cache_size, 8 * len(self.order) ** 2 + 1_000_000),
                threads=self.threads,
                whole=True,
            ),
        )

    def solve(self, session: _core.KernelSession, weight: Floats, progress: Any) -> list[_core.BinaryResults]:
        """Return the solutions for each row of weights."""
        settings = _core.BinarySettings(tolerance=float(self.machine.tol), max_iterations=int(self.machine.max_iter))
        costs = np.asarray(self.costs)
        results = session.train_paths(self.problems, weight, costs, settings, progress=progress)
        ends = range(0, len(results) + 1, len(self.problems) * len(costs))
        return [results.part(first, last) for first, last in pairwise(ends)]

    def decide(
        self, session: _core.KernelSession, tests: list[tuple[Ints, _core.BinaryResults]]
    ) -> Iterator[list[NDArray[Any]]]:
        """Yield the classes, (n_costs, n_rows) for each decision, that each solution gives to its rows."""
        classes = self.machine.classes_
        threads = max(1, self.threads // max(1, len(tests)))  # within a test
        decided: list[list[Ints]] = [[]] * len(tests)

        def work(t: int) -> None:
            rows, solution = tests[t]
            at_once = max(1, _SCORES_AT_ONCE // len(solution))
            parts = [self._decided(session, rows[part], solution, threads) for part in gen_batches(len(rows), at_once)]
            decided[t] = [np.concatenate(by_decision) for by_decision in zip(*parts, strict=True)]

        for_each(work, range(len(tests)), max(1, min(self.threads, len(tests))))
        return ([classes[each].T for each in by_decision] for by_decision in decided)

    def _decided(
        self, session: _core.KernelSession, rows: Ints, solution: _core.BinaryResults, threads: int
    ) -> list[Ints]:
        """Return the numbers of the classes that machines of each cost give to each row, (n_rows, n_costs)."""
        scores = np.empty((len(self.problems), len(rows), len(self.costs)))
        session.path_scores(rows, self.problems, solution, scores, threads)
        scores *= self.machine._sign(len(self.machine.classes_))
        values = scores.reshape(len(scores), -1).T
        return [decider._decide_all(values).reshape(len(rows), -1) for decider in self.deciders]


def _that_decides(machine: CostPathMachine, decision: str | None) -> Any:
    """Return the machine, or one that decides in another way."""
    if decision is None:
        return machine
    other: Any = copy(machine)
    other.decision = decision
    return other
