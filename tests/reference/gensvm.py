"""GenSVM by its definition, and by iterative majorisation in plain loops.

Van den Burg & Groenen minimise ``1/n sum_i (sum_m h(q_im)^p)^(1/p) + lambda tr W'W`` over V = [t; W]. The majorisation
here is a simple one: the second derivatives of the objective are bounded, so that it is below a parabola of that bend
around any point, and a step of ``-gradient / bound`` never goes up. It is slow and obvious.
"""

import numpy as np


def corners(k):
    """Return corners with edges of length 1 around the origin."""
    centred = np.eye(k) - 1.0 / k
    values, vectors = np.linalg.eigh(centred / 2.0)
    return vectors[:, 1:] * np.sqrt(values[1:])


def huber(q, kappa):
    """Return the Huber hinge of one number."""
    if q <= -kappa:
        return 1.0 - q - (kappa + 1.0) / 2.0
    return (1.0 - q) ** 2 / (2.0 * (kappa + 1.0)) if q <= 1.0 else 0.0


def slope(q, kappa):
    """Return its derivative."""
    if q <= -kappa:
        return -1.0
    return -(1.0 - q) / (kappa + 1.0) if q <= 1.0 else 0.0


def objective(differences, p, kappa):
    """Return the loss of one example."""
    return sum(huber(q, kappa) ** p for q in differences) ** (1.0 / p)


def value_and_gradient(V, Z, codes, U, p, kappa, weight):
    """Return the objective of V, whose first row is t, and its gradient."""
    n, k = len(Z), len(U)
    value, gradient = weight * np.sum(V[1:] ** 2), np.vstack([np.zeros((1, V.shape[1])), 2.0 * weight * V[1:]])
    scores = Z @ V @ U.T
    for i, y in enumerate(codes):
        q = {m: scores[i, y] - scores[i, m] for m in range(k) if m != y}
        loss = objective(q.values(), p, kappa)
        value += loss / n
        if loss == 0.0:
            continue
        for m, difference in q.items():
            share = (huber(difference, kappa) / loss) ** (p - 1.0)
            gradient += np.outer(Z[i], U[y] - U[m]) * share * slope(difference, kappa) / n
    return value, gradient


def majorise(X, y, p, kappa, weight, steps):
    """Return the objective after so many steps of majorisation, accelerated where that goes down."""
    codes = np.unique(y, return_inverse=True)[1]
    k = int(codes.max()) + 1
    U, Z = corners(k), np.column_stack([np.ones(len(X)), X])
    # Each hinge bends by at most 1 / (kappa + 1) along a difference of corners of length 1; the norm by p - 1 more.
    largest = np.linalg.eigvalsh(Z.T @ Z / len(Z))[-1]
    bound = 2.0 * weight + largest * (k - 1.0) * (2.0 * p - 1.0) / (kappa + 1.0)
    V = before = np.zeros((Z.shape[1], k - 1))
    pace = 1.0
    value, _ = value_and_gradient(V, Z, codes, U, p, kappa, weight)
    for _ in range(steps):
        following = (1.0 + np.sqrt(1.0 + 4.0 * pace**2)) / 2.0
        ahead = V + (pace - 1.0) / following * (V - before)
        _, gradient = value_and_gradient(ahead, Z, codes, U, p, kappa, weight)
        candidate = ahead - gradient / bound
        candidate_value, _ = value_and_gradient(candidate, Z, codes, U, p, kappa, weight)
        if candidate_value > value:  # begin the acceleration anew
            before, pace = V, 1.0
            continue
        V, before, value, pace = candidate, V, candidate_value, following
    return value
