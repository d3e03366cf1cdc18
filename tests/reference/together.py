"""The all-together machines as quadratic programs for PIQP, and their objectives by definition.

Variables ``a_im >= 0`` for every example i and wrong class m; ``B_im = -a_im`` and ``B_{i,y_i} = sum_m a_im``,
so that rows of B sum to zero and ``w_m = sum_i B_im phi(x_i)``. Dual (maximised)::

    max  M sum_i B_{i,y_i} - 1/2 tr(B'KB)     Weston-Watkins: a_im <= C_i;  Crammer-Singer: sum_m a_im <= C_i

``bias="regularized"`` takes ``K + 1`` for K, and ``b_m = sum_i B_im``; ``bias="free"`` asks for
``sum_i B_im = 0``, whose multipliers are the b. Adding a constant to all of b changes nothing: here they sum to zero.
"""

from dataclasses import dataclass

import numpy as np
import piqp


@dataclass(frozen=True)
class TogetherSolution:
    """``B`` (n, k), the offsets ``b`` (k,), and both objectives."""

    B: np.ndarray
    b: np.ndarray
    dual: float
    primal: float

    def all_scores(self, K_test):
        """Return one column for each class."""
        return K_test @ self.B + self.b

    def scores(self, K_test):
        """Return what a decision function returns: for two classes the second column alone."""
        values = self.all_scores(K_test)
        return values[:, 1:] if values.shape[1] == 2 else values


def losses(scores, codes, loss, margin):
    """Return the loss of every example, given the scores of all classes."""
    values = np.zeros(len(codes))
    for i, y in enumerate(codes):
        short = [max(0.0, margin - (scores[i, y] - scores[i, m])) for m in range(scores.shape[1]) if m != y]
        values[i] = sum(short) if loss == "weston-watkins" else max(short)
    return values


def objective_of_scores(squares, scores, codes, bound, loss, margin):
    """Return ``1/2 squares + sum_i C_i loss_i``, where ``squares`` is all that is regularised."""
    values = losses(scores, codes, loss, margin)
    paying = values > 0
    return float(0.5 * squares + (np.asarray(bound)[paying] * values[paying]).sum())


def primal_objective(K, codes, B, b, bound, *, loss, margin, bias):
    """Return the primal objective of ``w_m = sum_i B_im phi(x_i)`` and ``b``."""
    squares = np.einsum("im,ij,jm", B, K, B) + (b @ b if bias == "regularized" else 0.0)
    return objective_of_scores(squares, K @ B + b, codes, bound, loss, margin)


def dual_objective(K, codes, B, *, margin, bias):
    """Return the maximised dual objective at ``B``."""
    K = K + 1.0 if bias == "regularized" else K
    return float(margin * B[np.arange(len(codes)), codes].sum() - 0.5 * np.einsum("im,ij,jm", B, K, B))


def infeasibility(codes, B, b, bound, *, loss, bias):
    """Return the worst violation of a constraint of the dual, relative to the largest coefficient."""
    own = B[np.arange(len(codes)), codes]
    wrong = np.delete(B.ravel(), np.arange(len(codes)) * B.shape[1] + codes).reshape(len(codes), -1)
    worst = [np.abs(B.sum(axis=1)).max(), wrong.max()]
    worst.append((own - bound).max() if loss == "crammer-singer" else (-wrong - bound[:, None]).max())
    if bias == "free":
        worst.append(np.abs(B.sum(axis=0)).max())
    elif bias == "regularized":
        worst.append(np.abs(B.sum(axis=0) - b).max())
    else:
        worst.append(np.abs(b).max())
    return float(max(worst)) / max(1.0, float(np.abs(B).max()))


def offsets_are_unique(codes, B, bound, *, loss, share=1e-3):
    """Tell whether free variables tie every class to every other, which fixes the unregularised offsets.

    Complementarity turns a variable that is well inside its bounds into an equation between the scores of two classes
    for one example: the own class and a wrong one, or (Crammer-Singer with ``sum_m a_im = C_i``) two wrong classes.
    """
    group = np.arange(B.shape[1])
    for i, y in enumerate(codes):
        limit = bound[i] if np.isfinite(bound[i]) else np.abs(B).max()
        if limit <= 0:
            continue
        tied = [m for m in range(B.shape[1]) if m != y and -B[i, m] > share * limit]
        if loss == "weston-watkins":
            tied = [m for m in tied if -B[i, m] < (1 - share) * bound[i]] + [y]
        elif B[i, y] < (1 - share) * bound[i]:
            tied.append(y)
        for m in tied:
            group[group == group[m]] = group[tied[0]]
    return len(np.unique(group)) == 1


def _solved(P, c, **limits):
    """Minimise ``1/2 x'Px + c'x``, as exactly as PIQP can."""
    for precision in (1e-13, 1e-12, 1e-11):
        solver = piqp.DenseSolver()
        solver.settings.eps_abs = solver.settings.eps_rel = precision
        solver.settings.check_duality_gap = True
        solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 10 * precision
        solver.settings.max_iter = 500
        solver.setup(P, c, **limits)
        status = solver.solve()
        if status == piqp.PIQP_SOLVED:
            return solver.result
    raise RuntimeError(f"the reference could not be solved: {status}")


