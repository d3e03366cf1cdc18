"""Pairs of classes trained one at a time, each chosen by the answers of those before it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np

from polymargin import _core
from polymargin.decision import ColumnDistances, DecisionMatrix, pair_answers
from polymargin.formulations.binary import binary_model, binary_settings, binary_start
from polymargin.formulations.formulation import (
    RunOptions,
    Solution,
    outcome,
    refuse_inseparable,
    stop_reason,
)
from polymargin.formulations.pairs import pair_problems
from polymargin.formulations.training import TrainingSet
from polymargin.kernels import Kernel, KernelSession
from polymargin.models import KernelModel, Outcome, PairLayout, pair_list
from polymargin.models.declared import declare
from polymargin.support.numeric import Floats, Ints
from polymargin.support.typing import Answers

_SHARE_OF_PROBES = 0.125  # of the memory for kernel values: theirs are few, and each saves one for every pair
_COEFFICIENTS = ("support", "beta", "intercept", "primal", "dual", "violation", "iterations")


@dataclass(frozen=True, eq=False, kw_only=True)
class ChosenPairsOutcome(Outcome):
    """How the pairs were chosen, beside how they were solved.

    Parameters
    ----------
    distances : array of shape (n_pairs,)
        The least distance between the columns of an untrained pair after each round; inf when all pairs are trained.
    """

    distances: Floats = declare("distances_", "extended", ("scores",), report=True)


@dataclass(frozen=True, eq=False, kw_only=True)
class ChosenPairsSolution(Solution):
    """The solved pairs, and what they were chosen by."""

    decision_matrix: DecisionMatrix


@dataclass(frozen=True)
class ChosenPairs:
    """Hsu & Lin (3) for pairs chosen by uncertainty, Wang & Huang 4.

    Parameters
    ----------
    max_pairs : float or int
        Most pairs: a share of all, or a number.
    min_distance : float
        Stop when the columns of every untrained pair are farther apart.
    probe_size : int
        Most examples of a class that are asked for its share.
    answers : {"signs", "margins"}
        What pairs say about an example.
    """

    max_pairs: float | int = 0.5
    min_distance: float = 0.8
    probe_size: int = 30
    answers: Answers = "signs"

    def layout(self, n_classes: int, pairs: Ints | None = None) -> PairLayout:
        """Return a score for each of the pairs that were chosen."""
        return PairLayout.of(pair_list(n_classes) if pairs is None else pairs, n_classes)

    def n_problems(self, n_classes: int) -> int:
        """Return the most pairs that are trained."""
        every = n_classes * (n_classes - 1) // 2
        if isinstance(self.max_pairs, Integral):
            return min(int(self.max_pairs), every)
        return math.ceil(round(self.max_pairs * every, 9))  # 0.07 * 100 is 7, whatever rounding says

    def measure(self, training: TrainingSet, kernel: Kernel) -> str:
        """Solvers stop on the violation of Hsu & Lin (22)."""
        return "violation"

    def solve(self, training: TrainingSet, kernel: Kernel, options: RunOptions) -> ChosenPairsSolution:
        """Train pair after pair, each time the one whose classes look most alike."""
        n_classes = training.n_classes
        rng = np.random.default_rng(options.seed)
        pair = pair_list(n_classes)[rng.integers(n_classes * (n_classes - 1) // 2)]
        budget = options.budget_bytes(training.X)
        share = int(_SHARE_OF_PROBES * budget)
        probes = Probes(kernel, training, self.probe_size, rng, self.answers, share, options.threads)
        session = kernel.session(
            training.X,
            training.order,
            training.largest_cost_bound,
            options.exact_to,
            budget - probes.kept_bytes,
            options.threads,
        )
        rounds = PairRounds(session, training, kernel, probes, self.n_problems(n_classes), options)
        distances, least = ColumnDistances(n_classes), 0.0
        while rounds.go_on and least <= self.min_distance:
            distances.add(pair, rounds.train(pair))
            pair, least = distances.nearest()
            rounds.end_round(least)
        refuse_inseparable(rounds.unbounded)
        return rounds.solution()


class Probes:
    """Up to ``size`` training examples of each class that every new pair machine is asked about.

    A support vector is one of many pairs: the session computes its kernel values with the probes once, and keeps them
    as long as there is memory.
    """

    def __init__(
        self,
        kernel: Kernel,
        training: TrainingSet,
        size: int,
        rng: np.random.Generator,
        answers: Answers,
        budget_bytes: int,
        threads: int,
    ) -> None:
        examples = np.concatenate(
            [
                np.sort(rng.choice(np.arange(begin, end), min(end - begin, size), replace=False))
                for begin, end in pairwise(training.class_starts)
            ]
        )
        self._session = KernelSession(kernel, training.X, training.order, budget_bytes, threads, rows=examples)
        self._answers = answers
        self._owner = training.class_of(examples)
        self._weight = training.weight[examples]
        self._total = np.bincount(self._owner, weights=self._weight)

    @property
    def evaluations(self) -> int:
        """Kernel values computed for the answers."""
        return self._session.evaluations

    @property
    def kept_bytes(self) -> int:
        """The most that kept values take."""
        return self._session.kept_bytes

    def shares(self, support: Ints, beta: Floats, intercept: float) -> Floats:
        """Return the mean answer of a pair machine to the probes of each class, Wang & Huang (4.1)."""
        answers = pair_answers(self._session.product(support, beta) + intercept, self._answers)
        return np.bincount(self._owner, weights=self._weight * answers) / self._total


@dataclass(frozen=True, eq=False)
class _SideBySide:
    """Results of single pairs as those of one family."""

    starts: Ints
    support: Ints
    beta: Floats
    intercept: Floats
    primal: Floats
    dual: Floats
    violation: Floats
    iterations: Ints

    @classmethod
    def of(cls, results: list[_core.BinaryResults]) -> _SideBySide:
        together = {name: np.concatenate([getattr(each, name) for each in results]) for name in _COEFFICIENTS}
        return cls(starts=np.cumsum([0] + [len(each.support) for each in results]), **together)


class PairRounds:
    """The pairs trained so far, one a round, on one kernel engine and within common limits."""

    def __init__(
        self,
        session: _core.KernelSession,
        training: TrainingSet,
        kernel: Kernel,
        probes: Probes,
        most: int,
        options: RunOptions,
    ) -> None:
        self._session, self._training, self._kernel, self._probes = session, training, kernel, probes
        self._options, self._most = options, most
        self._starts = {} if options.start is None else _starts_by_pair(options.start, training)
        self._deadline = time.perf_counter() + options.time_limit
        self._results: list[_core.BinaryResults] = []
        self._pairs: list[Ints] = []
        self._shares: list[Floats] = []
        self._distances: list[float] = []  # the least between columns, after each round
        self._limit: list[_core.Status] = []  # why there must be no other round, if a limit says so

    @property
    def go_on(self) -> bool:
        """Whether there may be another round."""
        return len(self._pairs) < self._most and not self._limit

    @property
    def unbounded(self) -> bool:
        """Whether a hard margin does not exist."""
        return _core.Status.unbounded in self._limit

    def train(self, pair: Ints) -> Floats:
        """Train a pair and return its row of the decision matrix."""
        options = self._options
        results = self._session.train_binary(
            pair_problems(pair[None, :], self._training.class_starts),
            self._training.cost_bounds,
            binary_settings(options),
            start=self._starts.get((int(pair[0]), int(pair[1]))),
            refine=self._kernel.refine,
            time_limit=max(self._deadline - time.perf_counter(), 1e-9),
            progress=None if options.progress is None else self._report,
        )
        self._results.append(results)
        self._pairs.append(pair)
        self._shares.append(self._probes.shares(results.support, results.beta, float(results.intercept[0])))
        return self._shares[-1]

    def end_round(self, distance: float) -> None:
        """Note the least distance between the columns so far, report, and look at the limits."""
        self._distances.append(distance)
        status, violation = self._results[-1].status[0], float(self._results[-1].violation[0])
        if status in (_core.Status.stopped, _core.Status.time_limit, _core.Status.unbounded):
            self._limit = [status]
        elif not self._report(0, 1, 0, violation, self.solution) and self.go_on:
            self._limit = [_core.Status.stopped]
        elif time.perf_counter() >= self._deadline and self.go_on:
            self._limit = [_core.Status.time_limit]

    def _report(
        self, done: int, total: int, iterations: int, violation: float, solution: Callable[[], Any] | None = None
    ) -> bool:
        """Pass on the progress of one pair as that of all; False if a stop is asked for."""
        if self._options.progress is None:
            return True
        before = sum(int(each.iterations[0]) for each in self._results)
        return self._options.progress(len(self._results), self._most, before + iterations, violation, solution)

    def solution(self) -> ChosenPairsSolution:
        """Return all pairs side by side, with the decision matrix."""
        results = _SideBySide.of(self._results)
        pairs = np.array(self._pairs)
        layout = PairLayout.of(pairs, self._training.n_classes)
        ended = outcome(
            primal=results.primal,
            dual=results.dual,
            status=stop_reason([each.status[0] for each in self._results] + self._limit),
            iterations=results.iterations.astype(np.int64),
            evaluations=sum(each.evaluations for each in self._results) + self._probes.evaluations,
        )
        return ChosenPairsSolution(
            model=binary_model(results, layout, self._training, self._kernel, self._options.tolerance),
            outcome=ChosenPairsOutcome(**vars(ended), distances=np.array(self._distances)),
            violation=float(np.max(results.violation)),
            by_gap=self._options.stop == "gap",
            n_solved=len(self._results),
            decision_matrix=DecisionMatrix(pairs=pairs, matrix=np.array(self._shares)),
        )


def _starts_by_pair(model: KernelModel, training: TrainingSet) -> dict[tuple[int, int], _core.BinaryStart]:
    """Return the last solution of each pair that was trained, as starts."""
    start = binary_start(model, training)
    if start is None or not isinstance(model.layout, PairLayout):
        return {}
    parts = zip(model.layout.pairs, start.parts(), strict=True)
    return {(int(i), int(j)): _core.BinaryStart(*part) for (i, j), part in parts}
