r"""Minimising a primal objective by truncated Newton steps, to a proven distance from its optimum.

SciPy's Newton-CG takes the steps: it needed about as many passes over the data as L-BFGS for small C, and about a third
of them for the largest C of Zien et al.'s grid (satimage, 600 rows). What is here decides when to stop.

A maximum, or a soft one that is nearly a maximum, has kinks. Then a series of softer losses is minimised, each from the
solution of the last (:meth:`SoftmaxLoss.softer`); the objective and its bound are those of the loss that was asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize
from scipy.sparse.linalg import LinearOperator, cg

from polymargin.formulations.solution import Floats, relative_gap
from polymargin.solvers.primal_objective import Objective

Progress = Callable[..., bool]
_SHARE = 0.1  # of the gap, that the optimisation of a softer loss may leave
_POLISHING = 12  # Newton steps at most
_POLISHED = 1e-12  # gradient, as a share of the point
_CG_ACCURACY = 1e-3  # several rough steps cost less than one exact one, and end as near
_CG_STEPS = 1000


@dataclass(frozen=True)
class Outcome:
    """Where the optimiser came to, and why it stopped."""

    point: Floats
    primal: float
    dual: float
    gradient_norm: float
    iterations: int
    status: str


class _StopError(Exception):
    """A limit was reached, or somebody asked to stop, while SciPy was at work."""


class _Search:
    """The best point and the best bound so far, and when they are good enough."""

    def __init__(
        self,
        objective: Objective,
        start: Floats,
        tolerance: float,
        max_iterations: int,
        time_limit: float,
        progress: Progress | None,
    ) -> None:
        self.objective = objective
        self.tolerance = tolerance
        self.point = start
        self.primal = objective.value_and_gradient(start)[0]
        self.dual = objective.bound(start)
        self.iterations = 0
        self.status = ""
        self._max_iterations = max_iterations if max_iterations >= 0 else np.inf
        self._deadline = time.perf_counter() + time_limit
        self._progress = progress

    @property
    def gap(self) -> float:
        return relative_gap(self.primal, self.dual)

    def check(self, outcome: Callable[[], Outcome] | None = None) -> None:
        """Raise when there is no more time, or no more wish."""
        if time.perf_counter() > self._deadline:
            self._stop("time_limit")
        if self._progress is not None and not self._progress(0, 1, self.iterations, self.gap, outcome=outcome):
            self._stop("stopped")

    def outcome(self) -> Outcome:
        """Return where the search is."""
        _, gradient = self.objective.value_and_gradient(self.point)
        return Outcome(
            point=self.point,
            primal=self.primal,
            dual=min(self.dual, self.primal),
            gradient_norm=float(np.linalg.norm(gradient)),
            iterations=self.iterations,
            status=self.status or "precision",
        )

    def _stop(self, status: str) -> None:
        self.status = status
        raise _StopError

    def visit(self, point: Floats, value: float, gradient: Floats, softer: Objective) -> bool:
        """Take note of a point; return whether the minimisation of the softer objective has come far enough."""
        left = softer.slack(value, gradient)
        exact = softer is self.objective
        primal = value if exact else self.objective.value_and_gradient(point)[0]
        if primal <= self.primal:
            self.point, self.primal = point.copy(), primal
        if not exact or left <= self.tolerance * abs(primal):
            self.dual = max(self.dual, self.objective.bound(point, softer.loss))
        converged = self.gap <= self.tolerance
        if exact and not self.objective.loss.convex:  # a stationary point is all that can be asked for
            converged = left <= self.tolerance * abs(primal)
        if converged:
            self.status = "converged"
        return converged or (not exact and left <= _SHARE * (self.primal - self.dual))

    def run(self, softer: Objective) -> None:
        """Minimise a softer objective from the best point."""

        def value_and_gradient(point: Floats) -> tuple[float, Floats]:
            self.check()
            return softer.value_and_gradient(point)

        def hessian_product(point: Floats, direction: Floats) -> Floats:
            self.check()
            return softer.hessian_product(point, direction)

        def step(point: Floats) -> None:
            self.iterations += 1
            if self.visit(point, *softer.value_and_gradient(point), softer):
                raise StopIteration
            self.check(self.outcome)
            if self.iterations >= self._max_iterations:
                self._stop("max_iter")

        if self.visit(self.point, *softer.value_and_gradient(self.point), softer):
            return
        if self.iterations >= self._max_iterations:
            self._stop("max_iter")
        scipy.optimize.minimize(
            value_and_gradient,
            self.point,
            jac=True,
            hessp=hessian_product,
            method="Newton-CG",
            callback=step,
            options={"xtol": 0.0, "maxiter": 10_000},
        )

    def polish(self) -> None:
        """Take full Newton steps, which no line search can judge any more, while the gradient falls."""
        objective = self.objective
        point = self.point
        value, gradient = objective.value_and_gradient(point)
        size = len(point)
        for _ in range(_POLISHING):
            if np.linalg.norm(gradient) <= _POLISHED * np.linalg.norm(point):
                break
            hessian = LinearOperator((size, size), matvec=lambda d, at=point: self._checked_product(at, d))
            step, _ = cg(hessian, -gradient, rtol=_CG_ACCURACY, maxiter=_CG_STEPS)
            self.iterations += 1
            new_value, new_gradient = objective.value_and_gradient(point + step)
            if not np.linalg.norm(new_gradient) <= 0.5 * np.linalg.norm(gradient):
                break
            point, value, gradient = point + step, new_value, new_gradient
        if value <= self.primal + abs(self.primal) * np.finfo(float).eps * size:
            self.point, self.primal = point, value
            self.dual = max(self.dual, objective.bound(point))

    def _checked_product(self, point: Floats, direction: Any) -> Floats:
        self.check()
        return self.objective.hessian_product(point, np.ravel(direction))


def minimize(
    objective: Objective,
    start: Floats,
    *,
    tolerance: float,
    polish: bool,
    max_iterations: int,
    time_limit: float,
    progress: Progress | None,
) -> Outcome:
    """Minimise until the relative gap is at most the tolerance.

    Parameters
    ----------
    objective : Objective
        What is minimised.
    start : ndarray
        Where to begin.
    tolerance : float
        Relative gap between the objective and its lower bound; for a loss that is not convex, the gap that the same
        gradient would mean if it were.
    polish : bool
        Whether to go on, from there, to the limits of rounding.
    max_iterations : int
        Most Newton steps, -1 for no limit.
    time_limit : float
        Most seconds.
    progress : callable or None
        Gets ``(done, total, iterations, gap)``, after each Newton step also a function that returns the outcome so far;
        False stops.

    Returns
    -------
    Outcome
        The best point with its objective and the best lower bound.
    """
    search = _Search(objective, start, tolerance, max_iterations, time_limit, progress)
    series = objective.loss.softer()
    try:
        for loss in series:
            search.run(objective if loss is objective.loss else objective.with_loss(loss))
            if search.status:
                break
        if series[-1] is objective.loss and (polish or not search.status):
            search.polish()
    except _StopError:
        pass  # the best point so far is the answer
    if search.gap <= tolerance:
        search.status = "converged"
    return search.outcome()
