"""What the machines made of binary problems have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polymargin import _core
from polymargin.estimators._machine import KernelMachine, refuse_inseparable
from polymargin.formulations.solution import BinarySolution, Floats, Ints, TrainingSet
from polymargin.kernels.kernel import Kernel
from polymargin.support.examples import Matrix


class BinaryMachine(KernelMachine):
    """A classifier whose training is a family of binary support vector machines on one kernel.

    Each problem is, in signed coefficients ``b_i = y_i alpha_i``,

        max  y'b - 1/2 b'Kb    subject to  sum_i b_i = 0,  0 <= y_i b_i <= C_i,

    with ``C_i = C * class_weight[class of i] * sample_weight[i]``. A subclass says which problems there are
    (:meth:`_problems`), where a problem's coefficients stand in ``dual_coef_`` (:meth:`_coefficient_rows`), and
    how scores become a class.
    """

    dual_coef_: Any
    intercept_: Floats
    n_iter_: Any

    @abstractmethod
    def _problems(self, bounds: Ints) -> Ints:
        """Return the problems as signed ranges of examples: rows (problem, begin, end, sign)."""

    @abstractmethod
    def _coefficient_rows(self, problem: Ints, example_class: Ints, n_classes: int) -> Ints:
        """Return the row of ``dual_coef_`` for coefficients of the given problems on examples of the given classes."""

    @abstractmethod
    def _members(self, owner: Ints, n_classes: int) -> Iterator[Ints]:
        """Yield, for each problem, the support vectors that may take part in it; ``owner`` is their class."""

    def _folds(self, X: Matrix, training: TrainingSet) -> Ints | None:
        """Return the fold of each example if its decision values are wanted from machines that have not seen it."""
        return None

    def _sign(self, n_classes: int) -> float:
        """Return the sign between the core's coefficients and the public ones."""
        return 1.0

    def _solve(self, X: Matrix, y: NDArray[Any], kernel: Kernel, training: TrainingSet, classes: NDArray[Any]) -> Any:
        problems = _core.BinaryProblems(self._problems(training.bounds))
        start = self._previous(training, classes) if self.warm_start else None
        folds = self._folds(kernel.examples(X), training)

        def train(
            budget_bytes: int, threads: int, tolerance: float, max_iterations: int, **limits: Any
        ) -> _core.BinaryResults:
            session = kernel.session(X, training.order, training.largest, tolerance, budget_bytes, threads)
            settings = _core.BinarySettings(tolerance=tolerance, max_iterations=max_iterations)
            return session.train_binary(
                problems, training.upper, settings, start=start, folds=folds, refine=kernel.refine, **limits
            )

        solution = self._run(X, y, len(problems), train, BinarySolution, training, classes)
        refuse_inseparable(solution)
        return solution

    def _store(self, X: Matrix, training: TrainingSet, solution: BinarySolution) -> None:
        examples, column = np.unique(solution.support, return_inverse=True)
        n_classes = training.n_classes
        coefficients = np.zeros((self._shape(n_classes)[0], len(examples)))
        owner = training.class_of(solution.support)
        coefficients[self._coefficient_rows(solution.problem, owner, n_classes), column] = solution.beta
        sign = self._sign(n_classes)
        self._store_support(X, training, examples, solution)
        self.dual_coef_ = sign * coefficients
        self.intercept_ = sign * solution.intercept
        self.n_iter_ = solution.iterations.astype(np.int64)

    def _previous(self, training: TrainingSet, classes: NDArray[Any]) -> _core.BinaryStart | None:
        """Return the last solution, made feasible for these bounds, as a start; None if it does not fit."""
        previous = self._previous_coefficients(training, classes)
        return None if previous is None else _core.BinaryStart(*previous)

    def _previous_coefficients(self, training: TrainingSet, classes: NDArray[Any]) -> tuple[Ints, Ints, Floats] | None:
        """Return the coefficients of the last solution, made feasible for these bounds, problem after problem."""
        example = self._previous_examples(training, classes)
        if example is None:
            return None
        owner = np.repeat(np.arange(len(classes)), self.n_support_)
        known = example >= 0
        starts, support, beta = [0], [], []
        coefficients = self._sign(len(classes)) * self.dual_coef_
        for p, members in enumerate(self._members(owner, len(classes))):
            columns = members[known[members]]
            rows = self._coefficient_rows(np.full(len(columns), p), owner[columns], len(classes))
            values = _feasible(coefficients[rows, columns], training.upper[example[columns]])
            used = values != 0
            support.append(example[columns][used])
            beta.append(values[used])
            starts.append(starts[-1] + int(used.sum()))
        return np.array(starts), np.concatenate(support), np.concatenate(beta)


class CostPathMachine(BinaryMachine):
    """A machine of binary problems that can be trained, and judged by its scores, for many costs in one call."""

    @abstractmethod
    def _costs_at_once(self) -> bool:
        """Whether machines of many costs are one family of problems after the other, and nothing more."""

    @abstractmethod
    def _decide_all(self, scores: Floats) -> Ints:
        """Return the number of the class that all scores of a row name."""


def _feasible(beta: Floats, upper: Floats) -> Floats:
    """Clip signed coefficients to their bounds and scale the heavier side so that they sum to zero."""
    beta = np.clip(beta, -upper, upper)
    positive, negative = beta[beta > 0].sum(), -beta[beta < 0].sum()
    if positive == 0 or negative == 0:
        return np.zeros_like(beta)
    beta = np.where(beta > 0, beta * min(1.0, negative / positive), beta * min(1.0, positive / negative))
    return beta
