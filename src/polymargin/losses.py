r"""The losses of machines with a score for each class, as values.

A joint loss is made of the hinges of an example of class y against the wrong classes m,

.. math:: h_m = M - (s_y - s_m), \qquad h_y = 0,

with the margin M. Its dual variables are rows of coefficients B, examples x classes, that sum to zero and lie in a
feasible set :math:`C_i \, \mathcal{B}_{y_i}`, which is what distinguishes one loss from another. The arithmetic of
training is in the compiled core; here is what Python needs besides: the loss by definition and its feasible set for
certificates, and the hinges that are active for the cutting-plane method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from polymargin import _core
from polymargin.support.numeric import Floats, Ints

CoreLoss = _core.WestonWatkins | _core.CrammerSinger | _core.OneVsRest


class JointLoss(ABC):
    """A loss of the scores of all classes, solved as one problem."""

    name: ClassVar[str]
    on_simplex: ClassVar[bool]
    """Whether the feasible set of a row is a simplex, on which exponentiated gradient steps can be taken."""

    row_limits: ClassVar[tuple[float, float] | None] = None
    """The limits of a wrong class's coefficient, and of the sum of all, in units of -C_i, where these are the whole
    feasible set of a row: then small linear machines can be solved by an interior-point method."""

    @property
    @abstractmethod
    def margin(self) -> float:
        """The margin M."""

    @abstractmethod
    def values(self, scores: Floats, labels: Ints) -> Floats:
        """Return the loss of each example by definition, without its factor C."""

    @abstractmethod
    def excess(self, coefficients: Floats, labels: Ints, cost_bounds: Floats) -> float:
        """Return how far rows of coefficients are outside their feasible sets, the sum of a row aside."""

    @abstractmethod
    def active_hinges(self, hinges: Floats) -> NDArray[np.intp]:
        r"""Return which hinges the loss is made of, as ascending places in the flattened array.

        The loss of an example is the sum of its active hinges, whose sum of :math:`e_m - e_y` is a sub-gradient in the
        scores. ``hinges`` (n, k) may have a factor for each row.
        """

    @property
    @abstractmethod
    def core(self) -> CoreLoss:
        """The loss as the compiled core takes it."""


@dataclass(frozen=True)
class WestonWatkins(JointLoss):
    r"""Weston and Watkins' loss: a hinge for every wrong class, :math:`\sum_{m \ne y} \max(0, M - (s_y - s_m))`.

    Rows of coefficients are feasible if :math:`-C_i \le B_{im} \le 0` for :math:`m \ne y_i`.
    """

    name: ClassVar[str] = "weston-watkins"
    on_simplex: ClassVar[bool] = False
    row_limits: ClassVar[tuple[float, float] | None] = (1.0, np.inf)
    margin: float = 2.0

    def values(self, scores: Floats, labels: Ints) -> Floats:
        """Return the loss of each example by definition, without its factor C."""
        own = np.arange(len(labels)), labels
        hinges = np.maximum(0.0, self.margin - (scores[own][:, None] - scores))
        hinges[own] = 0.0
        values: Floats = hinges.sum(axis=1)
        return values

    def excess(self, coefficients: Floats, labels: Ints, cost_bounds: Floats) -> float:
        """Return how far rows of coefficients are outside their feasible sets, the sum of a row aside."""
        wrong = coefficients.copy()
        wrong[np.arange(len(labels)), labels] = 0.0
        return float(max(wrong.max(initial=0.0), (-wrong - cost_bounds[:, None]).max(initial=0.0)))

    def active_hinges(self, hinges: Floats) -> NDArray[np.intp]:
        """Return the places of all hinges that are positive."""
        return np.flatnonzero(hinges > 0)

    @property
    def core(self) -> CoreLoss:
        """The loss as the compiled core takes it."""
        return _core.WestonWatkins(float(self.margin))


@dataclass(frozen=True)
class CrammerSinger(JointLoss):
    r"""Crammer and Singer's loss: one hinge for the worst wrong class, :math:`\max_m (s_m + [m \ne y]) - s_y`.

    Rows of coefficients are feasible if :math:`B_{im} \le C_i [m = y_i]`: with their sum, a simplex.
    """

    name: ClassVar[str] = "crammer-singer"
    on_simplex: ClassVar[bool] = True
    row_limits: ClassVar[tuple[float, float] | None] = (np.inf, 1.0)

    @property
    def margin(self) -> float:
        """The margin, 1: another one would give the same machine for another C."""
        return 1.0

    def values(self, scores: Floats, labels: Ints) -> Floats:
        """Return the loss of each example by definition, without its factor C."""
        own = np.arange(len(labels)), labels
        rivals = scores + self.margin
        rivals[own] = scores[own]
        values: Floats = rivals.max(axis=1) - scores[own]
        return values

    def excess(self, coefficients: Floats, labels: Ints, cost_bounds: Floats) -> float:
        """Return how far rows of coefficients are outside their feasible sets, the sum of a row aside."""
        limits = np.zeros_like(coefficients)
        limits[np.arange(len(labels)), labels] = cost_bounds
        return float((coefficients - limits).max(initial=0.0))

    def active_hinges(self, hinges: Floats) -> NDArray[np.intp]:
        """Return the place of the largest hinge of each row, if it is positive."""
        n, k = hinges.shape
        places: NDArray[np.intp] = np.arange(n) * k + hinges.argmax(axis=1)
        return places[hinges.ravel()[places] > 0]

    @property
    def core(self) -> CoreLoss:
        """The loss as the compiled core takes it."""
        return _core.CrammerSinger()


@dataclass(frozen=True)
class OneVsRest:
    r"""A binary hinge for every class, :math:`\sum_m \max(0, 1 \mp s_m)`, - for the own class: nothing is coupled."""

    name: ClassVar[str] = "one-vs-rest"
    on_simplex: ClassVar[bool] = False

    def values(self, scores: Floats, labels: Ints) -> Floats:
        """Return the loss of each example by definition, without its factor C; a label may be no column."""
        signs = np.where(labels[:, None] == np.arange(scores.shape[1]), 1.0, -1.0)
        values: Floats = np.maximum(0.0, 1.0 - signs * scores).sum(axis=1)
        return values

    @property
    def core(self) -> CoreLoss:
        """The loss as the compiled core takes it."""
        return _core.OneVsRest()


LinearLoss = JointLoss | OneVsRest  # what the core trains without kernel values
