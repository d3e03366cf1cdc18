r"""A primal-dual interior-point method for linear machines with few features.

.. math:: \min_V \tfrac12 \sum_f p_f |V_f|^2 + \sum_i \text{loss}_i(M - \text{margins}_i(V))

with a row :math:`V_f` for each feature, among them perhaps one that is 1 for all examples and whose penalty
:math:`p_f` is 1 or, for a free bias, 0. The dual variables of an example's hinges are

.. math:: 0 \le a_{im} \le L_i, \qquad \sum_m a_{im} \le Q_i

(one of the limits may be infinite), and at the optimum :math:`p_f V_f = (X'B(a))_f`. With the slacks
:math:`z, w, u` of the three limits, :math:`\text{margins} - M - z + w + u = 0`, a step of Newton's method is

.. math:: (\operatorname{diag}(p) + A' G A) \, dV = \ldots, \qquad
          G_i^{-1} = \operatorname{diag}\Big(\frac{z}{a} + \frac{w}{L - a}\Big) + \frac{u}{Q - \sum a} 1 1',

as many equations as there are weights, however many examples there are and however large C and their values. Predictor
and corrector are Mehrotra's. The number of steps hardly depends on the data: that is what it is for.

Features are turned to the axes of the examples first, which changes neither the problem nor its penalty; columns of
very different sizes, or that depend on each other, then do no harm. At the end variables near their limits are put on
them, and the others found by Newton's method on that face.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from polymargin.solvers.hinges import Hinges
from polymargin.support.numeric import Bools, Floats, relative_gap


@dataclass(frozen=True)
class LinearInteriorSettings:
    """How steps are taken."""

    step_share: float = 0.995  # of the step after which a variable would be zero
    least_product: float = 1e-3  # of a variable and its slack, as a share of the mean
    ridge: float = 1e-14  # relative to the diagonal
    refinements: int = 1  # of the solution of a linear system
    most_steps: int = 100
    finer: float = 0.1  # the gap at which the end is tried again, as a share of the last
    finest: float = 1e-11  # a gap below which rounding hides the rest
    faces: int = 4  # corrections of a face
    stiff: float = 1e8  # what a free variable answers to its margin on a face, in units of 1 / |x|^2
    tie: float = 1e100  # stands for an infinite slope where a sum is at its limit


class Bounds(NamedTuple):
    """The limits of the dual variables: of each of an example's, and of their sum; inf where there is none."""

    each: Floats  # (n,)
    total: Floats  # (n,)


@dataclass(frozen=True, eq=False)
class InteriorResult:
    """Points of the primal and the dual, feasible but for rounding and the sums that a free bias asks for."""

    V: Floats
    a: Floats
    primal: float
    dual: float
    steps: int
    converged: bool

    @property
    def gap(self) -> float:
        """Their relative gap."""
        return relative_gap(self.primal, self.dual)


class _Point(NamedTuple):
    """Variables, or changes of them; what an example has no place for is 1, and its changes are 0."""

    V: Floats
    a: Floats
    upper: Floats  # L - a, which rounding would make 0
    total: Floats  # Q - sum a
    z: Floats
    w: Floats
    u: Floats


