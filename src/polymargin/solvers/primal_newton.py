r"""Minimising a primal objective by truncated Newton steps, to a proven distance from its optimum.

Directions are found by conjugate gradients, which take few products with the Hessian for small C, and thousands for a
large one. As soon as they have taken as long, the Hessian of a loss with one curvature for all classes is factorised,
and preconditions what follows.

A maximum, or a soft one that is nearly a maximum, has kinks. Then a series of softer losses is minimised, each from the
solution of the last (:meth:`PrimalLoss.softer`); the objective and its bound are those of the loss that was asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NoReturn

import numpy as np

from polymargin.solvers.limits import Limits, Status
from polymargin.solvers.primal_objective import Objective
from polymargin.support.numeric import Floats, relative_gap


@dataclass(frozen=True)
class NewtonSettings:
    """How steps are taken, and when a loss has been minimised well enough."""

    softer_share: float = 0.1  # of the gap, that the minimisation of a softer loss may leave
    # A direction is good enough when what is left of the gradient is this share of it, or its square root if that is
    # less, and need not be better than this share of what ends the search; a step, when it wins a share of what the
    # gradient promises.
    rough: float = 0.5
    enough_share: float = 0.3
    sufficient: float = 1e-4
    halvings: int = 40
    direction_steps: int = 2000
    # Of losses that are straight in places. Rough directions lead into kinks, and take ten times as long. Up to so
    # many variables Hessians are factorised at every step, and where there is no curvature a share of a parabola's
    # takes its place, which falls while full steps succeed.
    rough_if_straight: float = 0.01
    exact_size: int = 700
    least_damping: float = 1e-6
    damping_factor: float = 10.0
    # Features and weights are factorised as soon as products with the Hessian have taken as long. An operation of a
    # product, which waits for memory, takes as long as so many of a factorisation.
    product_price: float = 6.0
    # Of the steps to the limits of rounding:
    polish_steps: int = 12  # at most
    polished: float = 1e-12  # norm of the gradient to stop at, as a share of the point's
    polish_accuracy: float = 1e-3  # several rough steps cost less than one exact one, and end as near
    # Where nobody asked for them, as many products with the Hessian as this share of all before; or so many operations,
    # some hundredths of a second.
    polish_share: float = 0.1
    polish_work: float = 2e9


Polish = Literal["always", "cheap", "never"]


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


class TruncatedNewton:
    """Newton steps whose directions are found by conjugate gradients, with a preconditioner once that pays."""

    def __init__(
        self,
        objective: Objective,
        value_and_gradient: Callable[[Floats], tuple[float, Floats]],
        hessian_product: Callable[[Floats, Floats], Floats],
        go_on: Callable[[], bool],
        settings: NewtonSettings,
    ) -> None:
        self._objective, self._settings, self._go_on = objective, settings, go_on
        self._value_and_gradient, self._hessian_product = value_and_gradient, hessian_product
        self._preconditioner: Callable[[Floats], Floats] | None = None
        self._products = 0  # since the preconditioner was made
        self._affordable = self._products_as_long()
        self._exact = objective.loss.straight and objective.size <= settings.exact_size

    def _products_as_long(self) -> float:
        """Return how many products with the Hessian take as long as making a preconditioner."""
        n, (r, q) = len(self._objective.labels), self._objective.shape
        if not isinstance(self._objective.Z, np.ndarray):
            return np.inf  # sparse features are many
        return max(1.0, (2.0 * n * r * r + r**3 / 3.0) / (self._settings.product_price * 4.0 * n * r * q))

    def step(self, point: Floats, enough: float) -> Floats | None:
        """Return the next point, None if none is better; a gradient whose norm is ``enough`` is as good as none."""
        settings = self._settings
        value, gradient = self._value_and_gradient(point)
        norm = float(np.linalg.norm(gradient))
        rough = settings.rough_if_straight if self._objective.loss.straight else settings.rough
        wanted = norm * min(rough, np.sqrt(norm / max(1.0, float(np.linalg.norm(point)))))
        wanted = max(wanted, min(rough * norm, settings.enough_share * enough))
        direction = self.direction(point, gradient, wanted, settings.direction_steps)
        slope, length, fall = float(gradient @ direction), 1.0, settings.damping_factor
        if not -slope > np.finfo(float).eps * abs(value):
            return None  # no value could tell a better point: it would go on for ever
        for _ in range(settings.halvings):
            candidate = point + length * direction
            if self._value_and_gradient(candidate)[0] <= value + settings.sufficient * length * slope:
                self._damp(1.0 / fall if length == 1.0 else fall)
                return candidate
            length /= 2.0
        return None

    def _damp(self, factor: float) -> None:
        """Change how much curvature takes the place of none."""
        self._objective.damping = float(np.clip(factor * self._objective.damping, self._settings.least_damping, 1.0))

    def direction(self, point: Floats, gradient: Floats, wanted: float, most: int) -> Floats:
        """Minimise the quadratic model until what is left of the gradient has the norm that is wanted.

        Stops after ``most`` products with the Hessian, and where the model is not convex.
        """
        if self._exact:
            self._preconditioner = self._objective.exact_inverse(point, self._go_on)
        elif self._products >= self._affordable:
            self._preconditioner, self._products = self._objective.preconditioner(point, self._go_on), 0
        precondition = self._preconditioner or np.copy
        direction, residual = np.zeros_like(gradient), -gradient
        scaled = precondition(residual)
        search, product = scaled.copy(), float(residual @ scaled)
        for _ in range(most):
            bent = self._hessian_product(point, search)
            self._products += 1
            curvature = float(search @ bent)
            if not curvature > 0.0:
                return direction if direction.any() else search
            length = product / curvature
            direction += length * search
            residual -= length * bent
            if np.linalg.norm(residual) <= wanted:
                break
            scaled = precondition(residual)
            before, product = product, float(residual @ scaled)
            search = scaled + (product / before) * search
        return direction


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
        self.dual = max(0.0, objective.bound(start))  # no loss is negative
        self.iterations = 0
        self.status: Status | None = None
        self._max_iterations = limits.max_iterations if limits.max_iterations >= 0 else np.inf
        self._deadline = time.perf_counter() + limits.time_limit
        self._progress = limits.progress
        self._settings = settings
        self._newton: TruncatedNewton | None = None  # steps on the objective itself
        self._products = 0  # with Hessians

    @property
    def tolerance(self) -> float:
        """The relative gap to stop at."""
        return self._limits.wanted_gap(self.primal, self.dual)

    @property
    def gap(self) -> float:
        """The relative gap."""
        return relative_gap(self.primal, self.dual)

    @property
    def _enough(self) -> float:
        """The norm of a gradient from which the bound is as near as wanted, see :meth:`Objective.distance_to_bound`."""
        return float(np.sqrt(2.0 * self.tolerance * abs(self.primal)))

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

        def step(point: Floats) -> bool:
            self.iterations += 1
            if self.visit(point, *softer.value_and_gradient(point), softer):
                return True
            self.check(self.outcome)
            if self.iterations >= self._max_iterations:
                self._stop("max_iter")
            return False

        newton = self._steps(softer)
        self._newton = newton if softer is self.objective else None
        if self.visit(self.point, *softer.value_and_gradient(self.point), softer):
            return
        if self.iterations >= self._max_iterations:
            self._stop("max_iter")
        point = self.point
        while (following := newton.step(point, self._enough)) is not None:
            point = following
            if step(point):
                return

    def _steps(self, objective: Objective) -> TruncatedNewton:
        """Return steps on an objective that can be stopped at any pass over the data."""

        def value_and_gradient(point: Floats) -> tuple[float, Floats]:
            self.check()
            return objective.value_and_gradient(point)

        def hessian_product(point: Floats, direction: Floats) -> Floats:
            self.check()
            self._products += 1
            return objective.hessian_product(point, direction)

        def go_on() -> bool:
            self.check()
            return True

        return TruncatedNewton(objective, value_and_gradient, hessian_product, go_on, self._settings)

    def polish(self, asked: bool) -> None:
        """Take full Newton steps, which no line search can judge any more, while the gradient falls.

        If nobody asked for them they end as soon as they have cost a share of the rest.
        """
        objective, settings = self.objective, self._settings
        newton = self._newton or self._steps(objective)
        point = self.point
        value, gradient = objective.value_and_gradient(point)
        size, most = len(point), self._products + self._polish_products(asked)
        for _ in range(settings.polish_steps):
            norm = float(np.linalg.norm(gradient))
            if norm <= settings.polished * np.linalg.norm(point) or self._products >= most:
                break
            left = min(settings.direction_steps, most - self._products)
            step = newton.direction(point, gradient, settings.polish_accuracy * norm, left)
            self.iterations += 1
            new_value, new_gradient = objective.value_and_gradient(point + step)
            if not np.linalg.norm(new_gradient) <= 0.5 * norm:
                break
            point, value, gradient = point + step, new_value, new_gradient
        if value <= self.primal + abs(self.primal) * np.finfo(float).eps * size:
            self.point, self.primal = point, value
            self.dual = max(self.dual, objective.bound(point))
            self.visit(point, value, gradient, objective)

    def _polish_products(self, asked: bool) -> int:
        """Return how many products with the Hessian the steps to rounding may take."""
        settings = self._settings
        if asked:
            return settings.polish_steps * settings.direction_steps
        return int(max(settings.polish_share * self._products, settings.polish_work / self.objective.product_work))


def minimize(
    objective: Objective,
    start: Floats,
    limits: Limits[NewtonResult],
    *,
    polish: Polish = "never",
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
    polish : {"always", "cheap", "never"}, default="never"
        Whether to go on, from there, to the limits of rounding: however long that takes, or as far as it costs a small
        share of what was done before.
    settings : NewtonSettings, default=None
        How steps are taken; None for what was measured to be good.

    Returns
    -------
    NewtonResult
        The best point with its objective and the best lower bound.
    """
    search = _Search(objective, start, limits, NewtonSettings() if settings is None else settings)
    series = objective.loss.softer(objective.stiffness)
    try:
        for loss in series:
            search.run(objective if loss is objective.loss else objective.with_loss(loss))
            if search.status:
                break
        if series[-1] is objective.loss and (polish != "never" or not search.status):
            search.polish(asked=polish == "always" or not search.status)
    except _StopError:  # the best point so far is the answer
        search.dual = max(search.dual, objective.bound(search.point))
    if search.gap <= search.tolerance:
        search.status = "converged"
    return search.outcome()
