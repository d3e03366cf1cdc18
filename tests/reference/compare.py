"""Read a fitted machine the way its reference is read, whatever machine it is."""

import numpy as np
from scipy import sparse

from reference.certificate import audit_problems, one_vs_one_problems, one_vs_rest_problems
from reference.composition import one_vs_one, one_vs_rest, upper_bounds
from reference.kernels import gamma_value, kernel_matrix

ORACLES = {"OneVsOneSVC": one_vs_one, "OneVsRestSVC": one_vs_rest}
PROBLEMS = {"OneVsOneSVC": one_vs_one_problems, "OneVsRestSVC": one_vs_rest_problems}


def dense(A):
    """Return ``A`` as a numpy array."""
    return A.toarray() if sparse.issparse(A) else np.asarray(A)


def scores(machine, X):
    """Return one column per binary problem, in the order and with the signs of the reference."""
    if hasattr(machine, "pairwise_decision_function"):
        return np.asarray(machine.pairwise_decision_function(X))
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


def oracle(machine, X, y, sample_weight=None):
    """Solve ``machine``'s problem by quadratic programming; return the solution and the kernel matrix."""
    K, bound = training_problem(machine, X, y, sample_weight)
    return ORACLES[type(machine).__name__](K, y, bound), K


def audit(machine, X, y, sample_weight=None):
    """Recompute the objectives of a fitted ``machine``."""
    K, bound = training_problem(machine, X, y, sample_weight)
    return audit_problems(PROBLEMS[type(machine).__name__](machine, y), K, bound)
