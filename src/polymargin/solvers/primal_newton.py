r"""Minimising a primal objective by truncated Newton steps, to a proven distance from its optimum.

SciPy's Newton-CG takes the steps: it needed about as many passes over the data as L-BFGS for small C, and about a third
of them for the largest C of Zien et al.'s grid (satimage, 600 rows). What is here decides when to stop.

A maximum, or a soft one that is nearly a maximum, has kinks. Then a series of softer losses is minimised, each from the
solution of the last (:meth:`PrimalLoss.softer`); the objective and its bound are those of the loss that was asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

import numpy as np
import scipy.optimize
from scipy.sparse.linalg import LinearOperator, cg

from polymargin.solvers.limits import Limits, Status
from polymargin.solvers.primal_objective import Objective
from polymargin.support.numeric import Floats, relative_gap


@dataclass(frozen=True)
class NewtonSettings:
    """How steps are taken, and when a loss has been minimised well enough."""

    softer_share: float = 0.1  # of the gap, that the minimisation of a softer loss may leave
    # Of the steps to the limits of rounding:
    polish_steps: int = 12  # at most
    polished: float = 1e-12  # norm of the gradient to stop at, as a share of the point's
    cg_accuracy: float = 1e-3  # several rough steps cost less than one exact one, and end as near
    cg_steps: int = 1000


@dataclass(frozen=True)
class NewtonResult:
    """Where the optimiser came to, and why it stopped."""

    point: Floats
    primal: float
    dual: float  # a lower bound of the minimum
    gap: float  # relative
    gradient_norm: float
    iterations: int  # Newton steps
    status: Status


class _StopError(Exception):
    """A limit was reached, or somebody asked to stop, while SciPy was at work."""


class _Search:
    """The best point and the best bound so far, and when they are good enough."""

    def __init__(
        self, objective: Objective, start: Floats, limits: Limits[NewtonResult], settings: NewtonSettings
    ) -> None:
        self.objective = objective
        self._limits = limits
        self.point = start
        self.primal = objective.value_and_gradient(start)[0]
        self.dual = objective.bound(start)
        self.iterations = 0
        self.status: Status | None = None
        self._max_iterations = limits.max_iterations if limits.max_iterations >= 0 else np.inf
        self._deadline = time.perf_counter() + limits.time_limit
        self._progress = limits.progress
        self._settings = settings

    @property
    def tolerance(self) -> float:
        """The relative gap to stop at."""
        return self._limits.wanted_gap(self.primal, self.dual)

    @property
    def gap(self) -> float:
        """The relative gap."""
        return relative_gap(self.primal, self.dual)

    def check(self, outcome: Callable[[], NewtonResult] | None = None) -> None:
        """Raise when time is up, or the search is to be stopped."""
        if time.perf_counter() > self._deadline:
            self._stop("time_limit")
        if self._progress is not None and not self._progress(0, 1, self.iterations, self.gap, outcome):
            self._stop("stopped")

    def outcome(self) -> NewtonResult:
        """Return where the search is."""
        _, gradient = self.objective.value_and_gradient(self.point)
        return NewtonResult(
            point=self.point,
            primal=self.primal,
            dual=min(self.dual, self.primal),
            gap=max(self.gap, 0.0),
            gradient_norm=float(np.linalg.norm(gradient)),
            iterations=self.iterations,
            status=self.status or "precision",
        )

    def _stop(self, status: Status) -> NoReturn:
        self.status = status
        raise _StopError

    def visit(self, point: Floats, value: float, gradient: Floats, softer: Objective) -> bool:
        """Take note of a point; return whether the minimisation of the softer objective has come far enough."""
        distance = softer.distance_to_bound(value, gradient)
        exact = softer is self.objective
        primal = value if exact else self.objective.value_and_gradient(point)[0]
        if primal <= self.primal:
            self.point, self.primal = point.copy(), primal
        if not exact or distance <= self.tolerance * abs(primal):
            self.dual = max(self.dual, self.objective.bound(point, softer.loss))
        converged = self.gap <= self.tolerance
        if exact and not self.objective.loss.convex:  # a stationary point is all that can be asked for
            converged = distance <= self.tolerance * abs(primal)
        if converged:
            self.status = "converged"
        return converged or (not exact and distance <= self._settings.softer_share * (self.primal - self.dual))

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
        objective, settings = self.objective, self._settings
        point = self.point
        value, gradient = objective.value_and_gradient(point)
        size = len(point)
        for _ in range(settings.polish_steps):
            if np.linalg.norm(gradient) <= settings.polished * np.linalg.norm(point):
                break
            hessian = LinearOperator((size, size), matvec=partial(self._checked_product, point))
            step, _ = cg(hessian, -gradient, rtol=settings.cg_accuracy, maxiter=settings.cg_steps)
            self.iterations += 1
            new_value, new_gradient = objective.value_and_gradient(point + step)
            if not np.linalg.norm(new_gradient) <= 0.5 * np.linalg.norm(gradient):
                break
            point, value, gradient = point + step, new_value, new_gradient
        if value <= self.primal + abs(self.primal) * np.finfo(float).eps * size:
            self.point, self.primal = point, value
            self.dual = max(self.dual, objective.bound(point))

    def _checked_product(self, point: Floats, direction: Floats) -> Floats:
        self.check()
        return self.objective.hessian_product(point, np.ravel(direction))


def minimize(
    objective: Objective,
    start: Floats,
    limits: Limits[NewtonResult],
    *,
    polish: bool = False,
    settings: NewtonSettings | None = None,
) -> NewtonResult:
    """Minimise until the relative gap between the objective and its lower bound is at most the tolerance.

    For a loss that is not convex it is the gap that the same gradient would mean if it were.

    Parameters
    ----------
    objective : Objective
        What is minimised.
    start : ndarray
        Where to begin.
    limits : Limits
        When to stop: iterations are Newton steps. Progress is reported at every pass over the data, after each Newton
        step with the outcome. Threads are those of the objective.
    polish : bool, default=False
        Whether to go on, from there, to the limits of rounding.
    settings : NewtonSettings, default=None
        How steps are taken; None for what was measured to be good.

    Returns
    -------
    NewtonResult
        The best point with its objective and the best lower bound.
    """
    search = _Search(objective, start, limits, NewtonSettings() if settings is None else settings)
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
    if search.gap <= search.tolerance:
        search.status = "converged"
    return search.outcome()
