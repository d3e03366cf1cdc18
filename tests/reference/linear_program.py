"""The linear programming machine as it is written down: every constraint and every slack in one program."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

MARGIN = 2.0


@dataclass(frozen=True)
class Optimum:
    """The optimum, under the names of the other references: a linear program has no gap."""

    dual: float
    coefficients: np.ndarray
    intercept: np.ndarray


def leads(K, codes, n_classes):
    """Return the matrix of the leads (i, j), j != y_i, on the coefficients and the intercepts, with their examples."""
    rows, examples = [], []
    for i, own in enumerate(codes):
        for j in set(range(n_classes)) - {own}:
            signs = (codes == own).astype(float) - (codes == j)
            offsets = np.eye(n_classes)[own] - np.eye(n_classes)[j]
            rows.append(np.concatenate([signs * K[i], offsets]))
            examples.append(i)
    return np.array(rows), np.array(examples)


def linear_program(K, y, bound):
    """Solve the program with scipy; None if there is no hard margin."""
    classes, codes = np.unique(y, return_inverse=True)
    n, k = len(codes), len(classes)
    A, examples = leads(K, codes, k)
    cost = np.concatenate([np.ones(n), np.zeros(k)])
    bounds = [(0, None)] * n + [(None, None)] * k
    if np.isfinite(bound).all():
        A = np.hstack([A, np.eye(len(A))])
        cost = np.concatenate([cost, bound[examples]])
        bounds += [(0, None)] * len(A)
    result = linprog(cost, A_ub=-A, b_ub=np.full(len(A), -MARGIN), bounds=bounds, method="highs")
    if result.status == 2:
        return None
    assert result.status == 0, result.message
    return Optimum(float(result.fun), result.x[:n], result.x[n : n + k])


def primal_objective(K, codes, a, b, bound):
    """Return the objective of coefficients and intercepts; a hard margin first scales them until it is there."""
    A, examples = leads(K, codes, len(b))
    values = A @ np.concatenate([a, b])
    if np.isinf(bound).any():
        return a.sum() * MARGIN / values.min() if values.min() > 0 else np.inf
    return float(a.sum() + bound[examples] @ np.maximum(0.0, MARGIN - values))


def dual_objective(u):
    """Return the objective of the multipliers."""
    return MARGIN * float(u.sum())


def infeasibility(K, codes, u, bound):
    """Return by how much multipliers, of shape (n, k), miss the constraints of the dual."""
    n, k = u.shape
    A, examples = leads(K, codes, k)
    others = np.arange(k) != codes[:, None]
    flat = u[others]
    sums = A.T @ flat
    scale = max(1.0, float(flat.max(initial=0.0)))
    excess = np.max((flat - bound[examples])[np.isfinite(bound[examples])], initial=0.0)
    outside = max(float(-flat.min()), float(excess), float(np.abs(sums[n:]).max())) / scale
    return max(outside, float(sums[:n].max()) - 1.0, float(np.abs(u[~others]).max()))
