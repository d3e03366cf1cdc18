"""Training pairs of classes one at a time, when the answers so far say which is next."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from polymargin import _core
from polymargin.decision import pair_answers
from polymargin.estimators._pairs import pair_problems
from polymargin.formulations.solution import Floats, Ints, TrainingSet
from polymargin.kernels.kernel import Kernel
from polymargin.support.examples import Matrix


class Probes:
    """Up to ``size`` training examples of each class that every new pair machine is asked about.

    A support vector is one of many pairs: its kernel values with the probes are computed once, and kept as long as
    there is room.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Matrix,
        training: TrainingSet,
        size: int,
        rng: np.random.Generator,
        *,
        answers: str,
        room_bytes: int,
        threads: int,
    ) -> None:
        examples = np.concatenate(
            [
                np.sort(rng.choice(np.arange(begin, end), min(end - begin, size), replace=False))
                for begin, end in pairwise(training.bounds)
            ]
        )
        self.evaluations = 0  # kernel values computed for the answers
        self._kernel, self._X, self._order, self._threads = kernel, X, training.order, threads
        self._answers = answers
        self._rows = training.order[examples]
        self._owner = training.class_of(examples)
        self._weight = training.weight[examples]
        self._total = np.bincount(self._owner, weights=self._weight)
        room = min(len(training.order), room_bytes // (8 * len(examples)))
        self._kept = np.empty((room, len(examples)))  # a row for each vector; memory is taken when it is written
        self._place = np.full(len(training.order), -1)  # of a vector's values there
        self._used = 0

    @property
    def room_bytes(self) -> int:
        """The most that kept values take."""
        return self._kept.nbytes

    def shares(self, support: Ints, beta: Floats, intercept: float) -> Floats:
        """Return the mean answer of a pair machine to the probes of each class, Wang & Huang (4.1)."""
        answers = pair_answers(self._values(support, beta) + intercept, self._answers)
        return np.bincount(self._owner, weights=self._weight * answers) / self._total

    def _values(self, support: Ints, beta: Floats) -> Floats:
        self._keep(support[self._place[support] < 0][: len(self._kept) - self._used])
        place = self._place[support]
        known = place >= 0
        values = beta[known] @ self._kept[place[known]]
        return values if known.all() else values + beta[~known] @ self._computed(support[~known])

    def _keep(self, support: Ints) -> None:
        if len(support) > 0:
            places = np.arange(self._used, self._used + len(support))
            self._kept[places], self._place[support] = self._computed(support), places
            self._used += len(support)

    def _computed(self, support: Ints) -> Floats:
        vectors = self._order[support]
        self.evaluations += len(self._rows) * len(vectors)
        return self._kernel.matrix(self._X, self._rows, self._X[vectors], vectors, self._threads).T


class PairRounds:
    """The pairs trained so far, one a round, on one kernel engine and within common limits."""

    def __init__(
        self,
        session: _core.KernelSession,
        training: TrainingSet,
        probes: Probes,
        starts: dict[tuple[int, int], _core.BinaryStart],
        most: int,
        *,
        refine: bool,
        tolerance: float,
        max_iterations: int,
        time_limit: float,
        progress: Callable[..., bool] | None,
    ) -> None:
        self._session, self._training, self._probes, self._starts, self._most = session, training, probes, starts, most
        self._refine, self._tolerance, self._max_iterations, self._progress = (
            refine,
            tolerance,
            max_iterations,
            progress,
        )
        self._deadline = time.perf_counter() + time_limit
        self._raw: list[_core.BinaryResults] = []
        self._pairs: list[Ints] = []
        self._rows: list[Floats] = []
        self._distances: list[float] = []  # the least between columns, after each round
        self._cut_short: list[str] = []  # why there must be no other round, if a limit says so

    @property
    def go_on(self) -> bool:
        """Whether there may be another round."""
        return len(self._pairs) < self._most and not self._cut_short

    def train(self, pair: Ints) -> Floats:
        """Train a pair and return its row of the decision matrix."""
        raw = self._session.train_binary(
            _core.BinaryProblems(pair_problems(pair[None, :], self._training.bounds)),
            self._training.upper,
            _core.BinarySettings(tolerance=self._tolerance, max_iterations=self._max_iterations),
            start=self._starts.get((int(pair[0]), int(pair[1]))),
            refine=self._refine,
            time_limit=max(self._deadline - time.perf_counter(), 1e-9),
            progress=self._report if self._progress is not None else None,
        )
        self._raw.append(raw)
        self._pairs.append(pair)
        self._rows.append(self._probes.shares(raw.support, raw.beta, float(raw.intercept[0])))
        return self._rows[-1]

    def end_round(self, distance: float) -> None:
        """Note the least distance between the columns so far, report, and look at the limits."""
        self._distances.append(distance)
        status, violation = self._raw[-1].stop_reason.name, float(self._raw[-1].violation[0])
        if status in ("stopped", "time_limit", "unbounded"):
            self._cut_short = [status]
        elif not self._report(0, 1, 0, violation, self.answer) and self.go_on:
            self._cut_short = ["stopped"]
        elif time.perf_counter() >= self._deadline and self.go_on:
            self._cut_short = ["time_limit"]

    def _report(self, done: int, total: int, iterations: int, violation: float, answer: Any = None) -> bool:
        """Pass on the progress of one pair as that of all; False if a stop is asked for."""
        if self._progress is None:
            return True
        before = sum(int(raw.iterations[0]) for raw in self._raw)
        return self._progress(len(self._raw), self._most, before + iterations, violation, answer)

    def answer(self) -> dict[str, Any]:
        """Return all pairs side by side, as the core would, with the decision matrix."""
        together = {
            name: np.concatenate([getattr(raw, name) for raw in self._raw])
            for name in ("support", "beta", "held_out", "intercept", "primal", "dual", "violation", "iterations")
        }
        return together | {
            "starts": np.cumsum([0] + [len(raw.support) for raw in self._raw]),
            "status": [raw.stop_reason.name for raw in self._raw] + self._cut_short,
            "evaluations": sum(raw.evaluations for raw in self._raw) + self._probes.evaluations,
            "pairs": np.array(self._pairs),
            "decision_matrix": np.array(self._rows),
            "distances": np.array(self._distances),
            "n_solved": len(self._raw),
        }
