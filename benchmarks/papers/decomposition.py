r"""The decomposition methods of Hsu & Lin 2002 for the all-together machines, in plain NumPy.

They are here to be read and to count iterations, not to be fast: no shrinking, no cache, one working set after the
other. Shapes: l examples, k classes; whatever belongs to classes and examples is (k, l), so that a kernel row adds to
contiguous rows. Scores are :math:`S_{mi} = \sum_j B_{mj} K_{ij}`; with a bias in the objective K is the kernel plus 1.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

WHOLE = 16_384
"""Up to this many examples the kernel matrix is kept whole (2 GB)."""
RIDGE = 1e-12


class Rows:
    """Rows of the RBF kernel, plus a constant: the whole matrix if it fits, else those that were asked for."""

    def __init__(self, X: NDArray, gamma: float, plus: float) -> None:
        self.X, self.gamma, self.plus = X, gamma, plus
        self.matrix = self.compute(np.arange(len(X))) if len(X) <= WHOLE else None
        self.known: dict[int, NDArray] = {}
        self.diagonal = 1.0 + plus

    def compute(self, examples: NDArray) -> NDArray:
        """Kernel values of some examples with all."""
        values = rbf_kernel(self.X[examples], self.X, gamma=self.gamma)
        values += self.plus
        return values

    def row(self, i: int) -> NDArray:
        """One row."""
        if self.matrix is not None:
            return self.matrix[i]
        if i not in self.known:
            self.known[i] = self.compute(np.array([i]))[0]
        return self.known[i]

    def rows(self, examples: NDArray) -> NDArray:
        """Some rows."""
        if self.matrix is not None:
            return self.matrix[examples]
        return np.stack([self.row(int(i)) for i in examples])


@dataclass
class Outcome:
    """What a decomposition came to; `dual` is maximised, as the machines report it."""

    iterations: int
    violation: float
    dual: float
    coefficients: NDArray
    """B, (k, l): columns sum to zero."""

    @property
    def n_support(self) -> int:
        """Unique support vectors: examples with any coefficient that is not zero."""
        return int(np.count_nonzero(self.coefficients.any(axis=0)))


Watch = Callable[[int, float], None]


def silent(iteration: int, violation: float) -> None:
    """Watch nothing."""


def solve_box(
    Q: NDArray, gradient: NDArray, a: NDArray, cost_bound: float, accuracy: float = 1e-10, most: int = 200
) -> NDArray:
    r"""Minimise :math:`g^\top d + \frac12 d^\top Q d` with :math:`0 \le a + d \le C`; returns a + d.

    A primal active-set method. Variables at a bound that the gradient pushes outwards are held; the linear system of
    the rest is solved; the step goes as far as the first bound, whose variable is then held too. When a whole step is
    taken, all bounds are judged anew. The ridge turns a direction without curvature into a long step to a bound.
    """
    a, gradient = a.copy(), gradient.copy()
    held: NDArray | None = None
    for _ in range(most):
        if held is None:
            held = ((a <= 0) & (gradient >= 0)) | ((a >= cost_bound) & (gradient <= 0))
            if np.abs(gradient[~held]).max(initial=0.0) <= accuracy:
                break
        free = np.flatnonzero(~held)
        if len(free) == 0:
            held = None
            continue
        system = Q[np.ix_(free, free)]
        system[np.diag_indices(len(free))] += RIDGE * Q.diagonal().max()
        step = np.linalg.solve(system, -gradient[free])
        with np.errstate(divide="ignore", invalid="ignore"):
            max_step = np.where(step > 0, (cost_bound - a[free]) / step, np.where(step < 0, -a[free] / step, np.inf))
        first = int(max_step.argmin())
        length = min(1.0, max_step[first])
        gradient += Q[:, free] @ (length * step)
        a[free] = np.clip(a[free] + length * step, 0.0, cost_bound)
        if length < 1.0:
            a[free[first]] = cost_bound if step[first] > 0 else 0.0
            held[free[first]] = True
        else:
            held = None
    return a


def violations(gradient: NDArray, a: NDArray, cost_bound: float) -> NDArray:
    """The vector v of Hsu & Lin, section III: not positive, and zero where the optimality condition holds."""
    v = -np.abs(gradient)
    v[(a <= 0) & (gradient > 0)] = 0.0
    v[(a >= cost_bound) & (gradient < 0)] = 0.0
    return v


def working_set(v: NDArray, free: NDArray, q: int) -> NDArray:
    """Half the free variables that violate least, half those of all that violate most (section III).

    If there are fewer than q / 2 free variables, more of the most violating ones take their place.
    """
    candidates = np.flatnonzero(free)
    half = min(q // 2, len(candidates))
    if half < len(candidates):
        candidates = candidates[np.argpartition(-v[candidates], half)[:half]]
    worst = np.argpartition(v, q)[:q]
    worst = worst[np.argsort(v[worst], kind="stable")]
    worst = worst[~np.isin(worst, candidates)][: q - half]
    return np.concatenate([candidates, worst[v[worst] < 0]])


def weston_watkins(
    rows: Rows, y: NDArray, k: int, C: float, *, tol: float = 1e-3, q: int = 10, watch: Watch = silent
) -> Outcome:
    r"""Hsu & Lin (10) by the working sets of section III (BSVM): q variables at a time, solved exactly.

    Variables :math:`a_{mi} \in [0, C]`, :math:`m \ne y_i`, with the gradient :math:`S_{y_i i} - S_{mi} - 2`. Two of
    them meet in :math:`Q = K_{ij}\,(e_{y_i} - e_m)^\top (e_{y_j} - e_n)`. Stops when no variable violates its condition
    by `tol` or more: (22) without an equality.
    """
    n = len(y)
    own = np.arange(n)
    a, scores = np.zeros((k, n)), np.zeros((k, n))
    wrong = np.ones((k, n), dtype=bool)
    wrong[y, own] = False
    directions = np.eye(k)[y].T[:, None, :] - np.eye(k)[:, :, None]  # (class of B, m, example)
    iteration = 0
    while True:
        gradient = scores[y, own] - scores - 2.0
        v = violations(gradient, a, C)
        v[~wrong] = 0.0
        worst = float(-v.min())
        watch(iteration, worst)
        if worst < tol:
            break
        chosen = working_set(v.ravel(), ((a > 0) & (a < C)).ravel(), q)
        m, i = np.unravel_index(chosen, a.shape)
        K, D = rows.rows(i), directions[:, m, i]
        Q = K[:, i] * (D.T @ D)
        new = solve_box(Q, gradient[m, i], a[m, i], C)
        scores += (D * (new - a[m, i])) @ K
        a[m, i] = new
        iteration += 1
    coefficients = -a
    coefficients[y, own] = a.sum(axis=0)
    dual = 2.0 * a.sum() - 0.5 * float((coefficients * scores).sum())
    return Outcome(iteration, worst, dual, coefficients)


def project(target: NDArray, bounds: NDArray) -> NDArray:
    r"""The solution of (18): :math:`\min \frac12 \|x - t\|^2` with :math:`\sum x = 0` and :math:`x \le c`.

    It is :math:`x = \min(c, t + \nu)` at the one shift at which the sum is zero: sort the breakpoints
    :math:`c - t`, and find the piece of the increasing piecewise linear sum in which it crosses zero.
    """
    order = np.argsort(bounds - target)
    breaks, below = (bounds - target)[order], np.concatenate([[0.0], np.cumsum(bounds[order])])
    above = target.sum() - np.concatenate([[0.0], np.cumsum(target[order])])
    count = np.arange(len(target), 0, -1)  # variables below their bound before each breakpoint
    shifts = -(below[:-1] + above[:-1]) / count
    piece = int(np.argmax(shifts <= breaks))
    return np.minimum(bounds, target + shifts[piece])


def crammer_singer(rows: Rows, y: NDArray, k: int, C: float, *, tol: float = 1e-3, watch: Watch = silent) -> Outcome:
    r"""Hsu & Lin (17), or (24) if the rows are those of K + 1: the example of (20) at a time, until (21) holds.

    The gradient is :math:`S_{mi} + [m \ne y_i]`; the step solves (18) exactly for all k variables of the example.
    """
    n = len(y)
    own = np.arange(n)
    B, cost_bounds = np.zeros((k, n)), np.zeros((k, n))
    cost_bounds[y, own] = C
    gradient = np.ones((k, n))
    gradient[y, own] = 0.0
    movable = np.where(cost_bounds > 0, gradient, np.inf)  # the gradient where a variable may still grow
    iteration = 0
    while True:
        violation = gradient.max(axis=0) - movable.min(axis=0)
        i = int(violation.argmax())
        worst = float(violation[i])
        watch(iteration, worst)
        if worst < tol:
            break
        new = project(B[:, i] - gradient[:, i] / rows.diagonal, cost_bounds[:, i])
        change = new - B[:, i]
        B[:, i] = new
        row = rows.row(i)
        for m in np.flatnonzero(change):
            update = change[m] * row
            gradient[m] += update
            movable[m] += update
        movable[:, i] = np.where(new < cost_bounds[:, i], gradient[:, i], np.inf)
        iteration += 1
    scores = gradient.copy()
    scores[cost_bounds == 0.0] -= 1.0
    dual = -0.5 * float((B * scores).sum()) + float(B[y, own].sum())
    return Outcome(iteration, worst, dual, B)
