"""Linear machines by definition: the optimum by quadratic programming, and what fitted weights are worth.

A machine with one score ``w_m . x + b_m`` for each column m minimises ``1/2 sum_m |w_m|^2 + sum_i C_i loss_i``, plus
``1/2 sum_m b_m^2`` for ``bias="regularized"``. Its dual has one coefficient ``B_im`` for every example and column::

    max  sum_im o_im B_im - 1/2 |B'X|^2       Weston-Watkins, Crammer-Singer: see ``reference.together``
                                              one-against-all: o_im = t_im, 0 <= t_im B_im <= C_i, t_im = +1 or -1

with ``- 1/2 |sum_i B_i|^2`` for a regularised bias, and ``sum_i B_im = 0`` for a free one.
"""

from dataclasses import dataclass

import numpy as np

from reference import together
from reference.compare import LOSSES, dense
from reference.composition import upper_bounds


@dataclass(frozen=True)
class LinearOptimum:
    """``W`` (columns, features), the offsets ``b`` (columns,), and the objective that both problems have there."""

    W: np.ndarray
    b: np.ndarray
    dual: float


@dataclass(frozen=True)
class Worth:
    """The objectives of a fitted machine, and the worst violation of a constraint of the dual.

    ``primal`` is that of ``coef_`` and ``intercept_``, ``dual`` that of ``dual_coef_``; for one-against-all both are
    sums of ``primals`` and ``duals``, one for each column. ``infeasibility`` is in units of the largest C.
    """

    primals: np.ndarray
    duals: np.ndarray
    infeasibility: float

    @property
    def primal(self):
        return float(self.primals.sum())

    @property
    def dual(self):
        return float(self.duals.sum())

    @property
    def gap(self):
        return (self.primal - self.dual) / max(abs(self.primal), abs(self.dual))


def signs(codes, n_classes):
    """Return +1 where an example is of the class of a column, else -1; two classes have one column, the second."""
    columns = np.arange(n_classes) if n_classes > 2 else np.array([1])
    return np.where(np.asarray(codes)[:, None] == columns, 1.0, -1.0)


def _one_vs_rest(X, codes, bound, bias):
    K = X @ X.T + (1.0 if bias == "regularized" else 0.0)
    used = np.flatnonzero(bound > 0)
    W, b, dual = [], [], 0.0
    for t in signs(codes[used], codes.max() + 1).T:
        Q = K[np.ix_(used, used)] * np.outer(t, t)
        limits = {"x_l": np.zeros(len(used)), "x_u": bound[used]}
        if bias == "free":
            limits |= {"A": np.asfortranarray(t[None, :]), "b": np.zeros(1)}
        result = together._solved(np.asfortranarray((Q + Q.T) / 2), -np.ones(len(used)), **limits)
        alpha = np.clip(result.x, 0.0, bound[used])
        W.append((alpha * t) @ X[used])
        b.append(result.y[0] if bias == "free" else alpha @ t if bias == "regularized" else 0.0)
        dual += alpha.sum() - 0.5 * alpha @ Q @ alpha
    return LinearOptimum(np.array(W), np.array(b), float(dual))


def linear_optimum(machine, X, y, sample_weight=None):
    """Solve the problem that ``machine``'s parameters mean by quadratic programming."""
    X, codes = dense(X).astype(np.float64), np.unique(y, return_inverse=True)[1]
    bound = upper_bounds(y, machine.C, machine.class_weight, sample_weight)
    if type(machine).__name__ == "OneVsRestSVC":
        return _one_vs_rest(X, codes, bound, machine.bias)
    loss, margin = LOSSES[type(machine).__name__], getattr(machine, "margin", 1.0)
    best = together.solve_together(X @ X.T, codes, bound, loss=loss, bias=machine.bias, margin=margin)
    return LinearOptimum(best.B.T @ X, best.b, best.dual)


def _worth_of_columns(scores, B, codes, bound, n_classes):
    t = signs(codes, n_classes)
    losses = bound @ np.maximum(0.0, 1.0 - t * scores)
    return losses, (t * B).sum(axis=0), max(np.max(-t * B), np.max(t * B - bound[:, None]))


def _worth_together(scores, B, codes, bound, loss, margin):
    rows = np.arange(len(codes))
    short = margin - (scores[rows, codes][:, None] - scores)
    short[rows, codes] = 0.0
    wrong, own = B.copy(), B[rows, codes]
    wrong[rows, codes] = 0.0
    if loss == "weston-watkins":
        losses = np.maximum(0.0, short).sum(axis=1)
        excess = np.max(-wrong - bound[:, None])
    else:
        losses = np.maximum(0.0, short.max(axis=1))
        excess = np.max(own - bound)
    broken = max(excess, np.max(wrong), np.max(np.abs(B.sum(axis=1))))
    return np.array([bound @ losses]), np.array([margin * own.sum()]), broken


def class_weights(machine):
    """Return weights and intercepts of all scores: machines of two classes together show those of the second alone."""
    W, b = machine.coef_, machine.intercept_
    return (W, b) if len(W) == len(dense(machine.dual_coef_)) else (np.vstack([-W, W]), np.append(-b, b))


def worth(machine, X, y, sample_weight=None):
    """Recompute what the public attributes of a fitted linear machine are worth, in float64."""
    X = X.astype(np.float64)
    codes, n_classes = np.searchsorted(machine.classes_, y), len(machine.classes_)
    bound = upper_bounds(y, machine.C, machine.class_weight, sample_weight)
    W, b = class_weights(machine)
    B = np.zeros((len(codes), len(b)))
    B[machine.support_] = dense(machine.dual_coef_).T
    from_dual, sums = np.asarray(X.T @ B).T, B.sum(axis=0)
    scores = np.asarray(X @ W.T) + b
    squares, dual_squares = (W**2).sum(axis=1), (from_dual**2).sum(axis=1)
    if machine.bias == "regularized":
        squares, dual_squares = squares + b**2, dual_squares + sums**2
    name = type(machine).__name__
    if name == "OneVsRestSVC":
        losses, linear, broken = _worth_of_columns(scores, B, codes, bound, n_classes)
    else:
        margin = getattr(machine, "margin", 1.0)
        losses, linear, broken = _worth_together(scores, B, codes, bound, LOSSES[name], margin)
        squares, dual_squares = squares.sum(), dual_squares.sum()
    if machine.bias == "free":
        broken = max(broken, np.max(np.abs(sums)))
    elif machine.bias is None:
        broken = max(broken, np.max(np.abs(b)))
    return Worth(0.5 * squares + losses, linear - 0.5 * dual_squares, float(broken) / bound.max())
