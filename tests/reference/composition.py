"""Many binary problems: one-against-one and one-against-all, as the papers define them."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from reference.binary import BinarySolution, solve_binary


@dataclass(frozen=True)
class Part:
    """One binary problem: which training rows take part, as +1 or -1, and its solution."""

    rows: np.ndarray
    t: np.ndarray
    solution: BinarySolution

    def scores(self, K_test):
        """Return the decision values given the kernel of test rows and all training rows."""
        return K_test[:, self.rows] @ (self.solution.alpha * self.t) + self.solution.b


@dataclass(frozen=True)
class Composition:
    """All problems of a machine; objectives are sums over them."""

    parts: list

    @property
    def dual(self):
        return sum(part.solution.dual for part in self.parts)

    @property
    def primal(self):
        return sum(part.solution.primal for part in self.parts)

    def scores(self, K_test):
        """Return one column of decision values for each problem."""
        return np.column_stack([part.scores(K_test) for part in self.parts])


def pairs(k):
    """Return the pairs (0, 1), (0, 2), ..., (1, 2), ... in their order."""
    return list(combinations(range(k), 2))


def upper_bounds(y, C=1.0, class_weight=None, sample_weight=None):
    """Return ``C_i = C * class_weight[y_i] * sample_weight[i]``."""
    y = np.asarray(y)
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if class_weight == "balanced":
        present = np.unique(y)
        total = weight.sum()
        class_weight = {c: total / (len(present) * weight[y == c].sum()) for c in present}
    of_class = class_weight or {}
    return np.array([C * of_class.get(label, 1.0) * w for label, w in zip(y.tolist(), weight, strict=True)])


def one_vs_one(K, y, bound, pairs_=None):
    """Solve every pair (i, j), i < j, or those given, with class i as +1."""
    y = np.asarray(y)
    classes = np.unique(y)
    parts = []
    for i, j in pairs(len(classes)) if pairs_ is None else pairs_:
        rows = np.flatnonzero((y == classes[i]) | (y == classes[j]))
        t = np.where(y[rows] == classes[i], 1.0, -1.0)
        parts.append(Part(rows, t, solve_binary(K[np.ix_(rows, rows)], t, bound[rows])))
    return Composition(parts)


def output_code(K, y, bound, code_book_):
    """Solve every column of a code, the classes with 1 as +1 and those with -1 as -1."""
    signs = np.asarray(code_book_)[np.unique(y, return_inverse=True)[1]]
    parts = []
    for column in signs.T:
        rows = np.flatnonzero(column)
        parts.append(Part(rows, column[rows], solve_binary(K[np.ix_(rows, rows)], column[rows], bound[rows])))
    return Composition(parts)


def one_vs_rest(K, y, bound):
    """Solve every class against all others; two classes are one problem with the second as +1."""
    y = np.asarray(y)
    classes = np.unique(y)
    rows = np.arange(len(y))
    parts = []
    for c in classes if len(classes) > 2 else classes[1:]:
        t = np.where(y == c, 1.0, -1.0)
        parts.append(Part(rows, t, solve_binary(K, t, bound)))
    return Composition(parts)
