"""How candidates are fitted and measured on the folds."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection._validation import _score
from sklearn.utils.validation import _check_method_params

from polymargin.estimators._binary import CostPathMachine
from polymargin.estimators._cost_path import Division, classes_for_costs
from polymargin.selection._plan import Series
from polymargin.selection._rate import Rates, rate
from polymargin.selection._scoreboard import Scoreboard
from polymargin.support.examples import Matrix

_TURN = 0.1  # seconds


@dataclass(frozen=True)
class Fold:
    """One division of the examples, with what belongs to each part."""

    number: int
    train: NDArray[np.int64]
    test: NDArray[np.int64]
    y_train: NDArray[Any]
    y_test: NDArray[Any]
    fit_params: dict[str, Any]
    score_params: dict[str, Any]
    train_score_params: dict[str, Any]


@dataclass
class Evaluation:
    """How a candidate is fitted and measured."""

    scorer: Any
    fit_params: dict[str, Any]
    score_params: dict[str, Any]
    with_train_score: bool
    error_score: Any
    board: Scoreboard
    advanced: Callable[[int], None] | None = None  # counts fits
    stop: threading.Event = field(default_factory=threading.Event)
    rates: Rates | None = field(init=False)  # if nothing else is measured

    def __post_init__(self) -> None:
        self.rates = Rates.of(self.scorer)

    def fit_parameters(self, X: Any, train: NDArray[np.int64]) -> dict[str, Any]:
        """Return the parameters of ``fit`` that belong to a training part."""
        return _check_method_params(X, params=self.fit_params, indices=train)

    def score_parameters(self, X: Any, part: NDArray[np.int64]) -> dict[str, Any]:
        """Return the parameters of the scorer that belong to a part."""
        return _check_method_params(X, params=self.score_params, indices=part)

    def run(
        self,
        series: Series,
        fold: Fold,
        machine: Any,
        X_train: Matrix,
        X_test: Matrix,
        fit: Callable[[Any], Any],
    ) -> None:
        """Fit and measure the machines of a series on one fold, each started from the last."""
        machine._stop = self.stop
        for candidate, cost in zip(series.candidates, series.costs, strict=True):
            if candidate not in self.board.given_up:
                machine.C = cost
                outcome = self._outcome(machine, fold, X_train, X_test, fit)
                if self.stop.is_set():
                    return  # the fit may not have come to its end
                self.board.enter(candidate, fold.number, outcome)
            self._advance(1)

    def run_at_once(
        self, series: Series, folds: list[Fold], machine: Any, K: NDArray[Any], y: NDArray[Any], tolerance: float
    ) -> list[Fold]:
        """Do the same by one call for all costs and folds, if nothing but rates is wanted; return the folds left.

        ``K`` has the kernel values of all examples, ``y`` their classes.
        """
        wanted = self.rates
        plain = not self.score_params and not self.with_train_score and all(len(fold.test) > 0 for fold in folds)
        possible = isinstance(machine, CostPathMachine) and machine._costs_at_once() and machine.time_limit is None
        if wanted is None or not (plain and possible and np.isfinite(series.costs[-1])):
            return folds
        started = time.perf_counter()
        divisions = [Division(f.train, f.y_train, f.fit_params.get("sample_weight"), f.test) for f in folds]
        shown = 0

        def report(share: float) -> bool:
            nonlocal shown
            count = int(share * len(folds) * len(series.costs)) - shown
            shown += count
            self._advance(count)
            return not self.stop.is_set()

        try:
            decisions = [scorer.decision for scorer in wanted.scorers]
            answers = classes_for_costs(machine, decisions, K, y, divisions, series.costs, tolerance, report)
        except ValueError:
            answers = [None] * len(folds)  # the fit of each candidate says the same
        solved = [(fold, labels) for fold, labels in zip(folds, answers, strict=True) if labels is not None]
        seconds = (time.perf_counter() - started) / max(1, len(solved) * len(series.costs))
        for fold, labels in solved:
            for at, candidate in enumerate(series.candidates):
                times = {"fit_time": seconds, "score_time": 0.0}
                outcome = {"fit_error": None, "n_test_samples": len(fold.test), **times}
                scores = wanted.named([rate(found[at], fold.y_test) for found in labels])
                self.board.enter(candidate, fold.number, outcome | {"test_scores": scores})
        self._advance(len(solved) * len(series.costs) - shown)
        return [fold for fold, labels in zip(folds, answers, strict=True) if labels is None]

    def _advance(self, count: int) -> None:
        if self.advanced is not None and count != 0:
            self.advanced(count)

    def _outcome(
        self, machine: Any, fold: Fold, X_train: Matrix, X_test: Matrix, fit: Callable[[Any], Any]
    ) -> dict[str, Any]:
        started = time.perf_counter()
        outcome: dict[str, Any] = {"fit_error": None, "n_test_samples": len(fold.test)}
        try:
            fit(machine)
        except Exception:
            if self.error_score == "raise":
                raise
            outcome["fit_error"] = traceback.format_exc()
        fitted = time.perf_counter()
        outcome["test_scores"] = self._measured(machine, X_test, fold.y_test, fold.score_params, outcome["fit_error"])
        scored = time.perf_counter() if outcome["fit_error"] is None else fitted
        if self.with_train_score:
            outcome["train_scores"] = self._measured(
                machine, X_train, fold.y_train, fold.train_score_params, outcome["fit_error"]
            )
        return {**outcome, "fit_time": fitted - started, "score_time": scored - fitted}

    def _measured(self, machine: Any, K: NDArray[Any], y: NDArray[Any], params: dict[str, Any], failed: Any) -> Any:
        if failed is None:
            if self.rates is not None and not params:
                with suppress(Exception):  # then as scikit-learn has it, with `error_score`
                    return self.rates.named([scorer(machine, K, y) for scorer in self.rates.scorers])
            return _score(machine, K, y, self.scorer, params, self.error_score)
        names = getattr(self.scorer, "_scorers", None)
        return self.error_score if names is None else dict.fromkeys(names, self.error_score)


def one_after_the_other(work: Callable[[Any], None], items: list[Any]) -> None:
    """Call ``work`` for every item."""
    for item in items:
        work(item)


@contextmanager
def in_threads(count: int, stop: threading.Event) -> Iterator[Callable[[Callable[[Any], None], list[Any]], None]]:
    """Yield ``each(work, items)``, which calls ``work`` for every item, in threads if there are several.

    When something goes wrong, Ctrl-C included, ``stop`` tells the work that is under way.
    """
    if count == 1:
        yield one_after_the_other
        return

    def guarded(work: Callable[[Any], None], item: Any) -> None:
        if not stop.is_set():
            work(item)

    with ThreadPoolExecutor(count) as pool:

        def each(work: Callable[[Any], None], items: list[Any]) -> None:
            try:
                waiting = {pool.submit(guarded, work, item) for item in items}
                while waiting:
                    # In turns: a signal that another thread gets is seen by this one only when it wakes.
                    done, waiting = wait(waiting, timeout=_TURN, return_when=FIRST_EXCEPTION)
                    for future in done:
                        future.result()
            except BaseException:
                stop.set()
                raise

        yield each
