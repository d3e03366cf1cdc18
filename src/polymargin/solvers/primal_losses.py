r"""Losses of the scores of all classes, with first and second derivatives.

Every loss is built of the logistic loss :math:`\ell(s) = \log(1 + e^{-s})`, with :math:`\ell' = -q`,
:math:`q = 1 / (1 + e^s)` and :math:`\ell'' = q (1 - q)`. Rows are examples, columns classes; ``labels`` are the
examples' classes. No exponent is ever positive.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from polymargin.support.numeric import Floats, Ints

_FIRST_SOFTER = 16.0  # aggregations up to about here are minimised as they are
_SOFTER_FACTOR = 4.0  # from one softer loss to the next
_MAX_SOFTER = 14
_SMALLEST_AGGREGATION = (
    1e-100  # a smaller aggregation is indistinguishable from the sum, and its products would underflow
)


class Evaluation(NamedTuple):
    """A loss at some scores: values (n,), slopes in the scores (n, k), and what products with its Hessian need."""

    values: Floats
    slopes: Floats
    curvature: Any


class PrimalLoss(ABC):
    """A sum over examples of losses of their scores."""

    convex: bool
    """Whether it is convex: only then the slopes prove anything about the optimum."""
    relative: bool
    """Whether only differences of scores count."""
    straight: bool = False
    """Whether it has no curvature in places: then Newton steps are damped there, see :meth:`damped`."""

    @abstractmethod
    def evaluate(self, scores: Floats, labels: Ints) -> Evaluation:
        """Return values, slopes and curvature at some scores."""

    def softer(self, stiffness: float) -> list[PrimalLoss]:
        """Return the losses that are to be minimised one after the other; the last is this one, if it is smooth.

        ``stiffness`` is how much more losses can bend than the norm, :attr:`Objective.stiffness`.
        """
        return [self]

    def minorant(self, scores: Floats, labels: Ints, softer: PrimalLoss | None = None) -> tuple[Floats, Floats]:
        """Return values and slopes, at these scores, of convex losses that are nowhere larger than this one.

        They are its own where it is convex and smooth; ``softer`` is the loss that was minimised in its place.
        """
        evaluation = self.evaluate(scores, labels)
        return evaluation.values, evaluation.slopes

    @abstractmethod
    def product(self, curvature: Any, labels: Ints, direction: Floats) -> Floats:
        """Return the product of every example's Hessian, from :meth:`evaluate`, with a direction in the scores."""

    def damped(self, curvature: Any, share: float) -> Any:
        """Return the curvature of :meth:`evaluate` with a share of that of a parabola above, where it is straight."""
        return curvature

    @abstractmethod
    def balance(self, sums: Floats, totals: Floats) -> tuple[float, Floats]:
        """Return a share t and slopes F that balance slopes G with column sums ``sums``.

        ``totals`` are the costs of each class. If every example i of class y takes the slopes ``F[y]``, times its
        cost, then ``(1 - t) G + t F`` has column sums zero, and the conjugate of the loss is at most 0 at F.
        """


def logistic(margins: Floats) -> Floats:
    """Return log(1 + exp(-s))."""
    return np.logaddexp(0.0, -margins)