class LinearInterior:
    """The problem and its iterates.

    Parameters
    ----------
    hinges : Hinges
        The margins.
    penalty : array of shape (d,)
        p, 1 or 0.
    bounds : Bounds
        L and Q, one of them finite for each example.
    margin : float or array of shape (n, q)
        M, of all hinges or of each; not all are 0.
    go_on : callable
        Asked now and then with the gap; when it says no, the best so far is returned.
    settings : LinearInteriorSettings
        How steps are taken.
    """

    def __init__(
        self,
        hinges: Hinges,
        penalty: Floats,
        bounds: Bounds,
        margin: float | Floats,
        go_on: Callable[[float], bool],
        settings: LinearInteriorSettings | None = None,
    ) -> None:
        self._hinges, self._penalty, self._margin = hinges, penalty[:, None], margin
        self._unit = float(np.max(margin))  # of margins
        self._settings = settings or LinearInteriorSettings()
        self._go_on = go_on
        self._used = hinges.used
        self._each, self._total = bounds.each[:, None], bounds.total
        self._limited, self._summed = np.isfinite(self._each), np.isfinite(self._total)
        self._bounded = self._used & self._limited
        self._count = int(self._used.sum() + self._bounded.sum() + self._summed.sum())
        # Half of what is possible, and slacks as if all products were C M.
        width = self._used.sum(axis=1) + 1.0
        half = np.minimum(self._each / 2.0, (self._total / width)[:, None])
        cost = np.minimum(self._each[:, 0], self._total)
        a = np.where(self._used, half, 0.0)
        upper = np.where(self._bounded, half, 1.0)
        total = np.where(self._summed, cost / width, 1.0)
        z = np.where(self._used, self._unit * (cost / half[:, 0])[:, None], 0.0)
        w = np.where(self._bounded, 2.0 * self._unit, 0.0)
        u = np.where(self._summed, self._unit * width, 0.0)
        self._at = _Point(np.zeros((len(penalty), hinges.columns)), a, upper, total, z, w, u)

    def solve(self, gap: float) -> InteriorResult:
        """Go on, from where the last call ended, until the relative gap is at most this."""
        best = InteriorResult(self._at.V, self._at.a, np.inf, -np.inf, 0, False)
        wanted = gap
        for step in range(self._settings.most_steps + 1):
            now = InteriorResult(
                self._at.V, self._at.a, self._primal(self._at.V), self._dual(self._at.a), step, converged=False
            )
            best = replace(now if now.gap < best.gap else best, steps=step)
            if now.gap <= wanted:
                settled = self._settled(best)
                if settled.gap <= gap:
                    return replace(settled, converged=True)
                wanted *= self._settings.finer
            if not self._go_on(best.gap) or wanted < self._settings.finest:
                break
            with np.errstate(over="ignore", invalid="ignore"):  # a step that is not finite is not taken
                if not self._step():
                    break
        return replace(best, converged=best.gap <= gap)

    def _primal(self, V: Floats) -> float:
        """Return the objective of weights. The loss is the largest linear form in the dual's feasible set."""
        hinges = np.where(self._used, np.maximum(0.0, self._margin - self._hinges.margins(V)), 0.0)
        losses = float(np.sum(np.where(self._summed, self._total, 0.0) * hinges.max(axis=1)))
        losses += float(np.sum(np.where(self._limited, self._each, 0.0) * hinges))
        return losses + 0.5 * float(np.sum(self._penalty * V * V))

    def _dual(self, a: Floats) -> float:
        """Return the objective of variables. What is left of a free bias's sums will be taken out of them: a price."""
        own = self._hinges.weights(a)
        left = np.where(self._penalty == 0.0, np.abs(own) * (self._unit + np.abs(self._at.V)), 0.0)
        return self._linear(a) - 0.5 * float(np.sum(self._penalty * own * own)) - float(left.sum())

    def _linear(self, a: Floats) -> float:
        """Return the margins times their variables."""
        if isinstance(self._margin, np.ndarray):
            return float(np.sum(self._margin * a))
        return self._margin * float(a.sum())

    def _complementarity(self, at: _Point) -> float:
        """Return the sum of all products of variables and their slacks."""
        return float(np.sum(at.a * at.z) + np.sum(at.upper * at.w) + at.total @ at.u)

    def _step(self) -> bool:
        """Take one step; False if it could not be taken."""
        at = self._at = self._centred()
        newton = self._linearized()
        if newton is None:
            return False
        here = self._complementarity(at)
        zero = np.zeros_like(at.a)
        predicted = newton(zero, zero, np.zeros_like(at.u))
        ahead = self._complementarity(self._moved(predicted, self._longest(predicted)))
        target = (ahead / here) ** 3 * here / self._count
        corrected = newton(
            np.where(self._used, target - predicted.a * predicted.z, 0.0),
            np.where(self._bounded, target - predicted.upper * predicted.w, 0.0),
            np.where(self._summed, target - predicted.total * predicted.u, 0.0),
        )
        if not all(np.all(np.isfinite(part)) for part in corrected):
            return False
        self._at = self._moved(corrected, self._settings.step_share * self._longest(corrected))
        return True

    def _centred(self) -> _Point:
        """Return the iterate with no product far below the mean: such a variable would be stuck at its limit.

        Slacks can be raised for nothing: a step aims at what they should be, wherever they are.
        """
        at = self._at
        least = self._settings.least_product * self._complementarity(at) / self._count
        return at._replace(
            z=np.where(self._used, np.maximum(at.z, least / np.where(self._used, at.a, 1.0)), 0.0),
            w=np.where(self._bounded, np.maximum(at.w, least / at.upper), 0.0),
            u=np.where(self._summed, np.maximum(at.u, least / at.total), 0.0),
        )

    def _moved(self, by: _Point, length: float) -> _Point:
        return _Point(*(part + length * change for part, change in zip(self._at, by, strict=True)))

    def _longest(self, by: _Point) -> float:
        """Return how far all variables can go, at most 1."""
        at = self._at
        return min(
            _longest(at.a, by.a, self._used),
            _longest(at.z, by.z, self._used),
            _longest(at.upper, by.upper, self._bounded),
            _longest(at.w, by.w, self._bounded),
            _longest(at.total, by.total, self._summed),
            _longest(at.u, by.u, self._summed),
        )

    def _linearized(self) -> Callable[[Floats, Floats, Floats], _Point] | None:
        """Return Newton's equations here as a function from the products that are aimed at to a direction."""
        at, used = self._at, self._used
        lower = np.where(used, at.a, 1.0)
        T = np.where(used, 1.0 / np.where(used, at.z / lower + at.w / at.upper, 1.0), 0.0)
        face = self._face(T, at.u / at.total)
        if face is None:
            return None
        rest = np.where(used, self._hinges.margins(at.V) - self._margin, 0.0)

        def direction(az: Floats, rw: Floats, tu: Floats) -> _Point:
            aim = np.where(used, az / lower - rw / at.upper - (tu / at.total)[:, None] - rest, 0.0)
            dV, da = face(at, aim)
            upper, total = np.where(self._bounded, -da, 0.0), np.where(self._summed, -da.sum(axis=1), 0.0)
            return _Point(
                dV,
                da,
                upper,
                total,
                np.where(used, (az - at.z * da) / lower - at.z, 0.0),
                np.where(self._bounded, (rw - at.w * upper) / at.upper - at.w, 0.0),
                np.where(self._summed, (tu - at.u * total) / at.total - at.u, 0.0),
            )

        return direction

    def _face(self, T: Floats, shared: Floats) -> Callable[[_Point, Floats], tuple[Floats, Floats]] | None:
        """Return the solution of ``da = G (aim - margins(dV))`` and ``p V = weights(a)``; None if there is none."""
        hinges = self._hinges
        M = hinges.normal(T, shared, lambda: self._go_on(np.inf))
        if M is None:
            return None
        share = shared / (1.0 + shared * T.sum(axis=1))

        def respond(r: Floats) -> Floats:
            scaled = T * r
            response: Floats = scaled - T * (share * scaled.sum(axis=1))[:, None]
            return response

        def times(V: Floats) -> Floats:
            return self._penalty * V + hinges.weights(respond(hinges.margins(V)))

        try:
            solve = self._factor(M)
        except LinAlgError:
            return None

        def solution(at: _Point, aim: Floats) -> tuple[Floats, Floats]:
            right = hinges.weights(at.a) - self._penalty * at.V + hinges.weights(respond(aim))
            dV = solve(right)
            for _ in range(self._settings.refinements):
                dV += solve(right - times(dV))
            return dV, respond(aim - hinges.margins(dV))

        return solution

    def _factor(self, M: Floats) -> Callable[[Floats], Floats]:
        """Factorise ``diag(p) + M``, scaled to a unit diagonal."""
        d, k = len(self._penalty), self._hinges.columns
        diagonal = M.diagonal() + np.tile(self._penalty[:, 0], k)
        for f in np.flatnonzero(self._penalty[:, 0] == 0) if k > 1 else ():
            # All scores may be shifted together: hold their mean.
            places = f + d * np.arange(k)
            mean = diagonal[places].mean() / k
            M[np.ix_(places, places)] += mean
            diagonal[places] += mean
        if not (np.all(diagonal > 0) and np.all(np.isfinite(diagonal))):
            raise LinAlgError("the diagonal is not positive and finite")
        scale = 1.0 / np.sqrt(diagonal)
        M *= scale
        M *= scale[:, None]
        np.fill_diagonal(M, 1.0 + self._settings.ridge)
        factor = cho_factor(M, overwrite_a=True, check_finite=False)

        def solve(right: Floats) -> Floats:
            flat: Floats = scale * cho_solve(factor, scale * right.T.ravel(), check_finite=False)
            return flat.reshape(k, d).T.copy()

        return solve

    def _settled(self, best: InteriorResult) -> InteriorResult:
        """Return the best points near, of those whose variables are at their limits where they are next to one.

        One is the optimum of that face. Where it is not the right one yet, another is as good as the iterate: what
        putting variables on their limits did to the weights is undone by the others, and no more.
        """
        at, used = self._at, self._used
        cost = np.minimum(self._each, self._total[:, None])
        zero = used & (at.a * self._unit < at.z * cost)
        full = self._bounded & (at.upper * self._unit < at.w * cost)
        tied = self._summed & (at.total * self._unit < at.u * cost[:, 0])
        free = used & ~zero & ~full
        found = replace(best, a=self._feasible(np.where(free, at.a, np.where(full, self._each, 0.0)), tied))
        found = replace(found, dual=self._dual(found.a))
        stiff = np.where(free, self._settings.stiff / self._hinges.size, 0.0)
        soft = np.where(free, 1.0 / np.where(used, at.z / np.where(used, at.a, 1.0) + at.w / at.upper, 1.0), 0.0)
        for T, optimal in ((stiff, True), (soft, False)):
            found = self._corrected(found, T, tied, optimal=optimal)
        return found

    def _corrected(self, best: InteriorResult, T: Floats, tied: Bools, *, optimal: bool) -> InteriorResult:
        """Return better points on a face, whose free variables make up for the others, or are optimal given them."""
        free, held = T > 0.0, best.a
        V, a = self._at.V, best.a
        face = self._face(T, np.where(tied, self._settings.tie, 0.0))
        for _ in range(self._settings.faces if face is not None else 0):
            assert face is not None
            rest = np.where(free & optimal, self._margin - self._hinges.margins(V), 0.0)
            dV, da = face(self._at._replace(V=V, a=a), rest)
            V, a = V + dV, self._feasible(np.where(free, a + da, held), tied)
            primal, dual = self._primal(V), self._dual(a)
            if not (primal < best.primal or dual > best.dual):
                break
            best = replace(best, V=V, primal=primal) if primal < best.primal else best
            best = replace(best, a=a, dual=dual) if dual > best.dual else best
        return best

    def _feasible(self, a: Floats, tied: Bools) -> Floats:
        """Return variables within their limits; sums that are tied are at theirs."""
        a = np.clip(a, 0.0, self._each)
        sums = a.sum(axis=1)
        over = (sums > self._total) | (tied & (sums > 0.0))
        return a * np.where(over, self._total / np.where(over, sums, 1.0), 1.0)[:, None]


def _longest(values: Floats, change: Floats, where: Bools) -> float:
    """Return the share of a change, at most 1, after which one of the values is zero."""
    falling = where & (change < 0)
    return float(min(1.0, np.min(-values[falling] / change[falling], initial=np.inf)))
