"""The binary machine as a quadratic program for PIQP, an interior-point solver that is not ours.

Dual (maximised)::

    max_a  sum_i a_i - 1/2 sum_ij a_i a_j t_i t_j K_ij    0 <= a_i <= C_i,  sum_i t_i a_i = 0

Primal at the point that ``a`` and ``b`` define, ``f_i = sum_j a_j t_j K_ij + b``::

    1/2 sum_ij a_i a_j t_i t_j K_ij + sum_i C_i max(0, 1 - t_i f_i)
"""

from dataclasses import dataclass

import numpy as np
import piqp


@dataclass(frozen=True)
class BinarySolution:
    """``alpha`` (n,), the offset ``b``, and both objectives."""

    alpha: np.ndarray
    b: float
    dual: float
    primal: float


def dual_objective(K, t, alpha):
    """Return the maximised dual objective at ``alpha``."""
    v = alpha * t
    return float(alpha.sum() - 0.5 * v @ K @ v)


def primal_objective(K, t, alpha, b, bound):
    """Return the primal objective of ``w = sum_i alpha_i t_i phi(x_i)`` and ``b``."""
    v = alpha * t
    f = K @ v + b
    hinge = np.maximum(0.0, 1.0 - t * f)
    slack = np.zeros_like(hinge)
    paying = hinge > 0
    slack[paying] = np.asarray(bound)[paying] * hinge[paying]
    return float(0.5 * v @ K @ v + slack.sum())


def solve_binary(K, t, bound):
    """Solve one binary problem.

    Parameters
    ----------
    K : (n, n) float64, positive semi-definite
    t : (n,) labels, +1 or -1
    bound : (n,) upper bounds ``C_i``; ``inf`` is the hard margin, 0 takes the example out
    """
    K = np.asarray(K, dtype=np.float64)
    t = np.asarray(t, dtype=np.float64)
    bound = np.broadcast_to(np.asarray(bound, dtype=np.float64), t.shape)
    used = np.flatnonzero(bound > 0)
    Q = K[np.ix_(used, used)] * np.outer(t[used], t[used])

    solver = piqp.DenseSolver()
    solver.settings.eps_abs = 1e-11
    solver.settings.eps_rel = 1e-11
    solver.settings.check_duality_gap = True
    solver.settings.eps_duality_gap_abs = 1e-10
    solver.settings.eps_duality_gap_rel = 1e-10
    solver.settings.max_iter = 500
    solver.setup(
        np.asfortranarray((Q + Q.T) / 2),
        -np.ones(len(used)),
        np.asfortranarray(t[used][None, :]),
        np.zeros(1),
        x_l=np.zeros(len(used)),
        x_u=bound[used].copy(),
    )
    status = solver.solve()
    if status != piqp.PIQP_SOLVED:
        raise RuntimeError(f"the reference could not be solved: {status}")

    alpha = np.zeros(len(t))
    alpha[used] = np.clip(solver.result.x, 0.0, bound[used])
    b = float(solver.result.y[0])  # the multiplier of sum t_i a_i = 0
    return BinarySolution(
        alpha=alpha,
        b=b,
        dual=dual_objective(K, t, alpha),
        primal=primal_objective(K, t, alpha, b, bound),
    )
