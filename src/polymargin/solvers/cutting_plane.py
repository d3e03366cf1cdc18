r"""The cutting-plane method for the linear all-together machines: K 2.3's competitor of the sequential dual method.

The primal, without a kernel matrix, in the weights W (features x classes), is

.. math:: \min_W \tfrac12 \|W\|^2 + R(W), \qquad R(W) = \sum_i C_i \, \ell_i(x_i' W),

with Crammer and Singer's :math:`\ell_i(s) = \max_m (s_m + M [m \ne y_i]) - s_{y_i}` or Weston and Watkins'
:math:`\ell_i(s) = \sum_{m \ne y_i} \max(0, M - (s_{y_i} - s_m))`. R is one convex function, a maximum of linear ones.
At a point W each example *chooses* wrong classes: the one attaining the maximum, or all that fall short of the margin.
Let :math:`P_t` be the set of chosen pairs (i, m) at the t-th point, and

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
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polymargin.formulations.solution import Floats, Ints, relative_gap
from polymargin.support.examples import Matrix

_IDLE = 50  # iterations that a plane may be without weight before it is forgotten
_STALLED = 20  # iterations in a row that may go without a solution of the reduced problem, or without raising the bound
_PROXIMITY = 1e-6  # see _reduced_dual: HiGHS cycles on singular problems from some 1e-8 down
_ROUNDS = 5
_ACCURACY = 0.01  # of the reduced problem, as a share of the gap that it is to close
_ROUNDING = 4 * np.finfo(np.float64).eps
_BLOCK = 1_000_000  # scores that are in memory at a time
_FEW_BY_SPARSE, _FEW_BY_DENSE = 0.05, 0.3  # share of non-zeros up to which X'B is faster with a sparse B, measured
_PLANES = 100  # how many are expected when deciding what to keep of them
_SMALL, _LARGE = 2**22, 2**30  # bytes of all planes that are always kept, and never


@dataclass
class _Plane:
    """A lower bound ``offset - <V, W>`` of the risk; ``chosen`` are its pairs (i, m), as numbers i * k + m."""

    chosen: NDArray[np.integer]
    offset: float
    weights: Floats | None  # V, unless it is cheaper to compute what is needed of it
    idle: int = 0


class _Risk:
    """R(W) of the examples, its planes, and the weights X'B; a constant feature 1 carries a regularised bias."""

    def __init__(
        self, X: Matrix, codes: Ints, upper: Floats, n_classes: int, loss: str, margin: float, bias: str | None
    ) -> None:
        if loss not in ("crammer-singer", "weston-watkins"):
            raise ValueError(f"unknown loss {loss!r}")
        if bias not in (None, "regularized"):
            raise ValueError(f"the cutting-plane method needs bias=None or 'regularized', got {bias!r}")
        if not np.all(np.isfinite(upper)):
            raise ValueError("the cutting-plane method needs a finite C: with C=inf the risk is not finite everywhere")
        self.X: Any = sp.csr_array(X, dtype=np.float64) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        self.codes = np.asarray(codes)
        self.upper = np.asarray(upper, dtype=np.float64)
        self.n_classes = n_classes
        self.every_class = loss == "weston-watkins"
        self.margin = float(margin)
        self.biased = bias is not None
        self.n_weights = X.shape[1] + self.biased
        # Keeping V costs one product of its size for each plane and iteration, not keeping it two passes over the data.
        n_values = X.nnz if sp.issparse(X) else X.size
        size = 8 * _PLANES * self.n_weights * n_classes
        self.keeps_weights = size <= _SMALL or (size <= _LARGE and _PLANES * self.n_weights <= n_values)

    def costs(self, W: Floats, margin: float) -> Iterator[tuple[int, Floats]]:
        """Yield ``C_i (margin - (s_{i,y_i} - s_im))``, 0 for m = y_i, a block of rows at a time, with its first row."""
        n = self.X.shape[0]
        step = max(1, _BLOCK // self.n_classes)
        for begin in range(0, n, step):
            block = slice(begin, min(begin + step, n))
            part = self.X if step >= n else self.X[block]
            cost: Floats = part @ W[: self.X.shape[1]]
            if self.biased:
                cost += W[-1]
            own = np.arange(len(cost)), self.codes[block]
            cost -= cost[own][:, None] - margin
            cost[own] = 0.0
            cost *= self.upper[block, None]
            yield begin, cost

    def choose(self, W: Floats) -> tuple[float, NDArray[np.integer]]:
        """Return the risk at W and what the examples choose there, in rising order."""
        k = self.n_classes
        number = np.int32 if self.X.shape[0] * k < 2**31 else np.int64
        risk, chosen = 0.0, [np.zeros(0, dtype=number)]
        for begin, cost in self.costs(W, self.margin):
            if self.every_class:
                pairs = np.flatnonzero(cost > 0)
            else:
                pairs = np.arange(len(cost)) * k + cost.argmax(axis=1)
                pairs = pairs[cost.ravel()[pairs] > 0]
            risk += float(cost.ravel()[pairs].sum())
            chosen.append((pairs + begin * k).astype(number))
        return risk, np.concatenate(chosen)

    def coefficients(self, planes: list[_Plane], weight: Floats) -> sp.csr_array:
        """Return the weighted sum of the planes' B."""
        n, k = self.X.shape[0], self.n_classes
        used = [(plane.chosen, value) for plane, value in zip(planes, weight, strict=True) if value > 0]
        if 4 * sum(len(pairs) for pairs, _ in used) > n * k:  # all pairs are less than a list of so many
            share = np.zeros(n * k)
            for pairs, value in used:
                share[pairs] += value
            chosen = np.flatnonzero(share)
            share = share[chosen]
        else:
            chosen = np.concatenate([np.zeros(0, dtype=np.int32), *(pairs for pairs, _ in used)])
            share = np.concatenate([np.zeros(0), *(np.full(len(pairs), value) for pairs, value in used)])
        rows, classes = np.divmod(chosen, k)
        amount = self.upper[rows] * share
        own = np.bincount(rows, weights=amount, minlength=n)
        places = np.concatenate([rows, np.arange(n)]), np.concatenate([classes, self.codes])
        B = sp.csr_array(sp.coo_array((np.concatenate([-amount, own]), places), shape=(n, k)))
        B.eliminate_zeros()
        return B

    def weights(self, B: sp.csr_array) -> Floats:
        """Return X'B, below it the sums of columns if there is a bias."""
        sparse = sp.issparse(self.X)
        few = B.nnz < (_FEW_BY_SPARSE if sparse else _FEW_BY_DENSE) * B.shape[0] * B.shape[1]
        factor = B if few else B.toarray()
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
                W += value * plane.weights
        return W

    def plane(self, chosen: NDArray[np.integer], others: list[_Plane]) -> tuple[_Plane, Floats]:
        """Return the plane of a choice and its products <V_s, V> with other planes and with itself."""
        plane = _Plane(chosen, self.margin * float(self.upper[chosen // self.n_classes].sum()), None)
        V = self.weights(self.coefficients([plane], np.ones(1)))
        products = np.zeros(len(others) + 1)
        if self.keeps_weights:
            plane.weights = V
            products[:-1] = [_product(other.weights, V) for other in others]
        else:  # <V_s, V> = <B_s, XV>
            for begin, cost in self.costs(V, 0.0):
                first, last = begin * self.n_classes, begin * self.n_classes + cost.size
                for s, other in enumerate(others):
                    part = slice(*np.searchsorted(other.chosen, (first, last)))
                    products[s] -= cost.ravel()[other.chosen[part] - first].sum()
        products[-1] = _product(V, V)
        return plane, products


def solve_cutting_plane(
    X: Matrix,
    codes: Ints,
    upper: Floats,
    n_classes: int,
    loss: str,
    margin: float,
    bias: str | None,
    *,
    tolerance: float,
    max_iterations: int,
    time_limit: float,
    progress: Callable[..., bool] | None,
    trace: Callable[[float, float, float, Floats], None] | None = None,
) -> dict[str, Any]:
    """Train a linear all-together machine by cutting planes.

    One iteration solves the reduced dual and passes over the data at its solution. It ends when the primal objective of
    that very point is within ``tolerance`` of the lower bound, relative to the larger of the two. The best of all
    points seen is there earlier, by a few iterations as a rule, but its coefficients do not give the bound: what is
    returned is what was certified.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
        Examples in float32 or float64; the work is done in float64.
    codes : ndarray of shape (n,)
        Their classes as numbers below ``n_classes``.
    upper : ndarray of shape (n,)
        Their costs C_i, finite.
    n_classes : int
        Number of classes, k.
    loss : {"crammer-singer", "weston-watkins"}
        The loss.
    margin : float
        Its margin M.
    bias : {None, "regularized"}
        With "regularized" there is a constant feature 1, whose weights are the intercepts.
    tolerance : float
        Relative gap to stop at.
    max_iterations : int
        Most iterations, that is reduced problems; -1 for no limit.
    time_limit : float
        Seconds after which to stop, as soon as the last point's objective is known.
    progress : callable or None
        Called as ``progress(0, 1, iterations, gap, answer)`` in every iteration, ``answer()`` being what would be
        returned now; returns False to stop.
    trace : callable, default=None
        Called as ``trace(seconds, primal, dual, W)`` with the best primal objective so far, its weights, (d, k) or
        (d + 1, k) with the intercepts last, and the lower bound. The seconds do not count the calls themselves.

    Returns
    -------
    dict
        ``weights`` (k, d) and ``intercept`` (k,) of the last point, its ``coefficients`` B (CSR, (n, k)), its
        objectives ``primal`` and ``dual``, their relative gap ``violation``; ``iterations``; ``status``: "converged",
        "max_iter", "time_limit", "stopped", or "precision" when the lower bound does not rise any more;
        ``evaluations`` of a kernel (0), the ``best_primal`` objective of all points, and ``fallbacks``, the number of
        iterations that took one exact step towards the new plane instead of HiGHS' solution of the reduced problem.
    """
    started = time.perf_counter()
    untraced = 0.0
    risk = _Risk(X, codes, upper, n_classes, loss, margin, bias)
    planes: list[_Plane] = []
    weight, gram = np.zeros(0), np.zeros((0, 0))
    W = np.zeros((risk.n_weights, n_classes))
    square = dual = 0.0
    best_primal, best_W = np.inf, W
    iterations = fallbacks = stalled = 0
    primal = gap = np.inf

    def answer(status: str = "stopped") -> dict[str, Any]:
        return {
            "weights": W[: risk.X.shape[1]].copy(),
            "intercept": W[-1].copy() if risk.biased else np.zeros(n_classes),
            "coefficients": risk.coefficients(planes, weight),
            "primal": primal,
            "dual": min(dual, primal),  # rounding may have put it above
            "violation": max(gap, 0.0),
            "iterations": iterations,
            "status": status,
            "evaluations": 0,
            "best_primal": best_primal,
            "fallbacks": fallbacks,
            "solver": "cutting-plane",
        }

    while True:
        value, chosen = risk.choose(W)
        primal = 0.5 * square + value
        gap = relative_gap(primal, dual)
        if primal < best_primal:
            best_primal, best_W = primal, W
        seconds = time.perf_counter() - started
        if trace is not None:
            trace(seconds - untraced, best_primal, dual, best_W)
            untraced += time.perf_counter() - started - seconds
        if gap <= tolerance:
            status = "converged"
        elif iterations == max_iterations:
            status = "max_iter"
        elif seconds >= time_limit:
            status = "time_limit"
        elif progress is not None and not progress(0, 1, iterations, gap, answer):
            status = "stopped"
        elif stalled == _STALLED:
            status = "precision"
        else:
            status = ""
        if status:
            break

        plane, products = risk.plane(chosen, planes)
        planes.append(plane)
        gram = np.block([[gram, products[:-1, None]], [products]])
        offsets = np.array([plane.offset for plane in planes])
        next_weight, solved = _reduced_dual(
            gram, offsets, np.append(weight, 0.0), gap=primal - dual, time_limit=time_limit - seconds
        )
        next_W = risk.mixed_weights(planes, next_weight)
        next_square = _product(next_W, next_W)
        next_dual = float(next_weight @ offsets) - 0.5 * next_square
        rounding = _ROUNDING * abs(dual)
        if not next_dual >= dual - rounding:  # also when data near the largest float make it NaN
            planes.pop()
            status = "precision"
            break
        stalled = 0 if solved and next_dual > dual + rounding else stalled + 1
        fallbacks += not solved
        iterations += 1
        weight, W, square, dual = next_weight, next_W, next_square, next_dual
        planes, weight, gram = _without_idle(planes, weight, gram)
    return answer(status)


def _product(V: Floats | None, W: Floats) -> float:
    assert V is not None
    return float(V.ravel() @ W.ravel())


def _without_idle(planes: list[_Plane], weight: Floats, gram: Floats) -> tuple[list[_Plane], Floats, Floats]:
    """Forget the planes that have been without weight for long."""
    for plane, value in zip(planes, weight, strict=True):
        plane.idle = 0 if value > 0 else plane.idle + 1
    kept = np.array([t for t, plane in enumerate(planes) if plane.idle < _IDLE], dtype=np.intp)
    if len(kept) == len(planes):
        return planes, weight, gram
    return [planes[t] for t in kept], weight[kept], gram[np.ix_(kept, kept)]


def _reduced_dual(
    gram: Floats, offsets: Floats, start: Floats, *, gap: float, time_limit: float
) -> tuple[Floats, bool]:
    r"""Maximise ``b'l - 1/2 l'Gl`` over ``l >= 0``, ``sum l <= 1``; tell whether HiGHS found the solution.

    HiGHS' active-set method works with absolute tolerances, so the problem is put into units that make the Hessian's
    diagonal 1 and the weights' norm about 1. Planes outnumber dimensions soon, and on a singular Hessian the method
    may cycle or give up; its own remedy, a multiple of the unit matrix that is added and never taken away, costs
    accuracy. Here the term is proximal, :math:`\delta/2 \|x - x_0\|^2` around the last solution, and the problem is
    solved again around the new one until it is as accurate as the outer iteration needs.

    HiGHS' word is not taken for it: its answer is made feasible, and has to beat the exact step from ``start`` towards
    the new plane. That step is what the rate of convergence of the method rests on (Teo et al.), so it is also the way
    on when HiGHS fails.

    Parameters
    ----------
    gram, offsets : G and b, the new plane last
    start : feasible point, 0 for the new plane
    gap : what the outer iteration has still to close, the measure of accuracy
    time_limit : seconds left
    """
    step = _step_towards_last(gram, offsets, start)
    diagonal = gram.diagonal()
    largest = float(diagonal.max())
    if len(start) == 1 or not 0 < largest < np.inf:
        return step, largest < np.inf  # one plane, or none with a slope: the step is the solution
    unit = np.sqrt(np.maximum(diagonal, 1e-14 * largest))
    size = np.sqrt(max(float(step @ gram @ step), 1e-14 * largest))
    hessian = gram / np.outer(unit, unit)
    hessian[np.diag_indices_from(hessian)] += _PROXIMITY
    cost, row = -offsets / (unit * size), unit.min() / unit
    x = start * unit / size
    best, best_value, solved = step, _value(gram, offsets, step), False
    deadline = time.perf_counter() + time_limit
    for attempt in range(_ROUNDS):
        left = deadline - time.perf_counter()
        if left <= 0:
            break
        # HiGHS' makers do not trust its start from a given point (their issue 2521), hence only at first.
        answer = _highs(hessian, cost - _PROXIMITY * x, row, unit.min() / size, x if attempt == 0 else None, left)
        if answer is None:
            continue
        answer[answer < 1e-12 * answer.max()] = 0.0
        candidate = answer * size / unit
        candidate /= max(1.0, candidate.sum())
        value = _value(gram, offsets, candidate)
        if value >= best_value - _ROUNDING * abs(best_value):
            best, best_value, solved = candidate, max(value, best_value), True
            slope = offsets - gram @ candidate
            if max(0.0, slope.max()) - slope @ candidate <= _ACCURACY * gap:
                break
            x = candidate * unit / size
        elif solved:
            break
    return best, solved


def _value(gram: Floats, offsets: Floats, weight: Floats) -> float:
    return float(weight @ offsets - 0.5 * (weight @ gram @ weight))


def _step_towards_last(gram: Floats, offsets: Floats, start: Floats) -> Floats:
    """Return the best point between ``start`` and all the weight on the last plane."""
    direction = -start
    direction[-1] += 1.0
    slope = float(direction @ (offsets - gram @ start))
    curvature = float(direction @ gram @ direction)
    if slope <= 0:
        return start
    return start + min(1.0, slope / curvature if curvature > 0 else 1.0) * direction


def _highs(
    hessian: Floats, cost: Floats, row: Floats, limit: float, start: Floats | None, time_limit: float
) -> Floats | None:
    """Minimise ``1/2 x'Hx + c'x`` over ``x >= 0``, ``row'x <= limit`` with HiGHS; return None if it fails."""
    import highspy  # not at the top: only this solver needs it

    n = len(cost)
    highs = highspy.Highs()
    options: dict[str, bool | int | float | str] = {
        "output_flag": False,
        "parallel": "off",
        "qp_regularization_value": 0.0,
        "qp_iteration_limit": 1000 + 100 * n,  # a solution takes a few times n
        "qp_allow_hot_start": True,
        "time_limit": time_limit,
    }
    for option, value in options.items():
        highs.setOptionValue(option, value)
    columns, rows = np.triu_indices(n)  # the lower triangle, by columns
    status = highs.passModel(
        n,
        1,
        n,
        len(rows),
        int(highspy.MatrixFormat.kColwise),
        int(highspy.HessianFormat.kTriangular),
        int(highspy.ObjSense.kMinimize),
        0.0,
        cost,
        np.zeros(n),
        np.full(n, highspy.kHighsInf),
        np.array([-highspy.kHighsInf]),
        np.array([limit]),
        np.arange(n, dtype=np.int32),
        np.zeros(n, dtype=np.int32),
        row,
        np.searchsorted(columns, np.arange(n)).astype(np.int32),
        rows.astype(np.int32),
        hessian[rows, columns],
        np.zeros(n, dtype=np.int32),
    )
    if status == highspy.HighsStatus.kError:
        return None
    if start is not None:
        solution, basis = highspy.HighsSolution(), highspy.HighsBasis()
        used = float(row @ start)
        solution.col_value, solution.row_value = start.tolist(), [used]
        at_bound, free = highspy.HighsBasisStatus.kLower, highspy.HighsBasisStatus.kNonbasic
        basis.col_status = [free if value > 0 else at_bound for value in start]
        full = used >= limit * (1 - 1e-9)
        basis.row_status = [highspy.HighsBasisStatus.kUpper if full else highspy.HighsBasisStatus.kBasic]
        basis.valid = True
        highs.setSolution(solution)  # before the basis, which it would make invalid
        highs.setBasis(basis)
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    answer = np.maximum(np.array(highs.getSolution().col_value), 0.0)
    return answer if np.all(np.isfinite(answer)) else None
