r"""The cutting-plane method for linear machines with a joint loss.

Keerthi et al. (2008), section 2.3, compare it with the sequential dual method. The primal, without a kernel matrix, in
the weights W (features x classes), is

.. math:: \min_W \tfrac12 \|W\|^2 + R(W), \qquad R(W) = \sum_i C_i \, \ell_i(x_i' W),

with a convex loss that is a sum of some of the hinges :math:`M - (s_{y_i} - s_m)`, those that are *active* at the
scores s. It is a maximum of linear functions, and so is R. Let :math:`P_t` be the set of pairs (i, m) whose hinges are
active at the t-th point, and (with M in the sum where it is another one for each pair of classes)

.. math:: b_t = M \sum_{(i, m) \in P_t} C_i, \qquad V_t = X' B_t, \qquad
    B_t = \sum_{(i, m) \in P_t} C_i \, e_i (e_{y_i} - e_m)'.

Then :math:`-V_t` is a sub-gradient, and :math:`R(W) \ge b_t - \langle V_t, W \rangle` everywhere. With zero, which R
never falls below either, the planes make the reduced problem, whose dual has one variable for each plane (one slack for
all examples, hence *1-slack*):

.. math:: \max_\lambda \; b'\lambda - \tfrac12 \Big\| \sum_t \lambda_t V_t \Big\|^2
    \quad \text{subject to} \quad \lambda \ge 0, \; \sum_t \lambda_t \le 1.

Its value is a lower bound of the primal, its solution the next point :math:`W = \sum_t \lambda_t V_t`. As
:math:`B = \sum_t \lambda_t B_t` is feasible for the dual of the machine, with the same objective, and W = X'B, every
point comes with its own certificate.

References
----------
T. Joachims, T. Finley and C.-N. J. Yu, "Cutting-plane training of structural SVMs", Machine Learning 77 (2009),
doi:10.1007/s10994-009-5108-8.

C. H. Teo, A. Smola, S. V. N. Vishwanathan and Q. V. Le, "A scalable modular convex solver for regularized risk
minimization", KDD 2007, doi:10.1145/1281192.1281270.

S. S. Keerthi, S. Sundararajan, K.-W. Chang, C.-J. Hsieh and C.-J. Lin, "A sequential dual method for large scale
multi-class linear SVMs", KDD 2008, doi:10.1145/1401890.1401942.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polymargin.solvers.limits import Limits, Status
from polymargin.solvers.reduced_dual import ROUNDING, ReducedDualSettings, solve_reduced_dual
from polymargin.support.examples import Matrix
from polymargin.support.numeric import Floats, Ints, relative_gap
from polymargin.support.typing import Bias

Pairs = NDArray[np.integer[Any]]  # pairs (i, m) as ascending numbers i * k + m


class HingeLoss(Protocol):
    """What the method needs of a loss: see ``polymargin.losses.JointLoss``."""

    def targets(self, labels: Ints) -> float | Floats:
        """Return the margins M that are asked for: the same of all wrong classes, or (n, k), 0 for the own class."""

    def active_hinges(self, hinges: Floats) -> NDArray[np.intp]:
        """Return which hinges the loss is made of, as ascending places in the flattened array."""


@dataclass(frozen=True)
class CuttingPlaneSettings:
    """How the planes are handled."""

    max_idle: int = 50  # iterations that a plane may be without weight before it is dropped
    max_stalled: int = 20  # iterations in a row without a solution of the reduced problem, or without a better bound
    block_scores: int = 1_000_000  # scores that are in memory at a time
    # Share of non-zeros of B up to which X'B is faster with a sparse B, measured for either kind of X.
    sparse_share_for_sparse: float = 0.05
    sparse_share_for_dense: float = 0.3
    # The weights of planes are kept if those of so many planes take few bytes, or not too many and fewer than the data.
    expected_planes: int = 100
    always_kept_bytes: int = 2**22
    never_kept_bytes: int = 2**30
    reduced: ReducedDualSettings = field(default_factory=ReducedDualSettings)


@dataclass(frozen=True)
class CuttingPlaneResult:
    """The last point of the method, with its certificate."""

    weights: Floats  # features x classes
    intercept: Floats  # of the classes
    coefficients: sp.csr_array  # B, examples x classes
    primal: float
    dual: float
    gap: float  # relative
    iterations: int
    status: Status
    best_primal: float  # of all points
    fallbacks: int  # iterations that took one exact step instead of HiGHS' solution of the reduced problem


@dataclass
class _Plane:
    """A lower bound ``offset - <V, W>`` of the risk, from the pairs whose hinges are active somewhere."""

    pairs: Pairs
    offset: float
    weights: Floats | None  # V, unless it is cheaper to compute what is needed of it
    idle: int = 0


class _Risk:
    """R(W) of the examples, its planes, and the weights X'B; a constant feature 1 carries a regularised bias."""

    def __init__(
        self,
        rows: Matrix,
        labels: Ints,
        cost_bounds: Floats,
        n_classes: int,
        loss: HingeLoss,
        bias: Bias,
        settings: CuttingPlaneSettings,
    ) -> None:
        if bias not in (None, "regularized"):
            raise ValueError(f"the cutting-plane method needs bias=None or 'regularized', got {bias!r}")
        if not np.all(np.isfinite(cost_bounds)):
            raise ValueError("the cutting-plane method needs a finite C: with C=inf the risk is not finite everywhere")
        sparse = sp.issparse(rows)
        self.X: Any = sp.csr_array(rows, dtype=np.float64) if sparse else np.asarray(rows, dtype=np.float64)
        self.labels = np.asarray(labels)
        self.cost_bounds = np.asarray(cost_bounds, dtype=np.float64)
        self.n_classes = n_classes
        self.biased = bias is not None
        self.n_weights: int = self.X.shape[1] + self.biased
        self._loss = loss
        self._settings = settings
        # Keeping V costs one product of its size for each plane and iteration, not keeping it two passes over the data.
        n_values = rows.nnz if sparse else rows.size
        n_kept = settings.expected_planes * self.n_weights
        size = 8 * n_kept * n_classes
        self.keeps_weights: bool = size <= settings.always_kept_bytes or (
            size <= settings.never_kept_bytes and n_kept <= n_values
        )

    def _hinges(self, W: Floats, *, homogeneous: bool = False) -> Iterator[tuple[int, Floats]]:
        """Yield ``C_i (M - (s_{i,y_i} - s_im))``, 0 for m = y_i, a block of rows at a time, with its first row.

        ``homogeneous`` ones are without M.
        """
        n = self.X.shape[0]
        step = max(1, self._settings.block_scores // self.n_classes)
        for begin in range(0, n, step):
            block = slice(begin, min(begin + step, n))
            part = self.X if step >= n else self.X[block]
            hinges: Floats = part @ W[: self.X.shape[1]]
            if self.biased:
                hinges += W[-1]
            own = np.arange(len(hinges)), self.labels[block]
            hinges -= hinges[own][:, None] - (0.0 if homogeneous else self._loss.targets(self.labels[block]))
            hinges[own] = 0.0
            hinges *= self.cost_bounds[block, None]
            yield begin, hinges

    def evaluate(self, W: Floats) -> tuple[float, Pairs]:
        """Return the risk at W and the pairs whose hinges are active there."""
        k = self.n_classes
        number: type[np.integer[Any]] = np.int32 if self.X.shape[0] * k < 2**31 else np.int64
        risk, parts = 0.0, [np.zeros(0, dtype=number)]
        for begin, hinges in self._hinges(W):
            active = self._loss.active_hinges(hinges)
            risk += float(hinges.ravel()[active].sum())
            parts.append((active + begin * k).astype(number))
        return risk, np.concatenate(parts)

    def coefficients(self, planes: list[_Plane], weight: Floats) -> sp.csr_array:
        """Return the weighted sum of the planes' B."""
        n, k = self.X.shape[0], self.n_classes
        used = [(plane.pairs, value) for plane, value in zip(planes, weight, strict=True) if value > 0]
        if 4 * sum(len(pairs) for pairs, _ in used) > n * k:  # all pairs are less than a list of so many
            share = np.zeros(n * k)
            for pairs, value in used:
                share[pairs] += value
            every: Pairs = np.flatnonzero(share)
            share = share[every]
        else:
            every = np.concatenate([np.zeros(0, dtype=np.int32), *(pairs for pairs, _ in used)])
            share = np.concatenate([np.zeros(0), *(np.full(len(pairs), value) for pairs, value in used)])
        rows, classes = np.divmod(every, k)
        amount = self.cost_bounds[rows] * share
        own = np.bincount(rows, weights=amount, minlength=n)
        places = np.concatenate([rows, np.arange(n)]), np.concatenate([classes, self.labels])
        B = sp.csr_array(sp.coo_array((np.concatenate([-amount, own]), places), shape=(n, k)))
        B.eliminate_zeros()
        return B

    def weights(self, B: sp.csr_array) -> Floats:
        """Return X'B, below it the sums of columns if there is a bias."""
        sparse = sp.issparse(self.X)
        most = self._settings.sparse_share_for_sparse if sparse else self._settings.sparse_share_for_dense
        factor = B if B.nnz < most * B.shape[0] * B.shape[1] else B.toarray()
        product: Any = self.X.T @ factor if sparse else (factor.T @ self.X).T  # either goes along rows of X
        W: Floats = product.toarray() if sp.issparse(product) else np.ascontiguousarray(product)
        return np.vstack([W, B.sum(axis=0)]) if self.biased else W

    def mixed_weights(self, planes: list[_Plane], weight: Floats) -> Floats:
        """Return the weighted sum of the planes' V."""
        if not self.keeps_weights:
            return self.weights(self.coefficients(planes, weight))
        W = np.zeros((self.n_weights, self.n_classes))
        for plane, value in zip(planes, weight, strict=True):
            if value > 0:
                assert plane.weights is not None
                W += value * plane.weights
        return W

    def plane(self, pairs: Pairs, others: list[_Plane]) -> tuple[_Plane, Floats]:
        """Return the plane of active pairs and its products <V_s, V> with other planes and with itself."""
        examples, classes = np.divmod(pairs, self.n_classes)
        targets = self._loss.targets(self.labels)
        if isinstance(targets, np.ndarray):
            offset = float(self.cost_bounds[examples] @ targets[examples, classes])
        else:
            offset = targets * float(self.cost_bounds[examples].sum())
        plane = _Plane(pairs, offset, None)
        V = self.weights(self.coefficients([plane], np.ones(1)))
        products = np.zeros(len(others) + 1)
        if self.keeps_weights:
            plane.weights = V
            products[:-1] = [_product(other.weights, V) for other in others]
        else:  # <V_s, V> = <B_s, XV>
            for begin, hinges in self._hinges(V, homogeneous=True):
                first, last = begin * self.n_classes, begin * self.n_classes + hinges.size
                for s, other in enumerate(others):
                    part = slice(*np.searchsorted(other.pairs, (first, last)))
                    products[s] -= hinges.ravel()[other.pairs[part] - first].sum()
        products[-1] = _product(V, V)
        return plane, products


class _Search:
    """The planes and the point that they lead to."""

    def __init__(self, risk: _Risk, limits: Limits[CuttingPlaneResult], settings: CuttingPlaneSettings) -> None:
        self._risk, self._limits, self._settings = risk, limits, settings
        self._deadline = time.perf_counter() + limits.time_limit
        self._planes: list[_Plane] = []
        self._weight, self._gram = np.zeros(0), np.zeros((0, 0))
        self._W = np.zeros((risk.n_weights, risk.n_classes))
        self._square = self._dual = 0.0  # |W|^2 and the lower bound
        self._primal = self._gap = self._best_primal = np.inf
        self._iterations = self._fallbacks = self._stalled = 0

    def evaluate(self) -> Pairs:
        """Pass over the data at the point: set its objective and gap, return the active pairs."""
        risk, pairs = self._risk.evaluate(self._W)
        self._primal = 0.5 * self._square + risk
        self._gap = relative_gap(self._primal, self._dual)
        self._best_primal = min(self._best_primal, self._primal)
        return pairs

    def stop_reason(self) -> Status | None:
        """Return why to stop here, None to go on."""
        limits = self._limits
        if self._gap <= limits.wanted_gap(self._primal, self._dual):
            return "converged"
        if self._iterations == limits.max_iterations:
            return "max_iter"
        if time.perf_counter() >= self._deadline:
            return "time_limit"
        if limits.progress is not None and not limits.progress(0, 1, self._iterations, self._gap, self.result):
            return "stopped"
        return "precision" if self._stalled == self._settings.max_stalled else None

    def step(self, pairs: Pairs) -> bool:
        """Go to the solution of the reduced problem with one more plane; False if the bound would fall."""
        plane, products = self._risk.plane(pairs, self._planes)
        planes = [*self._planes, plane]
        gram = np.block([[self._gram, products[:-1, None]], [products]])
        offsets = np.array([plane.offset for plane in planes])
        weight, solved = solve_reduced_dual(
            gram,
            offsets,
            np.append(self._weight, 0.0),
            gap=self._primal - self._dual,
            time_limit=self._deadline - time.perf_counter(),
            settings=self._settings.reduced,
        )
        W = self._risk.mixed_weights(planes, weight)
        square = _product(W, W)
        dual = float(weight @ offsets) - 0.5 * square
        rounding = ROUNDING * abs(self._dual)
        if not dual >= self._dual - rounding:  # also when data near the largest float make it NaN
            return False
        self._stalled = 0 if solved and dual > self._dual + rounding else self._stalled + 1
        self._fallbacks += not solved
        self._iterations += 1
        self._W, self._square, self._dual = W, square, dual
        self._planes, self._weight, self._gram = _without_idle(planes, weight, gram, self._settings.max_idle)
        return True

    def result(self, status: Status = "stopped") -> CuttingPlaneResult:
        """Return the point with its certificate."""
        W, risk = self._W, self._risk
        return CuttingPlaneResult(
            weights=W[: risk.X.shape[1]].copy(),
            intercept=W[-1].copy() if risk.biased else np.zeros(risk.n_classes),
            coefficients=risk.coefficients(self._planes, self._weight),
            primal=self._primal,
            dual=min(self._dual, self._primal),  # rounding may have put it above
            gap=max(self._gap, 0.0),
            iterations=self._iterations,
            status=status,
            best_primal=self._best_primal,
            fallbacks=self._fallbacks,
        )


def solve_cutting_plane(
    rows: Matrix,
    labels: Ints,
    cost_bounds: Floats,
    n_classes: int,
    loss: HingeLoss,
    bias: Bias,
    limits: Limits[CuttingPlaneResult],
    settings: CuttingPlaneSettings | None = None,
) -> CuttingPlaneResult:
    """Train a linear machine with a joint loss by cutting planes.

    One iteration solves the reduced dual and passes over the data at its solution. It ends when the primal objective of
    that very point is within the tolerance of the lower bound, relative to the larger of the two. The best of all
    points seen is there earlier, by a few iterations as a rule, but its coefficients do not give the bound: what is
    returned is what was certified.

    Parameters
    ----------
    rows : {ndarray, CSR matrix} of shape (n, d)
        Examples in float32 or float64; the work is done in float64.
    labels : ndarray of shape (n,)
        Their classes as numbers below ``n_classes``.
    cost_bounds : ndarray of shape (n,)
        Their costs C_i, finite.
    n_classes : int
        Number of classes, k.
    loss : HingeLoss
        The loss.
    bias : {None, "regularized"}
        With "regularized" there is a constant feature 1, whose weights are the intercepts.
    limits : Limits
        When to stop: iterations are reduced problems; time is up when the last point's objective is known. Progress is
        reported in every iteration, with the result.
    settings : CuttingPlaneSettings, default=None
        How the planes are handled; None for what was measured to be good.

    Returns
    -------
    CuttingPlaneResult
        The last point. Its status is "precision" when the lower bound does not rise any more.
    """
    settings = CuttingPlaneSettings() if settings is None else settings
    risk = _Risk(rows, labels, cost_bounds, n_classes, loss, bias, settings)
    search = _Search(risk, limits, settings)
    while True:
        pairs = search.evaluate()
        status = search.stop_reason()
        if status is not None:
            return search.result(status)
        if not search.step(pairs):
            return search.result("precision")


def _product(V: Floats | None, W: Floats) -> float:
    assert V is not None
    return float(V.ravel() @ W.ravel())


def _without_idle(
    planes: list[_Plane], weight: Floats, gram: Floats, max_idle: int
) -> tuple[list[_Plane], Floats, Floats]:
    """Drop the planes that have been without weight for long."""
    for plane, value in zip(planes, weight, strict=True):
        plane.idle = 0 if value > 0 else plane.idle + 1
    kept = np.array([t for t, plane in enumerate(planes) if plane.idle < max_idle], dtype=np.intp)
    if len(kept) == len(planes):
        return planes, weight, gram
    return [planes[t] for t in kept], weight[kept], gram[np.ix_(kept, kept)]