class SoftmaxLoss(PrimalLoss):
    r"""Zien et al.'s loss: a soft maximum of the logistic losses against every wrong class.

    .. math:: L(s, y) = \operatorname{smax}_\gamma \{ \ell(s_y - s_u) : u \ne y \}, \qquad
              \operatorname{smax}_\gamma(t) = \tfrac1\gamma \log\Bigl(1 + \sum_u (e^{\gamma t_u} - 1)\Bigr),

    (1.4) with the constant for the k - 1 wrong classes. It falls as :math:`\gamma` grows, from the sum (0) to the
    maximum (infinity). With the largest of them, a, taken out,

    .. math:: \operatorname{smax}_\gamma(t) = a + \tfrac1\gamma \log\Bigl(1
              + \sum_{u \ne \arg\max} e^{\gamma (t_u - a)} (1 - e^{-\gamma t_u})\Bigr)

    has no positive exponent and no cancellation, whatever :math:`\gamma`. With the weights
    :math:`p_u = \partial \operatorname{smax} / \partial t_u` and :math:`c_u = p_u q_u`, the slope in the margin
    :math:`s_y - s_u` is :math:`-c_u` and the Hessian :math:`\operatorname{diag}(c_u (1 + (\gamma - 1) q_u)) -
    \gamma c c'`.

    It is convex for :math:`\gamma = 0` and :math:`\gamma \ge 1`: the Hessian is positive semi-definite exactly if
    :math:`\gamma \sum_u c_u / (1 + (\gamma - 1) q_u) \le 1`, which is Bernoulli's inequality for :math:`\gamma \ge 1`
    and fails between, when two wrong classes lead by much. At :math:`\gamma = 1` it is
    :math:`\log \sum_u e^{s_u - s_y}`, the loss of multinomial logistic regression.

    Parameters
    ----------
    aggregation : float
        :math:`\gamma`, from 0 to infinity.
    """

    relative = True

    def __init__(self, aggregation: float) -> None:
        self.aggregation: float = float(aggregation) if aggregation > _SMALLEST_AGGREGATION else 0.0
        self.convex: bool = self.aggregation == 0.0 or self.aggregation >= 1.0

    def evaluate(self, scores: Floats, labels: Ints) -> Evaluation:
        losses, q = _margin_losses(scores, labels)
        values, weights = _soft_maximum(losses, labels, self.aggregation)
        c = weights * q
        bend = self.aggregation - 1.0 if np.isfinite(self.aggregation) else 0.0  # the maximum: flat but for its kinks
        return Evaluation(values, in_scores(-c, labels), (c, 1.0 + bend * q))

    def softer(self, stiffness: float) -> list[PrimalLoss]:
        gammas = _FIRST_SOFTER * _SOFTER_FACTOR ** np.arange(_MAX_SOFTER)
        series: list[PrimalLoss] = [SoftmaxLoss(gamma) for gamma in gammas[gammas < self.aggregation / 2]]
        return series if np.isinf(self.aggregation) else [*series, self]

    def minorant(self, scores: Floats, labels: Ints, softer: PrimalLoss | None = None) -> tuple[Floats, Floats]:
        if softer is None or softer is self:
            # The loss falls as gamma grows, so gamma = 1 is below all that are not convex.
            return super().minorant(scores, labels) if self.convex else SoftmaxLoss(1.0).minorant(scores, labels)
        # A soft maximum is at least every mean of what it is taken of.
        assert isinstance(softer, SoftmaxLoss)
        losses, q = _margin_losses(scores, labels)
        _, weights = _soft_maximum(losses, labels, softer.aggregation)
        weights[np.arange(len(labels)), labels] = 0.0
        weights /= weights.sum(axis=1, keepdims=True)
        return (weights * losses).sum(axis=1), in_scores(-weights * q, labels)

    def product(self, curvature: Any, labels: Ints, direction: Floats) -> Floats:
        c, factor = curvature
        margins = direction[np.arange(len(labels)), labels][:, None] - direction
        shared = np.einsum("ij,ij->i", c, margins)
        return in_scores(c * (factor * margins - (self.aggregation * shared)[:, None]), labels)

    def balance(self, sums: Floats, totals: Floats) -> tuple[float, Floats]:
        return balanced_slopes(sums, totals, 1.0)


