r"""The losses of machines with a score for each class, as values.

A joint loss with *relative* margins is made of the hinges of an example of class y against the wrong classes m,

.. math:: h_m = M - (s_y - s_m), \qquad h_y = 0,

with the margin M. Its dual variables are rows of coefficients B, examples x classes, that sum to zero and lie in a
feasible set :math:`C_i \, \mathcal{B}_{y_i}`, which is what distinguishes one loss from another.

One with *absolute* margins holds each score against a target of its own, under the constraint that the scores of an
example sum to zero,

.. math:: h_m = t_m - \sigma_m s_m, \qquad \sigma_y = 1, \; \sigma_m = -1.

Its dual variables are multipliers :math:`a_m = \sigma_m B_m \ge 0`. The constraint takes the mean :math:`\mu_i` of a
row away from what reaches the scores,

.. math:: w_m = \sum_i (B_{im} - \mu_i) \phi(x_i),

so rows without their means are what a model keeps, and its rows sum to zero too. The means are found again from the
feasible set: see :meth:`JointLoss.dual_rows`.

A *squared* hinge has no limit of its coefficients, and its conjugate is a term of the dual: with the loss
:math:`C_i \sum_m \max(0, h_m)^2` it is :math:`\sum_m a_m^2 / 4 C_i`, and with :math:`C_i \max_m \max(0, h_m)^2`
it is :math:`(\sum_m a_m)^2 / 4 C_i`, for the coefficients :math:`a_m = -B_m` of the wrong classes.

With *costs* between classes, :math:`\Delta_{ym}` for calling an example of class y an m, margins are rescaled by them:
that of class m is :math:`M \Delta_{ym}`, the target of a wrong class :math:`t_m = \Delta_{ym}`, that of the own
class :math:`t_y` times the mean of the costs of its row. With relative margins and M of at least 1 the loss is at
least the cost of the class with the largest score. Feasible sets stay as they are; the linear part of the dual changes.
Costs of s times the size, with C of s times the size, give scores of s times the size.

The arithmetic of training is in the compiled core; here is what Python needs besides: the loss by definition and its
feasible set for certificates, and the hinges that are active for the cutting-plane method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from polymargin import _core
from polymargin.costs import checked_costs
from polymargin.support.numeric import Floats, Ints

PlainLoss = _core.WestonWatkins | _core.CrammerSinger | _core.AbsoluteSum | _core.AbsoluteMaximum
CostsLoss = _core.WestonWatkinsCosts | _core.CrammerSingerCosts | _core.AbsoluteSumCosts | _core.AbsoluteMaximumCosts
SquaredLoss = _core.SquaredWestonWatkins | _core.SquaredCrammerSinger | _core.SquaredOneVsRest
CoreLoss = PlainLoss | CostsLoss | SquaredLoss | _core.OneVsRest

_WITH_COSTS: dict[type, Any] = {
    _core.WestonWatkins: _core.WestonWatkinsCosts,
    _core.CrammerSinger: _core.CrammerSingerCosts,
    _core.AbsoluteSum: _core.AbsoluteSumCosts,
    _core.AbsoluteMaximum: _core.AbsoluteMaximumCosts,
}


@dataclass(frozen=True, eq=False, kw_only=True)
class JointLoss(ABC):
    """A loss of the scores of all classes, solved as one problem.

    ``costs`` are those between classes, as whoever gave them; None if all are 1. They are checked by :meth:`of`.
    """

    costs: Any = None

    name: ClassVar[str]
    takes_costs: ClassVar[bool] = True
    on_simplex: ClassVar[bool]
    """Whether the feasible set of a row is a simplex, on which exponentiated gradient steps can be taken."""

    scores_sum_to_zero: ClassVar[bool] = False
    """Whether that is a constraint of the machine; then margins are absolute."""

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
        """The loss as the compiled core takes it, of so many classes as :meth:`of` was told."""

    def _with_costs(self, plain: PlainLoss) -> CoreLoss:
        """Return a loss of the core with the costs, if there are any."""
        return plain if self.costs is None else _WITH_COSTS[type(plain)](plain, self._table())

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        own, its = ({**vars(loss)} for loss in (self, other))
        return np.array_equal(own.pop("costs"), its.pop("costs")) and own == its

    def __hash__(self) -> int:
        return hash((type(self), *(value for name, value in sorted(vars(self).items()) if name != "costs")))

    def of(self, n_classes: int) -> Self:
        """Return the loss for so many classes, its costs looked at; costs of 1 are none."""
        if self.costs is None:
            return self
        if not self.takes_costs:
            raise ValueError("costs between classes need loss='hinge'")
        costs = checked_costs(self.costs, n_classes)
        return replace(self, costs=None if np.all(costs + np.eye(n_classes) == 1.0) else costs)

    def check_hard(self) -> None:
        """Raise ValueError if costs ask for no margin where it is to be a hard one."""
        if self.costs is not None and np.any(self.costs + np.eye(len(self.costs)) == 0.0):
            raise ValueError("C=inf needs costs above 0 off the diagonal: a hard margin of 0 has no scale")

    def _table(self) -> Floats:
        """Return the margins by the class of an example (row) and each class (column)."""
        return self.margin * np.asarray(self.costs, dtype=np.float64)

    def targets(self, labels: Ints) -> float | Floats:
        """Return the margins that are asked for: the same of all wrong classes, or (n, k) with costs."""
        return self.margin if self.costs is None else self._table()[labels]

    def smallest_margins(self, scores: Floats, labels: Ints) -> Floats:
        """Return the smallest margin of each example, in units of the one it should have."""
        own = np.arange(len(labels)), labels
        rivals = scores.copy()
        rivals[own] = -np.inf
        if self.costs is None:
            margins: Floats = (scores[own] - rivals.max(axis=1)) / self.margin
            return margins
        with np.errstate(divide="ignore", invalid="ignore"):  # of the own class, which is infinitely far
            ratios = (scores[own][:, None] - rivals) / self.targets(labels)
        smallest: Floats = ratios.min(axis=1)
        return smallest

    def kept(self, rows: Floats) -> Floats:
        """Return rows of coefficients as they reach the scores: without their means where scores sum to zero."""
        return rows - rows.mean(axis=1, keepdims=True) if self.scores_sum_to_zero else rows

    def dual_rows(self, kept: Floats, labels: Ints, cost_bounds: Floats) -> Floats:
        """Return the point of the dual, feasible if there is one, that rows which a model keeps come from."""
        return kept

    def dual_value(self, rows: Floats, labels: Ints) -> float:
        """Return the linear part of the dual objective: the targets of the margins times their multipliers."""
        if self.costs is None:
            return self.margin * float(rows[np.arange(len(labels)), labels].sum())
        return -float(np.sum(self.targets(labels) * rows))

    def conjugate(self, rows: Floats, labels: Ints, cost_bounds: Floats) -> float:
        """Return the conjugate term of the dual, which is taken from its value; most losses have none."""
        return 0.0


@dataclass(frozen=True, eq=False)
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
        hinges = np.maximum(0.0, self.targets(labels) - (scores[own][:, None] - scores))
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
        return self._with_costs(_core.WestonWatkins(float(self.margin)))


@dataclass(frozen=True, eq=False)
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
        rivals = scores + self.targets(labels)
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
        return self._with_costs(_core.CrammerSinger())


@dataclass(frozen=True, eq=False)
class SquaredWestonWatkins(WestonWatkins):
    r"""The squares of Weston and Watkins' hinges, :math:`\sum_{m \ne y} \max(0, M - (s_y - s_m))^2`.

    Rows of coefficients are feasible if :math:`B_{im} \le 0` for :math:`m \ne y_i`.
    """

    name: ClassVar[str] = "squared-weston-watkins"
    row_limits: ClassVar[tuple[float, float] | None] = None
    takes_costs: ClassVar[bool] = False

    def values(self, scores: Floats, labels: Ints) -> Floats:
        """Return the loss of each example by definition, without its factor C."""
        own = np.arange(len(labels)), labels
        hinges = np.maximum(0.0, self.margin - (scores[own][:, None] - scores))
        hinges[own] = 0.0
        values: Floats = (hinges**2).sum(axis=1)
        return values

    def excess(self, coefficients: Floats, labels: Ints, cost_bounds: Floats) -> float:
        """Return how far rows of coefficients are outside their feasible sets, the sum of a row aside."""
        return super().excess(coefficients, labels, squared_limits(cost_bounds))

    def conjugate(self, rows: Floats, labels: Ints, cost_bounds: Floats) -> float:
        """Return the conjugate term of the dual, which is taken from its value."""
        wrong = rows.copy()
        wrong[np.arange(len(labels)), labels] = 0.0
        return float(np.sum((wrong**2).sum(axis=1) / (4.0 * cost_bounds)))

    def active_hinges(self, hinges: Floats) -> NDArray[np.intp]:
        """Raise ValueError: the loss is no sum of hinges."""
        raise _no_planes()

    @property
    def core(self) -> CoreLoss:
        """The loss as the compiled core takes it."""
        return _core.SquaredWestonWatkins(float(self.margin))


@dataclass(frozen=True, eq=False)
class SquaredCrammerSinger(CrammerSinger):
    r"""The square of Crammer and Singer's loss, :math:`(\max_m (s_m + [m \ne y]) - s_y)^2`.

    Rows of coefficients are feasible if :math:`B_{im} \le 0` for :math:`m \ne y_i`.
    """

    name: ClassVar[str] = "squared-crammer-singer"
    on_simplex: ClassVar[bool] = False
    row_limits: ClassVar[tuple[float, float] | None] = None
    takes_costs: ClassVar[bool] = False

    def values(self, scores: Floats, labels: Ints) -> Floats:
        """Return the loss of each example by definition, without its factor C."""
        values: Floats = super().values(scores, labels) ** 2
        return values

    def excess(self, coefficients: Floats, labels: Ints, cost_bounds: Floats) -> float:
        """Return how far rows of coefficients are outside their feasible sets, the sum of a row aside."""
        return super().excess(coefficients, labels, squared_limits(cost_bounds))

    def conjugate(self, rows: Floats, labels: Ints, cost_bounds: Floats) -> float:
        """Return the conjugate term of the dual, which is taken from its value."""
        return float(np.sum(rows[np.arange(len(labels)), labels] ** 2 / (4.0 * cost_bounds)))

    def active_hinges(self, hinges: Floats) -> NDArray[np.intp]:
        """Raise ValueError: the loss is no sum of hinges."""
        raise _no_planes()

    @property
    def core(self) -> CoreLoss:
        """The loss as the compiled core takes it."""
        return _core.SquaredCrammerSinger()


def squared_limits(cost_bounds: Floats) -> Floats:
    """Return the limits of the coefficients of squared hinges: there are none, but for examples that cost nothing."""
    return np.where(cost_bounds > 0.0, np.inf, 0.0)


def _no_planes() -> ValueError:
    return ValueError("solver='cutting-plane' needs loss='hinge', of which its planes are made; use 'sequential-dual'")


@dataclass(frozen=True, eq=False)
class AbsoluteMargins(JointLoss):
    r"""A loss with absolute margins: :math:`\max(0, t_m - \sigma_m s_m)`, of which it is a sum or the largest.

    The targets :math:`t_m` are 1 but for the own class. A row is feasible if :math:`0 \le a_m \le u_m C_i` and
    :math:`\sum_m a_m \le A C_i` (:meth:`_limits`).
    """

    on_simplex: ClassVar[bool] = False
    scores_sum_to_zero: ClassVar[bool] = True

    @property
    def margin(self) -> float:
        """The target of a wrong class, 1: another one would give the same machine for another C."""
        return 1.0

    @abstractmethod
    def _limits(self) -> tuple[float, float, float]:
        """Return the limits u of the own class and of another, and A, in units of C_i."""

    def _own_target(self, n_classes: int) -> float:
        """Return the target of the own class, without costs."""
        return 1.0

    def of(self, n_classes: int) -> Self:
        """Return the loss for so many classes, its costs looked at; costs of 1 are none."""
        if self.costs is not None and self._limits()[1] == 0.0:
            raise ValueError("costs need a loss with margins of the wrong classes; this one has the right class alone")
        return super().of(n_classes)

    def _table(self) -> Floats:
        """Return the targets by the class of an example (row) and each class (column)."""
        table = super()._table().copy()
        k = len(table)
        np.fill_diagonal(table, self._own_target(k) * table.sum(axis=1) / (k - 1))
        return table

    def _hinges(self, scores: Floats, labels: Ints) -> Floats:
        """Return by how much the score of each class misses its target."""
        own = np.arange(len(labels)), labels
        targets = self.targets(labels)
        hinges: Floats = targets + scores
        mine = self._own_target(scores.shape[1]) if self.costs is None else np.asarray(targets)[own]
        hinges[own] = mine - scores[own]
        return np.maximum(0.0, hinges)

    def smallest_margins(self, scores: Floats, labels: Ints) -> Floats:
        """Return the smallest margin of each example, in units of the one it should have."""
        own, others, _ = self._limits()
        places = np.arange(len(labels)), labels
        targets = np.broadcast_to(self.targets(labels), scores.shape)
        mine = self._own_target(scores.shape[1]) if self.costs is None else targets[places]
        with np.errstate(divide="ignore", invalid="ignore"):
            margins = -scores / targets if others > 0 else np.full_like(scores, np.inf)
        margins[places] = scores[places] / mine if own > 0 else np.inf
        smallest: Floats = margins.min(axis=1)
        return smallest

    def active_hinges(self, hinges: Floats) -> NDArray[np.intp]:
        """Raise ValueError: the cutting planes are those of relative margins."""
        raise ValueError("solver='cutting-plane' needs relative margins; use 'sequential-dual'")

    def dual_rows(self, kept: Floats, labels: Ints, cost_bounds: Floats) -> Floats:
        r"""Return the feasible rows B that have these without their means, of largest value.

        All rows ``kept + t`` reach the scores alike. Of the own class :math:`t \ge -r_y`, of the others
        :math:`t \ge -u C_i - r_m`, of the sum, which is :math:`2 r_y - (k - 2) t`, :math:`(k - 2) t \ge 2 r_y - A C_i`;
        and the value grows by :math:`t_y - (k - 1) \le 0` with t (with costs by that times the mean of their row): the
        smallest is best, or one of the best. If the own
        class or the others have no multipliers, that alone says what t is.
        """
        own, others, most = self._limits()
        k = kept.shape[1]
        mine = kept[np.arange(len(labels)), labels]
        wrong = kept.copy()
        wrong[np.arange(len(labels)), labels] = np.inf
        if own == 0.0:
            shift = -mine
        elif others == 0.0:
            shift = mine / (k - 1)
        else:
            shift = np.maximum(-mine, -_times(others, cost_bounds) - wrong.min(axis=1))
            if k > 2:
                shift = np.maximum(shift, (2.0 * mine - _times(most, cost_bounds)) / (k - 2))
        return kept + shift[:, None]

    def dual_value(self, rows: Floats, labels: Ints) -> float:
        """Return the linear part of the dual objective: the targets of the margins times their multipliers."""
        if self.costs is not None:
            signed = -rows
            signed[np.arange(len(labels)), labels] *= -1.0
            return float(np.sum(self.targets(labels) * signed))
        mine = float(rows[np.arange(len(labels)), labels].sum())
        return self._own_target(rows.shape[1]) * mine - (float(rows.sum()) - mine)

    def excess(self, coefficients: Floats, labels: Ints, cost_bounds: Floats) -> float:
        """Return how far rows of coefficients are outside their feasible sets."""
        own, others, most = self._limits()
        places = np.arange(len(labels)), labels
        a = -coefficients
        a[places] *= -1.0
        limits = np.broadcast_to(_times(others, cost_bounds)[:, None], a.shape).copy()
        limits[places] = _times(own, cost_bounds)
        outside = [-a, a - limits, a.sum(axis=1) - _times(most, cost_bounds)]
        return float(max(part.max(initial=0.0) for part in outside))


def _times(limit: float, cost_bounds: Floats) -> Floats:
    """Return a limit in units of C_i; none at all stays none however large C_i is, or if it is zero."""
    return np.full_like(cost_bounds, limit) if limit in (0.0, np.inf) else limit * cost_bounds


@dataclass(frozen=True, eq=False)
class AbsoluteSum(AbsoluteMargins):
    r"""The sum of hinges with absolute margins, :math:`u_y \max(0, t - s_y) + u \sum_{m \ne y} \max(0, 1 + s_m)`.

    ``own`` is :math:`u_y` and ``others`` u; ``own_target`` is t, None for the number of wrong classes.
    """

    name: ClassVar[str] = "absolute-sum"
    own: float = 0.0
    others: float = 1.0
    own_target: float | None = 1.0

    def _limits(self) -> tuple[float, float, float]:
        return self.own, self.others, np.inf

    def _own_target(self, n_classes: int) -> float:
        return n_classes - 1.0 if self.own_target is None else self.own_target

    def of(self, n_classes: int) -> Self:
        """Return the loss for so many classes, its target and its costs looked at."""
        return replace(super().of(n_classes), own_target=self._own_target(n_classes))

    def values(self, scores: Floats, labels: Ints) -> Floats:
        """Return the loss of each example by definition, without its factor C."""
        own = np.arange(len(labels)), labels
        hinges = self._hinges(scores, labels)
        mine = self.own * hinges[own]
        hinges *= self.others
        hinges[own] = mine
        values: Floats = hinges.sum(axis=1)
        return values

    @property
    def core(self) -> CoreLoss:
        """The loss as the compiled core takes it, of so many classes as :meth:`of` was told."""
        if self.own_target is None:
            raise ValueError("own_target depends on the number of classes: take the loss `of` so many")
        return self._with_costs(_core.AbsoluteSum(float(self.own), float(self.others), float(self.own_target)))


@dataclass(frozen=True, eq=False)
class AbsoluteMaximum(AbsoluteMargins):
    r"""The largest hinge with an absolute margin, :math:`\max_m \max(0, 1 - \sigma_m s_m)`.

    Over the wrong classes, or with ``own`` over all.
    """

    name: ClassVar[str] = "absolute-maximum"
    own: bool = False

    def _limits(self) -> tuple[float, float, float]:
        return (np.inf if self.own else 0.0), np.inf, 1.0

    def values(self, scores: Floats, labels: Ints) -> Floats:
        """Return the loss of each example by definition, without its factor C."""
        hinges = self._hinges(scores, labels)
        if not self.own:
            hinges[np.arange(len(labels)), labels] = 0.0
        values: Floats = hinges.max(axis=1)
        return values

    @property
    def core(self) -> CoreLoss:
        """The loss as the compiled core takes it."""
        return self._with_costs(_core.AbsoluteMaximum(self.own))


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


@dataclass(frozen=True)
class SquaredOneVsRest(OneVsRest):
    r"""The squares of these hinges, :math:`\sum_m \max(0, 1 \mp s_m)^2`."""

    name: ClassVar[str] = "squared-one-vs-rest"

    def values(self, scores: Floats, labels: Ints) -> Floats:
        """Return the loss of each example by definition, without its factor C; a label may be no column."""
        signs = np.where(labels[:, None] == np.arange(scores.shape[1]), 1.0, -1.0)
        values: Floats = (np.maximum(0.0, 1.0 - signs * scores) ** 2).sum(axis=1)
        return values

    @property
    def core(self) -> CoreLoss:
        """The loss as the compiled core takes it."""
        return _core.SquaredOneVsRest()


def reinforced(share: float, costs: Any = None) -> AbsoluteSum:
    """Return Liu and Yuan's loss, in which the wrong classes have a share of the hinges and the right one the rest."""
    return AbsoluteSum(own=1.0 - share, others=share, own_target=None, costs=costs)


