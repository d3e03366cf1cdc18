"""Joint machines with costs between classes, as quadratic programs in the primal, with every margin written out.

Variables are the coefficients A of the kernel expansion of each score, the offsets b and the slacks::

    min  1/2 tr(A'KA) [+ 1/2 |b|^2] + sum_i C_i (sum_m u_m xi_im  or  xi_i)
    relative:  s_iy - s_im >= M costs[y, m] - xi
    absolute:  s_im <= -costs[y, m] + xi,   s_iy >= t mean(costs[y]) - xi,   the scores of all examples sum to zero
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from polymargin import (
    AbsoluteMaximumSVC,
    CrammerSingerSVC,
    LeeLinWahbaSVC,
    ReinforcedSVC,
    TotalMaximumSVC,
    TotalSumSVC,
    WestonWatkinsSVC,
)
from reference.absolute import solved


@dataclass(frozen=True)
class Loss:
    """What hinges there are, of what weight, and whether only the largest counts."""

    absolute: bool
    largest: bool
    margin: float = 1.0
    own: float = 0.0
    others: float = 1.0
    many: bool = False  # whether the right class has the targets of all others together

    def hinges(self, costs, y):
        """Yield (weight, target, signs of the scores) of each hinge of an example of class y."""
        k = len(costs)
        for m in range(k):
            signs = np.zeros(k)
            if m == y and self.absolute and self.own > 0:
                signs[y] = 1.0
                mean = costs[y].sum() / (k - 1)
                yield self.own, mean * (k - 1 if self.many else 1), signs
            elif m != y and self.others > 0:
                signs[m] -= 1.0
                signs[y] += 0.0 if self.absolute else 1.0
                yield self.others, self.margin * costs[y, m], signs


LOSSES = {
    WestonWatkinsSVC: Loss(False, False, margin=2.0),
    CrammerSingerSVC: Loss(False, True),
    LeeLinWahbaSVC: Loss(True, False),
    ReinforcedSVC: Loss(True, False, own=0.5, others=0.5, many=True),
    AbsoluteMaximumSVC: Loss(True, True),
    TotalMaximumSVC: Loss(True, True, own=1.0),
    TotalSumSVC: Loss(True, False, own=1.0),
}


def optimum(K, codes, bound, loss, costs, bias):
    """Return the least objective."""
    n, k = len(codes), len(costs)
    hinges = [(i, *hinge) for i in range(n) for hinge in loss.hinges(costs, codes[i])]
    n_slacks = n if loss.largest else len(hinges)
    offsets = 0 if bias is None else k
    size = n * k + offsets + n_slacks
    P = np.zeros((size, size))
    P[: n * k, : n * k] = scipy.linalg.block_diag(*[K] * k)  # a class after the other
    if bias == "regularized":
        P[n * k : n * k + k, n * k : n * k + k] = np.eye(k)
    cost, G, least = np.zeros(size), np.zeros((len(hinges), size)), np.zeros(len(hinges))
    for row, (i, weight, target, signs) in enumerate(hinges):
        at = n * k + offsets + (i if loss.largest else row)
        for m in range(k):
            G[row, m * n : (m + 1) * n] = signs[m] * K[i]
        G[row, n * k : n * k + offsets] = signs[:offsets]
        G[row, at], least[row] = 1.0, target
        cost[at] = bound[i] * (1.0 if loss.largest else weight)
    problem = {"x_l": np.r_[np.full(n * k + offsets, -1e30), np.zeros(n_slacks)]}
    equations = np.zeros((0, size))
    if loss.absolute:
        equations = np.zeros((n + bool(offsets), size))
        for j in range(n):
            equations[j, j : n * k : n] = 1.0
    if offsets and (loss.absolute or bias == "free"):  # relative margins do not see a shift of all offsets
        equations = equations if loss.absolute else np.zeros((1, size))
        equations[-1, n * k : n * k + k] = 1.0
    if len(equations):
        problem |= {"A": np.asfortranarray(equations), "b": np.zeros(len(equations))}
    x = solved(P=np.asfortranarray(P), c=cost, G=np.asfortranarray(G), h_l=least, **problem)
    return float(0.5 * x @ P @ x + cost @ x)
