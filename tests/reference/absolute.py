"""The machines of absolute margins as quadratic programs in the primal, the constraint on the scores written as it is.

Variables are the coefficients A of the kernel expansion of each score, the offsets b and the slacks::

    min  1/2 tr(A'KA) [+ 1/2 |b|^2] + sum_i C_i (sum_m u_m xi_im  or  xi_i)
    s_im = (KA)_im + b_m,   s_im <= -1 + xi for wrong classes m,   s_iy >= t - xi for the right one,
    sum_m A_jm = 0 for all examples j,   sum_m b_m = 0
"""

from dataclasses import dataclass

import numpy as np
import piqp
import scipy.linalg

from polymargin import (
    AbsoluteMaximumSVC,
    LeeLinWahbaSVC,
    MaximumMarginRegressionSVC,
    ReinforcedSVC,
    TotalMaximumSVC,
    TotalSumSVC,
)
from reference.certificate import Audit


@dataclass(frozen=True)
class Loss:
    """What the hinge of the right class and that of each other weigh, and whether only the largest counts."""

    own: float
    others: float
    largest: bool = False
    share: bool = False  # of a reinforced machine, whose right class is to have k - 1

    def of(self, k):
        """Return the target of the right class."""
        return k - 1.0 if self.share else 1.0

    def values(self, scores, codes):
        """Return the loss of every example."""
        values = np.zeros(len(codes))
        for i, y in enumerate(codes):
            hinges = [self.own * max(0.0, self.of(scores.shape[1]) - scores[i, y])]
            hinges += [self.others * max(0.0, 1.0 + scores[i, m]) for m in range(scores.shape[1]) if m != y]
            values[i] = max(hinges) if self.largest else sum(hinges)
        return values


LOSSES = {
    LeeLinWahbaSVC: Loss(0.0, 1.0),
    ReinforcedSVC: Loss(0.5, 0.5, share=True),
    AbsoluteMaximumSVC: Loss(0.0, 1.0, largest=True),
    TotalMaximumSVC: Loss(1.0, 1.0, largest=True),
    TotalSumSVC: Loss(1.0, 1.0),
    MaximumMarginRegressionSVC: Loss(1.0, 0.0),
}


@dataclass(frozen=True)
class AbsoluteSolution:
    """The optimal objective, and the scores of all classes."""

    dual: float
    all_scores: np.ndarray


def optimum(machine, K, y, bound):
    """Solve a machine's problem."""
    codes = np.unique(y, return_inverse=True)[1]
    return AbsoluteSolution(*solve(K, codes, bound, LOSSES[type(machine)], machine.bias))


def limits(loss, k, y, bound):
    """Return what the multiplier of each class has at most, and their sum."""
    own, others = ((np.inf if loss.largest else u * bound) if u > 0 else 0.0 for u in (loss.own, loss.others))
    return np.where(np.arange(k) == y, own, others), bound if loss.largest else np.inf


def dual_row(row, y, loss, bound):
    """Return the multipliers of largest value that have this row, but for its mean, and how far they are infeasible."""
    k = len(row)
    sigma = np.where(np.arange(k) == y, 1.0, -1.0)
    each, total = limits(loss, k, y, bound)
    # sigma (row + t) is to be in [0, each], and its sum, in which t counts 2 - k times, at most the total.
    ends = [(sigma * limit - row)[m] for limit in (np.zeros(k), each) for m in range(k)]
    low = max(min(pair) for pair in zip(ends[:k], ends[k:], strict=True))
    if k > 2:
        low = max(low, (sigma @ row - total) / (k - 2))
    a = sigma * (row + low)  # no other sum of multipliers is worth more
    return a, max(0.0, (-a).max(), (a - each).max(), a.sum() - total)