class OneVsRestLoss(PrimalLoss):
    r"""The loss of k binary problems side by side: :math:`\sum_m \ell(\pm 2 s_m)`, + for the own class.

    The two scores of the joint machine with two classes are :math:`\pm s`, and their difference is 2 s: so a binary
    problem has the same loss here as there.
    """

    convex = True
    relative = False

    def evaluate(self, scores: Floats, labels: Ints) -> Evaluation:
        sign = _signs(scores, labels)
        margins = 2.0 * sign * scores
        q = expit(-margins)
        return Evaluation(logistic(margins).sum(axis=1), -2.0 * sign * q, 4.0 * q * (1.0 - q))

    def product(self, curvature: Any, labels: Ints, direction: Floats) -> Floats:
        product: Floats = curvature * direction
        return product

    def balance(self, sums: Floats, totals: Floats) -> tuple[float, Floats]:
        # Slopes of the own class lie in [-2, 0], of the others in [0, 2].
        F = np.zeros((len(sums), len(sums)))
        if not np.any(sums):
            return 0.0, F
        capacity = 2.0 * np.where(sums > 0, totals, totals.sum() - totals)
        share = float(np.max(np.abs(sums) / (np.abs(sums) + capacity)))
        own = np.eye(len(sums), dtype=bool)
        F = np.where(own == (sums > 0), -2.0 * sums / capacity, 0.0)
        return share, F * ((1.0 - share) / share)


def balanced_slopes(sums: Floats, totals: Floats, most: float) -> tuple[float, Floats]:
    """Return what :meth:`PrimalLoss.balance` does, of a loss whose own slopes may be down to ``-most``.

    Too much in column m can be taken away by its own examples alone: they are moved to columns with too little.
    """
    surplus, deficit = np.maximum(sums, 0.0), np.maximum(-sums, 0.0)
    moved = min(surplus.sum(), deficit.sum())  # they are equal, but for rounding
    F = np.zeros((len(sums), len(sums)))
    if moved == 0.0:
        return 0.0, F
    share = float(np.max(surplus / (surplus + most * totals)))
    F += (surplus / totals)[:, None] * (deficit / deficit.sum())
    F[np.diag_indices_from(F)] = 0.0
    F[np.diag_indices_from(F)] = -F.sum(axis=1)
    return share, F * ((1.0 - share) / share)


def _margin_losses(scores: Floats, labels: Ints) -> tuple[Floats, Floats]:
    """Return the logistic losses of the margins against every class, and q; both are 0 for the own class."""
    own = np.arange(len(labels)), labels
    margins = scores[own][:, None] - scores
    losses, q = logistic(margins), expit(-margins)
    losses[own] = 0.0
    q[own] = 0.0
    return losses, q


def _soft_maximum(losses: Floats, labels: Ints, gamma: float) -> tuple[Floats, Floats]:
    """Return the soft maxima of the wrong classes' losses, and their derivatives; that of the own class is void."""
    if gamma == 0.0:
        return losses.sum(axis=1), np.ones_like(losses)
    rows = np.arange(len(labels))
    largest = losses.argmax(axis=1)  # the own class has loss 0: if it is the largest, all are 0
    a = losses[rows, largest]
    if np.isinf(gamma):
        weights = np.zeros_like(losses)
        weights[rows, largest] = 1.0
        return a, weights
    with np.errstate(over="ignore"):
        powers = np.exp(gamma * (losses - a[:, None]))
        rest = -powers * np.expm1(-gamma * losses)
    rest[rows, largest] = 0.0
    total = rest.sum(axis=1)
    return a + np.log1p(total) / gamma, powers / (1.0 + total)[:, None]


def in_scores(slopes: Floats, labels: Ints) -> Floats:
    """Turn derivatives in the margins s_y - s_u, in place, into derivatives in the scores."""
    own = np.arange(len(labels)), labels
    slopes[own] = 0.0
    total = slopes.sum(axis=1)
    np.negative(slopes, out=slopes)
    slopes[own] = total
    return slopes


def _signs(scores: Floats, labels: Ints) -> Floats:
    sign = np.full(scores.shape, -1.0)
    sign[np.arange(len(labels)), labels] = 1.0
    return sign