def solve_together(K, y, bound, *, loss, bias=None, margin=1.0):
    """Solve one all-together problem.

    Parameters
    ----------
    K : (n, n) float64, positive semi-definite
    y : (n,) labels
    bound : (n,) costs ``C_i``; ``inf`` is the hard margin, 0 takes the example out
    loss : "weston-watkins" or "crammer-singer"
    bias : None, "regularized" or "free"
    margin : M
    """
    K = np.asarray(K, dtype=np.float64)
    classes, codes = np.unique(y, return_inverse=True)
    n, k = len(codes), len(classes)
    bound = np.broadcast_to(np.asarray(bound, dtype=np.float64), (n,))
    pairs = [(i, m) for i in np.flatnonzero(bound > 0) for m in range(k) if m != codes[i]]
    example, wrong = np.array(pairs).T
    direction = np.eye(k)[codes[example]] - np.eye(k)[wrong]  # what one unit of a_im adds to row i of B
    K_bias = K + 1.0 if bias == "regularized" else K
    Q = K_bias[np.ix_(example, example)] * (direction @ direction.T)

    limits = {"x_l": np.zeros(len(pairs))}
    if loss == "weston-watkins":
        limits["x_u"] = bound[example]
    elif np.isfinite(bound).all():
        rows = np.unique(example)
        limits["G"] = np.asfortranarray((example == rows[:, None]).astype(float))
        limits["h_u"] = bound[rows]
    if bias == "free":  # one of the k equations follows from the others
        limits["A"] = np.asfortranarray(direction.T[:-1])
        limits["b"] = np.zeros(k - 1)

    result = _solved(np.asfortranarray((Q + Q.T) / 2), -margin * np.ones(len(pairs)), **limits)
    a = np.clip(result.x, 0.0, bound[example])
    B = np.zeros((n, k))
    np.add.at(B, example, a[:, None] * direction)
    b = np.zeros(k)
    if bias == "free":
        b[:-1] = result.y
        b -= b.mean()
    elif bias == "regularized":
        b = B.sum(axis=0)
    return TogetherSolution(
        B=B,
        b=b,
        dual=dual_objective(K, codes, B, margin=margin, bias=bias),
        primal=primal_objective(K, codes, B, b, bound, loss=loss, margin=margin, bias=bias),
    )


def weston_watkins(K, y, bound, *, bias="regularized", margin=2.0):
    """Solve Weston and Watkins' problem: Hsu & Lin (5) for a free bias, (10) for a regularised one."""
    return solve_together(K, y, bound, loss="weston-watkins", bias=bias, margin=margin)


def crammer_singer(K, y, bound, *, bias=None):
    """Solve Crammer and Singer's problem: Hsu & Lin (17) without bias."""
    return solve_together(K, y, bound, loss="crammer-singer", bias=bias, margin=1.0)


def hsu_lin_primal(X, y, C, regulariser):
    """Solve Hsu & Lin (4), (7) or (8), the primal with a linear kernel and a free bias, as a quadratic program.

    Its variables are (w, b, xi).

    Returns W (k, d), the offsets (k,) with sum zero, and the objective.
    """
    X = np.asarray(X, dtype=np.float64)
    classes, codes = np.unique(y, return_inverse=True)
    (n, d), k = X.shape, len(classes)
    pairs = [(i, m) for i in range(n) for m in range(k) if m != codes[i]]
    differences = k * np.eye(k) - np.ones((k, k))  # sum over o < m of |w_m - w_o|^2, as a form in w
    form = {4: np.eye(k), 7: differences, 8: differences + 2 * np.eye(k)}[regulariser]
    size = k * d + k + len(pairs)
    P = np.zeros((size, size))
    P[: k * d, : k * d] = np.kron(form, np.eye(d))
    cost = np.r_[np.zeros(k * d + k), np.full(len(pairs), C)]
    G = np.zeros((len(pairs), size))
    for row, (i, m) in enumerate(pairs):
        for label, sign in ((codes[i], 1.0), (m, -1.0)):
            G[row, label * d : (label + 1) * d] = sign * X[i]
            G[row, k * d + label] = sign
        G[row, k * d + k + row] = 1.0
    A = np.zeros((1, size))  # one offset too many: their sum is zero
    A[0, k * d : k * d + k] = 1.0
    if regulariser == 7:
        A = np.vstack([A, np.hstack([np.tile(np.eye(d), k), np.zeros((d, size - k * d))])])

    x = _solved(
        np.asfortranarray(P),
        cost,
        A=np.asfortranarray(A),
        b=np.zeros(len(A)),
        G=np.asfortranarray(G),
        h_l=np.full(len(pairs), 2.0),
        x_l=np.r_[np.full(k * d + k, -np.inf), np.zeros(len(pairs))],
    ).x
    return x[: k * d].reshape(k, d), x[k * d : k * d + k], float(0.5 * x @ P @ x + cost @ x)
