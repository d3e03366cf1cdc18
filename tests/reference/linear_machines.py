"""Linear machines, and what is asked of every fit of theirs."""

import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from polymargin import CrammerSingerSVC, OneVsRestSVC, WestonWatkinsSVC
from reference.compare import dense
from reference.linear import class_weights, worth

MACHINES = [CrammerSingerSVC, WestonWatkinsSVC, OneVsRestSVC]
TOGETHER = MACHINES[:2]
BIASES = [None, "regularized", "free"]
CONTAINERS = {"dense": np.asarray, "csr": sparse.csr_matrix}
EXACT = 1e-9

every_machine = pytest.mark.parametrize("Machine", MACHINES)
every_together = pytest.mark.parametrize("Machine", TOGETHER)
every_bias = pytest.mark.parametrize("bias", BIASES)
every_linear_solver = pytest.mark.parametrize(
    ("Machine", "solver"),
    [
        *((Machine, "sequential-dual") for Machine in MACHINES),
        *((Machine, "cutting-plane") for Machine in TOGETHER),
        (CrammerSingerSVC, "exponentiated-gradient"),
    ],
)
every_container = pytest.mark.parametrize("container", CONTAINERS)


def sequential(Machine, **parameters):
    """Return a machine with the sequential dual solver; a time limit, so that a test fails and does not hang."""
    return Machine(**{"kernel": "linear", "solver": "sequential-dual", "time_limit": 60.0} | parameters)


def converged(machine, X, y, sample_weight=None):
    """Fit without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        machine.fit(X, y, sample_weight=sample_weight)
    assert machine.converged_
    assert machine.stop_reason_ == "converged"
    assert machine.duality_gap_ <= machine.tol or machine.solver_used_ == "decomposition"
    return machine


def limited(machine, X, y):
    """Fit with a limit that is reached."""
    with pytest.warns(ConvergenceWarning) as caught:
        machine.fit(X, y)
    assert not machine.converged_
    return str(caught[0].message)


def farthest(machine, objective):
    """Return how far weights with this gap can be from the best ones: 1/2 |W - W*|^2 is at most the gap."""
    return np.sqrt(2 * machine.duality_gap_ * objective) + 1e-7


def assert_honest(machine, X, y, sample_weight=None, rel=1e-9, newton=False):
    """Check that attributes belong together, and that the reported objectives are those of the attributes.

    Weights and coefficients are one point, but after Newton steps they may be as far apart as the gap allows.
    """
    W, b = class_weights(machine)
    apart = np.asarray(dense(machine.dual_coef_) @ machine.support_vectors_.astype(np.float64)) - W
    if machine.bias == "regularized":
        apart = np.column_stack([apart, dense(machine.dual_coef_).sum(axis=1) - b])
    gap = machine.primal_objective_ - machine.dual_objective_
    assert 0.5 * np.sum(apart**2) <= gap * (1 + 1e-9) + 1e-12 * machine.primal_objective_
    if not newton:
        np.testing.assert_allclose(apart, 0.0, rtol=0, atol=1e-11 * max(1.0, np.abs(W).max()))
    assert W.dtype == b.dtype == machine.dual_coef_.dtype == np.float64
    checked = worth(machine, X, y, sample_weight)
    assert checked.infeasibility < max(1e-12, 1e-14 * len(y))  # sums over all examples
    assert machine.primal_objective_ == pytest.approx(checked.primal, rel=rel)
    assert machine.dual_objective_ == pytest.approx(checked.dual, rel=rel, abs=rel * checked.primal)
    assert machine.duality_gap_ == pytest.approx(checked.gap, rel=1e-5, abs=10 * rel)
    assert checked.dual <= checked.primal * (1 + 1e-12)
    if machine.converged_:
        assert checked.gap <= machine.tol * (1 + 1e-5) + rel
    return checked


def names(message, row, column):
    """Tell whether a message names an entry, counted from 0."""
    has_row = re.search(rf"(?i)\brow\D{{0,3}}{row}\b", message)
    return bool(has_row and re.search(rf"(?i)\bcolumn\D{{0,3}}{column}\b", message))


def many_classes(k, per_class=2, n_features=20, seed=0):
    """Return as many examples of each class around a centre of its own."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(k), per_class))
    return rng.normal(size=(k, n_features))[y] + 0.5 * rng.normal(size=(len(y), n_features)), y
