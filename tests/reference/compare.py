"""Read a fitted machine the way its reference is read, whatever machine it is."""

import numpy as np
import pytest
from scipy import sparse

from reference import absolute, certificate, linear_program, together
from reference.certificate import (
    audit_problems,
    chosen_pair_problems,
    code_problems,
    one_vs_one_problems,
    one_vs_rest_problems,
)
from reference.composition import one_vs_one, one_vs_rest, output_code, upper_bounds
from reference.kernels import gamma_value, kernel_matrix

ORACLES = {
    "OneVsOneSVC": one_vs_one,
    "OneVsRestSVC": one_vs_rest,
    "OutputCodeSVC": output_code,
    "WestonWatkinsSVC": together.weston_watkins,
    "CrammerSingerSVC": together.crammer_singer,
    "UncertaintySVC": one_vs_one,
    "LinearProgramSVC": linear_program.linear_program,
}
OPTIONS = {
    "WestonWatkinsSVC": ("bias", "margin"),
    "CrammerSingerSVC": ("bias",),
    "OutputCodeSVC": ("code_book_",),
    "UncertaintySVC": ("pairs_",),
}
PROBLEMS = {
    "OneVsOneSVC": one_vs_one_problems,
    "OneVsRestSVC": one_vs_rest_problems,
    "OutputCodeSVC": code_problems,
    "UncertaintySVC": chosen_pair_problems,
}
LOSSES = {"WestonWatkinsSVC": "weston-watkins", "CrammerSingerSVC": "crammer-singer"}


def dense(A):
    """Return ``A`` as a numpy array."""
    return A.toarray() if sparse.issparse(A) else np.asarray(A)


def scores(machine, X):
    """Return one column per binary problem, in the order and with the signs of the reference."""
    for of_problems in ("pairwise_decision_function", "problem_decision_function"):
        if hasattr(machine, of_problems):
            return np.asarray(getattr(machine, of_problems)(X))
    values = np.asarray(machine.decision_function(X))
    return values.reshape(len(values), -1)


def fitted_bits(machine, X):
    """Return everything that must not depend on threads, as bytes."""
    arrays = {name: np.asarray(dense(getattr(machine, name))) for name in ("support_", "dual_coef_", "intercept_")}
    arrays["scores"] = scores(machine, X)
    arrays["predict"] = machine.predict(X)
    arrays["objectives"] = np.array([machine.primal_objective_, machine.dual_objective_])
    return {name: (array.shape, array.tobytes()) for name, array in arrays.items()}


def training_problem(machine, X, y, sample_weight=None):
    """Return the kernel matrix (float64) and the upper bounds that ``machine``'s parameters mean."""
    X = dense(X)
    gamma = gamma_value(machine.gamma, X, sample_weight)
    K = kernel_matrix(X, X, machine.kernel, gamma=gamma, degree=machine.degree, coef0=machine.coef0)
    return K, upper_bounds(y, machine.C, machine.class_weight, sample_weight)


def optimum(machine, K, y, bound):
    """Solve ``machine``'s problem on a kernel matrix by quadratic programming."""
    name = type(machine).__name__
    if type(machine) in absolute.LOSSES:
        return absolute.optimum(machine, K, y, bound)
    return ORACLES[name](K, y, bound, **{option: getattr(machine, option) for option in OPTIONS.get(name, ())})


def oracle(machine, X, y, sample_weight=None):
    """Solve ``machine``'s problem by quadratic programming; return the solution and the kernel matrix."""
    K, bound = training_problem(machine, X, y, sample_weight)
    return optimum(machine, K, y, bound), K


def coefficients(machine, n):
    """Return the (n, k) coefficients of a fitted all-together machine."""
    B = np.zeros((n, len(machine.classes_)))
    B[machine.support_] = machine.dual_coef_.T
    return B


def multipliers(machine, n):
    """Return the (n, k) multipliers of a fitted linear programming machine."""
    u = np.zeros((n, len(machine.classes_)))
    u[tuple(machine.active_.T)] = machine.multipliers_
    return u


def audit(machine, X, y, sample_weight=None):
    """Recompute the objectives of a fitted ``machine``."""
    K, bound = training_problem(machine, X, y, sample_weight)
    name = type(machine).__name__
    if name in PROBLEMS:
        return audit_problems(PROBLEMS[name](machine, y), K, bound)
    B, codes = coefficients(machine, len(y)), np.searchsorted(machine.classes_, y)
    b = machine.intercept_ * [-1.0, 1.0] if len(machine.classes_) == 2 else machine.intercept_
    if type(machine) in absolute.LOSSES:
        return absolute.audit(machine, K, codes, B, b, bound)
    if name == "LinearProgramSVC":
        u = multipliers(machine, len(y))
        return certificate.Audit(
            primal=linear_program.primal_objective(K, codes, B.sum(axis=1), b, bound),
            dual=linear_program.dual_objective(u),
            infeasibility=linear_program.infeasibility(K, codes, u, bound),
        )
    loss, bias, margin = LOSSES[name], machine.bias, getattr(machine, "margin", 1.0)
    return certificate.Audit(
        primal=together.primal_objective(K, codes, B, b, bound, loss=loss, margin=margin, bias=bias),
        dual=together.dual_objective(K, codes, B, margin=margin, bias=bias),
        infeasibility=together.infeasibility(codes, B, b, bound, loss=loss, bias=bias),
    )


def assert_optimal(machine, X, y, best, *, rel, infeasibility):
    """Check the objectives that a fitted ``machine`` names against the ``best`` ones and against its coefficients."""
    assert machine.converged_
    assert machine.primal_objective_ == pytest.approx(best, rel=rel)
    assert machine.dual_objective_ == pytest.approx(best, rel=rel)
    assert machine.dual_objective_ <= machine.primal_objective_
    checked = audit(machine, X, y)
    assert checked.primal == pytest.approx(machine.primal_objective_, rel=1e-9)
    assert checked.dual == pytest.approx(machine.dual_objective_, rel=1e-9)
    assert checked.infeasibility < infeasibility


def offsets_are_unique(machine, y, bound):
    """Tell whether only one offset (or one for each class, up to a common constant) is optimal."""
    name = type(machine).__name__
    if name in PROBLEMS:
        return certificate.offsets_are_unique(PROBLEMS[name](machine, y), bound)
    if name == "LinearProgramSVC":
        return True  # it takes the middle
    codes = np.searchsorted(machine.classes_, y)
    B = coefficients(machine, len(y))
    if type(machine) in absolute.LOSSES:
        return machine.bias != "free" or absolute.offsets_are_unique(machine, codes, B, bound)
    return machine.bias != "free" or together.offsets_are_unique(codes, B, bound, loss=LOSSES[name])
