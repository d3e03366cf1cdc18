"""Sigmoids and pairwise coupling by general optimisers, one pair or one row at a time."""

import numpy as np
from scipy.optimize import minimize

from reference.composition import pairs


def targets(positive, weight):
    """Return Platt's targets: a little less sure than the labels."""
    first, second = weight[positive].sum(), weight[~positive].sum()
    return np.where(positive, (first + 1) / (first + 2), 1 / (second + 2))


def likelihood(A, B, values, target, weight):
    """Return the negative log likelihood of the targets under P(first) = 1 / (1 + exp(A f + B))."""
    z = A * values + B
    return float(weight @ (target * np.logaddexp(0, z) + (1 - target) * np.logaddexp(0, -z)))


def sigmoid(values, positive, weight):
    """Return A <= 0 and B with the least negative log likelihood."""
    target = targets(positive, weight)
    scale = np.abs(values).max()  # L-BFGS-B likes variables of one size
    result = minimize(
        lambda ab: likelihood(ab[0] / scale, ab[1], values, target, weight),
        x0=[0.0, 0.0],
        bounds=[(None, 0.0), (None, None)],
        method="L-BFGS-B",
        options={"maxiter": 10_000, "ftol": 1e-15, "gtol": 1e-10},
    )
    return result.x[0] / scale, result.x[1]


def matrix(row, k):
    """Return R with R[i, j] the probability of class i among i and j, from the pairs of one row."""
    R = np.zeros((k, k))
    for (i, j), r in zip(pairs(k), row, strict=True):
        R[i, j], R[j, i] = r, 1 - r
    return R


def disagreement(p, R):
    """Return the objective of Wu, Lin & Weng's second method."""
    k = len(p)
    return sum((R[j, i] * p[i] - R[i, j] * p[j]) ** 2 for i in range(k) for j in range(k) if i != j) / 2


def couple(row, k):
    """Minimise the disagreement over the simplex by sequential quadratic programming."""
    R = matrix(row, k)
    result = minimize(
        disagreement,
        x0=np.full(k, 1 / k),
        args=(R,),
        bounds=[(0, 1)] * k,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-16},
    )
    return result.x


def fixed_point(row, k, rounds=10_000, enough=0.0, order=None):
    """Go from class to class, in this order, each set to what is best for it: Wu, Lin & Weng's Algorithm 2.

    ``enough`` is the violation of the conditions Qp = p'Qp at which to stop. Probabilities are in that order.
    """
    order = np.arange(k) if order is None else order
    R = matrix(row, k)[np.ix_(order, order)]
    Q = -R.T * R
    Q[np.diag_indices(k)] = (R**2).sum(axis=0)
    p = np.full(k, 1 / k)
    for _ in range(rounds):
        before = p.copy()
        if np.abs(Q @ p - p @ Q @ p).max() < enough:
            break
        for t in range(k):
            others = Q[t] @ p - Q[t, t] * p[t]
            p[t] = (p @ Q @ p - others) / Q[t, t]
            p /= p.sum()
        if np.abs(p - before).max() < 1e-15:
            break
    return p
