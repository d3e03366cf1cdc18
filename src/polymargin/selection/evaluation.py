"""How candidates are fitted and measured on the folds."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection._validation import _score
from sklearn.utils.validation import _check_method_params

from polymargin.decision import PAIR_DECISIONS, CodeBook, DecisionRule, NearestCode
from polymargin.estimators import OneVsOneSVC, OutputCodeSVC
from polymargin.estimators.fitting import fit_prepared
from polymargin.formulations import Division, RunOptions, training_set
from polymargin.kernels import Kernel
from polymargin.models import all_pairs
from polymargin.selection.plan import Series, has_sound_weights
from polymargin.selection.rate import Rates
from polymargin.selection.scoreboard import Scoreboard
from polymargin.support.numeric import Ints, Matrix
from polymargin.support.threads import thread_count

# Kernel values times costs from which on threads pay for themselves: searches of 5 x 5 on 178, 214 and 251 rows took 9,
# 21 and 44 ms with one and 16, 25 and 46 with two; on 1,484 rows 295 and 198.
_WORTH_THREADS = 1 << 19
# Of the tolerance, that a larger cost may add to the gap of a machine which is taken for the machine of that cost.
_SHARE_OF_TOLERANCE = 0.1
Machines = dict[tuple[int, int], Any]
"""Fitted machines by candidate and fold."""

_NO_TIME = {"fit_time": 0.0, "score_time": 0.0}


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
    _divisions: dict[int, Division | None] = field(init=False, default_factory=dict)  # by fold, without class weights

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
        kernel: Kernel,
        kept: Machines | None = None,
    ) -> None:
        """Fit and measure the machines of a series on one fold, each started from the last; keep them if asked to."""
        weight = fold.fit_params.get("sample_weight")
        outcome: dict[str, Any] | None = None
        for candidate, cost in zip(series.candidates, series.costs, strict=True):
            if candidate not in self.board.given_up:
                if outcome is not None and outcome["fit_error"] is None and _solves(machine, cost):
                    outcome = outcome | _NO_TIME
                else:
                    machine.C = cost
                    fit = partial(fit_prepared, machine, X_train, fold.y_train, weight, kernel, self.stop)
                    outcome = self._outcome(machine, fold, X_train, X_test, fit)
                if self.stop.is_set():
                    return  # the fit may not have come to its end
                self.board.enter(candidate, fold.number, outcome)
                if kept is not None and outcome["fit_error"] is None:
                    kept[candidate, fold.number] = copy(machine)
            self._advance(1)

    @property
    def only_rates(self) -> bool:
        """Whether nothing is wanted but rates on the folds, which can be counted from decisions."""
        return self.rates is not None and not self.score_params and not self.with_train_score

    def run_family(
        self, series: Series, folds: list[Fold], K: NDArray[Any], y: NDArray[Any], exact_to: float, n_jobs: int | None
    ) -> list[Fold]:
        """Do the same by one call for all costs and folds; return the folds that are left.

        These are the folds whose fits have something to say: a class that is missing, weights that are not sound, or a
        fit that did not converge. ``K`` has the kernel values of all examples, ``y`` their classes.
        """
        assert self.rates is not None
        classes, codes = np.unique(y, return_inverse=True)
        divided = [(fold, self._division(series.machine.class_weight, fold, codes, classes)) for fold in folds]
        solvable = [(fold, division) for fold, division in divided if division is not None]
        if not solvable:
            return folds
        started = time.perf_counter()
        machine = series.machine
        options = RunOptions(
            tolerance=float(machine.tol),
            stop=machine.stop,
            max_iterations=int(machine.max_iter),
            cache_size=machine.cache_size,
            random_state=machine.random_state,
            threads=thread_count(n_jobs) if K.size * len(series.costs) >= _WORTH_THREADS else 1,
        )
        family = machine.formulation.family(K, codes, series.costs, exact_to, options)
        rules = [_rule(machine, scorer.decision, len(classes), options) for scorer in self.rates.scorers]
        progress = _Counter(len(solvable) * len(series.costs), self._advance, self.stop)
        answers = family.decided([division for _, division in solvable], rules, progress)
        solved = [(f, numbers) for (f, _), numbers in zip(solvable, answers, strict=True) if numbers is not None]
        seconds = (time.perf_counter() - started) / max(1, len(solved) * len(series.costs))
        for fold, numbers in solved:
            self._enter_rates(series, fold, [classes[each] for each in numbers], seconds)
        self._advance(len(solved) * len(series.costs) - progress.shown)
        done = {fold.number for fold, _ in solved}
        return [fold for fold in folds if fold.number not in done]

    def _division(self, class_weight: Any, fold: Fold, codes: Ints, classes: NDArray[Any]) -> Division | None:
        """Return what `_division` does; without weights of classes, which may be anything, once for all kernels."""
        if class_weight is not None:
            return _division(class_weight, fold, codes, classes)
        if fold.number not in self._divisions:
            self._divisions[fold.number] = _division(None, fold, codes, classes)
        return self._divisions[fold.number]

    def _enter_rates(self, series: Series, fold: Fold, labels: list[NDArray[Any]], seconds: float) -> None:
        """Enter the rates of all costs on a fold; ``labels`` are (n_costs, n_test) for each scorer."""
        assert self.rates is not None
        rates = [np.mean(found == fold.y_test, axis=1).tolist() for found in labels]  # all costs at once
        for candidate, *own in zip(series.candidates, *rates, strict=True):
            scores = self.rates.named(own)
            outcome = {"fit_error": None, "n_test_samples": len(fold.test), "fit_time": seconds, "score_time": 0.0}
            self.board.enter(candidate, fold.number, outcome | {"test_scores": scores})

    def repeat(self, series: Series, solved: Series, folds: list[Fold]) -> None:
        """Give candidates what others have that are the same machines: no time was spent on them."""
        for candidate, twin in zip(series.candidates, solved.candidates, strict=True):
            for fold in folds:
                outcome = self.board.outcomes[twin][fold.number]
                if outcome is not None:
                    self.board.enter(candidate, fold.number, outcome | _NO_TIME)
                    self._advance(1)

    def measure_again(
        self, series: Series, solved: Series, fold: Fold, machines: Machines, X_train: Matrix, X_test: Matrix
    ) -> None:
        """Measure candidates whose machines others have, but not their scores; what failed has failed again."""
        for candidate, twin in zip(series.candidates, solved.candidates, strict=True):
            machine, outcome = machines.get((twin, fold.number)), self.board.outcomes[twin][fold.number]
            if machine is not None:
                outcome = self._outcome(machine, fold, X_train, X_test, lambda: None) | {"fit_time": 0.0}
            if outcome is not None:
                self.board.enter(candidate, fold.number, outcome)
                self._advance(1)

    def _advance(self, count: int) -> None:
        if self.advanced is not None and count != 0:
            self.advanced(count)

    def _outcome(
        self, machine: Any, fold: Fold, X_train: Matrix, X_test: Matrix, fit: Callable[[], None]
    ) -> dict[str, Any]:
        started = time.perf_counter()
        outcome: dict[str, Any] = {"fit_error": None, "n_test_samples": len(fold.test)}
        try:
            fit()
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

    def _measured(self, machine: Any, X: Matrix, y: NDArray[Any], params: dict[str, Any], failed: Any) -> Any:
        if failed is None:
            scorer = self.scorer if self.rates is None or params else self.rates.scorer
            return _score(machine, X, y, scorer, params, self.error_score)
        names = getattr(self.scorer, "_scorers", None)
        return self.error_score if names is None else dict.fromkeys(names, self.error_score)


def _solves(machine: Any, cost: float) -> bool:
    """Whether the certificate of a fitted machine holds for a larger cost as well, with almost the same gap."""
    gap_at_larger_costs = getattr(machine.formulation, "gap_at_larger_costs", None)
    if gap_at_larger_costs is None or machine.stop == "violation" or not machine.converged_:
        return False
    if machine.calibration_method is not None:  # the machines without a fold are others
        return False
    gap = gap_at_larger_costs(machine.model_, machine.outcome_, cost / machine.C)
    added = gap - machine.duality_gap_
    return bool(gap <= machine.tol and added <= _SHARE_OF_TOLERANCE * machine.tol)


class _Counter:
    """Counts fits while a family is solved; False when somebody has asked to stop."""

    def __init__(self, total: int, advance: Callable[[int], None], stop: threading.Event) -> None:
        self._total, self._advance, self._stop = total, advance, stop
        self.shown = 0

    def __call__(self, share: float) -> bool:
        count = int(share * self._total) - self.shown
        self.shown += count
        self._advance(count)
        return not self._stop.is_set()


def _division(class_weight: Any, fold: Fold, codes: Ints, classes: NDArray[Any]) -> Division | None:
    """Return the weights of a fold's examples; None if a fit has something to say about them."""
    own = codes[fold.train]
    weight = fold.fit_params.get("sample_weight")
    weight = None if weight is None else np.asarray(weight, dtype=np.float64)
    if not has_sound_weights(class_weight, own, classes, weight):
        return None
    training = training_set(own, own, classes, C=1.0, class_weight=class_weight, sample_weight=weight)
    total = np.zeros(len(codes))
    total[fold.train[training.order]] = training.weight
    return Division(total, fold.test)


def _rule(machine: Any, decision: str | None, n_classes: int, options: RunOptions) -> DecisionRule:
    """Return the way to decide of a machine that is not fitted, or another one of one-against-one."""
    if isinstance(machine, OneVsOneSVC):
        return PAIR_DECISIONS[decision or machine.decision](all_pairs(n_classes), None, None)
    if isinstance(machine, OutputCodeSVC):
        code = machine.formulation.matrix(n_classes, options.seed).astype(np.float64)
        return NearestCode.of(CodeBook(code=code), machine.decoding)
    rule: DecisionRule = machine.decision_rule
    return rule
