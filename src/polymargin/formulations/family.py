"""Families of binary problems on one kernel matrix, for many costs and many parts of the examples by one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polymargin import _core
from polymargin.decision import DecisionRule
from polymargin.formulations.binary import binary_settings
from polymargin.formulations.formulation import RunOptions
from polymargin.kernels import Kernel
from polymargin.models import ScoreLayout
from polymargin.support.blocks import slices
from polymargin.support.memory import budget_bytes
from polymargin.support.numeric import Floats, Ints
from polymargin.support.threads import for_each

_SOLUTION_BYTES = 256_000_000  # of all costs and divisions that are solved at once
_SCORES_AT_ONCE = 4_000_000  # their memory


class BinaryFormulation(Protocol):
    """A formulation that is a family of binary problems with a free bias, and nothing more."""

    def problems(self, class_starts: Ints) -> _core.BinaryProblems:
        """Return the problems on examples that are sorted by class."""

    def layout(self, n_classes: int) -> ScoreLayout:
        """Return which scores a model has, one for each problem."""


@dataclass(frozen=True, eq=False)
class Division:
    """Some examples to train on and some to decide on, by their numbers.

    ``weight`` has the factor of the cost for every example of the matrix, 0 where it is not trained on.
    """

    weight: Floats
    test: Ints


class CostFamily:
    """The problems of a formulation on all examples of a kernel matrix, for ascending costs.

    Divisions are solved together, on the whole matrix: an example that takes no part has the cost 0.

    Parameters
    ----------
    formulation : BinaryFormulation
        What is solved.
    K : array of shape (n, n)
        Kernel values of all examples; if these are sorted by class, they are read where they are.
    codes : array of shape (n,)
        Their classes, as numbers from 0 on.
    costs : list of float
        Ascending.
    exact_to : float
        The smallest tolerance that ``K`` is exact enough for.
    options : RunOptions
        Tolerance, steps, memory and threads.
    """

    def __init__(
        self,
        formulation: BinaryFormulation,
        K: NDArray[Any],
        codes: Ints,
        costs: list[float],
        exact_to: float,
        options: RunOptions,
    ) -> None:
        self._K, self._costs, self._exact_to, self._options = K, costs, exact_to, options
        n_classes = int(codes.max()) + 1
        self._order = np.argsort(codes, kind="stable").astype(np.int64)
        starts = np.searchsorted(codes[self._order], np.arange(n_classes + 1)).astype(np.int64)
        self._problems = formulation.problems(starts)
        self._sign = formulation.layout(n_classes).sign

    def decided(
        self, divisions: list[Division], rules: list[DecisionRule], report: Callable[[float], bool]
    ) -> list[list[Ints] | None]:
        """Return what machines of all costs, trained on one part of the examples, give to the other part.

        Parameters
        ----------
        divisions : list of Division
            The parts.
        rules : list of DecisionRule
            Ways to decide from the same values.
        report : callable
            Called now and then with the share that is done; if it returns False, what is left is not done.

        Returns
        -------
        list of (list of arrays of shape (n_costs, n_test), or None)
            Numbers of classes by each rule, for each division; None if one of its machines did not converge.
        """
        answers: list[list[Ints] | None] = [None] * len(divisions)
        if not divisions:
            return answers
        weight = np.array([division.weight[self._order] for division in divisions])
        session = self._session(self._costs[-1] * float(weight.max()))
        for batch in slices(len(divisions), max(1, _SOLUTION_BYTES // self._solution_bytes)):
            of_all = (batch.stop - batch.start) / len(divisions)
            share = partial(_report_share, report, batch.start / len(divisions), of_all)
            parts = enumerate(self._solve(session, weight[batch], share), batch.start)
            solved = [(d, part) for d, part in parts if part.stop_reason == _core.Status.converged]
            tests = [(divisions[d].test, part) for d, part in solved]
            for (d, _), answer in zip(solved, self._decide(session, tests, rules), strict=True):
                answers[d] = answer
        return answers

    @property
    def _solution_bytes(self) -> int:
        """The most memory that the solutions of one division can take."""
        return 16 * len(self._costs) * int(self._problems.sizes.sum())

    def _session(self, largest_cost_bound: float) -> _core.KernelSession:
        """Return what trains on the matrix, exact enough for these costs."""
        budget = budget_bytes(self._options.cache_size, 8 * len(self._order) ** 2 + 1_000_000)
        return _core.KernelSession(
            _core.Data.precomputed(self._K),
            Kernel("precomputed", 0.0, 0.0, 0).spec,
            self._order,
            _core.Exactness(
                largest_cost_bound=largest_cost_bound, tolerance=self._exact_to, rough=self._K.dtype == np.float32
            ),
            _core.Resources(budget_bytes=budget, threads=self._options.threads, whole=True),
        )

    def _solve(self, session: _core.KernelSession, weight: Floats, progress: Any) -> list[_core.BinaryResults]:
        """Return the solutions for each row of weights."""
        options = self._options
        settings = binary_settings(options)
        results = session.train_paths(
            self._problems, weight, np.asarray(self._costs, dtype=np.float64), settings, progress=progress
        )
        size = len(results) // len(weight)
        return [results.part(size * row, size * (row + 1)) for row in range(len(weight))]

    def _decide(
        self,
        session: _core.KernelSession,
        tests: list[tuple[Ints, _core.BinaryResults]],
        rules: list[DecisionRule],
    ) -> list[list[Ints]]:
        """Return the classes, (n_costs, n_rows) for each rule, that each solution gives to its rows."""
        threads = max(1, self._options.threads // max(1, len(tests)))  # within a test
        decided: list[list[Ints]] = [[]] * len(tests)

        def work(t: int) -> None:
            rows, results = tests[t]
            at_once = max(1, _SCORES_AT_ONCE // len(results))
            batches = slices(len(rows), at_once)
            parts = [self._decide_rows(session, rows[part], results, rules, threads) for part in batches]
            decided[t] = [np.concatenate(by_rule).T for by_rule in zip(*parts, strict=True)]

        for_each(work, range(len(tests)), max(1, min(self._options.threads, len(tests))))
        return decided

    def _decide_rows(
        self,
        session: _core.KernelSession,
        rows: Ints,
        results: _core.BinaryResults,
        rules: list[DecisionRule],
        threads: int,
    ) -> list[Ints]:
        """Return the numbers of the classes that machines of each cost give to each row, (n_rows, n_costs)."""
        scores = np.empty((len(self._problems), len(rows), len(self._costs)))
        session.path_scores(rows, self._problems, results, scores, threads)
        scores *= self._sign
        values = scores.reshape(len(scores), -1).T
        return [rule.decide(values).reshape(len(rows), -1) for rule in rules]


def _report_share(
    report: Callable[[float], bool], before: float, of_all: float, done: int, total: int, *_: Any
) -> bool:
    return report(before + of_all * done / max(1, total))
