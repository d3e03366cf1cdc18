r"""The loss of GenSVM: a p-norm of Huber hinges of the differences of scores, with first and second derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from polymargin.solvers.primal_losses import Evaluation, PrimalLoss, balanced_slopes, in_scores
from polymargin.support.numeric import Floats, Ints

_FIRST_STIFFNESS = 30.0  # up to about here a loss is minimised at once
_STEP = 4.0  # from one softer loss to the next: in its share, then in the width of the hinge
_MAX_SOFTER = 14  # of either


class HuberNormLoss(PrimalLoss):
    r"""Van den Burg and Groenen's loss of the differences :math:`q_u = s_y - s_u` to the wrong classes,

    .. math:: L(s, y) = \Bigl(\sum_{u \ne y} h(q_u)^p\Bigr)^{1/p}, \qquad
              h(q) = \begin{cases} 1 - q - \frac{\kappa + 1}{2} & q \le -\kappa \\
              \frac{(1 - q)^2}{2 (\kappa + 1)} & -\kappa < q \le 1 \\ 0 & q > 1. \end{cases}

    A norm that grows with every :math:`h \ge 0`, each of them convex: so L is convex. With the weights
    :math:`w_u = (h_u / L)^{p - 1}` the slope in :math:`q_u` is :math:`g_u = w_u h'_u`, and the Hessian

    .. math:: \operatorname{diag}(w_u h''_u) + \frac{p - 1}{L}
              \bigl(\operatorname{diag}((h_u / L)^{p - 2} h'^2_u) - g g'\bigr).

    It exists but where a :math:`q_u` is 1 or :math:`-\kappa`. Where h is small, :math:`h'^2 = 2 h / (\kappa + 1)`, so
    that the second term is :math:`\frac{2 (p - 1)}{\kappa + 1} w_u` there: nothing is divided by a loss of zero.

    Parameters
    ----------
    norm : float
        p, at least 1.
    kappa : float
        :math:`\kappa > -1`; as it comes near -1 the Huber hinge becomes the hinge.
    share : float, default=1.0
        A factor on the loss, at most 1.
    """

    convex = True
    relative = True
    straight = True

    def __init__(self, norm: float, kappa: float, share: float = 1.0) -> None:
        self.norm, self.kappa, self.share = float(norm), float(kappa), float(share)

    def softer(self, stiffness: float) -> list[PrimalLoss]:
        # A share of the loss is nowhere larger. A Huber hinge is the envelope of the hinge of width kappa + 1: a wider
        # one is nowhere larger either.
        widths = _STEP ** -np.arange(_MAX_SOFTER)
        wider = widths[widths > 2.0 * (self.kappa + 1.0)]
        first = wider[0] - 1.0 if len(wider) else self.kappa
        shares = _STEP ** -np.arange(_MAX_SOFTER, 0, -1.0)
        shares = shares[_STEP * shares * stiffness > _FIRST_STIFFNESS]
        return [
            *(HuberNormLoss(self.norm, first, share) for share in shares),
            *(HuberNormLoss(self.norm, width - 1.0) for width in wider),
            self,
        ]

    def minorant(self, scores: Floats, labels: Ints, softer: PrimalLoss | None = None) -> tuple[Floats, Floats]:
        return super().minorant(scores, labels) if softer in (None, self) else softer.minorant(scores, labels)

    def hinges(self, scores: Floats, labels: Ints) -> tuple[Floats, Floats, Floats]:
        """Return the Huber hinges, their slopes and their curvatures in the differences; 0 for the own class."""
        own = np.arange(len(labels)), labels
        width = self.kappa + 1.0
        short = np.maximum(0.0, 1.0 - (scores[own][:, None] - scores))
        short[own] = 0.0
        straight = short >= width
        values = np.where(straight, short - 0.5 * width, 0.5 * short * (short / width))
        slopes = np.where(straight, -1.0, -short / width)
        bends = np.where(straight | (short == 0.0), 0.0, 1.0 / width)
        return values, slopes, bends

    def evaluate(self, scores: Floats, labels: Ints) -> Evaluation:
        hinges, slopes, bends = self.hinges(scores, labels)
        # Where it is straight, a parabola of this bend that touches it here is nowhere below it, nor below zero.
        above = np.where(slopes == -1.0, 0.5 / np.where(hinges > 0.0, hinges, 1.0), 0.0)
        share = self.share
        if self.norm == 1.0:
            curvature = share * bends, None, share * above
            return Evaluation(share * hinges.sum(axis=1), in_scores(share * slopes, labels), curvature)
        largest = hinges.max(axis=1)
        scaled = hinges / np.where(largest > 0.0, largest, 1.0)[:, None]  # no power may underflow
        values = largest * (scaled**self.norm).sum(axis=1) ** (1.0 / self.norm)
        shares = hinges / np.where(values > 0.0, values, 1.0)[:, None]
        weights = share * shares ** (self.norm - 1.0)
        c = weights * slopes
        inverse = 1.0 / np.where(values > 0.0, values, np.inf)
        # (h / L)^(p - 2) h'^2 / L, which is (h / L)^(p - 1) h'^2 / h.
        squares = np.where(slopes > -1.0, 2.0 / (self.kappa + 1.0), 1.0 / np.where(hinges > 0.0, hinges, 1.0))
        diagonal = weights * (bends + (self.norm - 1.0) * squares)
        shared = c * np.sqrt((self.norm - 1.0) * inverse / share)[:, None]
        return Evaluation(share * values, in_scores(c, labels), (diagonal, shared, weights * above))

    def damped(self, curvature: Any, share: float) -> Any:
        diagonal, shared, above = curvature
        return diagonal + share * above, shared, above

    def product(self, curvature: Any, labels: Ints, direction: Floats) -> Floats:
        diagonal, shared, _ = curvature
        differences = direction[np.arange(len(labels)), labels][:, None] - direction
        moved = diagonal * differences
        if shared is not None:
            moved -= shared * np.einsum("ij,ij->i", shared, differences)[:, None]
        return in_scores(moved, labels)

    def balance(self, sums: Floats, totals: Floats) -> tuple[float, Floats]:
        # Slopes c >= 0 against the wrong classes with a sum of at most r = min(1, 2 / (kappa + 1)) have a conjugate of
        # at most 0: with c = r w the norm dual to the p-norm is at most 1 at w, and h*(-r) = r^2 (kappa + 1) / 2 - r.
        return balanced_slopes(sums, totals, min(1.0, 2.0 / (self.kappa + 1.0)))


def simplex(n_classes: int) -> Floats:
    """Return the corners of a regular simplex with edges of length 1 around the origin, k x (k - 1)."""
    corners = np.zeros((n_classes, n_classes - 1))
    for j in range(n_classes - 1):
        unit = 1.0 / np.sqrt(2.0 * (j + 1) * (j + 2))
        corners[: j + 1, j] = -unit
        corners[j + 1, j] = (j + 1) * unit
    return corners
