"""Van den Burg and Groenen's GenSVM, in the primal."""

from __future__ import annotations

from dataclasses import dataclass

from polymargin.formulations.primal_softmax import PrimalMachine
from polymargin.solvers import HuberNormLoss, PrimalLoss, simplex
from polymargin.support.numeric import Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class PrimalSimplex(PrimalMachine):
    r"""A p-norm of Huber hinges of the differences of scores, which are those of one map to the space of a simplex.

    An example is mapped to :math:`v = V' z + t` in k - 1 dimensions, and its scores are products :math:`u_m \cdot v`
    with the corners of a regular simplex, whose edges have length 1.

    Parameters
    ----------
    norm : float
        p, from 1 (the sum of the hinges) to 2.
    kappa : float
        Where the Huber hinge becomes straight, above -1.
    """

    norm: float = 1.0
    kappa: float = 0.0

    def loss(self, n_classes: int) -> PrimalLoss:
        """Return the loss of the class scores."""
        return HuberNormLoss(self.norm, self.kappa)

    def class_factor(self, n_classes: int) -> Floats:
        """Return the corners of the simplex: scores are products with them."""
        return simplex(n_classes)
