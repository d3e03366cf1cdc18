"""The rivals of the sequential dual method, from Python: exponentiated gradient, and what it shares with the planes."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pytest
from reference.data import digits, iris, random_classes, wine
from reference.linear import class_weights, linear_optimum
from reference.linear_machines import (
    CONTAINERS,
    MACHINES,
    assert_honest,
    converged,
    every_container,
    farthest,
    limited,
    many_classes,
    sequential,
)
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from polymargin import CrammerSingerSVC, OneVsRestSVC, WestonWatkinsSVC, certify

RIVALS = [
    (CrammerSingerSVC, "exponentiated-gradient"),
    (CrammerSingerSVC, "cutting-plane"),
    (WestonWatkinsSVC, "cutting-plane"),
]
every_rival = pytest.mark.parametrize(("Machine", "solver"), RIVALS)
every_bias = pytest.mark.parametrize("bias", [None, "regularized"])


def gradient(**parameters):
    """Return a machine with the exponentiated gradient solver."""
    return sequential(CrammerSingerSVC, **{"solver": "exponentiated-gradient", "bias": None} | parameters)


# Exponentiated gradient: the optimum


@every_bias
@every_container
@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("C", [0.02, 0.3, 1.0, 10.0])
def test_solution_is_the_optimum(bias, container, k, C):
    X, y = random_classes(k, n=40, n_features=7, seed=20 + k)
    machine = converged(gradient(C=C, bias=bias, tol=1e-4), CONTAINERS[container](X), y)
    assert machine.solver_used_ == "exponentiated-gradient"
    best = linear_optimum(machine, X, y)
    assert machine.dual_objective_ == pytest.approx(best.dual, rel=1e-4)
    assert machine.primal_objective_ == pytest.approx(best.dual, rel=1e-4)
    W, b = class_weights(machine)
    np.testing.assert_allclose(W, best.W, rtol=0, atol=farthest(machine, best.dual))
    np.testing.assert_allclose(b, best.b, rtol=0, atol=farthest(machine, best.dual))
    assert_honest(machine, X, y)


@every_bias
@pytest.mark.parametrize("data", [wine, lambda: digits(300), lambda: many_classes(70)], ids=["wine", "digits", "70"])
def test_the_sequential_dual_method_agrees(bias, data):
    X, y = data()
    machine = converged(gradient(C=0.1, bias=bias, tol=1e-3), X, y)
    other = converged(clone(machine).set_params(solver="sequential-dual", tol=1e-7), X, y)
    assert machine.dual_objective_ == pytest.approx(other.dual_objective_, rel=1e-3)
    assert machine.primal_objective_ == pytest.approx(other.primal_objective_, rel=1e-3)
    far = farthest(machine, other.dual_objective_) + farthest(other, other.dual_objective_)
    np.testing.assert_allclose(machine.coef_, other.coef_, rtol=0, atol=far)
    assert np.mean(machine.predict(X) == other.predict(X)) > 0.97
    assert_honest(machine, X, y)


@every_bias
@every_container
@pytest.mark.parametrize("class_weight", [{0: 3.0, 2: 0.25}, "balanced"], ids=["dict", "balanced"])
def test_weighted_solution_is_the_optimum(bias, container, class_weight):
    X, y = random_classes(3, n=60, n_features=6, seed=11)
    X, y = X[:45], y[:45]
    weight = np.random.default_rng(3).uniform(0.1, 3.0, len(y))
    weight[::7] = 0.0
    machine = gradient(C=0.7, bias=bias, class_weight=class_weight, tol=1e-4)
    converged(machine, CONTAINERS[container](X), y, weight)
    assert machine.dual_objective_ == pytest.approx(linear_optimum(machine, X, y, weight).dual, rel=1e-4)
    assert_honest(machine, X, y, weight)
    np.testing.assert_array_equal(np.sort(machine.support_), np.flatnonzero(weight > 0))  # no p is ever zero
    proof = certify(machine, X, y, weight)
    assert proof.dual_objective == pytest.approx(machine.dual_objective_, rel=1e-9)
    assert proof.infeasibility < 1e-12


@pytest.mark.parametrize("seed", range(8))
def test_odds_that_fall_for_long_do_not_end_in_infinities(seed):
    X, y = random_classes(3, n=30, n_features=3, seed=seed)
    machine = gradient(C=1.0, bias="regularized", tol=1e-13, max_iter=1_000_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(X, y)
    assert machine.duality_gap_ < 1e-2
    assert np.isfinite(machine.coef_).all()
    assert_honest(machine, X, y)


def test_the_gap_is_honest_in_single_precision():
    X, y = digits(1700)  # by 10 classes: enough
    machine = converged(gradient(C=0.01, tol=1e-2), X, y)
    assert assert_honest(machine, X, y).gap > 0


def test_equal_seeds_give_equal_machines_for_any_number_of_threads():
    X, y = digits(200)
    first = converged(gradient(C=0.1, random_state=3, tol=1e-2), X, y)
    for n_jobs in (1, 2):
        again = converged(clone(first).set_params(n_jobs=n_jobs), X, y)
        np.testing.assert_array_equal(again.coef_, first.coef_)
    other = converged(clone(first).set_params(random_state=4), X, y)
    assert not np.array_equal(other.coef_, first.coef_)


@pytest.mark.parametrize("limit", [{"max_iter": 0}, {"max_iter": 700}, {"time_limit": 1e-9}], ids=str)
def test_a_stopped_fit_is_feasible_and_tells_the_truth(limit):
    X, y = digits(300)
    machine = gradient(tol=1e-8, **limit)
    message = limited(machine, X, y)
    ((name, value),) = limit.items()
    assert machine.stop_reason_ == name
    assert f"{name}={value}" in message
    if name == "max_iter":
        assert machine.n_iter_ <= value + 1
    assert_honest(machine, X, y)


def test_the_last_solution_is_no_start_of_a_rival():
    X, y = iris()
    machine = converged(gradient(C=0.1, warm_start=True), X, y)
    once = machine.coef_.copy()
    np.testing.assert_array_equal(converged(machine, X, y).coef_, once)


# Bad combinations


def test_exponentiated_gradient_has_no_free_bias_and_the_error_says_so():
    machine = gradient(bias="free")
    with pytest.raises(ValueError, match="free") as caught:
        machine.fit(*iris())
    for part in ("exponentiated-gradient", "'regularized'", "None", "'sequential-dual'"):
        assert part in str(caught.value)
    assert not hasattr(machine, "dual_coef_")


@every_bias
def test_exponentiated_gradient_is_for_crammer_singer_and_the_error_says_so(bias):
    machine = WestonWatkinsSVC(kernel="linear", solver="exponentiated-gradient", bias=bias)
    with pytest.raises(ValueError, match="CrammerSingerSVC") as caught:
        machine.fit(*iris())
    assert "'sequential-dual'" in str(caught.value)
    assert not hasattr(machine, "dual_coef_")
    with pytest.raises(ValueError, match=r"\bsolver\b"):
        OneVsRestSVC(kernel="linear", solver="exponentiated-gradient", bias=bias).fit(*iris())


# Any input


@every_rival
def test_index_type_changes_nothing(Machine, solver):
    X, y = random_classes(3, n=40, n_features=6, seed=2)
    fitted = []
    for dtype in (np.int32, np.int64):
        data = sparse.csr_matrix(X)
        data.indices, data.indptr = data.indices.astype(dtype), data.indptr.astype(dtype)
        fitted.append(converged(sequential(Machine, solver=solver, C=0.2, bias=None, tol=1e-3), data, y))
    np.testing.assert_array_equal(fitted[0].coef_, fitted[1].coef_)
    np.testing.assert_array_equal(fitted[0].dual_coef_, fitted[1].dual_coef_)


@every_rival
@every_bias
def test_unsorted_and_duplicated_entries_mean_what_they_say(Machine, solver, bias):
    X, y = random_classes(3, n=40, n_features=6, seed=2)
    columns = np.tile(np.r_[np.arange(6)[::-1], np.arange(6)], len(X))
    values = np.hstack([0.25 * X[:, ::-1], 0.75 * X]).ravel()
    messy = sparse.csr_matrix((values, columns, 12 * np.arange(len(X) + 1)), shape=X.shape)
    machine = converged(sequential(Machine, solver=solver, C=0.2, bias=bias, tol=1e-4), messy, y)
    assert machine.dual_objective_ == pytest.approx(linear_optimum(machine, X, y).dual, rel=1e-4)
    assert_honest(machine, X, y)
    assert messy.nnz == 12 * len(X)  # the caller's matrix stays as it is


@every_rival
@every_bias
@every_container
def test_rows_and_features_of_zeros(Machine, solver, bias, container):
    X, y = random_classes(3, n=42, n_features=5, seed=7)
    X[::6] = 0.0
    X[:, [0, 3]] = 0.0
    machine = converged(sequential(Machine, solver=solver, C=0.1, bias=bias, tol=1e-4), CONTAINERS[container](X), y)
    assert machine.dual_objective_ == pytest.approx(linear_optimum(machine, X, y).dual, rel=1e-4)
    np.testing.assert_array_equal(machine.coef_[:, [0, 3]], 0.0)
    assert_honest(machine, X, y)


@every_rival
@every_bias
@every_container
def test_nothing_but_zeros(Machine, solver, bias, container):
    X, y = np.zeros((12, 3)), np.arange(12) % 3
    machine = converged(sequential(Machine, solver=solver, bias=bias, tol=1e-4), CONTAINERS[container](X), y)
    np.testing.assert_array_equal(machine.coef_, 0.0)
    assert machine.dual_objective_ == pytest.approx(linear_optimum(machine, X, y).dual, rel=1e-4)
    assert_honest(machine, X, y)


@every_rival
def test_one_class_is_not_enough(Machine, solver):
    X, _ = iris()
    machine = sequential(Machine, solver=solver, bias=None)
    with pytest.raises(ValueError, match=r"(?i)one class"):
        machine.fit(X, np.zeros(len(X)))
    assert not hasattr(machine, "coef_")


@every_rival
@every_container
@pytest.mark.parametrize("value", [1e200, -1.7e308])
def test_a_huge_value_is_named_and_leaves_the_machine_as_it_was(Machine, solver, container, value):
    X, y = iris()
    machine = sequential(Machine, solver=solver, C=0.1, bias=None, tol=1e-2).fit(X, y)
    before = dict(vars(machine))
    X[37, 2] = value
    with pytest.raises(ValueError, match=r"row 37, column 2"):
        machine.fit(CONTAINERS[container](X), y)
    assert vars(machine).keys() == before.keys()
    assert all(vars(machine)[name] is before[name] for name in before)


# Column numbers that need 64 bits: the weights alone are 48 GB, so a machine with less must say so and live.
FAR = """
import json, resource, sys
import numpy as np
from scipy import sparse
import polymargin

limit = 4 * 2**30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
width, rng = 2**31 + 10, np.random.default_rng(0)
columns = np.tile(np.array([0, width - 2, width - 1], dtype=np.int64), 30)
starts = np.arange(0, 91, 3, dtype=np.int64)
X = sparse.csr_array((rng.normal(size=90), columns, starts), shape=(30, width))
outcomes = {}
for name, solver in json.loads(sys.argv[1]):
    machine = getattr(polymargin, name)(kernel="linear", solver=solver, bias=None, time_limit=5.0)
    try:
        machine.fit(X, np.arange(30) % 3)
        outcomes[name + solver] = "fitted"
    except MemoryError:
        outcomes[name + solver] = "MemoryError" if not hasattr(machine, "dual_coef_") else "changed"
print(json.dumps(outcomes))
"""


def test_more_columns_than_32_bits_can_count_are_a_matter_of_memory():
    cases = [(Machine.__name__, "sequential-dual") for Machine in MACHINES]
    cases += [(Machine.__name__, solver) for Machine, solver in RIVALS]
    command = [sys.executable, "-c", FAR, json.dumps(cases)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {name + solver: "MemoryError" for name, solver in cases}
