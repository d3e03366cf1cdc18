"""Zien et al.'s machine by its formulas, one example at a time, and solved without any gradient of ours."""

import math

import numpy as np
from scipy.optimize import minimize


def logistic(s):
    """Return log(1 + exp(-s))."""
    return math.log1p(math.exp(-s)) if s > 0 else -s + math.log1p(math.exp(s))


def soft_maximum(t, gamma):
    """Return (1.4) with the constant for len(t) numbers; the sum for gamma 0, the maximum for infinity."""
    if gamma == 0:
        return sum(t)
    if math.isinf(gamma):
        return max(t)
    return math.log(1 - len(t) + sum(math.exp(gamma * u) for u in t)) / gamma


def softmax_loss(scores, y, gamma):
    """Return the loss of one example."""
    return soft_maximum([logistic(scores[y] - s) for u, s in enumerate(scores) if u != y], gamma)


def one_vs_rest_loss(scores, y):
    """Return the sum of the k binary losses of one example."""
    return sum(logistic(2 * s if m == y else -2 * s) for m, s in enumerate(scores))


def objective(K, y, alpha, b, cost, loss, class_kernel=None):
    """Return 1/2 tr(alpha' K alpha K_Y) + sum_i C_i loss(s_i, y_i), with s = K alpha K_Y + b."""
    class_kernel = np.eye(alpha.shape[1]) if class_kernel is None else class_kernel
    scores = K @ alpha @ class_kernel + b
    square = np.trace(alpha.T @ K @ alpha @ class_kernel)
    return 0.5 * square + sum(c * loss(s, label) for c, s, label in zip(cost, scores, y, strict=True))


def optimum(K, y, cost, loss, *, free_bias=True, class_kernel=None):
    """Minimise over the coefficients of the representer theorem with finite differences; return objective and scores.

    The coefficients enter through a square root of K, which makes the regulariser a plain square.
    """
    k = int(max(y)) + 1
    class_kernel = np.eye(k) if class_kernel is None else class_kernel
    values, vectors = np.linalg.eigh(K)
    root = vectors[:, values > 1e-12] * np.sqrt(values[values > 1e-12])
    values, vectors = np.linalg.eigh(class_kernel)
    class_root = vectors[:, values > 1e-12] * np.sqrt(values[values > 1e-12])
    shape = root.shape[1], class_root.shape[1]
    size = shape[0] * shape[1]

    def scores(point):
        b = point[size:] if free_bias else 0.0
        return root @ point[:size].reshape(shape) @ class_root.T + b

    def value(point):
        losses = sum(c * loss(s, label) for c, s, label in zip(cost, scores(point), y, strict=True))
        return 0.5 * point[:size] @ point[:size] + losses

    start = np.zeros(size + (k if free_bias else 0))
    best = minimize(value, start, method="BFGS", options={"gtol": 1e-7, "maxiter": 2000})
    return best.fun, scores(best.x)
