"""Kernel matrices by their formulas, in float64 and with scikit-learn's parameters."""

import numpy as np


def kernel_matrix(A, B, kernel="rbf", *, gamma=1.0, degree=3, coef0=0.0):
    """Return K with ``K[i, j] = k(A[i], B[j])``.

    linear      ``<a, b>``
    poly        ``(gamma <a, b> + coef0) ** degree``
    rbf         ``exp(-gamma |a - b|^2)``
    sigmoid     ``tanh(gamma <a, b> + coef0)``
    laplacian   ``exp(-gamma |a - b|_1)``
    """
    A = np.asarray(A, dtype=np.float64)
    B = np.asarray(B, dtype=np.float64)
    if kernel == "linear":
        return A @ B.T
    if kernel == "poly":
        return (gamma * (A @ B.T) + coef0) ** degree
    if kernel == "sigmoid":
        return np.tanh(gamma * (A @ B.T) + coef0)
    if kernel == "rbf":
        return np.stack([np.exp(-gamma * ((row - B) ** 2).sum(axis=1)) for row in A])
    if kernel == "laplacian":
        return np.stack([np.exp(-gamma * np.abs(row - B).sum(axis=1)) for row in A])
    raise ValueError(f"no such kernel: {kernel!r}")


def gamma_value(gamma, X, sample_weight=None):
    """Turn "scale", "auto" or a number into the number.

    "scale" is ``1 / (n_features * variance of all entries)``; a row of weight 2 counts twice in the
    variance, so that it means the same as the row given twice.
    """
    X = np.asarray(X, dtype=np.float64)
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if gamma != "scale":
        return float(gamma)
    weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    weights = np.repeat(weight[:, None], X.shape[1], axis=1)
    mean = np.average(X, weights=weights)
    variance = np.average((X - mean) ** 2, weights=weights)
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
