"""Recompute a fitted machine's objectives from its public attributes, trusting nothing else.

``one_vs_one_problems`` and ``one_vs_rest_problems`` unpack ``dual_coef_`` into one ``alpha`` per binary
problem; ``audit_problems`` checks that it is feasible and adds up the primal and the dual objectives.
"""

from dataclasses import dataclass

import numpy as np

from reference.binary import dual_objective, primal_objective
from reference.composition import pairs


@dataclass(frozen=True)
class Audit:
    """Sums over the problems, and the worst violation of a constraint relative to the bounds."""

    primal: float
    dual: float
    infeasibility: float


def pair_coefficients(dual_coef, n_support, pair):
    """Return (columns, values) of one pair in scikit-learn's (k - 1, n_SV) layout.

    Support vectors are grouped by class. Those of class ``i`` keep their coefficient against ``j > i`` in
    row ``j - 1``; those of class ``j`` keep theirs against ``i < j`` in row ``i``.
    """
    i, j = pair
    start = np.concatenate([[0], np.cumsum(n_support)])
    of_i = np.arange(start[i], start[i + 1])
    of_j = np.arange(start[j], start[j + 1])
    values = np.concatenate([dual_coef[j - 1, of_i], dual_coef[i, of_j]])
    return np.concatenate([of_i, of_j]), values


def chosen_pair_coefficients(machine, p):
    """Return (columns, values) of pair p of ``pairs_``; row r of a vector of class c is the r-th pair that c is in."""
    start = np.concatenate([[0], np.cumsum(machine.n_support_)])
    columns, values = [], []
    for c in machine.pairs_[p]:
        row = sum(c in pair for pair in machine.pairs_[:p].tolist())
        columns.append(np.arange(start[c], start[c + 1]))
        values.append(machine.dual_coef_[row, columns[-1]])
    return np.concatenate(columns), np.concatenate(values)


def one_vs_one_problems(machine, y):
    """Return (rows, labels, signed alpha, offset) of every pair of a fitted machine.

    For two classes ``dual_coef_`` and ``intercept_`` are positive for the second class, as in scikit-learn.
    """
    k = len(machine.classes_)
    found = [pair_coefficients(machine.dual_coef_, machine.n_support_, pair) for pair in pairs(k)]
    return _pair_problems(machine, y, pairs(k), found)


def chosen_pair_problems(machine, y):
    """Return the same for a machine that chose its pairs."""
    found = [chosen_pair_coefficients(machine, p) for p in range(len(machine.pairs_))]
    return _pair_problems(machine, y, machine.pairs_, found)


def _pair_problems(machine, y, trained, found):
    y = np.asarray(y)
    sign = -1.0 if len(machine.classes_) == 2 else 1.0
    problems = []
    for p, (i, j) in enumerate(trained):
        rows = np.flatnonzero((y == machine.classes_[i]) | (y == machine.classes_[j]))
        t = np.where(y[rows] == machine.classes_[i], 1.0, -1.0)
        columns, values = found[p]
        signed = np.zeros(len(y))
        signed[machine.support_[columns]] = sign * values
        problems.append((rows, t, signed[rows], sign * machine.intercept_[p]))
    return problems


def code_problems(machine, y):
    """Return the same for a code; row r of a vector of class c is the r-th problem that c takes part in."""
    code, owner = machine.code_book_, np.repeat(np.arange(len(machine.classes_)), machine.n_support_)
    signs = code[np.searchsorted(machine.classes_, y)]
    problems = []
    for s, column in enumerate(signs.T):
        rows, members = np.flatnonzero(column), np.flatnonzero(code[owner, s])
        row = np.array([np.count_nonzero(code[c, :s]) for c in owner[members]], dtype=int)
        signed = np.zeros(len(column))
        signed[machine.support_[members]] = machine.dual_coef_[row, members]
        problems.append((rows, column[rows], signed[rows], machine.intercept_[s]))
    return problems


def one_vs_rest_problems(machine, y):
    """Return (rows, labels, signed alpha, offset) of every class of a fitted machine."""
    y = np.asarray(y)
    rows = np.arange(len(y))
    positive = machine.classes_ if len(machine.classes_) > 2 else machine.classes_[1:]
    problems = []
    for c, label in enumerate(positive):
        t = np.where(y == label, 1.0, -1.0)
        signed = np.zeros(len(y))
        signed[machine.support_] = machine.dual_coef_[c]
        problems.append((rows, t, signed, machine.intercept_[c]))
    return problems


def audit_problems(problems, K, bound):
    """Recompute the objectives of solved binary problems, and how far they are from feasible."""
    primal = dual = infeasibility = 0.0
    for rows, t, signed, b in problems:
        K_part, bound_part = K[np.ix_(rows, rows)], bound[rows]
        alpha = signed * t
        scale = max(1.0, float(np.abs(alpha).max()))
        infeasibility = max(
            infeasibility,
            float(np.max(-alpha)) / scale,
            float(np.max(alpha - bound_part)) / scale,
            abs(float(signed.sum())) / scale,
        )
        dual += dual_objective(K_part, t, alpha)
        primal += primal_objective(K_part, t, alpha, b, bound_part)
    return Audit(primal, dual, infeasibility)


def offsets_are_unique(problems, bound):
    """Tell whether every problem has a variable well inside its bounds, which fixes the offset."""
    for rows, t, signed, _ in problems:
        share = (signed * t)[bound[rows] > 0] / bound[rows][bound[rows] > 0]
        if not ((share > 1e-3) & (share < 1 - 1e-3)).any():
            return False
    return True