_PARTS: dict[tuple[str, str], JointLoss] = {
    ("relative", "sum"): WestonWatkins(),
    ("relative", "max"): CrammerSinger(),
    ("absolute", "sum"): AbsoluteSum(),
    ("absolute", "max"): AbsoluteMaximum(),
    ("absolute", "total"): AbsoluteMaximum(own=True),
    ("absolute", "total-sum"): AbsoluteSum(own=1.0),
    ("absolute", "self"): AbsoluteSum(own=1.0, others=0.0),
}


_SQUARED: dict[str, JointLoss] = {"sum": SquaredWestonWatkins(), "max": SquaredCrammerSinger()}


def by_parts(
    margins: str, aggregation: str, share: float | None, costs: Any = None, *, squared: bool = False
) -> JointLoss:
    """Return the loss of some margins, aggregated in some way; reinforced if there is a share of the wrong classes."""
    return replace(_by_parts(margins, aggregation, share, squared=squared), costs=costs)


def _by_parts(margins: str, aggregation: str, share: float | None, *, squared: bool) -> JointLoss:
    if squared:
        if margins != "relative" or share is not None or aggregation not in _SQUARED:
            raise ValueError("loss='squared_hinge' needs margins='relative' and aggregation='sum' or 'max'")
        return _SQUARED[aggregation]
    if share is not None:
        if (margins, aggregation) != ("absolute", "sum"):
            raise ValueError(
                f"reinforced={share!r} needs margins='absolute' and aggregation='sum', "
                f"got {margins!r} and {aggregation!r}"
            )
        return reinforced(float(share))
    if (margins, aggregation) not in _PARTS:
        known = ", ".join(repr(how) for which, how in _PARTS if which == margins)
        raise ValueError(
            f"aggregation={aggregation!r} needs margins='absolute'; with margins={margins!r} there are {known}"
        )
    return _PARTS[margins, aggregation]


LinearLoss = JointLoss | OneVsRest  # what the core trains without kernel values