def audit(machine, K, codes, B, b, bound):
    """Recompute the objectives of a fitted machine from its coefficients, whose rows sum to zero."""
    loss = LOSSES[type(machine)]
    size = max(1.0, np.abs(B).max())
    broken = [np.abs(B.sum(axis=1)).max(), abs(b.sum())]
    value = 0.0
    for row, y, limit in zip(B, codes, bound, strict=True):
        a, outside = dual_row(row, y, loss, limit)
        broken.append(outside)
        value += a.sum() + (loss.of(len(row)) - 1.0) * a[y]
    sums = B.sum(axis=0)
    broken.append(np.abs(sums if machine.bias == "free" else sums - b if machine.bias == "regularized" else b).max())
    square = np.einsum("im,ij,jm", B, K, B)
    extra = b @ b if machine.bias == "regularized" else 0.0
    values = loss.values(K @ B + b, codes)
    paying = values > 0
    return Audit(
        primal=float(0.5 * (square + extra) + bound[paying] @ values[paying]),
        dual=float(value - 0.5 * (square + extra)),
        infeasibility=float(max(broken)) / size,
    )


def offsets_are_unique(machine, codes, B, bound, *, share=1e-3):
    """Tell whether free multipliers fix all offsets, which sum to zero: one alone that of its class."""
    loss, k = LOSSES[type(machine)], B.shape[1]
    fixed = [np.ones(k)]
    for row, y, limit in zip(B, codes, bound, strict=True):
        a, _ = dual_row(row, y, loss, limit)
        each, total = limits(loss, k, y, limit)
        unit = share * (limit if np.isfinite(limit) else max(np.abs(B).max(), 1e-300))
        free = [np.eye(k)[m] * (1.0 if m == y else -1.0) for m in np.flatnonzero((a > unit) & (a < each - unit))]
        fixed += free if a.sum() < total - unit else [d - free[0] for d in free[1:]]
    return np.linalg.matrix_rank(np.array(fixed)) == k


def solved(**problem):
    """Return the minimum, as exactly as PIQP can."""
    for precision in (1e-10, 1e-9, 1e-8):
        solver = piqp.DenseSolver()
        solver.settings.eps_abs = solver.settings.eps_rel = precision
        solver.settings.check_duality_gap = True
        solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = precision
        solver.settings.max_iter = 500
        solver.setup(**problem)
        if solver.solve() == piqp.PIQP_SOLVED:
            return np.asarray(solver.result.x)
    raise RuntimeError("the reference could not be solved")


def solve(K, codes, bound, loss, bias):
    """Return the optimal objective and the scores of all classes."""
    n, k = len(codes), int(codes.max()) + 1
    bound = np.broadcast_to(np.asarray(bound, dtype=float), (n,))
    classes = [m for m in range(k) if bias is not None]
    hinges = [(i, m) for i in range(n) for m in range(k) if (loss.own if m == codes[i] else loss.others) > 0]
    slack = {hinge: hinge[0] if loss.largest else at for at, hinge in enumerate(hinges)}
    n_slacks = n if loss.largest else len(hinges)
    size = n * k + len(classes) + n_slacks
    P = np.zeros((size, size))
    P[: n * k, : n * k] = scipy.linalg.block_diag(*[K] * k)  # a class after the other
    if bias == "regularized":
        P[n * k : n * k + k, n * k : n * k + k] = np.eye(k)
    cost, high = np.zeros(size), np.full(size, 1e30)
    G, most = np.zeros((len(hinges), size)), np.zeros(len(hinges))
    for row, (i, m) in enumerate(hinges):
        own = m == codes[i]
        sign, at = (-1.0 if own else 1.0), n * k + len(classes) + slack[i, m]
        G[row, m * n : (m + 1) * n] = sign * K[i]
        if classes:
            G[row, n * k + m] = sign
        G[row, at] = -1.0
        most[row] = -loss.of(k) if own else -1.0
        cost[at] = bound[i] * (1.0 if loss.largest else loss.own if own else loss.others)
        if np.isinf(bound[i]):
            cost[at] = high[at] = 0.0
    A = np.zeros((n + bool(classes), size))
    for j in range(n):
        A[j, j : n * k : n] = 1.0
    if classes:
        A[n, n * k : n * k + k] = 1.0
    low = np.r_[np.full(n * k + len(classes), -1e30), np.zeros(n_slacks)]
    arrays = {name: np.asfortranarray(array) for name, array in {"P": P, "A": A, "G": G}.items()}
    x = solved(**arrays, c=cost, b=np.zeros(len(A)), h_u=most, x_l=low, x_u=high)
    offsets = x[n * k : n * k + k] if classes else np.zeros(k)
    scores = K @ x[: n * k].reshape(k, n).T + offsets
    return float(0.5 * x @ P @ x + cost @ x), scores
